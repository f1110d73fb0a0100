"""The operator's clock follows that of the API server."""

from __future__ import annotations

from email.utils import formatdate
from types import SimpleNamespace

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from ruleop.operator import clock
from ruleop.operator.clock import Clock
from ruleop.operator.manager.parts import Server
from ruleop.operator.telemetry.metrics import Metrics
from ruleop.planning.rendering.time_functions import parse_time

NOON = 1_780_000_000.0


class Machine:
    """This machine's clock, and that of an API server that is ahead."""

    def __init__(self, ahead):
        self.time, self.ahead = NOON, ahead

    def respond(self, to, there, back):
        """A response, with the seconds of its way there and back."""
        stamp = self.time + there + self.ahead
        self.time += there + back
        to.server_time(formatdate(stamp, usegmt=True), there + back)


@pytest.fixture
def machine(monkeypatch):
    found = Machine(0.0)
    monkeypatch.setattr(clock.time, "time", lambda: found.time)
    return found


def test_a_clock_that_agrees_is_not_corrected(machine):
    moved = []
    ours = Clock(moved.append)
    for _ in range(50):
        machine.respond(ours, 0.01, 0.02)
        machine.time += 0.37
    assert moved == []
    assert ours.now() == "2026-05-28T20:26:59Z"


@pytest.mark.parametrize("ahead", [-3600.0, -4.0, 7.25, 1e6])
def test_a_clock_that_differs_is_corrected_to_a_second(machine, ahead):
    moved = []
    ours, machine.ahead = Clock(moved.append), ahead
    machine.respond(ours, 0.01, 0.02)
    assert moved == [ours.offset]
    assert abs(ours.offset - ahead) <= 1.03
    assert abs(parse_time(ours.now()) - (machine.time + ahead)) < 2.1


@pytest.mark.parametrize("date", ["", "yesterday", "Fri, 99 Nov 2026 15:54:53 GMT", "Fri, 27 Nov 99999 15:54:53 GMT"])
def test_a_date_that_is_none_is_ignored(machine, date):
    ours = Clock()
    ours.server_time(date, 0.1)
    assert ours.offset == 0.0


@given(
    st.floats(-1e6, 1e6),
    st.lists(st.tuples(st.floats(0, 60), st.floats(0, 60), st.floats(0, 2)), min_size=1, max_size=30),
)
def test_the_offset_never_gets_worse_however_long_responses_take(ahead, responses):
    with pytest.MonkeyPatch.context() as patch:
        machine = Machine(ahead)
        patch.setattr(clock.time, "time", lambda: machine.time)
        ours, error = Clock(), abs(ahead)
        for there, back, pause in responses:
            machine.respond(ours, there, back)
            assert abs(ours.offset - ahead) <= error + 1e-3
            error = abs(ours.offset - ahead)
            machine.time += pause


def test_a_difference_is_measured_and_logged_once_until_it_is_gone():
    server = SimpleNamespace(metrics=Metrics(), _clock_differs=False)
    with structlog.testing.capture_logs() as lines:
        for offset in (0.2, 9.0, 8.0, 0.0, -7.0):
            Server._clock_moved(server, offset)
    assert [(each["event"], each["seconds"]) for each in lines] == [
        ("this machine's clock differs from the API server's", 9.0),
        ("this machine's clock differs from the API server's", -7.0),
    ]
    assert server.metrics.registry.get_sample_value("ruleop_clock_offset_seconds") == -7.0
