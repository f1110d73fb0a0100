"""Divides long work between turns of the event loop, so that others run in between: watches, leases, other resources.

All work of one turn together gets one slice, whichever workers and watched kinds it belongs to. A pass over a resource
with a thousand children takes some hundred milliseconds: it is continued in later turns, one long piece of work after
the other. Most passes are done in the turn in which they begin; if its time is used up, they begin in the next.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections import deque
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.core.steps import Steps

T = TypeVar("T")

SLICE: Final = 0.010
"""Seconds of one turn of the loop that all work together may take. The last step may take longer."""

NEVER: Final = 1_000_000
LONGEST_PAUSE: Final = 60.0


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


@dataclass(slots=True, eq=False)
class _Work:
    """Work that waits for a turn, with the context of the task that awaits its result."""

    advance: Callable[[Callable[[], bool]], Any]
    result: asyncio.Future[Any]
    context: Context = field(default_factory=copy_context)

    def go_on(self, is_time_up: Callable[[], bool]) -> bool:
        """Whether it is done. It is, too, if nobody awaits its result any more."""
        if self.result.done():
            return True
        try:
            found = self.context.run(self.advance, is_time_up)
        except Exception as error:  # noqa: BLE001 - raised where the result is awaited
            self.result.set_exception(error)
            return True
        if found is not None:
            self.result.set_result(found)
        return found is not None


class Turns:
    """Shares the turns of the loop between all reconcilers."""

    def __init__(self) -> None:
        self.collector_pause = CollectorPause()
        self._ends = 0.0  # of the time for work in this turn; 0: none was done yet
        self._new: deque[_Work] = deque()  # waits for its first turn
        self._begun: deque[_Work] = deque()  # continues in later turns
        self._skipped = False  # in the last turn nothing that has begun was continued

    async def finish(self, advance: Callable[[Callable[[], bool]], T | None]) -> T:
        """The result of the work. `advance` continues it until the time is up, and returns None if it is not done."""
        queue = self._new
        if not self._new and not self._is_time_up():
            found = advance(self._is_time_up)
            if found is not None:
                return found
            queue = self._begun
        work = _Work(advance, asyncio.get_running_loop().create_future())
        queue.append(work)
        result: T = await work.result
        return result

    async def finish_steps(self, steps: Steps[None]) -> None:
        await self.finish(partial(_advance, steps))

    def _is_time_up(self) -> bool:
        """Whether the work of this turn has to pause. The first who asks begins its slice."""
        now = time.perf_counter()
        if self._ends:
            return now > self._ends
        self._ends = now + SLICE
        asyncio.get_running_loop().call_soon(self._begin_turn)
        return False

    def _begin_turn(self) -> None:
        """New work comes first, because most of it is short. Work that has begun gets what it leaves of the turn, but
        the whole of the next one if that is nothing."""
        self._ends = 0.0
        if not self._new and not self._begun:
            return
        is_owed, self._skipped = self._skipped, False
        if is_owed:
            self._continue()
        while self._new and not self._is_time_up():
            work = self._new.popleft()
            if not work.go_on(self._is_time_up):
                self._begun.append(work)
        if self._is_time_up():
            self._skipped = bool(self._begun) and not is_owed
        else:
            self._continue()

    def _continue(self) -> None:
        """Continues what has begun, in order."""
        while self._begun and not self._is_time_up():
            if self._begun[0].go_on(self._is_time_up):
                self._begun.popleft()


def _advance(steps: Steps[None], is_time_up: Callable[[], bool]) -> Literal[True] | None:
    """Continues work in steps. True: it is done."""
    for _ in steps:
        if is_time_up():
            return None
    return True
