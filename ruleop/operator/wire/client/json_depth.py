"""JSON that has more values than fit into memory, or is nested deeper than orjson allows: it reads 1024 levels and
writes 254.

The API server takes ten thousand, and one such object must not prevent the reading of all others. So a response that
cannot be parsed is split into its objects, and every value that was read can be written. Nothing here recurses.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

# The next bracket outside of strings. A string that does not end reaches to the end of the text, so nothing is read
# twice.
_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z))*+([\[\]{}])?', re.DOTALL)
FEW_BYTES, MAX_VALUES = 1 << 22, 1 << 21  # shorter text is not counted; a page of 500 objects has some 200,000 values
MAX_BRACKETS = 1 << 21  # in a text that is folded, which takes half a second; a page of 500 objects has some 200,000


class TooManyValuesError(ValueError):
    """The JSON has more values than a response should have."""


def parse_json(data: bytes) -> Any:
    """The value of a JSON text. Raises JSONDecodeError, and TooManyValuesError if it would take far more memory than
    its bytes: an empty mapping is 2 bytes, and 64 in memory."""
    if len(data) > FEW_BYTES and sum(map(data.count, (b",", b"{", b"["))) > MAX_VALUES:
        raise TooManyValuesError(f"it has more than {MAX_VALUES:,} values")
    return orjson.loads(data)


def fold(data: bytes, depth: int) -> tuple[bytes, list[bytes]]:
    """The text with a number in place of each mapping and list that is nested deeper, and these by number.

    Text with more than `MAX_BRACKETS` is returned as it is.
    """
    pieces: list[bytes] = []
    inner: list[bytes] = []
    level = start = at = 0
    for number, found in enumerate(_BRACKET.finditer(data)):
        end = found.end(1)
        if end < 0:
            break
        if number >= MAX_BRACKETS:
            return data, []
        if data[end - 1] in b"[{":
            if level == depth:
                start = end - 1
            level += 1
        else:
            level -= 1
            if level == depth:
                pieces += [data[at:start], b"%d" % len(inner)]
                at = end
                inner.append(data[start:at])
    return b"".join([*pieces, data[at:]]), inner


def dump_json(value: Any) -> bytes:
    """The value as JSON, of any depth."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return _dump_deep(value)


def _dump_deep(value: Any) -> bytes:
    out = bytearray()
    stack: list[tuple[bytes, Any]] = [(b"", value)]  # bytes before a value, and the value or _END
    while stack:
        before, item = stack.pop()
        out += before
        if isinstance(item, dict) and item:
            parts = [
                ((b"," if number else b"{") + orjson.dumps(key) + b":", each)
                for number, (key, each) in enumerate(item.items())
            ]
            stack += [(b"}", _END), *reversed(parts)]
        elif isinstance(item, list) and item:
            parts = [(b"," if number else b"[", each) for number, each in enumerate(item)]
            stack += [(b"]", _END), *reversed(parts)]
        elif item is not _END:
            out += orjson.dumps(item)
    return bytes(out)


_END = object()
