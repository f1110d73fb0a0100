"""How long the event loop is busy in one turn while several resources with a thousand children each are reconciled.

The reconciler is the operator's; the API server and the stores are in memory, and answer in another turn.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, Self

import orjson

from ruleop.authoring.offline import OfflineKinds
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.localcluster.objects.patches import merge_patch
from ruleop.operator.cache.own_writes import OwnWrites
from ruleop.operator.controllers.inventory import NOTHING
from ruleop.operator.passes.executor import Executor
from ruleop.operator.passes.other_operators import OtherOperators
from ruleop.operator.passes.owner_key import OwnerKey
from ruleop.operator.passes.pass_planning import PassEnvironment
from ruleop.operator.passes.reconciler import PLAN_IS_SLOW, TURN_AT_LATEST, Reconciler
from ruleop.operator.passes.status_debounce import StatusDebounce
from ruleop.operator.queue.work_queue import Request
from ruleop.operator.telemetry.metrics import Metrics
from ruleop.planning.model.marks import PART_OF
from tests.limits.shapes import DEPLOYMENT
from tests.operator.fake_config_map import FakeConfigMap
from tests.planning.harness import app, project

RULE = """
children:
  each:
    forEach: "{{ range(spec.count) }}"
    template: a.yaml
status:
  ready: "{{ each | length }}"
"""
TEMPLATE = DEPLOYMENT.replace("name: a\n", "name: '{{ metadata.name }}-{{ index }}'\n", 1).replace(
    "image: i", "image: '{{ spec.image }}'"
)


class Cluster:
    """Objects as bytes, as the stores have them."""

    def __init__(self, kinds: Any) -> None:
        self.kinds = kinds
        self.bodies: dict[ObjectKey, bytes] = {}
        self.of: dict[str, dict[ObjectKey, None]] = {}
        self.versions = itertools.count(1)

    # -- the API server ------------------------------------------------------------------------------------------------

    def writing_as(self, _account: None) -> Self:
        return self

    async def create(self, obj: Any) -> Any:
        await asyncio.sleep(0)
        return self._stored({**obj, "metadata": {**obj["metadata"], "uid": f"u{next(self.versions)}"}})

    async def patch(self, _kind: Any, key: ObjectKey, patch: Any, *, subresource: str = "", manager: str = "") -> Any:
        await asyncio.sleep(0)
        return self._stored(merge_patch(self.get(key), {"status": patch["status"]} if subresource else patch))

    async def read(self, _kind: Any, key: ObjectKey) -> Any:
        return self.get(key)

    def _stored(self, obj: Any) -> Any:
        metadata = {**obj["metadata"], "resourceVersion": str(next(self.versions)), "generation": 1}
        found = {**obj, "metadata": metadata}
        self.put(found)
        return found

    # -- the stores ----------------------------------------------------------------------------------------------------

    def put(self, obj: Any) -> bool:
        key = ObjectKey.of(obj)
        self.bodies[key] = orjson.dumps(obj)
        if part_of := (obj["metadata"].get("labels") or {}).get(PART_OF):
            self.of.setdefault(part_of, {})[key] = None
        return True

    def remove(self, key: ObjectKey, *_: Any) -> None:
        self.bodies.pop(key, None)

    def get(self, key: ObjectKey, **_: Any) -> Any:
        body = self.bodies.get(key)
        return None if body is None else orjson.loads(body)

    def resource(self, key: ObjectKey, version: str = "") -> Any:
        return self.get(key)

    def children(self, part_of: str) -> Any:
        for key in list(self.of.get(part_of, ())):
            yield self.get(key)

    def patched(self, _part_of: str) -> Any:
        return []

    def select(self, _query: Any) -> Any:
        return []

    def info(self, kind: Any, **_: Any) -> Any:
        return self.kinds.info(kind)

    def state_of(self, observe: Any) -> Any:
        return self.kinds.state_of(observe)

    def seen_from(self, _namespace: str) -> Any:
        return self

    def snapshot(self, _part_of: str) -> Any:
        found = Cluster(self.kinds)
        found.bodies, found.of = dict(self.bodies), {part_of: dict(keys) for part_of, keys in self.of.items()}
        return found

    def is_synced(self, _kind: Any) -> bool:
        return True

    def has_seen(self, *_: Any) -> bool:
        return True

    is_at_least = has_seen


@dataclass
class Clock:
    def now(self) -> str:
        return "2026-01-01T00:00:00Z"

    monotonic = staticmethod(time.monotonic)

    def seed(self) -> bytes:
        return b"seed"


class Large:
    """A reconciler and some resources with many children each."""

    def __init__(self, resources: int, children: int, *, more: str = "") -> None:
        self.project = project(RULE + more, a=TEMPLATE)
        self.cluster = Cluster(OfflineKinds(self.project))
        self.requests = [Request("shop", f"web-{number}") for number in range(resources)]
        for request in self.requests:
            spec = {"count": children, "image": "i"}
            self.cluster.put(app(spec, name=request.name, uid=f"uid-{request.name}"))

        async def before_writes(*_: Any) -> None:
            return None

        events: Any = SimpleNamespace(record=lambda *_: None)
        metrics = Metrics()
        environment = PassEnvironment(
            cache=self.cluster,
            executor=Executor(self.cluster, self.cluster, OwnWrites()),
            inventory=SimpleNamespace(before_writes=before_writes, of=lambda _kind: NOTHING),
            owner_key=OwnerKey(FakeConfigMap()),
            events=events,
            metrics=metrics,
            debounce=StatusDebounce(partial(next, itertools.count(0, 10)), lambda _seconds, _call: None),
            clock=Clock(),  # type: ignore[arg-type]
            finalizer="ruleop.dev/ruleop",
            other_operators=OtherOperators(events, metrics),
        )
        self.woken = {request: asyncio.Event() for request in self.requests}
        queue: Any = SimpleNamespace(
            queue=SimpleNamespace(has_ready=lambda: False), add=lambda request, *_: self.woken[request].set()
        )
        rule = self.project.rules[0]
        self.reconciler = Reconciler(rule.kind, self.project.rules, environment, queue)

    def edit(self) -> None:
        """All resources change, and with them all their children."""
        for request in self.requests:
            resource = self.cluster.get(self.reconciler.key(request))
            resource["spec"]["image"] += "x"
            resource["metadata"]["generation"] += 1
            self.cluster.put(resource)

    async def reconcile(self) -> list[float]:
        """One pass over all resources at once. Returns the seconds of each turn of the loop."""
        turns: list[float] = []
        watch = asyncio.create_task(_watch(turns.append))
        try:
            await asyncio.gather(*map(self._until_done, self.requests))
        finally:
            watch.cancel()
        return turns

    async def _until_done(self, request: Request) -> None:
        """A pass, in its turn if it is large."""
        while (result := await self.reconciler.reconcile(request)).reason == PLAN_IS_SLOW:
            if result.requeue_after == TURN_AT_LATEST:
                await self.woken[request].wait()
            self.woken[request].clear()


async def _watch(report: Callable[[float], object]) -> None:
    last = time.thread_time()  # not the clock: others may use the processor
    while True:
        await asyncio.sleep(0)
        now = time.thread_time()
        report(now - last)
        last = now
