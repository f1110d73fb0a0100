"""Where words go: the answer to stdout, all else to stderr; in colour on a terminal, plain in a pipe."""

from __future__ import annotations

import os
import sys
import unicodedata
from typing import TYPE_CHECKING, Any, Final

import click

from ruleop.cli.program import put
from ruleop.report.plan_text import Span, Tone

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TextIO

    from ruleop.report.plan_text import Line

_UNSAFE: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
_STYLES: Final[dict[Tone, dict[str, Any]]] = {
    Tone.TITLE: {"bold": True},
    Tone.ADD: {"fg": "green"},
    Tone.CHANGE: {"fg": "yellow"},
    Tone.REMOVE: {"fg": "red"},
    Tone.GOOD: {"fg": "green"},
    Tone.WAIT: {"fg": "yellow"},
    Tone.BAD: {"fg": "red", "bold": True},
    Tone.FAINT: {"dim": True},
}


def say(lines: Iterable[Line]) -> None:
    """The answer, or a part of it."""
    put(sys.stdout, painted(lines, colour=has_colour(sys.stdout)))


def write(text: str) -> None:
    """The answer as it is: a document for a program."""
    put(sys.stdout, text)


def remark(lines: Iterable[Line]) -> None:
    """What is not the answer: mistakes, warnings, progress."""
    put(sys.stderr, painted(lines, colour=has_colour(sys.stderr)))


def comment(text: str) -> str:
    """A comment of a document that is the answer."""
    return painted([(Span(f"# {text}", Tone.FAINT),)], colour=has_colour(sys.stdout))


def has_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(lines: Iterable[Line], *, colour: bool) -> str:
    return "".join("".join(_span(span, colour=colour) for span in _stripped(line)) + "\n" for line in lines)


def _span(span: Span, *, colour: bool) -> str:
    text = _harmless(span.text)
    style = _STYLES.get(span.tone)
    return click.style(text, **style) if colour and style and text.strip() else text


def _stripped(line: Line) -> Line:
    """Without blanks at the end, which columns leave."""
    spans = list(line)
    while spans and not spans[-1].text.strip():
        spans.pop()
    return (*spans[:-1], Span(spans[-1].text.rstrip(), spans[-1].tone)) if spans else ()


def _harmless(text: str) -> str:
    """A name or a value may hold what a terminal would obey, or what YAML takes for the end of a comment."""
    if text.isprintable():
        return text
    return "".join(f"\\x{ord(sign):02x}" if unicodedata.category(sign) in _UNSAFE and sign != "\t" else sign for sign in text)
