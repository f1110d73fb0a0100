"""A controller set with fake watches, discovery and reconcilers."""

from __future__ import annotations

from types import SimpleNamespace

from ruleop.kubernetes.kinds import GroupKind, Kind, ObjectKey
from ruleop.language.rules.checking import build_project
from ruleop.operator.cache.cache import Cache
from ruleop.operator.controllers.controller_set import Controller, Controllers, ControllerSet
from ruleop.operator.controllers.inventory import Inventory, InventoryEntry
from ruleop.operator.manager.inventory_gc import InventoryCollector
from ruleop.operator.queue.workers import Workers
from ruleop.operator.telemetry.metrics import Metrics
from ruleop.operator.wire.watch.store import Store, StoreState
from ruleop.planning import Owner
from ruleop.planning.model.marks import PART_OF
from tests.operator.fake_config_map import FakeConfigMap
from tests.waiting import until

APP, OTHER = GroupKind("example.com", "App"), GroupKind("example.com", "Other")
SECRET, CONFIG = GroupKind("", "Secret"), GroupKind("", "ConfigMap")
OURS = "ruleop.dev/ruleop"


def watch(kind="App", children="ConfigMap", more="", version="v1"):
    made = ", ".join(
        f"{each.lower()}: {{object: {{apiVersion: v1, kind: {each}, metadata: {{name: a}}}}}}"
        for each in children.split()
    )
    return f"- {{group: example.com, version: {version}, kind: {kind}, children: {{{made}}}{more and ', ' + more}}}\n"


def project_of(*watches):
    return build_project(
        {"watches.yaml": "".join(watches), "templates/a.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"},
        root="rules",
        environ={},
    )


class FakeInformers:
    """Informers whose stores are filled by the test."""

    def __init__(self, state=StoreState.SYNCED):
        self.state = state
        self.informers = {}

    def watch(self, needs):
        self.informers = {need: self.informers.get(need) or FakeInformer(need, self.state) for need in needs}


class FakeInformer:
    def __init__(self, need, state):
        self.need, self.state, self.problem = need, state, ""
        self.store = Store(SimpleNamespace(resource=SimpleNamespace(kind=need.kind), metadata_only=False, namespace=""))

    def stores(self):
        return [self.store]

    def store_for(self, _key):
        return self.store

    def entries(self):
        return self.store.entries()


class FakeDiscovery(SimpleNamespace):
    """Each kind is served as v1, except those in `unserved`."""

    def __init__(self):
        super().__init__(unserved=set(), catalogue=SimpleNamespace(stale=frozenset()))

    def get(self, kind):
        return (
            None
            if kind in self.unserved
            else SimpleNamespace(
                info=SimpleNamespace(kind=Kind(kind.group, "v1", kind.kind), status_subresource=True, namespaced=True)
            )
        )


class ControllerSetHarness:
    """A controller set and its inventory collector; watches, discovery and reconcilers are fakes."""

    def __init__(self, pause=0.0):
        self.inventory_store, self.time = FakeConfigMap(), 0.0
        self.informers, self.discovery, self.metrics = FakeInformers(), FakeDiscovery(), Metrics()
        self.cache = Cache(SimpleNamespace(), lambda _: None)
        self.controllers = Controllers(self.cache)
        self.controller_set = ControllerSet(
            self.controllers,
            informers=self.informers,
            discovery=self.discovery,
            schemas=SimpleNamespace(is_known=lambda _: True),
            inventory=Inventory(self.inventory_store),
            status_schemas=SimpleNamespace(report=lambda *_: None),
            metrics=self.metrics,
            create_controller=self.make,
            max_concurrent=None,
            pause=pause,
            clock=lambda: self.time,
        )
        self.inventory = self.controller_set.inventory
        self.inventory_gc = InventoryCollector(self.controller_set, finalizer=OURS)

    def make(self, kind):
        workers = Workers(str(kind.versionless), limit=16, metrics=self.metrics, on_exit=lambda _: None)

        async def reconcile(request):
            raise AssertionError("the workers of this harness do not run")

        workers._start_due = lambda: None
        return Controller(kind, (), SimpleNamespace(rules=(), kind=kind, held_until="", reconcile=reconcile), workers)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.controller_set.stop()

    def start(self, *watches):
        self.controller_set.apply(project_of(*watches))
        self.controller_set.start_leading()

    def store(self, group_kind, labels=""):
        (informer,) = [
            each
            for each in self.informers.informers.values()
            if each.need.kind.versionless == group_kind and each.need.labels == labels
        ]
        return informer.store

    def resource(self, name="a", *finalizers, **fields):
        metadata = {
            "name": name,
            "namespace": "shop",
            "uid": name,
            "resourceVersion": self._version(),
            "finalizers": list(finalizers),
        }
        self.store(APP).apply({"metadata": metadata, **fields})

    def child(self, kind, of="a", name="child"):
        label = Owner(Kind("example.com", "v1", "App"), "shop", of, "").part_of
        metadata = {
            "name": name,
            "namespace": "shop",
            "uid": name,
            "resourceVersion": self._version(),
            "labels": {PART_OF: label},
        }
        self.store(kind, PART_OF).apply({"metadata": metadata})
        return ObjectKey(kind.group, kind.kind, "shop", name)

    def delete(self, key):
        metadata = {"name": key.name, "namespace": key.namespace, "resourceVersion": self._version()}
        self.store(key.group_kind, PART_OF).delete({"metadata": metadata})

    def _version(self, number=[0]):  # noqa: B006 - one count for all
        number[0] += 1
        return str(number[0])

    async def until_settled(self):
        """Until the pause after a change of the rules is over, and every queued CR counts as reconciled."""
        await until("the end of the pause", lambda: self.controller_set.is_settled)
        for controller in self.controllers:
            while (request := controller.workers.queue.take(now=0.0)) is not None:
                controller.workers.queue.done(request, now=0.0)

    async def collect(self):
        """Runs the inventory collector, as each start of leadership and each reload does once."""
        kinds = sorted({*self.inventory.entries, *self.controllers.by_kind})
        while kinds:
            await self.until_settled()
            undecided = [kind for kind in kinds if not await self.inventory_gc.collect(kind)]
            if undecided == kinds:
                return
            kinds = undecided

    def recorded(self):
        return self.inventory_store.entries()


def entry(*children, finalizer=False):
    return InventoryEntry(frozenset(children), finalizer)
