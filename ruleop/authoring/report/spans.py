"""Text for people: lines of spans, and how they are laid out. A span has a tone, not a colour; the terminal chooses
colours, and tests read plain text."""

from __future__ import annotations

import datetime as dt
import textwrap
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import click

from ruleop.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ruleop.errors import Site


WIDTH: Final = 120
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


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


class Span(NamedTuple):
    text: str
    tone: Tone = Tone.PLAIN


Line: TypeAlias = tuple[Span, ...]
Place: TypeAlias = "Callable[[Site], str]"
"""Formats a place in the project's files, relative to the reader's folder."""


def text_of(lines: Iterable[Line]) -> str:
    return "".join("".join(span.text for span in line).rstrip() + "\n" for line in lines)


def styled(lines: Iterable[Line], *, colour: bool) -> str:
    """The text as a terminal prints it, without trailing blanks of columns."""
    return "".join("".join(_styled(span, colour=colour) for span in _stripped(line)) + "\n" for line in lines)


def _styled(span: Span, *, colour: bool) -> str:
    text = printable(span.text)  # also line breaks, which would end a YAML comment
    style = _STYLES.get(span.tone)
    return click.style(text, **style) if colour and style and text.strip() else text


def _stripped(line: Line) -> Line:
    spans = list(line)
    while spans and not spans[-1].text.strip():
        spans.pop()
    return (*spans[:-1], Span(spans[-1].text.rstrip(), spans[-1].tone)) if spans else ()


# -- layout ------------------------------------------------------------------------------------------------------------


def sections(parts: Iterable[tuple[str, Iterable[Line]]]) -> Iterator[Line]:
    """The parts that have lines, each below its title if it has one, with an empty line between two of them."""
    is_first = True
    for title, lines in parts:
        if found := list(lines):
            yield from [] if is_first else [()]
            yield from [(Span(title, Tone.TITLE),)] if title else []
            yield from found
            is_first = False


def wrapped(text: str, indent: str = "", tone: Tone = Tone.PLAIN) -> Iterator[Line]:
    """The text in lines of at most `WIDTH` columns. A word that is longer is not broken."""
    lines = [
        line
        for each in text.splitlines() or [""]
        for line in textwrap.wrap(each, WIDTH - len(indent), break_long_words=False, break_on_hyphens=False) or [""]
    ]
    for number, line in enumerate(lines):
        yield (Span(indent if number == 0 else " " * len(indent)), Span(line, tone))


def fitted(head: Line, rest: Line, indent: str) -> Iterator[Line]:
    """The head and the rest on one line, or the rest below, if they do not fit into `WIDTH`."""
    if sum(len(span.text) for span in (*head, *rest)) + 2 <= WIDTH and not any("\n" in span.text for span in rest):
        yield (*head, Span("  "), *rest)
    elif len(rest) == 1:
        yield head
        yield from wrapped(rest[0].text, indent, rest[0].tone)
    else:
        yield head
        yield (Span(indent), *rest)


def in_columns(rows: Sequence[Line]) -> Iterator[Line]:
    """The rows with cells of one width in each column, without columns that are empty."""
    widths = [max(len(cell.text) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (Span(f"{cell.text:<{width}}", cell.tone) for cell, width in zip(row, widths, strict=True) if width)
        yield tuple(span for cell in cells for span in (Span("  "), cell))[1:]


def listed(names: Sequence[str], limit: int) -> str:
    """The first names, and the number of the others."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return f"{', '.join(names[:limit])}{more}"


def counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def ago(time: str, now: str) -> str:
    """`3 min ago`; the time itself if it is invalid."""
    try:
        seconds = int((dt.datetime.fromisoformat(now) - dt.datetime.fromisoformat(time)).total_seconds())
    except ValueError:
        return time
    unit, word = next((each for each in _UNITS if seconds >= each[0]), (1, "s"))
    return f"{max(0, seconds) // unit} {word} ago"


def in_words(seconds: float) -> str:
    """A duration by its two largest units."""
    rest = round(seconds)
    parts: list[str] = []
    for unit, word in _UNITS:
        amount, rest = divmod(rest, unit)
        if amount or parts:
            parts.append(f"{amount} {word}")
    return " ".join(parts[:2])


# -- mistakes ----------------------------------------------------------------------------------------------------------
# A mistake or warning as lines: a place that editors can open, the message, and the line of the file below it.

MAX_WIDTH: Final = 120


def mistake(place: str, message: str, *, id: str = "", warning: bool = False) -> Iterator[Line]:  # noqa: A002 - the clearest name
    kind, tone = ("warning", Tone.WAIT) if warning else ("error", Tone.BAD)
    yield (Span(f"{place}: ", Tone.TITLE), Span(f"{kind}[{id}]: " if id else f"{kind}: ", tone), Span(message))


def excerpt(file: str, site: Site) -> Iterator[Line]:
    """The line of the file, with a mark below the column."""
    lines_of_file = file.split("\n")
    if not 0 < site.line <= len(lines_of_file):
        return
    text = lines_of_file[site.line - 1].rstrip()
    column = max(site.column - 1, 0)
    if not text.strip() or column > MAX_WIDTH:
        return
    margin = f"{site.line:>5} │ "
    yield (Span(margin, Tone.FAINT), Span(text.expandtabs(4)[:MAX_WIDTH]))
    if site.column:
        yield (Span(f"{'':>5} │ ", Tone.FAINT), Span(" " * len(text[:column].expandtabs(4))), Span("^", Tone.BAD))
