"""The graph of a rule, as Mermaid, in the language of Graphviz, and as SVG: the custom resource, its children, the
objects that it observes, and its status. An edge leads from what is there first to what depends on it."""

from __future__ import annotations

from html import escape
from itertools import chain, combinations, pairwise
from typing import TYPE_CHECKING, Final, Literal
from unicodedata import east_asian_width

from ruleop.authoring.checking.object_names import NAME, NAMESPACE, text_of
from ruleop.authoring.report import digraph, quoted
from ruleop.kubernetes.kinds import NAMESPACE_KIND
from ruleop.language.rules import ItemEnd, Patched
from ruleop.language.rules.order import ids_read, topological
from ruleop.language.rules.scopes import possible_in
from ruleop.language.templates import Tree
from ruleop.messages import shortened
from ruleop.printable import printable, printable_lines
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ruleop.kubernetes.kinds import Kind
    from ruleop.language.rules import Child, Observe, Rule
    from ruleop.language.rules.loading import Loaded, Watch
    from ruleop.language.templates.bodies.body import FieldPath


Role = Literal["resource", "child", "observed", "status"]
Why = Literal["creates", "reads", "waits", "observes", "reports"]

RESOURCE: Final = "cr"
STATUS: Final = "status"
"""Names of nodes. No child can have them: they are reserved in the rules."""
_MAX_LINE: Final = 36  # characters
_MAX_FIELDS: Final = 12  # of the status


@dataclass(frozen=True, slots=True)
class GraphNode:
    name: str
    role: Role
    lines: tuple[str, ...]  # the first is the title
    conditional: bool = False
    repeated: bool = False
    state: str = ""  # of the objects of one custom resource, as a class of the style sheet
    href: str = ""  # to more about it

    @property
    def shown(self) -> tuple[str, ...]:
        return tuple(printable(shortened(" ".join(line.split()), _MAX_LINE)) for line in self.lines)


@dataclass(frozen=True, slots=True)
class Edge:
    source: str
    target: str
    why: Why


@dataclass(frozen=True, slots=True)
class RuleGraph:
    nodes: tuple[GraphNode, ...]
    edges: tuple[Edge, ...]  # no two of the same nodes


def rule_graph(watch: Watch, loaded: Loaded) -> RuleGraph:
    rule = watch.rule
    status = dict(_status(watch, loaded))
    nodes = [GraphNode(RESOURCE, "resource", (rule.kind.kind, rule.kind.api_version, *filter(None, [rule.name])))]
    nodes += [
        GraphNode(each.id, "observed", (each.id, each.kind.kind, _how_many(each))) for each in rule.observe.values()
    ]
    nodes += [_child_node(child) for child in _ordered(rule)]
    if status:
        lines = [f"{name} ← {', '.join(sorted(ids))}" if ids else name for name, ids in status.items()]
        more = [f"and {len(lines) - _MAX_FIELDS} more"] if len(lines) > _MAX_FIELDS else []
        nodes.append(GraphNode(STATUS, "status", (STATUS, *lines[:_MAX_FIELDS], *more)))
    found: dict[tuple[str, str], Edge] = {}
    for edge in _edges(watch, loaded, status):
        found.setdefault((edge.source, edge.target), edge)
    inner = {edge.target for edge in found.values() if edge.why in ("reads", "waits")}
    roots = [child.id for child in _ordered(rule) if child.id not in inner]
    return RuleGraph(tuple(nodes), (*(Edge(RESOURCE, id_, "creates") for id_ in roots), *found.values()))


def kinds_of(kinds: Iterable[Kind]) -> str:
    return ", ".join(sorted({kind.kind for kind in kinds})) or "any kind"


def written_names(id_: str, watch: Watch, loaded: Loaded, path: FieldPath = NAME) -> list[str]:
    """The names of a child's objects, or another field of them, as the rules write it; "" for one that depends on what
    a template does."""
    (part,) = (part for part in watch.parts if part.body and part.child is not None and part.child.id == id_)
    fields = [field for body in possible_in(part, loaded.library).bodies for field in body.fields]
    return [*dict.fromkeys(text_of(field, part) for field in fields if field.path == path and not field.spread)]


