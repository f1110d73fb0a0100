"""A CR that is being deleted and carries our finalizer.

Children that refer to it are left to the garbage collector. What it cannot follow is ours to end: the children of
`finalize` are made and waited for, what lives elsewhere is deleted, what is to stay is released, and last our finalizer
goes. Nothing of `children` is rendered, and nothing validated.

What is to stay and is still the garbage collector's is taken from it before anything else, while it is needed for
`finalize`: a finalizer of the garbage collector's, by which a person says that all is to stay, is gone soon, and so may
be the objects.

That the `finalize` children are done has to be known after they are gone, or they would be made again. So it is said
(reason Finalized) before the first of them is removed: in the status, or, where none can be written, to the engine,
which remembers it until it stops.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ruleop.kinds import ObjectKey
from ruleop.planning.actions import Action, Delete, Event, RemoveFinalizer, State
from ruleop.planning.apply import keep, release
from ruleop.planning.conditions import FINALIZED, Conditions, condition_of
from ruleop.planning.marks import SKIP_FINALIZE, annotations_of
from ruleop.planning.observed import Served
from ruleop.planning.permissions import missing_list_permission
from ruleop.planning.pruning import deadline, is_orphan
from ruleop.planning.status import overall_conditions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kinds import Object
    from ruleop.planning.child_plan import Existing
    from ruleop.planning.children import Children
    from ruleop.planning.observed import Observed
    from ruleop.rules import Rule


@dataclass(slots=True)
class DeletionPlan:
    """What is left to do, and what to say meanwhile."""

    conditions: Conditions
    actions: list[Action] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    check_after: float | None = None  # seconds


def plan_deletion(rule: Rule, resource: Object, observed: Observed, children: Children) -> DeletionPlan:
    last_reason = children.history.reason
    if observed.finalizer not in (resource["metadata"].get("finalizers") or []):
        return DeletionPlan(_deleting("Deleting"))
    done = _is_finalized(resource, last_reason)
    why_not = _skip_reason(resource, observed)
    if rule.finalize and not done and not why_not:
        if kept := list(_keep_actions(rule, resource, children)):
            return DeletionPlan(_deleting("Finalizing"), kept)
        children.plan_all([rule.finalize[id_] for id_ in rule.final_order])
        if not all(child_plan.ready or child_plan.state is State.UNWANTED for child_plan in children.plans.values()):
            return DeletionPlan(_finalizing(children), children.actions())
        return DeletionPlan(_deleting(FINALIZED), check_after=0.0)
    plan = _cleanup(rule, resource, observed, children, reason=FINALIZED if done else "Deleting")
    if rule.finalize and why_not and condition_of(resource, "Ready").get("reason", last_reason) != "Deleting":
        plan.events.append(Event("Warning", "FinalizeSkipped", why_not))
    return plan


def _deleting(reason: str, message: str = "") -> Conditions:
    return Conditions.of(reason, message, reconciling=True)


def _is_finalized(resource: Object, last_reason: str) -> bool:
    """Ready says so, also after a pause."""
    return FINALIZED in {condition_of(resource, "Ready").get("reason"), last_reason}


def _skip_reason(resource: Object, observed: Observed) -> str:
    """Why `finalize` is given up on; empty if it is not."""
    if annotations_of(resource).get(SKIP_FINALIZE) == "true":
        return f"the annotation {SKIP_FINALIZE} skips finalizing"
    return "the namespace is being deleted; nothing can be created in it" if observed.namespace_terminating else ""


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
    """Removes, in one pass, all that the garbage collector will not; then our finalizer, once nothing is left."""
    if observed.held_until:
        message = f"{deadline(observed.held_until)}: the rules have just changed, and more files of the edit may follow"
        return DeletionPlan(_deleting(reason, message))
    all_orphans = _orphans_all(resource)
    left = [each for each in children.existing if each.claim.annotated or all_orphans or is_orphan(children, each)]
    if left:
        # A deleted object may take its time, so whether it is gone is seen in another pass, which its own event brings
        # about.
        outcomes = {each.key: "released" if is_orphan(children, each) or all_orphans else "gone" for each in left[:8]}
        message = "; ".join(
            [f"{key} is to be {word}" for key, word in outcomes.items()] + ["and more"] * (len(left) > 8)
        )
        actions = [action for each in left for action in _removal(rule, children, each, all_orphans=all_orphans)]
        return DeletionPlan(_deleting(reason, message), actions)
    unread = next(missing_read_permissions(rule, observed, children.owner.namespace), None)
    if unread is not None and annotations_of(resource).get(SKIP_FINALIZE) != "true":
        message = (
            f"{unread}; owned objects might be left behind. "
            f"Grant it, or set the annotation {SKIP_FINALIZE} to give up on them"
        )
        return DeletionPlan(Conditions.of(reason, message, stalled=True))
    return DeletionPlan(_deleting(reason), [RemoveFinalizer(ObjectKey.of(resource), observed.finalizer)])


def missing_read_permissions(rule: Rule, observed: Observed, namespace: str) -> Iterator[str]:
    """The permissions to read that are missing where the rule may have made objects that the garbage collector would
    not follow."""
    for child in rule.every_child():
        if child.final or child.deletion is not None or rule.reach == "cluster":
            for kind in sorted(child.kinds):
                info = observed.kinds.info(kind)
                if rule.reach == "cluster" and info.places is not None:
                    yield from (
                        missing_list_permission(rule, info, each)
                        for each, state in info.places.items()
                        if state is Served.FORBIDDEN
                    )
                elif info.state is Served.FORBIDDEN:
                    yield missing_list_permission(rule, info, namespace)


def _removal(rule: Rule, children: Children, each: Existing, *, all_orphans: bool) -> Iterator[Action]:
    final = each.child in rule.finalize
    if is_orphan(children, each) or (all_orphans and not final):
        yield release(each.child, each.live, each.key, children.owner)
    elif not each.terminating:
        child = (rule.finalize if final else rule.children).get(each.child)
        propagation = child.propagation if child else "background"
        yield Delete(
            each.key, each.child, each.live, "finalized" if final else "elsewhere", propagation, after_writes=False
        )
