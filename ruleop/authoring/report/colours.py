"""The colours of tones on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from ruleop.authoring.report.spans import Span, Tone
from ruleop.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

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