def _ordered(rule: Rule) -> Iterator[Child]:
    yield from (rule.children[id_] for id_ in rule.order.children)
    yield from (rule.finalize[id_] for id_ in rule.order.final)


def _how_many(observe: Observe) -> str:
    if observe.owned_by is not None:
        return f"owned by {observe.owned_by.child}"
    return "a list" if observe.many else "one object"


def _child_node(child: Child) -> GraphNode:
    lines = [child.id, kinds_of(child.kinds)]
    match child.form:
        case ItemEnd(of=other):
            lines.append(f"at the end of each of {other}")
        case Patched(target=target):
            lines.append("fields of all that match" if target.many else "fields of it")
        case _ if child.final:
            lines.append("on deletion")
    lines += [f"for each {loop.name} in {loop.over.source}" for loop in child.for_each]
    if child.when is not None:
        lines.append(f"when {child.when.source}")
    return GraphNode(child.id, "child", tuple(lines), child.when is not None, child.many)


def _status(watch: Watch, loaded: Loaded) -> Iterator[tuple[str, frozenset[str]]]:
    """Each field and condition, with the ids that it reads."""
    status, draft = watch.rule.status.body, watch.draft
    if isinstance(status, Tree) and isinstance(status.node.value, dict):
        for name, node in status.node.value.items():
            yield name, ids_read(draft, [loaded.library.tree(node)])
    elif status is not None:
        yield "all fields", ids_read(draft, [status])
    for condition in watch.rule.status.conditions:
        texts = (condition.status, condition.reason, condition.message)
        yield condition.type, ids_read(draft, [each for each in texts if each is not None])


def _edges(watch: Watch, loaded: Loaded, status: Mapping[str, frozenset[str]]) -> Iterator[Edge]:
    rule = watch.rule
    for child in _ordered(rule):
        peers = rule.order.final if child.final else rule.order.children
        parts = [part.compiled for part in watch.parts if part.child is not None and part.child.id == child.id]
        namespaces = _namespaces(child, watch, loaded)
        waits = {*child.depends_on, *(id_ for id_ in peers if id_ in namespaces)}
        read = ids_read(watch.draft, parts)
        if isinstance(child.form, ItemEnd):
            yield Edge(child.form.of, child.id, "reads")
        yield from (Edge(id_, child.id, "waits") for id_ in peers if id_ in waits)
        yield from (Edge(id_, child.id, "reads") for id_ in peers if id_ in child.inputs.mentions)
        yield from (Edge(id_, child.id, "observes") for id_ in rule.observe if id_ in read)
    ids = frozenset(chain.from_iterable(status.values()))
    yield from (Edge(id_, STATUS, "reports") for id_ in (*rule.observe, *rule.children, *rule.finalize) if id_ in ids)


def _namespaces(child: Child, watch: Watch, loaded: Loaded) -> frozenset[str]:
    """The children that are the Namespace of this one's objects, by the same text."""
    given = {child.namespace.source} if child.namespace is not None else set()
    texts = given | {*written_names(child.id, watch, loaded, NAMESPACE)} - {""}
    return frozenset(
        id_
        for id_, other in watch.rule.children.items()
        if id_ != child.id
        and any(kind.versionless == NAMESPACE_KIND.versionless for kind in other.kinds)
        and not texts.isdisjoint(written_names(id_, watch, loaded))
    )


# -- Mermaid and Graphviz ----------------------------------------------------------------------------------------------

_ROLES: Final[dict[Role, tuple[str, str, str]]] = {  # the brackets of Mermaid, the colour in Graphviz
    "resource": ("([", "])", "lightsteelblue"),
    "child": ("[", "]", "white"),
    "observed": ("[/", "/]", "lightgrey"),
    "status": ("(", ")", "honeydew"),
}
_ARROWS: Final[dict[Why, tuple[str, str]]] = {
    "creates": ("-->", "solid"),
    "reads": ("-->", "solid"),
    "waits": ("==>", "bold"),
    "observes": ("-.->", "dashed"),
    "reports": ("-.->", "dotted"),
}
_PLAIN: Final = frozenset(" ./_:,()=+←…")


def mermaid(graphs: Sequence[RuleGraph]) -> str:
    return "\n".join(["flowchart LR", *(f"  {line}" for line in _mermaid_lines(graphs)), ""])


