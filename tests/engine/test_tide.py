"""Children first, and what is told about them when the others have theirs."""

from __future__ import annotations

import pytest

from ruleop.engine.reconcile.status_debounce import CALM, StatusDebounce

PATIENCE = 1.0


class Sea:
    """A tide, its clock, and who was woken."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[tuple[float, object]] = []
        self.woken: list[str] = []
        self.tide = StatusDebounce(lambda: self.now, lambda seconds, call: self.timers.append((self.now + seconds, call)))

    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [timer for timer in self.timers if timer[0] <= end]:
            timer = min(due, key=lambda each: each[0])
            self.timers.remove(timer)
            self.now = max(self.now, timer[0])
            timer[1]()
        self.now = end

    def may_wait(self, who: str = "a") -> float | None:
        return self.tide.may_wait(who, PATIENCE, lambda: self.woken.append(who))


@pytest.fixture
def sea() -> Sea:
    return Sea()


def test_whoever_is_alone_never_waits(sea):
    sea.tide.begin()
    assert not sea.tide.end()
    sea.wait(CALM * 2)
    sea.tide.begin()
    assert not sea.tide.end(), "its own last write is long ago"


def test_it_is_high_while_others_write_and_a_moment_longer(sea):
    sea.tide.begin()
    sea.tide.begin()
    assert sea.tide.end(), "the other is still at it"
    assert sea.tide.end(), "the first has only just ended"
    assert sea.tide.high
    sea.wait(CALM)
    assert not sea.tide.high


def test_what_is_owed_is_woken_when_the_tide_is_out(sea):
    sea.tide.begin()
    sea.tide.begin()
    sea.tide.end()
    assert sea.may_wait() == PATIENCE
    sea.wait(CALM * 3)
    assert not sea.woken, "somebody still writes"
    sea.tide.end()
    sea.wait(CALM * 3)
    assert sea.woken == ["a"]
    assert not sea.timers, "and nothing goes on looking"


def test_writes_without_end_keep_nobody_waiting_for_ever(sea):
    sea.tide.begin()
    waited = 0.0
    while sea.may_wait() is not None:
        sea.wait(CALM)
        waited += CALM
    assert PATIENCE <= waited < PATIENCE + 2 * CALM
    assert sea.may_wait() == PATIENCE, "the next debt is another one"


def test_a_second_look_at_the_same_cr_does_not_begin_its_wait_anew(sea):
    sea.tide.begin()
    sea.may_wait()
    sea.wait(0.4)
    assert sea.may_wait() == pytest.approx(PATIENCE - 0.4)


def test_who_was_told_in_the_meantime_is_not_woken(sea):
    sea.tide.begin()
    sea.may_wait("a")
    sea.may_wait("b")
    sea.tide.paid("a")
    sea.tide.end()
    sea.wait(CALM * 3)
    assert sea.woken == ["b"]
