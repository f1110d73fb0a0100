"""Whether the event loop turns, told from outside of it: a loop that hangs can say nothing of itself."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

BEAT = 1.0
HUNG = 60.0
"""Seconds without a turn. One turn can be long: sixteen workers that each render something huge. None of them needs seconds, as templates
have budgets; so what takes a minute does not end, and a new process is better."""


class LoopWatchdog:
    """`late` is told, once a second, how late the loop came to it."""

    def __init__(self, late: Callable[[float], object], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._late = late
        self._clock = clock
        self._beaten = clock()

    async def beat(self) -> None:
        """For ever."""
        while True:
            await asyncio.sleep(BEAT)
            self._late(max(0.0, self.silence() - BEAT))
            self._beaten = self._clock()

    def silence(self) -> float:
        """Seconds since the last beat; safe from any thread."""
        return self._clock() - self._beaten

    @property
    def hangs(self) -> bool:
        return self.silence() > HUNG
