"""Which fields there are at a place, for messages that name the field someone meant, and for finding the fields that nobody knows.

Both of this room's descriptions are asked the same way: the schema of a CRD, and the shape of a kind whose schema ruleop does not carry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ruleop.schema.findings import Finding, Path
from ruleop.schema.nearest import did_you_mean

if TYPE_CHECKING:
    from ruleop.kinds import JSON, Object
    from ruleop.schema.shape import Shape


def shape_at(shape: Shape, path: Path) -> Shape | None:
    """The shape of what stands at a path; None where the kind has no such field or the shape does not say."""
    here: Shape | None = shape
    for part in path:
        if isinstance(part, str):
            while here is not None and here.type == "list":
                here = here.items
        if here is None:
            return None
        here = here.items if isinstance(part, int) else here.fields.get(part, here.values)
    return here


def unknown_to_shape(obj: Object, shape: Shape) -> list[Finding]:
    """The fields of an object that its kind does not have, each with the name that was probably meant. The API server refuses them when
    asked to be strict, and drops them when not."""
    return list(_unknown(obj, shape, ()))


def _unknown(value: JSON, shape: Shape | None, path: Path) -> Iterator[Finding]:
    if shape is None:
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(item, shape.items, (*path, index))
    elif isinstance(value, Mapping) and shape.type == "object":
        for name, member in value.items():
            if name in shape.fields:
                yield from _unknown(member, shape.fields[name], (*path, name))
            elif shape.values is not None:
                yield from _unknown(member, shape.values, (*path, name))
            elif not shape.preserve_unknown:
                yield Finding((*path, name), f"is not a known field{did_you_mean(name, shape.fields)}")
