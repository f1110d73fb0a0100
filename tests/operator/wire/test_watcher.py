"""The log of an interrupted watch: one line that says what to do, and a warning only where someone has to act."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from structlog.testing import capture_logs

from ruleop.kubernetes.builtin.table import ResourceInfo
from ruleop.kubernetes.kinds import Kind
from ruleop.operator.cache.informers import Informer, Informers, WatchSpec
from ruleop.operator.wire.client.client import Client, Session
from ruleop.operator.wire.client.requests import ObjectSource
from ruleop.operator.wire.watch.store import StoreState
from ruleop.operator.wire.watch.watcher import Watcher
from tests.operator.wire.http_server import Exchange, serving
from tests.operator.wire.test_client import Open
from tests.waiting import PATIENCE, until

MAPS = ResourceInfo("configmaps", namespaced=True, status_subresource=False, kind=Kind("", "v1", "ConfigMap"))
END = (
    b'{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"7",'
    b'"annotations":{"k8s.io/initial-events-end":"true"}}}}\n'
)


regained: list[str] = []


def refused(status: int, times: int) -> list[dict[str, Any]]:
    """The lines of a watch that is refused a few times before it is served."""

    async def handle(exchange: Exchange) -> None:
        if len(server.seen) <= times:
            await exchange.answer({"kind": "Status", "message": "no", "reason": "Whatever"}, status, Retry_After="0")
            return
        await exchange.open()
        await exchange.chunk(END)
        await asyncio.sleep(30)

    async def run() -> None:
        nonlocal server
        async with serving(handle) as server, asyncio.timeout(PATIENCE):
            session = await Session.open(Open(server.address))
            watcher = Watcher(
                Client(session),
                ObjectSource(MAPS),
                chance=lambda: 0.0,
                regained=lambda: regained.append(server.address),
            )
            watcher.start()
            await until("a list", lambda: watcher.wake() or watcher.store.state is StoreState.SYNCED)
            await watcher.stop()
            await session.close()

    server: Any = None
    regained.clear()
    with capture_logs() as lines:
        asyncio.run(run())
    return list(lines)


def test_a_throttled_watch_is_logged_as_information() -> None:
    """A kind that was defined a moment ago is like that."""
    lines = refused(429, 1)
    assert [(line["log_level"], line["event"]) for line in lines] == [
        ("info", "watch throttled"),
        ("info", "watch resumed"),
    ]


def test_a_missing_permission_is_logged_once_with_what_to_grant() -> None:
    first, *others = refused(403, 3)
    assert (first["log_level"], first["event"]) == ("warning", "not permitted to watch; will retry")
    assert first["grant"] == "list, watch on configmaps in all namespaces"
    assert "configmaps" in first["error"]
    assert [line["event"] for line in others] == ["watch resumed"]


def test_the_watch_of_an_unserved_kind_is_logged_at_debug_level_only() -> None:
    assert {line["log_level"] for line in refused(404, 3)} == {"debug"}


@pytest.mark.parametrize("status", [500, 503])
def test_a_server_error_is_a_single_warning_and_the_resumed_watch_is_logged(status: int) -> None:
    lines = refused(status, 3)
    assert [line["event"] for line in lines] == ["watch interrupted", "watch resumed"]


def test_a_stream_of_html_is_a_single_warning() -> None:
    """Each time it is opened as if all were well."""

    async def handle(exchange: Exchange) -> None:
        await exchange.open()
        if len(server.seen) < 4:
            await exchange.chunk((END if len(server.seen) == 1 else b"") + b"<html>\n")
        await asyncio.sleep(30)

    async def run() -> None:
        nonlocal server
        async with serving(handle) as server, asyncio.timeout(PATIENCE):
            session = await Session.open(Open(server.address))
            watcher = Watcher(Client(session), ObjectSource(MAPS), chance=lambda: 0.0)
            watcher.start()
            await until("its requests", lambda: watcher.wake() or len(server.seen) >= 4)
            await watcher.stop()
            await session.close()

    server: Any = None
    with capture_logs() as lines:
        asyncio.run(run())
    first, *others = lines
    assert (first["log_level"], first["event"]) == ("warning", "watch interrupted")
    assert "a line is not an event" in first["error"]
    assert {line["event"] for line in others} <= {"watch resumed"}


@pytest.mark.parametrize(("status", "times"), [(500, 1), (503, 1), (403, 0), (429, 0)])
def test_a_server_that_answers_again_is_reported_once(status: int, times: int) -> None:
    """A refusal is an answer, too."""
    refused(status, 3)
    assert len(regained) == times


def test_when_a_watch_resumes_other_interrupted_watches_retry_at_once() -> None:
    informers = Informers(None, lambda _kind: None, ())  # type: ignore[arg-type]
    watchers = [SimpleNamespace(cut_off=cut_off, wake=mock.Mock()) for cut_off in (True, False, True)]
    informer = informers.informers[WatchSpec(MAPS.kind)] = Informer(WatchSpec(MAPS.kind))
    informer.watchers = watchers  # type: ignore[assignment]
    informers._connection_regained()
    assert [watcher.wake.called for watcher in watchers] == [True, False, True]
