"""Objects of a store are compressed without loss, and equal ones to equal bytes."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.operator.wire.watch.packing import LEAST, MARK, MOST, SAMPLES, Packing
from ruleop.operator.wire.watch.store import Store
from tests.operator.wire.model_server import SOURCE

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
).map(orjson.dumps)


@pytest.mark.slow
@given(st.lists(JSON, max_size=8), st.lists(JSON, max_size=8))
def test_packed_objects_are_unpacked_as_they_were(samples: list[bytes], objects: list[bytes]) -> None:
    packing = Packing(samples)
    for plain in [*samples, *objects, b'"' + b"a" * LEAST + b'"']:
        packed = packing.pack(plain)
        assert packing.unpack(packed) == plain
        assert packing.pack(plain) == packed
        assert len(packed) <= len(plain)


def test_objects_that_are_too_small_or_too_large_are_kept_as_they_are() -> None:
    packing = Packing([])
    for length in (LEAST - 1, MOST + 1):
        assert not packing.pack(b"a" * length).startswith(MARK)
    assert packing.pack(b"a" * LEAST).startswith(MARK)
    assert packing.pack(b"a" * MOST).startswith(MARK)


def widget(number: int) -> dict[str, object]:
    fields = {name: {"description": "the same in all of them"} for name in ("one", "two", "three", "four")}
    metadata = {"name": f"w{number}", "namespace": "ns", "uid": f"u{number}", "resourceVersion": str(number + 2)}
    return {"metadata": metadata, "spec": {"number": number, **fields}, "status": {"seen": number}}


def test_a_store_with_many_objects_compresses_those_after_the_first() -> None:
    store = Store(SOURCE)
    store.begin_list()
    for number in range(100):
        store.list_object(widget(number))
    store.end_list(200)
    assert [entry.packed.startswith(MARK) for _, entry in store.entries()] == [
        number >= SAMPLES for number in range(100)
    ]
    assert store.statistics().bytes < sum(len(orjson.dumps(widget(number))) for number in range(100)) / 3
    for key, entry in store.entries():
        read = store.get(key)
        assert read is not None
        assert {each: read[each] for each in ("metadata", "spec", "status")} == widget(int(entry.uid[1:]))


def test_only_the_objects_that_changed_last_are_not_compressed(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(SOURCE)
    for number in range(20):
        store.apply(widget(number))
    size = store.statistics().bytes // 20
    assert not any(entry.packed.startswith(MARK) for _, entry in store.entries())
    monkeypatch.setattr("ruleop.operator.wire.watch.store.WARM", 5 * size)
    store.apply(widget(0) | {"metadata": {**widget(0)["metadata"], "resourceVersion": "300"}})
    store.apply(widget(20))
    plain = {key.name for key, entry in store.entries() if not entry.packed.startswith(MARK)}
    assert {"w0", "w20"} <= plain <= {"w0", "w17", "w18", "w19", "w20"}
    sizes = [len(each.packed) + len(each.packed_status or b"") + len(each.labels) for _, each in store.entries()]
    assert store.statistics().bytes == sum(sizes)
    for number in (19, 18, 1):
        store.delete(widget(number) | {"metadata": {**widget(number)["metadata"], "resourceVersion": "400"}})
    store.apply(widget(21))
    assert store.get(ObjectKey("example.com", "Widget", "ns", "w2"))["spec"] == widget(2)["spec"]
    assert store._warm_bytes == sum(store._warm.values())


def test_an_object_with_the_name_of_a_manager_is_not_compressed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What deflate cannot compress, it keeps as it is: the name could be found in it by chance."""
    monkeypatch.setattr("ruleop.operator.wire.watch.store.WARM", 0)
    store = Store(SOURCE)
    for number in range(100):
        store.apply(widget(number) | {"spec": {"manager": "ruleop:hash:child", "more": "x" * 5000}})
    assert not any(entry.packed.startswith(MARK) for _, entry in store.entries())
    assert list(store.patched("hash")) == []


def test_a_second_list_of_the_same_objects_changes_nothing_although_they_are_compressed_now() -> None:
    store = Store(SOURCE)
    changes: list[object] = []
    for _ in range(2):
        store.begin_list()
        for number in range(2 * SAMPLES):
            store.list_object(widget(number))
        store.end_list(200)
        store.subscribe(changes.append)
    assert changes == []
