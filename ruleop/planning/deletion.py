"""Plans the deletion of a CR that has ruleop's finalizer.

Children with an ownerReference are left to the garbage collector. The rest is done here, in this order: the children of
`finalize` are created and have to become ready, then those of each item of a `forEach`, objects in other namespaces and
those with an order are deleted, orphans are released, and then ruleop's finalizer is removed. `children` are not
rendered, and `validate` is not evaluated.

A release of fields that the API server rejects does not hold the CR for ever: it is given up with an Event.

Orphans that the garbage collector would delete lose their ownerReference first, while `finalize` may still need them:
with `kubectl delete --cascade=orphan`, the garbage collector soon removes its own finalizer, and the objects may
follow.

The `finalize` children must not be created again after they were removed. So their completion is recorded (reason
Finalized) before the first of them is removed: in the status, or in the engine's memory if the status cannot be
written.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import field
from typing import TYPE_CHECKING, Final, Literal

from ruleop.kubernetes.kinds import Kind, ObjectKey
from ruleop.language.rules import ItemEnd
from ruleop.planning.child.existing import keep, release
from ruleop.planning.child.field_patches import release_fields
from ruleop.planning.child.item_ends import plan_ends
from ruleop.planning.child.kinds.item_end import ends_item, skip_reason
from ruleop.planning.child.pruning import (
    awaited_by,
    deadline,
    in_order,
    is_orphan,
    order_is_skipped,
    releases_in_order,
    still_there,
)
from ruleop.planning.model.actions import Action, Delete, Event, Failure, RemoveFinalizer, State
from ruleop.planning.model.conditions import FINALIZED, Conditions, find_condition
from ruleop.planning.model.marks import RESERVED, SKIP_FINALIZE, annotations_of, other_operators
from ruleop.planning.model.observed import Served, parse_time
from ruleop.planning.model.rule_permissions import denied_write, missing_list_permission
from ruleop.planning.status import overall_conditions
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Rule
    from ruleop.planning.child.children import Children
    from ruleop.planning.child.existing import Existing
    from ruleop.planning.child.field_patches import PatchedObject
    from ruleop.planning.model.actions import Failed, Problem
    from ruleop.planning.model.observed import Observed

FIELDS_NOT_RELEASED: Final = "FieldsNotReleased"
NOT_DELETED: Final = "NotDeleted"
LEFT_BEHIND: Final = "LeftBehind"
RELEASE_PATIENCE: Final = 600.0
"""Seconds from the deletion of a CR until a release that the API server rejects as invalid is given up."""


@dataclass(slots=True)
class DeletionPlan:
    """One step of a deletion: actions, and the conditions to report."""

    conditions: Conditions
    actions: list[Action] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    check_after: float | None = None  # seconds


def plan_deletion(rule: Rule, resource: Object, observed: Observed, children: Children) -> DeletionPlan:
    last_reason = children.history.reason
    if observed.finalizer not in (resource["metadata"].get("finalizers") or []):
        return DeletionPlan(_deleting("Deleting", _held_by_others(resource, observed.finalizer)))
    done = _is_finalized(resource, last_reason)
    why_not = skip_reason(resource, observed)
    final = [rule.finalize[id_] for id_ in rule.order.final if not isinstance(rule.finalize[id_].form, ItemEnd)]
    if final and not done and not why_not:
        if kept := list(_keep_actions(rule, resource, children)):
            return DeletionPlan(_deleting("Finalizing"), kept)
        children.plan_all(final)
        if not all(child_plan.ready or child_plan.state is State.UNWANTED for child_plan in children.plans.values()):
            return DeletionPlan(_finalizing(children), children.actions())
        return DeletionPlan(_deleting(FINALIZED), check_after=0.0)
    plan = _cleanup(rule, resource, observed, children, reason=FINALIZED if done else "Deleting")
    if (
        rule.finalize
        and why_not
        and not done
        and find_condition(resource, "Ready").get("reason", last_reason) != "Deleting"
    ):
        plan.events.append(Event("Warning", "FinalizeSkipped", why_not))
    return plan


def without_account(resource: Object, observed: Observed, problem: Problem) -> DeletionPlan:
    """The step while it is not known by whose permissions objects are deleted (`writeAs`)."""
    finalizer, message = observed.finalizer, f"{problem.child}: {problem.message}"
    if finalizer not in (resource["metadata"].get("finalizers") or []):
        return DeletionPlan(_deleting("Deleting", _held_by_others(resource, finalizer)))
    if why_not := skip_reason(resource, observed):
        event = Event("Warning", LEFT_BEHIND, f"{message}; gave up on owned objects: {why_not}")
        return DeletionPlan(_deleting("Deleting"), [RemoveFinalizer(ObjectKey.of(resource), finalizer)], [event])
    advice = f"owned objects cannot be deleted. Set the annotation {SKIP_FINALIZE} to give up on them"
    return DeletionPlan(Conditions.of("Deleting", f"{message}; {advice}", stalled=True))


def _deleting(reason: str, message: str = "") -> Conditions:
    return Conditions.of(reason, message, reconciling=True)


def _held_by_others(resource: Object, finalizer: str) -> str:
    """A message about finalizers that this operator does not remove."""
    return "; ".join(
        f"held by the finalizer {RESERVED}{each} of the operator {each}: is it running? "
        f"If this is the same operator with another name: `ruleop rename {each}`"
        for each in other_operators(resource, finalizer)
    )


def _is_finalized(resource: Object, last_reason: str) -> bool:
    """Whether Ready has the reason Finalized, now or before a pause."""
    return FINALIZED in {find_condition(resource, "Ready").get("reason"), last_reason}


def _finalizing(children: Children) -> Conditions:
    problems = children.report.problems
    message = overall_conditions(children, problems).ready.message
    return Conditions.of("Finalizing", message, reconciling=not problems, stalled=bool(problems))


def _orphans_all(resource: Object) -> bool:
    """`kubectl delete --cascade=orphan`."""
    return "orphan" in (resource["metadata"].get("finalizers") or [])


def _keep_actions(rule: Rule, resource: Object, children: Children) -> Iterator[Action]:
    for each in children.existing:
        if each.child in rule.finalize or each.claim.kept:
            continue
        if _orphans_all(resource) or (not each.claim.annotated and is_orphan(children, each)):
            yield keep(each.child, each.live, each.key, children.owner)


def _cleanup(rule: Rule, resource: Object, observed: Observed, children: Children, *, reason: str) -> DeletionPlan:
    """Removes all objects that the garbage collector will not delete; once none is left, removes ruleop's finalizer."""
    if observed.held_until:
        message = f"{deadline(observed.held_until)}: the rules have just changed, and more files of the edit may follow"
        return DeletionPlan(_deleting(reason, message))
    all_orphans = _orphans_all(resource)
    ordered = set[ObjectKey]() if all_orphans else {each.key for each in in_order(children)}
    left = [
        each
        for each in children.existing
        if each.claim.annotated or each.key in ordered or all_orphans or is_orphan(children, each)
    ]
    abandoned = dict(_abandoned(resource, observed, children, left))
    left = [each for each in left if each.key not in abandoned]
    given_up = dict(_given_up(resource, observed, children)) if children.patched else {}
    patched = [each for each in children.patched if each.key not in given_up]
    if left or patched:
        # A deletion may take time. The event of the deleted object starts the next pass.
        awaited = awaited_by(children, left, patched) if ordered or (patched and not all_orphans) else {}
        is_skipped = bool(awaited and order_is_skipped(children))
        stays = _stays_for_items(children, left)
        actions: list[Action] = []
        expected: dict[ObjectKey, str] = {}
        for fields in patched:
            expected[fields.key] = _expected_release(children, fields)
            if (why_not := awaited.get((fields.key, fields.child))) is not None and not is_skipped:
                expected[fields.key] = f"the fields of {fields.key} are to be released: {why_not}"
            elif not left or releases_in_order(rule, fields):
                # The others last, because children may have waited for these fields when they were created.
                actions.append(release_fields(fields))
        for each in left:
            if ends_item(rule, each):
                expected |= {each.key: still_there(each)} if each.terminating else {}
            elif is_orphan(children, each) or (all_orphans and each.child not in rule.finalize):
                actions.append(release(each.child, each.live, each.key, children.owner))
                expected[each.key] = _expected_end(children, each, "released")
            elif (why_not := awaited.get((each.key, each.child))) is not None and not is_skipped:
                expected[each.key] = f"{each.key} is to be deleted: {why_not}"
            elif each.key in stays:
                expected[each.key] = f"{each.key} is to be deleted when all items have ended"
            else:
                expected[each.key] = still_there(each) if each.terminating else _expected_end(children, each, "gone")
                if not each.terminating:
                    actions.append(_delete(rule, each, in_order=each.key in ordered, early=why_not is not None))
        if rule.item_ends:
            plan = _end_items(children, actions, expected, reason)
        else:
            plan = DeletionPlan(_deleting(reason, _listed(expected.values())), actions)
        plan.events.extend(_release_events(children))
        plan.events.extend(_denied_events(children, left, expected))
        return plan
    unread = next(missing_read_permissions(rule, observed, children.owner.namespace), None)
    if unread is not None and annotations_of(resource).get(SKIP_FINALIZE) != "true":
        message = (
            f"{unread}; owned objects might be left behind. "
            f"Grant it, or set the annotation {SKIP_FINALIZE} to give up on them"
        )
        return DeletionPlan(Conditions.of(reason, message, stalled=True))
    events = [Event("Warning", FIELDS_NOT_RELEASED, why) for why in given_up.values()]
    events += [Event("Warning", LEFT_BEHIND, why) for why in abandoned.values()]
    return DeletionPlan(_deleting(reason), [RemoveFinalizer(ObjectKey.of(resource), observed.finalizer)], events)


