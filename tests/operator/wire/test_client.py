"""The sender and the driver of watches, against a scripted HTTP server."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.operator.wire.client import requests
from ruleop.operator.wire.client.client import Client, LineSplitter, Session, reading, stored_object
from ruleop.operator.wire.client.discovery import Catalogue, read_catalogue
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.operator.wire.http.access import Access
from ruleop.operator.wire.watch.reflector import Reflector
from ruleop.operator.wire.watch.store import StoreState
from ruleop.operator.wire.watch.watcher import Watcher
from tests.operator.wire.http_server import Exchange, Recorder, serving
from tests.operator.wire.model_server import SOURCE, WIDGETS, bookmark, line
from tests.waiting import PATIENCE, until

KEY = ObjectKey("example.com", "Widget", "ns", "a")


class Open:
    """Credentials that are none."""

    namespace = "default"

    def __init__(self, address: str) -> None:
        self.address = address

    async def load(self, *, forced: bool = False) -> Access:
        return Access(self.address)


@contextlib.asynccontextmanager
async def client_of(
    handler: Callable[[Exchange], Awaitable[None]], **options: Any
) -> AsyncIterator[tuple[Client, Recorder]]:
    async with serving(handler) as server:
        session = await Session.open(Open(server.address))
        try:
            async with asyncio.timeout(PATIENCE):
                yield Client(session, **options), server
        finally:
            await session.close()


def widget(name: str, version: int, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": str(version)}, **fields}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_lines_are_split_at_newlines_however_the_bytes_are_chunked(size: int) -> None:
    lines = ['{"a":"ä€😀"}', "", '{"b":' + '"x' * 20, "end"]
    data = "\n".join(lines).encode() + b"\nrest"
    splitter, found = LineSplitter(), []
    for at in range(0, len(data), size):
        found += splitter.feed(data[at : at + size])
    assert [each.decode() for each in found] == [each for each in lines if each]


async def test_a_patch_is_sent_with_manager_and_strict_validation_and_is_counted() -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.answer({"got": orjson.loads(exchange.body)})

    seen: list[Any] = []

    async with client_of(handler, observe=lambda *each: seen.append(each)) as (client, server):
        assert await client.send(requests.merge_patch(WIDGETS, KEY, {"spec": {"ä": 1}})) == {"got": {"spec": {"ä": 1}}}
        exchange = server.seen[0]
        assert (exchange.method, exchange.path) == ("PATCH", "/apis/example.com/v1/namespaces/ns/widgets/a")
        assert exchange.query == {"fieldManager": "ruleop", "fieldValidation": "Strict"}
        assert exchange.headers["content-type"] == "application/merge-patch+json"
        assert [(verb, status) for verb, status, _ in seen] == [("patch", 200)]


async def test_the_date_of_a_response_is_reported_with_the_seconds_that_the_request_took() -> None:
    date = "Fri, 27 Nov 2026 15:54:53 GMT"

    async def handler(exchange: Exchange) -> None:
        await exchange.answer(**{"Date": date} if exchange.method == "GET" else {})

    seen: list[tuple[str, float]] = []
    async with client_of(handler, dated=lambda *each: seen.append(each)) as (client, _server):
        await client.send(requests.get(WIDGETS, KEY))
        await client.send(requests.merge_patch(WIDGETS, KEY, {}))
    ((reported, seconds),) = seen
    assert reported == date
    assert 0 < seconds < 20


async def test_concurrent_requests_stay_below_the_limit() -> None:
    at_once = most = 0

    async def handler(exchange: Exchange) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        for _ in range(20):
            await asyncio.sleep(0)
        at_once -= 1
        await exchange.answer()

    async with client_of(handler, concurrency=4) as (client, _server):
        await asyncio.gather(*(client.send(requests.get(WIDGETS, KEY)) for _ in range(30)))
    assert most == 4


@pytest.mark.parametrize(
    ("request_", "unknown"), [(requests.get(WIDGETS, KEY), False), (requests.merge_patch(WIDGETS, KEY, {}), True)]
)
@pytest.mark.parametrize("how", ["reset", "silent"])
async def test_a_write_without_an_answer_has_an_unknown_outcome(
    request_: requests.PreparedRequest, unknown: bool, how: str
) -> None:
    async def handler(exchange: Exchange) -> None:
        if how == "reset":
            exchange.reset()
        else:
            await asyncio.Event().wait()

    async with client_of(handler) as (client, _server):
        with pytest.raises(ApiError) as caught:
            await client.send(replace(request_, timeout=0.2))
        assert caught.value.problem is Problem.TIMEOUT
        assert caught.value.retryable
        assert caught.value.outcome_unknown == unknown


async def test_a_write_that_was_never_sent_has_a_known_outcome() -> None:
    session = await Session.open(Open("http://127.0.0.1:1"))
    with pytest.raises(ApiError, match="cannot be reached") as caught:
        await Client(session).send(requests.merge_patch(WIDGETS, KEY, {}))
    assert caught.value.problem is Problem.UNREACHABLE
    assert not caught.value.outcome_unknown
    await session.close()


async def test_a_refusal_has_its_type_and_its_retry_after() -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.answer({"kind": "Status", "reason": "TooManyRequests", "message": "busy"}, 429, Retry_After="3")

    async with client_of(handler) as (client, server):
        with pytest.raises(ApiError, match=r"get widgets.example.com ns/a: busy \(429 TooManyRequests\)") as caught:
            await client.send(requests.get(WIDGETS, KEY))
        assert caught.value.retry_after == 3.0
        assert len(server.seen) == 1, "no retries of its own"


async def test_a_document_with_a_known_etag_is_not_transferred_again() -> None:
    async def handler(exchange: Exchange) -> None:
        known = exchange.headers.get("if-none-match") == '"1"'
        await exchange.answer(b"" if known else b"{}", 304 if known else 200, ETag='"1"')

    async with client_of(handler) as (client, _server):
        body, etag = await client.fetch(requests.document("/apis"))
        assert (body, etag) == (b"{}", '"1"')
        assert await client.fetch(requests.document("/apis", etag=etag)) == (b"", '"1"')


@contextlib.asynccontextmanager
async def watching(handler: Callable[[Exchange], Awaitable[None]]) -> AsyncIterator[tuple[Watcher, Recorder]]:
    async with client_of(handler) as (client, server):
        watcher = Watcher(client, SOURCE, chance=lambda: 0.0)
        watcher.start()
        try:
            yield watcher, server
        finally:
            await watcher.stop()


async def test_a_watch_reads_objects_of_over_a_megabyte_in_chunks_of_any_size() -> None:
    big = widget("a", 5, data="ä€😀" * 170_000)

    async def handler(exchange: Exchange) -> None:
        await exchange.open()
        data = line("ADDED", big) + b"\n" + bookmark(9, ends=True) + b"\n" + line("MODIFIED", widget("b", 10)) + b"\n"
        assert len(data) > 1_500_000
        for at in range(0, len(data), 65_537):
            await exchange.chunk(data[at : at + 65_537])
        await asyncio.Event().wait()

    async with watching(handler) as (watcher, _server):
        await until("the store", lambda: watcher.store.is_at_least(10))
        assert watcher.store.get(KEY)["data"] == big["data"]
        assert watcher.store.state is StoreState.SYNCED
        assert watcher.age() < 20


async def test_the_driver_resumes_after_every_kind_of_end_of_a_watch() -> None:
    """429 with Retry-After 0, a reset, an ERROR of each sort, a clean end, half a line: at the end it watches, and
    nothing is lost."""
    scripts: list[tuple[str, Callable[[Exchange], Awaitable[None]]]] = []
    done = asyncio.Event()

    async def busy(exchange: Exchange) -> None:
        await exchange.answer({"kind": "Status", "reason": "TooManyRequests"}, 429, Retry_After="0")

    async def first(exchange: Exchange) -> None:
        await exchange.open()
        await exchange.chunk(line("ADDED", widget("a", 5)) + b"\n" + bookmark(5, ends=True) + b"\n")
        exchange.reset()

    async def half_a_line(exchange: Exchange) -> None:
        await exchange.open()
        await exchange.chunk(line("ADDED", widget("b", 6)) + b"\n" + line("ADDED", widget("c", 7))[:20])
        await exchange.end()

    async def expired(exchange: Exchange) -> None:
        await exchange.open()
        await exchange.chunk(line("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"}) + b"\n")
        await asyncio.Event().wait()

    async def again(exchange: Exchange) -> None:
        await exchange.open()
        await exchange.chunk(line("ADDED", widget("b", 6)) + b"\n" + bookmark(9, ends=True) + b"\n")
        done.set()
        await asyncio.Event().wait()

    scripts = [("", busy), ("", first), ("5", half_a_line), ("6", expired), ("", again)]

    async def handler(exchange: Exchange) -> None:
        version, script = scripts.pop(0)
        assert exchange.query.get("resourceVersion", "") == version
        assert ("sendInitialEvents" in exchange.query) == (not version)
        await script(exchange)

    async with watching(handler) as (watcher, _server):
        while not done.is_set():
            watcher.wake()  # the waits are the reflector's, and tested there
            await asyncio.sleep(0.005)
        await until("the store", lambda: watcher.store.is_at_least(9))
        assert [key.name for key in watcher.store.select_keys()] == ["b"]
        assert watcher.crashes == 0


async def test_a_half_open_watch_is_abandoned_after_the_silence_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a first bookmark nothing comes any more, not even an end."""
    monkeypatch.setattr("ruleop.operator.wire.watch.reflector.SILENCE", 0.05)

    async def handler(exchange: Exchange) -> None:
        await exchange.open()
        if "sendInitialEvents" in exchange.query:
            await exchange.chunk(bookmark(5, ends=True) + b"\n" + bookmark(6) + b"\n")
        await asyncio.Event().wait()

    async with watching(handler) as (watcher, server):
        while len(server.seen) < 2:
            watcher.wake()
            await asyncio.sleep(0.005)
        assert server.seen[1].query["resourceVersion"] == "6"


