"""Custom resources with their children as a tree: what is ready, what waits and for what, what happened last.

It is made from objects alone, so that a cluster in memory and a real one give the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ruleop.planning.child.readiness import readiness
from ruleop.report.plan_text import Line, Span, Tone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.kinds import Object


@dataclass(frozen=True, slots=True)
class Node:
    """One object of a tree."""

    obj: Object
    state: str
    message: str = ""
    tone: Tone = Tone.WAIT
    children: tuple[Node, ...] = field(default=())

    @property
    def title(self) -> str:
        metadata = self.obj["metadata"]
        return f"{self.obj['kind']} {metadata['name']}"


def resource_node(resource: Object, children: Iterable[Object]) -> Node:
    """A custom resource, by its Ready condition, above its children."""
    nodes = tuple(child_node(each) for each in children)
    if resource["metadata"].get("deletionTimestamp"):
        return Node(resource, "is being deleted", _message(ready_condition(resource)), Tone.WAIT, nodes)
    ready = ready_condition(resource)
    if ready is None:
        return Node(resource, "not reconciled yet", "", Tone.WAIT, nodes)
    if is_ready(resource):
        return Node(resource, "ready", "", Tone.GOOD, nodes)
    stalled = condition(resource, "Stalled")
    is_stalled = stalled is not None and stalled.get("status") == "True"
    return Node(resource, str(ready.get("reason", "")), _message(ready), Tone.BAD if is_stalled else Tone.WAIT, nodes)


def child_node(obj: Object) -> Node:
    found = readiness(obj)
    if found.ready:
        return Node(obj, "ready", found.message, Tone.GOOD)
    return Node(obj, "failed" if found.failed else "not ready", found.message, Tone.BAD if found.failed else Tone.WAIT)


def condition(obj: Object, type_: str) -> dict[str, Any] | None:
    conditions = (obj.get("status") or {}).get("conditions")
    found = conditions if isinstance(conditions, list) else []
    return next((each for each in found if isinstance(each, dict) and each.get("type") == type_), None)


def ready_condition(obj: Object) -> dict[str, Any] | None:
    return condition(obj, "Ready")


def is_ready(obj: Object) -> bool:
    """Whether Ready is True for the current generation."""
    ready, metadata = ready_condition(obj), obj["metadata"]
    return (
        ready is not None
        and ready.get("status") == "True"
        and ready.get("observedGeneration", metadata.get("generation")) == metadata.get("generation")
        and not metadata.get("deletionTimestamp")
    )


def _message(found: dict[str, Any] | None) -> str:
    return str(found.get("message", "")) if found is not None else ""


def tree_lines(roots: Iterable[Node]) -> Iterator[Line]:
    nodes = list(roots)
    rows = [row for node in nodes for row in _rows(node)]
    width = max((len(prefix) + len(node.title) for prefix, node in rows), default=0)
    for prefix, node in rows:
        gap = " " * (width - len(prefix) - len(node.title) + 2)
        title = Span(node.title, Tone.TITLE if not prefix else Tone.PLAIN)
        namespace = node.obj["metadata"].get("namespace", "")
        where = Span(f"  in {namespace}", Tone.FAINT) if not prefix and namespace else Span("", Tone.PLAIN)
        message = Span(f": {node.message}" if node.message else "", Tone.PLAIN)
        yield (Span(prefix, Tone.FAINT), title, Span(gap, Tone.PLAIN), Span(node.state, node.tone), message, where)


def _rows(node: Node) -> Iterator[tuple[str, Node]]:
    yield "", node
    for index, child in enumerate(node.children):
        yield ("└─ " if index == len(node.children) - 1 else "├─ "), child
