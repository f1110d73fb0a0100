"""The lease is renewed outside the event loop that renders; when it is lost, the process exits."""

from __future__ import annotations

import os
import threading
import time
from typing import Any
from unittest import mock

import pytest

from ruleop.operator.passes.pass_planning import PassPlanning
from ruleop.operator.wire.leader.lease import Timing
from tests.invariants import scenarios
from tests.invariants.api_server import HOME, ApiServer, refusal
from tests.invariants.live_operator import live_operator
from tests.invariants.scenarios import apps, run, until
from tests.operator.wire.http_server import serving_elsewhere

TIMING = Timing(duration=120.0, renew_deadline=60.0, retry_period=0.2)  # a busy machine must not lose it
LOSING = Timing(duration=3.0, renew_deadline=1.0, retry_period=0.2)  # and here it has to
RENEWALS = 4  # that are more than the one which was under way
LEASE = f"Lease/{HOME}/ruleop"


def renewals(server: ApiServer) -> int:
    return sum(each.resource == "leases" and each.verb == "update" for each in list(server.asked))


@pytest.mark.slow
def test_a_blocked_event_loop_does_not_lose_the_lease() -> None:
    """The event loop is blocked while the lease is renewed a few times."""
    server, ended = apps("web"), threading.Event()
    blocked: list[int] = []
    plan = PassPlanning.plan

    def slow(*arguments: Any, **more: Any) -> Any:
        if not blocked:
            before, end = renewals(server), time.monotonic() + scenarios.PATIENCE / 2
            while renewals(server) < before + RENEWALS and time.monotonic() < end:
                time.sleep(0.01)
            blocked.append(renewals(server) - before)
        return plan(*arguments, **more)

    async def test(address: str) -> None:
        async with live_operator(server, address, leader_elect=True, lease=TIMING):
            await until("the App to be made", lambda: "Deployment/web-d" in server.cluster)
            assert blocked[0] >= RENEWALS, "it was renewed meanwhile"
            assert not ended.is_set(), "the lease was lost"

    with (
        serving_elsewhere(server.handle) as address,
        mock.patch.object(PassPlanning, "plan", slow),
        mock.patch.object(os, "_exit", side_effect=lambda _: ended.set()),
    ):
        run(test(address))


@pytest.mark.parametrize("how", ["taken", "unreachable"])
def test_a_lost_lease_ends_the_process_at_once(how: str) -> None:
    losing_it_ends_the_process(how)


def losing_it_ends_the_process(how: str) -> None:
    """Even while the loop is busy: the exit does not wait for it."""
    server, ended = apps("web"), threading.Event()

    def refused(asked: Any) -> Any:
        return _refused() if asked.resource == "leases" else None

    async def test(address: str) -> None:
        async with live_operator(server, address, leader_elect=True, lease=LOSING):
            await until("the App to be made", lambda: "Deployment/web-d" in server.cluster)
            if how == "taken":
                server.cluster.edit(LEASE, {"spec": {"holderIdentity": "another"}})
            else:
                server.meddle = refused
            busy_until = time.monotonic() + scenarios.PATIENCE / 2
            while time.monotonic() < busy_until and not ended.is_set():
                time.sleep(0.01)  # noqa: ASYNC251 - this loop renders, and renders
            assert ended.is_set(), "it would go on writing"
            server.meddle = lambda _: None

    with serving_elsewhere(server.handle) as address, mock.patch.object(os, "_exit", side_effect=lambda _: ended.set()):
        run(test(address))


async def _refused() -> Any:
    return 500, refusal(500, "InternalError")
