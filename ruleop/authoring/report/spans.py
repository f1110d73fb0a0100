"""Text for people: lines of spans. A span has a tone, not a colour; the terminal chooses colours, and tests read plain
text."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ruleop.errors import Site


class Tone(Enum):
    """The meaning of a span, which a terminal shows as a colour."""

    PLAIN = "plain"
    TITLE = "title"
    ADD = "add"
    CHANGE = "change"
    REMOVE = "remove"
    GOOD = "good"
    WAIT = "wait"
    BAD = "bad"
    FAINT = "faint"


class Span(NamedTuple):
    text: str
    tone: Tone = Tone.PLAIN


Line: TypeAlias = tuple[Span, ...]
Place: TypeAlias = "Callable[[Site], str]"
"""Formats a place in the project's files, relative to the reader's folder."""


def text_of(lines: Iterable[Line]) -> str:
    return "".join("".join(span.text for span in line).rstrip() + "\n" for line in lines)
