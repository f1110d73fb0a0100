"""The syntax of field paths in `apply.ignore` and `apply.own`.

    spec.replicas
    metadata.annotations['example.com/a']
    spec.template.spec.containers[name=app].image
    spec.ports[port=53,protocol=UDP].nodePort

A name that contains dots, brackets, quotes, spaces, commas or `=` is written in brackets and quotes. List items are
selected by their keys, never by position: positions change when someone else adds an item. Within quotes, a backslash
escapes the next character.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from ruleop.errors import RuleopError
from ruleop.values import dataclass

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import JSON

_BARE = re.compile(r"[^.\[\]'\"\s=,]+")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class PathError(RuleopError):
    """A path with a syntax error. `offset` counts characters from 0."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(f"{message} (at character {offset + 1})")
        self.message = message
        self.offset = offset


@dataclass(frozen=True, slots=True)
class PathSelector:
    """Selects the items of a list whose fields have these values, compared as text: `port=80` matches 80 and "80"."""

    pairs: tuple[tuple[str, str], ...]


Segment: TypeAlias = str | PathSelector


@dataclass(frozen=True, slots=True)
class Path:
    """A field path. Paths are equal if their segments are; each prints as it was written."""

    segments: tuple[Segment, ...]
    text: str = field(compare=False)

    def __str__(self) -> str:
        return self.text


def parse_path(text: str) -> Path:
    """Parses a path. Raises PathError with the offset of the mistake."""
    segments: list[Segment] = []
    offset = 0
    while offset < len(text):
        if text[offset] == "[":
            segment, offset = _parse_bracket(text, offset + 1)
        else:
            if segments:
                if text[offset] != ".":
                    raise PathError("expected `.` or `[`", offset)
                offset += 1
            segment, offset = _parse_name(text, offset)
        segments.append(segment)
    if not segments:
        raise PathError("the path is empty; name a field, such as spec.replicas", 0)
    if isinstance(segments[0], PathSelector):
        raise PathError("a path must start with the name of a field", 0)
    return Path(tuple(segments), text)


def scalar_text(value: JSON) -> str:
    """A value as it is written in a selector: `true`, `80`, `app`."""
    if type(value) is bool:
        return "true" if value else "false"
    return str(value)


def _parse_name(text: str, offset: int) -> tuple[str, int]:
    match = _BARE.match(text, offset)
    if match is None:
        raise PathError("expected the name of a field; names with special characters are written ['like this']", offset)
    return match.group(), match.end()


def _parse_bracket(text: str, offset: int) -> tuple[Segment, int]:
    """Parses what follows `[`: a quoted name, or the keys of an item."""
    word, quoted, end = _parse_word(text, offset)
    if text[end : end + 1] == "]":
        if quoted:
            return word, end + 1
        if word.isdecimal():
            raise PathError("an item is selected by its keys, not by its position: [name=app]", offset)
        raise PathError("brackets must contain a quoted name, ['a/b'], or the keys of an item, [name=app]", offset)
    pairs: dict[str, str] = {}
    while True:
        if text[end : end + 1] != "=":
            raise PathError("expected `=` and a value", end)
        if word in pairs:
            raise PathError(f"duplicate key {word}", offset)
        pairs[word], _, end = _parse_word(text, end + 1)
        closing = text[end : end + 1]
        if closing == "]":
            return PathSelector(tuple(pairs.items())), end + 1
        if closing != ",":
            raise PathError("expected `,` or `]`", end)
        offset = end + 1
        word, _, end = _parse_word(text, offset)


def _parse_word(text: str, offset: int) -> tuple[str, bool, int]:
    """Parses a key or a value, in quotes or bare, with spaces around it. A bare value may contain dots:
    `[host=a.example.com]`."""
    while text[offset : offset + 1] == " ":
        offset += 1
    if text[offset : offset + 1] in ("'", '"'):
        match = _QUOTED.match(text, offset)
        if match is None:
            raise PathError("this quote is not closed", offset)
        word, quoted, end = _ESCAPE.sub(r"\1", match.group(1) or match.group(2) or ""), True, match.end()
    else:
        end = offset
        while end < len(text) and text[end] not in " ,=]['\"":
            end += 1
        word, quoted = text[offset:end], False
        if not word:
            raise PathError("expected a name or a value", offset)
    while text[end : end + 1] == " ":
        end += 1
    return word, quoted, end
