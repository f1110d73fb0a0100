"""The expressions in a text of kro: `${...}`, found as kro finds them (pkg/graph/parser/cel.go).

Braces are counted, except within double quotes. What has no closing brace is plain text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_START: Final = "${"


@dataclass(frozen=True, slots=True)
class Cel:
    """The text of an expression, without `${` and `}`."""

    text: str


def parts(text: str) -> list[str | Cel]:
    """The text and the expressions of it, in order. A text without expressions is one part."""
    found: list[str | Cel] = []
    plain, position = 0, 0
    while (start := text.find(_START, position)) >= 0:
        end = _end(text, start + len(_START))
        if end is None:
            position = start + 1
            continue
        if start > plain:
            found.append(text[plain:start])
        found.append(Cel(text[start + len(_START) : end]))
        plain = position = end + 1
    if plain < len(text) or not found:
        found.append(text[plain:])
    return found


def only_expression(text: str) -> Cel | None:
    """The expression that is the whole text, if it is one."""
    found = parts(text)
    return found[0] if len(found) == 1 and isinstance(found[0], Cel) else None


def _end(text: str, position: int) -> int | None:
    """Where the closing brace is."""
    depth, is_quoted = 1, False
    while position < len(text):
        character = text[position]
        if is_quoted and character == "\\":
            position += 1
        elif character == '"':
            is_quoted = not is_quoted
        elif not is_quoted and character in "{}":
            depth += 1 if character == "{" else -1
            if depth == 0:
                return position
        position += 1
    return None
