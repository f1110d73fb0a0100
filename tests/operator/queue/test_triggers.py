"""Each log line of a reconcile has its triggers and its duration."""

from __future__ import annotations

import asyncio
import json

import pytest
import structlog

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.operator.queue.work_queue import MAX_TRIGGERS, RESYNC, START, Request, Result, Triggers, describe
from ruleop.operator.queue.workers import Workers
from ruleop.operator.telemetry.logging import set_up
from ruleop.operator.telemetry.metrics import Metrics
from tests.logs import captured_stderr

WEB = Request("shop", "web")
DEPLOYMENT = ObjectKey("apps", "Deployment", "shop", "web")


def test_several_triggers_are_joined_and_each_is_named_once():
    triggers = Triggers()
    for cause in (START, DEPLOYMENT, DEPLOYMENT, ObjectKey("", "Node", "", "one")):
        triggers.add(WEB, cause)
    assert describe(triggers.take(WEB)) == "start, Deployment shop/web changed, Node one changed"
    assert triggers.take(WEB) == ()


def test_only_the_first_triggers_are_kept():
    triggers = Triggers()
    for number in range(1000):
        triggers.add(WEB, f"event {number}")
    assert len(triggers.take(WEB)) == MAX_TRIGGERS


def test_the_trigger_of_a_resync_is_dropped_when_another_came_before():
    triggers = Triggers()
    triggers.schedule(WEB, RESYNC)
    triggers.add(WEB, DEPLOYMENT)
    assert triggers.take(WEB) == (DEPLOYMENT,)
    assert triggers.take(WEB) == (), "nor is it used later"
    triggers.schedule(WEB, RESYNC)
    assert triggers.take(WEB) == (RESYNC,)


@pytest.fixture
def lines():
    with captured_stderr() as text:
        set_up(form="json")
        yield lambda: [json.loads(line) for line in text.getvalue().splitlines()]


def reconcile(run, *results):
    """Reconciles a CR whose Deployment changed, once for each result, with a log line each."""

    async def scenario():
        ended = asyncio.Event()
        left = list(results)

        async def log_and_return(request):
            structlog.get_logger().info("pass", resource=request.name)
            result = left.pop(0)
            if not left:
                ended.set()
            return result

        workers = Workers("App", limit=1, metrics=Metrics(), on_exit=lambda task: None)
        workers.start(log_and_return)
        workers.add(WEB, DEPLOYMENT)
        workers.open(True)
        await ended.wait()
        await workers.stop()

    run(scenario())


def test_each_retry_is_counted_in_the_trigger(run, lines):
    reconcile(run, Result(failed=True), Result(failed=True), Result())
    assert [line["because"] for line in lines()] == ["Deployment shop/web changed", "retry 1", "retry 2"]


def test_a_requeue_without_a_reason_has_the_same_trigger(run, lines):
    reconcile(run, Result(requeue_after=0.001), Result(requeue_after=0.001, reason=RESYNC), Result())
    assert [line["because"] for line in lines()] == [
        "Deployment shop/web changed",
        "Deployment shop/web changed",
        "resync",
    ]


def test_each_line_has_the_duration_of_the_reconcile(run, lines):
    reconcile(run, Result())
    assert isinstance(lines()[0]["seconds"], float)
