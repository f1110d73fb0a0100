"""Custom resources with their children as a tree: what is ready, what waits and for what, what happened last.

It is made from objects alone, so that a cluster in memory and a real one give the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ruleop.authoring.report.spans import Line, Span, Tone
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.planning.child.readiness import readiness
from ruleop.planning.model.conditions import find_condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.kubernetes.kinds import Object


@dataclass(frozen=True, slots=True)
class Node:
    """One object of a tree."""

    obj: Object
    state: str
    message: str = ""
    tone: Tone = Tone.WAIT
    children: tuple[Node, ...] = field(default=())

    namespace: str = ""  # shown for a custom resource; its children are in the same one, or in their own
    note: str = ""

    @property
    def title(self) -> str:
        name = self.obj["metadata"]["name"]
        return f"{self.obj['kind']} {self.namespace}/{name}" if self.namespace else f"{self.obj['kind']} {name}"


def resource_node(resource: Object, children: Iterable[Object], patched: Iterable[Object] = ()) -> Node:
    """A custom resource, by its Ready condition, above its children and the objects of others that have its fields."""
    namespace = resource["metadata"].get("namespace", "")
    nodes = [
        *(child_node(each, namespace) for each in children),
        *(Node(each, "has its fields", "", Tone.GOOD, (), _other(each, namespace)) for each in patched),
    ]
    nodes.sort(key=lambda node: ObjectKey.of(node.obj)[1:])
    state, message, tone = _resource_state(resource)
    return Node(resource, state, message, tone, tuple(nodes), namespace)


def _other(obj: Object, namespace: str) -> str:
    """The namespace of an object, if it is not this one."""
    own: str = obj["metadata"].get("namespace", "")
    return own if own != namespace else ""


def _resource_state(resource: Object) -> tuple[str, str, Tone]:
    ready = find_condition(resource, "Ready")
    message = str(ready.get("message", ""))
    if resource["metadata"].get("deletionTimestamp"):
        return "is being deleted", message, Tone.WAIT
    if not ready:
        return "without a condition Ready", "", Tone.WAIT
    if is_ready(resource):
        return "ready", "", Tone.GOOD
    is_stalled = find_condition(resource, "Stalled").get("status") == "True"
    return str(ready.get("reason", "")), message, Tone.BAD if is_stalled else Tone.WAIT


def child_node(obj: Object, parent_namespace: str = "") -> Node:
    found = readiness(obj)
    namespace = _other(obj, parent_namespace)
    if found.ready:
        return Node(obj, "ready", _pods(obj) or found.message, Tone.GOOD, (), namespace)
    tone = Tone.BAD if found.failed else Tone.WAIT
    message = f"{found.message}: {found.detail}" if found.detail else found.message
    return Node(obj, "failed" if found.failed else "not ready", message, tone, (), namespace)


def _pods(obj: Object) -> str:
    """The numbers of ready and of desired pods of a workload."""
    spec, status = obj.get("spec"), obj.get("status")
    if not isinstance(spec, dict) or not isinstance(status, dict) or "replicas" not in spec:
        return ""
    return f"{status.get('readyReplicas', 0)} of {spec['replicas']} pods"


def is_ready(obj: Object) -> bool:
    """Whether Ready is True for the current generation."""
    ready, metadata = find_condition(obj, "Ready"), obj["metadata"]
    return (
        ready.get("status") == "True"
        and ready.get("observedGeneration", metadata.get("generation")) == metadata.get("generation")
        and not metadata.get("deletionTimestamp")
    )


def tree_lines(roots: Iterable[Node]) -> Iterator[Line]:
    nodes = list(roots)
    rows = [row for node in nodes for row in _rows(node)]
    width = max((len(prefix) + len(node.title) for prefix, node in rows), default=0)
    for prefix, node in rows:
        gap = " " * (width - len(prefix) - len(node.title) + 2)
        title = Span(node.title, Tone.TITLE if not prefix else Tone.PLAIN)
        message = Span(f": {node.message}" if node.message else "", Tone.PLAIN)
        note = Span(f"  {node.note}" if node.note else "", Tone.FAINT)
        yield (Span(prefix, Tone.FAINT), title, Span(gap, Tone.PLAIN), Span(node.state, node.tone), message, note)


def _rows(node: Node, prefix: str = "", indent: str = "") -> Iterator[tuple[str, Node]]:
    yield prefix, node
    for number, child in enumerate(node.children, 1):
        last = number == len(node.children)
        yield from _rows(child, f"{indent}{'└─ ' if last else '├─ '}", f"{indent}{'   ' if last else '│  '}")
