"""Labels and selectors: those of two custom resources in one namespace must not select each other's pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.scaffold.manifests.application_names import INSTANCE, NAME
from ruleop.authoring.scaffold.manifests.cleaning import POD_NAME
from ruleop.authoring.scaffold.trees import walk

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from ruleop.authoring.scaffold.manifests.application_names import SharedName
    from ruleop.authoring.scaffold.manifests.cleaning import Manifest
    from ruleop.authoring.scaffold.trees import TreePath
    from ruleop.authoring.scaffold.yaml_layout import Expr, Joined

_CONSTANT: Final = frozenset(
    f"app.kubernetes.io/{name}" for name in ("name", "component", "part-of", "version", "created-by")
)
"""Labels that describe the application, not the instance."""


def label_changes(manifests: Sequence[Manifest], shared: SharedName) -> dict[str, dict[TreePath, Any]]:
    """The new labels and selectors of each object, by its kind and name."""
    selected = [labels for each in manifests for _, labels in _selected_labels(each)]
    selectors = [selector for each in manifests for _, selector in _selectors(each, selected)]
    renamed = [_renamed(selector, shared) for selector in selectors]
    ambiguous = any(all(isinstance(value, str) for value in selector.values()) for selector in renamed)
    more = {INSTANCE: NAME} if ambiguous else {}
    found: dict[str, dict[TreePath, Any]] = {}
    for manifest in manifests:
        changes = found.setdefault(str(manifest), {})
        for path, labels in _labels(manifest):
            changes[path] = _renamed(labels, shared)
        keys = {key for labels in selected for key in labels if key not in _CONSTANT}
        for path, values in _expression_values(manifest, keys):
            changes[path] = [shared.template(value) if shared.has(value) else value for value in values]
        for path, labels in [*_selected_labels(manifest), *_selectors(manifest, selected)]:
            changes[path] = {**_renamed(labels, shared), **more}
    return found


def _renamed(labels: Mapping[str, str], shared: SharedName) -> dict[str, str | Expr | Joined]:
    return {
        key: shared.template(value) if key not in _CONSTANT and shared.has(value) else value
        for key, value in labels.items()
    }


def _labels(manifest: Manifest) -> Iterator[tuple[TreePath, dict[str, str]]]:
    """All labels in metadata, of the object and of templates in it."""
    for path, value in walk(manifest.body):
        if path[-2:] == ("metadata", "labels") and _is_labels(value):
            yield path, value


def _selected_labels(manifest: Manifest) -> Iterator[tuple[TreePath, dict[str, str]]]:
    """The labels that selectors select by: of pods, and of Services, which monitors select."""
    for path, labels in _labels(manifest):
        if path[-3:-2] == ("template",) or manifest.kind.kind in ("Service", "Pod"):
            yield path, labels


def _selectors(manifest: Manifest, selected: Iterable[Mapping[str, str]]) -> Iterator[tuple[TreePath, dict[str, str]]]:
    """The selectors that select objects of the application."""
    for path, value in walk(manifest.body):
        is_selector = path[-1:] in (("matchLabels",), ("selector",)) and _is_labels(value)
        if is_selector and (POD_NAME in value or any(value.items() <= labels.items() for labels in selected)):
            yield path, value


def _expression_values(manifest: Manifest, keys: Collection[str]) -> Iterator[tuple[TreePath, list[str]]]:
    """The values of matchExpressions on these labels."""
    for path, value in walk(manifest.body):
        if path[-2:-1] == ("matchExpressions",) and isinstance(value, dict) and value.get("key") in keys:
            values = value.get("values")
            if isinstance(values, list) and all(isinstance(each, str) for each in values):
                yield (*path, "values"), values


def _is_labels(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(isinstance(each, str) for each in value.values())
