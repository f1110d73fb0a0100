"""A kind that rules write or read in several versions: objects are read in the requested version, and in full unless
the metadata is enough."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ruleop.kubernetes.builtin.table import ResourceInfo
from ruleop.kubernetes.kinds import GroupKind, Kind, ObjectKey
from ruleop.language.rules.checking import build_project
from ruleop.operator.cache.cache import Cache
from ruleop.operator.cache.informers import Informer, WatchSpec, child_need, child_needs, observe_need
from ruleop.operator.wire.client.requests import ObjectSource
from ruleop.operator.wire.watch.store import Store
from ruleop.planning import Owner, Query
from ruleop.planning.child.existing import find_existing
from ruleop.planning.model.marks import PART_OF

THING = GroupKind("two.example.com", "Thing")
V1, V2 = (Kind(*THING[:1], version, THING.kind) for version in ("v1", "v2"))
KEY = ObjectKey("two.example.com", "Thing", "shop", "a")
RULES = """
- group: example.com
  version: v1
  kind: App
  observe:
    seen: {group: "", version: v1, kind: Secret, name: s}
    counted: {group: "", version: v1, kind: Secret, selector: {matchLabels: {a: b}}}
  children:
    old: {object: {apiVersion: two.example.com/v1, kind: Thing, metadata: {name: a}, spec: {size: 1, x: "{{ seen.data.x }}"}}}
    new: {object: {apiVersion: two.example.com/v2, kind: Thing, metadata: {name: b}, spec: {count: "{{ counted | length }}"}}}
"""
OWNER = Owner(Kind("example.com", "v1", "App"), "shop", "web", "uid-of-web")


@pytest.fixture
def rule():
    (rule,) = build_project({"watches.yaml": RULES}, root="rules", environ={}).rules
    return rule


def informer(kind: Kind, *, labels: str = "", fields: str = "", metadata_only: bool = False):
    need = WatchSpec(kind, labels=labels, fields=fields, metadata_only=metadata_only, children=labels == PART_OF)
    store = Store(ObjectSource(ResourceInfo("things", True, False, kind), labels=labels, metadata_only=metadata_only))
    store.begin_list()
    store.end_list(1)
    made = Informer(need)
    made.watchers = [SimpleNamespace(store=store)]
    return made


def thing(kind: Kind, version: int = 5, **spec):
    metadata = {
        "name": "a",
        "namespace": "shop",
        "uid": "u",
        "resourceVersion": str(version),
        "labels": {PART_OF: OWNER.part_of},
    }
    metadata["ownerReferences"] = [OWNER.reference()]
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}


@pytest.fixture
def world():
    world = Cache(SimpleNamespace(), lambda _kind: None)
    world.children_of = {THING: [informer(V1, labels=PART_OF), informer(V2, labels=PART_OF)]}
    return world


def held(world: Cache):
    return [[obj["spec"] for obj in each.watchers[0].store.select()] for each in world.children_of[THING]]


def test_a_kind_is_watched_in_each_version_that_is_written(rule):
    needs = list(child_needs([rule], frozenset({THING}), {THING: V2}))
    assert needs == [child_need(V1), child_need(V2)]


def test_only_observes_read_as_metadata_are_watched_as_metadata(rule):
    assert {name: observe_need(each).metadata_only for name, each in rule.observe.items()} == {
        "seen": False,
        "counted": True,
    }


def test_an_object_is_returned_in_the_requested_version(world):
    world.children_of[THING][0].watchers[0].store.apply(thing(V1, size=1))
    world.children_of[THING][1].watchers[0].store.apply(thing(V2, count=1))
    assert [world.get(KEY, version=version)["spec"] for version in ("v1", "v2")] == [{"size": 1}, {"count": 1}]
    assert world.get(KEY, version="v3") is None


def test_an_answer_goes_only_to_the_store_of_its_version(world):
    assert world.put(thing(V2, count=1))
    assert held(world) == [[], [{"count": 1}]]


def test_an_existing_child_is_read_in_the_version_of_its_rule(world, rule):
    """One object, although both watches have it."""
    for kind in (V1, V2):
        (store,) = (each.watchers[0].store for each in world.children_of[THING] if each.need.kind == kind)
        store.apply(thing(kind, of=kind.version))
    (existing,) = find_existing(rule, OWNER, world)
    assert existing.live["spec"] == {"of": "v1"}


def test_an_object_known_only_by_its_metadata_is_not_returned_in_full(world):
    partial = informer(V1, metadata_only=True)
    partial.watchers[0].store.apply(thing(V1, size=1))
    world.children_of, world.observed = {}, {THING: [partial]}
    assert world.get(KEY, version="v1") is None
    assert list(world.select(Query(THING, version="v1"))) == []
    assert "spec" not in world.get(KEY, version="v1", partial=True)
    assert len(list(world.select(Query(THING, version="v1", partial=True)))) == 1
    partial.watchers[0].store.put(thing(V1, 9, size=2))
    assert b"size" not in partial.watchers[0].store.entry(KEY).body


def test_a_full_object_is_returned_when_only_metadata_is_requested(world):
    whole = informer(V1)
    whole.watchers[0].store.apply(thing(V1, size=1))
    world.observed = {THING: [whole]}
    assert world.get(KEY, version="v1", partial=True)["spec"] == {"size": 1}


def test_a_response_is_not_stored_where_another_name_is_watched(world):
    """No event would ever remove it."""
    other = informer(V1, fields="metadata.name=b")
    world.observed = {THING: [other]}
    assert world.put(thing(V1, size=1))
    assert len(other.watchers[0].store) == 0
