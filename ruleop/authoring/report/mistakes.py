"""A mistake or warning as lines: a place that editors can open, the message, and the line of the file below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.authoring.report.spans import Span, Tone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.authoring.report.spans import Line
    from ruleop.errors import Site

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
