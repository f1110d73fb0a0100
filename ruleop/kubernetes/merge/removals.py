"""Removals that server-side apply cannot make.

Server-side apply removes fields that its manager applied before. An item that others added, or whose key was changed by
hand, is not one of them; removing it needs a merge patch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.kubernetes.merge.equality import fingerprint
from ruleop.kubernetes.merge.fields import Fields, KeyedFields, Leaf, MapFields, SetFields
from ruleop.kubernetes.merge.lists import item_key, item_keys
from ruleop.kubernetes.schema import UNKNOWN, Shape

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import JSON
    from ruleop.kubernetes.merge.fields import ItemKey
    from ruleop.kubernetes.merge.ignored import Ignored


# -- field removal ---------------------------------------------------------------------------------------------------
#
# Removes fields that ruleop applied before and that are no longer desired.
#
# - A scalar, an atomic list and an atomic map are removed. - An open map (labels, a ConfigMap's data, anything
# undeclared) loses the applied keys. If ruleop created the map, it is removed when it becomes empty. - A declared
# struct or a list item that ruleop created is removed as a whole, with the fields that the server and others added.
# Defaults of the server cannot be distinguished from fields of others, and a container without an image is invalid: a
# partial item would make every further write fail. - Structs and items that existed before lose the applied fields and
# are kept; an item keeps its keys. - Lists with keys and sets lose the applied items. If ruleop created the list, it is
# removed when it becomes empty. - If the list type has changed since the fields were recorded, or a map became atomic
# or granular, the record does not identify the applied fields any more, and everything is kept.


REMOVED: Final = object()


def without_fields(
    live: JSON, fields: Fields, shape: Shape, ignored: Ignored | None, *, keep: tuple[str, ...] = ()
) -> JSON:
    """`live` without `fields`: `live` itself if nothing was removed, `REMOVED` if the value is removed as a whole.

    `keep` names the members that identify an item, which are never removed.
    """
    if isinstance(fields, Leaf):
        return live if _became_granular(live, fields, shape) else REMOVED
    if isinstance(fields, MapFields):
        if type(live) is not dict:
            return live  # someone else replaced the map
        if fields.created and shape.fields and not keep:
            return REMOVED
        return _without_members(live, fields, shape, ignored, keep)
    if type(live) is not list:
        return live
    if isinstance(fields, KeyedFields):
        if shape.list_type != "map" or shape.keys != fields.keys:
            return live
        left = [kept for item in live if (kept := _without_item_fields(item, fields, shape, ignored)) is not REMOVED]
    else:
        if shape.list_type != "set":
            return live
        left = [item for item in live if fingerprint(item) not in fields.fingerprints]
    if not left and fields.created:
        return REMOVED
    return live if len(left) == len(live) and all(a is b for a, b in zip(left, live, strict=True)) else left


def without_item(item: JSON, fields: Fields, shape: Shape, ignored: Ignored | None) -> JSON:
    """One item of a list of this shape without `fields`."""
    if isinstance(fields, Leaf) or (isinstance(fields, MapFields) and fields.created):
        return REMOVED
    return without_fields(item, fields, shape.items or UNKNOWN, ignored, keep=shape.keys)


def _without_item_fields(item: JSON, fields: KeyedFields, shape: Shape, ignored: Ignored | None) -> JSON:
    key = item_key(item, shape)
    applied = fields.items.get(key) if key is not None else None
    inner = ignored.item(item, shape) if ignored else None
    if applied is None or (inner and inner.whole):
        return item
    return without_item(item, applied, shape, inner)


def _without_members(
    live: dict[str, JSON], fields: MapFields, shape: Shape, ignored: Ignored | None, keep: tuple[str, ...]
) -> JSON:
    left = dict(live)
    for name, inner in fields.members.items():
        inner_ignored = ignored.names.get(name) if ignored else None
        if name not in live or name in keep or (inner_ignored and inner_ignored.whole):
            continue
        value = without_fields(live[name], inner, shape.fields.get(name) or shape.values or UNKNOWN, inner_ignored)
        if value is REMOVED:
            del left[name]
        else:
            left[name] = value
    if fields.created and not left:
        return REMOVED
    return live if len(left) == len(live) and all(left[name] is live[name] for name in left) else left


def _became_granular(live: JSON, fields: Leaf, shape: Shape) -> bool:
    """Whether a value that was applied as a whole is now a container in which others may own fields."""
    if fields is Leaf.LIST:
        return type(live) is list and shape.list_type != "atomic"
    return fields is Leaf.MAP and type(live) is dict and not shape.atomic


# -- removals --------------------------------------------------------------------------------------------------------


def removes_items_of_others(live: JSON, merged: JSON, recorded: Fields | None, shape: Shape) -> bool:
    """Whether a live list item, or member of a set, is missing in `merged` although it is not recorded."""
    if merged is live:
        return False
    if type(live) is dict and type(merged) is dict and not shape.atomic:
        members = recorded.members if type(recorded) is MapFields else {}
        return any(
            removes_items_of_others(
                value, merged.get(name), members.get(name), shape.fields.get(name) or shape.values or UNKNOWN
            )
            for name, value in live.items()
            if type(value) in (dict, list)
        )
    if type(live) is not list or shape.list_type == "atomic":
        return False
    left = merged if type(merged) is list else []
    if shape.list_type == "set":
        fingerprints = recorded.fingerprints if type(recorded) is SetFields else frozenset()
        return bool({*map(fingerprint, live)} - {*map(fingerprint, left)} - fingerprints)
    items: dict[ItemKey, Fields] = dict(recorded.items) if type(recorded) is KeyedFields else {}
    after = dict(zip(item_keys(left, shape), left, strict=True))
    inner = shape.items or UNKNOWN
    for key, item in zip(item_keys(live, shape), live, strict=True):
        if key is None or key not in after:
            if key is None or key not in items:
                return True
        elif removes_items_of_others(item, after[key], items.get(key), inner):
            return True
    return False
