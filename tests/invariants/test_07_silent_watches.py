"""A watch that went silent is found: server timeoutSeconds, a client deadline past it, bookmarks, readiness tied to the
age of each stream."""

from __future__ import annotations

import asyncio
import math
from typing import Any
from unittest import mock
from urllib.parse import parse_qsl

import pytest
from hypothesis import strategies as st

from ruleop.operator.wire.watch import reflector
from ruleop.operator.wire.watch.reflector import Follow, Reflector, Rest
from ruleop.operator.wire.watch.store import Store
from tests.invariants.live_operator import operator_and_server
from tests.invariants.scenarios import apps, property_test, run, until
from tests.operator.wire.model_server import SOURCE, bookmark, line
from tests.waiting import a_moment

LONGEST = 400.0  # seconds in which any silence has to be found


@property_test(100)
def test_a_silent_stream_is_closed_and_opened_again(data: Any) -> None:
    """At any time: before the list, after it, after a bookmark, after an event."""
    now, store = 1000.0, Store(SOURCE)
    watch = Reflector(SOURCE, store, chance=lambda: data.draw(st.floats(0, 1)))
    step = watch.next(now)
    assert isinstance(step, Follow)
    watch.opened(now)
    version = 10
    for what in data.draw(st.lists(st.sampled_from(["end of list", "bookmark", "event"]), max_size=4)):
        now += data.draw(st.floats(0.0, 50.0))
        version, deadline = version + 1, watch.deadline
        if what == "event":
            metadata = {"name": "a", "namespace": "ns", "uid": "1", "resourceVersion": str(version)}
            watch.lines([line("ADDED", {"metadata": metadata})], now)
        else:
            watch.lines([bookmark(version, ends=what == "end of list")], now)
        if not watch.reading:
            assert now >= deadline, "only a stream that is past its deadline is closed while lines come"
            return
    assert watch.reading
    assert watch.deadline <= now + LONGEST
    watch.silent(now := watch.deadline)
    assert not watch.reading, "it is given up"
    assert not isinstance(watch.next(now + 3600.0), Rest), "and asked for again"


def test_each_watch_has_a_server_timeout_before_the_client_deadline_and_bookmarks() -> None:
    now = 0.0
    for chance in (0.0, 0.5, 1.0):
        watch = Reflector(SOURCE, Store(SOURCE), chance=lambda chance=chance: chance)
        step = watch.next(now)
        assert isinstance(step, Follow)
        watch.opened(now)
        watch.lines([bookmark(10, ends=True)], now)
        query = dict(parse_qsl(step.request.query))
        assert query["allowWatchBookmarks"] == "true"
        assert 0 < float(query.get("timeoutSeconds", math.inf)) < LONGEST
        assert watch.deadline <= float(query["timeoutSeconds"]) + 60.0


def test_changes_behind_silent_watches_are_noticed() -> None:
    """The whole operator, with all its durations divided by a hundred."""

    async def test() -> None:
        server = apps("web")
        async with operator_and_server(server):
            await until("the App to be made", lambda: server.cluster.conditions("App/web").get("Reconciling"))
            server.silent = True
            server.cluster.delete("Service/web-s")
            server.cluster.edit("App/web", {"spec": {"deployment": {"replicas": 4}}})
            await a_moment(0.1)
            server.silent = False  # for new watches; the old ones stay silent
            await until("the edit to be seen", lambda: server.cluster["Deployment/web-d"]["spec"]["replicas"] == 4)
            await until("the deletion to be seen", lambda: "Service/web-s" in server.cluster)

    with mock.patch.multiple(
        reflector, WATCH_SECONDS=1.5, CLOSE_MARGIN=0.1, SILENCE=0.4, STREAMING_SILENCE=0.4, FIRST_WAIT=0.01
    ):
        run(test())


@pytest.mark.slow
def test_an_operator_whose_watches_are_silent_is_not_ready() -> None:
    async def test() -> None:
        server = apps("web")
        async with operator_and_server(server) as operator:
            await until("the App to be made", lambda: server.cluster.conditions("App/web").get("Reconciling"))
            await until("it to be ready", lambda: _ready(operator.manager))
            server.silent = True
            server.meddle = lambda asked: _never() if asked.verb == "watch" else None
            await until("it to say that it is not", lambda: not _ready(operator.manager))

    with mock.patch.multiple(
        reflector, WATCH_SECONDS=1.5, CLOSE_MARGIN=0.1, SILENCE=0.4, STREAMING_SILENCE=0.4, FIRST_WAIT=0.01
    ):
        run(test())


def _ready(manager: Any) -> bool:
    return all(check.ok for check in manager.checks() if check.counts)


async def _never() -> None:
    await asyncio.Event().wait()
