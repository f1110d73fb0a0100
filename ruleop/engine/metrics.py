"""What can be measured while ruleop runs, under the names that dashboards of the field already know, and a few of our own.

Labels are kinds and outcomes, never names of objects: their number must not grow with the cluster.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
FRACTIONS = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1)

disable_created_metrics()  # type: ignore[no-untyped-call]  # a time of birth for each counter: a third of all series, and nobody asks


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        counter = self._counter
        # The field's usual names (controller-runtime, client-go).
        self.reconciles = counter("controller_runtime_reconcile", "Reconciles by controller and result.", "controller", "result")
        self.reconcile_errors = counter("controller_runtime_reconcile_errors", "Reconciles that failed.", "controller")
        self.reconcile_time = self._histogram(
            "controller_runtime_reconcile_time_seconds", "How long a reconcile took.", SECONDS, "controller"
        )
        self.active = self._gauge("controller_runtime_active_workers", "Reconciles going on now.", "controller")
        self.depth = self._gauge("workqueue_depth", "Keys that wait for a worker.", "name")
        self.adds = counter("workqueue_adds", "Keys added to the queue.", "name")
        self.queue_time = self._histogram("workqueue_queue_duration_seconds", "How long a key waited for a worker.", SECONDS, "name")
        self.work_time = self._histogram("workqueue_work_duration_seconds", "How long a key was worked on.", SECONDS, "name")
        self.unfinished = self._gauge("workqueue_unfinished_work_seconds", "The sum of what goes on now.", "name")
        self.retries = counter("workqueue_retries", "Keys added again after a failure.", "name")
        self.longest_running = self._gauge("workqueue_longest_running_processor_seconds", "The longest reconcile going on now.", "name")
        self.requests = counter("rest_client_requests", "Requests to the API server.", "code", "method")
        self.request_time = self._histogram("rest_client_request_duration_seconds", "How long a request took.", SECONDS, "verb")
        self.leader = self._gauge("leader_election_master_status", "1 while this process leads.", "name")
        # ruleop's own.
        self.children = self._gauge("ruleop_children", "Children by kind of CR and state.", "controller", "state")
        self.waits = counter("ruleop_waits", "Passes in which a child waited, by child.", "controller", "child")
        self.writes = counter("ruleop_writes", "Writes by kind of action and outcome.", "controller", "action", "outcome")
        self.quiet = counter("ruleop_reconciles_without_writes", "Reconciles in which nothing had to be written.", "controller")
        self.plan_time = self._histogram("ruleop_plan_seconds", "How long rendering and planning took.", FRACTIONS, "controller")
        self.reloads = counter("ruleop_reloads", "Times the rules were read anew, by outcome.", "outcome")
        self.reload_failed = self._gauge("ruleop_reload_failed", "1 while the rules on disk are refused and the last good ones run.")
        self.objects = self._gauge("ruleop_store_objects", "Objects in a store.", "kind")
        self.bytes = self._gauge("ruleop_store_bytes", "Bytes of objects in a store.", "kind")
        self.stream_age = self._gauge("ruleop_watch_silence_seconds", "How long a watch has been silent.", "kind")
        self.relists = counter("ruleop_relists", "Times a store was read anew.", "kind")
        self.lag = self._gauge("ruleop_event_loop_lag_seconds", "How late the event loop turns.")
        self.fights = counter("ruleop_fights", "Fields over which another controller fights.", "controller")

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(name, text, labels, registry=self.registry, buckets=buckets)

    def text(self) -> bytes:
        return generate_latest(self.registry)
