"""Prints results to stdout and diagnostics to stderr, with colour on a terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ruleop.authoring.report.spans import Span, Tone, styled
from ruleop.cli.program import write_to

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TextIO

    from ruleop.authoring.report.spans import Line


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
