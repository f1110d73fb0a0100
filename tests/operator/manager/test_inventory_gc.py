"""The inventory is reduced once per leadership and once after each reload, and never while an object may be left
behind."""

from __future__ import annotations

import asyncio

import pytest

from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import GroupKind, Kind, ObjectKey
from ruleop.operator.cache.informers import WatchSpec, child_need
from ruleop.operator.controllers.inventory import InventoryEntry
from ruleop.operator.queue.work_queue import Request
from ruleop.operator.wire.watch.store import StoreState
from ruleop.planning import Owner
from tests.operator.controllers.controller_set_harness import (
    APP,
    CONFIG,
    OTHER,
    OURS,
    SECRET,
    ControllerSetHarness,
    entry,
    project_of,
    watch,
)
from tests.operator.virtual_time import run_in_virtual_time
from tests.waiting import a_moment

FINALIZE = "finalize: {last: {template: a.yaml}}"
APPS = WatchSpec(Kind("example.com", "v1", "App"))


# -- removed watches ---------------------------------------------------------------------------------------------------


async def test_the_controller_of_a_removed_watch_stops_when_no_cr_carries_the_finalizer():
    async with ControllerSetHarness() as operator:
        operator.start(watch(more=FINALIZE), watch("Other"))
        await operator.inventory.ensure(APP, entry(CONFIG, finalizer=True))
        operator.resource("a", OURS)
        operator.resource("b", "somebody.else/" + OURS)
        operator.controller_set.reloaded(project_of(watch("Other")))
        controller = operator.controllers.get(APP)
        assert controller.rules == controller.reconciler.rules == ()
        assert controller.needs == {APPS}, "its children are not watched any more"
        await operator.collect()
        assert operator.controllers.get(APP) is controller
        assert operator.recorded()[APP] == entry(CONFIG, finalizer=True)
        operator.resource("a")
        await operator.collect()
        assert APP not in operator.controllers.by_kind
        assert APP not in operator.recorded()
        assert APPS not in operator.informers.informers


async def test_a_removed_watch_that_is_added_again_during_the_pause_keeps_its_controller():
    async with ControllerSetHarness(pause=0.05) as operator:
        operator.start(watch(), watch("Other"))
        controller = operator.controllers.get(APP)
        operator.controller_set.reloaded(project_of(watch("Other")))
        assert not await operator.inventory_gc.collect(APP)
        operator.controller_set.reloaded(project_of(watch(), watch("Other")))
        await operator.collect()
        assert operator.controllers.get(APP) is controller
        assert controller.rules


async def test_a_watch_removed_while_no_operator_ran_has_a_controller_until_its_finalizers_are_removed():
    async with ControllerSetHarness() as operator:
        await operator.inventory.ensure(APP, entry(CONFIG, finalizer=True))
        await operator.inventory.ensure(GroupKind("old.example.com", "Old"), entry(CONFIG))
        operator.start(watch("Other"))
        await operator.until_settled()
        assert not await operator.inventory_gc.collect(APP)
        operator.resource("a", OURS)
        await operator.collect()
        assert operator.controllers.get(APP).rules == ()
        assert set(operator.recorded()) == {APP}, "the other kind carries no finalizer"
        operator.resource("a")
        await operator.collect()
        assert operator.recorded() == {}
        assert APP not in operator.controllers.by_kind


# -- when it is decided ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["queued", "active", "failing", "closed"])
async def test_nothing_is_removed_before_the_crs_of_the_kind_are_reconciled(state):
    async with ControllerSetHarness() as operator:
        await operator.inventory.ensure(APP, entry(CONFIG, SECRET))
        operator.start(watch(), watch("Other"))
        await operator.until_settled()
        workers = operator.controllers.get(APP).workers
        request = Request("shop", "a")
        if state == "closed":
            workers.open(False)
        else:
            workers.add(request, "a test")
        if state in {"active", "failing"}:
            workers.queue.take(now=0.0)
        if state == "failing":
            workers.queue.done(request, now=0.0, failed=True)
        assert not await operator.inventory_gc.collect(APP)
        assert operator.recorded()[APP] == entry(CONFIG, SECRET)
        workers.open(True)
        if state in {"queued", "failing"}:
            workers.queue.add(request, now=0.0)
            workers.queue.take(now=0.0)
        if state != "closed":
            workers.queue.done(request, now=0.0)
        assert await operator.inventory_gc.collect(APP)
        assert operator.recorded() == {APP: entry(CONFIG)}


