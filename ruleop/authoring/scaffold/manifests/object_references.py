"""References from one object to another: names follow those of the new objects, and selectors of two custom resources
in one namespace must not select each other's pods.

Where a field refers to a kind is known by the names of fields, which the API and custom kinds use alike.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.scaffold.manifests.application_names import INSTANCE, NAME
from ruleop.authoring.scaffold.manifests.cleaning import POD_NAME
from ruleop.authoring.scaffold.yaml_layout import items_at, walk

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from ruleop.authoring.scaffold.manifests.application_names import SharedName
    from ruleop.authoring.scaffold.manifests.cleaning import Manifest
    from ruleop.authoring.scaffold.yaml_layout import TreePath, WrittenExpr, WrittenText

_NAMES: Final = {
    "serviceName": "Service",
    "secretName": "Secret",
    "claimName": "PersistentVolumeClaim",
    "configMapName": "ConfigMap",
    "serviceAccountName": "ServiceAccount",
    "subdomain": "Service",
}
"""Fields whose value is a name."""
_HOLDERS: Final = {
    **dict.fromkeys(("configMap", "configMapRef", "configMapKeyRef"), "ConfigMap"),
    **dict.fromkeys(("secret", "secretRef", "secretKeyRef"), "Secret"),
    "service": "Service",
    "scaleTargetRef": "Deployment",
    "issuerRef": "Issuer",
}
"""Mappings with the field `name`."""
_LISTS: Final = {"imagePullSecrets": "Secret", "backendRefs": "Service", "services": "Service", "parentRefs": "Gateway"}
"""Lists of mappings with the field `name`."""
_ANNOTATIONS: Final = re.compile(r"nginx\.ingress\.kubernetes\.io/(auth-secret|auth-tls-secret|proxy-ssl-secret)")
_RESOURCES: Final = {
    "services": "Service",
    "secrets": "Secret",
    "configmaps": "ConfigMap",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "serviceaccounts": "ServiceAccount",
    "deployments": "Deployment",
    "statefulsets": "StatefulSet",
}
"""Resources of a Role whose objects `resourceNames` names."""


@dataclass(frozen=True, slots=True)
class ManifestReference:
    path: TreePath
    kind: str
    name: str


def references(body: Mapping[str, Any]) -> Iterator[ManifestReference]:
    """All fields that name another object."""
    for path, value in walk(body):
        if not path or not isinstance(value, dict):
            continue
        for key, member in value.items():
            if key in _NAMES and isinstance(member, str) and member:
                yield ManifestReference((*path, key), _NAMES[key], member)
            elif path[-1] == "annotations" and _ANNOTATIONS.fullmatch(str(key)) and isinstance(member, str):
                yield ManifestReference((*path, key), "Secret", member)
        yield from _of_rule(path, value)
        name, kind = value.get("name"), value.get("kind")
        if not isinstance(name, str):
            continue
        if isinstance(kind, str):
            yield ManifestReference((*path, "name"), kind, name)
        elif path[-1] in _HOLDERS:
            yield ManifestReference((*path, "name"), _HOLDERS[str(path[-1])], name)
        elif len(path) > 1 and path[-2] in _LISTS:
            yield ManifestReference((*path, "name"), _LISTS[str(path[-2])], name)


def _of_rule(path: TreePath, rule: Mapping[str, Any]) -> Iterator[ManifestReference]:
    """The objects that a rule of a Role names, where all its resources are of one kind that is known."""
    kinds = {_RESOURCES.get(str(each).partition("/")[0], "") for each in items_at(rule, ("resources",))}
    if len(kinds) == 1 and "" not in kinds:
        for index, name in enumerate(items_at(rule, ("resourceNames",))):
            if isinstance(name, str):
                yield ManifestReference((*path, "resourceNames", index), next(iter(kinds)), name)


@dataclass(slots=True)
class Links:
    """The dependencies between children. An expression that would close a circle is refused."""

    _reads: dict[str, set[str]] = field(default_factory=dict)

    def add(self, reader: str, read: str) -> bool:
        """Whether the child may read the other one; then it does."""
        if reader == read or self._reaches(read, reader):
            return False
        self._reads.setdefault(reader, set()).add(read)
        return True

    def _reaches(self, start: str, goal: str) -> bool:
        open_ids, seen = [start], set()
        while open_ids:
            current = open_ids.pop()
            if current == goal:
                return True
            if current not in seen:
                seen.add(current)
                open_ids += self._reads.get(current, ())
        return False


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


def _renamed(labels: Mapping[str, str], shared: SharedName) -> dict[str, str | WrittenExpr | WrittenText]:
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
