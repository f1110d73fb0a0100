"""Workers of one watched kind, with watches and metrics that the test controls."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace

from ruleop.kubernetes.builtin.table import ResourceInfo
from ruleop.kubernetes.kinds import Kind
from ruleop.operator.cache.informers import Informer, WatchSpec
from ruleop.operator.manager.ready_checks import StateCollector
from ruleop.operator.passes.pass_log import Reported
from ruleop.operator.queue.work_queue import IMMEDIATELY, RESYNC, Backoff, Request, Result
from ruleop.operator.queue.workers import Workers
from ruleop.operator.telemetry.metrics import Metrics
from ruleop.operator.wire.client.event_recorder import EventRecorder
from ruleop.operator.wire.client.requests import ObjectSource
from ruleop.operator.wire.watch.watcher import Watcher
from ruleop.planning.rollout.rollout_record import RolloutRecord, RolloutRevision
from tests.waiting import until

CONFIG_MAP = Kind("", "v1", "ConfigMap")
CONFIG_MAPS = ResourceInfo("configmaps", namespaced=True, status_subresource=False, kind=CONFIG_MAP)
CERTIFICATE = Kind("cert-manager.io", "v1", "Certificate")
VERDICTS = {
    "rest": Result(),
    "resync": Result(requeue_after=60, reason=RESYNC),
    "at once": Result(requeue_after=IMMEDIATELY, reason="the CR has changed"),
    "again": Result(requeue_after=60, reason="it is checked"),
    "failed": Result(failed=True),
}


class Watch:
    """A watch whose lists a test provides."""

    def __init__(self, namespace, clock):
        self.namespace = namespace
        self.clock = clock
        self.watcher = Watcher(None, ObjectSource(CONFIG_MAPS, namespace), clock=clock)
        self.store = self.watcher.store

    def brings(self, *names):
        """The API server answers with a list of these objects."""
        reflector = self.watcher.reflector
        reflector._restart()
        reflector.next(self.clock())
        reflector.opened(self.clock())
        objects = [
            {"metadata": {"name": name, "namespace": self.namespace, "uid": name, "resourceVersion": "5"}}
            for name in names
        ]
        end = {"metadata": {"resourceVersion": "5", "annotations": {"k8s.io/initial-events-end": "true"}}}
        events = [*({"type": "ADDED", "object": obj} for obj in objects), {"type": "BOOKMARK", "object": end}]
        reflector.lines([json.dumps(event).encode() for event in events], self.clock())
        return self

    def fails(self, error):
        self.watcher.reflector.failed(error, self.clock())


class WorkersHarness:
    title = "App.example.com"

    def __init__(self, limit=4):
        self.time = 1000.0
        self.tasks = []  # that ended
        self.metrics = Metrics()
        self.reconciler_metrics = self.metrics.of(self.title)
        self.workers = Workers(self.title, limit=limit, metrics=self.metrics, on_exit=self.tasks.append)
        self.workers.queue.backoff = Backoff(first=60)
        self.reconciler = SimpleNamespace(pass_log=SimpleNamespace(reported={}), large=set())
        self.controllers = [SimpleNamespace(workers=self.workers, reconciler=self.reconciler)]
        self.informer = Informer(WatchSpec(CONFIG_MAP))
        self.informers = [self.informer]
        self.recorder = EventRecorder(None, reporter="ruleop", instance="i", clock=self.clock)
        self.collector = StateCollector(
            controllers=self.controllers,
            informers=lambda: self.informers,
            rollouts=lambda: {"Box.example.com": RolloutRecord.complete(RolloutRevision("a", "b"))},
            recorder=self.recorder,
            on_loop=lambda function: function(),
        )
        self.metrics.registry.register(self.collector)
        self.running = self.most = self.ended = 0
        self._ends = {}
        self._held = None
        self._holds_to = "rest"
        self._started = False

    def clock(self):
        return self.time

    # -- work ----------------------------------------------------------------------------------------------------------

    def add(self, name):
        if not self._started:
            self._started = True
            self.workers.start(self._work)
            self.workers.open(True)
        self.workers.add(Request("shop", name), "a test")

    async def reconcile(self, name, result="rest"):
        """Reconciles a CR with this result."""
        self._ends[name] = result
        ended = self.ended
        self.add(name)
        await self.until(lambda: self.ended > ended)

    def hold(self, result="rest"):
        """Reconciles do not end before the returned function is called."""
        self._held, self._holds_to = asyncio.Event(), result
        return self._held.set

    async def until(self, holds):
        await until("the workers", holds)
        for _ in range(5):  # callbacks that follow at once
            await asyncio.sleep(0)

    async def stop(self):
        await self.workers.stop()

    async def _work(self, request):
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if self._held is not None:
                await self._held.wait()
            result = self._ends.get(request.name, self._holds_to)
            if result == "bug":
                raise ZeroDivisionError
            if result == "at once":
                self._ends[request.name] = "rest"
            return VERDICTS[result]
        finally:
            self.running -= 1
            self.ended += 1

    def remove(self):
        self.controllers.clear()
        self.metrics.remove(self.title)

    # -- how things stand ----------------------------------------------------------------------------------------------

    def stands(self, name, reason, states, waits=(), held=0):
        reported = Reported(reason=reason, states=states, waits=waits, held=held)
        self.reconciler.pass_log.reported[Request("shop", name)] = reported

    def gone(self, name):
        del self.reconciler.pass_log.reported[Request("shop", name)]

    def watch(self, namespace):
        watch = Watch(namespace, self.clock)
        self.informer.watchers.append(watch.watcher)
        return watch

    def unserved(self):
        self.informers.append(Informer(WatchSpec(CERTIFICATE)))

    def happened(self):
        """Something of everything that the collector counts."""
        self.stands("x", "Waiting", ("waiting",), (("web", "child"),))
        self.watch("shop").brings("a")
        self.unserved()
