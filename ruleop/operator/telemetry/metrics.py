"""Counters and histograms: controller-runtime's and client-go's metrics under their own names, and ruleop's. Gauges of
current state (queue depth, age, size) are in the manager's `collector.py` and computed for each scrape.

Labels are kinds, outcomes and names from the rules, never names of objects: their number must not grow with the
cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

if TYPE_CHECKING:
    from collections.abc import Sequence

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
FRACTIONS = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1)
METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
RESULTS = ("success", "requeue", "requeue_after", "error")
NO_RESPONSE = "<error>"  # client-go's value

disable_created_metrics()  # type: ignore[no-untyped-call]  # a third of all series, and unused

M = TypeVar("M", Counter, Histogram)


class ControllerMetrics:
    """The metrics of one watched kind. Looking up a counter by its labels costs more than incrementing it, so it is
    done once."""

    def __init__(self, metrics: Metrics, title: str) -> None:
        self._metrics = metrics
        self._title = title
        self._bound: list[tuple[Counter | Histogram, tuple[str, ...]]] = []
        self._removed = False
        # All results exist from the start, as in controller-runtime, so that the first of each is an increase.
        self._results = {result: self._bind(metrics.reconciles, result) for result in RESULTS}
        self._writes: dict[tuple[str, str], Counter] = {}
        self._errors, self._retries = self._bind(metrics.reconcile_errors), self._bind(metrics.retries)
        self._reconcile_time, self._work_time = self._bind(metrics.reconcile_time), self._bind(metrics.work_time)
        self.adds, self.queue_time = self._bind(metrics.adds), self._bind(metrics.queue_time)
        self.plan_time, self.without_writes = self._bind(metrics.plan_time), self._bind(metrics.without_writes)
        self.panics, self.field_conflicts = self._bind(metrics.panics), self._bind(metrics.field_conflicts)
        self.drift = self._bind(metrics.drift)

    def reconciled(self, result: str, seconds: float) -> None:
        if self._removed:
            return
        self._results[result].inc()
        self._reconcile_time.observe(seconds)
        self._work_time.observe(seconds)
        if result == "error":
            self._errors.inc()
            self._retries.inc()

    def wrote(self, action: str, outcome: str) -> None:
        if self._removed:
            return
        if (action, outcome) not in self._writes:
            self._writes[action, outcome] = self._bind(self._metrics.writes, action, outcome)
        self._writes[action, outcome].inc()

    def remove(self) -> None:
        """Removes its series. A reconcile that ends later adds none."""
        self._removed = True
        for metric, labels in self._bound:
            metric.remove(self._title, *labels)

    def _bind(self, metric: M, *labels: str) -> M:
        self._bound.append((metric, labels))
        return metric.labels(self._title, *labels)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self._controllers: dict[str, ControllerMetrics] = {}
        self._requests: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        counter = self._counter
        # The names of controller-runtime and client-go.
        self.reconciles = counter(
            "controller_runtime_reconcile",
            "Reconciles by result: success, requeue (at once), requeue_after (before the resync) or error.",
            "controller",
            "result",
        )
        self.reconcile_errors = counter("controller_runtime_reconcile_errors", "Reconciles that failed.", "controller")
        self.panics = counter(
            "controller_runtime_reconcile_panics", "Reconciles that ended with an internal error.", "controller"
        )
        self.reconcile_time = self._histogram(
            "controller_runtime_reconcile_time_seconds", "How long a reconcile took.", SECONDS, "controller"
        )
        self.adds = counter("workqueue_adds", "Items added to the queue (duplicates are coalesced).", "name")
        self.queue_time = self._histogram(
            "workqueue_queue_duration_seconds", "How long an item waited in the queue.", SECONDS, "name"
        )
        self.work_time = self._histogram(
            "workqueue_work_duration_seconds", "How long an item was processed.", SECONDS, "name"
        )
        self.retries = counter("workqueue_retries", "Items added again after a failure.", "name")
        self.requests = counter("rest_client_requests", "Requests to the API server.", "code", "method", "host")
        self.request_time = self._histogram(
            "rest_client_request_duration_seconds",
            "How long a request took; of a watch, until it was open.",
            SECONDS,
            "verb",
            "host",
        )
        self.leader = self._gauge("leader_election_master_status", "1 while this process is the leader.", "name")
        # ruleop's own.
        self.writes = counter(
            "ruleop_writes",
            "Writes (create, patch, delete and so on, as a dry run names them) by outcome: "
            "done, held back (because another write "
            "failed), or the reason for which the API server rejected it.",
            "controller",
            "action",
            "outcome",
        )
        self.without_writes = counter(
            "ruleop_reconciles_without_writes", "Reconciles in which nothing had to be written.", "controller"
        )
        self.plan_time = self._histogram(
            "ruleop_plan_seconds", "How long rendering and planning a CR took.", FRACTIONS, "controller"
        )
        self.field_conflicts = counter(
            "ruleop_field_conflicts",
            "Field conflicts: somebody repeatedly changes a child. Counted when detected.",
            "controller",
        )
        self.drift = counter(
            "ruleop_drift_reverted", "Changes and deletions of children by others that were reverted.", "controller"
        )
        self.reloads = counter(
            "ruleop_reloads", "Changes of the rules on disk, by outcome: done or rejected.", "outcome"
        )
        self.rule_checks = counter(
            "ruleop_rule_checks",
            "Checks of the rules, at the start and after each change, by outcome: passed, failed, or unavailable (not "
            "finished: rules without mistakes are used).",
            "outcome",
        )
        self.clock_offset = self._gauge(
            "ruleop_clock_offset_seconds", "By how much the API server's clock is ahead of this machine's."
        )
        self.shard_info = self._gauge(
            "ruleop_shard_info", "1, with the ordinal of this process and the number of shards.", "shard", "count"
        )
        self.shard_buckets = self._gauge("ruleop_shard_buckets", "The buckets, of 64, that this process has.")
        self.unowned_buckets = self._gauge(
            "ruleop_unowned_buckets", "Buckets without a process for longer than a Lease lasts."
        )
        self.shared_resources = self._gauge(
            "ruleop_shared_resources", "Custom resources that an operator of another name reconciles too."
        )
        self.unowned_resources = self._gauge(
            "ruleop_unowned_resources",
            "Custom resources that no process reconciles: in unowned buckets, or matched by no selector.",
        )
        self.reload_failed = self._gauge(
            "ruleop_reload_failed", "1 while the rules on disk are rejected and the previous ones are in force."
        )
        self.lag = self._histogram(
            "ruleop_event_loop_lag_seconds", "Delay of the event loop, measured once a second.", SECONDS
        )
        for outcome in ("done", "rejected"):
            self.reloads.labels(outcome)  # so that the first is an increase
        for outcome in ("passed", "failed", "unavailable"):
            self.rule_checks.labels(outcome)

    def of(self, title: str) -> ControllerMetrics:
        found = self._controllers.get(title)
        if found is None:
            found = self._controllers[title] = ControllerMetrics(self, title)
        return found

    def remove(self, title: str) -> None:
        """Removes the series of a watched kind."""
        if (gone := self._controllers.pop(title, None)) is not None:
            gone.remove()

    def request_done(self, host: str, verb: str, status: int, seconds: float) -> None:
        found = self._requests.get((host, verb, status))
        if found is None:
            code = str(status) if status else NO_RESPONSE
            found = self.requests.labels(code, METHODS.get(verb, "GET"), host), self.request_time.labels(verb, host)
            self._requests[host, verb, status] = found
        requests, request_time = found
        requests.inc()
        request_time.observe(seconds)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: Sequence[float], *labels: str) -> Histogram:
        return Histogram(name, text, labels, registry=self.registry, buckets=buckets)
