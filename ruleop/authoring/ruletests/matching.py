"""Compares expected data with actual data: a part of the fields is enough.

- A mapping matches if each expected member matches; an empty one matches only an empty one, and null a missing field.
- Items of a list that the API declares as a map are matched by its keys, members of a set in any order. Any other list
  is one value: it has as many items as expected, in the same order, and each may be expected in part.
- With `exact`, there are no other members and items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ruleop.kubernetes.merge import is_stored_as, item_key, member_key
from ruleop.kubernetes.schema import UNKNOWN, Shape
from ruleop.language.templates.tree.state import FieldPath, ItemStep
from ruleop.nearest import nearest
from ruleop.planning.changes import NOTHING, Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import JSON
    from ruleop.language.templates import YamlNode


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One field that is not as expected."""

    path: FieldPath
    expected: Value
    actual: Value
    site: Site  # in the test file
    note: str = ""


def mismatches(
    expected: YamlNode, actual: Value, shape: Shape = UNKNOWN, *, path: FieldPath = (), exact: bool = False
) -> Iterator[Mismatch]:
    """The fields of `actual` that differ from what is expected."""
    value = expected.value
    if value is None:
        if actual is not NOTHING and actual is not None:
            yield Mismatch(path, NOTHING, actual, expected.site, "expected to be missing")
    elif isinstance(value, dict):
        yield from _members(expected, value, actual, shape, path, exact)
    elif isinstance(value, list):
        yield from _items(expected, value, actual, shape, path, exact)
    elif actual is NOTHING or not is_stored_as(actual, value, shape):
        yield Mismatch(path, value, actual, expected.site)


def _members(
    expected: YamlNode, members: Mapping[str, YamlNode], actual: Value, shape: Shape, path: FieldPath, exact: bool
) -> Iterator[Mismatch]:
    if not isinstance(actual, dict) or (not members and actual):
        yield Mismatch(path, expected.data(), actual, expected.site)
        return
    for name, member in members.items():
        inner = shape.fields.get(name) or shape.values or UNKNOWN
        found = actual.get(name, NOTHING)
        if found is NOTHING and not _needs_field(member):
            continue
        if found is NOTHING:
            near = nearest(name, actual.keys() - members.keys())
            note = f"there is no {name}; did you mean {near}?" if near else ""
            yield Mismatch((*path, name), member.data(), NOTHING, expected.key_sites[name], note)
        else:
            yield from mismatches(member, found, inner, path=(*path, name), exact=exact)
    if exact:
        for name in actual:
            if name not in members:
                yield Mismatch((*path, name), NOTHING, actual[name], expected.site)


def _needs_field(expected: YamlNode) -> bool:
    """Whether a missing field is a difference: not if only nulls are expected."""
    value = expected.value
    if isinstance(value, dict) and value:
        return any(map(_needs_field, value.values()))
    return value is not None


def _items(
    expected: YamlNode, items: list[YamlNode], actual: Value, shape: Shape, path: FieldPath, exact: bool
) -> Iterator[Mismatch]:
    if not isinstance(actual, list) or (not items and actual):
        yield Mismatch(path, expected.data(), actual, expected.site)
    elif shape.list_type == "map":
        yield from _keyed(expected, items, actual, shape, path, exact)
    elif shape.list_type == "set":
        known, desired = {member_key(item) for item in actual}, {member_key(item.data()) for item in items}
        for item in items:
            if member_key(item.data()) not in known:
                yield Mismatch((*path, ItemStep(-1)), item.data(), NOTHING, item.site)
        for position, found in enumerate(actual):
            if exact and member_key(found) not in desired:
                yield Mismatch((*path, ItemStep(position)), NOTHING, found, expected.site)
    elif len(items) != len(actual):
        yield Mismatch(
            path,
            expected.data(),
            actual,
            expected.site,
            f"{len(actual)} item{'' if len(actual) == 1 else 's'} instead of {len(items)}",
        )
    else:
        for position, (item, found) in enumerate(zip(items, actual, strict=True)):
            yield from mismatches(item, found, shape.items or UNKNOWN, path=(*path, ItemStep(position)), exact=exact)


def _keyed(
    expected: YamlNode, items: list[YamlNode], actual: list[JSON], shape: Shape, path: FieldPath, exact: bool
) -> Iterator[Mismatch]:
    places = {item_key(item, shape): place for place, item in reversed([*enumerate(actual)])}
    seen = set()
    for item in items:
        data = item.data()
        key = item_key(data, shape)
        if key is None:
            place = next(
                (place for place, each in enumerate(actual) if not any(mismatches(item, each, shape.items or UNKNOWN))),
                None,
            )
            if place is None:
                keys = " and ".join(shape.keys)
                note = f"no item has these fields; items of this list are identified by {keys}"
                yield Mismatch((*path, ItemStep(-1)), data, NOTHING, item.site, note)
            else:
                seen.add(place)
        elif key not in places:
            yield Mismatch((*path, _item(-1, data, shape)), data, NOTHING, item.site)
        else:
            place = places[key]
            seen.add(place)
            yield from mismatches(
                item, actual[place], shape.items or UNKNOWN, path=(*path, _item(place, data, shape)), exact=exact
            )
    for place, found in enumerate(actual):
        if exact and place not in seen:
            yield Mismatch((*path, _item(place, found, shape)), NOTHING, found, expected.site)


def _item(place: int, data: JSON, shape: Shape) -> ItemStep:
    """The item with the keys that its data has; keys by default are left out."""
    keys = tuple((name, data[name]) for name in shape.keys if isinstance(data, dict) and name in data)
    return ItemStep(place, keys)