@pytest.mark.slow
async def test_an_internal_error_of_the_watch_is_logged_and_counted_and_the_watch_resumes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ruleop.operator.wire.watch.watcher.CRASH_WAIT", 0.0)
    good = Reflector.opened
    calls = 0

    def bad(self: Reflector, now: float) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ZeroDivisionError
        good(self, now)

    monkeypatch.setattr(Reflector, "opened", bad)

    async def handler(exchange: Exchange) -> None:
        await exchange.open()
        await exchange.chunk(bookmark(5, ends=True) + b"\n")
        await asyncio.Event().wait()

    async with watching(handler) as (watcher, _server):
        await until("the store", lambda: watcher.store.state is StoreState.SYNCED)
        assert watcher.crashes == 1


async def test_stopping_the_watcher_closes_its_connection() -> None:
    ended = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        await exchange.open()
        try:
            while True:
                await exchange.chunk(bookmark(5) + b"\n")
                await asyncio.sleep(0.005)
        finally:
            ended.set()

    async with client_of(handler) as (client, server):
        watcher = Watcher(client, SOURCE)
        watcher.start()
        await until("the requests", lambda: server.seen)
        await watcher.stop()
        await ended.wait()


async def test_a_rate_limit_spaces_requests() -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.answer()

    async with client_of(handler, qps=100) as (client, _server):
        begun = time.monotonic()
        await asyncio.gather(*(client.send(requests.get(WIDGETS, KEY)) for _ in range(5)))
        assert time.monotonic() - begun >= 0.04  # never sooner; how much later is the machine's matter


@pytest.mark.parametrize(
    "answer",
    [
        {"kind": "Status"},
        {"metadata": []},
        {"metadata": {"name": 1}},
        [],
        None,
        "x",
    ],
    ids=str,
)
def test_an_answer_that_is_not_a_stored_object_is_an_error_of_the_server(answer: Any) -> None:
    request = requests.get(WIDGETS, ObjectKey("example.com", "Widget", "ns", "a"))
    with pytest.raises(ApiError, match="the answer is not an object") as caught:
        stored_object(answer, request)
    assert caught.value.problem is Problem.SERVER


def test_values_of_other_types_in_an_answer_are_an_error_of_the_server() -> None:
    request = requests.document("/apis")
    for odd in ([7], [{"metadata": "x"}], [{"versions": [7]}], [{"versions": 7}]):
        with pytest.raises(ApiError, match="the answer has another form"), reading(request):
            read_catalogue([{"items": odd}], Catalogue())
