"""Rules come and go while the operator runs; what an edit does not touch goes on, and nothing is taken away in haste."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from ruleop.engine.cache.cache import Cache
from ruleop.engine.cache.informers import WatchSpec
from ruleop.engine.manager.controller_set import ControllerSet
from ruleop.engine.manager.controllers import Controller, Controllers
from ruleop.engine.manager.inventory import Inventory, InventoryEntry
from ruleop.engine.manager.inventory_gc import InventoryCollector, may_need_finalizer
from ruleop.engine.queue.workers import Workers
from ruleop.engine.telemetry.metrics import Metrics
from ruleop.errors import RuleopError
from ruleop.kinds import GroupKind, Kind, ObjectKey
from ruleop.kube.watch.store import State, Store
from ruleop.planning import Owner
from ruleop.planning.marks import PART_OF
from ruleop.rules import build_project
from tests.engine.test_inventory import ConfigMap

APP, OTHER = GroupKind("example.com", "App"), GroupKind("example.com", "Other")
SECRET, CONFIG = GroupKind("", "Secret"), GroupKind("", "ConfigMap")
OURS = "ruleop.dev/ruleop"


def watch(kind="App", children="ConfigMap", more="", version="v1"):
    made = ", ".join(f"{each.lower()}: {{object: {{apiVersion: v1, kind: {each}, metadata: {{name: a}}}}}}" for each in children.split())
    return f"- {{group: example.com, version: {version}, kind: {kind}, children: {{{made}}}{more and ', ' + more}}}\n"


def project(*watches):
    return build_project({"watches.yaml": "".join(watches), "templates/a.yaml": "apiVersion: v1\nkind: Pod\n"}, root="rules", environ={})


class Feeds:
    """Watches that bring what a test puts into their stores."""

    def __init__(self, state=State.SYNCED):
        self.state = state
        self.informers = {}

    def want(self, needs):
        self.informers = {need: self.informers.get(need) or Feed(need, self.state) for need in needs}


class Feed:
    def __init__(self, need, state):
        self.need, self.state, self.problem = need, state, ""
        self.store = Store(SimpleNamespace(resource=SimpleNamespace(kind=need.kind), metadata_only=False, namespace=""))

    def stores(self):
        return [self.store]

    def entries(self):
        return self.store.entries()


class Discovery(SimpleNamespace):
    """Serves each kind as v1, but those that are not served."""

    def __init__(self):
        super().__init__(unserved=set(), catalogue=SimpleNamespace(stale=frozenset()))

    def get(self, kind):
        return None if kind in self.unserved else SimpleNamespace(info=SimpleNamespace(kind=Kind(kind.group, "v1", kind.kind)))


class Operator:
    """A controller_set and its inventory_gc, with all around them played."""

    def __init__(self, pause=0.0):
        self.inventory_store, self.time = ConfigMap(), 0.0
        self.informers, self.discovery, self.metrics, self.asked = Feeds(), Discovery(), Metrics(), []
        self.world = Cache(SimpleNamespace(), lambda _: None)
        self.controllers = Controllers(self.world)
        self.controller_set = ControllerSet(
            self.controllers,
            informers=self.informers,
            discovery=self.discovery,
            schemas=SimpleNamespace(known_of=lambda _: True),
            inventory=Inventory(self.inventory_store),
            room=SimpleNamespace(look=lambda *_: None),
            metrics=self.metrics,
            make=self.make,
            limit=None,
            pause=pause,
            clock=lambda: self.time,
        )
        self.inventory = self.controller_set.inventory
        self.inventory_gc = InventoryCollector(self.controller_set, finalizer=OURS)

    def make(self, kind):
        workers = Workers(str(kind.versionless), limit=16, metrics=self.metrics, ended=lambda _: None)

        async def reconcile(request):
            raise AssertionError("nobody works here")

        workers._run = lambda _: asyncio.sleep(0)
        return Controller(kind, (), SimpleNamespace(rules=(), kind=kind, held_until="", reconcile=reconcile), workers)

    def begin(self, *watches):
        self.controller_set.adopt(project(*watches))
        self.controller_set.lead()

    def store(self, group_kind, labels=""):
        (informer,) = [
            each for each in self.informers.informers.values() if each.need.kind.versionless == group_kind and each.need.labels == labels
        ]
        return informer.store

    def resource(self, name="a", *finalizers):
        metadata = {"name": name, "namespace": "shop", "uid": name, "resourceVersion": self._version(), "finalizers": list(finalizers)}
        self.store(APP).apply({"metadata": metadata})

    def child(self, kind, of="a", name="child"):
        label = Owner(Kind("example.com", "v1", "App"), "shop", of, "").part_of
        metadata = {"name": name, "namespace": "shop", "uid": name, "resourceVersion": self._version(), "labels": {PART_OF: label}}
        self.store(kind, PART_OF).apply({"metadata": metadata})
        return ObjectKey(kind.group, kind.kind, "shop", name)

    def _version(self, number=[0]):  # noqa: B006 - one count for all
        number[0] += 1
        return str(number[0])

    async def paused(self):
        """Until the pause after a change of the rules is over."""
        while not self.controller_set.is_settled:  # noqa: ASYNC110 - it is no event
            await asyncio.sleep(0.001)

    async def take(self):
        await self.paused()
        await self.inventory_gc.take()

    def said(self):
        return self.inventory_store.said()


@pytest.fixture
def story(run):
    """Runs a coroutine function with a new operator."""

    def told(tell, **options):
        async def bounded():
            operator = Operator(**options)
            try:
                await tell(operator)
            finally:
                await operator.controller_set.stop()

        run(bounded())

    return told


def entry(*children, finalizer=False):
    return InventoryEntry(frozenset(children), finalizer)


# -- what an edit touches ----------------------------------------------------------------------------------------------------------------


def queued(operator, kind):
    return operator.controllers.get(kind).workers.queue.statistics(now=0.0)["ready"]


def test_only_the_kinds_that_an_edit_touches_are_looked_at_again(story):
    async def tell(operator):
        operator.begin(watch(), watch("Other"))
        operator.resource()
        controllers = dict(operator.controllers.by_kind)
        operator.controller_set.reloaded(project(watch(), watch("Other", "Secret")))
        assert operator.controllers.by_kind == controllers
        assert [operator.controllers.get(kind).reconciler.held_until != "" for kind in (APP, OTHER)] == [False, True]
        assert queued(operator, APP) == 0
        operator.controller_set.reloaded(project(watch(children="Secret"), watch("Other", "Secret")))
        assert queued(operator, APP) == 1

    story(tell, pause=60.0)


def test_the_same_rules_in_another_place_are_the_rules_that_run_all_the_same(story):
    async def tell(operator):
        operator.begin(watch())
        moved = project("# a comment\n" + watch())
        operator.controller_set.reloaded(moved)
        controller = operator.controllers.get(APP)
        assert controller.rules == controller.reconciler.rules == moved.rules, "places in messages are those of the new file"
        assert not controller.reconciler.held_until

    story(tell)


def test_another_version_or_limit_takes_effect(story):
    async def tell(operator):
        operator.begin(watch())
        controller = operator.controllers.get(APP)
        assert controller.workers.limit == 16
        operator.controller_set.reloaded(project(watch(version="v2", more="maxConcurrentReconciles: 3")))
        assert operator.controllers.get(APP) is controller
        assert (controller.kind, controller.reconciler.kind) == (Kind("example.com", "v2", "App"),) * 2
        assert operator.world.primary[APP].need == WatchSpec(Kind("example.com", "v2", "App"))
        assert WatchSpec(Kind("example.com", "v1", "App")) not in operator.informers.informers
        assert controller.workers.limit == 3

    story(tell)


def test_several_watches_of_a_kind_have_one_controller(story):
    async def tell(operator):
        operator.begin(watch())
        one, two = ("name: one, selector: {size: a}, maxConcurrentReconciles: 2", "name: two, maxConcurrentReconciles: 5")
        operator.controller_set.reloaded(project(watch(more=one), watch(more=two)))
        assert len(operator.controllers.get(APP).rules) == 2
        assert operator.controllers.get(APP).workers.limit == 5
        operator.controller_set.reloaded(project(watch(more=two)))
        assert len(operator.controllers.get(APP).reconciler.rules) == 1

    story(tell)


def test_a_store_that_is_made_anew_knows_nothing_and_one_without_its_kind_knows_that(story):
    async def tell(operator):
        operator.begin(watch())
        assert operator.world.is_synced(APP)
        children = operator.informers.informers[WatchSpec(Kind("", "v1", "ConfigMap"), labels=PART_OF)]
        for state, knows in ((State.PENDING, False), (State.UNSERVED, True), (State.FORBIDDEN, True)):
            children.state = state
            assert operator.world.is_synced(APP) is knows
        assert not operator.world.is_synced(GroupKind("example.com", "Nobodys"))

    story(tell)


# -- the pause ---------------------------------------------------------------------------------------------------------------------------


def test_files_that_arrive_one_after_the_other_prolong_the_pause(story):
    """Also when they touch another kind, and also a broken one: the edit goes on."""

    async def tell(operator):
        operator.begin(watch(), watch("Other"))
        await operator.paused()
        operator.controller_set.pause = 60.0
        operator.controller_set.reloaded(project(watch(children="Secret"), watch("Other")))
        first = operator.controller_set._pausing
        operator.controller_set.reloaded(project(watch(children="Secret"), watch("Other", "Secret")))
        second = operator.controller_set._pausing
        assert (first.cancelled(), second.cancelled()) == (True, False)
        operator.time += 7.0
        operator.controller_set.refuse("a mistake")
        assert second.cancelled()
        deadlines = {kind: operator.controllers.get(kind).reconciler.held_until for kind in (APP, OTHER)}
        assert deadlines == dict.fromkeys((APP, OTHER), "1970-01-01T00:01:07Z"), "one deadline for all that is held back"
        assert not operator.controller_set.is_settled
        assert operator.controllers.get(APP).reconciler.held_until

    story(tell)


def test_a_new_deadline_is_told_on_the_crs_that_name_the_old_one(story):
    async def tell(operator):
        operator.begin(watch(), watch("Other"))
        operator.resource()
        operator.controller_set.reloaded(project(watch(children="Secret"), watch("Other")))
        request = operator.controllers.get(APP).workers.queue.take(now=0.0)
        operator.controllers.get(APP).workers.queue.done(request, now=0.0)
        assert queued(operator, APP) == 0
        operator.controller_set.refuse("a mistake")
        assert (queued(operator, APP), queued(operator, OTHER)) == (1, 0)

    story(tell, pause=60.0)


def test_a_watch_that_is_new_or_comes_back_prunes_nothing_in_the_pause(story):
    async def tell(operator):
        operator.begin(watch())
        operator.controller_set.reloaded(project(watch(), watch("Other")))
        assert operator.controllers.get(OTHER).reconciler.held_until
        await operator.paused()
        assert not operator.controllers.get(OTHER).reconciler.held_until

    story(tell)


def test_after_the_pause_those_that_waited_are_looked_at_again(story):
    async def tell(operator):
        operator.begin(watch())
        await operator.paused()
        operator.resource()
        controller = operator.controllers.get(APP)
        operator.controller_set.reloaded(project(watch(children="Secret")))
        operator.store(APP)
        controller.workers.queue.take(now=0.0)
        operator.controller_set.unsettled.clear()
        await operator.paused()
        assert not controller.reconciler.held_until
        assert operator.controller_set.unsettled.is_set()
        controller.workers.queue.done(next(iter(controller.workers.queue._active)), now=0.0)
        assert queued(operator, APP) == 1

    story(tell)


def test_a_refusal_and_what_ends_it_are_measured(story):
    async def tell(operator):
        operator.begin(watch())
        operator.controller_set.refuse("watches.yaml:1:1: a mistake")
        assert b"ruleop_reload_failed 1.0" in operator.metrics.text()
        assert operator.controller_set.refused == "watches.yaml:1:1: a mistake"
        operator.controller_set.reloaded(project(watch()))
        assert b"ruleop_reload_failed 0.0" in operator.metrics.text()
        assert operator.controller_set.refused == ""

    story(tell)


# -- a watch that is removed -------------------------------------------------------------------------------------------------------------


def test_a_removed_watch_ends_when_no_cr_keeps_the_finalizer(story):
    async def tell(operator):
        operator.begin(watch(more="finalize: {last: {template: a.yaml}}"), watch("Other"))
        await operator.inventory.ensure(APP, entry(CONFIG, finalizer=True))
        operator.resource("a", OURS)
        operator.resource("b", "somebody.else/" + OURS)
        operator.controller_set.reloaded(project(watch("Other")))
        controller = operator.controllers.get(APP)
        assert controller.rules == controller.reconciler.rules == ()
        assert controller.needs == {WatchSpec(Kind("example.com", "v1", "App"))}, "its children are not even looked at"
        await operator.take()
        assert operator.controllers.get(APP) is controller
        assert operator.said()[APP] == entry(CONFIG, finalizer=True)
        operator.resource("a")
        await operator.take()
        assert APP not in operator.controllers.by_kind
        assert APP not in operator.said()
        assert WatchSpec(Kind("example.com", "v1", "App")) not in operator.informers.informers

    story(tell)


def test_a_removed_watch_that_comes_back_goes_on(story):
    async def tell(operator):
        operator.begin(watch(), watch("Other"))
        controller = operator.controllers.get(APP)
        operator.controller_set.reloaded(project(watch("Other")))
        await operator.inventory_gc.take()
        operator.controller_set.reloaded(project(watch(), watch("Other")))
        await operator.take()
        assert operator.controllers.get(APP) is controller
        assert controller.rules

    story(tell, pause=0.05)


def test_a_watch_that_was_removed_while_nobody_was_there_is_found_in_the_inventory(story):
    async def tell(operator):
        await operator.inventory.ensure(APP, entry(CONFIG, finalizer=True))
        await operator.inventory.ensure(GroupKind("old.example.com", "Old"), entry(CONFIG))
        operator.begin(watch("Other"))
        await operator.take()
        assert operator.controllers.get(APP).rules == ()
        assert set(operator.said()) == {APP}, "of the other nothing is left to do"
        operator.resource("a", OURS)
        await operator.take()
        assert APP in operator.said()
        operator.resource("a")
        await operator.take()
        assert operator.said() == {}

    story(tell)


def test_nothing_ends_while_a_cr_is_being_worked_on(story):
    async def tell(operator):
        await operator.inventory.ensure(APP, entry(CONFIG, SECRET))
        operator.begin(watch(), watch("Other"))
        controller = operator.controllers.get(APP)
        running = asyncio.get_running_loop().create_future()
        controller.workers._running[running] = 0.0
        await operator.take()
        assert operator.said()[APP] == entry(CONFIG, SECRET)
        operator.controller_set.reloaded(project(watch("Other")))
        await operator.take()
        assert operator.controllers.get(APP) is controller
        assert operator.inventory_gc._busy, "it looks again by itself"
        del controller.workers._running[running]
        await operator.take()
        assert APP not in operator.controllers.by_kind

    story(tell)


@pytest.mark.parametrize("why", ["stale", "defined", "forbidden", "pending"])
def test_what_cannot_be_looked_at_is_remembered_and_told_once(story, why):
    async def tell(operator):
        await operator.inventory.ensure(APP, entry(SECRET, finalizer=True))
        if why in {"stale", "defined"}:
            operator.discovery.unserved = {APP}
        operator.discovery.catalogue.stale = frozenset({("example.com", "v1")} if why == "stale" else ())
        operator.world.definitions = {APP: object()} if why == "defined" else {}
        operator.begin(watch("Other"))
        if why in {"forbidden", "pending"}:
            operator.informers.state = State.FORBIDDEN if why == "forbidden" else State.PENDING
        told = []
        operator.inventory_gc.log = SimpleNamespace(warning=lambda *_, **fields: told.append(fields["kind"]), info=lambda *_, **__: None)
        for _ in range(3):
            await operator.take()
        assert operator.said() == {APP: entry(SECRET, finalizer=True)}
        assert told == ([] if why == "pending" else [str(APP)])

    story(tell)


def test_a_kind_that_is_gone_from_the_cluster_is_forgotten(story):
    async def tell(operator):
        await operator.inventory.ensure(OTHER, entry(SECRET, finalizer=True))
        await operator.inventory.ensure(APP, entry(SECRET))
        operator.discovery.unserved = {OTHER, SECRET}
        operator.begin(watch())
        await operator.take()
        assert operator.said() == {}

    story(tell)


# -- kinds that the rules do not make any more -------------------------------------------------------------------------------------------


def test_a_kind_is_watched_and_remembered_until_the_last_object_of_it_is_gone(story):
    async def tell(operator):
        await operator.inventory.ensure(APP, entry(CONFIG, SECRET))
        operator.begin(watch())
        operator.resource("a")
        key = operator.child(SECRET)
        operator.child(SECRET, of="nobody", name="of-another-cr")
        await operator.take()
        assert operator.said() == {APP: entry(CONFIG, SECRET)}
        operator.controller_set.unsettled.clear()
        informer = operator.world.children_feed(SECRET)
        informer.store.subscribe(lambda change: operator.inventory_gc.changed(informer, change))
        informer.store.delete({"metadata": {"name": key.name, "namespace": key.namespace, "resourceVersion": operator._version()}})
        assert operator.controller_set.unsettled.is_set()
        await operator.take()
        assert operator.said() == {APP: entry(CONFIG)}
        assert SECRET not in operator.world.children_of
        assert WatchSpec(Kind("", "v1", "Secret"), labels=PART_OF) not in operator.informers.informers

    story(tell)


def test_nothing_is_forgotten_in_the_pause_or_by_who_does_not_lead(story):
    async def tell(operator):
        await operator.inventory.ensure(APP, entry(CONFIG, SECRET))
        operator.controller_set.adopt(project(watch()))
        await operator.inventory_gc.take()
        assert operator.said() == {APP: entry(CONFIG, SECRET)}
        operator.controller_set.lead()
        await operator.inventory_gc.take()
        assert operator.said() == {APP: entry(CONFIG, SECRET)}

    story(tell, pause=60.0)


@pytest.mark.parametrize("then", ["ConfigMap Secret Pod", "ConfigMap"])
def test_rules_that_change_while_the_inventory_is_being_written_are_asked_again(story, then):
    """The decision is made when it is its turn to be written, not before."""

    async def tell(operator):
        before = entry(CONFIG, SECRET, GroupKind("", "Pod"))
        await operator.inventory.ensure(APP, before)
        operator.begin(watch(children="ConfigMap Secret"))
        await operator.paused()
        operator.controller_set.pause = 60.0
        async with operator.inventory._writing:
            taking = asyncio.create_task(operator.inventory_gc.take())
            await asyncio.sleep(0.01)
            operator.controller_set.reloaded(project(watch(children=then)))
        await taking
        assert operator.said() == {APP: before}

    story(tell)


@pytest.mark.parametrize("more", ["finalize: {last: {template: a.yaml}}", "reach: cluster", ""])
def test_a_finalizer_is_forgotten_when_no_rule_can_need_it_and_no_cr_has_it(story, more):
    async def tell(operator):
        await operator.inventory.ensure(APP, entry(CONFIG, finalizer=True))
        operator.begin(watch(more=more))
        operator.resource("a", OURS)
        await operator.take()
        assert operator.said() == {APP: entry(CONFIG, finalizer=True)}
        operator.resource("a")
        await operator.take()
        assert operator.said() == {APP: entry(CONFIG, finalizer=bool(more))}

    story(tell)


def test_what_is_there_and_missing_in_the_inventory_is_written_again(story):
    async def tell(operator):
        operator.begin(watch(children="ConfigMap Secret"))
        operator.resource("a", OURS)
        operator.child(CONFIG)
        await operator.take()
        assert operator.said() == {APP: entry(CONFIG, finalizer=True)}

    story(tell)


def test_who_begins_to_lead_watches_what_the_one_before_has_remembered(story):
    async def tell(operator):
        operator.controller_set.adopt(project(watch()))
        operator.inventory.entries = {APP: entry(SECRET)}
        operator.controller_set.lead()
        assert SECRET in operator.world.children_of

    story(tell)


def test_what_follows_takes_stock_when_there_is_a_reason_and_outlives_a_refusal(story, monkeypatch):
    monkeypatch.setattr("ruleop.engine.manager.inventory_gc.MOMENT", 0.0)
    monkeypatch.setattr("ruleop.engine.manager.inventory_gc.TRY_AGAIN", 0.0)

    async def tell(operator):
        await operator.inventory.ensure(APP, entry(CONFIG, SECRET))
        write, failures = operator.inventory_store.write, iter([1, 1])

        async def refused(data, version):
            if next(failures, None):
                raise RuleopError("forbidden")
            return await write(data, version)

        operator.inventory_store.write = refused
        told = []
        operator.inventory_gc.log = SimpleNamespace(warning=lambda event, **_: told.append(event), info=lambda *_, **__: None)
        following = asyncio.create_task(operator.inventory_gc.follow())
        operator.begin(watch())
        while operator.said() != {APP: entry(CONFIG)}:  # noqa: ASYNC110 - it is no event
            await asyncio.sleep(0.001)
        following.cancel()
        assert told == ["the inventory cannot be written; trying again"]

    story(tell)


@pytest.mark.parametrize(
    ("more", "may"),
    [("", False), ("reach: cluster", True), ("finalize: {last: {template: a.yaml}}", True)],
)
def test_which_rules_may_need_a_finalizer(more, may):
    assert may_need_finalizer(project(watch(more=more)).rules) is may


def test_a_child_that_may_be_orphaned_may_need_a_finalizer():
    rules = "- {group: example.com, version: v1, kind: App, children: {a: {template: a.yaml, deletion: orphan}}}"
    assert may_need_finalizer(project(rules).rules)


def test_the_verbs_that_are_needed_on_a_kind_are_those_of_all_rules_and_of_what_is_left(story):
    async def tell(operator):
        operator.begin(watch())
        full = {"get", "list", "watch", "create", "patch", "delete"}
        assert operator.controller_set.verbs(GroupKind("", "ConfigMap")) == full
        assert operator.controller_set.verbs(APP) == {"get", "list", "watch", "patch"}
        assert operator.controller_set.verbs(GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")) == {"get", "list", "watch"}
        operator.inventory.entries[APP] = InventoryEntry(children=frozenset({GroupKind("", "Secret")}))
        assert operator.controller_set.verbs(GroupKind("", "Secret")) == full - {"create"}

    story(tell)
