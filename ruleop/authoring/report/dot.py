"""Graphs in the language of Graphviz: that of a view, and the frame of every other one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.authoring.report.spans import Tone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.authoring.report.views import ObjectView, ResourceView

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
    title = f"{view.resource.kind}/{view.resource.name}"
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
