"""Seeing at a glance that there is nothing to do.

Nearly every merge finds live just as we left it. This walks wanted, live and record side by side and gives up at the first doubt: True is
certain, False only says that `three_way` has to look closely. It decides nothing that is not decided there; the tests hold the two
together. It takes a third of the time, and it is what a reconcile costs while nothing happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.merge.equality import fingerprint, same
from ruleop.merge.fields import Fields, KeyedFields, Leaf, MapFields, SetFields
from ruleop.merge.lists import item_keys
from ruleop.merge.whole import left_out, stands_for
from ruleop.schema.shape import UNKNOWN, Shape

if TYPE_CHECKING:
    from ruleop.kinds import JSON, Object

_SCALAR, _LIST, _MAP = Leaf.SCALAR, Leaf.LIST, Leaf.MAP  # looking up a member of an enum is slow


def at_rest(live: JSON, wanted: JSON, recorded: Fields | None, shape: Shape) -> bool:
    """Whether live holds everything wanted, in our order, and the record says just that; nothing ignored or learned considered."""
    kind = type(wanted)
    if kind is dict:
        if type(recorded) is MapFields:
            return type(live) is dict and not shape.atomic and _members_at_rest(live, wanted, recorded, shape)
        return recorded is _MAP and shape.atomic and stands_for(live, wanted, shape)
    if kind is not list:
        return recorded is _SCALAR and same(live, wanted)
    if type(recorded) is KeyedFields:
        return type(live) is list and shape.list_type == "map" and _items_at_rest(live, wanted, recorded, shape)
    if type(recorded) is SetFields:
        return shape.list_type == "set" and same(live, wanted) and _is_set_of(recorded.fingerprints, wanted)
    return recorded is _LIST and shape.list_type == "atomic" and stands_for(live, wanted, shape)


def holds(live: JSON, wanted: JSON, shape: Shape) -> bool:
    """Whether live holds everything wanted, in our order and spelling, whoever applied it."""
    kind = type(wanted)
    if kind is dict and type(live) is dict and not shape.atomic:
        declared, values = shape.fields, shape.values or UNKNOWN
        for name, value in wanted.items():
            before, kind = live.get(name), type(value)
            if kind is dict or kind is list:
                if not holds(before, value, declared.get(name) or values):
                    return False
            elif value is not None and (value != before or kind is not type(before)):
                return False
        return True
    if kind is list and type(live) is list and shape.list_type == "map":
        keys = item_keys(wanted, shape)
        if len(live) != len(wanted) or None in keys or len(set(keys)) != len(keys) or item_keys(live, shape) != keys:
            return False
        inner = shape.items or UNKNOWN
        return all(holds(before, item, inner) for before, item in zip(live, wanted, strict=True))
    return same(live, wanted)


def _is_set_of(fingerprints: frozenset[str], wanted: list[JSON]) -> bool:
    """Also whether no member is wanted twice, which is refused."""
    return len(fingerprints) == len(wanted) and fingerprints == frozenset(map(fingerprint, wanted))


def _members_at_rest(live: Object, wanted: Object, recorded: MapFields, shape: Shape) -> bool:
    members, declared, values = recorded.members, shape.fields, shape.values or UNKNOWN
    if len(members) != len(wanted):
        return False
    for name, value in wanted.items():
        fields = members.get(name)
        if fields is _SCALAR:
            before, kind = live.get(name), type(value)
            if value != before or kind is not type(before) or kind is dict or kind is list:
                if before is None and left_out(value, name, shape):
                    continue
                return False
        elif fields is None or not at_rest(live.get(name), value, fields, declared.get(name) or values):
            return False
    return True


def _items_at_rest(live: list[JSON], wanted: list[JSON], recorded: KeyedFields, shape: Shape) -> bool:
    items = recorded.items
    if not len(live) == len(wanted) == len(items) or recorded.keys != shape.keys:
        return False
    keys = item_keys(wanted, shape)
    if len(set(keys)) != len(items) or item_keys(live, shape) != keys:
        return False
    inner = shape.items or UNKNOWN
    return all(
        key is not None and at_rest(before, item, items.get(key), inner) for before, item, key in zip(live, wanted, keys, strict=True)
    )
