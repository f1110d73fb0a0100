"""The guarantees of a store to the engine."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.kubernetes.kinds import ObjectKey, parse_version
from ruleop.kubernetes.names import PART_OF_LABEL
from ruleop.operator.wire.watch import packing
from ruleop.operator.wire.watch.store import MAX_KEPT_BYTES, EntryOrigin, Store, StoreChange, StoreSnapshot, StoreState
from tests.operator.wire.model_server import SOURCE


def widget(name: str = "a", version: int = 5, uid: str = "u1", **fields: Any) -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": "ns",
        "uid": uid,
        "resourceVersion": str(version),
        "managedFields": [{"manager": "x"}],
    }
    metadata |= fields.pop("metadata", {})
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, **fields}


def key(name: str = "a") -> ObjectKey:
    return ObjectKey("example.com", "Widget", "ns", name)


@pytest.fixture(params=["plain", "compressed", "some compressed"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store that compresses no object, each, or each but the last that changed."""
    monkeypatch.setattr(packing, "LEAST", 1)
    monkeypatch.setattr("ruleop.operator.wire.watch.store.SAMPLES", 1)
    warm = {"plain": 1 << 20, "compressed": 0, "some compressed": 100}[request.param]
    monkeypatch.setattr("ruleop.operator.wire.watch.store.WARM", warm)
    made = Store(SOURCE)
    made.begin_list()
    made.end_list(1)
    if request.param == "compressed":
        made._packing = packing.Packing([b'{"metadata":{"name":"a","namespace":"ns","uid":"u1"},"spec":{"n":1}}'])
    return made


@pytest.fixture
def changes(store: Store) -> list[StoreChange]:
    heard: list[StoreChange] = []
    store.subscribe(heard.append)
    return heard


def test_the_part_of_managed_fields_that_is_about_patches_is_kept_and_found(store: Store) -> None:
    entry = {"manager": "ruleop:hash:child", "operation": "Apply", "fieldsV1": {"f:spec": {"f:n": {}}}}
    managed = {"managedFields": [{"manager": "ruleop"}, entry, {"manager": 7}]}
    store.apply(widget(spec={"n": 1}, metadata=managed))
    read = store.get(key())
    assert read is not None
    assert read["metadata"]["managedFields"] == [entry]
    assert list(store.patched("hash")) == [read]
    assert store.patches("hash")
    store.apply(widget(version=6, spec={"n": 1}))
    assert list(store.patched("hash")) == []
    store.apply(widget(version=7, metadata=managed))
    store.delete(widget(version=8))
    assert not store.patches("hash")


def test_an_object_is_stored_whole_except_for_its_managed_fields(store: Store) -> None:
    store.apply(widget(spec={"n": 1}, status={"ready": True}))
    read = store.get(key())
    assert read == {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "a", "namespace": "ns", "uid": "u1", "resourceVersion": "5"},
        "spec": {"n": 1},
        "status": {"ready": True},
    }
    assert store.get(key()) is read, "an object that has not changed is parsed once; nobody changes what it is given"


def test_large_objects_are_not_kept_parsed(store: Store) -> None:
    """Sixty-four of them would take a gigabyte."""
    store.apply(widget(spec={"text": "x" * MAX_KEPT_BYTES}))
    assert store.get(key()) == store.get(key())
    assert store.get(key()) is not store.get(key())


def test_a_change_of_status_is_distinguished_from_other_changes(store: Store, changes: list[StoreChange]) -> None:
    store.apply(widget(version=5, spec={"n": 1}))
    store.apply(widget(version=6, spec={"n": 1}, status={"ready": True}))
    store.apply(widget(version=7, spec={"n": 1}, status={"ready": True}, metadata={"managedFields": []}))
    store.apply(widget(version=8, spec={"n": 1}, status={"ready": True}, metadata={"labels": {"a": "b"}}))
    store.apply(widget(version=9, spec={"n": 2}, status={"ready": True}, metadata={"labels": {"a": "b"}}))
    store.delete(widget(version=10))
    assert [change.outside_status for change in changes] == [True, False, False, True, True, True]


