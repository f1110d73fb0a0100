"""The checks of `/readyz`: one for the rules, for leader election, for each watch and for each controller."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ruleop.operator.telemetry import Check
from ruleop.operator.wire.watch.store import StoreState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping

    from ruleop.operator.cache import Informer, Informers, WatchSpec
    from ruleop.operator.controllers import Controller, ControllerSet
    from ruleop.operator.passes.pass_log import Reported
    from ruleop.operator.rollouts import Rollouts
    from ruleop.operator.wire.client.event_recorder import EventRecorder
    from ruleop.planning.rollout import RolloutRecord


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


# -- collector ---------------------------------------------------------------------------------------------------------
#
# Metrics of current state: queue depths, ages, sizes, CRs by condition. They are computed for each scrape: a scraper
# asks twice a minute, and the state changes all the time. So no gauge has to be updated, and no series of a deleted
# kind remains.


GAUGES = {
    "controller_runtime_active_workers": ("Reconciles that are running.", ("controller",)),
    "controller_runtime_max_concurrent_reconciles": ("Maximum number of concurrent reconciles.", ("controller",)),
    "workqueue_depth": ("Items waiting in the queue.", ("name",)),
    "workqueue_unfinished_work_seconds": ("Sum of the durations of the reconciles that are running.", ("name",)),
    "workqueue_longest_running_processor_seconds": ("Duration of the longest reconcile that is running.", ("name",)),
    "ruleop_longest_wait_seconds": ("How long the oldest item has been waiting in the queue.", ("controller",)),
    "ruleop_failing": ("CRs whose last reconcile failed, waiting to be retried.", ("controller",)),
    "ruleop_slow_resources": ("CRs whose plans take long: they are planned one at a time.", ("controller",)),
    "ruleop_resources": ("CRs by the reason of their condition Ready.", ("controller", "reason")),
    "ruleop_children": (
        (
            "Children (entries of a rule, for one CR) by state: "
            "ready, progressing, waiting, failed, refused, unwanted or terminating."
        ),
        ("controller", "state"),
    ),
    "ruleop_waits": ("Children that wait, by what they wait for.", ("controller", "child", "reason")),
    "ruleop_deletions_held_back": (
        "Objects that are not known to be desired and stay: an error could make their deletion wrong.",
        ("controller",),
    ),
    "ruleop_rollouts": (
        "1 for the phase of each watch's rollout: Complete, Progressing, Paused or Stopped.",
        ("watch", "phase"),
    ),
    "ruleop_rollout_held_back": ("CRs that do not have the newest rules yet.", ("watch",)),
    "ruleop_store_objects": ("Objects in the stores of a kind.", ("kind",)),
    "ruleop_store_bytes": ("Bytes of the objects in the stores of a kind, compressed.", ("kind",)),
    "ruleop_watches": ("Watches by state: synced, pending (not listed yet), unserved or forbidden.", ("kind", "state")),
    "ruleop_watch_silence_seconds": (
        "Time since the last event of a watch; the longest, if a kind has several.",
        ("kind",),
    ),
}
COUNTERS = {
    "ruleop_relists": ("Times a kind was listed again.", ("kind",)),
    "ruleop_watch_crashes": ("Times a watch ended with an internal error.", ("kind",)),
    "ruleop_listener_failures": ("Changes that were not processed because of an internal error.", ("kind",)),
    "ruleop_events": (
        "Events by outcome: sent, dropped (could not be written) or suppressed (too many of one CR).",
        ("outcome",),
    ),
}
Series: TypeAlias = tuple[str, ...]
Values: TypeAlias = "Mapping[str, MutableMapping[Series, float]]"
Snapshot: TypeAlias = "tuple[Values, list[tuple[str, list[Reported]]]]"
"""The values so far, and the last reports of the CRs of each watched kind, which are still to be counted."""


class StateCollector(Collector):
    def __init__(
        self,
        *,
        controllers: Iterable[Controller],
        informers: Callable[[], Iterable[Informer]],
        recorder: EventRecorder,
        rollouts: Callable[[], Mapping[str, RolloutRecord]] = dict,
        on_loop: Callable[[Callable[[], Snapshot]], Snapshot],
    ) -> None:
        self.controllers = controllers
        self.informers = informers
        self.recorder = recorder
        self.rollouts = rollouts
        # Metrics are served by other threads. State is read on the event loop, where it does not change meanwhile; the
        # reports of the CRs, of which there may be many, are counted in the thread.
        self.on_loop = on_loop

    def describe(self) -> Iterator[Metric]:
        yield from _families({})

    def collect(self) -> Iterator[Metric]:
        values, reports = self.on_loop(self._read)
        for title, of_title in reports:
            _add_reports(values, title, of_title)
        yield from _families(values)

    def _read(self) -> Snapshot:
        values: Values = {name: defaultdict(float) for name in (*GAUGES, *COUNTERS)}
        for controller in self.controllers:
            self._add_controller(values, controller)
        for informer in self.informers():
            self._add_informer(values, informer)
        for watch, record in self.rollouts().items():
            values["ruleop_rollouts"][watch, record.phase] = 1
            values["ruleop_rollout_held_back"][(watch,)] = 0 if record.is_complete else record.held_back
        for outcome, count in self.recorder.statistics().items():
            if outcome != "waiting":
                values["ruleop_events"][(outcome,)] = count
        reports = [
            (controller.workers.title, list(controller.reconciler.pass_log.reported.values()))
            for controller in self.controllers
        ]
        return values, reports

    def _add_controller(self, values: Values, controller: Controller) -> None:
        title = (controller.workers.title,)
        work = controller.workers.statistics()
        for name in ("active_workers", "max_concurrent_reconciles"):
            values[f"controller_runtime_{name}"][title] = work[name]
        for name in ("depth", "unfinished_work_seconds", "longest_running_processor_seconds"):
            values[f"workqueue_{name}"][title] = work[name]
        for name in ("longest_wait_seconds", "failing"):
            values[f"ruleop_{name}"][title] = work[name]
        values["ruleop_slow_resources"][title] = len(controller.reconciler.large)

    def _add_informer(self, values: Values, informer: Informer) -> None:
        """A kind can have several informers: in several namespaces, or with several selectors."""
        kind = (str(informer.need.kind),)
        if not informer.watchers:
            values["ruleop_watches"][*kind, informer.state.value] += 1
        for watcher in informer.watchers:
            store = watcher.store.statistics()
            values["ruleop_watches"][*kind, store.state.value] += 1
            values["ruleop_store_objects"][kind] += store.objects
            values["ruleop_store_bytes"][kind] += store.bytes
            values["ruleop_relists"][kind] += watcher.relists
            values["ruleop_watch_crashes"][kind] += watcher.crashes
            values["ruleop_listener_failures"][kind] += watcher.store.listener_failures
            silence = values["ruleop_watch_silence_seconds"]
            silence[kind] = max(silence[kind], watcher.age() or 0.0)


def _add_reports(values: Values, title: str, reports: Iterable[Reported]) -> None:
    """Most CRs are in the same state, so equal ones are counted before their parts are added up."""
    values["ruleop_deletions_held_back"][(title,)] = sum(each.held for each in reports)
    states_of_crs = Counter((each.reason, each.states, each.waits) for each in reports)
    for (reason, states, waits), count in states_of_crs.items():
        if reason:
            values["ruleop_resources"][title, reason] += count
        for state in states:
            values["ruleop_children"][title, state] += count
        for child, why in waits:
            values["ruleop_waits"][title, child, why] += count


def _families(values: Mapping[str, Mapping[Series, float]]) -> Iterator[Metric]:
    for family, table in ((GaugeMetricFamily, GAUGES), (CounterMetricFamily, COUNTERS)):
        for name, (text, labels) in table.items():
            metric = family(name, text, labels=labels)
            for series, value in values.get(name, {}).items():
                metric.add_metric(series, value)
            yield metric
