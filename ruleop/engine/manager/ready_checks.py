"""What `/readyz` says: one line for the rules, for the lease, for each watch and for each watched kind, and which of them make the operator
not ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.engine.telemetry.probes import Check
from ruleop.kube.watch.store import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.engine.cache.informers import Informer, Informers, WatchSpec
    from ruleop.engine.manager.controller_set import ControllerSet
    from ruleop.engine.manager.controllers import Controller

_WORDS = {
    State.PENDING: "the first list has not been answered",
    State.UNSERVED: "the cluster does not serve it",
    State.FORBIDDEN: "not permitted",
}


def of_rules(controller_set: ControllerSet) -> Check:
    """Refused rules are no reason not to be ready: the last good ones do their work."""
    count = sum(len(controller.rules) for controller in controller_set.controllers)
    return Check("rules", not controller_set.refused, controller_set.refused or f"{count} at work", counts=False)


def of_election(leads: bool, holder: str) -> Check:
    """A standby is ready when it could take over."""
    return Check("leader election", True, "this process leads" if leads else f"standing by; {holder or 'nobody'} leads")


def of_watches(informers: Informers) -> Iterator[Check]:
    for informer in informers.informers.values():
        yield of_watch(informer)


def of_watch(informer: Informer) -> Check:
    """A kind that is not served, or not permitted, stops what needs it and nothing else. A watch on which the server should have been
    heard, and was not, shows the past."""
    name, state = f"watch {_told(informer.need)}", informer.state
    if state is not State.SYNCED:
        return Check(name, False, informer.problem or _WORDS[state], counts=state is State.PENDING)
    age = max(watcher.age() or 0.0 for watcher in informer.watchers)
    if any(watcher.overdue for watcher in informer.watchers):
        return Check(name, False, f"the server has not been heard for {age:.0f} s" + (f": {informer.problem}" if informer.problem else ""))
    count = sum(len(store) for store in informer.stores())
    return Check(name, True, f"{count} object{'' if count == 1 else 's'}, heard {age:.0f} s ago")


def of_controller(controller: Controller, controller_set: ControllerSet) -> Check:
    name = f"controller {controller.workers.title}"
    work = controller.workers.statistics()
    if controller.workers.is_open:
        return Check(name, True, f"{work['active_workers']:.0f} at work, {work['depth']:.0f} waiting, {work['failing']:.0f} failing")
    if not controller_set.leading:
        return Check(name, True, "standing by")
    informers = controller_set.informers.informers
    pending = [_told(need) for need in sorted(controller.needs, key=str) if informers[need].state is State.PENDING]
    return Check(name, False, f"waits for {', '.join(pending) or 'the schemas of what it writes'}")


def _told(need: WatchSpec) -> str:
    parts = [str(need.kind), f"in {need.namespace}" if need.namespace else "", f"where {need.labels}" if need.labels else ""]
    parts += [f"where {need.fields}" if need.fields else "", "metadata only" if need.metadata_only else ""]
    return " ".join(part for part in parts if part)
