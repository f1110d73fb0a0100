"""Children first: while children of many CRs are being written, what is only told about them waits.

The API server is what everybody waits for. When a hundred CRs are made at once, each status and each event that is sent between their
children delays the children, and the status says `Progressing` when the next look would find `Ready`. So the tide is high while others
write children, and a moment longer; a status that is owed then is written when the tide has gone out, and at the latest after some time,
so that writes without end keep nobody from being told: soon where something has changed, later where the children were only just written
and are about to change by themselves. Whoever is alone never waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

CALM = 0.03  # seconds without a write, until the tide is out
CHANGED, WRITTEN = 0.5, 2.5  # seconds that a status waits at most: of children that have changed, of children that were just written


class StatusDebounce:
    """A state machine without I/O: `clock` says what time it is, and `later` calls back after some seconds."""

    def __init__(self, clock: Callable[[], float], later: Callable[[float, Callable[[], None]], Any]) -> None:
        self._clock = clock
        self._later = later
        self._writing = 0
        self._last = float("-inf")  # when somebody was last done with writing
        self._owed: dict[Hashable, tuple[float, Callable[[], None]]] = {}  # until when, and how to wake
        self._looking = False

    @property
    def high(self) -> bool:
        return self._writing > 0 or self._clock() - self._last < CALM

    def begin(self) -> None:
        """Somebody writes children from here on."""
        self._writing += 1

    def end(self) -> bool:
        """And is done with it. Whether others write, too."""
        self._writing -= 1
        high, self._last = self.high, self._clock()
        self._look_later()
        return high

    def may_wait(self, who: Hashable, patience: float, wake: Callable[[], None]) -> float | None:
        """How long what is owed may still wait; None when it is not to. `wake` is called when the tide is out before that."""
        until, _ = self._owed.setdefault(who, (self._clock() + patience, wake))
        left = until - self._clock()
        if left <= 0:
            self.paid(who)
            return None
        self._look_later()
        return left

    def paid(self, who: Hashable) -> None:
        """Nothing is owed any more."""
        self._owed.pop(who, None)

    def _look_later(self) -> None:
        if self._owed and not self._looking:
            self._looking = True
            self._later(CALM, self._look)

    def _look(self) -> None:
        self._looking = False
        if self.high:
            self._look_later()
            return
        owed, self._owed = self._owed, {}
        for _, wake in owed.values():
            wake()
