"""The objects of a custom resource, each with its state: as it is, and as the plan of the next reconcile sees it.

Of workloads that are not ready, the pods: their containers report what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.live.field_managers import last_change, managed_fields
from ruleop.authoring.report.object_problems import object_problems, pod_reason
from ruleop.authoring.report.views import ObjectView, object_view
from ruleop.kubernetes.kinds import GroupKind, Kind, Object, ObjectKey
from ruleop.language.rules import Once, Patched, Scheduled
from ruleop.planning import Owner, State
from ruleop.planning.changes.writes import changes
from ruleop.planning.child.field_patches import HELD_ADVICE
from ruleop.planning.child.readiness import readiness
from ruleop.planning.model.actions import Delete, ResourceAction
from ruleop.planning.model.conditions import find_condition
from ruleop.planning.model.managers import managers_on
from ruleop.planning.model.marks import RULEOP, claim_on, is_paused, part_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.authoring.live.reading.reader import LiveObjects, Reader
    from ruleop.language.rules import Rule
    from ruleop.planning import Action, ChildReport, Kinds, ObjectReport, Plan

POD: Final = Kind("", "v1", "Pod")
MAX_PODS: Final = 5


async def unready_pods(reader: Reader, workload: Object) -> list[ObjectView]:
    """The pods of a workload that are not ready, at most `MAX_PODS`; none for other objects. Raises ApiError."""
    labels = _match_labels(workload)
    if not labels:
        return []
    selector = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
    found: list[ObjectView] = []
    async for page in reader.pages(POD, workload["metadata"].get("namespace", ""), labels=selector):
        for pod in page:
            state = readiness(pod)
            if not state.ready and len(found) < MAX_PODS:
                word = "failed" if state.failed else "not ready"
                found.append(
                    ObjectView(
                        ObjectKey.of(pod),
                        word,
                        pod_reason(pod),
                        problems=object_problems(pod),
                        last_change=last_change(pod),
                    )
                )
    return found


def _match_labels(workload: Object) -> Mapping[str, Any]:
    spec = workload.get("spec")
    selector = spec.get("selector") if isinstance(spec, Mapping) and "template" in spec else None
    labels = selector.get("matchLabels") if isinstance(selector, Mapping) else None
    return labels if isinstance(labels, Mapping) else {}


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
    """A custom resource as it was read, and its plan if there are rules."""

    resource: Object
    objects: LiveObjects
    kinds: Kinds
    rule: Rule | None = None
    plan: Plan | None = None


def explained_objects(found: Found) -> Iterator[ObjectView]:
    """The desired objects in the order of the rules, then the others that the custom resource owns."""
    owner = Owner.of(found.resource)
    owned = {
        key: obj
        for obj in found.objects.children(owner.part_of)
        if claim_on(obj, key := ObjectKey.of(obj), owner).owned
    }
    for report in found.plan.children if found.plan is not None else ():
        if report.state is State.UNWANTED:
            continue
        for each in report.objects:
            owned.pop(each.key, None)
            yield _desired(report, each, found)
        if not report.objects:
            existing = [key for key, obj in owned.items() if object_view(obj).child == report.id]
            if not existing and (report.state is not State.READY or _has_runs(report, found)):
                yield _absent(report, found)
            held = {each.key for each in found.plan.held} if found.plan is not None else set()
            for key in existing:
                if key not in held and (found.plan is None or _action_on(key, found.plan) is None):
                    yield _held_back(owned.pop(key), report)
    for key, obj in owned.items():
        yield _other(key, obj, found)


def _desired(report: ChildReport, each: ObjectReport, found: Found) -> ObjectView:
    assert found.plan is not None
    live, plan = found.objects.find(each.key), found.plan
    state, message = _WORDS[each.state], _message(each.message)
    if live is None:
        missing = "missing" if each.state is State.PROGRESSING else state
        return ObjectView(each.key, missing, message, report.id, exists=False)
    action = _action_on(each.key, plan)
    is_stopped = is_paused(found.resource) and each.message.startswith("not ")
    if each.state is State.READY or (each.state is State.PROGRESSING and (action is not None or is_stopped)):
        own, more = object_view(live), ""
        if is_stopped:
            more = "will not be changed while the CR is paused"
        elif action is not None:
            failed = report.id in _failed_children(found.resource)
            more = "its last change failed" if failed else "will be changed"
        state, message = own.state, _joined(own.message, more)
    elif each.state is State.WAITING:
        message = f"its update waits for {message}"
    planned = [change.path for change in changes(action, found.kinds, plan.masks)] if action is not None else []
    child = found.rule.children.get(report.id) if found.rule is not None else None
    if child is not None and isinstance(child.form, Patched):
        if each.state is State.READY:  # whatever its own controller says of the object
            state, message = "ready", ""
        elif held := _held(found.resource, each.key):
            state, message = "not ready", held
        return _of_live(live, state, message, report.id, planned, _manager(live, found.resource, report.id))
    return _of_live(live, state, message, report.id, planned)


def _absent(report: ChildReport, found: Found) -> ObjectView:
    """A child without objects: it waits, or cannot be rendered."""
    assert found.rule is not None
    child = next((each for each in found.rule.every_child if each.id == report.id), None)
    kinds = {kind.versionless for kind in child.kinds} if child is not None else set()
    kind = kinds.pop() if len(kinds) == 1 else GroupKind("", "")
    key = ObjectKey(*kind, found.resource["metadata"].get("namespace") or "", "")
    message = "its run has succeeded" if report.state is State.READY else _message(report.message)
    return ObjectView(key, _WORDS[report.state], message, report.id, exists=False)


def _has_runs(report: ChildReport, found: Found) -> bool:
    """Whether the child has no object because its run has ended; others without one have an empty list."""
    child = found.rule.children.get(report.id) if found.rule is not None else None
    return child is not None and isinstance(child.form, Once | Scheduled)


def _held_back(obj: Object, report: ChildReport) -> ObjectView:
    """An object of a child that waits, cannot be rendered, or has runs that ended: it stays as it is."""
    own, message = object_view(obj), _message(report.message)
    more = f"its update {message}" if message.startswith("waits for ") else f"its update: {message}" if message else ""
    return _of_live(obj, own.state, _joined(own.message, more), report.id)


def _other(key: ObjectKey, obj: Object, found: Found) -> ObjectView:
    """An owned object that is not among the desired ones, or of which no rules are known."""
    own, action = object_view(obj), _action_on(key, found.plan) if found.plan is not None else None
    state, message = own.state, own.message
    held = next((each for each in found.plan.held if each.key == key), None) if found.plan is not None else None
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


def _action_on(key: ObjectKey, plan: Plan) -> Action | None:
    return next((each for each in plan.actions if not isinstance(each, ResourceAction) and each.key == key), None)


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


def _message(text: str) -> str:
    """The message of a state, which the tree names itself."""
    return "waitFor is not true" if text.startswith(("waits for waitFor: ", "waitFor: ")) else text


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))
