"""The objects of a custom resource, each with its state: as it is, and as the plan of the next reconcile sees it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ruleop.authoring.live.field_managers import last_change, managed_fields
from ruleop.authoring.report import ObjectView, object_problems, object_view, view_without_object, wait_message
from ruleop.kubernetes.kinds import Object, ObjectKey
from ruleop.language.rules import Once, Patched, Scheduled
from ruleop.planning import Owner, State
from ruleop.planning.changes import changes
from ruleop.planning.child.field_patches import HELD_ADVICE
from ruleop.planning.model.actions import Delete, ResourceAction
from ruleop.planning.model.conditions import find_condition
from ruleop.planning.model.managers import managers_on
from ruleop.planning.model.marks import RULEOP, claim_on, is_paused, part_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.authoring.live.reading.reader import LiveObjects
    from ruleop.authoring.report import Planned
    from ruleop.planning import Action, ChildReport, Kinds, ObjectReport, Plan

_WORDS: Final = {
    State.READY: "ready",
    State.PROGRESSING: "not ready",
    State.WAITING: "waiting",
    State.FAILED: "failed",
    State.REFUSED: "name conflict",
    State.UNWANTED: "not desired",
    State.TERMINATING: "is being deleted",
}


@dataclass(frozen=True, slots=True)
class Found:
    """A custom resource as it was read: its pass, which has a plan if there are rules, and the objects."""

    planned: Planned
    objects: LiveObjects
    kinds: Kinds

    @property
    def plan(self) -> Plan | None:
        return self.planned.plan


def explained_objects(found: Found) -> Iterator[ObjectView]:
    """The desired objects in the order of the rules, then the others that the custom resource owns."""
    owner, plan = Owner.of(found.planned.resource), found.plan
    owned = {
        key: obj
        for obj in found.objects.children(owner.part_of)
        if claim_on(obj, key := ObjectKey.of(obj), owner).owned
    }
    for report in plan.children if plan is not None else ():
        if report.state is State.UNWANTED:
            continue
        for each in report.objects:
            owned.pop(each.key, None)
            yield _desired(report, each, found)
        if not report.objects:
            existing = [key for key, obj in owned.items() if object_view(obj).child == report.id]
            if not existing and (report.state is not State.READY or _has_runs(report, found)):
                view = view_without_object(report, found.planned, _WORDS[report.state])
                yield replace(view, message="its run has succeeded") if report.state is State.READY else view
            held = {each.key for each in plan.held} if plan is not None else set()
            for key in existing:
                if key not in held and _action_on(key, plan) is None:
                    yield _held_back(owned.pop(key), report)
    for key, obj in owned.items():
        yield _other(key, obj, plan)


def _desired(report: ChildReport, each: ObjectReport, found: Found) -> ObjectView:
    plan, resource, rule = found.plan, found.planned.resource, found.planned.rule
    assert plan is not None
    live = found.objects.find(each.key)
    state, message = _WORDS[each.state], each.message
    if each.state is State.WAITING:
        message = wait_message(message) if live is None else _update_of(message)
    if live is None:
        missing = "missing" if each.state is State.PROGRESSING else state
        return ObjectView(each.key, missing, message, report.id, exists=False)
    action = _action_on(each.key, plan)
    is_stopped = is_paused(resource) and message.startswith("not ")
    if each.state is State.READY or (each.state is State.PROGRESSING and (action is not None or is_stopped)):
        own, more = object_view(live), ""
        if is_stopped:
            more = "will not be changed while the CR is paused"
        elif action is not None:
            failed = report.id in _failed_children(resource)
            more = "its last change failed" if failed else "will be changed"
        state, message = own.state, _joined(own.message, more)
    planned = [change.path for change in changes(action, found.kinds, plan.masks)] if action is not None else []
    child = rule.children.get(report.id) if rule is not None else None
    manager = RULEOP
    if child is not None and isinstance(child.form, Patched):
        manager = _manager(live, resource, report.id)
        if each.state is State.READY:  # whatever its own controller says of the object
            state, message = "ready", ""
        elif held := _held(resource, each.key):
            state, message = "not ready", held
    return _of_live(live, state, message, report.id, planned, manager)


def _has_runs(report: ChildReport, found: Found) -> bool:
    """Whether the child has no object because its run has ended; others without one have an empty list."""
    rule = found.planned.rule
    child = rule.children.get(report.id) if rule is not None else None
    return child is not None and isinstance(child.form, Once | Scheduled)


def _held_back(obj: Object, report: ChildReport) -> ObjectView:
    """An object of a child that waits, cannot be rendered, or has runs that ended: it stays as it is."""
    own = object_view(obj)
    more = _update_of(report.message) if report.message else ""
    return _of_live(obj, own.state, _joined(own.message, more), report.id)


def _update_of(message: str) -> str:
    """The reason that an existing object is not updated."""
    text = wait_message(message)
    return f"its update {text}" if text.startswith("waits for ") else f"its update: {text}"


def _other(key: ObjectKey, obj: Object, plan: Plan | None) -> ObjectView:
    """An owned object that is not among the desired ones, or of which no rules are known."""
    own, action = object_view(obj), _action_on(key, plan)
    state, message = own.state, own.message
    held = next((each for each in plan.held if each.key == key), None) if plan is not None else None
    if action is not None:
        state, message = "not desired", "will be deleted" if isinstance(action, Delete) else "will be released"
    elif held is not None:
        state, message = "not desired", f"its {held.verb} is held back {held.why}"
    return _of_live(obj, state, message, own.child)


def _of_live(
    obj: Object, state: str, message: str, child: str, planned: Sequence[str] = (), manager: str = RULEOP
) -> ObjectView:
    return ObjectView(
        ObjectKey.of(obj),
        state,
        message,
        child,
        problems=() if state == "ready" else object_problems(obj),
        last_change=last_change(obj),
        fields=tuple(managed_fields(obj, planned, manager=manager)) if state != "name conflict" else (),
    )


def _manager(live: Object, resource: Object, child: str) -> str:
    """The manager by which a child has set fields of an object; empty if it has not."""
    label = part_of(resource)
    return next((each.name for each in managers_on(live) if (each.part_of, each.child) == (label, child)), "")


def _action_on(key: ObjectKey, plan: Plan | None) -> Action | None:
    actions = plan.actions if plan is not None else ()
    return next((each for each in actions if not isinstance(each, ResourceAction) and each.key == key), None)


def _failed_children(resource: Object) -> set[str]:
    """The children that the operator reported an error of."""
    if find_condition(resource, "Stalled").get("status") != "True":
        return set()
    parts = str(find_condition(resource, "Ready").get("message") or "").split("; ")
    return {part.partition(": ")[0] for part in parts}


def _held(resource: Object, key: ObjectKey) -> str:
    """The fields of an object that others hold, as the operator has reported."""
    _, names_it, text = str(find_condition(resource, "Ready").get("message") or "").partition(f"{key}: ")
    ends = [end for advice in HELD_ADVICE if (end := text.find(advice) + len(advice)) >= len(advice)]
    return text[: min(ends)] if names_it and ends else ""


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))
