"""Items that cannot be in the same list although their keys differ, such as two ports of a Service with the same name.

`Shape.unique` has the fields that must differ. Zero and empty count as missing, as in Kubernetes' validation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ruleop.kubernetes.merge.equality import canonical, same
from ruleop.kubernetes.merge.lists import item_keys, item_path, items_by_key
from ruleop.kubernetes.schema import UNKNOWN
from ruleop.messages import format_path
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.kubernetes.merge.fields import ItemKey
    from ruleop.kubernetes.schema import Shape, Unique


Step: TypeAlias = "str | frozenset[tuple[str, JSON]]"
"""The name of a member, or the keys of a list item."""


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """Two items of one list, of which one is desired and the other belongs to someone else."""

    path: str  # of the list, in the syntax of `apply.own`
    desired: str  # the desired item, as a selector in brackets
    other: str  # the other item, likewise
    place: tuple[Step, ...]  # the path of the other item
    field: str
    missing: bool  # one of the items has no value, and both need one


def has_same_unique_value(one: Object, other: Object, unique: Unique, shape: Shape) -> bool:
    """Whether two items have the same value in the unique field, within the same scope."""
    value = one.get(unique.field)
    if not value or not same(value, other.get(unique.field)):
        return False
    if unique.sharing and _are_equal_in(unique.sharing, one, other, shape):
        return False
    return _are_equal_in(unique.within, one, other, shape)


def _are_equal_in(names: tuple[str, ...], one: Object, other: Object, shape: Shape) -> bool:
    return all(same(*((item.get(name) or shape.key_defaults.get(name, "")) for item in (one, other))) for name in names)


def conflicting_field(one: Object, other: Object, shape: Shape) -> Unique | None:
    """The unique field for which the API server rejects the two items in a list of this shape; None if it accepts
    them."""
    for unique in shape.unique:
        if has_same_unique_value(one, other, unique, shape) or (
            unique.required and not (one.get(unique.field) and other.get(unique.field))
        ):
            return unique
    return None


def conflicts(merged: Object, desired: Object, shape: Shape) -> Iterator[MergeConflict]:
    """The pairs of a desired item and an item of someone else that the API server rejects in the merged object."""
    return _find_conflicts(merged, desired, shape, (), "")


def _find_conflicts(
    merged: JSON, desired: JSON, shape: Shape, place: tuple[Step, ...], path: str
) -> Iterator[MergeConflict]:
    if type(merged) is dict and type(desired) is dict and not shape.atomic:
        for name, value in desired.items():
            if type(value) is not dict and type(value) is not list:
                continue
            step = format_path((name,))
            joint = "." if path and not step.startswith("[") else ""
            inner = shape.fields.get(name) or shape.values or UNKNOWN
            yield from _find_conflicts(merged.get(name), value, inner, (*place, name), f"{path}{joint}{step}")
    elif type(merged) is list and type(desired) is list and shape.list_type == "map":
        desired_by_key = items_by_key(desired, shape)
        if shape.unique:
            yield from _list_conflicts(merged, desired_by_key, shape, place, path)
        for key, item in items_by_key(merged, shape).items():
            if key in desired_by_key:
                inner = shape.items or UNKNOWN
                yield from _find_conflicts(
                    item, desired_by_key[key], inner, (*place, _step(key, shape)), path + item_path(key, shape)
                )


def _list_conflicts(
    merged: list[JSON], desired_by_key: dict[ItemKey, JSON], shape: Shape, place: tuple[Step, ...], path: str
) -> Iterator[MergeConflict]:
    found = [(key, item) for key, item in zip(item_keys(merged, shape), merged, strict=True) if key is not None]
    others = [(key, item) for key, item in found if key not in desired_by_key]
    similar = _Similar([item for _, item in others], shape)
    for key, item in found:
        for position in similar.positions(item) if key in desired_by_key else ():
            other_key, other = others[position]
            if (unique := conflicting_field(item, other, shape)) is not None:
                missing = not (item.get(unique.field) and other.get(unique.field))
                desired, other_path = item_path(key, shape), item_path(other_key, shape)
                yield MergeConflict(path, desired, other_path, (*place, _step(other_key, shape)), unique.field, missing)


class _Similar:
    """Items that may conflict with another one. Lists have thousands of items, so they are not compared in pairs."""

    def __init__(self, items: list[Object], shape: Shape) -> None:
        self._all = range(len(items))
        self._by_value = {unique.field: positions_by_value(enumerate(items), unique) for unique in shape.unique}
        self._required = {unique.field for unique in shape.unique if unique.required}

    def positions(self, item: Object) -> Iterable[int]:
        found: set[int] = set()
        for field, by_value in self._by_value.items():
            if item.get(field):
                found.update(by_value.get(canonical(item[field]), ()))
                found.update(by_value.get(b"", ()) if field in self._required else ())
            elif field in self._required:
                return self._all
        return sorted(found)


def positions_by_value(items: Iterable[tuple[int, Object]], unique: Unique) -> dict[bytes, list[int]]:
    """The positions of the items with each value of the unique field; of those without one under b""."""
    found: dict[bytes, list[int]] = {}
    for position, item in items:
        value = item.get(unique.field)
        found.setdefault(canonical(value) if value else b"", []).append(position)
    return found


def _step(key: ItemKey, shape: Shape) -> Step:
    return frozenset(zip(shape.keys, key, strict=True))
