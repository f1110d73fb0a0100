"""The graph of rules as SVG, in the colours of the reader's browser: light or dark."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final
from unicodedata import east_asian_width

from ruleop.authoring.generate.graph.graph_layout import laid_out
from ruleop.authoring.generate.graph.rule_graph import STATUS
from ruleop.core.printable import printable_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.authoring.generate.graph.graph_layout import Box, Layout, Point
    from ruleop.authoring.generate.graph.rule_graph import Graph, Node, Why

_MARGIN: Final = 24
_PADDING: Final = 12
_ARROW: Final = 7  # length
_BEHIND: Final = 4  # how far the second box of a child with many objects stands out
_TITLE, _LINE = 22, 16  # heights
_CHARACTER: Final = 6.7  # width of one of 11 px; a title's is _WIDER of it
_WIDER: Final = 13 / 11
_LEGEND: Final[dict[Why, str]] = {
    "reads": "written after what it reads",
    "waits": "created when that is ready",
    "observes": "reads an object of others",
    "reports": "is part of the status",
}
_STYLE: Final = """\
svg { --page: #fff; --box: #f6f8fa; --line: #8c959f; --text: #1f2328; --faint: #59636e; --cr: #def; --ok: #dfe }
@media (prefers-color-scheme: dark) {
svg { --page: #0d1117; --box: #161b22; --line: #6e7681; --text: #eee; --faint: #9198a1; --cr: #0c2d6b; --ok: #04260f }
}
text { font: 11px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: var(--faint) }
.title { font-size: 13px; font-weight: 600; fill: var(--text) }
rect { fill: var(--box); stroke: var(--line) }
.page { fill: var(--page); stroke: none }
.resource rect { fill: var(--cr) }
.status rect { fill: var(--ok) }
.observed rect { fill: var(--page) }
.conditional rect { stroke-dasharray: 5 4 }
path { fill: none; stroke: var(--line); stroke-width: 1.3 }
.waits { stroke-width: 2.4 }
.observes { stroke-dasharray: 6 4 }
.reports { stroke-dasharray: 1.5 4 }
#arrow path { fill: var(--line); stroke: none }
"""
_MARKER: Final = (
    '<marker id="arrow" viewBox="0 0 8 8" refX="1" refY="4" markerWidth="8" markerHeight="8" orient="auto"'
    ' markerUnits="userSpaceOnUse"><path d="M0 0L8 4L0 8z"/></marker>'
)


def svg(graphs: Sequence[Graph]) -> str:
    """One below the other, with a legend of the edges."""
    drawn = [(graph, laid_out(*_measured(graph))) for graph in graphs]
    whys = [why for why in _LEGEND if any(edge.why == why for graph in graphs for edge in graph.edges)]
    width = max([layout.width for _, layout in drawn] + [_legend_width(whys)]) + 2 * _MARGIN
    shapes, top = [], _MARGIN
    for graph, layout in drawn:
        shapes += [f'<g transform="translate({_MARGIN} {top})">', *_shapes(graph, layout), "</g>"]
        top += layout.height + 2 * _MARGIN
    shapes += [f'<g transform="translate({_MARGIN} {top})">', *_legend(whys), "</g>"] if whys else []
    height = top + (_MARGIN if whys else -_MARGIN)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f"<style>\n{_STYLE}</style>",
        _MARKER,
        f'<rect class="page" width="{width}" height="{height}" rx="8"/>',
        *shapes,
        "</svg>",
    ]
    return "\n".join([*lines, ""])


def _measured(graph: Graph) -> tuple[dict[str, Point], list[tuple[str, str]], str]:
    sizes = {node.name: _size(node) for node in graph.nodes}
    return sizes, [(edge.source, edge.target) for edge in graph.edges], STATUS if STATUS in sizes else ""


def _size(node: Node) -> Point:
    title, *lines = node.shown
    width = max(_width(title) * _WIDER, *map(_width, lines), 0)
    return round(width + 2 * _PADDING), _TITLE + _LINE * len(lines) + _PADDING


def _width(text: str) -> float:
    return _CHARACTER * sum(2 if east_asian_width(each) in "WF" else 1 for each in text)


def _shapes(graph: Graph, layout: Layout) -> Iterator[str]:
    for edge in graph.edges:
        points = layout.routes[edge.source, edge.target]
        yield f'<path class="{edge.why}" marker-end="url(#arrow)" d="{_curve(points)}"/>'
    for node in graph.nodes:
        yield from _box(node, layout.boxes[node.name])


def _curve(points: Sequence[Point]) -> str:
    """Level at both ends of each gap between columns, and straight through a column."""
    text = ""
    for (x1, y1), (x2, y2) in zip(points[::2], points[1::2], strict=True):
        middle, end = (x1 + x2) // 2, x2 - _ARROW if (x2, y2) == points[-1] else x2
        text += f"{'L' if text else 'M'}{x1} {y1}C{middle} {y1} {middle} {y2} {end} {y2}"
    return text


def _box(node: Node, box: Box) -> Iterator[str]:
    yield f'<g class="{node.role}{" conditional" if node.conditional else ""}">'
    yield f"<title>{escape(printable_lines(chr(10).join(node.lines)))}</title>"
    size = f'width="{box.width}" height="{box.height}" rx="{20 if node.role == "observed" else 6}"'
    for shift in (_BEHIND, 0) if node.repeated else (0,):
        yield f'<rect x="{box.x + shift}" y="{box.y + shift}" {size}/>'
    y = box.y + _TITLE
    for number, line in enumerate(node.shown):
        kind, width = (' class="title"', _width(line) * _WIDER) if number == 0 else ("", _width(line))
        yield f'<text{kind} x="{box.x + _PADDING}" y="{y}" textLength="{width:.1f}">{escape(line)}</text>'
        y += _LINE
    yield "</g>"


def _legend(whys: Sequence[Why]) -> Iterator[str]:
    x = 0
    for why in whys:
        yield f'<path class="{why}" marker-end="url(#arrow)" d="M{x} 0H{x + 32 - _ARROW}"/>'
        yield f'<text x="{x + 40}" y="4" textLength="{_width(_LEGEND[why]):.1f}">{_LEGEND[why]}</text>'
        x += _legend_width([why])


def _legend_width(whys: Sequence[Why]) -> int:
    return sum(round(_width(_LEGEND[why])) + 64 for why in whys)
