"""Divides long work between turns of the event loop, so that others run in between: watches, leases, other resources.

A pass over a resource with a thousand children takes some hundred milliseconds. It is done in slices, one long piece of
work after the other, because sixteen of them in one turn would add up. Most passes are done within their first slice:
they never wait.
"""

from __future__ import annotations

import asyncio
import gc
import time
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.core.steps import Steps

T = TypeVar("T")

SLICE: Final = 0.010
"""Seconds of one turn of the loop that long work may take."""

NEVER: Final = 1_000_000
LONGEST_PAUSE: Final = 60.0

LEAST: Final = 0.001
"""Seconds that any piece of work may take, even if the turn's time is used up. Ordinary passes take less."""


class CollectorPause:
    """Suspends full collections of the garbage collector while large passes are in progress.

    A full collection traverses every object in one turn of the loop, and the plans of sixteen large passes are
    millions. They go without the collector when the passes end. Young objects are still collected, and the suspension
    ends after a minute at the latest, whatever is in progress, so that cycles cannot pile up.
    """

    def __init__(self) -> None:
        self._passes = 0
        self._thresholds: tuple[int, int, int] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """A large pass has begun."""
        self._passes += 1
        if self._passes == 1:
            self._thresholds = gc.get_threshold()
            gc.set_threshold(*self._thresholds[:2], NEVER)
            self._timer = asyncio.get_running_loop().call_later(LONGEST_PAUSE, self._end)

    def end(self) -> None:
        """A large pass has ended."""
        self._passes -= 1
        if not self._passes:
            self._end()

    def _end(self) -> None:
        if self._thresholds is not None:
            gc.set_threshold(*self._thresholds)
            self._thresholds = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Turns:
    """Shares the turns of the loop between all reconcilers."""

    def __init__(self) -> None:
        self.collector_pause = CollectorPause()
        self._ends = 0.0  # of the time for long work in this turn; 0: none was done yet
        self._lock: asyncio.Lock | None = None  # held by the work that continues in later turns

    async def finish(self, advance: Callable[[Callable[[], bool]], T | None]) -> T:
        """The result of the work. `advance` continues it until the time is up, and returns None if it is not done."""
        found = advance(self._limit())
        if found is not None:
            return found
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:
            while found is None:
                await asyncio.sleep(0)
                found = advance(self._limit())
        return found

    async def finish_steps(self, steps: Steps[None]) -> None:
        await self.finish(partial(_advance, steps))

    def _limit(self) -> Callable[[], bool]:
        """A function that tells whether the work has to pause."""
        now = time.perf_counter()
        if not self._ends:
            self._ends = now + SLICE
            asyncio.get_running_loop().call_soon(self._begin_turn)
        until, clock = max(self._ends, now + LEAST), time.perf_counter
        return lambda: clock() > until

    def _begin_turn(self) -> None:
        self._ends = 0.0


def _advance(steps: Steps[None], is_time_up: Callable[[], bool]) -> Literal[True] | None:
    """Continues work in steps. True: it is done."""
    for _ in steps:
        if is_time_up():
            return None
    return True
