"""The findings of `ruleop explain` about a custom resource, as values, as one JSON document, and as a graph in the
language of Graphviz."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.report.dot import digraph, quoted
from ruleop.authoring.report.plan_documents import as_json as plan_as_json
from ruleop.authoring.report.plan_documents import identity, site_json, whole_identity
from ruleop.kubernetes.names import PATCH_MANAGER
from ruleop.planning.model.managers import FieldsManager
from ruleop.planning.model.marks import RULEOP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ruleop.authoring.report.tree import Node
    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import Object, ObjectKey
    from ruleop.planning import Plan
    from ruleop.planning.model.observed import Kinds


@dataclass(frozen=True, slots=True)
class FieldManager:
    """The client that wrote fields of an object, its operation, and the time of its last write."""

    name: str
    operation: str  # Update or Apply
    time: str  # RFC 3339

    @property
    def is_ruleop(self) -> bool:
        return self.name == RULEOP or self.name.startswith(PATCH_MANAGER)

    @property
    def title(self) -> str:
        """The name for a line of text: for a child with `patch`, its id in place of two digests."""
        manager = FieldsManager.named(self.name)
        return f"ruleop's child {manager.child}" if manager is not None else self.name


@dataclass(frozen=True, slots=True)
class ManagedField:
    """A field that ruleop sets, and its field managers, the latest first. It has none if it does not exist."""

    path: str
    managers: tuple[FieldManager, ...] = ()
    changed: bool = False  # by another client since ruleop wrote it


@dataclass(frozen=True, slots=True)
class RenderedLine:
    """One line of a rendered object: the name of a field, or of a list's item, and its value if it has none below."""

    depth: int
    name: str  # "-" for an item of a list
    value: str | None  # as JSON
    site: Site | None = None  # the line of the template that it comes from


@dataclass(frozen=True, slots=True)
class ExplainedObject:
    """One object below the custom resource: a child, or a pod of one."""

    key: ObjectKey
    state: str  # as in the tree: ready, not ready, failed, waiting, ...
    message: str = ""
    child: str = ""  # the id in the rules; empty for a pod
    exists: bool = True
    problems: tuple[str, ...] = ()  # conditions and containers that tell why it is not ready
    last_change: FieldManager | None = None
    fields: tuple[ManagedField, ...] = ()
    parts: tuple[ExplainedObject, ...] = ()
    rendered: tuple[RenderedLine, ...] = ()  # if they were asked for; masked

    @property
    def is_ready(self) -> bool:
        return self.state == "ready"

    def masked(self, text: Callable[[str], str]) -> ExplainedObject:
        """The object with this function applied to what others have written: names of fields, and messages."""
        return replace(
            self,
            message=text(self.message),
            problems=tuple(map(text, self.problems)),
            fields=tuple(replace(each, path=text(each.path)) for each in self.fields),
            parts=tuple(each.masked(text) for each in self.parts),
        )


