"""Prints results to stdout and diagnostics to stderr, with colour on a terminal."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from typing import TYPE_CHECKING, Any

from ruleop.authoring.report import Span, Tone, as_document, styled
from ruleop.cli.program import write_to
from ruleop.printable import json_document, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TextIO

    from ruleop.authoring.report import Line


def print_lines(lines: Iterable[Line]) -> None:
    """Prints the result, or a part of it, to stdout."""
    write_to(sys.stdout, styled(lines, colour=has_colour(sys.stdout)))


def print_result(output: str, value: Callable[[], Any], lines: Iterable[Line]) -> None:
    """Prints a value of the report: as a document if the output is `json`, or else the lines."""
    if output == "json":
        print_text(json_document(as_document(value())))
    else:
        print_lines(lines)


def print_text(text: str) -> None:
    """Prints a document for programs to stdout, as it is. It holds no character that a terminal would obey."""
    write_to(sys.stdout, text)


def print_diagnostics(lines: Iterable[Line]) -> None:
    """Prints mistakes, warnings and progress to stderr."""
    write_to(sys.stderr, styled(lines, colour=has_colour(sys.stderr)))


def print_notes(texts: Iterable[object]) -> None:
    print_diagnostics((Span("note: ", Tone.FAINT), Span(str(each))) for each in texts)


def styled_comment(text: str) -> str:
    """A YAML comment in the result."""
    return styled([(Span(f"# {text}", Tone.FAINT),)], colour=has_colour(sys.stdout))


def has_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Picture:
    """Lines at the end of a terminal, painted over."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._painted: list[Line] = []

    def paint(self, lines: Iterable[Line]) -> None:
        """Replaces the picture."""
        self._show((), list(lines))

    def print_above(self, lines: Sequence[Line]) -> None:
        """Prints lines that stay."""
        self._show(lines, self._painted)

    def _show(self, above: Sequence[Line], lines: list[Line]) -> None:
        width, height = shutil.get_terminal_size()
        rows = sum(_rows(line, width) for line in _fitting(self._painted, width, height))
        shown = styled([*above, *_fitting(lines, width, height)], colour=True)
        write_to(self.stream, f"\x1b[{rows}F\x1b[J{shown}" if rows else shown)
        self._painted = lines


def _fitting(lines: Sequence[Line], width: int, height: int) -> Iterator[Line]:
    """The first lines, if the others do not fit: what scrolls out of a terminal cannot be painted over."""
    left = height - 2
    for number, line in enumerate(lines):
        left -= _rows(line, width)
        if left < 0:
            yield (Span(f"... {len(lines) - number} more lines", Tone.FAINT),)
            return
        yield line


def _rows(line: Line, width: int) -> int:
    """The rows that a terminal needs for a line. A wide character does not stand on two of them."""
    rows, used = 1, 0
    for cells in map(_cells, printable("".join(span.text for span in line).rstrip())):
        if used + cells > width:
            rows, used = rows + 1, 0
        used += cells
    return rows


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
