"""Stopping: start no new passes, finish running ones, release the lease, within the grace period."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.invariants.api_server import HOME, ApiServer, Asked
from tests.invariants.live_operator import operator_and_server
from tests.invariants.scenarios import app, apps, until
from tests.waiting import a_moment

LEASE = f"Lease/{HOME}/ruleop"


class Held:
    """The creation of one object, which ends when the test decides."""

    def __init__(self, server: ApiServer, request: str) -> None:
        self.reached, self.release = asyncio.Event(), asyncio.Event()
        server.meddle = lambda asked: self._wait() if str(asked) == request else None

    async def _wait(self) -> None:
        self.reached.set()
        await self.release.wait()


async def test_running_passes_finish_no_others_start_and_then_the_lease_is_released() -> None:
    server = apps("web")
    held = Held(server, "create services web-s")
    async with operator_and_server(server, leader_elect=True) as operator:
        await held.reached.wait()
        operator.manager.stopping.set()
        await a_moment()
        server.cluster.add(app("late"))
        await a_moment(0.2)
        assert not operator.task.done(), "a write is under way"
        assert server.cluster[LEASE]["spec"]["holderIdentity"], "nobody else may begin yet"
        held.release.set()
        await operator.stop()
    assert "Service/web-s" in server.cluster
    assert not any(each.key.name.startswith("late") for each in server.asked)
    assert server.cluster[LEASE]["spec"]["holderIdentity"] == ""
    last_write = max(number for number, each in enumerate(server.asked) if each.writes)
    released = max(number for number, each in enumerate(server.asked) if _releases(each))
    assert released > last_write, "who takes over finds nobody else at work"


def _releases(asked: Asked) -> bool:
    return asked.resource == "leases" and asked.verb == "update" and not asked.body["spec"]["holderIdentity"]


@pytest.mark.slow
async def test_a_write_that_never_ends_is_waited_for_until_the_grace_period_is_over() -> None:
    server = apps("web")
    held = Held(server, "create services web-s")
    async with operator_and_server(server, grace=0.4) as operator:
        await held.reached.wait()
        begun = time.monotonic()
        await operator.stop()
        assert time.monotonic() - begun >= 0.35, "it is waited for"


async def test_an_idle_operator_stops_at_once() -> None:
    """A grace period that is longer than the test waits."""
    server = apps("web")
    async with operator_and_server(server, leader_elect=True, grace=3600.0) as operator:
        await until(
            "the condition Reconciling of the App", lambda: server.cluster.conditions("App/web").get("Reconciling")
        )
        await operator.stop()
    assert server.cluster[LEASE]["spec"]["holderIdentity"] == ""
