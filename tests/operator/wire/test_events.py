"""Events are limited in number and size, and never delay other requests."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.operator.wire.client.event_recorder import HOLD, EventCorrelator, EventRecorder, ObjectEvent
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.operator.wire.http.connection import PreparedRequest
from tests.waiting import PATIENCE

WALL = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
APP = ObjectKey("example.com", "App", "prod", "shop")


def happening(reason: str = "Synced", note: str = "App synced successfully", **fields: Any) -> ObjectEvent:
    return ObjectEvent(fields.pop("regarding", APP), "v1", "u1", reason, note, **fields)


def book() -> EventCorrelator:
    return EventCorrelator("ruleop.dev/ruleop", "pod-1")


def test_an_event_has_the_form_that_the_server_accepts() -> None:
    sent = book().correlate(happening(), 0.0, WALL)
    event = orjson.loads(sent.body)
    name = event["metadata"].pop("name")
    assert name.startswith("shop.")
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "prod"},
        "eventTime": "2026-01-02T03:04:05.000000Z",
        "reportingController": "ruleop.dev/ruleop",
        "reportingInstance": "pod-1",
        "type": "Normal",
        "reason": "Synced",
        "action": "Reconcile",
        "note": "App synced successfully",
        "regarding": {"apiVersion": "example.com/v1", "kind": "App", "name": "shop", "uid": "u1", "namespace": "prod"},
    }
    assert sent.path == "/apis/events.k8s.io/v1/namespaces/prod/events"


def test_events_about_cluster_scoped_objects_are_in_namespace_default() -> None:
    sent = book().correlate(happening(regarding=ObjectKey("", "Node", "", "n1")), 0.0, WALL)
    event = orjson.loads(sent.body)
    assert event["metadata"]["namespace"] == "default"
    assert "namespace" not in event["regarding"]


def test_a_repeated_event_is_counted_in_its_series_and_is_new_after_a_while() -> None:
    events = book()
    first = events.correlate(happening(), 0.0, WALL)
    name = orjson.loads(first.body)["metadata"]["name"]
    second = events.correlate(happening(), 10.0, WALL)
    assert second.method == "PATCH"
    assert second.path.endswith(name)
    assert orjson.loads(second.body)["series"]["count"] == 2
    assert events.correlate(happening(), 1000.0, WALL).method == "POST"


def test_events_about_one_object_are_limited_to_a_burst_and_one_every_five_minutes() -> None:
    events = book()
    said = [
        events.correlate(happening(note=f"failure {i}", warning=True), i * 1.0, WALL) is not None for i in range(900)
    ]
    assert sum(said) == 25 + 2
    assert all(said[:25])
    assert events.suppressed == 900 - 27
    assert events.correlate(happening(regarding=APP._replace(name="other")), 900.0, WALL) is not None, (
        "others have their own"
    )


def test_long_notes_of_events_are_cut_between_characters() -> None:
    event = orjson.loads(book().correlate(happening(note="ä€" * 1000, reason="R" * 200), 0.0, WALL).body)
    assert len(event["note"].encode()) <= 1024
    assert event["note"].endswith("...")
    assert len(event["reason"]) == 128


class Sender:
    """In place of a client."""

    def __init__(self, *errors: ApiError | None) -> None:
        self.errors = list(errors)
        self.sent: list[PreparedRequest] = []

    async def fetch(self, request: PreparedRequest) -> tuple[bytes, str]:
        self.sent.append(request)
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error
        return b"", ""


def recorder(sender: Sender) -> EventRecorder:
    return EventRecorder(sender, reporter="ruleop", instance="me", clock=lambda: 0.0)  # type: ignore[arg-type]


async def test_recorded_events_are_sent_in_the_background_or_at_the_stop() -> None:
    sender = Sender()
    events = recorder(sender)
    events.start()
    events.record(happening())
    await asyncio.sleep(0)
    events.record(happening(note="another"))
    await events.stop()
    assert len(sender.sent) == 2


async def test_an_event_that_was_deleted_on_the_server_is_created_again() -> None:
    sender = Sender(None, ApiError(Problem.NOT_FOUND, verb="patch", resource="events", text="gone"))
    events = recorder(sender)
    events.start()
    events.record(happening())
    events.record(happening())
    await events.stop()
    assert [each.method for each in sender.sent] == ["POST", "PATCH", "POST"]


@pytest.mark.slow
async def test_an_event_that_fails_unexpectedly_is_dropped_and_the_next_is_sent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sender = Sender(ZeroDivisionError())
    events = recorder(sender)
    events.start()
    events.record(happening())
    events.record(happening(note="another"))
    await events.stop()
    assert events.statistics() == {"waiting": 0, "sent": 1, "dropped": 1, "suppressed": 0}
    assert "event dropped: internal error" in capsys.readouterr().out


@pytest.mark.slow
async def test_a_server_that_refuses_all_events_holds_nothing_up() -> None:
    sender = Sender(*[ApiError(Problem.FORBIDDEN, verb="create", resource="events", text="no") for _ in range(5000)])
    events = recorder(sender)
    for number in range(3000):
        events.record(happening(regarding=APP._replace(name=str(number))))
    assert events.statistics() == {"waiting": 1000, "sent": 0, "dropped": 2000, "suppressed": 0}
    events.start()
    await events.stop()
    assert events.statistics()["waiting"] == 0
    assert events.dropped == 3000


def test_an_event_yields_to_urgent_requests_for_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ruleop.operator.wire.client.event_recorder.HOLD_INTERVAL", 0.001)

    async def run() -> None:
        sender, now, busy = Sender(), [0.0], [True]
        events = EventRecorder(sender, reporter="ruleop", instance="me", clock=lambda: now[0], busy=lambda: busy[0])  # type: ignore[arg-type]
        events.start()
        events.record(happening())
        await asyncio.sleep(0.05)
        assert not sender.sent
        now[0] = HOLD
        while not sender.sent:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        events.record(happening(note="another"))
        await asyncio.sleep(0.05)
        assert len(sender.sent) == 1
        busy[0] = False
        while len(sender.sent) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        await events.stop()

    asyncio.run(asyncio.wait_for(run(), PATIENCE))


def test_the_first_of_equal_event_refusals_is_logged_and_the_first_after_a_success() -> None:
    def forbidden() -> ApiError:
        return ApiError(Problem.FORBIDDEN, verb="create", resource="events", text="may not")

    async def run() -> None:
        events = recorder(Sender(forbidden(), forbidden(), None, forbidden()))
        events.start()
        for number in range(4):
            events.record(happening(note=f"news {number}"))
        await events.stop()

    with capture_logs() as lines:
        asyncio.run(run())
    assert [line["log_level"] for line in lines] == ["warning", "debug", "warning"]
    assert "may not" in lines[0]["error"]
