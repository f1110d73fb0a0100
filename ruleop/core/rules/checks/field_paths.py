"""Follows the field paths of `apply` through the shape of a kind, to find steps that lead nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.core.merge import Selector
from ruleop.core.schema.builtin.table import builtin_shape, object_meta
from ruleop.core.schema.nearest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.core.kinds import Kind
    from ruleop.core.merge.path import Segment
    from ruleop.core.schema.crd.crds import CustomResourceDefinition
    from ruleop.core.schema.shape import Shape


def shape_of(kind: Kind, crds: Iterable[CustomResourceDefinition]) -> Shape | None:
    """The shape of a built-in kind, or of one that a CRD of the project defines."""
    if (found := builtin_shape(kind)) is not None:
        return found
    crd = next((crd for crd in crds if (crd.group, crd.kind) == (kind.group, kind.kind)), None)
    return crd.shape(kind.version) if crd is not None else None


def step(shape: Shape, segment: Segment, kind: Kind) -> tuple[Shape | None, str]:
    """The shape below one segment of a path, None if it is unknown, and why there can be nothing, "" if there can."""
    if shape.type == "any":
        return None, ""
    if isinstance(segment, Selector):
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
        if current is not None and isinstance(segment, Selector):
            mistakes = [step(current, name, kind)[1] for name, _ in segment.pairs]
            if any(mistakes):
                return next(filter(None, mistakes))
    return ""
