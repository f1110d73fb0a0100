"""Children first: statuses wait while children of other CRs are being written."""

from __future__ import annotations

import pytest

from ruleop.operator.passes.status_debounce import CALM, StatusDebounce

PATIENCE = 1.0


class Bench:
    """A debounce, its clock, and who was woken."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[tuple[float, object]] = []
        self.woken: list[str] = []
        self.debounce = StatusDebounce(
            lambda: self.now, lambda seconds, call: self.timers.append((self.now + seconds, call))
        )

    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [timer for timer in self.timers if timer[0] <= end]:
            timer = min(due, key=lambda each: each[0])
            self.timers.remove(timer)
            self.now = max(self.now, timer[0])
            timer[1]()
        self.now = end

    def may_wait(self, who: str = "a") -> float | None:
        return self.debounce.may_wait(who, PATIENCE, lambda: self.woken.append(who))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_the_status_of_a_cr_that_is_alone_never_waits(bench):
    bench.debounce.begin()
    assert not bench.debounce.end()
    bench.wait(CALM * 2)
    bench.debounce.begin()
    assert not bench.debounce.end(), "its own last write is long ago"


def test_statuses_are_delayed_while_others_write_and_shortly_after(bench):
    bench.debounce.begin()
    bench.debounce.begin()
    assert bench.debounce.end(), "the other is still at it"
    assert bench.debounce.end(), "the first has only just ended"
    assert bench.debounce.busy
    bench.wait(CALM)
    assert not bench.debounce.busy


def test_waiting_statuses_are_woken_when_the_writes_stop(bench):
    bench.debounce.begin()
    bench.debounce.begin()
    bench.debounce.end()
    assert bench.may_wait() == PATIENCE
    bench.wait(CALM * 3)
    assert not bench.woken, "somebody still writes"
    bench.debounce.end()
    bench.wait(CALM * 3)
    assert bench.woken == ["a"]
    assert not bench.timers, "and no timer is left"


def test_a_stream_of_writes_delays_no_status_for_ever(bench):
    bench.debounce.begin()
    waited = 0.0
    while bench.may_wait() is not None:
        bench.wait(CALM)
        waited += CALM
    assert PATIENCE <= waited < PATIENCE + 2 * CALM
    assert bench.may_wait() == PATIENCE, "the next status has its own deadline"


def test_another_pass_over_the_same_cr_does_not_restart_its_wait(bench):
    bench.debounce.begin()
    bench.may_wait()
    bench.wait(0.4)
    assert bench.may_wait() == pytest.approx(PATIENCE - 0.4)


def test_a_status_that_was_written_in_the_meantime_is_not_woken(bench):
    bench.debounce.begin()
    bench.may_wait("a")
    bench.may_wait("b")
    bench.debounce.done("a")
    bench.debounce.end()
    bench.wait(CALM * 3)
    assert bench.woken == ["b"]
