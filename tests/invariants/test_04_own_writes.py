"""Read your own writes: a CR whose store is older than ruleop's last write to it waits."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import Any
from unittest import mock

from hypothesis import strategies as st

from ruleop.operator.cache.cache import Cache
from ruleop.operator.passes.pass_planning import PassPlanning
from tests.invariants.api_server import ApiServer
from tests.invariants.operator_harness import OperatorHarness, settled_operator, started_operator
from tests.invariants.scenarios import apply_edit, apps, cluster_with_sample, property_test, run, serving
from tests.invariants.test_03_nothing_written import nothing_is_written_after_a_restart
from tests.operator.wire.model_server import line
from tests.projects.samples import READY
from tests.projects.test_convergence import EDITS


@property_test(30)
def test_while_watches_lag_no_pass_repeats_a_write(data: Any) -> None:
    """The watch delivers the edits of the CR, but none of the operator's own writes, in any number of passes."""
    life = data.draw(st.sampled_from(sorted(EDITS)), label="life")
    edits = data.draw(st.lists(st.sampled_from(range(20)), min_size=1, max_size=3), label="edits")
    run(_late(life, edits))


async def _late(life: str, edits: list[int]) -> None:
    server, resource = cluster_with_sample(life)
    kind = resource.partition("/")[0]
    async with settled_operator(server) as harness:
        for edit in edits:
            if apply_edit(server, resource, life, edit):
                harness.watcher(kind).deliver()
                await harness.until_idle(1.0)
                await _nothing_more(harness)
        await harness.until_settled()


async def _nothing_more(harness: OperatorHarness) -> None:
    harness.server.forget()
    for _ in range(3):
        harness.resync()
        await harness.until_idle(1.0)
    assert harness.server.asked == []


async def test_a_cr_whose_store_is_older_than_its_own_write_waits_for_the_watch() -> None:
    """If the answer is not in the store, for any reason, the next pass would read the state before the write."""
    server = apps("web")
    async with settled_operator(server) as harness:
        with mock.patch.object(Cache, "put", return_value=True):
            server.cluster.edit("App/web", {"spec": {"deployment": {"replicas": 5}}})
            harness.watcher("App").deliver()
            await harness.until_idle(0.3)
            assert "patch deployments web-d" in server.writes()
            server.forget()
            harness.resync()
            await harness.until_idle(0.3)
            assert server.asked == []
        await harness.until_settled()
        assert server.cluster.ready("App/web") == READY
        assert not any("deployments" in write for write in server.writes())


async def test_a_late_event_of_an_older_version_changes_nothing() -> None:
    server = apps("web")
    async with settled_operator(server) as harness:
        for replicas in (2, 3):
            server.cluster.edit("App/web", {"spec": {"deployment": {"replicas": replicas}}})
            harness.watcher("App").deliver()
            await harness.until_idle()
        deployments = harness.watcher("Deployment")
        first, *_ = deployments.outstanding()
        assert first[1]["spec"]["replicas"] == 2
        server.forget()
        deployments.bring(line(*first))
        await harness.until_idle()
        harness.resync()
        await harness.until_idle()
        assert server.writes() == []
        assert deployments.store.select()[0]["spec"]["replicas"] == 3


async def test_a_child_that_was_deleted_is_not_deleted_again() -> None:
    server = apps("web")
    async with settled_operator(server) as harness:
        server.cluster.edit("App/web", {"spec": {"service": {"name": "other"}}})
        harness.watcher("App").deliver()
        await harness.until_idle()
        assert "delete services web-s" in server.writes()
        await _nothing_more(harness)


async def test_the_event_of_an_own_write_that_precedes_its_answer_does_not_requeue() -> None:
    """On a busy server, the watch may deliver a write before its answer arrives."""
    server = apps("web")
    async with settled_operator(server) as harness:
        harness.wire.before_answers = lambda: [watcher.deliver() for watcher in harness.watchers]
        with mock.patch.object(PassPlanning, "begin", autospec=True, side_effect=PassPlanning.begin) as looked_at:
            server.cluster.edit("App/web", {"spec": {"deployment": {"replicas": 5}}})
            await harness.until_quiet()
            assert looked_at.call_count == 1, "for the edit; its own two writes are none"


