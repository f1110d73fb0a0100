"""Prints results to stdout and diagnostics to stderr, with colour on a terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from ruleop.authoring.report.spans import Span, Tone
from ruleop.cli.program import write_to
from ruleop.core.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TextIO

    from ruleop.authoring.report.spans import Line

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


def print_lines(lines: Iterable[Line]) -> None:
    """Prints the result, or a part of it, to stdout."""
    write_to(sys.stdout, styled(lines, colour=has_colour(sys.stdout)))


def print_text(text: str) -> None:
    """Prints a document for programs to stdout, as it is. It holds no character that a terminal would obey."""
    write_to(sys.stdout, text)


def print_diagnostics(lines: Iterable[Line]) -> None:
    """Prints mistakes, warnings and progress to stderr."""
    write_to(sys.stderr, styled(lines, colour=has_colour(sys.stderr)))


def styled_comment(text: str) -> str:
    """A YAML comment in the result."""
    return styled([(Span(f"# {text}", Tone.FAINT),)], colour=has_colour(sys.stdout))


def has_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def styled(lines: Iterable[Line], *, colour: bool) -> str:
    return "".join("".join(_span(span, colour=colour) for span in _stripped(line)) + "\n" for line in lines)


def _span(span: Span, *, colour: bool) -> str:
    text = printable(span.text)  # also line breaks, which would end a YAML comment
    style = _STYLES.get(span.tone)
    return click.style(text, **style) if colour and style and text.strip() else text


def _stripped(line: Line) -> Line:
    """The line without trailing blanks of its columns."""
    spans = list(line)
    while spans and not spans[-1].text.strip():
        spans.pop()
    return (*spans[:-1], Span(spans[-1].text.rstrip(), spans[-1].tone)) if spans else ()
