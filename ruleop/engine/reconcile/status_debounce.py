"""Children first: while children of many CRs are being written, their statuses and events wait.

The API server is the bottleneck. When a hundred CRs are created at once, each status and event that is sent between
their children delays the children, and says `Progressing` where the next pass would find `Ready`. So a status waits
while children of other CRs are being written, and until 30 ms after the last write. It waits a limited time, so that a
stream of writes delays no status for ever: a short time if children have changed, longer if they were only just written
and will change by themselves. A CR that is alone never waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

CALM = 0.03  # seconds without a write, until statuses are written
CHANGED, WRITTEN = (
    0.5,
    2.5,
)  # longest wait of a status, in seconds: for children that have changed, and that were just written


class StatusDebounce:
    """A state machine without I/O: `clock` says what time it is, and `later` calls back after some seconds."""

    def __init__(self, clock: Callable[[], float], later: Callable[[float, Callable[[], None]], Any]) -> None:
        self._clock = clock
        self._later = later
        self._writing = 0
        self._last = float("-inf")  # when the last CR was done with writing
        self._waiting: dict[Hashable, tuple[float, Callable[[], None]]] = {}  # deadline, and how to wake
        self._checking = False

    @property
    def busy(self) -> bool:
        """Whether children are being written, or were a moment ago."""
        return self._writing > 0 or self._clock() - self._last < CALM

    def begin(self) -> None:
        """A CR starts to write its children."""
        self._writing += 1

    def end(self) -> bool:
        """It has written them. Returns whether others are being written."""
        self._writing -= 1
        busy, self._last = self.busy, self._clock()
        self._check_later()
        return busy

    def may_wait(self, who: Hashable, patience: float, wake: Callable[[], None]) -> float | None:
        """How long the status may still wait; None if it must not. `wake` is called if the writes stop before that."""
        until, _ = self._waiting.setdefault(who, (self._clock() + patience, wake))
        remaining = until - self._clock()
        if remaining <= 0:
            self.done(who)
            return None
        self._check_later()
        return remaining

    def done(self, who: Hashable) -> None:
        """The status does not wait any more."""
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