def _given_up(resource: Object, observed: Observed, children: Children) -> Iterator[tuple[ObjectKey, str]]:
    """The objects whose release the API server has rejected, and for which the deletion does not wait any longer, with
    the reason. Others may write the object, so they must not be able to hold the CR for ever."""
    if children.history.writes is not None:  # the next pass decides
        return
    skipped = skip_reason(resource, observed)
    for each in children.patched:
        failed = children.history.unreleased.get(each.key)
        if failed is None:
            continue
        end = _patience_ends(resource, failed)
        if skipped or (end is not None and parse_time(observed.now) >= end):
            because = skipped or f"it has been rejected for {RELEASE_PATIENCE // 60:.0f} minutes"
            yield each.key, f"{_rejected_release(children, each, failed)}; gave up on it: {because}"


def _abandoned(
    resource: Object, observed: Observed, children: Children, left: Iterable[Existing]
) -> Iterator[tuple[ObjectKey, str]]:
    """The objects that may not be deleted or released, and on which somebody gave up, with the reason. In a namespace
    that is being deleted, the permissions of its accounts may be gone for good."""
    if children.history.writes is not None:  # the next pass decides
        return
    skipped = skip_reason(resource, observed)
    for each in left if skipped else ():
        failed = children.history.unreleased.get(each.key)
        is_final = annotations_of(resource).get(SKIP_FINALIZE) == "true" or (failed is not None and failed.account)
        if failed is not None and failed.failure is Failure.FORBIDDEN and failed.verb and is_final:
            yield each.key, f"{each.key} is left behind: {_denied(children, each, failed)}; gave up on it: {skipped}"


