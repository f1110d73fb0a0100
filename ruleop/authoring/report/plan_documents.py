"""A plan for programs, as one JSON document. It masks values of Secrets, is deterministic, and has the metadata that
ruleop itself writes in full."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jsonpatch

from ruleop.language.secrets.masks import NO_MASKS, Masks
from ruleop.planning.model.actions import (
    Action,
    AddFinalizer,
    ChildReport,
    Create,
    Delete,
    Expire,
    FinalizerAction,
    ObjectReport,
    Patch,
    Problem,
    ServerSideApply,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.authoring.report.server_answers import Answer
    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import Object, ObjectKey
    from ruleop.planning.model.actions import HeldDeletion, Requeue
    from ruleop.planning.plan import Plan


def as_json(plan: Plan, resource: Object, answers: Iterable[Answer] = ()) -> dict[str, Any]:
    """The plan as plain JSON. Changes are RFC 6902 patches of the live objects; values of Secrets are masked."""
    plan = with_masked_texts(plan)
    asked = [{**_asked_json(each.action, plan.masks), **each.as_json()} for each in answers]
    return {
        **_whose_json(plan),
        "quiet": plan.quiet,
        "actions": [{**_action_json(action, plan.masks), **_item_json(action, plan)} for action in plan.actions],
        "heldBack": [_held_json(each) for each in plan.held],
        "children": [_child_json(child) for child in plan.children],
        **_obstructions_json(plan),
        "status": _status_json(plan, resource),
        "conditions": [each.as_json() for each in plan.conditions or ()],
        "events": [{"type": event.type, "reason": event.reason, "message": event.message} for event in plan.events],
        "requeueAfter": _requeue_json(plan.requeue_after),
        **({"expires": plan.expires} if plan.expires else {}),
        **({"serverAnswers": asked} if asked else {}),
    }


def rendered_as_json(plan: Plan) -> dict[str, Any]:
    """The children as rendered, in apply order, and why others are missing. Values of Secrets in them are not masked:
    they can be applied."""
    objects = [{"child": child, "template": template, "object": obj} for child, template, obj in plan.rendered]
    return {**_whose_json(plan), "objects": objects, **_obstructions_json(with_masked_texts(plan))}


def _whose_json(plan: Plan) -> dict[str, Any]:
    account = {"account": str(plan.account)} if plan.account is not None else {}
    return {"resource": {**identity(plan.resource), "uid": plan.uid}, "rule": plan.rule, **account}


def _obstructions_json(plan: Plan) -> dict[str, Any]:
    return {
        "waits": [{"child": wait.child, "for": wait.for_what, "site": site_json(wait.site)} for wait in plan.waits],
        "problems": [_problem_json(problem) for problem in plan.problems],
    }


def with_masked_texts(plan: Plan) -> Plan:
    """The plan without known values of Secrets in its messages."""
    text = plan.masks.text
    conditions = plan.conditions
    if conditions is not None:
        conditions = conditions.with_messages(text)
    return replace(
        plan,
        waits=tuple(replace(wait, for_what=text(wait.for_what)) for wait in plan.waits),
        blocking=tuple(
            replace(each, values=tuple((path, text(value)) for path, value in each.values)) for each in plan.blocking
        ),
        problems=tuple(replace(problem, message=text(problem.message)) for problem in plan.problems),
        children=tuple(
            replace(
                child,
                message=text(child.message),
                objects=tuple(replace(each, message=text(each.message)) for each in child.objects),
            )
            for child in plan.children
        ),
        conditions=conditions,
        events=tuple(replace(event, message=text(event.message)) for event in plan.events),
    )


def _held_json(held: HeldDeletion) -> dict[str, Any]:
    action = {"deletion": "delete", "release": "release"}[held.verb]
    return {**identity(held.key), "child": held.child, "action": action, "reason": held.why}


def _requeue_json(requeue: Requeue | None) -> dict[str, Any] | None:
    return None if requeue is None else {"seconds": requeue.seconds, "reason": requeue.reason}


def json_patch(before: Object, after: Object, masks: Masks = NO_MASKS) -> list[dict[str, Any]]:
    """The RFC 6902 patch from one version of an object to another, independent of the order of fields. Values of
    Secrets are masked."""
    old, new = masks.pair(before, after)
    operations: list[dict[str, Any]] = jsonpatch.make_patch(_sorted(old), _sorted(new)).patch
    return operations


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _action_json(action: Action, masks: Masks) -> dict[str, Any]:
    if isinstance(action, FinalizerAction):
        return {
            "action": "addFinalizer" if isinstance(action, AddFinalizer) else "removeFinalizer",
            "finalizer": action.finalizer,
        }
    how: dict[str, Any]
    match action:
        case Create():
            what, how = "create", {"object": masks.object(action.object)}
        case Patch():
            what, how = "patch", {"why": action.why, "patch": json_patch(action.live, action.object, masks)}
        case ServerSideApply():
            by = {"manager": action.manager, "force": action.force} if action.manager else {}
            sent = {"exists": action.live is not None, **by, "object": masks.object(action.object)}
            what, how = "serverSideApply", {"why": action.why, **sent}
        case Delete():
            what, how = "delete", {"why": action.why}
        case Expire():
            what, how = "delete", {"why": action.why, "after": action.after}
    return {"action": what, "child": action.child, **identity(action.key), **how}


def _item_json(action: Action, plan: Plan) -> dict[str, Any]:
    item = plan.items.get(action.key)
    return {"item": item} if item is not None else {}


def _asked_json(action: Action | None, masks: Masks) -> dict[str, Any]:
    """The requested action: one of the plan, or one that the API server refuses."""
    found = _action_json(action, masks) if action is not None else {}
    return {
        name: found[name] for name in ("action", "finalizer", "group", "kind", "namespace", "name") if name in found
    }


def _child_json(child: ChildReport) -> dict[str, Any]:
    return {
        "id": child.id,
        "state": child.state.value,
        "template": child.template,
        "message": child.message,
        "objects": [_object_json(report) for report in child.objects],
    }


def _object_json(report: ObjectReport) -> dict[str, Any]:
    return {**identity(report.key), "state": report.state.value, "message": report.message}


def _problem_json(problem: Problem) -> dict[str, Any]:
    return {
        "child": problem.child,
        "reason": problem.reason,
        "message": problem.message,
        "site": site_json(problem.site),
    }


def _status_json(plan: Plan, resource: Object) -> dict[str, Any] | None:
    if plan.status is None:
        return None
    before = {"status": resource["status"]} if resource.get("status") is not None else {}
    old, new = plan.masks.texts(before, {"status": plan.status.status})
    patch = jsonpatch.make_patch(_sorted(old), _sorted(new)).patch if plan.status.patch is not None else []
    return {
        "value": new["status"],
        "patch": patch,
        "subresource": plan.status.subresource,
        "missing": [*plan.status.missing],
    }


def identity(key: ObjectKey) -> dict[str, str]:
    return {"group": key.group, "kind": key.kind, "namespace": key.namespace, "name": key.name}


def whole_identity(resource: Object) -> dict[str, Any]:
    """The identity of a custom resource with its version, its uid and its generation."""
    metadata = resource["metadata"]
    return {
        "apiVersion": resource["apiVersion"],
        "kind": resource["kind"],
        "namespace": metadata.get("namespace", ""),
        "name": metadata["name"],
        "uid": metadata.get("uid", ""),
        "generation": metadata.get("generation"),
    }


def site_json(site: Site | None) -> dict[str, Any] | None:
    return None if site is None else {"path": site.path, "line": site.line, "column": site.column}
