"""JSON documents as Go's decoder reads them, and its messages about invalid ones."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DEPTH: Final = 200
"""Levels of a body. The real server takes 10,000, which no object needs; here, 250 is what can be encoded again."""
_STRING_OR_BRACKET: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_PLACES: Final = {
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Expecting value": "looking for beginning of value",
    "Expecting ':' delimiter": "after object key",
    "Expecting ',' delimiter": "after object key:value pair",
    "Extra data": "after top-level value",
}


def loads(data: bytes) -> Any:
    """The value of a JSON document. Raises ValueError."""
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH and _too_deep(data):
        raise ValueError("exceeded max depth")
    return orjson.loads(data)


def _too_deep(data: bytes) -> str:
    """The bracket that opens one level too many; empty if there is none."""
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(data):
        bracket = match[0]
        if bracket in b"{[":
            depth += 1
            if depth > MAX_DEPTH:
                return bracket.decode()
        elif bracket in b"}]":
            depth -= 1
    return ""


def problem_of(data: bytes) -> str:
    text = data.decode(errors="replace")
    if bracket := _too_deep(data):
        return f"invalid character {bracket!r} exceeded max depth"
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if error.pos >= len(text):
            return "unexpected end of JSON input"
        return f"invalid character {text[error.pos]!r} {_PLACES.get(error.msg, 'in string literal')}"
    return "invalid character"


def may_repeat(data: bytes, obj: Any) -> bool:
    """Whether a document may have two fields of the same name in one object. Quick, and never wrong about a no."""
    if len(orjson.dumps(obj)) == len(data):
        return False
    return data.count(b'":') + data.count(b'" :') > _count(obj)


def _count(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(_count(each) for each in value.values() if isinstance(each, dict | list))
    if isinstance(value, list):
        return sum(_count(each) for each in value if isinstance(each, dict | list))
    return 0


class _Pairs(list[tuple[str, Any]]):
    """An object with its fields as they are written."""


def duplicates(data: bytes) -> list[str]:
    """The paths of fields that an object has twice."""
    return list(dict.fromkeys(_repeated(json.loads(data, object_pairs_hook=_Pairs), "")))


def _repeated(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, each in value:
            below = f"{path}.{name}" if path else name
            if name in seen:
                yield below
            seen.add(name)
            yield from _repeated(each, below)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _repeated(each, f"{path}[{index}]")
