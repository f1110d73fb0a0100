"""Credentials that expire, are refused or load slowly, and their effect on requests."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from ruleop.operator.wire.client import client, requests
from ruleop.operator.wire.client.client import Client, Session
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.operator.wire.http.access import Access, CredentialsError
from tests.operator.wire.http_server import Exchange, Recorder, serving
from tests.waiting import PATIENCE, until

Play = Callable[[], contextlib.AbstractAsyncContextManager["World"]]

READ = requests.document("/x")


class Source:
    """Tokens t1, t2, ...; the first at once, the others when the gate is open."""

    namespace = "default"

    def __init__(self, address: str, *, fresh_for: float | None = None) -> None:
        self.address, self.fresh_for = address, fresh_for
        self.loads: list[bool] = []  # forced or not
        self.ended = 0
        self.gate = asyncio.Event()
        self.fails = False

    async def load(self, *, forced: bool = False) -> Access:
        first = not self.loads
        self.loads.append(forced)
        try:
            if not first:
                await self.gate.wait()
        finally:
            self.ended += 1
        if self.fails:
            raise CredentialsError("the provider is away")
        return Access(self.address, authorization=f"Bearer t{len(self.loads)}", fresh_for=self.fresh_for)


class World:
    def __init__(self, server: Recorder, source: Source, opened: Session) -> None:
        self.server, self.source, self.session = server, source, opened
        self.client = Client(opened)
        self.refused: set[str] = set()

    @property
    def tokens(self) -> list[str]:
        return [each.headers["authorization"].removeprefix("Bearer ") for each in self.server.seen]

    def due(self) -> None:
        self.session._due = 0.0


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    monkeypatch.setattr(client, "PATIENCE", 0.02)

    @contextlib.asynccontextmanager
    async def playing() -> AsyncIterator[World]:
        worlds: list[World] = []

        async def handler(exchange: Exchange) -> None:
            token = exchange.headers["authorization"].removeprefix("Bearer ")
            await exchange.answer(b"{}", 401 if token in worlds[0].refused else 200)

        async with serving(handler) as server, asyncio.timeout(PATIENCE):
            source = Source(server.address)
            worlds.append(World(server, source, await Session.open(source)))
            try:
                yield worlds[0]
            finally:
                await worlds[0].session.close()
            assert source.ended == len(source.loads), "what was begun ends with the session"

    return playing


async def refusal(sent: Awaitable[Any]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await sent
    assert caught.value.problem is Problem.UNAUTHORIZED
    return caught.value


async def test_expiring_credentials_are_used_until_new_ones_are_loaded(play: Play) -> None:
    async with play() as world:
        world.due()
        for _ in range(3):
            await world.client.send(READ)
        assert world.tokens == ["t1"] * 3
        assert world.source.loads == [False, False], "one look for all of them, and it goes on"
        world.source.gate.set()
        await world.session._loading.task
        await world.client.send(READ)
        assert world.tokens[3:] == ["t2"]


async def test_new_credentials_that_load_quickly_are_used_at_once(play, monkeypatch):
    monkeypatch.setattr(client, "PATIENCE", 30.0)
    async with play() as world:
        world.source.gate.set()
        world.due()
        await asyncio.gather(*(world.client.send(READ) for _ in range(5)))
        assert set(world.tokens) == {"t2"}
        assert world.source.loads == [False, False]


async def test_a_failed_load_of_credentials_serves_all_requests_and_is_retried_later(play, monkeypatch):
    monkeypatch.setattr(client, "PATIENCE", 30.0)
    async with play() as world:
        world.source.fails = True
        world.source.gate.set()
        world.due()
        await asyncio.gather(*(world.client.send(READ) for _ in range(12)))
        await world.client.send(READ)
        assert set(world.tokens) == {"t1"}
        assert world.source.loads == [False, False], "the next one is due in ten seconds"


async def test_all_refused_requests_wait_for_a_single_load_of_credentials(play: Play) -> None:
    async with play() as world:
        world.refused.add("t1")
        sent = [asyncio.ensure_future(world.client.send(READ)) for _ in range(8)]
        await until("the requests", lambda: len(world.server.seen) == 8)
        world.source.gate.set()
        await asyncio.gather(*sent)
        assert world.source.loads == [False, True]
        assert sorted(world.tokens) == ["t1"] * 8 + ["t2"] * 8


async def test_all_refused_requests_fail_with_the_same_error_of_the_load(play: Play) -> None:
    async with play() as world:
        world.refused.add("t1")
        world.source.fails = True
        sent = [asyncio.ensure_future(refusal(world.client.send(READ))) for _ in range(8)]
        await until("the requests", lambda: len(world.server.seen) == 8)
        world.source.gate.set()
        errors = await asyncio.gather(*sent)
        assert world.source.loads == [False, True]
        assert all("the provider is away" in str(error) for error in errors)


async def test_a_refused_request_waits_for_new_credentials_no_longer_than_its_timeout(play: Play) -> None:
    async with play() as world:
        world.refused.add("t1")
        error = await refusal(world.client.send(replace(READ, timeout=0.3)))
        assert "none came within 0.3 s" in str(error)
        world.source.gate.set()  # the load continued
        await world.client.send(READ)
        assert world.tokens[-1] == "t2"
        assert world.source.loads == [False, True]


async def test_a_refusal_during_a_load_that_fails_forces_another_load(play: Play) -> None:
    async with play() as world:
        world.due()
        await world.client.send(READ)
        world.refused.add("t1")
        world.source.fails = True
        sent = asyncio.ensure_future(world.client.send(READ))
        await until("the requests", lambda: len(world.server.seen) == 2)
        loading = world.session._loading.task
        world.source.gate.set()
        await loading
        world.source.fails = False
        await sent
        assert world.source.loads == [False, False, True]
        assert world.tokens[-1] == "t3"


async def test_closing_the_session_cancels_the_load_of_credentials(play: Play) -> None:
    async with play() as world:
        world.due()
        await world.client.send(READ)
        assert world.source.ended == 1
