"""The inventory never lacks an entry for existing objects, and costs almost no writes."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import GroupKind, ObjectKey
from ruleop.operator.controllers.inventory import (
    MAX_ATTEMPTS,
    Inventory,
    InventoryEntry,
    decode,
    encode,
    entry_of_rules,
)
from tests.operator.controllers.controller_set_harness import project_of
from tests.operator.fake_config_map import FakeConfigMap

APP, CRON = GroupKind("example.com", "App"), GroupKind("example.com", "Cron")
DEPLOYMENT, SERVICE, JOB = GroupKind("apps", "Deployment"), GroupKind("", "Service"), GroupKind("batch", "Job")


def entry(*children, finalizer=False):
    return InventoryEntry(frozenset(children), finalizer)


async def loaded(inventory_store):
    inventory = Inventory(inventory_store)
    await inventory.load()
    return inventory


async def test_an_entry_is_written_once_and_before_ensure_returns():
    inventory_store = FakeConfigMap()
    inventory = await loaded(inventory_store)
    for _ in range(3):
        await inventory.ensure(APP, entry(DEPLOYMENT))
        assert inventory_store.entries() == {APP: entry(DEPLOYMENT)}
    assert (inventory_store.writes, inventory_store.reads) == (1, 1)
    await inventory.ensure(APP, entry(SERVICE))
    await inventory.ensure(APP, entry(finalizer=True))
    await inventory.ensure(CRON, entry(JOB))
    await inventory.ensure(APP, entry(DEPLOYMENT, SERVICE))
    assert inventory_store.entries() == {APP: entry(DEPLOYMENT, SERVICE, finalizer=True), CRON: entry(JOB)}
    assert inventory_store.writes == 4


async def test_a_restarted_operator_reads_the_inventory():
    inventory_store = FakeConfigMap()
    await (await loaded(inventory_store)).ensure(APP, entry(DEPLOYMENT, finalizer=True))
    again = await loaded(inventory_store)
    assert again.of(APP) == entry(DEPLOYMENT, finalizer=True)
    assert again.of(CRON) == InventoryEntry()
    await again.ensure(APP, entry(DEPLOYMENT))
    assert inventory_store.writes == 1


async def test_many_equal_entries_at_once_cost_one_write():
    inventory_store = FakeConfigMap()
    inventory = await loaded(inventory_store)
    await asyncio.gather(*(inventory.ensure(APP, entry(DEPLOYMENT, SERVICE)) for _ in range(50)))
    assert (inventory_store.writes, inventory_store.refused) == (1, 0)


async def test_concurrent_writers_keep_each_others_entries():
    inventory_store = FakeConfigMap()
    one, two = await loaded(inventory_store), await loaded(inventory_store)
    await asyncio.gather(
        one.ensure(APP, entry(DEPLOYMENT)), two.ensure(APP, entry(SERVICE)), two.ensure(CRON, entry(JOB))
    )
    assert inventory_store.entries() == {APP: entry(DEPLOYMENT, SERVICE), CRON: entry(JOB)}
    assert inventory_store.refused


async def test_an_entry_recorded_by_another_writer_is_not_written_again():
    inventory_store = FakeConfigMap()
    one, two = await loaded(inventory_store), await loaded(inventory_store)
    await one.ensure(APP, entry(DEPLOYMENT))
    await two.ensure(APP, entry(DEPLOYMENT))
    assert inventory_store.writes == 1


async def test_shrink_removes_entries_that_do_not_remain():
    inventory_store = FakeConfigMap()
    inventory = await loaded(inventory_store)
    await inventory.ensure(APP, entry(DEPLOYMENT, SERVICE, finalizer=True))
    await inventory.shrink(APP, lambda: entry(DEPLOYMENT))
    await inventory.shrink(APP, lambda: entry(DEPLOYMENT))
    assert inventory_store.entries() == {APP: entry(DEPLOYMENT)}
    assert inventory_store.writes == 2
    await inventory.shrink(APP, InventoryEntry)
    assert inventory_store.data == {}


async def test_shrink_keeps_entries_that_another_writer_added():
    inventory_store = FakeConfigMap()
    one, two = await loaded(inventory_store), await loaded(inventory_store)
    await one.ensure(APP, entry(DEPLOYMENT))
    await two.load()
    await one.ensure(APP, entry(SERVICE))
    await two.shrink(APP, InventoryEntry)
    assert inventory_store.entries() == {APP: entry(DEPLOYMENT, SERVICE)}
    assert two.of(APP) == entry(DEPLOYMENT, SERVICE), "the other entry was read"


async def test_a_kind_that_is_needed_during_a_shrink_is_recorded_again_first():
    """The write that removes a kind is in flight when an object of it is about to be created."""
    inventory_store = FakeConfigMap()
    inventory = await loaded(inventory_store)
    await inventory.ensure(APP, entry(DEPLOYMENT, SERVICE))
    shrinking = asyncio.create_task(inventory.shrink(APP, lambda: entry(DEPLOYMENT)))
    await asyncio.sleep(0)
    assert inventory_store.entries() == {APP: entry(DEPLOYMENT, SERVICE)}, "still in flight"
    await inventory.ensure(APP, entry(SERVICE))
    assert inventory_store.entries() == {APP: entry(DEPLOYMENT, SERVICE)}, "an object may be created"
    assert await shrinking
    assert inventory_store.writes == 3


@pytest.mark.parametrize("happened", [True, False])
async def test_after_a_write_without_an_answer_the_inventory_is_read_again(happened):
    inventory_store = FakeConfigMap()
    inventory = await loaded(inventory_store)
    await inventory.ensure(APP, entry(DEPLOYMENT, SERVICE))
    write = inventory_store.write

    async def lost(data, version):
        if happened:
            await write(data, version)
        raise RuleopError("no answer in time")

    inventory_store.write = lost
    with pytest.raises(RuleopError, match="no answer"):
        await inventory.shrink(APP, lambda: entry(DEPLOYMENT))
    assert inventory.of(APP) == entry(DEPLOYMENT), "a Service is recorded again before it is created"
    inventory_store.write = write
    assert await inventory.shrink(APP, lambda: entry(DEPLOYMENT))
    assert inventory_store.entries() == {APP: entry(DEPLOYMENT)}
    assert not inventory.in_doubt


async def test_the_remaining_entry_is_computed_while_no_other_write_runs():
    inventory_store = FakeConfigMap()
    inventory = await loaded(inventory_store)
    making = asyncio.create_task(inventory.ensure(APP, entry(DEPLOYMENT)))
    await asyncio.sleep(0)
    asked = []
    await inventory.shrink(APP, lambda: asked.append(inventory.of(APP)) or inventory.of(APP))
    assert asked == [entry(DEPLOYMENT)]
    await making


async def test_a_manual_edit_removes_no_known_entry():
    inventory_store = FakeConfigMap()
    inventory = await loaded(inventory_store)
    await inventory.ensure(APP, entry(DEPLOYMENT, finalizer=True))
    inventory_store.data, inventory_store.version = {"rubbish": "{", str(CRON): "{}"}, inventory_store.version + 1
    await inventory.ensure(CRON, entry(JOB))
    assert inventory_store.entries() == {APP: entry(DEPLOYMENT, finalizer=True), CRON: entry(JOB)}


async def test_a_deleted_configmap_is_recreated_with_all_known_entries():
    inventory_store = FakeConfigMap()
    inventory = await loaded(inventory_store)
    await inventory.ensure(APP, entry(DEPLOYMENT))
    inventory_store.data = None
    await inventory.ensure(CRON, entry(JOB))
    assert inventory_store.entries() == {APP: entry(DEPLOYMENT), CRON: entry(JOB)}


async def test_a_configmap_that_does_not_keep_its_entries_is_an_error():
    inventory_store = FakeConfigMap()
    inventory_store.keeps = lambda _: {}
    inventory = await loaded(inventory_store)
    with pytest.raises(RuleopError, match="does not keep its entry for App"):
        await inventory.ensure(APP, entry(DEPLOYMENT))
    assert inventory_store.writes == MAX_ATTEMPTS


async def test_the_last_attempt_of_a_write_counts():
    inventory_store = FakeConfigMap()
    inventory = await loaded(inventory_store)
    write, times = inventory_store.write, iter(range(MAX_ATTEMPTS - 1))
    inventory_store.write = lambda data, version: write(data, version if next(times, None) is None else "another")
    await inventory.ensure(APP, entry(DEPLOYMENT))
    assert inventory_store.entries() == {APP: entry(DEPLOYMENT)}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        '"x"',
        "{}",
        '{"children":[]}',
        '{"children":"ab","finalizer":false}',
        '{"children":[1],"finalizer":false}',
        '{"children":[],"finalizer":"no"}',
        '{"children":[],"finalizer":false,"conditions":7}',
        7,
        None,
    ],
)
async def test_entries_that_cannot_be_parsed_are_ignored(text):
    inventory_store = FakeConfigMap()
    inventory_store.data = {str(APP): text, **encode({CRON: entry(JOB)})}
    inventory = await loaded(inventory_store)
    assert inventory.entries == {CRON: entry(JOB)}
    await inventory.ensure(APP, entry(DEPLOYMENT))
    assert inventory_store.entries() == {APP: entry(DEPLOYMENT), CRON: entry(JOB)}


def test_an_entry_without_conditions_can_be_read():
    assert decode({str(APP): '{"children":["Deployment.apps"],"finalizer":false}'}) == {APP: entry(DEPLOYMENT)}


async def test_a_configmap_without_data_is_empty():
    inventory_store = FakeConfigMap()
    inventory_store.data = {}
    assert (await loaded(inventory_store)).entries == {}
    inventory_store.as_object = lambda: {"metadata": {"resourceVersion": "0"}}
    assert (await loaded(inventory_store)).entries == {}


_KINDS = st.builds(GroupKind, st.sampled_from(["", "apps", "a.b.example.com"]), st.sampled_from(["App", "Pod", "X1"]))
_ENTRY = st.builds(
    InventoryEntry,
    st.frozensets(_KINDS),
    st.booleans(),
    st.frozensets(st.sampled_from(["Kept", "example.com/Dropped"])),
    st.frozensets(st.builds(ObjectKey, st.just("apps"), st.just("App"), st.sampled_from(["", "shop"]), st.just("x"))),
)
_ENTRIES = st.dictionaries(_KINDS, _ENTRY)


@pytest.mark.slow
@given(_ENTRIES)
def test_decoding_reverses_encoding(entries):
    data = encode(entries)
    assert decode(data) == {kind: each for kind, each in entries.items() if each != InventoryEntry()}
    assert encode(dict(reversed(entries.items()))) == data
    for name in data:
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"), (
            "a key of a ConfigMap"
        )


@given(_ENTRY, _ENTRY)
def test_the_union_of_two_entries_covers_both_and_nothing_more(one, two):
    union = one.union(two)
    assert union.covers(one)
    assert union.covers(two)
    assert one.covers(two) == (union == one)


@pytest.mark.parametrize(
    ("more", "finalizer"),
    [
        ("children: {a: {template: a.yaml}}", False),
        ("reach: cluster, children: {a: {template: a.yaml}}", True),
        ("finalize: {last: {template: a.yaml}}", True),
        ("children: {a: {template: a.yaml, deletion: orphan}}", True),
    ],
)
def test_rules_need_a_finalizer_for_children_that_the_garbage_collector_does_not_delete(more, finalizer):
    rules = project_of(f"- {{group: example.com, version: v1, kind: App, {more}}}").rules
    assert entry_of_rules(rules) == entry(GroupKind("", "Pod"), finalizer=finalizer)


def test_the_objects_that_rules_patch_are_recorded_with_the_names_that_are_constant():
    patch = "{version: v1, kind: ConfigMap, name: NAME, fields: {data: {a: b}}}"
    fixed, free = (patch.replace("NAME", name) for name in ("a", '"{{ metadata.name }}"'))
    rules = project_of(
        f"- {{group: example.com, version: v1, kind: App, children: {{a: {{patch: {fixed}}}, b: {{patch: {free}}}}}}}"
    ).rules
    patched = frozenset(ObjectKey("", "ConfigMap", "", name) for name in ("a", ""))
    assert entry_of_rules(rules) == InventoryEntry(finalizer=True, patched=patched)
