"""What the store of the cluster in memory keeps of an object, and for how long."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from ruleop.localcluster import object_store as stores
from ruleop.localcluster.object_store import Name, Resource, Store

MAPS = Resource("", "configmaps")


def config_map(name: str, **data: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": f"u-{name}"}
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data}


def read(store: Store, name: str) -> Any:
    found = store.get(MAPS, Name("default", name))
    assert found is not None
    return found.obj


def test_an_object_that_is_kept_is_the_same_each_time() -> None:
    store = Store()
    store.put(MAPS, config_map("a"))
    assert read(store, "a") is read(store, "a")


def test_an_object_that_is_not_kept_is_read_from_its_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "KEPT_OBJECTS", 1000)
    store = Store()
    before = store.put(MAPS, config_map("a", text="ä", number=1.0, none=None)).obj
    for number in range(20):
        store.put(MAPS, config_map(f"b{number}"))
    after = read(store, "a")
    assert after == before
    assert after is not before
    assert read(store, "a") is after
    assert [repr(each) for each in after["data"].values()] == ["'ä'", "1.0", "None"]


def test_earlier_versions_and_deleted_objects_can_still_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "KEPT_OBJECTS", 0)
    store = Store()
    for number in range(3):
        store.put(MAPS, config_map("a", number=number))
    store.delete(MAPS, Name("default", "a"))
    events = list(store.since(MAPS, 1))
    assert [event.new.obj["data"]["number"] for event in events] == [0, 1, 2, 2]
    assert [event.old.obj["data"]["number"] for event in events if event.old is not None] == [0, 1, 2]
    assert events[-1].new.name == Name("default", "a")
    assert events[-1].new.uid == "u-a"


def test_objects_that_are_not_kept_take_little_more_than_their_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "KEPT_OBJECTS", 0)
    store, objects = Store(), 200
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(objects):
            store.put(MAPS, config_map(f"a{number}", text="x" * 2200))
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    size = sum(len(each.data) for each in store.all(MAPS))
    assert taken < size + 1000 * objects
