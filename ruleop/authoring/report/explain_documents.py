"""Formats an explanation for programs: as one JSON document, and as a graph in the language of Graphviz."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.report.dot import digraph, quoted
from ruleop.authoring.report.plan_text import as_json as plan_as_json
from ruleop.authoring.report.plan_text import site_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.authoring.report.explanation import Blocker, ExplainedObject, Explanation, FieldManager
    from ruleop.core.kinds import ObjectKey

_COLOURS: Final = {"ready": "palegreen", "failed": "lightcoral", "name conflict": "lightcoral"}
_OTHER: Final = "khaki"


def as_json(explanation: Explanation) -> dict[str, Any]:
    resource, tree = explanation.resource, explanation.tree
    status = resource.get("status") or {}
    conditions = status.get("conditions")
    return {
        "resource": {
            "apiVersion": resource["apiVersion"],
            "kind": resource["kind"],
            "namespace": resource["metadata"].get("namespace", ""),
            "name": resource["metadata"]["name"],
            "uid": resource["metadata"].get("uid", ""),
            "generation": resource["metadata"].get("generation"),
            "observedGeneration": status.get("observedGeneration"),
        },
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
                **_identity(each.key),
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
        **_identity(each.key),
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
    }


def _manager(manager: FieldManager) -> dict[str, str]:
    return {"manager": manager.name, "operation": manager.operation, "time": manager.time}


def _identity(key: ObjectKey) -> dict[str, str]:
    return {"group": key.group, "kind": key.kind, "namespace": key.namespace, "name": key.name}


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
