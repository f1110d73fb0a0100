"""Items that cannot stand in one list although their keys differ: two ports of a Service with one name.

The kind's shape says in which fields (`Shape.unique`). Zero and empty are no value to Kubernetes' validation, and so they are here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ruleop.merge.equality import same
from ruleop.merge.lists import item_keys, item_path, items_by_key
from ruleop.schema.findings import format_path
from ruleop.schema.shape import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kinds import JSON, Object
    from ruleop.merge.fields import ItemKey
    from ruleop.schema.shape import Shape, Unique


Step: TypeAlias = "str | frozenset[tuple[str, JSON]]"
"""The name of a member, or the keys of an item of a list."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two items of one list: a desired one, and one of somebody else."""

    path: str  # of the list, for people and for `apply.own`
    desired: str  # the items, as they are written in brackets behind it
    other: str
    place: tuple[Step, ...]  # of the other
    field: str
    missing: bool  # one of the two has no value, and both need one


def alike(one: Object, other: Object, unique: Unique, shape: Shape) -> bool:
    """Whether two items have one value in the field, and wherever it is compared."""
    value = one.get(unique.field)
    if not value or not same(value, other.get(unique.field)):
        return False
    if unique.sharing and _equal_in(unique.sharing, one, other, shape):
        return False
    return _equal_in(unique.within, one, other, shape)


def _equal_in(names: tuple[str, ...], one: Object, other: Object, shape: Shape) -> bool:
    return all(same(*((item.get(name) or shape.key_defaults.get(name, "")) for item in (one, other))) for name in names)


def conflict(one: Object, other: Object, shape: Shape) -> Unique | None:
    """For which field the API server refuses the two items in one list of this shape."""
    for unique in shape.unique:
        if alike(one, other, unique, shape) or (unique.required and not (one.get(unique.field) and other.get(unique.field))):
            return unique
    return None


def conflicts(merged: Object, desired: Object, shape: Shape) -> Iterator[Conflict]:
    """Each desired item of the merged object with the items of others that the API server refuses beside it."""
    return _within(merged, desired, shape, (), "")


def _within(merged: JSON, desired: JSON, shape: Shape, place: tuple[Step, ...], path: str) -> Iterator[Conflict]:
    if type(merged) is dict and type(desired) is dict and not shape.atomic:
        for name, value in desired.items():
            step = format_path((name,))
            joint = "." if path and not step.startswith("[") else ""
            inner = shape.fields.get(name) or shape.values or UNKNOWN
            yield from _within(merged.get(name), value, inner, (*place, name), f"{path}{joint}{step}")
    elif type(merged) is list and type(desired) is list and shape.list_type == "map":
        ours = items_by_key(desired, shape)
        if shape.unique:
            yield from _among(merged, ours, shape, place, path)
        for key, item in items_by_key(merged, shape).items():
            if key in ours:
                inner = shape.items or UNKNOWN
                yield from _within(item, ours[key], inner, (*place, _step(key, shape)), path + item_path(key, shape))


def _among(merged: list[JSON], ours: dict[ItemKey, JSON], shape: Shape, place: tuple[Step, ...], path: str) -> Iterator[Conflict]:
    found = [(key, item) for key, item in zip(item_keys(merged, shape), merged, strict=True) if key is not None]
    for key, item in found:
        for other_key, other in found if key in ours else ():
            if other_key not in ours and (unique := conflict(item, other, shape)) is not None:
                missing = not (item.get(unique.field) and other.get(unique.field))
                desired, them = item_path(key, shape), item_path(other_key, shape)
                yield Conflict(path, desired, them, (*place, _step(other_key, shape)), unique.field, missing)


def _step(key: ItemKey, shape: Shape) -> Step:
    return frozenset(zip(shape.keys, key, strict=True))
