"""Strict equality of JSON values, and fingerprints.

In Python `True == 1 == 1.0`. To the API a boolean, an integer and a float differ, and a port that becomes `80.0` is a
change, so equality here compares types as well. A fingerprint represents a value where the value itself must not be
stored: in the record on a child, which everyone with read access to the child can read."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import orjson

from ruleop.kubernetes.merge.fields import Fields, KeyedFields, Leaf, MapFields, SetFields
from ruleop.kubernetes.merge.lists import item_keys
from ruleop.kubernetes.merge.server_changes import is_omitted_default, is_stored_as
from ruleop.kubernetes.schema.shape import UNKNOWN, Shape

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import JSON


MAX_CACHED_LENGTH = 256  # characters of a text whose fingerprint is cached; others come from a CR
FINGERPRINT_DIGITS = 16  # 64 bits: enough to distinguish the members of one list, and the record stays small


def same(a: JSON, b: JSON) -> bool:
    """Strict JSON equality: the same types and the same values, in any order of names."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is not dict and kind is not list:
        return bool(a == b)
    return a == b and _same_types(a, b)  # Python's comparison is fast, but ignores types


def _same_types(a: JSON, b: JSON) -> bool:
    """Whether the numbers and booleans in two values that are equal in Python also have the same types."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is dict:
        for name, value in a.items():  # noqa: SIM110 - a generator would take twice the time
            if type(value) is not str and not _same_types(value, b[name]):
                return False
        return True
    return all(map(_same_types, a, b)) if kind is list else True


def canonical(value: JSON) -> bytes:
    """The canonical JSON of a value: sorted names, no spaces. 1, 1.0 and true differ."""
    try:
        # A copy: what orjson returns keeps some KiB of its buffer, and the keys of a long list are kept together.
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)[:-1]
    except TypeError:  # orjson rejects integers beyond 64 bits and lone surrogates; templates can produce both
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def fingerprint(value: JSON) -> str:
    if type(value) is str and len(value) <= MAX_CACHED_LENGTH:
        return _digest_of_text(value)
    return _digest(canonical(value))


@lru_cache(maxsize=4096)
def _digest_of_text(text: str) -> str:
    """Cached, because members of sets are nearly always the same few strings (finalizers, policies), and hashing them
    would dominate a merge without changes."""
    return _digest(canonical(text))


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:FINGERPRINT_DIGITS]


# -- in sync -----------------------------------------------------------------------------------------------------------
#
# A fast test for live objects that need no change, which is the result of nearly every merge.
#
# It walks the desired state, the live object and the record in parallel and stops at the first doubt: True is certain,
# False means that `three_way` has to compare in detail. The tests check that the two agree. The test takes a third of
# the time of a merge, and is the cost of a reconcile without changes.


_SCALAR, _LIST, _MAP = Leaf.SCALAR, Leaf.LIST, Leaf.MAP  # looking up a member of an enum is slow


DOUBTED: Final[set[int]] = set()
"""The ids of desired values in the current merge that are not in sync. A merge that is in doubt about an object asks
about each of its members, and would walk down to the same doubt from every level. It only saves time."""


def is_in_sync(live: JSON, desired: JSON, recorded: Fields | None, shape: Shape) -> bool:
    """Whether live has all desired values in the desired order, and the record has exactly their fields. Without regard
    to ignored fields and learned answers."""
    kind = type(desired)
    if kind is dict and type(recorded) is MapFields:
        members, declared, values = recorded.members, shape.fields, shape.values or UNKNOWN
        if type(live) is dict and not shape.atomic and len(members) == len(desired):
            for name, value in desired.items():
                before, fields, inner = live.get(name), members.get(name), type(value)
                if fields is _SCALAR:
                    is_same = value == before and inner is type(before) and inner is not dict and inner is not list
                    if not is_same and (before is not None or not is_omitted_default(value, name, shape)):
                        break
                elif fields is None or not is_in_sync(before, value, fields, declared.get(name) or values):
                    break
            else:
                return True
    elif kind is list and type(recorded) is KeyedFields:
        if type(live) is list and shape.list_type == "map" and _are_items_in_sync(live, desired, recorded, shape):
            return True
    elif kind is list and type(recorded) is SetFields:
        return shape.list_type == "set" and same(live, desired) and _has_fingerprints_of(recorded.fingerprints, desired)
    elif kind is list:
        return recorded is _LIST and shape.list_type == "atomic" and is_stored_as(live, desired, shape)
    elif kind is dict:
        return recorded is _MAP and shape.atomic and is_stored_as(live, desired, shape)
    else:
        return recorded is _SCALAR and same(live, desired)
    DOUBTED.add(id(desired))
    return False


def holds(live: JSON, desired: JSON, shape: Shape) -> bool:
    """Whether live has all desired values in the desired order and spelling, no matter who applied them."""
    kind = type(desired)
    if kind is dict and type(live) is dict and not shape.atomic:
        declared, values = shape.fields, shape.values or UNKNOWN
        for name, value in desired.items():
            before, kind = live.get(name), type(value)
            if kind is dict or kind is list:
                if not holds(before, value, declared.get(name) or values):
                    return False
            elif value is not None and (value != before or kind is not type(before)):
                return False
        return True
    if kind is list and type(live) is list and shape.list_type == "map":
        keys = item_keys(desired, shape)
        if len(live) != len(desired) or None in keys or len(set(keys)) != len(keys) or item_keys(live, shape) != keys:
            return False
        inner = shape.items or UNKNOWN
        return all(holds(before, item, inner) for before, item in zip(live, desired, strict=True))
    return same(live, desired)


def _has_fingerprints_of(fingerprints: frozenset[str], desired: list[JSON]) -> bool:
    """Whether the fingerprints are those of the members, and no member is repeated, which is an error."""
    return len(fingerprints) == len(desired) and fingerprints == frozenset(map(fingerprint, desired))


def _are_items_in_sync(live: list[JSON], desired: list[JSON], recorded: KeyedFields, shape: Shape) -> bool:
    items = recorded.items
    if not len(live) == len(desired) == len(items) or recorded.keys != shape.keys:
        return False
    keys = item_keys(desired, shape)
    if len(set(keys)) != len(items) or item_keys(live, shape) != keys:
        return False
    inner = shape.items or UNKNOWN
    for before, item, key in zip(live, desired, keys, strict=True):
        if key is None or not is_in_sync(before, item, items.get(key), inner):
            return False
    return True
