"""Custom resources whose plans take long are planned in a thread, one at a time, while the event loop does all else.

Every plan begins on the loop, where most take less than a millisecond. One that has used the guard's patience there is
ended, and its custom resource is large from then on: it waits here, as a key, until it is its turn; it holds no worker,
and none of its data. Few have a turn at once: their passes, which also write, must not take all workers. Namespaces
take turns, and new plans go before those that were ended the last time. A custom resource whose plans have become short
is planned on the loop again.

While a plan is made in the thread, the two share the interpreter: after each call during which the loop releases it,
such as a write to a socket, the loop waits for a switch. So they are made to switch often.
"""

from __future__ import annotations

import asyncio
import sys
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from ruleop.errors import RuleopError
from ruleop.operator.queue import Urgency, WorkQueue
from ruleop.planning import TOO_LONG
from ruleop.planning.guard import AGAIN, GUARD, LONGEST, SHORTEST, Overtime, PlanThread, TooSlow

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.kubernetes.kinds import GroupKind
    from ruleop.operator.queue import Request

T = TypeVar("T")

AT_ONCE: Final = 3
"""Passes of large custom resources that take place at once. One of them plans, the others write: each has up to eight
requests in flight, and requests of others wait behind them."""

SHORT: Final = 1 / 4
"""The part of the guard's patience that the plans of a large custom resource may take before it counts as small."""

LONGEST_WAIT: Final = 60.0
"""Seconds that a plan which was ended the last time waits while others come first; then it gets some of the turns."""

ARRIVAL: Final = 5.0
"""Seconds in which a custom resource whose turn it is begins its pass, if a worker is free and it still exists."""

SWITCH_INTERVAL: Final = 0.001
"""Seconds that the loop waits for the interpreter while a plan is made in the thread. Python's default is five times as
long."""


class Large(NamedTuple):
    """A custom resource."""

    kind: GroupKind
    request: Request


def _namespace(large: Large) -> str:
    return large.request.namespace


class LargePlans:
    """Decides whose turn it is, and makes the plans. All reconcilers share one."""

    def __init__(self) -> None:
        self._queue: WorkQueue[Large] = WorkQueue(group=_namespace, max_wait=LONGEST_WAIT)
        self._wakes: dict[Large, Callable[[], None]] = {}  # of those that wait
        # Whose pass takes place (None), or is awaited until a timer ends
        self._turns: dict[Large, asyncio.TimerHandle | None] = {}
        self._thread = asyncio.Lock()

    # -- the turns -----------------------------------------------------------------------------------------------------

    def begin(self, large: Large, urgency: Urgency, wake: Callable[[], None]) -> bool:
        """Whether its pass may begin now; then `end` has to be called after it. Otherwise it waits, and `wake` is
        called when it is its turn."""
        if large not in self._turns:
            self._wakes[large] = wake
            self._queue.add(large, now=self._now(), urgency=urgency)
            self._give_turns(unasked=large)
            if large not in self._turns:
                return False
        self._wakes.pop(large, None)
        self._set_timer(large, None)
        return True

    def end(self, large: Large) -> None:
        """Its pass is over, or will not begin."""
        if large in self._turns:
            self._set_timer(large, None)
            del self._turns[large]
            self._queue.done(large, now=self._now())
            self._give_turns()

    def _give_turns(self, *, unasked: Large | None = None) -> None:
        while len(self._turns) < AT_ONCE and (large := self._queue.take(now=self._now())) is not None:
            self._turns[large] = None
            if large != unasked:
                self._set_timer(large, ARRIVAL)
                self._wakes[large]()

    def _missed(self, large: Large) -> None:
        self._wakes.pop(large, None)
        self.end(large)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    def _set_timer(self, large: Large, seconds: float | None) -> None:
        if (timer := self._turns[large]) is not None:
            timer.cancel()
        loop = asyncio.get_running_loop()
        self._turns[large] = loop.call_later(seconds, self._missed, large) if seconds is not None else None

    # -- the plans -----------------------------------------------------------------------------------------------------

    @staticmethod
    def is_short(seconds: float) -> bool:
        """Whether a plan that took so long in the thread would have been finished on the loop."""
        return seconds < GUARD.patience * SHORT

    async def make(self, work: Callable[[], T]) -> T:
        """The result of the work, on the loop, or in the thread if that takes long. It is done twice then. Raises
        RuleopError if it takes more than a second of CPU time."""
        try:
            return GUARD.within(GUARD.patience, work)
        except TooSlow:
            return (await self.make_in_thread(lambda: work))[0]

    async def make_in_thread(self, prepare: Callable[[], Callable[[], T]]) -> tuple[T, float]:
        """The result of work, and the seconds of CPU time that it took. `prepare` takes a snapshot for it, in the turn
        of the loop in which the thread starts. Raises RuleopError if it takes too long."""
        async with self._thread:
            work, loop = prepare(), asyncio.get_running_loop()
            done: asyncio.Future[None] = loop.create_future()
            thread = PlanThread(partial(copy_context().run, work), partial(loop.call_soon_threadsafe, _set, done))
            done.add_done_callback(lambda _: thread.release())
            before = sys.getswitchinterval()
            sys.setswitchinterval(SWITCH_INTERVAL)
            thread.start()
            try:
                await _watch(thread, done, GUARD.limit)
            except asyncio.CancelledError:
                await _watch(thread, done, 0.0)
                raise
            finally:
                sys.setswitchinterval(before)
        if thread.error is not None and not isinstance(thread.error, Overtime):
            raise thread.error
        if thread.result is None:
            raise RuleopError(TOO_LONG)
        return thread.result[0], thread.seconds


async def _watch(thread: PlanThread[T], done: asyncio.Future[None], limit: float) -> None:
    """Returns when the work is done. Ends it when it has used its time, and again if that was in vain."""
    while not done.done():
        left = limit - thread.seconds
        if left <= 0:
            thread.end()
            left, limit = AGAIN, thread.seconds + AGAIN
        await asyncio.wait([done], timeout=min(max(left, SHORTEST), LONGEST))


def _set(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
