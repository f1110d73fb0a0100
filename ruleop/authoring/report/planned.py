"""A pass over a custom resource, as it is shown: its plan, what the API server would answer to the writes of it, and
its JSON.

`render`, `plan` and `explain` make these, from files or a cluster, and each form is made from them. Known values of
Secrets are masked in the texts of a plan as soon as it is one of these; the objects of its actions are masked when they
are shown.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import jsonpatch

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.language.secrets.masks import NO_MASKS, Masks
from ruleop.messages import shortened
from ruleop.planning.changes import NOTHING, flow
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
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Rule
    from ruleop.planning.changes import Difference
    from ruleop.planning.model.actions import Action, Problem
    from ruleop.planning.plan import Plan


# -- documents ---------------------------------------------------------------------------------------------------------
# Documents for programs: the values of the model as plain JSON, by one function.
#
# A field has its own name in camel case; the four names of an ObjectKey are among those of the value that has it. A
# field whose default is None is left out while it is None, so that a value writes only the fields of its sort. A class
# names in `DERIVED` the properties that belong to its document.

HIDDEN: Final = {"document": "hidden"}
"""Metadata of a field that only the text needs."""

NULL: Final = {"document": "null"}
"""Metadata of a field that is null while it is None."""

INLINE: Final = {"document": "inline"}
"""Metadata of a field whose own fields are among those of the value that has it. Of two with a name, the outer one
counts."""


def as_document(value: Any) -> Any:
    if isinstance(value, ObjectKey):
        return value._asdict()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [as_document(each) for each in value]
    if isinstance(value, Mapping) or not dataclasses.is_dataclass(value):
        return value
    found: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        mode, each = field.metadata.get("document"), getattr(value, field.name)
        if mode == "hidden" or (each is None and field.default is None and mode != "null"):
            continue
        if mode == "inline" or isinstance(each, ObjectKey):
            found |= {name: one for name, one in as_document(each).items() if name not in found}
        else:
            found[_name(field.name)] = as_document(each)
    return found | {_name(name): as_document(getattr(value, name)) for name in getattr(value, "DERIVED", ())}


def _name(name: str) -> str:
    first, *others = name.removesuffix("_").split("_")
    return first + "".join(map(str.capitalize, others))


# -- the pass ----------------------------------------------------------------------------------------------------------

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
    action: Action | None = dataclasses.field(default=None, metadata=HIDDEN)
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


@dataclass(frozen=True, slots=True)
class Planned:
    """A custom resource, as the API server has it or would store it, and the plan of its next pass."""

    resource: Object
    plan: Plan | None = None
    rule: Rule | None = None  # None: no rule selects it
    error: str = ""  # why there is no plan
    answers: tuple[Answer, ...] = ()  # of the API server to a dry run
    number: int = 0  # of the pass, if there are several

    def __post_init__(self) -> None:
        if self.plan is not None:
            object.__setattr__(self, "plan", _with_masked_texts(self.plan))

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self.plan.problems if self.plan is not None else ()

    @property
    def key(self) -> ObjectKey:
        return ObjectKey.of(self.resource)

    @property
    def title(self) -> str:
        _, kind, namespace, name = self.key
        return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _with_masked_texts(plan: Plan) -> Plan:
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


# -- JSON --------------------------------------------------------------------------------------------------------------
# Plans as JSON documents. The values of a plan are its model: here is only what differs from them, such as RFC 6902
# patches. Values of Secrets are masked, and the metadata that ruleop itself writes is in full.


def plan_document(planned: Planned) -> dict[str, Any]:
    """The plan as plain JSON. Changes are RFC 6902 patches of the live objects; values of Secrets are masked."""
    plan = planned.plan
    assert plan is not None
    asked = [{**_asked(each, plan.masks), **as_document(each)} for each in planned.answers]
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
        "status": _status(plan, planned.resource),
        "conditions": [each.as_json() for each in plan.conditions or ()],
        "events": as_document(plan.events),
        "requeueAfter": as_document(plan.requeue_after),
        **({"expires": plan.expires} if plan.expires else {}),
        **({"serverAnswers": asked} if asked else {}),
        **({"pass": planned.number} if planned.number else {}),
    }


def rendered_document(planned: Planned) -> dict[str, Any]:
    """The children as rendered, in apply order, and why others are missing. Values of Secrets in them are not masked:
    they can be applied."""
    plan = planned.plan
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
