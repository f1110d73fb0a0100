"""Leaves out the objects that the API server quotes in its messages.

A message about an invalid field quotes its value, and that of `patch` or of `spec.template` is a whole object: it would
fill a condition, so that the reason, which follows it, is cut off, and nobody may read there what an object contains.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ruleop.messages import MAX_QUOTED

if TYPE_CHECKING:
    from collections.abc import Iterator

# The value is a string, JSON, or in messages of older servers a literal of Go: core.PodTemplateSpec{...}.
_TYPE: Final = re.compile(r"(?:\[\]|map\[\w{1,50}\]|[&*\w.]{1,50}){0,4}(?=\{)")
_VALUE: Final = re.compile(rf'\b(?:Invalid|Unsupported|Duplicate) value: (?="|\[|{_TYPE.pattern})')
# These are linear in the text: a string that is not closed reaches to the end.
_STRING: Final = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_TOKEN: Final = re.compile(rf"{_STRING.pattern}|[{{}}\[\]]", re.DOTALL)
_PATCH: Final = '"" is invalid: patch: Invalid value: '
"""Of a merge patch whose result is invalid. The server names neither the object nor the field."""


def without_objects(message: str) -> str:
    """The message with short values only: `spec.template: Invalid value: field is immutable`."""
    shown = "".join(_parts(message))
    return shown.removeprefix(_PATCH) if shown != message else message


def _parts(message: str) -> Iterator[str]:
    position = 0
    while (found := _VALUE.search(message, position)) is not None:
        start, end = found.end(), _end(message, found.end())
        yield message[position:start]
        value = message[start:end]
        if value.startswith('"{') or (len(value) > MAX_QUOTED and value[0] != '"'):
            position = end + 2 if message.startswith(": ", end) else end
        else:
            yield value if len(value) <= MAX_QUOTED else f'{value[: MAX_QUOTED - 2]}…"'
            position = end
    yield message[position:]


def _end(message: str, start: int) -> int:
    """The end of the value that begins there."""
    if message[start] == '"':
        string = _STRING.match(message, start)
        assert string is not None
        return string.end()
    depth, type_ = 0, _TYPE.match(message, start)
    for token in _TOKEN.finditer(message, type_.end() if type_ is not None else start):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        if depth <= 0 and token[0][0] != '"':
            return token.end()
    return len(message)
