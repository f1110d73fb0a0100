"""The fields of an object, or of a part of one, that does not exist yet. All containers are marked as created by
ruleop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.kubernetes.merge.equality import fingerprint
from ruleop.kubernetes.merge.fields import Fields, FieldSet, KeyedFields, Leaf, MapFields, SetFields
from ruleop.kubernetes.merge.ignored import Ignored, ignored_at
from ruleop.kubernetes.merge.lists import MergeError, desired_items, desired_members, item_path
from ruleop.kubernetes.schema.shape import UNKNOWN, Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.kubernetes.merge.path import Path


def create_fields(desired: Object, shape: Shape, *, ignore: Sequence[Path] = ()) -> FieldSet:
    """The fields that ruleop applies by creating `desired`. Ignored fields are created as well, but not recorded as
    applied."""
    members = _member_fields(desired, shape, ignored_at(ignore))
    return FieldSet(MapFields(members, created=False))  # the object itself is created and deleted, never merged away


def fields_of_new(value: JSON, shape: Shape, ignored: Ignored | None) -> Fields:
    """The fields of one value that is added."""
    if type(value) is dict:
        return Leaf.MAP if shape.atomic else MapFields(_member_fields(value, shape, ignored), created=True)
    if type(value) is not list:
        return Leaf.SCALAR
    if shape.list_type == "atomic":
        return Leaf.LIST
    if shape.list_type == "set":
        return SetFields(frozenset(map(fingerprint, desired_members(value).values())), created=True)
    return KeyedFields(shape.keys, _item_fields(value, shape, ignored), created=True)


def _member_fields(value: Object, shape: Shape, ignored: Ignored | None) -> dict[str, Fields]:
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


def _item_fields(items: list[JSON], shape: Shape, ignored: Ignored | None) -> dict[tuple[JSON, ...], Fields]:
    found: dict[tuple[JSON, ...], Fields] = {}
    for key, item in desired_items(items, shape).items():
        inner = ignored.item(item, shape) if ignored else None
        if inner and inner.whole:
            continue
        try:
            found[key] = fields_of_new(item, shape.items or UNKNOWN, inner)
        except MergeError as error:
            raise error.within(item_path(key, shape)) from None
    return found
