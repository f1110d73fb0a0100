"""Strict equality of JSON values, and fingerprints.

In Python `True == 1 == 1.0`. To the API a boolean, an integer and a float differ, and a port that becomes `80.0` is a
change, so equality here compares types as well. A fingerprint represents a value where the value itself must not be
stored: in the record on a child, which everyone with read access to the child can read."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import TYPE_CHECKING

import orjson

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
