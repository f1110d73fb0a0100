"""Children first: while children of many CRs are being written, statuses and Events are delayed.

The API server is the bottleneck. When a hundred CRs are created at once, each status and Event that is sent between
their children delays the children, and reports `Progressing` although the next pass would report `Ready`. So a status
waits while children of other CRs are being written, and until 30 ms after the last write. The delay is limited, so that
constant writes do not block a status: it is short if children have changed, and longer if they were just written and
will change soon. A CR that is reconciled alone never waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

CALM = 0.03  # seconds without a write, after which statuses are written
# Longest delay of a status in seconds: after children have changed, and after they were just written.
CHANGED, WRITTEN = 0.5, 2.5


class StatusDebounce:
    """A state machine without I/O: `clock` returns the time, and `later` calls a function after some seconds."""

    def __init__(self, clock: Callable[[], float], later: Callable[[float, Callable[[], None]], Any]) -> None:
        self._clock = clock
        self._later = later
        self._writing = 0
        self._last = float("-inf")  # when the last CR had written its children
        self._waiting: dict[Hashable, tuple[float, Callable[[], None]]] = {}  # deadline, and how to wake
        self._checking = False

    @property
    def busy(self) -> bool:
        """Whether children are being written, or were during the last 30 ms."""
        return self._writing > 0 or self._clock() - self._last < CALM

    def begin(self) -> None:
        """A CR starts to write its children."""
        self._writing += 1

    def end(self) -> bool:
        """A CR has written its children. Returns whether children of other CRs are being written."""
        self._writing -= 1
        busy, self._last = self.busy, self._clock()
        self._check_later()
        return busy

    def may_wait(self, who: Hashable, patience: float, wake: Callable[[], None]) -> float | None:
        """The time that the status may still wait; None if its time is up. `wake` is called if the writes stop
        earlier."""
        until, _ = self._waiting.setdefault(who, (self._clock() + patience, wake))
        remaining = until - self._clock()
        if remaining <= 0:
            self.done(who)
            return None
        self._check_later()
        return remaining

    def done(self, who: Hashable) -> None:
        """The status no longer waits."""
        self._waiting.pop(who, None)

    def _check_later(self) -> None:
        if self._waiting and not self._checking:
            self._checking = True
            self._later(CALM, self._check)

    def _check(self) -> None:
        self._checking = False
        if self.busy:
            self._check_later()
            return
        waiting, self._waiting = self._waiting, {}
        for _, wake in waiting.values():
            wake()
