"""The thread that renews the lease, against a server that keeps one lease."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import orjson

from ruleop.kinds import ObjectKey
from ruleop.kube.election import Election
from ruleop.kube.lease import Timing
from tests.kube.http_server import Exchange, serving, serving_elsewhere
from tests.kube.test_client import Open

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

KEY = ObjectKey("coordination.k8s.io", "Lease", "ns", "ruleop")
# Long enough for a machine that is busy with other things.
TIMING = Timing(duration=6.0, renew_deadline=3.0, retry_period=0.1)


class LeaseServer:
    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.refuses = False

    async def handle(self, exchange: Exchange) -> None:
        if self.refuses:
            await exchange.answer({"kind": "Status", "reason": "InternalError"}, 500)
        elif exchange.method == "GET":
            await exchange.answer(self.lease or {"kind": "Status", "reason": "NotFound"}, 200 if self.lease else 404)
        else:
            lease = orjson.loads(exchange.body)
            known = self.lease["metadata"]["resourceVersion"] if self.lease else None
            if lease["metadata"].get("resourceVersion") != known:
                await exchange.answer({"kind": "Status", "reason": "Conflict"}, 409)
                return
            self.version += 1
            lease["metadata"]["resourceVersion"] = str(self.version)
            self.lease = lease
            await exchange.answer(lease)


def with_server(test: Callable[[LeaseServer, Any], Awaitable[None]]) -> None:
    async def run() -> None:
        server = LeaseServer()
        async with serving(server.handle) as address, asyncio.timeout(20):
            await test(server, address)

    asyncio.run(run())


def test_it_leads_renews_and_hands_over() -> None:
    async def test(server: LeaseServer, serving_at: Any) -> None:
        lost = threading.Event()
        first = Election(Open(serving_at.address), KEY, "first", timing=TIMING, lost=lost.set)
        second = Election(Open(serving_at.address), KEY, "second", timing=TIMING, lost=lost.set)
        first.start()
        await first.leading()
        assert first.leads()
        second.start()
        while server.version < 4:  # noqa: ASYNC110 - of another thread
            await asyncio.sleep(0.01)
        assert not second.leads()
        await first.release()
        await second.leading()
        assert server.lease["spec"]["holderIdentity"] == "second"
        await second.release()
        assert server.lease["spec"]["holderIdentity"] == ""
        assert not lost.is_set()

    with_server(test)


def test_a_lease_that_cannot_be_renewed_ends_the_process() -> None:
    async def test(server: LeaseServer, serving_at: Any) -> None:
        lost = threading.Event()
        election = Election(Open(serving_at.address), KEY, "me", timing=Timing(3.0, 1.0, 0.1), lost=lost.set)
        election.start()
        await election.leading()
        server.refuses = True
        assert await asyncio.to_thread(lost.wait, 15)
        assert not election.leads()
        await election.release()

    with_server(test)


def test_a_loop_that_is_busy_does_not_cost_the_lease() -> None:
    """The loop of the operator stands still for longer than the deadline; the server is in another thread, as it would be."""
    server = LeaseServer()

    async def operator(address: str) -> None:
        lost = threading.Event()
        election = Election(Open(address), KEY, "me", timing=TIMING, lost=lost.set)
        election.start()
        await election.leading()
        before = server.version
        lost.wait(TIMING.renew_deadline + 0.5)  # blocks this loop
        assert not lost.is_set()
        assert server.version > before
        assert election.leads()
        await election.release()

    with serving_elsewhere(server.handle) as address:
        asyncio.run(operator(address))


def test_one_that_never_led_is_stopped_without_a_trace() -> None:
    async def test(server: LeaseServer, serving_at: Any) -> None:
        server.refuses = True
        election = Election(Open(serving_at.address), KEY, "me", timing=TIMING, lost=lambda: None)
        election.start()
        await election.release()
        assert server.lease is None

    with_server(test)


def test_a_lease_that_is_not_handed_over_is_left_to_run_out() -> None:
    """A write of the one that ends may still be on its way."""

    async def test(server: LeaseServer, serving_at: Any) -> None:
        lost = threading.Event()
        election = Election(Open(serving_at.address), KEY, "me", timing=TIMING, lost=lost.set)
        election.start()
        await election.leading()
        await election.release(hand_over=False)
        assert server.lease["spec"]["holderIdentity"] == "me"
        assert not lost.is_set()

    with_server(test)