async def test_nothing_is_removed_during_the_pause_or_by_a_standby():
    async with ControllerSetHarness(pause=60.0) as operator:
        await operator.inventory.ensure(APP, entry(CONFIG, SECRET))
        operator.controller_set.apply(project_of(watch()))
        assert not await operator.inventory_gc.collect(APP)
        operator.controller_set.start_leading()
        assert not await operator.inventory_gc.collect(APP)
        assert operator.recorded() == {APP: entry(CONFIG, SECRET)}


@pytest.mark.parametrize("then", ["ConfigMap Secret Pod", "ConfigMap"])
async def test_a_reload_during_the_write_before_postpones_the_decision(then):
    async with ControllerSetHarness() as operator:
        before = entry(CONFIG, SECRET, GroupKind("", "Pod"))
        await operator.inventory.ensure(APP, before)
        operator.start(watch(children="ConfigMap Secret"))
        await operator.until_settled()
        operator.controller_set.pause = 60.0
        async with operator.inventory._writing:
            collecting = asyncio.create_task(operator.inventory_gc.collect(APP))
            await a_moment(0.01)
            operator.controller_set.reloaded(project_of(watch(children=then)))
        assert not await collecting
        assert operator.recorded() == {APP: before}


@pytest.mark.slow
def test_the_inventory_is_collected_once_per_leadership_and_reload_and_failed_writes_are_retried():
    async def scenario():
        operator = ControllerSetHarness(pause=30.0)
        await operator.inventory.ensure(APP, entry(CONFIG, SECRET))
        write, failures = operator.inventory_store.write, iter([True, True])

        async def failing(data, version):
            if next(failures, False):
                raise RuleopError("forbidden")
            return await write(data, version)

        async def an_hour():
            await operator.until_settled()
            await asyncio.sleep(3600)

        operator.inventory_store.write = failing
        running = asyncio.create_task(operator.inventory_gc.run())
        operator.start(watch())
        operator.resource()
        child = operator.child(CONFIG)
        await an_hour()
        assert operator.recorded() == {APP: entry(CONFIG)}
        operator.controller_set.reloaded(project_of(watch(children="Secret")))
        await an_hour()
        operator.delete(child)
        await an_hour()
        assert operator.recorded() == {APP: entry(CONFIG)}, "not before the next leadership or reload"
        operator.controller_set.reloaded(project_of(watch(children="Secret Pod")))
        await an_hour()
        assert operator.recorded() == {}
        running.cancel()
        await operator.controller_set.stop()

    run_in_virtual_time(scenario())


# -- what stays --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("why", ["stale", "defined", "forbidden", "pending"])
async def test_a_removed_watch_whose_crs_cannot_be_read_stays_recorded(why):
    async with ControllerSetHarness() as operator:
        await operator.inventory.ensure(APP, entry(SECRET, finalizer=True))
        if why in {"stale", "defined"}:
            operator.discovery.unserved = {APP}
        operator.discovery.catalogue.stale = frozenset({("example.com", "v1")} if why == "stale" else ())
        operator.cache.definitions = {APP: object()} if why == "defined" else {}
        operator.start(watch("Other"))
        if why in {"forbidden", "pending"}:
            operator.informers.state = StoreState.FORBIDDEN if why == "forbidden" else StoreState.PENDING
        await operator.collect()
        assert operator.recorded() == {APP: entry(SECRET, finalizer=True)}


@pytest.mark.parametrize("why", ["stale", "defined", "forbidden", "primary forbidden"])
async def test_a_kind_of_child_that_cannot_be_read_stays_recorded(why):
    async with ControllerSetHarness() as operator:
        await operator.inventory.ensure(APP, entry(CONFIG, SECRET))
        if why in {"stale", "defined"}:
            operator.discovery.unserved = {SECRET}
        operator.discovery.catalogue.stale = frozenset({("", "v1")} if why == "stale" else ())
        operator.cache.definitions = {SECRET: object()} if why == "defined" else {}
        operator.start(watch())
        operator.resource()
        if why == "forbidden":
            operator.cache.child_informer(SECRET).state = StoreState.FORBIDDEN
        if why == "primary forbidden":
            operator.cache.primary[APP].state = StoreState.FORBIDDEN
        await operator.collect()
        assert operator.recorded() == {APP: entry(CONFIG, SECRET)}