async def test_a_change_by_others_before_the_answer_of_a_write_requeues() -> None:
    server = apps("web")
    async with settled_operator(server) as harness:
        meddled: list[None] = []

        def meddle() -> None:
            if not meddled and any(each.startswith("patch deployments") for each in server.writes()):
                meddled.append(None)
                server.cluster.edit("Deployment/web-d", {"spec": {"replicas": 9}})
            for watcher in harness.watchers:
                watcher.deliver()

        harness.wire.before_answers = meddle
        server.forget()
        server.cluster.edit("App/web", {"spec": {"deployment": {"replicas": 5}}})
        await harness.until_quiet()
        assert meddled
        assert server.cluster["Deployment/web-d"]["spec"]["replicas"] == 5


# -- no promised pass is lost ------------------------------------------------------------------------------------------

READERS = "tests/invariants/readers"
SPEC = {"title": "one", "pins": ["a"], "far": False, "stamp": "1"}
EDITS_OF_A_BOARD: list[dict[str, Any]] = [
    {"title": "two"},
    {"title": "one"},
    {"pins": []},
    {"pins": ["a", "b", "c"]},
    {"far": True},
    {"far": False},
    {"stamp": "2"},
    {"title": "three", "pins": ["c"], "far": True, "stamp": "3"},
]


@property_test(40)
def test_no_pass_is_lost_in_any_order_of_answers_events_and_passes(data: Any) -> None:
    """The rules read all that their own passes write. In the end nothing is left that a restart would find: the state
    is that of a CR whose passes all came after the last event."""
    run(_in_any_order(random.Random(data.draw(st.integers(0, 2**32), label="seed"))))  # noqa: S311


async def _in_any_order(chance: random.Random) -> None:
    server = serving(
        READERS,
        {"apiVersion": "example.com/v1", "kind": "Board", "metadata": {"name": "web"}, "spec": dict(SPEC)},
        *([THEIRS] if chance.random() < 0.5 else []),
    )
    async with started_operator(server) as harness:
        harness.list_all()
        harness.wire.before_answers = partial(_deliver_some, harness, chance)
        for _ in range(chance.randint(1, 5)):
            for _ in range(chance.choice([0, 1, 3, 10, 40, 200])):
                await asyncio.sleep(0)
            _something_happens(server, chance)
            _deliver_some(harness, chance)
        harness.wire.before_answers = lambda: None
        await harness.until_settled()
        assert server.cluster.ready("Board/web") == READY, server.cluster.conditions("Board/web")
        assert server.cluster["ConfigMap/web-reader"]["data"]["ready"] == "true true true"
    await nothing_is_written_after_a_restart(server)


THEIRS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}, "data": {"note": "1"}}


def _deliver_some(harness: OperatorHarness, chance: random.Random) -> None:
    """The watches of some kinds bring their events now, also before the answer of the write that caused them."""
    for watcher in list(harness.watchers):
        if chance.random() < 0.3:
            watcher.deliver()


def _something_happens(server: ApiServer, chance: random.Random) -> None:
    """Somebody edits the CR, its status, a child, or the object whose field is set."""
    cluster = server.cluster
    children = sorted(name for name in cluster.names if name.startswith(("ConfigMap/web-", "Secret/web-")))
    match chance.choice(["edit", "edit", "delete", "drift", "theirs", "status"]):
        case "edit":
            cluster.edit("Board/web", {"spec": chance.choice(EDITS_OF_A_BOARD)})
        case "delete" if children:
            cluster.delete(chance.choice(children))
        case "drift" if "ConfigMap/web-reader" in cluster:
            cluster.edit("ConfigMap/web-reader", {"data": {"ready": "theirs"}})
        case "theirs" if "ConfigMap/theirs" in cluster:
            cluster.edit("ConfigMap/theirs", {"data": {"note": str(chance.randint(2, 5))}})
        case "theirs":
            cluster.add(THEIRS)
        case "status" if "status" in cluster["Board/web"]:
            found = cluster["Board/web"]["status"]
            cluster.status("Board/web", {**found, "pins": 7})


async def test_a_change_of_the_status_by_others_is_planned_again_if_the_rules_read_the_status() -> None:
    server = serving(
        READERS, {"apiVersion": "example.com/v1", "kind": "Board", "metadata": {"name": "web"}, "spec": dict(SPEC)}
    )
    async with settled_operator(server) as harness:
        found = server.cluster["Board/web"]["status"]
        server.cluster.status("Board/web", {**found, "pins": 7})
        await harness.until_quiet()
        assert server.cluster["Board/web"]["status"]["pins"] == 1
        assert server.cluster.ready("Board/web") == READY
