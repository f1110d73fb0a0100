"""Backoff per CR: 5 ms doubling to a cap, for ever; a failing CR costs only itself. Fresh edits go before start-up and
resync work."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from ruleop.operator.queue.work_queue import Backoff, Request, Urgency, WorkQueue
from tests.invariants.api_server import refusal
from tests.invariants.operator_harness import settled_operator, started_operator
from tests.invariants.scenarios import app, apps, property_test
from tests.projects.samples import READY

CAP = 300.0


@property_test(50)
def test_a_failing_cr_backs_off_up_to_a_cap_and_is_retried_for_ever(data: Any) -> None:
    """Any success in between resets it."""
    queue: WorkQueue[str] = WorkQueue(backoff=Backoff(0.005, CAP))
    now, row = 0.0, 0
    queue.add("web", now=now)
    for failed in (
        data.draw(st.lists(st.sampled_from([True, True, True, False]), min_size=1, max_size=40)) + [True] * 25
    ):
        assert queue.take(now=now) == "web"
        queue.done("web", now=now, failed=failed)
        if not failed:
            row = 0
            queue.add("web", now=now)
            continue
        row += 1
        wait = min(CAP, 0.005 * 2 ** (row - 1))
        due = queue.next_due()
        assert due is not None, "it was given up"
        assert abs(due - now - wait) < 1e-6 * max(1.0, now)
        assert queue.take(now=due - wait / 2) is None
        now = due
    assert row >= 25


@pytest.mark.slow
async def test_a_failing_cr_costs_only_itself() -> None:
    """All its writes are rejected. Meanwhile ten other CRs are created and edited, and their statuses are written."""
    server = apps("bad", *(f"web-{number}" for number in range(10)))

    async def refused() -> tuple[int, Any]:
        return 500, refusal(500, "InternalError")

    server.meddle = lambda asked: refused() if asked.writes and asked.key.name.startswith("bad") else None
    async with started_operator(server) as harness:
        for controller in harness.controllers:
            controller.workers.queue.backoff = Backoff()
        harness.list_all()
        await harness.until_settled()
        server.cluster.edit("App/bad", {"spec": {"deployment": {"replicas": 9}}})
        for number in range(10):
            server.cluster.edit(f"App/web-{number}", {"spec": {"deployment": {"replicas": 3}}})
        await harness.until_settled()
        for number in range(10):
            assert server.cluster[f"Deployment/web-{number}-d"]["spec"]["replicas"] == 3
            assert server.cluster.ready(f"App/web-{number}") == READY
        assert "Deployment/bad-d" not in server.cluster
        queue = next(each.workers.queue for each in harness.controllers if each.kind.kind == "App")
        assert queue.failures(Request("default", "bad")) > 1, "it is retried"
        assert not any(queue.failures(Request("default", f"web-{number}")) for number in range(10))
        server.meddle = lambda _: None
        queue.add(Request("default", "bad"), now=0.0)
        server.cluster.edit("App/bad", {"spec": {"deployment": {"replicas": 8}}})
        await harness.until_settled()
        assert server.cluster["Deployment/bad-d"]["spec"]["replicas"] == 8


@property_test(50)
def test_an_edit_goes_before_start_up_and_resync_work(data: Any) -> None:
    waiting = data.draw(st.integers(1, 200))
    queue: WorkQueue[Request] = WorkQueue(group=lambda request: request.namespace)
    for number in range(waiting):
        queue.add(Request(f"ns-{number % 3}", str(number)), now=0.0, urgency=Urgency.RESYNC)
    edited = Request("ns-0", str(data.draw(st.integers(0, 2 * waiting))))
    queue.add(edited, now=0.1)
    assert queue.take(now=0.1) == edited


@pytest.mark.slow
async def test_an_edit_during_start_up_is_reconciled_among_the_first() -> None:
    """An operator with one worker starts with sixty new Apps. While it reconciles the first one, somebody edits the
    last one."""
    server = apps(*(f"web-{number:02}" for number in range(60)))
    edited: list[bool] = []
    async with settled_operator(server, max_concurrent=1) as harness:
        for number in range(60):  # so that each has work to do at the next start
            server.cluster.edit(f"App/web-{number:02}", {"spec": {"deployment": {"replicas": 2}}})
        for watcher in harness.watchers:
            watcher.at = server.cluster.version
        server.forget()

        def meddle(asked: Any) -> None:
            if asked.writes and not edited:
                edited.append(True)
                server.cluster.edit("App/web-59", {"spec": {"deployment": {"replicas": 7}}})
                harness.watcher("App").deliver()

        server.meddle = meddle
        harness.watcher("App").list()
        await harness.until_quiet()
        order = [each.key.name for each in server.asked if str(each).startswith("patch deployments")]
        assert len(order) == 60
        assert order.index("web-59-d") <= 2


@property_test(50)
def test_a_noisy_namespace_delays_others_by_one_turn(data: Any) -> None:
    many = data.draw(st.integers(1, 300))
    queue: WorkQueue[Request] = WorkQueue(group=lambda request: request.namespace)
    for number in range(many):
        queue.add(Request("noisy", str(number)), now=0.0)
    queue.add(Request("calm", "web"), now=0.0)
    assert Request("calm", "web") in {queue.take(now=0.0), queue.take(now=0.0)}


async def test_namespaces_take_turns_in_the_queue_of_a_controller() -> None:
    """The same with the workers of the operator: the App of the quiet namespace is among the first two."""
    server = apps(namespaces=["noisy", "calm"])
    async with settled_operator(server, max_concurrent=1) as harness:
        for number in range(30):
            server.cluster.add(app(f"web-{number}", "noisy"))
        server.cluster.add(app("web", "calm"))
        await harness.until_quiet()
        order = [each.key.namespace for each in server.asked if str(each).startswith("create deployments")]
        assert len(order) == 31
        assert "calm" in order[:2]