def test_a_status_write_without_the_subresource_still_counts_as_a_change_of_status(
    store: Store, changes: list[StoreChange]
) -> None:
    """There it raises the generation."""
    store.apply(widget(version=5, spec={"n": 1}, metadata={"generation": 1}))
    store.apply(widget(version=6, spec={"n": 1}, status={"a": 1}, metadata={"generation": 2}))
    assert not changes[-1].outside_status
    assert store.get(key())["metadata"]["generation"] == 2


@pytest.mark.slow
def test_a_failing_listener_does_not_stop_the_others(store: Store) -> None:
    heard: list[StoreChange] = []

    def bad(change: StoreChange) -> None:
        raise ZeroDivisionError

    store.subscribe(bad)
    store.subscribe(heard.append)
    store.apply(widget())
    assert len(heard) == 1
    assert store.listener_failures == 1


def test_items_of_a_list_equal_objects_of_a_watch(store: Store, changes: list[StoreChange]) -> None:
    """The items of a list have neither apiVersion nor kind."""
    store.apply(widget(spec={"n": 1}))
    bare = widget(version=6, spec={"n": 1})
    del bare["apiVersion"], bare["kind"]
    store.begin_list()
    store.list_object(bare)
    store.end_list(6)
    assert not changes[-1].outside_status


def test_a_list_replaces_the_contents_of_the_store_when_it_is_complete(
    store: Store, changes: list[StoreChange]
) -> None:
    store.apply(widget("gone", 5))
    store.apply(widget("stays", 6))
    store.begin_list()
    store.list_object(widget("stays", 6))
    store.list_object(widget("new", 7))
    assert {each.name for each in store.select_keys()} == {"gone", "stays"}, "not before it is complete"
    changes.clear()
    store.end_list(8)
    assert [(change.key.name, change.new is None, change.origin) for change in changes] == [
        ("gone", True, EntryOrigin.LIST),
        ("new", False, EntryOrigin.LIST),
    ]


def test_an_object_that_a_list_shows_otherwise_at_the_same_version_has_changed(
    store: Store, changes: list[StoreChange]
) -> None:
    """So does the API server after a CRD has a new default."""
    store.apply(widget("same", 5, spec={"n": 1}))
    store.apply(widget("defaulted", 6, spec={"n": 1}))
    changes.clear()
    store.begin_list()
    store.list_object(widget("same", 5, spec={"n": 1}))
    store.list_object(widget("defaulted", 6, spec={"n": 1, "color": "blue"}))
    store.end_list(8)
    assert [(change.key.name, change.outside_status) for change in changes] == [("defaulted", True)]
    assert store.get(key("defaulted"))["spec"] == {"n": 1, "color": "blue"}


def test_a_changed_uid_is_a_deletion_and_a_creation(store: Store, changes: list[StoreChange]) -> None:
    store.apply(widget(uid="u1", version=5))
    store.apply(widget(uid="u2", version=9))
    assert [(change.old and change.old.uid, change.new and change.new.uid) for change in changes] == [
        (None, "u1"),
        ("u1", None),
        (None, "u2"),
    ]


def test_an_own_write_is_visible_before_its_watch_event_which_is_then_ignored(
    store: Store, changes: list[StoreChange]
) -> None:
    assert store.put(widget(version=7, spec={"n": 1}))
    assert store.get(key())["spec"] == {"n": 1}
    assert store.is_at_least("7", key())
    assert not store.is_at_least("7"), "of the others nothing is known"
    store.apply(widget(version=6, spec={"n": 0}))
    store.apply(widget(version=7, spec={"n": 1}))
    assert [change.origin for change in changes] == [EntryOrigin.WRITE]
    assert store.is_at_least("7")


def test_a_late_answer_to_a_write_changes_nothing(store: Store, changes: list[StoreChange]) -> None:
    store.apply(widget(version=7))
    assert not store.put(widget(version=6, spec={"old": True}))
    store.delete(widget(version=9))
    assert not store.put(widget(version=8)), "it was deleted since"
    assert key() not in store


