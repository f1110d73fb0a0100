"""The tree of a custom resource: a row for each child with its state, and rows of its objects below it.

`plan`, `explain` and `dev` have the same tree: the id of the child, the state, and the object with what is known of it.
The columns are those of the rows below custom resources, whose own titles may be long.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ruleop.authoring.report.spans import WIDTH, Line, Span, Tone
from ruleop.messages import shortened
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from ruleop.authoring.report.views import ObjectView, ResourceView


MAX_OBJECTS: Final = 8
"""The number of listed objects of one child."""

LEAST_TEXT: Final = 24
"""Characters of a text, even if the line gets wider than `WIDTH`."""


@dataclass(frozen=True, slots=True)
class TreeRow:
    name: str
    state: str = ""
    tone: Tone = Tone.PLAIN
    text: str = ""
    note: str = ""
    rows: tuple[TreeRow, ...] = ()


def tree_lines(roots: Sequence[TreeRow], *, fit: bool = False) -> Iterator[Line]:
    """The rows of custom resources, each above those of its children. `fit`: texts are cut at `WIDTH`."""
    branches = [list(_branches(root.rows)) for root in roots]
    below = [pair for found in branches for pair in found]
    names = max((len(prefix) + len(row.name) for prefix, row in below if row.state), default=0)
    states = max((len(row.state) for _, row in below if row.text), default=0)
    head: Line
    for root, found in zip(roots, branches, strict=True):
        head = (Span(root.name, Tone.TITLE), Span("  " if root.state else ""), Span(root.state, root.tone))
        yield _line(head, ": ", root, fit=fit)
        for prefix, row in found:
            gap = " " * (names - len(prefix) - len(row.name) + 2) if row.state else ""
            name = Span(row.name, Tone.PLAIN if row.state else Tone.FAINT)
            head = (Span(prefix, Tone.FAINT), name, Span(gap), Span(f"{row.state:<{states}}", row.tone))
            yield _line(head, "  ", row, fit=fit)


def _line(head: Line, joint: str, row: TreeRow, *, fit: bool) -> Line:
    text, note = f"{joint}{row.text}" if row.text else "", f"  {row.note}" if row.note else ""
    if fit:
        taken = sum(len(span.text) for span in (*head, Span(note)))
        text = shortened(text, max(LEAST_TEXT, WIDTH - taken))
    return (*head, Span(text), Span(note, Tone.FAINT))


def _branches(rows: Sequence[TreeRow], indent: str = "") -> Iterator[tuple[str, TreeRow]]:
    for number, row in enumerate(rows, 1):
        last = number == len(rows)
        yield f"{indent}{'└─ ' if last else '├─ '}", row
        yield from _branches(row.rows, f"{indent}{'   ' if last else '│  '}")


def view_row(view: ResourceView, notes: Mapping[int, str] | None = None) -> TreeRow:
    """A view as the root of a tree. `notes`: of its objects, by their number. A message that is among the problems is
    not repeated."""
    namespace = view.obj["metadata"].get("namespace") or ""
    above = {each.message for each in view.errors}
    by_child: dict[object, list[TreeRow]] = {}
    for number, each in enumerate(view.objects):
        row = _object_row(each, namespace, above, (notes or {}).get(number, ""))
        by_child.setdefault(each.child or number, []).append(row)
    rows = tuple(_child_row(found) for found in by_child.values())
    return TreeRow(view.title, view.state, view.tone, view.message, rows=rows)


def _object_row(each: ObjectView, namespace: str, above: Container[str], note: str = "") -> TreeRow:
    title = each.key.title(namespace) if each.key.name else each.key.kind
    message = "" if each.message in above else each.message
    joint = " " if message.startswith("is ") else ": "
    pods = tuple(_object_row(pod, each.key.namespace, above) for pod in each.pods)
    return TreeRow(each.child, each.state, each.tone, joint.join(filter(None, (title, message))), note, pods)


def _child_row(rows: Sequence[TreeRow]) -> TreeRow:
    """The row of a child: that of its only object, or one above the rows of several."""
    if len(rows) == 1:
        return rows[0]
    worst = min(rows, key=lambda row: (Tone.BAD, Tone.WAIT, Tone.GOOD).index(row.tone))
    ready = sum(row.tone is Tone.GOOD for row in rows)
    text = f"{len(rows)} objects" + (f", {ready} ready" if 0 < ready < len(rows) else "")
    return TreeRow(worst.name, worst.state, worst.tone, text, rows=_first(replace(row, name="") for row in rows))


def _first(rows: Iterable[TreeRow]) -> tuple[TreeRow, ...]:
    """The first rows of objects, those that are not ready before the others, and the number of the others."""
    ordered = sorted(rows, key=lambda row: row.tone is Tone.GOOD)
    more = (TreeRow(f"and {len(ordered) - MAX_OBJECTS} more", tone=Tone.FAINT),) if len(ordered) > MAX_OBJECTS else ()
    return (*ordered[:MAX_OBJECTS], *more)


# -- as a graph --------------------------------------------------------------------------------------------------------
# In the language of Graphviz: the graph of a view, and the frame of every other one.

_COLOURS: Final = {Tone.GOOD: "palegreen", Tone.BAD: "lightcoral", Tone.WAIT: "khaki"}


def digraph(name: str, statements: Iterable[str]) -> str:
    """A graph of rounded boxes, from left to right."""
    boxes = 'rankdir=LR; node [shape=box, style="rounded,filled", fontname="sans-serif"];'
    return "\n".join([f"digraph {name} {{", *(f"  {line}" for line in (boxes, *statements)), "}", ""])


def quoted(*lines: str) -> str:
    """A label."""
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for line in lines]
    return '"' + "\\n".join(escaped) + '"'


def view_graph(view: ResourceView) -> str:
    """The tree as a graph. A dashed edge leads from a child that waits to the child that it waits for."""
    return digraph("explanation", _statements(view))


def _statements(view: ResourceView) -> Iterator[str]:
    title = f"{view.key.kind}/{view.key.name}"
    yield f"root [label={quoted(title, view.state)}, fillcolor={_COLOURS[view.tone]}];"
    nodes: dict[str, str] = {}
    for number, each in enumerate(view.objects):
        name = f"n{number}"
        nodes.setdefault(each.child, name)
        yield from _node(name, "root", each)
        for index, pod in enumerate(each.pods):
            yield from _node(f"{name}p{index}", name, pod)
    for wait in view.waits:
        other = wait.for_.partition(" ")[0].partition(".")[0]
        if wait.why != "ready" and wait.child in nodes and other in nodes:
            yield f'{nodes[wait.child]} -> {nodes[other]} [style=dashed, label="waits for"];'


def _node(name: str, parent: str, each: ObjectView) -> Iterator[str]:
    title = f"{each.key.kind}/{each.key.name}" if each.key.name else each.child
    state = f"{each.state}: {each.message}" if each.message else each.state
    style = "" if each.exists else ', style="rounded,filled,dashed"'
    yield f"{name} [label={quoted(title, state)}, fillcolor={_COLOURS[each.tone]}{style}];"
    yield f"{parent} -> {name};"
