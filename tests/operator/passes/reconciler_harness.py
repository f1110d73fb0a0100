"""A reconciler between an API server in memory and stores that the test updates, with a clock that the test sets."""

from __future__ import annotations

import itertools
from functools import partial
from types import SimpleNamespace
from unittest import mock

import orjson

from ruleop.authoring.offline import OfflineKinds
from ruleop.kubernetes.kinds import ObjectKey, parse_version
from ruleop.operator.cache.own_writes import OwnWrites
from ruleop.operator.controllers.inventory import InventoryEntry
from ruleop.operator.passes.executor import Executor
from ruleop.operator.passes.other_operators import OtherOperators
from ruleop.operator.passes.owner_key import OwnerKey
from ruleop.operator.passes.pass_planning import PassEnvironment
from ruleop.operator.passes.reconciler import Reconciler
from ruleop.operator.passes.status_debounce import StatusDebounce
from ruleop.operator.queue.work_queue import Request
from ruleop.operator.telemetry.metrics import Metrics
from ruleop.planning.model.marks import PART_OF
from tests.operator.fake_config_map import FakeConfigMap
from tests.operator.fake_stores import FakeStores, as_kept, selects
from tests.operator.server import Server
from tests.planning.harness import app, project

WEB = Request("shop", "web")
FINALIZER = "ruleop.dev/ruleop"


class Stores(FakeStores):
    """Stores that contain responses to writes at once, and events of the watch after `catch_up`."""

    def __init__(self, server, kinds):
        super().__init__()
        self.server, self.kinds = server, kinds
        self.synced = True
        self.version = 0

    def catch_up(self):
        self.objects = {
            ObjectKey.of(each.obj): as_kept(orjson.loads(each.data))
            for each in self.server.stored()
            if selects(each.obj)
        }
        self.version = self.server.version

    def info(self, kind, **_more):
        return self.kinds.info(kind)

    def state_of(self, observe):
        return self.kinds.state_of(observe)

    def seen_from(self, _namespace):
        return self

    def snapshot(self, _part_of):
        found = Stores(self.server, self.kinds)
        found.objects = dict(self.objects)
        return found

    def is_synced(self, _kind):
        return self.synced

    def resource(self, key, version=""):
        return self.get(key)

    def get(self, key, **_more):
        found = self.objects.get(key)
        return None if found is None else orjson.loads(orjson.dumps(found))

    def children(self, part_of, **_more):
        for key in sorted(self.objects):
            if (self.objects[key]["metadata"].get("labels") or {}).get(PART_OF) == part_of:
                yield self.get(key)

    def patched(self, _part_of):
        return []

    def select(self, query):
        return [
            self.get(key)
            for key in sorted(self.objects)
            if key.group_kind == query.kind and query.namespace in {None, key.namespace}
        ]

    def has_seen(self, key, version):
        return self.version >= parse_version(version)

    def is_at_least(self, key, version):
        known = self.objects.get(key)
        return self.has_seen(key, version) or (
            known is not None and parse_version(known["metadata"]["resourceVersion"]) >= parse_version(version)
        )

    async def read_metadata(self, kind, key):
        return await self.server.api.read_metadata(kind, key)


class ReconcilerHarness:
    def __init__(self, body, spec=None, **files):
        self.project = project(body, **files)
        self.server = Server(app(spec))
        self.stores = Stores(self.server, OfflineKinds(self.project))
        self.stores.catch_up()
        self.time = 1000.0
        self.busy = False
        self.known_conditions = frozenset()
        self.events = []
        self.before_writes = mock.AsyncMock()
        self.metrics = Metrics()
        self.reconciler = self.restart()

    def restart(self, rules=None):
        """A new reconciler without any history, as after a restart."""
        environment = PassEnvironment(
            cache=self.stores,
            executor=Executor(self.server.api, self.stores, OwnWrites()),
            inventory=SimpleNamespace(
                before_writes=self.before_writes,
                of=lambda _kind: InventoryEntry(conditions=self.known_conditions),
            ),
            owner_key=OwnerKey(FakeConfigMap()),
            events=self,
            metrics=self.metrics,
            debounce=StatusDebounce(partial(next, itertools.count(0, 10)), lambda _seconds, _call: None),  # always out
            clock=self,
            finalizer=FINALIZER,
            other_operators=OtherOperators(self, self.metrics),
        )
        rules = rules or self.project.rules
        queue = SimpleNamespace(queue=SimpleNamespace(has_ready=lambda: self.busy), add=lambda *_: None)
        self.reconciler = Reconciler(rules[0].kind, rules, environment, queue)
        return self.reconciler

    # -- the clock, and the events -------------------------------------------------------------------------------------

    def now(self):
        return "2026-01-01T00:00:00Z"

    def monotonic(self):
        return self.time

    def seed(self):
        return b"seed"

    def record(self, _resource, events):
        self.events += [(event.type, event.reason, event.message) for event in events]

    # -- passes --------------------------------------------------------------------------------------------------------

    async def reconcile(self, *, catch_up=True):
        """One pass."""
        verdict = await self.reconciler.reconcile(WEB)
        if catch_up:
            self.stores.catch_up()
        return verdict

    async def until_settled(self):
        for _ in range(10):
            before = self.server.version
            verdict = await self.reconcile()
            if self.server.version == before:
                return verdict
        raise AssertionError(self.server.log[-20:])

    @property
    def app(self):
        return self.live("web", "App")

    def key(self, name, kind="ConfigMap"):
        return ObjectKey("example.com" if kind == "App" else "", kind, "shop", name)

    def live(self, name, kind="ConfigMap"):
        return self.server.live(self.key(name, kind))

    def edit(self, name, **fields):
        """Somebody changes a child, and the watch reports it."""
        self.server.edit(self.key(name), **fields)
        self.stores.catch_up()

    def edit_app(self, **fields):
        self.server.edit(self.key("web", "App"), **fields)
        self.stores.catch_up()

    def delete_app(self):
        self.server.delete(self.key("web", "App"))
        self.stores.catch_up()

    def recreate_app(self):
        """A new App has the name and the spec of the one before."""
        old = self.app
        self.server.remove(self.key("web", "App"))
        metadata = {name: old["metadata"][name] for name in ("name", "namespace")}
        self.server.make({**old, "metadata": metadata})
        self.stores.catch_up()

    def remove(self, name):
        """Somebody deletes a child, and the watch reports it."""
        self.server.remove(self.key(name))
        self.stores.catch_up()

    def condition(self, type_="Ready"):
        return next(
            (each for each in ((self.app or {}).get("status") or {}).get("conditions", ()) if each["type"] == type_), {}
        )

    def writes(self):
        return [each for each in self.server.log if each[0] not in {"get", "metadata"}]
