"""Read your own writes: a CR whose store is older than ruleop's last write to it waits."""

from __future__ import annotations

from typing import Any
from unittest import mock

from hypothesis import strategies as st

from ruleop.operator.engine.cache.cache import Cache
from ruleop.operator.engine.reconcile.pass_planning import PassPlanning
from tests.invariants.operator_harness import OperatorHarness, settled_operator
from tests.invariants.scenarios import apply_edit, apps, cluster_with_sample, property_test, run
from tests.kube.model_server import line
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
