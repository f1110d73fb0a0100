"""The JSON of `plan`, `explain`, `history` and `render`. The values of a view and of its plan are the model: here is
only what differs from them, such as RFC 6902 patches. Values of Secrets are masked, and the metadata that ruleop
itself writes is in full."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jsonpatch

from ruleop.authoring.report.documents import as_document
from ruleop.language.secrets.masks import NO_MASKS, Masks
from ruleop.planning.model.actions import (
    Action,
    AddFinalizer,
    Create,
    Delete,
    Expire,
    FinalizerAction,
    Patch,
    ServerSideApply,
)

if TYPE_CHECKING:
    from ruleop.authoring.report.views import Answer, ResourceView
    from ruleop.kubernetes.kinds import Object
    from ruleop.planning.plan import Plan


def view_document(view: ResourceView) -> dict[str, Any]:
    """The document of `explain`, with the plan of the next pass."""
    names = ("ready", "state", "message", "rule", "conditions", "problems", "waits", "objects", "events")
    following = plan_document(view) if view.plan is not None else None
    return {**_part(view, *names), "next": following, "operator": view.operator, "notes": list(view.notes)}


def history_document(view: ResourceView) -> dict[str, Any]:
    """The past changes of a custom resource, which the document of the view does not have."""
    return _part(view, "changes", "notes")


def _part(view: ResourceView, *names: str) -> dict[str, Any]:
    """Some properties of a view, after the identity of the custom resource and how far the operator has come with
    it."""
    metadata, status = view.obj["metadata"], view.obj.get("status")
    identity = {
        "apiVersion": view.obj["apiVersion"],
        "kind": view.key.kind,
        "namespace": view.key.namespace,
        "name": view.key.name,
        "uid": metadata.get("uid", ""),
        "generation": metadata.get("generation"),
        "observedGeneration": status.get("observedGeneration") if isinstance(status, Mapping) else None,
    }
    return {"resource": identity, **{name: as_document(getattr(view, name)) for name in names}}


def plan_document(view: ResourceView) -> dict[str, Any]:
    """The plan as plain JSON. Changes are RFC 6902 patches of the live objects; values of Secrets are masked."""
    plan = view.plan
    assert plan is not None
    asked = [{**_asked(each, plan.masks), **as_document(each)} for each in view.answers]
    return {
        **_whose(plan),
        "quiet": plan.quiet,
        "actions": [
            {**_action(each, plan.masks), **({"item": plan.items[each.key]} if each.key in plan.items else {})}
            for each in plan.actions
        ],
        "heldBack": [
            {
                **as_document(each.key),
                "child": each.child,
                "action": {"deletion": "delete", "release": "release"}[each.verb],
                "reason": each.why,
            }
            for each in plan.held
        ],
        "children": as_document(plan.children),
        **_obstructions(plan),
        "status": _status(plan, view.obj),
        "conditions": [each.as_json() for each in plan.conditions or ()],
        "events": as_document(plan.events),
        "requeueAfter": as_document(plan.requeue_after),
        **({"expires": plan.expires} if plan.expires else {}),
        **({"serverAnswers": asked} if asked else {}),
        **({"pass": view.number} if view.number else {}),
    }


def rendered_document(view: ResourceView) -> dict[str, Any]:
    """The children as rendered, in apply order, and why others are missing. Values of Secrets in them are not masked:
    they can be applied."""
    plan = view.plan
    assert plan is not None
    objects = [{"child": child, "template": template, "object": obj} for child, template, obj in plan.rendered]
    return {**_whose(plan), "objects": objects, **_obstructions(plan)}


def _whose(plan: Plan) -> dict[str, Any]:
    account = {"account": str(plan.account)} if plan.account is not None else {}
    return {"resource": {**as_document(plan.resource), "uid": plan.uid}, "rule": plan.rule, **account}


def _obstructions(plan: Plan) -> dict[str, Any]:
    waits = [{"child": each.child, "for": each.for_what, "site": as_document(each.site)} for each in plan.waits]
    return {"waits": waits, "problems": as_document(plan.problems)}


def json_patch(before: Object, after: Object, masks: Masks = NO_MASKS) -> list[dict[str, Any]]:
    """The RFC 6902 patch from one version of an object to another, independent of the order of fields. Values of
    Secrets are masked."""
    return _patch(*masks.pair(before, after))


def _patch(before: Any, after: Any) -> list[dict[str, Any]]:
    operations: list[dict[str, Any]] = jsonpatch.make_patch(_sorted(before), _sorted(after)).patch
    return operations


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _action(action: Action, masks: Masks) -> dict[str, Any]:
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
        case _:
            what = "addFinalizer" if isinstance(action, AddFinalizer) else "removeFinalizer"
            return {"action": what, "finalizer": action.finalizer}
    return {"action": what, "child": action.child, **as_document(action.key), **how}


def _asked(answer: Answer, masks: Masks) -> dict[str, Any]:
    """The requested action: one of the plan, or one that the API server refuses."""
    if (action := answer.action) is None:
        return {}
    names = ("action", "finalizer") if isinstance(action, FinalizerAction) else ("action", *action.key._fields)
    found = _action(action, masks)
    return {name: found[name] for name in names}


def _status(plan: Plan, resource: Object) -> dict[str, Any] | None:
    if (status := plan.status) is None:
        return None
    before = {"status": resource["status"]} if resource.get("status") is not None else {}
    old, new = plan.masks.texts(before, {"status": status.status})
    return {
        "value": new["status"],
        "patch": _patch(old, new) if status.patch is not None else [],
        "subresource": status.subresource,
        "missing": [*status.missing],
    }
