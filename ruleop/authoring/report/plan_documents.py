"""Plans as JSON documents. The values of a plan are its model: here is only what differs from them, such as RFC 6902
patches. Values of Secrets are masked, and the metadata that ruleop itself writes is in full."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import jsonpatch

from ruleop.authoring.report.documents import HIDDEN, as_document
from ruleop.language.secrets.masks import NO_MASKS, Masks
from ruleop.messages import shortened
from ruleop.planning.changes.differences import NOTHING, flow
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
    from collections.abc import Iterable, Iterator

    from ruleop.kubernetes.kinds import Object
    from ruleop.planning.changes.differences import Difference
    from ruleop.planning.plan import Plan

MAX_PATHS: Final = 4
"""The number of fields added by the server that are named on the line of a write."""


class Verdict(Enum):
    """The API server's response to the dry run of a write."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNASKED = "unasked"


_WORDS: Final = {
    Verdict.ACCEPTED: "accepted by the server",
    Verdict.REFUSED: "refused by the server",
    Verdict.UNASKED: "cannot be asked",
}


@dataclass(frozen=True, slots=True)
class StoredField:
    """A field that the server stores with another value than it was sent."""

    field: str
    sent: Any
    stored: Any  # None: it is removed

    @classmethod
    def of(cls, change: Difference) -> StoredField:
        return cls(change.path, change.before, None if change.after is NOTHING else change.after)

    def __str__(self) -> str:
        stored = "(removed)" if self.stored is None else shortened(flow(self.stored))
        return f"{self.field}: {shortened(flow(self.sent))} -> {stored}"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one write; without an action, why a child that waits cannot be asked about. Texts and values that
    may come from a Secret are masked."""

    verdict: Verdict
    child: str
    action: Action | None = field(default=None, metadata=HIDDEN)
    message: str = ""
    changed: tuple[StoredField, ...] = ()
    added: tuple[str, ...] = ()  # paths of fields that the server adds: defaults, and what webhooks set
    warnings: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """The answer in sentences, the first of which has the verdict."""
        shown = ", ".join(self.added[:MAX_PATHS])
        more = f" and {len(self.added) - MAX_PATHS} more" if len(self.added) > MAX_PATHS else ""
        adds = f"; the server adds {shown}{more}" if shown else ""
        message = f": {self.message}" if self.message else ""
        yield f"{_WORDS[self.verdict]}{message}{adds}"
        yield from (f"the server changes {each}" for each in self.changed)
        yield from (f"the server warns: {each}" for each in self.warnings)


def plan_document(plan: Plan, resource: Object, answers: Iterable[Answer] = ()) -> dict[str, Any]:
    """The plan as plain JSON. Changes are RFC 6902 patches of the live objects; values of Secrets are masked."""
    plan = with_masked_texts(plan)
    asked = [{**_asked(each, plan.masks), **as_document(each)} for each in answers]
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
        "status": _status(plan, resource),
        "conditions": [each.as_json() for each in plan.conditions or ()],
        "events": as_document(plan.events),
        "requeueAfter": as_document(plan.requeue_after),
        **({"expires": plan.expires} if plan.expires else {}),
        **({"serverAnswers": asked} if asked else {}),
    }


def rendered_document(plan: Plan) -> dict[str, Any]:
    """The children as rendered, in apply order, and why others are missing. Values of Secrets in them are not masked:
    they can be applied."""
    objects = [{"child": child, "template": template, "object": obj} for child, template, obj in plan.rendered]
    return {**_whose(plan), "objects": objects, **_obstructions(with_masked_texts(plan))}


def _whose(plan: Plan) -> dict[str, Any]:
    account = {"account": str(plan.account)} if plan.account is not None else {}
    return {"resource": {**as_document(plan.resource), "uid": plan.uid}, "rule": plan.rule, **account}


def _obstructions(plan: Plan) -> dict[str, Any]:
    waits = [{"child": each.child, "for": each.for_what, "site": as_document(each.site)} for each in plan.waits]
    return {"waits": waits, "problems": as_document(plan.problems)}


def with_masked_texts(plan: Plan) -> Plan:
    """The plan without known values of Secrets in its messages."""
    text = plan.masks.text
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
        conditions=plan.conditions.with_messages(text) if plan.conditions is not None else None,
        events=tuple(replace(event, message=text(event.message)) for event in plan.events),
    )


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