def _mermaid_lines(graphs: Sequence[RuleGraph]) -> Iterator[str]:
    conditional = []
    for number, graph in enumerate(graphs):
        names = _names(number, graph)
        for node in graph.nodes:
            start, end, _ = ("[[", "]]", "") if node.repeated else _ROLES[node.role]
            yield f'{names[node.name]}{start}"{"<br/>".join(map(_mermaid_text, node.shown))}"{end}'
        for edge in graph.edges:
            yield f"{names[edge.source]} {_ARROWS[edge.why][0]} {names[edge.target]}"
        conditional += [names[node.name] for node in graph.nodes if node.conditional]
    if conditional:
        yield "classDef conditional stroke-dasharray: 5 4"
        yield f"class {','.join(conditional)} conditional"


def _names(number: int, graph: RuleGraph) -> dict[str, str]:
    """Names that are keywords of neither language."""
    return {node.name: f"r{number}n{index}" for index, node in enumerate(graph.nodes)}


def _mermaid_text(text: str) -> str:
    """Entities for all that Mermaid, its Markdown or HTML could read as something else."""
    return "".join(each if each.isalnum() or each in _PLAIN else f"#{ord(each)};" for each in text)


def dot(graphs: Sequence[RuleGraph]) -> str:
    return digraph("rules", _dot_lines(graphs))


def _dot_lines(graphs: Sequence[RuleGraph]) -> Iterator[str]:
    for number, graph in enumerate(graphs):
        names = _names(number, graph)
        for node in graph.nodes:
            style = ', style="rounded,filled,dashed"' if node.conditional else ""
            style += ", peripheries=2" if node.repeated else ""
            yield f"{names[node.name]} [label={quoted(*node.shown)}, fillcolor={_ROLES[node.role][2]}{style}];"
        for edge in graph.edges:
            yield f"{names[edge.source]} -> {names[edge.target]} [style={_ARROWS[edge.why][1]}];"


# -- SVG ---------------------------------------------------------------------------------------------------------------
# The graph of rules as SVG, in the colours of the reader's browser: light or dark.
#
# Boxes are placed in columns, so that each edge leads to the right and crosses no box.
#
# A box is one column right of the last of those that it follows (longest path), or, if it follows none, one column left
# of the first that follows it. An edge over several columns has a free row in each of those between. In turns from the
# left and from the right, the cells of a column are ordered by the mean height of their neighbours (barycentre) and
# moved there as far as the others of the column let them. The turn with the fewest crossings and shortest edges is
# kept.

GAP: Final = 18  # pixels between two boxes of a column
COLUMN_GAP: Final = 64
_TURNS: Final = 16

Point = tuple[int, int]
_Cell = tuple[str, str, int]  # of a column: a box, with its name twice, or an edge on its way
_Neighbours = dict[_Cell, list[_Cell]]


@dataclass(frozen=True, slots=True)
class Box:
    x: int
    y: int
    width: int
    height: int
    column: int


@dataclass(frozen=True, slots=True)
class Layout:
    boxes: Mapping[str, Box]
    routes: Mapping[tuple[str, str], tuple[Point, ...]]  # of edges: two points for each gap between columns
    width: int
    height: int


