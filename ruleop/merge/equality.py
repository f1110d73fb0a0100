"""When two JSON values are the same, and how a value is named without keeping it.

Python says `True == 1 == 1.0`; the API says that a boolean, an integer and a float are three things, and a port that turned into `80.0`
is a change. So equality here compares types as well. A fingerprint stands for a value where the value itself must not be kept: in the
record on a child, which anybody who may read the child's metadata can read.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from ruleop.kinds import JSON

FINGERPRINT_DIGITS = 16  # 64 bits: members of one list are told apart, and the record stays small


def same(a: JSON, b: JSON) -> bool:
    """Strict JSON equality: the same types, the same values, whatever the order of names."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is not dict and kind is not list:
        return bool(a == b)
    return a == b and _same_kinds(a, b)  # Python's own comparison is fast, and more lenient than we are


def _same_kinds(a: JSON, b: JSON) -> bool:
    """Of values that Python calls equal: whether the numbers and booleans in them are of one kind."""
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is dict:
        return all(type(value) is str or _same_kinds(value, b[name]) for name, value in a.items())
    return all(map(_same_kinds, a, b)) if kind is list else True


def canonical(value: JSON) -> bytes:
    """The one text of a value: names sorted, no blanks. 1, 1.0 and true have different texts."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # orjson refuses integers beyond 64 bits and lone surrogates; both can come out of a template
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def fingerprint(value: JSON) -> str:
    return _digest_of_text(value) if type(value) is str else _digest(canonical(value))


@lru_cache(maxsize=4096)
def _digest_of_text(text: str) -> str:
    """Members of sets are nearly always the same few strings (finalizers, policies), and hashing them would dominate an idle merge."""
    return _digest(canonical(text))


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:FINGERPRINT_DIGITS]
