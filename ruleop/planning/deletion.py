"""A CR that is being deleted and carries our finalizer.

Children that refer to it are left to the garbage collector. What it cannot follow is ours to end: the children of `finalize` are made and waited for, what
lives elsewhere is deleted, what is to stay is released, and last our finalizer goes. Nothing of `children` is rendered, and nothing validated.

That the `finalize` children are done has to be known after they are gone, or a crash between would run them twice. Where a status is written, it says so
(reason Finalized) before the first of them is removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ruleop.planning.actions import Action, Delete, Event, RemoveFinalizer
from ruleop.planning.apply import release
from ruleop.planning.marks import SKIP_FINALIZE, annotations_of
from ruleop.planning.pruning import stays
from ruleop.planning.status import overall, ready_of, triple
from ruleop.templating import Later, MapView, ObjectsView, Origin

if TYPE_CHECKING:
    from ruleop.kinds import Object, ObjectKey
    from ruleop.planning.children import Children, Existing
    from ruleop.planning.observed import Observed
    from ruleop.rules import Rule

FINALIZED = "Finalized"


@dataclass(slots=True)
class Ending:
    """What is left to do, and what to say meanwhile."""

    actions: list[Action]
    conditions: list[dict[str, Any]]
    events: list[Event]
    look_again: float | None = None


def plan_deletion(rule: Rule, resource: Object, observed: Observed, children: Children) -> Ending:
    metadata = resource["metadata"]
    finalizers = metadata.get("finalizers") or []
    if observed.finalizer not in finalizers:
        return Ending([], triple(False, "Deleting", "", reconciling=True, stalled=False), [])
    events: list[Event] = []
    if rule.finalize and not _done(resource) and not _skipped(resource, observed, events):
        show_children(rule, children)
        children.plan_all([rule.finalize[id_] for id_ in rule.final_order])
        if not all(planned.ready or planned.state.value == "unwanted" for planned in children.planned.values()):
            return Ending(children.actions(), _waiting(children), events)
        if rule.manage_status:
            return Ending([], triple(False, FINALIZED, "", reconciling=True, stalled=False), events, look_again=0.0)
    return _end(rule, resource, observed, children, events)


def _done(resource: Object) -> bool:
    return ready_of(resource).get("reason") == FINALIZED


def _skipped(resource: Object, observed: Observed, events: list[Event]) -> bool:
    if annotations_of(resource).get(SKIP_FINALIZE) == "true":
        events.append(Event("Warning", "FinalizeSkipped", f"the annotation {SKIP_FINALIZE} gives up on finalizing"))
        return True
    if observed.namespace_terminating:
        events.append(Event("Warning", "FinalizeSkipped", "the namespace is being deleted; nothing can be created in it"))
        return True
    return False


def show_children(rule: Rule, children: Children) -> None:
    """To `finalize`, a child is what exists of it."""
    for child in rule.children.values():
        found = [each.live for each in children.by_id.get(child.id, ())]
        if child.many:
            children.scope.names[child.id] = ObjectsView(found, child.id, Origin.LATER)
        else:
            children.scope.names[child.id] = MapView(dict(found[0]), child.id, Origin.LATER) if found else Later(child.id)


def _waiting(children: Children) -> list[dict[str, Any]]:
    conditions = overall(children, children.problems)
    return triple(False, "Finalizing", conditions[0]["message"], reconciling=not children.problems, stalled=bool(children.problems))


def _end(rule: Rule, resource: Object, observed: Observed, children: Children, events: list[Event]) -> Ending:
    """Removes, in one pass, all that the garbage collector will not; then our finalizer, once nothing is left."""
    all_orphans = "orphan" in (resource["metadata"].get("finalizers") or [])
    actions: list[Action] = []
    left: list[ObjectKey] = []
    for each in children.existing:
        if not each.claim.annotated and not all_orphans:
            continue
        left.append(each.key)
        if each.live["metadata"].get("deletionTimestamp"):
            continue
        actions.append(_removal(rule, children, each, all_orphans=all_orphans))
    if left:
        # A deleted object may take its time, so whether it is gone is seen in another pass, which its own event brings about.
        message = "; ".join(f"{key} is to be gone" for key in left[:8])
        return Ending(
            actions, triple(False, FINALIZED if _done(resource) else "Deleting", message, reconciling=True, stalled=False), events
        )
    return Ending([RemoveFinalizer(observed.finalizer)], triple(False, "Deleting", "", reconciling=True, stalled=False), events)


def _removal(rule: Rule, children: Children, each: Existing, *, all_orphans: bool) -> Action:
    if each.child in rule.finalize:
        return Delete(each.key, each.child, each.live, "finalized", rule.finalize[each.child].propagation, after_writes=False)
    if all_orphans or stays(children, each):
        return release(each.child, each.live, each.key, children.owner)
    child = rule.children.get(each.child)
    return Delete(each.key, each.child, each.live, "elsewhere", child.propagation if child else "background", after_writes=False)