def test_an_own_write_survives_an_older_list(store: Store) -> None:
    store.begin_list()
    store.put(widget("ours", 20))
    store.end_list(19)
    assert key("ours") in store
    store.begin_list()
    store.end_list(21)
    assert key("ours") not in store


def test_an_object_that_a_live_read_did_not_find_is_removed_and_stays_removed(
    store: Store, changes: list[StoreChange]
) -> None:
    """The watch may be behind: it still tells how the object changed before it went."""
    store.put(widget(version=7))
    store.remove(key(), "another")
    assert key() in store, "the read was about another object"
    store.remove(key(), "u1")
    assert key() not in store
    assert changes[-1].origin is EntryOrigin.READ, (
        "whoever waits for its end hears of it: the watch will bring no change"
    )
    store.apply(widget(version=6))
    store.apply(widget(version=8))
    assert not store.put(widget(version=9)), "a late answer"
    store.begin_list()
    store.list_object(widget(version=8))
    store.end_list(8)
    assert key() not in store
    store.delete(widget(version=12))
    assert len(changes) == 2


def test_an_older_list_does_not_restore_a_removed_object(store: Store) -> None:
    store.begin_list()
    store.put(widget(version=7))
    store.remove(key(), "u1")
    store.end_list(5)
    store.apply(widget(version=7))
    assert key() not in store, "the watch that follows the list tells of its life from the beginning"


def test_a_new_object_of_the_same_name_replaces_a_removed_one(store: Store) -> None:
    store.put(widget(version=7, uid="u2"))
    store.remove(key(), "u2")
    store.apply(widget(version=5, uid="u1"))
    assert key() not in store, "it went before the one that is gone was made"
    store.apply(widget(version=9, uid="u3"))
    store.apply(widget(version=8, uid="u2"))
    assert store.get(key())["metadata"]["uid"] == "u3"
    store.delete(widget(version=10, uid="u3"))
    assert key() not in store


def test_an_object_that_lost_its_label_is_restored_when_it_regains_it(store: Store) -> None:
    """The object still exists, and only its versions up to the live read are ignored."""
    store.put(widget(version=7))
    store.remove(key(), "u1", "9")
    store.apply(widget(version=8))
    assert key() not in store
    store.apply(widget(version=10))
    assert store.get(key())["metadata"]["resourceVersion"] == "10"
    store.remove(key(), "u1", "9")
    assert key() in store, "the watch knows better by now"


def test_removed_objects_are_not_remembered_for_ever(store: Store) -> None:
    for version, name in enumerate("abc", start=5):
        store.put(widget(name, version))
        store.remove(key(name), "u1")
    store.delete(widget("a", 10))
    store.apply(widget("b", 11, uid="u2"))
    store.begin_list()
    store.end_list(12)
    assert store._ended == {}


def test_a_put_does_not_modify_its_argument(store: Store) -> None:
    given = widget(version=7)
    before = orjson.dumps(given)
    store.put(given)
    assert orjson.dumps(given) == before


def labelled(name: str, version: int, part_of: str | None) -> dict[str, Any]:
    return widget(name, version, uid=name, metadata={"labels": {PART_OF_LABEL: part_of} if part_of else {}})


def test_children_are_indexed_by_their_part_of_label(store: Store) -> None:
    store.apply(labelled("b", 5, "one"))
    store.apply(labelled("a", 6, "one"))
    store.apply(labelled("c", 7, "two"))
    assert [child["metadata"]["name"] for child in store.children("one")] == ["a", "b"]
    store.apply(labelled("a", 8, "two"))
    store.apply(labelled("c", 9, None))
    store.delete(labelled("b", 10, "one"))
    assert [child["metadata"]["name"] for child in store.children("two")] == ["a"]
    assert list(store.children("one")) == []


def owned(name: str, version: int, part_of: str | None, owner: str) -> dict[str, Any]:
    found = labelled(name, version, part_of)
    found["metadata"]["ownerReferences"] = [{"uid": owner}]
    return found


