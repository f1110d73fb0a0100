"""The event loop's watchdog: how late it turns, and whether it turns at all."""

from __future__ import annotations

import asyncio

import pytest

from ruleop.engine.telemetry import loop_watchdog
from ruleop.engine.telemetry.loop_watchdog import BEAT, HUNG, LoopWatchdog


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def beating(monkeypatch):
    """A loop_watchdog whose sleeps take as long as the test says."""
    clock, lates, sleeps = Clock(), [], []

    async def sleep(seconds):
        if not sleeps:
            raise asyncio.CancelledError
        clock.now += sleeps.pop(0)

    monkeypatch.setattr(loop_watchdog.asyncio, "sleep", sleep)
    return LoopWatchdog(lates.append, clock=clock), clock, lates, sleeps


def beat(found):
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(found.beat())


def test_each_beat_tells_how_late_it_is(beating):
    found, _, lates, sleeps = beating
    sleeps += [BEAT, BEAT + 0.25, BEAT + 3]
    beat(found)
    assert lates == [0, 0.25, 3]


def test_a_beat_ends_the_silence(beating):
    found, clock, _, sleeps = beating
    clock.now += 40
    assert found.silence() == 40
    sleeps.append(BEAT)
    beat(found)
    assert found.silence() == 0


def test_a_loop_hangs_when_it_has_not_turned_for_long(beating):
    found, clock, _, _ = beating
    clock.now += HUNG
    assert not found.hangs
    clock.now += 0.1
    assert found.hangs
