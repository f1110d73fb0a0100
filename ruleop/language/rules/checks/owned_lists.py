"""Checks `apply.own`: each path must be a list that is merged by keys or as a set.

A path may be set for one child or, in a watch or a file, for all of them. A shared path must match one of the children,
and has no effect in the others. For kinds whose schema only the cluster knows, any path is accepted.

The field paths of `apply` are followed through the shape of a kind, to find steps that lead nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.kubernetes.builtin.table import builtin_shape, object_meta
from ruleop.kubernetes.crd import definition_of
from ruleop.kubernetes.merge import Path, PathSelector
from ruleop.nearest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.kubernetes.crd import CustomResourceDefinition
    from ruleop.kubernetes.kinds import Kind
    from ruleop.kubernetes.merge import Segment
    from ruleop.kubernetes.schema import Shape
    from ruleop.language.rules.findings import Findings
    from ruleop.language.rules.keys.parsed import ChildDraft, Draft
    from ruleop.language.rules.keys.value_types import PlacedPath


def shape_of(kind: Kind, crds: Iterable[CustomResourceDefinition]) -> Shape | None:
    """The shape of a built-in kind, or of one that a CRD of the project defines."""
    if (found := builtin_shape(kind)) is not None:
        return found
    crd = definition_of(kind, crds)
    return crd.shape(kind.version) if crd is not None else None


def step(shape: Shape, segment: Segment, kind: Kind) -> tuple[Shape | None, str]:
    """The shape below one segment of a path, None if it is unknown, and why there can be nothing, "" if there can."""
    if shape.type == "any":
        return None, ""
    if isinstance(segment, PathSelector):
        is_list = shape.type == "list"
        return shape.items, "" if is_list else f"[...] follows a list, and this is not a list in {kind.kind}"
    if shape.type == "list":
        key = shape.keys[0] if shape.keys else "name"
        return None, f'"{segment}" follows a list: select one of its items, like [{key}=...]'
    found = shape.fields.get(segment) or shape.values
    if found is None and not shape.preserve_unknown:
        return None, f'{kind.kind} has no such field: "{segment}"{did_you_mean(segment, shape.fields)}'
    return found, ""


def first_mistake(segments: Iterable[Segment], kind: Kind, shape: Shape | None) -> str:
    """The reason that an object of the kind can never have a value at a path; "" if it can, for all that is known."""
    current = shape
    for number, segment in enumerate(segments):
        if current is None:
            return ""
        if number == 0 and segment == "metadata":
            current = object_meta()
            continue
        spec = current.fields.get("spec")
        current, reason = step(current, segment, kind)
        if reason:
            in_spec = number == 0 and spec is not None and segment in spec.fields
            return f"{reason} (did you mean spec.{segment}?)" if in_spec else reason
        if current is not None and isinstance(segment, PathSelector):
            mistakes = [step(current, name, kind)[1] for name, _ in segment.pairs]
            if any(mistakes):
                return next(filter(None, mistakes))
    return ""


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
    if isinstance(path.segments[-1], PathSelector):
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
