"""The shape at a path of an object, and the fields of an object that its kind does not have.

For kinds whose schema is not packaged with ruleop. For custom resources, `ruleop.core.schema.crd.structural` does the
same by their schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ruleop.core.schema.crd.schema_findings import FieldPath, SchemaFinding
from ruleop.core.schema.nearest import did_you_mean

if TYPE_CHECKING:
    from ruleop.core.kinds import JSON, Object
    from ruleop.core.schema.shape import Shape


def shape_at(shape: Shape, path: FieldPath) -> Shape | None:
    """The shape of the value at a path; None where the kind has no such field or the shape is unknown."""
    current: Shape | None = shape
    for part in path:
        if isinstance(part, str):
            while current is not None and current.type == "list":
                current = current.items
        if current is None:
            return None
        current = current.items if isinstance(part, int) else current.fields.get(part, current.values)
    return current


def unknown_to_shape(obj: Object, shape: Shape) -> list[SchemaFinding]:
    """The fields of an object that its kind does not have, each with the name that was probably meant. The API server
    rejects them under strict field validation, and drops them otherwise."""
    return list(_unknown(obj, shape, ()))


def _unknown(value: JSON, shape: Shape | None, path: FieldPath) -> Iterator[SchemaFinding]:
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
                yield SchemaFinding((*path, name), f"is an unknown field{did_you_mean(name, shape.fields)}")
