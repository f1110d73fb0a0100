"""An event loop in which nobody waits: when there is nothing left to do, its clock jumps to what is due next."""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

Result = TypeVar("Result")


class _Selector(selectors.DefaultSelector):
    skipped = 0.0  # seconds

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:  # nothing is due: another thread or a socket has to say something
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
    """As `asyncio.run`, for what waits for times only."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(coroutine)
