"""Whether the event loop runs, seen from other threads: a blocked loop cannot report anything itself."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")

BEAT_INTERVAL = 1.0
CALL_TIMEOUT = 10.0  # seconds for the event loop to take a call from another thread
BLOCKED_AFTER = 60.0
"""Seconds without a beat. One iteration of the loop can be long: a render may take a second of CPU time, which is many
seconds if the process gets little of it. An iteration of a minute will probably never end, and a restart is better."""


class LoopWatchdog:
    """Calls `report_lag` once a second with the seconds by which the loop was late."""

    def __init__(self, report_lag: Callable[[float], object], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._report_lag = report_lag
        self._clock = clock
        self._last_beat = clock()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(BEAT_INTERVAL)
            self._report_lag(max(0.0, self.since_beat() - BEAT_INTERVAL))
            self._last_beat = self._clock()

    def since_beat(self) -> float:
        """Seconds since the last beat; safe from any thread."""
        return self._clock() - self._last_beat

    @property
    def is_blocked(self) -> bool:
        return self.since_beat() > BLOCKED_AFTER


def call_on_loop(loop: asyncio.AbstractEventLoop, function: Callable[[], T]) -> T:
    """Calls a function on the event loop, from another thread. Raises TimeoutError if the loop does not get to it."""

    async def call() -> T:
        return function()

    return run_on_loop(loop, call())


def run_on_loop(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> T:
    """The same for a coroutine, which is cancelled if it takes longer."""
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        return future.result(CALL_TIMEOUT)
    except TimeoutError:
        future.cancel()
        raise