def laid_out(sizes: Mapping[str, Point], edges: Iterable[tuple[str, str]], last: str = "") -> Layout:
    """Places boxes of these widths and heights. `last`: a box that nothing follows, right of all others."""
    position = {name: number for number, name in enumerate(sizes)}
    links = sorted(set(edges), key=lambda link: (position[link[0]], position[link[1]]))
    columns = _columns(sizes, links, last)
    chains = {link: _chain(link, columns) for link in links}
    cells = [(name, name, column) for name, column in columns.items()]
    cells += [cell for chain in chains.values() for cell in chain[1:-1]]
    heights = {cell: sizes[cell[0]][1] if cell[0] == cell[1] else 0 for cell in cells}
    centres = _centres(heights, [step for chain in chains.values() for step in pairwise(chain)])
    top = min((centre - heights[cell] / 2 for cell, centre in centres.items()), default=0)
    ys = {cell: round(centre - top) for cell, centre in centres.items()}
    # Boxes of a column have the same width, so that edges pass between them.
    widths = [0] * (max(columns.values(), default=-1) + 1)
    for name, column in columns.items():
        widths[column] = max(widths[column], sizes[name][0])
    lefts = [sum(widths[:number]) + COLUMN_GAP * number for number in range(len(widths))]
    boxes = {}
    for name, column in columns.items():
        height = sizes[name][1]
        boxes[name] = Box(lefts[column], ys[name, name, column] - height // 2, widths[column], height, column)
    routes = {}
    for link, cells_of in chains.items():
        gaps = [((lefts[a[2]] + widths[a[2]], ys[a]), (lefts[b[2]], ys[b])) for a, b in pairwise(cells_of)]
        routes[link] = tuple(point for gap in gaps for point in gap)
    bottom = max((round(ys[cell] + heights[cell] / 2) for cell in cells), default=0)
    return Layout(boxes, routes, lefts[-1] + widths[-1] if lefts else 0, bottom)


def _columns(sizes: Mapping[str, Point], links: list[tuple[str, str]], last: str) -> dict[str, int]:
    before: dict[str, list[str]] = {name: [] for name in sizes}
    after: dict[str, list[str]] = {name: [] for name in sizes}
    for source, target in links:
        before[target].append(source)
        after[source].append(target)
    found = dict.fromkeys(sizes, 0)
    for name in topological(before):
        found[name] = max((found[each] + 1 for each in before[name]), default=0)
    if last:
        found[last] = max((column + 1 for name, column in found.items() if name != last), default=0)
    return {
        name: min(found[each] for each in after[name]) - 1 if after[name] and not before[name] else column
        for name, column in found.items()
    }


def _chain(link: tuple[str, str], columns: Mapping[str, int]) -> list[_Cell]:
    source, target = link
    between = [(source, target, column) for column in range(columns[source] + 1, columns[target])]
    return [(source, source, columns[source]), *between, (target, target, columns[target])]


def _centres(heights: Mapping[_Cell, int], steps: list[tuple[_Cell, _Cell]]) -> dict[_Cell, float]:
    """The height of each cell's middle."""
    columns: dict[int, list[_Cell]] = {}
    left: _Neighbours = {cell: [] for cell in heights}
    right: _Neighbours = {cell: [] for cell in heights}
    for cell in heights:
        columns.setdefault(cell[2], []).append(cell)
    for source, target in steps:
        right[source].append(target)
        left[target].append(source)
    current = dict.fromkeys(heights, 0.0)
    best, least = current, (len(steps) ** 2, 0.0)
    for turn in range(_TURNS):
        for number in sorted(columns, reverse=turn % 2 == 1):
            neighbours = (left, right)[turn % 2] if turn else left
            targets = {cell: _mean(neighbours[cell], current) for cell in columns[number]}
            columns[number].sort(key=targets.__getitem__)
            current = current | _apart({cell: targets[cell] for cell in columns[number]}, heights)
        cost = _crossings(steps, current), sum(abs(current[a] - current[b]) for a, b in steps)
        if turn == 0 or cost < least:
            best, least = current, cost
    return best


def _mean(neighbours: list[_Cell], centres: Mapping[_Cell, float]) -> float:
    return sum(centres[each] for each in neighbours) / len(neighbours) if neighbours else 0.0


def _crossings(steps: list[tuple[_Cell, _Cell]], centres: Mapping[_Cell, float]) -> int:
    gaps: dict[int, list[tuple[float, float]]] = {}
    for source, target in steps:
        gaps.setdefault(source[2], []).append((centres[source], centres[target]))
    return sum((a - c) * (b - d) < 0 for gap in gaps.values() for (a, b), (c, d) in combinations(gap, 2))


def _apart(targets: Mapping[_Cell, float], heights: Mapping[_Cell, int]) -> dict[_Cell, float]:
    """The nearest places to the targets (least squares) with their distances, in this order: cells that would come too
    close move together."""
    places, offset = [0.0], 0.0
    for above, below in pairwise(targets):
        offset += (heights[above] + heights[below]) / 2 + GAP
        places.append(offset)
    pools: list[tuple[float, int]] = []  # the mean of the targets of touching cells, less their places; and how many
    for target, place in zip(targets.values(), places, strict=True):
        mean, count = target - place, 1
        while pools and pools[-1][0] > mean:
            above_mean, above_count = pools.pop()
            mean = (above_mean * above_count + mean * count) / (above_count + count)
            count += above_count
        pools.append((mean, count))
    shifts = [mean for mean, count in pools for _ in range(count)]
    return {cell: place + shift for cell, place, shift in zip(targets, places, shifts, strict=True)}


_MARGIN: Final = 24
_INSET: Final = 6  # of a part of a page
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


def svg(graphs: Sequence[RuleGraph]) -> str:
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


def figure(graph: RuleGraph, title: str) -> str:
    """One graph as a part of a page, which has the style sheet; `title` names it for who cannot see it. Nodes with a
    `href` are links."""
    layout = laid_out(*_measured(graph))
    width, height = layout.width + 2 * _INSET, layout.height + 2 * _INSET
    size = f'viewBox="{-_INSET} {-_INSET} {width} {height}" width="{width}" height="{height}"'
    lines = [
        f'<svg class="graph" role="group" aria-label="{escape(printable(title))}" {size}>',
        _MARKER,
        *_shapes(graph, layout),
        "</svg>",
    ]
    return "\n".join(lines)


def _measured(graph: RuleGraph) -> tuple[dict[str, Point], list[tuple[str, str]], str]:
    sizes = {node.name: _size(node) for node in graph.nodes}
    return sizes, [(edge.source, edge.target) for edge in graph.edges], STATUS if STATUS in sizes else ""


def _size(node: GraphNode) -> Point:
    title, *lines = node.shown
    width = max(_width(title) * _WIDER, *map(_width, lines), 0)
    return round(width + 2 * _PADDING), _TITLE + _LINE * len(lines) + _PADDING


def _width(text: str) -> float:
    return _CHARACTER * sum(2 if east_asian_width(each) in "WF" else 1 for each in text)


def _shapes(graph: RuleGraph, layout: Layout) -> Iterator[str]:
    for edge in graph.edges:
        points = layout.routes[edge.source, edge.target]
        text = ""  # level at both ends of each gap between columns, and straight through a column
        for (x1, y1), (x2, y2) in zip(points[::2], points[1::2], strict=True):
            middle, end = (x1 + x2) // 2, x2 - _ARROW if (x2, y2) == points[-1] else x2
            text += f"{'L' if text else 'M'}{x1} {y1}C{middle} {y1} {middle} {y2} {end} {y2}"
        yield f'<path class="{edge.why}" marker-end="url(#arrow)" d="{text}"/>'
    for node in graph.nodes:
        yield from _box(node, layout.boxes[node.name])


def _box(node: GraphNode, box: Box) -> Iterator[str]:
    if node.href:
        yield f'<a href="{escape(node.href)}">'
    more = f"{' conditional' if node.conditional else ''}{f' state-{node.state}' if node.state else ''}"
    yield f'<g class="{node.role}{more}">'
    yield f"<title>{escape(printable_lines(chr(10).join(node.lines)))}</title>"
    size = f'width="{box.width}" height="{box.height}" rx="{20 if node.role == "observed" else 6}"'
    for shift in (_BEHIND, 0) if node.repeated else (0,):
        yield f'<rect x="{box.x + shift}" y="{box.y + shift}" {size}/>'
    y = box.y + _TITLE
    for number, line in enumerate(node.shown):
        kind, width = (' class="title"', _width(line) * _WIDER) if number == 0 else ("", _width(line))
        if node.state and number == len(node.shown) - 1:
            kind = ' class="state-line"'
        yield f'<text{kind} x="{box.x + _PADDING}" y="{y}" textLength="{width:.1f}">{escape(line)}</text>'
        y += _LINE
    yield "</g>"
    if node.href:
        yield "</a>"


def _legend(whys: Sequence[Why]) -> Iterator[str]:
    x = 0
    for why in whys:
        yield f'<path class="{why}" marker-end="url(#arrow)" d="M{x} 0H{x + 32 - _ARROW}"/>'
        yield f'<text x="{x + 40}" y="4" textLength="{_width(_LEGEND[why]):.1f}">{_LEGEND[why]}</text>'
        x += _legend_width([why])


def _legend_width(whys: Sequence[Why]) -> int:
    return sum(round(_width(_LEGEND[why])) + 64 for why in whys)