@dataclass(frozen=True, slots=True)
class Blocker:
    """An object or a condition that one child waits for."""

    child: str
    for_what: str
    why: str  # as in `Wait`
    site: Site | None = None
    expression: str = ""
    values: tuple[tuple[str, str], ...] = ()  # what the expression reads, and its current value
    source: str = ""  # the line at the site


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An Event about one of the objects."""

    key: ObjectKey
    type: str
    reason: str
    message: str
    time: str  # when it happened last
    count: int = 1


@dataclass(frozen=True, slots=True)
class Explanation:
    resource: Object
    tree: Node
    kinds: Kinds
    now: str
    rule: str = ""  # empty: no project, or no rule selects the resource
    objects: tuple[ExplainedObject, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    problems: tuple[str, ...] = ()
    events: tuple[Occurrence, ...] = ()  # the latest first
    plan: Plan | None = None  # of the next reconcile
    operator: str = ""  # what is known about the operator, as a sentence
    notes: tuple[str, ...] = field(default=())  # what is not shown, and why


_COLOURS: Final = {"ready": "palegreen", "failed": "lightcoral", "name conflict": "lightcoral"}
_OTHER: Final = "khaki"


def as_json(explanation: Explanation) -> dict[str, Any]:
    resource, tree = explanation.resource, explanation.tree
    status = resource.get("status") or {}
    conditions = status.get("conditions")
    return {
        "resource": {**whole_identity(resource), "observedGeneration": status.get("observedGeneration")},
        "ready": tree.state == "ready",
        "state": tree.state,
        "message": tree.message,
        "rule": explanation.rule or None,
        "conditions": conditions if isinstance(conditions, list) else [],
        "problems": list(explanation.problems),
        "waits": [_blocker(each) for each in explanation.blockers],
        "objects": [_object(each) for each in explanation.objects],
        "events": [
            {
                **identity(each.key),
                "type": each.type,
                "reason": each.reason,
                "message": each.message,
                "count": each.count,
                "time": each.time,
            }
            for each in explanation.events
        ],
        "next": plan_as_json(explanation.plan, resource) if explanation.plan is not None else None,
        "operator": explanation.operator,
        "notes": list(explanation.notes),
    }


def _blocker(blocker: Blocker) -> dict[str, Any]:
    return {
        "child": blocker.child,
        "for": blocker.for_what,
        "why": blocker.why,
        "expression": blocker.expression,
        "site": site_json(blocker.site),
        "values": [{"path": path, "value": value} for path, value in blocker.values],
    }


def _object(each: ExplainedObject) -> dict[str, Any]:
    return {
        **identity(each.key),
        "child": each.child,
        "exists": each.exists,
        "ready": each.is_ready,
        "state": each.state,
        "message": each.message,
        "problems": list(each.problems),
        "lastChange": _manager(each.last_change) if each.last_change is not None else None,
        "fields": [
            {"path": field.path, "changed": field.changed, "managers": [_manager(one) for one in field.managers]}
            for field in each.fields
        ],
        "pods": [_object(part) for part in each.parts],
        **({"rendered": [_rendered(line) for line in each.rendered]} if each.rendered else {}),
    }


def _rendered(line: RenderedLine) -> dict[str, Any]:
    return {"depth": line.depth, "name": line.name, "value": line.value, "site": site_json(line.site)}


def _manager(manager: FieldManager) -> dict[str, str]:
    return {"manager": manager.name, "operation": manager.operation, "time": manager.time}


# -- Graphviz ----------------------------------------------------------------------------------------------------------


def as_dot(explanation: Explanation) -> str:
    """The tree as a graph. A dashed edge leads from a child that waits to the child that it waits for."""
    return digraph("explanation", _statements(explanation))


def _statements(explanation: Explanation) -> Iterator[str]:
    resource = explanation.resource
    title = f"{resource['kind']}/{resource['metadata']['name']}"
    colour = _COLOURS.get(explanation.tree.state, _OTHER)
    yield f"root [label={quoted(title, explanation.tree.state)}, fillcolor={colour}];"
    nodes: dict[str, str] = {}
    for number, each in enumerate(explanation.objects):
        name = f"n{number}"
        nodes.setdefault(each.child, name)
        yield from _node(name, "root", each)
        for index, part in enumerate(each.parts):
            yield from _node(f"{name}p{index}", name, part)
    for blocker in explanation.blockers:
        other = blocker.for_what.partition(" ")[0].partition(".")[0]
        if blocker.why != "ready" and blocker.child in nodes and other in nodes:
            yield f'{nodes[blocker.child]} -> {nodes[other]} [style=dashed, label="waits for"];'


def _node(name: str, parent: str, each: ExplainedObject) -> Iterator[str]:
    title = f"{each.key.kind}/{each.key.name}" if each.key.name else each.child
    state = f"{each.state}: {each.message}" if each.message else each.state
    style = "" if each.exists else ', style="rounded,filled,dashed"'
    yield f"{name} [label={quoted(title, state)}, fillcolor={_COLOURS.get(each.state, _OTHER)}{style}];"
    yield f"{parent} -> {name};"
