"""An event loop with virtual time: when nothing is left to do, its clock jumps to the next timer."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class _Selector(selectors.DefaultSelector):
    skipped = 0.0  # seconds

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:  # no timer: another thread or a socket has to wake it
            return super().select(None)
        events = super().select(0)
        if not events:
            self.skipped += max(0.0, timeout)
        return events


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        return super().time() + self._clock.skipped


def run_in_virtual_time(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Like `asyncio.run`, for coroutines that wait for timers only."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(coroutine)
