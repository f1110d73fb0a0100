"""Removals that server-side apply cannot make.

Server-side apply removes fields that its manager applied before. An item that others added, or whose key was changed by
hand, is not one of them; removing it needs a merge patch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.kubernetes.merge.equality import fingerprint
from ruleop.kubernetes.merge.fields import Fields, KeyedFields, MapFields, SetFields
from ruleop.kubernetes.merge.lists import item_keys
from ruleop.kubernetes.schema.shape import UNKNOWN

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import JSON
    from ruleop.kubernetes.merge.fields import ItemKey
    from ruleop.kubernetes.schema.shape import Shape


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
