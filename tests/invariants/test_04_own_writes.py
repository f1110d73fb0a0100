"""Read your own writes: a CR whose store is older than ruleop's last write to it waits."""

from __future__ import annotations

from typing import Any
from unittest import mock

from hypothesis import strategies as st

from ruleop.engine.cache.cache import Cache
from ruleop.engine.reconcile.reconciler import Reconciler
from tests.invariants.desk import Desk, at_work
from tests.invariants.stories import apps, beginning, drawn, edited, run
from tests.kube.model_server import line
from tests.projects.lives import READY
from tests.projects.test_any_life import LIVES


@drawn(30)
def test_while_watches_are_late_no_pass_writes_what_was_written(data: Any) -> None:
    """The CR's edits arrive; of what the operator writes itself nothing is told, however often it looks."""
    life = data.draw(st.sampled_from(sorted(LIVES)), label="life")
    edits = data.draw(st.lists(st.sampled_from(range(20)), min_size=1, max_size=3), label="edits")
    run(_late(life, edits))


async def _late(life: str, edits: list[int]) -> None:
    server, resource = beginning(life)
    kind = resource.partition("/")[0]
    async with at_work(server) as desk:
        for edit in edits:
            if edited(server, resource, life, edit):
                desk.hand(kind).deliver()
                await desk.idle(1.0)
                await _nothing_more(desk)
        await desk.settled()


async def _nothing_more(desk: Desk) -> None:
    desk.server.forget()
    for _ in range(3):
        desk.sweep()
        await desk.idle(1.0)
    assert desk.server.asked == []


def test_a_cr_whose_store_is_behind_its_own_write_waits_until_the_watch_has_told() -> None:
    """Where no answer got into the store, for whatever reason: another look would find what was before."""

    async def test() -> None:
        server = apps("web")
        async with at_work(server) as desk:
            with mock.patch.object(Cache, "put", return_value=True):
                server.cluster.edit("App/web", {"spec": {"deployment": {"replicas": 5}}})
                desk.hand("App").deliver()
                await desk.idle(0.3)
                assert "patch deployments web-d" in server.writes()
                server.forget()
                desk.sweep()
                await desk.idle(0.3)
                assert server.asked == []
            await desk.settled()
            assert server.cluster.ready("App/web") == READY
            assert not any("deployments" in write for write in server.writes())

    run(test())


def test_a_late_event_of_an_older_version_brings_nothing_back() -> None:
    async def test() -> None:
        server = apps("web")
        async with at_work(server) as desk:
            for replicas in (2, 3):
                server.cluster.edit("App/web", {"spec": {"deployment": {"replicas": replicas}}})
                desk.hand("App").deliver()
                await desk.idle()
            deployments = desk.hand("Deployment")
            first, *_ = deployments.outstanding()
            assert first[1]["spec"]["replicas"] == 2
            server.forget()
            deployments.bring(line(*first))
            await desk.idle()
            desk.sweep()
            await desk.idle()
            assert server.writes() == []
            assert deployments.store.select()[0]["spec"]["replicas"] == 3

    run(test())


def test_a_child_that_was_deleted_by_us_is_not_deleted_again() -> None:
    async def test() -> None:
        server = apps("web")
        async with at_work(server) as desk:
            server.cluster.edit("App/web", {"spec": {"service": {"name": "other"}}})
            desk.hand("App").deliver()
            await desk.idle()
            assert "delete services web-s" in server.writes()
            await _nothing_more(desk)

    run(test())


def test_the_echo_of_a_write_that_comes_before_the_answer_is_no_reason_to_look_again() -> None:
    """As now and then on a busy server: the watch is faster."""

    async def test() -> None:
        server = apps("web")
        async with at_work(server) as desk:
            desk.wire.before_answers = lambda: [hand.deliver() for hand in desk.hands]
            with mock.patch.object(Reconciler, "_reconcile", autospec=True, side_effect=Reconciler._reconcile) as looked_at:
                server.cluster.edit("App/web", {"spec": {"deployment": {"replicas": 5}}})
                await desk.rest()
                assert looked_at.call_count == 1, "for the edit; its own two writes are none"

    run(test())


def test_what_somebody_else_changes_before_the_answer_comes_is_looked_at() -> None:
    async def test() -> None:
        server = apps("web")
        async with at_work(server) as desk:
            meddled: list[None] = []

            def meddle() -> None:
                if not meddled and any(each.startswith("patch deployments") for each in server.writes()):
                    meddled.append(None)
                    server.cluster.edit("Deployment/web-d", {"spec": {"replicas": 9}})
                for hand in desk.hands:
                    hand.deliver()

            desk.wire.before_answers = meddle
            server.forget()
            server.cluster.edit("App/web", {"spec": {"deployment": {"replicas": 5}}})
            await desk.rest()
            assert meddled
            assert server.cluster["Deployment/web-d"]["spec"]["replicas"] == 5

    run(test())
