"""The watchdog of the event loop reports how late the loop is, and whether it is blocked."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ruleop.operator.telemetry import probes
from ruleop.operator.telemetry.probes import BEAT_INTERVAL, BLOCKED_AFTER, LoopWatchdog, call_on_loop


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def lags():
    return []


@pytest.fixture
def watchdog(lags, clock):
    return LoopWatchdog(lags.append, clock=clock)


@pytest.fixture
def run_with_sleeps(watchdog, clock, monkeypatch):
    """Runs the watchdog while each of its sleeps takes as long as the test says."""

    def run(*seconds):
        sleeps = list(seconds)

        async def sleep(_seconds):
            if not sleeps:
                raise asyncio.CancelledError
            clock.now += sleeps.pop(0)

        monkeypatch.setattr(probes.asyncio, "sleep", sleep)
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(watchdog.run())

    return run


def test_each_beat_reports_how_late_the_loop_was(run_with_sleeps, lags):
    run_with_sleeps(BEAT_INTERVAL, BEAT_INTERVAL + 0.25, BEAT_INTERVAL + 3)
    assert lags == [0, 0.25, 3]


def test_each_beat_restarts_the_time_since_the_last_beat(run_with_sleeps, watchdog, clock):
    clock.now += 40
    assert watchdog.since_beat() == 40
    run_with_sleeps(BEAT_INTERVAL)
    assert watchdog.since_beat() == 0


def test_a_loop_without_a_beat_for_long_is_blocked(watchdog, clock):
    clock.now += BLOCKED_AFTER
    assert not watchdog.is_blocked
    clock.now += 0.1
    assert watchdog.is_blocked


async def test_a_call_from_another_thread_runs_on_the_loop():
    loop, thread = asyncio.get_running_loop(), threading.get_ident()
    assert await asyncio.to_thread(call_on_loop, loop, threading.get_ident) == thread


async def test_a_call_from_another_thread_times_out_when_the_loop_is_blocked(monkeypatch):
    monkeypatch.setattr(probes, "CALL_TIMEOUT", 0.01)
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor() as pool, pytest.raises(TimeoutError):
        pool.submit(call_on_loop, loop, int).result()  # the loop does not run meanwhile
