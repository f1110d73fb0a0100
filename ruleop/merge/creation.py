"""The fields of something that does not exist yet: an object, or a part of one. All its containers are marked as created by us."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.merge.equality import fingerprint
from ruleop.merge.fields import Fields, FieldSet, KeyedFields, Leaf, MapFields, SetFields
from ruleop.merge.ignored import Ignored, ignored_at
from ruleop.merge.lists import MergeError, item_path, wanted_items, wanted_members
from ruleop.schema.shape import UNKNOWN, Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ruleop.kinds import JSON, Object
    from ruleop.merge.path import Path


def create_fields(wanted: Object, shape: Shape, *, ignore: Sequence[Path] = ()) -> FieldSet:
    """What we apply by creating `wanted`. Ignored fields are created with the rest, and are not ours from then on."""
    members = _members(wanted, shape, ignored_at(ignore))
    return FieldSet(MapFields(members, created=False))  # the object itself is created and deleted, never merged away


def fields_of_new(value: JSON, shape: Shape, ignored: Ignored | None) -> Fields:
    """The fields of one value that we add, whatever it is."""
    if type(value) is dict:
        return Leaf.MAP if shape.atomic else MapFields(_members(value, shape, ignored), created=True)
    if type(value) is not list:
        return Leaf.SCALAR
    if shape.list_type == "atomic":
        return Leaf.LIST
    if shape.list_type == "set":
        return SetFields(frozenset(map(fingerprint, wanted_members(value).values())), created=True)
    return KeyedFields(shape.keys, _items(value, shape, ignored), created=True)


def _members(value: Object, shape: Shape, ignored: Ignored | None) -> dict[str, Fields]:
    members: dict[str, Fields] = {}
    for name, member in value.items():
        inner = ignored.names.get(name) if ignored else None
        if member is None or (inner and inner.whole):
            continue
        try:
            members[name] = fields_of_new(member, shape.fields.get(name) or shape.values or UNKNOWN, inner)
        except MergeError as error:
            raise error.within(name) from None
    return members


def _items(items: list[JSON], shape: Shape, ignored: Ignored | None) -> dict[tuple[JSON, ...], Fields]:
    found: dict[tuple[JSON, ...], Fields] = {}
    for key, item in wanted_items(items, shape).items():
        inner = ignored.item(item, shape) if ignored else None
        if inner and inner.whole:
            continue
        try:
            found[key] = fields_of_new(item, shape.items or UNKNOWN, inner)
        except MergeError as error:
            raise error.within(item_path(key, shape)) from None
    return found
