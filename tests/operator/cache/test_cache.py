"""Removals by live reads, and versions that stores have reached, if several stores may hold an object."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ruleop.errors import Site
from ruleop.kubernetes.builtin.table import ResourceInfo
from ruleop.kubernetes.kinds import Kind, ObjectKey
from ruleop.language.rules import Observe, Selector
from ruleop.operator.cache.cache import Cache
from ruleop.operator.cache.informers import CHILD_LABELS, Informer, WatchSpec
from ruleop.operator.wire.client.requests import ObjectSource
from ruleop.operator.wire.watch.store import Store, StoreEntry, StoreState
from ruleop.planning import Query, Served
from ruleop.planning.model.marks import PART_OF

CONFIG_MAP = Kind("", "v1", "ConfigMap")
KEY = ObjectKey("", "ConfigMap", "shop", "a")
SITE = Site("watches.yaml", 1)


class Held:
    """An informer without a watch."""

    def __init__(self, namespace=""):
        self.store = Store(
            ObjectSource(
                ResourceInfo("configmaps", namespaced=True, status_subresource=False, kind=CONFIG_MAP), namespace
            )
        )
        self.store.begin_list()
        self.store.end_list(5)


def informer(labels=""):
    made = Informer(WatchSpec(CONFIG_MAP, labels=labels, children=labels == CHILD_LABELS))
    made.watchers = [Held()]
    return made


def child(version=7, uid="u", **labels):
    metadata = {
        "name": "a",
        "namespace": "shop",
        "uid": uid,
        "resourceVersion": str(version),
        "labels": labels or {PART_OF: "x"},
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}}


@pytest.fixture
def world():
    made = Cache(None, lambda _kind: None)
    made.children_of = {CONFIG_MAP.versionless: [informer(CHILD_LABELS)]}
    made.observed = {CONFIG_MAP.versionless: [informer()]}
    return made


def stores(world):
    return [
        each.watchers[0].store
        for informers in (world.children_of, world.observed)
        for each in informers[CONFIG_MAP.versionless]
    ]


def test_a_removed_object_is_removed_from_every_store(world):
    assert world.put(child())
    assert [KEY in store for store in stores(world)] == [True, True]
    world.remove(KEY, "u")
    assert [KEY in store for store in stores(world)] == [False, False]
    assert world.get(KEY) is None


def test_an_object_without_its_label_is_removed_from_the_store_of_children_only(world):
    world.put(child())
    world.put(child(9, theirs="x"))
    world.remove(KEY, "u", "9")
    assert [KEY in store for store in stores(world)] == [False, True]


def test_a_store_is_current_when_it_has_the_object_or_its_watch_has_passed_the_version(world):
    store = stores(world)[0]
    assert not world.is_at_least(KEY, "7")
    world.put(child())
    assert world.is_at_least(KEY, "7")
    assert not world.has_seen(KEY, "7"), "it is there by our own word"
    assert not world.is_at_least(KEY, "8")
    store.bookmark(8)
    assert world.is_at_least(KEY, "8")
    assert world.has_seen(KEY, "8")


def test_a_kind_has_a_state_in_each_watched_namespace():
    resource = ResourceInfo("configmaps", namespaced=True, status_subresource=False, kind=CONFIG_MAP)
    world = Cache(None, {CONFIG_MAP: resource}.get, namespaces=("shop", "tools"))
    assert world.seen_from("shop").info(Kind("", "v1", "Nothing")).state is Served.UNSERVED
    watched = informer(CHILD_LABELS)
    watched.watchers = [Held("shop"), Held("tools")]
    world.children_of = {CONFIG_MAP.versionless: [watched]}
    watched.watchers[1].store.set_state(StoreState.FORBIDDEN)
    info = world.seen_from("shop").info(CONFIG_MAP)
    assert (info.state, info.resource) == (Served.SYNCED, "configmaps")
    states = [info.state_in(namespace) for namespace in ("shop", "tools", "far")]
    assert states == [Served.SYNCED, Served.FORBIDDEN, Served.UNWATCHED]
    world = Cache(None, {CONFIG_MAP: resource}.get)
    world.children_of = {CONFIG_MAP.versionless: [informer(CHILD_LABELS)]}
    assert world.seen_from("shop").info(CONFIG_MAP).state_in("far") is Served.SYNCED


def served_by(*, of=StoreState.SYNCED, observed=StoreState.SYNCED):
    """A world in which children of a kind and what is observed of it are watched, each by an informer of its own."""
    resource = ResourceInfo("configmaps", namespaced=True, status_subresource=False, kind=CONFIG_MAP)
    made = Cache(None, {CONFIG_MAP: resource}.get)
    made.children_of = {CONFIG_MAP.versionless: [informer(CHILD_LABELS)]}
    made.observed = {CONFIG_MAP.versionless: [informer("a=b")]}
    for store, state in zip(stores(made), (of, observed), strict=True):
        store.set_state(state)
    return made


def observe(**labels):
    return Observe(
        "seen",
        SITE,
        CONFIG_MAP,
        selector=Selector({name: SimpleNamespace(constant=value) for name, value in labels.items()}),
    )


@pytest.mark.parametrize("state", StoreState)
def test_the_states_of_child_watches_and_observe_watches_are_independent(state):
    world = served_by(observed=state)
    assert world.info(CONFIG_MAP).state is Served.SYNCED
    assert world.state_of(observe(a="b")).value == state.value
    world = served_by(of=state)
    assert world.info(CONFIG_MAP).state.value == state.value
    assert world.state_of(observe(a="b")) is Served.SYNCED


def test_the_served_state_of_a_kind_does_not_depend_on_its_watches():
    world = served_by(of=StoreState.UNSERVED, observed=StoreState.FORBIDDEN)
    assert world.info(CONFIG_MAP).served
    unserved = world.info(CONFIG_MAP._replace(version="v2"))
    assert (unserved.served, unserved.state) == (False, Served.UNSERVED)


def test_a_kind_that_is_not_watched_is_pending():
    """It may be there all the same."""
    world = served_by()
    assert world.state_of(observe(other="selector")) is Served.PENDING
    world.children_of.clear()
    world.invalidate()
    assert world.info(CONFIG_MAP).state is Served.PENDING


def test_cached_states_of_a_kind_are_dropped_when_a_state_changes():
    world = served_by()
    assert world.state_of(observe(a="b")) is Served.SYNCED
    stores(world)[1].set_state(StoreState.FORBIDDEN)
    world.invalidate()
    assert world.state_of(observe(a="b")) is Served.FORBIDDEN


@pytest.mark.parametrize("state", [StoreState.FORBIDDEN, StoreState.PENDING])
def test_a_synced_store_is_preferred_to_one_that_is_not_updated(state):
    world = served_by(observed=state)
    stores(world)[1].put(child())
    assert world.get(KEY) is None
    world = served_by(of=state, observed=state)
    stores(world)[1].put(child())
    assert world.get(KEY) is not None, "what was is better than nothing"
    assert [obj["metadata"]["name"] for obj in world.select(Query(CONFIG_MAP.versionless, "shop"))] == ["a"]


def test_objects_that_a_selector_does_not_match_are_not_parsed(monkeypatch):
    world = served_by()
    store = stores(world)[1]
    for name, labels in (("a", {"app": "x"}), ("b", {"app": "y"}), ("c", {})):
        obj = child()
        store.put({**obj, "metadata": {**obj["metadata"], "name": name, "labels": labels}})
    parsed = []
    original = StoreEntry.parsed
    monkeypatch.setattr(StoreEntry, "parsed", lambda entry: parsed.append(entry) or original(entry))
    found = list(world.select(Query(CONFIG_MAP.versionless, "shop", matches=lambda labels: labels.get("app") == "y")))
    assert [obj["metadata"]["name"] for obj in found] == ["b"]
    assert found[0]["metadata"]["labels"] == {"app": "y"}
    assert len(parsed) == 1


def test_a_store_that_is_not_updated_is_not_waited_for(world):
    stores(world)[0].set_state(StoreState.FORBIDDEN)
    assert world.is_at_least(KEY, "99")
    assert world.is_at_least(ObjectKey("", "Secret", "shop", "a"), "99"), "no store would hold it"


# -- a kind that is watched in several versions ------------------------------------------------------------------------


def of(version, value, number):
    metadata = {"name": "a", "namespace": "shop", "uid": "u", "resourceVersion": str(number)}
    return {"apiVersion": f"example.com/{version}", "kind": "App", "metadata": metadata, "spec": {"v": value}}


def test_a_cr_is_read_in_the_version_of_its_rule_and_responses_are_stored_in_theirs():
    world = Cache(None, lambda _kind: None)
    kinds = [Kind("example.com", version, "App") for version in ("v1", "v2", "v3")]
    informers = []
    for kind in kinds[:2]:
        made = Informer(WatchSpec(kind))
        made.watchers = [Held()]
        made.watchers[0].store = Store(
            ObjectSource(ResourceInfo("apps", namespaced=True, status_subresource=True, kind=kind))
        )
        made.watchers[0].store.begin_list()
        made.watchers[0].store.end_list(5)
        informers.append(made)
    app = ObjectKey("example.com", "App", "shop", "a")
    world.primaries = {app.group_kind: tuple(informers)}
    informers[0].watchers[0].store.apply(of("v1", "one", 6))
    assert world.resource(app)["apiVersion"] == world.resource(app, "v1")["apiVersion"] == "example.com/v1"
    assert world.resource(app, "v2") is None, "not shown yet"
    assert world.resource(app, "v3") is None
    assert world.put(of("v2", "two", 7))
    assert (world.resource(app)["spec"], world.resource(app, "v2")["spec"]) == ({"v": "one"}, {"v": "two"})
    assert not world.is_at_least(app, "7"), "the other watch is behind"
    informers[0].watchers[0].store.apply(of("v1", "two", 7))
    assert world.is_at_least(app, "7")
    world.remove(app, "u")
    assert world.resource(app) is world.resource(app, "v2") is None


def test_a_snapshot_of_the_cache_is_what_the_cache_was():
    """For each kind of question, before and after the objects and the states of the stores change."""
    resource = ResourceInfo("configmaps", namespaced=True, status_subresource=False, kind=CONFIG_MAP)
    cache = Cache(None, {CONFIG_MAP: resource}.get)
    cache.children_of = {CONFIG_MAP.versionless: [informer(CHILD_LABELS)]}
    cache.observed = {CONFIG_MAP.versionless: [informer()]}
    (children,), (observed,) = cache.children_of.values(), cache.observed.values()
    children[0].watchers[0].store.apply(child())
    observed[0].watchers[0].store.apply(child(8))

    def reads(view):
        return (
            view.get(KEY),
            list(view.children("x")),
            list(view.select(Query(CONFIG_MAP.versionless))),
            list(view.patched("x")),
            view.info(CONFIG_MAP),
            view.seen_from("shop").info(CONFIG_MAP),
        )

    snapshot, before = cache.snapshot("x"), reads(cache)
    assert reads(snapshot) == before
    for each in (children[0], observed[0]):
        each.watchers[0].store.apply(child(9, spec="changed"))
        each.watchers[0].store.set_state(StoreState.FORBIDDEN)
    cache.invalidate()
    assert reads(snapshot) == before
    assert reads(cache) != before
