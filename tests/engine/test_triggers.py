"""Each line of the log about a pass says what led to it, and how long the pass has taken."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sys
from types import SimpleNamespace

import pytest
import structlog

from ruleop.engine.queue.request import Request
from ruleop.engine.queue.result import Result
from ruleop.engine.queue.triggers import MOST, RESYNC, START, Triggers, told
from ruleop.engine.queue.workers import Workers
from ruleop.engine.telemetry.logging import set_up
from ruleop.engine.telemetry.metrics import Metrics
from ruleop.kinds import ObjectKey

WEB = Request("shop", "web")
DEPLOYMENT = ObjectKey("apps", "Deployment", "shop", "web")


def test_several_causes_are_joined_and_each_is_told_once():
    causes = Triggers()
    for cause in (START, DEPLOYMENT, DEPLOYMENT, ObjectKey("", "Node", "", "one")):
        causes.came(WEB, cause)
    assert told(causes.take(WEB)) == "start, Deployment shop/web changed, Node one changed"
    assert causes.take(WEB) == ()


def test_a_thousand_events_are_no_line_of_a_thousand_words():
    causes = Triggers()
    for number in range(1000):
        causes.came(WEB, f"event {number}")
    assert len(causes.take(WEB)) == MOST


def test_what_was_planned_is_no_cause_when_something_came_before():
    causes = Triggers()
    causes.plan(WEB, RESYNC)
    causes.came(WEB, DEPLOYMENT)
    assert causes.take(WEB) == (DEPLOYMENT,)
    assert causes.take(WEB) == (), "nor is it one later"
    causes.plan(WEB, RESYNC)
    assert causes.take(WEB) == (RESYNC,)


@pytest.fixture
def lines(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr("ruleop.engine.telemetry.logging.sys", SimpleNamespace(stderr=stream, exc_info=sys.exc_info))
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    set_up(form="json")
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def passes(run, *verdicts):
    """The passes over a CR whose Deployment changed, each of which says something and ends with a verdict."""

    async def all_of_them():
        ended = asyncio.Event()
        left = list(verdicts)

        async def work(request):
            structlog.get_logger().info("pass", resource=request.name)
            verdict = left.pop(0)
            if not left:
                ended.set()
            return verdict

        workers = Workers("App", limit=1, metrics=Metrics(), ended=lambda task: None)
        workers.start(work)
        workers.add(WEB, DEPLOYMENT)
        workers.open(True)
        await ended.wait()
        await workers.stop()

    run(all_of_them())


def test_retries_are_counted(run, lines):
    passes(run, Result(failed=True), Result(failed=True), Result())
    assert [line["because"] for line in lines()] == ["Deployment shop/web changed", "retry 1", "retry 2"]


def test_a_pass_that_finishes_another_has_the_same_cause(run, lines):
    passes(run, Result(again=0.001), Result(again=0.001, why=RESYNC), Result())
    assert [line["because"] for line in lines()] == ["Deployment shop/web changed", "Deployment shop/web changed", "resync"]


def test_each_line_says_how_long_the_pass_has_taken(run, lines):
    passes(run, Result())
    assert isinstance(lines()[0]["seconds"], float)
