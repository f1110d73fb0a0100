"""Custom resources whose plans are slow are planned one at a time, with pauses, so that others are not kept waiting.

A plan is divided between turns of the loop after each of its steps, but a step cannot be divided: the render of one
template may take a second of CPU time until the guard ends it. So plans are hasty at first. One that takes too long in
one turn is given up, and the custom resource waits here, as a key: it holds no worker, and none of its data. After each
plan that was made here there is a pause of three times what it took. So all of them together use at most a quarter of
the loop, and what is short is planned in the pauses. Namespaces take turns, and new plans go before those that failed.

Many new ones at once would take the whole patience each before anything else. So each that is given up halves what the
next ones have, down to an eighth, and each that is finished adds an eighth. What is given up with less than the whole
patience may be wronged: it comes first here, once more hasty, but with all of the patience.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from ruleop.operator.engine.queue.work_queue import Urgency, WorkQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.core.kinds import GroupKind
    from ruleop.operator.engine.queue.request import Request

PAUSE: Final = 3.0
"""The seconds without a slow plan after each second of one."""

LEAST: Final = 1 / 8
"""The least share of the guard's patience, and what is added to the share by a plan that is finished."""

LONGEST_WAIT: Final = 60.0
"""Seconds that a plan which certainly takes long waits while others come first; then it gets some of the turns."""

ARRIVAL: Final = 5.0
"""Seconds in which a custom resource whose turn it is begins its pass, if a worker is free and it still exists."""


class Slow(NamedTuple):
    """A custom resource."""

    kind: GroupKind
    request: Request


def _namespace(slow: Slow) -> str:
    return slow.request.namespace


class SlowPlans:
    """Decides whose turn it is. All reconcilers share one."""

    def __init__(self) -> None:
        self.share = 1.0  # of the guard's patience, for a plan that is not made here
        self._queue: WorkQueue[Slow] = WorkQueue(group=_namespace, max_wait=LONGEST_WAIT)
        self._wakes: dict[Slow, Callable[[], None]] = {}  # of those that wait
        self._turn: Slow | None = None  # its pass takes place, or is awaited
        self._timer: asyncio.TimerHandle | None = None  # ends a pause, or the wait for a pass

    def give_up(self, seconds: float) -> None:
        """A plan that was not made here was given up after this time. A pause follows it too: others of its sort may be
        about to come, and all that is short goes before the first that is long."""
        self.share = max(LEAST, self.share / 2)
        if self._turn is None and self._timer is None:
            self._set_timer(seconds * PAUSE)

    def finish(self) -> None:
        """A plan that was not made here is complete."""
        self.share = min(1.0, self.share + LEAST)

    def begin(self, slow: Slow, urgency: Urgency, wake: Callable[[], None]) -> bool:
        """Whether its pass may plan now; then `end` has to be called after it. Otherwise it waits, and `wake` is called
        when it is its turn."""
        if slow != self._turn:
            self._wakes[slow] = wake
            self._queue.add(slow, now=self._now(), urgency=urgency)
            if self._turn is None and self._timer is None:
                self._turn = self._queue.take(now=self._now())
            if slow != self._turn:
                return False
        self._wakes.pop(slow, None)
        self._set_timer(None)
        return True

    def end(self, slow: Slow, seconds: float) -> None:
        """Its pass is over, in which its plans have used this time."""
        self._queue.done(slow, now=self._now())
        self._turn = None
        self._set_timer(seconds * PAUSE)

    def _next(self) -> None:
        """After a pause, or if the pass did not begin whose turn it was."""
        self._timer, missed = None, self._turn
        if missed is not None:
            self._queue.done(missed, now=self._now())
            self._wakes.pop(missed, None)
        self._turn = self._queue.take(now=self._now())
        if self._turn is not None:
            self._set_timer(ARRIVAL)
            self._wakes[self._turn]()

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    def _set_timer(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(seconds, self._next) if seconds is not None else None
