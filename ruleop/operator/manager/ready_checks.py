"""The checks of `/readyz`: one for the rules, for leader election, for each watch and for each controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.operator.telemetry import Check
from ruleop.operator.wire.watch.store import StoreState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.operator.cache import Informer, Informers, WatchSpec
    from ruleop.operator.controllers import Controller, ControllerSet
    from ruleop.operator.rollouts import Rollouts

_MESSAGES = {
    StoreState.PENDING: "not listed yet",
    StoreState.UNSERVED: "not served by the cluster",
    StoreState.FORBIDDEN: "not permitted",
}


def of_rules(controller_set: ControllerSet) -> Check:
    """Rejected rules do not make the operator unready: the previous ones are in force."""
    count = sum(len(controller.rules) for controller in controller_set.controllers)
    return Check("rules", not controller_set.rejected, controller_set.rejected or f"{count} in force", counts=False)


def of_rollouts(rollouts: Rollouts) -> Iterator[Check]:
    """A rollout that is stopped needs a person, but the operator works."""
    for watch, record in sorted(rollouts.records.items()):
        parts = [record.phase.lower(), f"revision {record.target.short}"]
        parts += [f"{record.held_back} held back"] if not record.is_complete else []
        text = ", ".join(parts) + (f": {record.reason}" if record.reason else "")
        yield Check(f"rollout {watch}", record.phase != "Stopped", text, counts=False)
    for revision in sorted(rollouts.frozen):
        text = "cannot be loaded; the CRs that have it are not reconciled until their wave"
        yield Check(f"revision {revision.short}", False, text, counts=False)


def of_election(leads: bool, holder: str) -> Check:
    """A standby is ready."""
    return Check("leader election", True, "leader" if leads else f"standby; the leader is {holder or 'unknown'}")


def of_watches(informers: Informers) -> Iterator[Check]:
    for informer in informers.informers.values():
        yield of_watch(informer)


def of_watch(informer: Informer) -> Check:
    """A kind that is not served or not permitted concerns only what needs it. A watch without an event for too long is
    outdated."""
    name, state = f"watch {_describe(informer.need)}", informer.state
    if state is not StoreState.SYNCED:
        return Check(name, False, informer.problem or _MESSAGES[state], counts=state is StoreState.PENDING)
    age = max(watcher.age() or 0.0 for watcher in informer.watchers)
    if any(watcher.overdue for watcher in informer.watchers):
        return Check(name, False, f"no event for {age:.0f} s" + (f": {informer.problem}" if informer.problem else ""))
    count = sum(len(store) for store in informer.stores())
    return Check(name, True, f"{count} object{'' if count == 1 else 's'}, last event {age:.0f} s ago")


def of_controller(controller: Controller, controller_set: ControllerSet) -> Check:
    name = f"controller {controller.workers.title}"
    work = controller.workers.statistics()
    if controller.workers.is_open:
        return Check(
            name,
            True,
            f"{work['active_workers']:.0f} running, {work['depth']:.0f} queued, {work['failing']:.0f} failing",
        )
    if not controller_set.leading:
        return Check(name, True, "standby")
    informers = controller_set.informers.informers
    pending = [
        _describe(need) for need in sorted(controller.needs, key=str) if informers[need].state is StoreState.PENDING
    ]
    return Check(name, False, f"waiting for {', '.join(pending) or 'schemas of the kinds that it writes'}")


def _describe(need: WatchSpec) -> str:
    parts = [
        str(need.kind),
        f"in {need.namespace}" if need.namespace else "",
        f"where {need.labels}" if need.labels else "",
    ]
    parts += [f"where {need.fields}" if need.fields else "", "metadata only" if need.metadata_only else ""]
    return " ".join(part for part in parts if part)
