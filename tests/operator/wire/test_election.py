"""The thread that renews the lease, against a server that keeps one lease."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import orjson
import pytest

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.operator.wire.client import client
from ruleop.operator.wire.http.access import Access
from ruleop.operator.wire.leader.election import Election
from ruleop.operator.wire.leader.lease import LeaseCandidate, Timing
from tests.operator.wire.http_server import Exchange, serving, serving_elsewhere
from tests.operator.wire.test_client import Open
from tests.waiting import PATIENCE

KEY = ObjectKey("coordination.k8s.io", "Lease", "ns", "ruleop")
# Long enough for a machine that is busy with other things.
TIMING = Timing(duration=120.0, renew_deadline=60.0, retry_period=0.1)
RENEWALS = 4  # that are more than the one which was under way


# For those in which the lease is lost.
SHORT = Timing(duration=3.0, renew_deadline=1.0, retry_period=0.1)


class LeaseServer:
    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.refuses = False
        self.status = 0  # of answers without a word
        self.breaks = False
        self.failures = 0  # writes that are answered with 500
        self.odd: tuple[str, int, Any] | None = None  # one answer to a request with this method
        self.hangs: asyncio.Event | None = None  # writes are answered when it is set
        self.hanging = asyncio.Event()

    async def handle(self, exchange: Exchange) -> None:
        if self.hangs is not None and exchange.method != "GET":
            self.hanging.set()
            await self.hangs.wait()
        if self.failures and exchange.method != "GET":
            self.failures -= 1
            await exchange.answer(b"{}", 500)
        elif self.odd is not None and exchange.method == self.odd[0]:
            (_, status, odd), self.odd = self.odd, None
            await exchange.answer(odd, status)
        elif self.breaks:
            exchange.writer.close()
        elif self.status:
            await exchange.answer(b"{}", self.status)
        elif self.refuses:
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


@contextlib.asynccontextmanager
async def lease_server() -> AsyncIterator[tuple[LeaseServer, Any]]:
    server = LeaseServer()
    async with serving(server.handle) as address, asyncio.timeout(PATIENCE):
        yield server, address


async def leading(credentials: Open, lost: threading.Event, timing: Timing = TIMING) -> Election:
    election = Election(credentials, KEY, "me", timing=timing, lost=lost.set)
    election.start()
    await election.leading()
    return election


async def in_the_middle_of_a_renewal(server: LeaseServer, serving_at: Any, lost: threading.Event) -> Election:
    election = await leading(Open(serving_at.address), lost)
    server.hangs = asyncio.Event()
    await server.hanging.wait()
    return election


async def answered(server: LeaseServer, release: Awaitable[None]) -> None:
    """The renewal, when the thread has heard of the release."""
    released = asyncio.ensure_future(release)
    await asyncio.sleep(0.05)
    server.hangs.set()
    await released


async def test_the_elected_leader_renews_the_lease_and_hands_over() -> None:
    async with lease_server() as (server, serving_at):
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


async def test_a_lease_that_cannot_be_renewed_ends_the_process() -> None:
    async with lease_server() as (server, serving_at):
        lost = threading.Event()
        election = await leading(Open(serving_at.address), lost, SHORT)
        server.refuses = True
        assert await asyncio.to_thread(lost.wait, PATIENCE)
        assert not election.leads()
        await election.release()


def test_a_busy_event_loop_does_not_cost_the_lease() -> None:
    """The loop of the operator stands still while the lease is renewed; the server is in another thread, as it would
    be."""
    server = LeaseServer()

    async def operator(address: str) -> None:
        lost = threading.Event()
        election = await leading(Open(address), lost)
        enough, end = server.version + RENEWALS, time.monotonic() + PATIENCE
        while server.version < enough and time.monotonic() < end:
            assert not lost.wait(0.01)  # blocks this loop
        assert server.version >= enough
        assert election.leads()
        await election.release()

    with serving_elsewhere(server.handle) as address:
        asyncio.run(operator(address))


async def test_a_candidate_that_never_led_writes_no_lease_when_it_stops() -> None:
    async with lease_server() as (server, serving_at):
        server.refuses = True
        election = Election(Open(serving_at.address), KEY, "me", timing=TIMING, lost=lambda: None)
        election.start()
        await election.release()
        assert server.lease is None


async def test_a_lease_that_is_not_handed_over_is_left_to_expire() -> None:
    """A write of the ending candidate may still be on its way."""
    async with lease_server() as (server, serving_at):
        lost = threading.Event()
        election = await leading(Open(serving_at.address), lost)
        await election.release(hand_over=False)
        assert server.lease["spec"]["holderIdentity"] == "me"
        assert not lost.is_set()


class Slow(Open):
    """Credentials of which only the first are available until the gate is open."""

    def __init__(self, address: str, *, fresh_for: float | None = None) -> None:
        super().__init__(address)
        self.fresh_for = fresh_for
        self.loads = 0
        self.gate = threading.Event()

    async def load(self, *, forced: bool = False) -> Access:
        self.loads += 1
        while self.loads > 1 and not self.gate.is_set():  # noqa: ASYNC110 - another thread opens it
            await asyncio.sleep(0.01)
        return Access(self.address, fresh_for=self.fresh_for)


@pytest.mark.slow
async def test_slow_credentials_do_not_cost_the_lease_while_the_old_ones_are_valid(monkeypatch) -> None:
    monkeypatch.setattr(client, "PATIENCE", 0.05)
    async with lease_server() as (server, serving_at):
        lost = threading.Event()
        credentials = Slow(serving_at.address, fresh_for=0.1)
        election = await leading(credentials, lost)
        while credentials.loads < 2:  # noqa: ASYNC110 - of another thread
            await asyncio.sleep(0.01)
        enough = server.version + RENEWALS
        while server.version < enough:
            assert not await asyncio.to_thread(lost.wait, 0.01)
        assert election.leads()
        await election.release()


@pytest.mark.slow
async def test_refused_credentials_that_cannot_be_renewed_do_not_delay_the_end_of_leadership() -> None:
    async with lease_server() as (server, serving_at):
        lost = threading.Event()
        credentials = Slow(serving_at.address)
        election = await leading(credentials, lost, SHORT)
        server.status = 401
        assert await asyncio.to_thread(lost.wait, PATIENCE)
        assert credentials.loads == 2
        credentials.gate.set()
        await election.release()


@pytest.mark.slow
async def test_an_unresolved_host_name_does_not_delay_the_end_of_leadership(monkeypatch) -> None:
    """The thread that asks for it cannot be ended, and the loop would wait for it."""
    resolved, asked = threading.Event(), threading.Event()
    resolve = socket.getaddrinfo

    def hanging(host: Any, *arguments: Any, **options: Any) -> Any:
        asked.set()
        resolved.wait(PATIENCE)
        return resolve(host, *arguments, **options)

    async with lease_server() as (server, serving_at):
        lost = threading.Event()
        election = await leading(Open(serving_at.address.replace("127.0.0.1", "localhost")), lost, SHORT)
        monkeypatch.setattr(socket, "getaddrinfo", hanging)
        server.breaks = True
        try:
            assert await asyncio.to_thread(asked.wait, 15)
            assert await asyncio.to_thread(lost.wait, PATIENCE)
            assert not resolved.is_set()
        finally:
            resolved.set()
        await election.release()


@pytest.mark.slow
async def test_a_lease_abandoned_during_a_renewal_is_not_renewed_again() -> None:
    async with lease_server() as (server, serving_at):
        lost = threading.Event()
        election = await in_the_middle_of_a_renewal(server, serving_at, lost)
        await answered(server, election.release(hand_over=False))
        before = server.version
        await asyncio.sleep(5 * TIMING.retry_period)
        assert server.version == before
        assert not lost.is_set()


async def test_a_stop_during_a_renewal_hands_over_the_lease() -> None:
    async with lease_server() as (server, serving_at):
        lost = threading.Event()
        election = await in_the_middle_of_a_renewal(server, serving_at, lost)
        await answered(server, election.release())
        assert server.lease["spec"]["holderIdentity"] == ""
        assert not lost.is_set()


STATUS = {"apiVersion": "v1", "kind": "Status"}
ODD_ANSWERS = [
    (503, {**STATUS, "details": "overloaded"}),
    (503, {**STATUS, "details": {"causes": ["overloaded"]}}),
    (429, {**STATUS, "details": {"causes": 7}}),
    (500, {**STATUS, "message": {"a": 1}}),
    (200, STATUS),
    (200, {"error": "busy"}),
    (200, []),
    (200, {"metadata": "x"}),
    (200, {"metadata": {"name": "ruleop"}}),
    (200, {"metadata": {"name": "ruleop", "resourceVersion": "1"}, "spec": "x"}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("status", "odd"), ODD_ANSWERS, ids=str)
@pytest.mark.parametrize("method", ["GET", "PUT"])
async def test_one_odd_answer_to_a_request_for_the_lease_does_not_end_the_process(
    status: int, odd: Any, method: str
) -> None:
    """A gateway before the API server may answer in its own words."""
    async with lease_server() as (server, serving_at):
        lost = threading.Event()
        election = await leading(Open(serving_at.address), lost)
        server.odd = (method, status, odd)
        if method == "GET":  # a leader reads the lease only after a failure
            server.failures = 1
        while server.odd is not None:  # noqa: ASYNC110 - of another thread
            await asyncio.sleep(0.01)
        enough = server.version + RENEWALS
        while server.version < enough:  # noqa: ASYNC110 - of another thread
            await asyncio.sleep(0.01)
        assert election.leads()
        assert not lost.is_set()
        await election.release()


async def test_a_lease_whose_spec_has_values_of_other_types_is_acquired() -> None:
    async with lease_server() as (server, serving_at):
        server.version = 1
        spec = {"holderIdentity": None, "leaseDurationSeconds": "x", "leaseTransitions": "x", "renewTime": 7}
        server.lease = {"metadata": {"name": "ruleop", "namespace": "ns", "resourceVersion": "1"}, "spec": spec}
        election = await leading(Open(serving_at.address), threading.Event())
        assert server.lease["spec"]["leaseTransitions"] == 1
        await election.release()


@pytest.mark.slow
async def test_an_internal_error_in_a_step_does_not_end_the_process_before_the_lease_expires(monkeypatch) -> None:
    async with lease_server() as (server, serving_at):
        lost = threading.Event()
        election = await leading(Open(serving_at.address), lost)
        failing = [KeyError("x")]
        original = LeaseCandidate.written

        def written(candidate: LeaseCandidate, lease: Any, started: float, now: float) -> None:
            if failing:
                raise failing.pop()
            original(candidate, lease, started, now)

        monkeypatch.setattr(LeaseCandidate, "written", written)
        while failing:  # noqa: ASYNC110 - of another thread
            await asyncio.sleep(0.01)
        enough = server.version + RENEWALS
        while server.version < enough:  # noqa: ASYNC110 - of another thread
            await asyncio.sleep(0.01)
        assert election.leads()
        assert not lost.is_set()
        await election.release()
