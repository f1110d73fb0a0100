"""Checks `apply.own`: each path must be a list that is merged by keys or as a set.

A path may be set for one child or, in a watch or a file, for all of them. A shared path must match one of the children,
and has no effect in the others. For kinds whose schema only the cluster knows, any path is accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.merge import Path, Selector
from ruleop.schema.nearest import did_you_mean
from ruleop.schema.table import builtin_shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.kinds import Kind
    from ruleop.rules.findings import Findings
    from ruleop.rules.language.parsed import ChildDraft, Draft
    from ruleop.rules.language.value_types import PlacedPath
    from ruleop.schema.crds import CustomResourceDefinition
    from ruleop.schema.shape import Shape


def check_owned(drafts: Iterable[Draft], crds: Iterable[CustomResourceDefinition], findings: Findings) -> None:
    definitions = {f"{crd.kind}.{crd.group}": crd for crd in crds}
    reasons_by_path: dict[PlacedPath, list[str | None]] = {}
    for draft in drafts:
        for child in draft.everyone:
            for owned in child.own:
                reasons_by_path.setdefault(owned, []).append(_reason_for_child(child, owned, definitions))
    for owned, reasons in reasons_by_path.items():
        if (reason := reasons[0]) is not None and None not in reasons:
            findings.mistake("wrong-value", f'an owned path "{owned.path}": {reason}', owned.site)


def _reason_for_child(
    child: ChildDraft, owned: PlacedPath, definitions: Mapping[str, CustomResourceDefinition]
) -> str | None:
    """Why the path is invalid for the child; None if it is valid or its kind is unknown."""
    if child.create_only:
        return "the strategy create-only never updates the child, so it cannot remove items of others"
    reasons = [_reason_for_kind(owned.path, kind, _shape(kind, definitions)) for kind in sorted(child.kinds)]
    return reasons[0] if reasons and None not in reasons else None


def _shape(kind: Kind, definitions: Mapping[str, CustomResourceDefinition]) -> Shape | None:
    crd = definitions.get(str(kind.versionless))
    return builtin_shape(kind) or (crd.shape(kind.version) if crd is not None else None)


def _reason_for_kind(path: Path, kind: Kind, shape: Shape | None) -> str | None:
    if path.segments[0] == "metadata":
        return "the lists of metadata, such as finalizers, are shared with the API server and other controllers"
    if isinstance(path.segments[-1], Selector):
        return "this path selects an item: remove the selector"
    current = shape
    for segment in path.segments:
        if current is None or current.type == "any":
            return None
        if current.atomic or (current.type == "list" and current.list_type == "atomic"):
            return f"this is inside a list or map that {kind.kind} replaces as a whole: remove the path"
        if isinstance(segment, Selector):
            if current.type != "list":
                return f"[...] follows a list, and this is not a list in {kind.kind}"
            current = current.items
        elif current.type == "list":
            key = current.keys[0] if current.keys else "name"
            return f'"{segment}" follows a list: select one of its items, like [{key}=...]'
        else:
            parent, current = current, current.fields.get(segment) or current.values
            if current is None and not parent.preserve_unknown:
                return f'{kind.kind} has no such field: "{segment}"{did_you_mean(segment, parent.fields)}'
    if current is None or current.type == "any":
        return None
    if current.type != "list":
        return f"this is not a list in {kind.kind}"
    return (
        f"{kind.kind} replaces this list as a whole already: remove the path" if current.list_type == "atomic" else None
    )