def all_reads(store: Store | StoreSnapshot, names: str) -> Any:
    """All that a plan of the CR `one` can ask."""
    return (
        [store.get(key(name)) for name in names],
        list(store.children("one")),
        store.patched("one"),
        store.select_keys(),
        store.select_keys("ns"),
        store.select_keys("other"),
        store.owned_keys("u", "ns"),
        store.owned_keys("v"),
        store.state,
    )


@given(
    changes=st.lists(
        st.tuples(
            st.sampled_from(["apply", "delete", "remove", "snapshot", "ask"]), st.sampled_from("abcd"), st.booleans()
        ),
        max_size=40,
    ),
    compressed=st.booleans(),
)
def test_a_snapshot_stays_as_the_store_was(changes: list[tuple[str, str, bool]], compressed: bool) -> None:
    """Whatever happens to the store afterwards, and whichever of its indexes exist."""
    store, taken = Store(SOURCE), []
    if compressed:
        store._packing = packing.Packing([b'{"metadata":{"name":"a","namespace":"ns","uid":"u1"},"spec":{"n":1}}'])
    store.begin_list()
    store.end_list(1)
    for version, (what, name, first) in enumerate(changes, start=5):
        obj = owned(name, version, "one" if first else "two", "u" if first else "v")
        if first:
            manager = {"manager": "ruleop:one:child", "operation": "Apply", "fieldsV1": {"f:spec": {}}}
            obj["metadata"]["managedFields"] = [manager]
        if what == "apply":
            store.apply(obj)
        elif what == "delete":
            store.delete(obj)
        elif what == "remove":
            store.remove(key(name), name)
        elif what == "ask":
            store.owned_keys("u")
            store.select_keys("ns")
        else:
            reads = all_reads(snapshot := store.snapshot("one"), "abcd")
            assert reads == all_reads(store.snapshot("one"), "abcd")
            taken.append((snapshot, reads))
    for snapshot, reads in taken:
        assert all_reads(snapshot, "abcd") == reads


def test_a_snapshot_is_what_the_store_holds(store: Store) -> None:
    store.apply(owned("a", 5, "one", "u"))
    store.apply(owned("b", 6, "two", "v"))
    assert all_reads(store.snapshot("one"), "abc") == all_reads(store, "abc")  # it finds owners without an index
    assert all_reads(store.snapshot("one"), "abc") == all_reads(store, "abc")


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.sets(st.sampled_from("xyz"))), max_size=12),
    st.integers(0, 12),
)
def test_objects_are_found_by_their_owners_from_the_first_question_on(
    steps: list[tuple[str, set[str] | None]], asked: int
) -> None:
    store, owners = Store(SOURCE), dict[str, set[str]]()
    store.begin_list()
    store.end_list(1)
    for version, (name, uids) in enumerate(steps, 2):
        if version == asked:
            store.owned_keys("x")
        references = [{"uid": uid} for uid in sorted(uids or ())]
        obj = widget(name, version, metadata={"ownerReferences": references})
        if uids is None:
            store.delete(obj)
            owners.pop(name, None)
        else:
            store.apply(obj)
            owners[name] = uids
    for uid in "xyz":
        expected = [key(name) for name in sorted(owners) if uid in owners[name]]
        assert store.owned_keys(uid) == store.owned_keys(uid, "ns") == expected
        assert store.owned_keys(uid, "other") == []


def test_objects_are_selected_by_namespace_and_sorted(store: Store) -> None:
    for version, (namespace, name) in enumerate([("y", "a"), ("x", "b"), ("x", "a")], start=5):
        store.apply(widget(name, version, uid=namespace + name, metadata={"namespace": namespace}))
    assert [(k.namespace, k.name) for k in store.select_keys()] == [("x", "a"), ("x", "b"), ("y", "a")]
    assert [obj["metadata"]["name"] for obj in store.select("x")] == ["a", "b"]
    assert store.select("z") == []