def _denied(children: Children, each: Existing, failed: Failed) -> str:
    return denied_write(children.rule, children.observed.kinds.info(Kind.of(each.live)), each.key.namespace, failed)


def _expected_end(children: Children, each: Existing, end: Literal["gone", "released"]) -> str:
    failed = children.history.failure(each.key)
    if failed is None or not failed.verb:
        return f"{each.key} is to be {end}"
    by_hand = f"set the annotation {SKIP_FINALIZE} to give up on it"
    return f"{each.key} is to be {end}: {_denied(children, each, failed)}; {by_hand}"


def _denied_events(children: Children, left: Iterable[Existing], expected: Mapping[ObjectKey, str]) -> Iterator[Event]:
    """Events for the deletions and releases of this pass for which a permission is missing."""
    writes = children.history.writes
    for each in left:
        if writes is not None and each.key in writes.failed and writes.failed[each.key].verb:
            yield Event("Warning", NOT_DELETED, expected[each.key])


def _patience_ends(resource: Object, failed: Failed) -> float | None:
    """The time after which a rejected release is given up; None for one that succeeds when a permission is granted, or
    when the API server works again."""
    rejected = failed.failure in {Failure.INVALID, Failure.IMMUTABLE} or (
        failed.failure is Failure.FORBIDDEN and not failed.verb
    )
    return parse_time(resource["metadata"]["deletionTimestamp"]) + RELEASE_PATIENCE if rejected else None


