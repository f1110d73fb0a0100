"""A reconcile uses current state only; no decision depends on the type or order of events. Any event may be lost or
repeated."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any

from hypothesis import strategies as st

from ruleop.localcluster.objects.server_side_apply import without_managers
from tests.invariants.api_server import ApiServer
from tests.invariants.operator_harness import FakeWatcher, OperatorHarness, settled_operator
from tests.invariants.scenarios import cluster_with_sample, property_test, run
from tests.operator.wire.model_server import bookmark, line
from tests.projects.cluster import Refused
from tests.projects.samples import READY
from tests.projects.test_convergence import EDITS, ONCE, STAY, comparable, leaves

OWN = {
    "ConfigMap/ruleop-system/ruleop-inventory",
    "ConfigMap/ruleop-system/ruleop-revisions",
    "Secret/ruleop-system/ruleop-owner-key",
}
FATES = ("brought", "brought", "delayed", "lost", "half lost", "repeated", "misnamed")


@property_test(30)
def test_lost_late_and_repeated_events_lead_to_the_same_result_as_a_new_cr(data: Any) -> None:
    """Some events are lost (and then a list follows, as after each gap), some come twice, late, or with another type;
    passes run in between."""
    life = data.draw(st.sampled_from(sorted(EDITS)), label="life")
    # How far the operator gets between two events depends on the machine, so the events are not drawn one by one.
    run(_lived(life, random.Random(data.draw(st.integers(0, 2**32), label="seed"))))  # noqa: S311


async def _lived(life: str, chance: random.Random) -> None:
    server, resource = cluster_with_sample(life)
    cluster = server.cluster
    async with settled_operator(server) as harness:
        for _ in range(chance.randint(1, 6)):
            _something_happens(server, resource, life, chance)
            for watcher in list(harness.watchers):
                _fate(watcher, chance)
            for _ in range(chance.choice([0, 1, 5, 40])):
                await asyncio.sleep(0)
        await _peace(harness, chance)
        spec = cluster[resource]["spec"]
        for watcher in harness.watchers:
            parts = {"apiVersion", "kind", "metadata"} if watcher.store.source.metadata_only else None
            there = {
                key: {name: part for name, part in without_managers(obj).items() if parts is None or name in parts}
                for key, obj in cluster.everything()
                if watcher.selection.has(key, obj) and str(key) not in OWN  # no store keeps the key
            }
            kept = [key for key in watcher.store.select_keys() if str(key) not in OWN]
            assert {key: without_managers(watcher.store.get(key)) for key in kept} == there
        stands = {name: comparable(cluster, name) for name in cluster.names}
        assert cluster.ready(resource) == READY
        cluster.delete(resource)
        await _peace(harness, chance)
        left = {name for name in cluster.names if not name.startswith(STAY)}

    fresh, _ = cluster_with_sample(life, spec)
    async with settled_operator(fresh) as harness:
        wanted = {name: comparable(fresh.cluster, name) for name in fresh.cluster.names}
        fresh.cluster.delete(resource)
        await harness.until_settled()
    assert all(name in wanted or name.startswith((*STAY, *ONCE)) for name in stands)
    for name in wanted.keys() - {resource, *OWN}:
        assert stands.get(name) == wanted[name] or (name not in stands and name.startswith(ONCE)), name
    assert left == {name for name in fresh.cluster.names if not name.startswith(STAY)}


def _something_happens(server: ApiServer, resource: str, life: str, chance: random.Random) -> None:
    """Somebody edits the CR, deletes a child, or changes a value in a child."""
    cluster = server.cluster
    what = chance.choice(["edit", "edit", "delete", "drift"])
    sent = {each.key: each.body for each in server.asked if each.verb == "create"}
    ours = sorted(key for key in cluster.objects if key in sent and key.kind not in {"Secret", "Job", "ConfigMap"})
    if what == "edit":
        with contextlib.suppress(Refused):
            cluster.edit(resource, {"spec": chance.choice(EDITS[life])})
    elif what == "delete" and ours:
        cluster.delete(cluster.name(chance.choice(ours)))
    elif what == "drift" and ours:
        key = chance.choice(ours)
        path = chance.choice(list(leaves({"spec": sent[key].get("spec", {})})) or [()])
        # Where the server takes no such value
        with contextlib.suppress(Refused, KeyError, IndexError, TypeError, AssertionError):
            cluster.change(cluster.name(key), lambda obj: _changed(obj, path))


def _changed(obj: Any, path: tuple[Any, ...]) -> None:
    for step in path[:-1]:
        obj = obj[step]
    value = obj[path[-1]]
    obj[path[-1]] = (not value) if isinstance(value, bool) else value + 1 if isinstance(value, int) else f"{value}x"


def _fate(watcher: FakeWatcher, chance: random.Random) -> None:
    """Drops, repeats, delays or changes the events that a watch has not delivered yet."""
    fate, events, now = chance.choice(FATES), watcher.outstanding(), watcher.wire.api.cluster.version
    if fate == "delayed" or not events:
        return
    if fate == "misnamed":
        other = {"ADDED": "MODIFIED", "MODIFIED": "ADDED", "DELETED": "DELETED"}
        events = [(other[what], obj) for what, obj in events]
    if "lost" in fate:
        watcher.gap = True
        events = [event for event in events if fate == "half lost" and chance.random() < 0.5]
    watcher.bring(*(line(*event) for event in events))
    if fate == "repeated":
        _repeat(watcher, chance)
    watcher.at = now


def _repeat(watcher: FakeWatcher, chance: random.Random) -> None:
    """Events that were delivered long ago, in any order."""
    history = watcher.wire.api.cluster.history
    old = [event for each in history if each.version <= watcher.at and (event := watcher.selection.event(each))]
    watcher.bring(
        *(line(*event) for event in chance.sample(old, min(len(old), 5))), bookmark(chance.randint(1, watcher.at))
    )


async def _peace(harness: OperatorHarness, chance: random.Random) -> None:
    """What was lost is made up for by a list. Then old news come once more."""
    for watcher in list(harness.watchers):
        if watcher.gap:
            watcher.list()
    await harness.until_settled()
    for watcher in list(harness.watchers):
        _repeat(watcher, chance)
    await harness.until_settled()


async def test_events_that_were_lost_before_a_relist_are_made_up_for() -> None:
    """A child that was deleted while the watch was away, and one that was changed."""
    server, _ = cluster_with_sample("App")
    async with settled_operator(server) as harness:
        server.cluster.delete("Service/app-service")
        server.cluster.change("Deployment/app-deployment", lambda obj: obj["spec"].update(replicas=7))
        for watcher in list(harness.watchers):
            watcher.at = server.cluster.version
        await harness.until_quiet()
        assert "Service/app-service" not in server.cluster, "nobody was told"
        for watcher in list(harness.watchers):
            watcher.list()
        await harness.until_quiet()
        assert "Service/app-service" in server.cluster
        assert server.cluster["Deployment/app-deployment"]["spec"]["replicas"] != 7