def test_a_kind_that_is_no_longer_served_removes_its_objects(store: Store, changes: list[StoreChange]) -> None:
    store.apply(widget())
    states: list[StoreState] = []
    store.subscribe_state(lambda each: states.append(each.state))
    store.set_state(StoreState.FORBIDDEN, "no right")
    assert key() in store, "what is not seen may still be there"
    store.set_state(StoreState.UNSERVED, "no kind")
    store.set_state(StoreState.UNSERVED, "still no kind")
    assert len(store) == 0
    assert changes[-1].new is None
    assert states == [StoreState.FORBIDDEN, StoreState.UNSERVED]


def test_a_metadata_only_store_keeps_only_metadata(changes: list[StoreChange]) -> None:
    store = Store(replace(SOURCE, metadata_only=True))
    store.apply(widget(version=5, spec={"big": "x" * 1000}))
    assert store.get(key()) == {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "a", "namespace": "ns", "uid": "u1", "resourceVersion": "5"},
    }


def test_resource_versions_are_compared_as_numbers() -> None:
    assert parse_version("10") > parse_version("9")
    assert [parse_version(text) for text in ("", None, "abc", "-1", "٣x")] == [0, 0, 0, 0, 0]


def test_an_unsubscribed_listener_receives_nothing(store: Store) -> None:
    heard: list[StoreChange] = []
    end = store.subscribe(heard.append)
    end()
    store.apply(widget())
    assert heard == []
    assert store.statistics().objects == 1


@pytest.mark.slow
def test_an_object_takes_about_as_much_memory_as_its_json() -> None:
    """Objects of 4 KB, as the server sends them; measured as what Python allocates."""
    containers = [
        {"name": f"c{i}", "image": "example.com/image:1", "env": [{"name": "A", "value": "b" * 100}]} for i in range(18)
    ]
    obj = widget(spec={"containers": containers}, status={"ready": True})
    obj["metadata"]["managedFields"] = [{"manager": "m", "fieldsV1": {f"f:{i}": {} for i in range(60)}}]
    size = len(orjson.dumps(obj))
    assert 3500 < size < 5000
    store = Store(SOURCE)
    store.apply(orjson.loads(orjson.dumps(obj)))
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(300):
            obj["metadata"] |= {
                "name": f"n{number}",
                "uid": f"00000000-0000-0000-0000-{number:012}",
                "resourceVersion": str(100 + number),
            }
            store.apply(orjson.loads(orjson.dumps(obj)))
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held / 300 / size < 1.3


def test_objects_that_the_store_does_not_select_are_not_kept(changes: list[StoreChange]) -> None:
    store = Store(SOURCE, lambda key, metadata: key.name.startswith("a") and "owner" in (metadata.get("labels") or {}))
    store.subscribe(changes.append)
    ours: dict[str, Any] = {"metadata": {"labels": {"owner": "x"}}}
    store.begin_list()
    for obj in (widget("a1", **ours), widget("a2"), widget("b", **ours)):
        store.list_object(obj)
    store.end_list(9)
    assert store.select_keys() == [key("a1")]
    store.apply(widget("a2", 10))
    assert not store.put(widget("a2", 11))
    assert (store.select_keys(), store.version) == ([key("a1")], 10)
    changes.clear()
    store.apply(widget("a1", 12))
    assert [(change.key, change.new) for change in changes] == [(key("a1"), None)], "it lost what it is selected by"
    store.apply(widget("a1", 13, **ours))
    store.begin_list()
    store.list_object(widget("a1", 14))
    store.end_list(14)
    assert not len(store)


def test_children_stay_sorted_when_added_and_removed_in_any_order() -> None:
    store = Store(SOURCE)
    names = [f"w{number:03}" for number in range(100)]
    for version, name in enumerate((names[number * 37 % 100] for number in range(100)), start=1):
        store.apply(widget(name, version, uid=name, metadata={"labels": {PART_OF_LABEL: "web"}}))
        held = [obj["metadata"]["name"] for obj in store.children("web")]
        assert held == sorted(held)
        assert len(held) == version
    for left, name in enumerate(names[number * 53 % 100] for number in range(100)):
        store.delete(widget(name, 1000 + left, uid=name))
        assert len(list(store.children("web"))) == 99 - left
    assert store._children == {}