def _release_events(children: Children) -> Iterator[Event]:
    """Events for the releases of this pass that the API server rejected. A repeated Event only increases its count."""
    writes = children.history.writes
    for each in children.patched:
        if writes is not None and each.key in writes.failed:
            yield Event("Warning", FIELDS_NOT_RELEASED, _expected_release(children, each))


def _stays_for_items(children: Children, left: Iterable[Existing]) -> frozenset[ObjectKey]:
    """The objects that stay until all items have ended, as they do for other children of `finalize`: all but those that
    the objects of items wait for."""
    rule = children.rule
    ended = {id_: child for id_, child in rule.children.items() if child.ended_by}
    if skip_reason(children.scope.resource, children.observed) or not (
        children.ending or any(each.child in ended for each in left)
    ):
        return frozenset()
    before = frozenset[str]().union(*(child.deletion.after for child in ended.values()))
    return frozenset(each.key for each in left if each.child not in {*ended, *before, *rule.finalize})


def _end_items(
    children: Children, deletions: list[Action], expected: dict[ObjectKey, str], reason: str
) -> DeletionPlan:
    ends = plan_ends(children, deletions)
    expected |= {key: f"{key} is to be deleted: {why}" for key, why in ends.held.items()}
    problems = children.report.problems
    doing = overall_conditions(children, problems).ready.message
    message = _listed([*filter(None, [doing]), *expected.values()])
    is_ending = bool(children.ending or ends.held)
    reason = "Finalizing" if is_ending and reason == "Deleting" else reason
    conditions = Conditions.of(reason, message, reconciling=not problems, stalled=bool(problems))
    return DeletionPlan(conditions, [*ends.writes, *ends.deletions])


def _listed(parts: Iterable[str]) -> str:
    found = list(parts)
    return "; ".join(found[:8] + ["and more"] * (len(found) > 8))


def _expected_release(children: Children, each: PatchedObject) -> str:
    failed = children.history.failure(each.key)
    if failed is None:
        return f"the fields of {each.key} are to be released"
    end = _patience_ends(children.scope.resource, failed)
    until = f" at {dt.datetime.fromtimestamp(end, dt.UTC):%H:%M:%S} UTC" if end is not None else ""
    by_hand = f"set the annotation {SKIP_FINALIZE} to give up on it"
    advice = f"given up{until}, or {by_hand}" if until else by_hand
    return f"{_rejected_release(children, each, failed)}; {advice}"


def _rejected_release(children: Children, each: PatchedObject, failed: Failed) -> str:
    rejected = f"the fields of {each.key} cannot be released"
    if failed.verb:
        info = children.observed.kinds.info(Kind.of(each.live))
        return f"{rejected}: {denied_write(children.rule, info, each.key.namespace, failed)}"
    secrecy = children.rule.secrecy_of(each.child)
    return f"{rejected}: {secrecy.rejection(failed.message, failed.redacted, failed.causes)}"


def missing_read_permissions(rule: Rule, observed: Observed, namespace: str) -> Iterator[str]:
    """Missing permissions to read kinds of which the rule may have objects that the garbage collector will not
    delete."""
    for each in rule.patches:
        if observed.kinds.state_of(each.target) is Served.FORBIDDEN:
            yield missing_list_permission(rule, observed.kinds.info(each.target.kind), namespace)
    for child in rule.owned_children:
        if child.final or child.deletion.policy is not None or rule.has_order or rule.reach.cluster:
            for kind in sorted(child.kinds):
                info = observed.kinds.info(kind)
                if rule.reach.cluster and info.places is not None:
                    yield from (
                        missing_list_permission(rule, info, each)
                        for each, state in info.places.items()
                        if state is Served.FORBIDDEN
                    )
                elif info.state is Served.FORBIDDEN:
                    yield missing_list_permission(rule, info, namespace)


def _delete(rule: Rule, each: Existing, *, in_order: bool, early: bool) -> Delete:
    why: Literal["finalized", "unordered", "ordered", "elsewhere"]
    if each.child in rule.finalize:
        why = "finalized"
    elif in_order:
        why = "unordered" if early else "ordered"
    else:
        why = "elsewhere"
    return Delete(each.key, each.child, each.live, why, after_writes=False)