async def test_kinds_that_the_cluster_no_longer_has_are_removed():
    async with ControllerSetHarness() as operator:
        await operator.inventory.ensure(OTHER, entry(SECRET, finalizer=True))
        await operator.inventory.ensure(APP, entry(SECRET))
        operator.discovery.unserved = {OTHER, SECRET}
        operator.start(watch())
        await operator.collect()
        assert operator.recorded() == {}


async def test_a_kind_dropped_from_the_rules_is_watched_and_recorded_while_children_of_it_exist():
    async with ControllerSetHarness() as operator:
        await operator.inventory.ensure(APP, entry(CONFIG, SECRET))
        operator.start(watch())
        operator.resource("a")
        child = operator.child(SECRET)
        operator.child(SECRET, of="nobody", name="of-another-cr")
        await operator.collect()
        assert operator.recorded() == {APP: entry(CONFIG, SECRET)}
        operator.delete(child)
        await operator.collect()
        assert operator.recorded() == {APP: entry(CONFIG)}
        assert SECRET not in operator.cache.children_of
        assert child_need(Kind("", "v1", "Secret")) not in operator.informers.informers


@pytest.mark.parametrize("more", [FINALIZE, "reach: cluster", ""])
async def test_the_finalizer_stays_recorded_while_rules_need_it_or_a_cr_carries_it(more):
    async with ControllerSetHarness() as operator:
        await operator.inventory.ensure(APP, entry(CONFIG, finalizer=True))
        operator.start(watch(more=more))
        operator.resource("a", OURS)
        await operator.collect()
        assert operator.recorded() == {APP: entry(CONFIG, finalizer=True)}
        operator.resource("a")
        await operator.collect()
        assert operator.recorded() == {APP: entry(CONFIG, finalizer=bool(more))}


async def test_a_dropped_condition_stays_recorded_while_a_status_shows_it():
    async with ControllerSetHarness() as operator:
        await operator.inventory.ensure(APP, InventoryEntry(conditions=frozenset({"Kept", "Shown", "Gone"})))
        operator.start(watch(more="conditions: [{type: Kept, status: 'true'}]"))
        operator.resource("a", status={"conditions": [{"type": "Shown", "status": "True"}]})
        await operator.collect()
        assert operator.recorded() == {APP: InventoryEntry(conditions=frozenset({"Kept", "Shown"}))}


# -- what is added -----------------------------------------------------------------------------------------------------


async def test_existing_objects_missing_in_the_inventory_are_recorded_again():
    async with ControllerSetHarness() as operator:
        operator.start(watch(children="ConfigMap Secret"))
        operator.resource("a", OURS)
        operator.child(CONFIG)
        await operator.collect()
        assert operator.recorded() == {APP: entry(CONFIG, finalizer=True)}


async def test_a_kind_that_others_wrote_into_the_inventory_is_watched():
    async with ControllerSetHarness() as operator:
        await operator.inventory.ensure(APP, entry(CONFIG, SECRET))
        operator.start(watch())
        await operator.until_settled()
        operator.inventory_store.write_as_somebody_else({APP: entry(CONFIG, GroupKind("", "Pod"))})
        assert not await operator.inventory_gc.collect(APP)
        assert GroupKind("", "Pod") in operator.cache.children_of
        await operator.collect()
        assert operator.recorded() == {APP: entry(CONFIG)}


async def test_a_patched_object_is_watched_and_recorded_until_its_fields_are_released():
    async with ControllerSetHarness() as operator:
        target = ObjectKey("", "Secret", "", "other")
        await operator.inventory.ensure(APP, InventoryEntry(patched=frozenset({target})))
        operator.start(watch())
        operator.resource("a")
        label = Owner(Kind("example.com", "v1", "App"), "shop", "a", "").part_of
        entries = [{"manager": f"ruleop:{label}:child", "operation": "Apply", "fieldsV1": {}}]
        metadata = {"name": "other", "namespace": "far", "uid": "u"}
        store = operator.store(SECRET)
        store.apply({"metadata": {**metadata, "resourceVersion": "1", "managedFields": entries}})
        assert [each["metadata"]["name"] for each in operator.cache.patched(label)] == ["other"]
        await operator.collect()
        assert operator.recorded() == {APP: InventoryEntry(patched=frozenset({target}))}
        operator.cache.put({"apiVersion": "v1", "kind": "Secret", "metadata": {**metadata, "resourceVersion": "2"}})
        assert not list(operator.cache.patched(label)), "the answer to a release shows it, without an event"
        await operator.collect()
        assert operator.recorded() == {}
        assert SECRET not in operator.cache.patched_kinds
