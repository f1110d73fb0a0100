"""Checks `apply.own`: each path must be a list that is merged by keys or as a set.

A path may be set for one child or, in a watch or a file, for all of them. A shared path must match one of the children,
and has no effect in the others. For kinds whose schema only the cluster knows, any path is accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.core.merge import Path, Selector
from ruleop.core.rules.checks.field_paths import shape_of, step

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.core.kinds import Kind
    from ruleop.core.rules.findings import Findings
    from ruleop.core.rules.language.parsed import ChildDraft, Draft
    from ruleop.core.rules.language.value_types import PlacedPath
    from ruleop.core.schema.crd.crds import CustomResourceDefinition
    from ruleop.core.schema.shape import Shape


def check_owned(drafts: Iterable[Draft], crds: Iterable[CustomResourceDefinition], findings: Findings) -> None:
    crds = tuple(crds)
    reasons_by_path: dict[PlacedPath, list[str]] = {}
    for draft in drafts:
        for child in draft.everyone:
            for owned in child.own:
                reasons_by_path.setdefault(owned, []).append(_reason_for_child(child, owned, crds))
    for owned, reasons in reasons_by_path.items():
        if all(reasons):
            findings.mistake("wrong-value", f'an owned path "{owned.path}": {reasons[0]}', owned.site)


def _reason_for_child(child: ChildDraft, owned: PlacedPath, crds: Iterable[CustomResourceDefinition]) -> str:
    """The reason that the path is invalid for the child; "" if it is valid or its kind is unknown."""
    if child.create_only:
        return "the strategy create-only never updates the child, so it cannot remove items of others"
    reasons = [_reason_for_kind(owned.path, kind, shape_of(kind, crds)) for kind in sorted(child.kinds)]
    return reasons[0] if reasons and all(reasons) else ""


def _reason_for_kind(path: Path, kind: Kind, shape: Shape | None) -> str:
    if path.segments[0] == "metadata":
        return "the lists of metadata, such as finalizers, are shared with the API server and other controllers"
    if isinstance(path.segments[-1], Selector):
        return "this path selects an item: remove the selector"
    current = shape
    for segment in path.segments:
        if current is None:
            return ""
        if current.atomic or (current.type == "list" and current.list_type == "atomic"):
            return f"this is inside a list or map that {kind.kind} replaces as a whole: remove the path"
        current, reason = step(current, segment, kind)
        if reason:
            return reason
    if current is None or current.type == "any":
        return ""
    if current.type != "list":
        return f"this is not a list in {kind.kind}"
    return (
        f"{kind.kind} replaces this list as a whole already: remove the path" if current.list_type == "atomic" else ""
    )
