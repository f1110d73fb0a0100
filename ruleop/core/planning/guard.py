"""Ends a plan that has used a second of CPU time, whatever it is doing.

Units give the same answer everywhere, but bound the time only as far as each operation is charged for what it costs.
The guard bounds it whatever the charges are. While a plan runs, and only then, a timer of the process's CPU time is set
to the moment at which its time is up. Python runs the handler of its signal in the main thread, between two
instructions: if a plan that has used its time is running there, the handler raises `Overtime` in it. Units end a pass
in half of the time that the guard gives it.

Three things are not interrupted: a plan in another thread, of which ruleop has none; a long call into C, whose input
the units bound; and the code around a plan, which does not depend on what templates do.

`Overtime` may be raised at any instruction, so what plans share has to bear that. A cache is changed by one instruction
or cleared if the change is interrupted; the state of an evaluation is reset (`Renderer.reset`).

Each signal writes a byte to the socket that wakes asyncio's loop. The socket holds some 280 of them; when it is full,
that of SIGTERM is lost. So the timer has no interval: only the handler sets it again, and a plan of a second writes two
or three bytes, which the loop reads after it.
"""

from __future__ import annotations

import gc
import math
import signal
import threading
import time
from typing import TYPE_CHECKING, Final

from ruleop.core.templating.filters.registry import filter_of
from ruleop.core.templating.template_tree.faults import template_line

if TYPE_CHECKING:
    from types import FrameType
    from typing import Protocol

    from ruleop.core.errors import Site

    class Timed(Protocol):
        """Work that is interrupted when it has used its time, or if it is hasty, its patience in one turn."""

        seconds: float  # that it has used in earlier turns
        hasty: bool
        share: float  # of the guard's patience, if it is hasty


EVALUATION: Final = "ruleop.core.templating.template_tree."
"""The modules that evaluate templates: of these, the line of the template says more."""
SECONDS: Final = 1.0
PATIENCE: Final = 0.02
"""Seconds that hasty work may use in its first turn. Ordinary plans take less than one millisecond."""
LATER: Final = 5
"""In later turns it may use this many times as much: it has been divided, and some steps concern all its objects."""
AGAIN: Final = 0.5
"""Further seconds after which it is raised again: Python discards what is raised while it deletes an object."""
SHORTEST: Final = 0.001
LONGEST: Final = 3600.0  # an hour; then the handler sets the timer again


class Overtime(BaseException):
    """A plan has used its time. A BaseException, so that nothing which handles the errors of templates catches it."""

    def __init__(self, frame: FrameType | None, *, is_late: bool = True) -> None:
        """`is_late`: it has used all its time, not just the patience of one turn."""
        super().__init__()
        self.is_late = is_late
        self.site: Site | None = None  # the innermost line of a template
        self.inside = ""  # the filter, or else the function
        while frame is not None and self.site is None:
            self.site = template_line(frame)
            module = frame.f_globals.get("__name__", "")
            if name := filter_of(frame):
                self.inside = f"the filter {name}"
            elif not self.inside and module.startswith("ruleop.") and not module.startswith(EVALUATION):
                self.inside = f"{module}.{frame.f_code.co_name}"
            frame = frame.f_back


class Guard:
    """Watches the plan that runs now."""

    def __init__(self) -> None:
        self.limit = SECONDS
        self.patience = PATIENCE
        self.running: Timed | None = None
        self._started = 0.0  # by the clock of the thread, less what it had used before
        self._ends = 0.0  # by the clock of the thread: then the work is interrupted
        self._has_handler = False
        self._collections = 0  # full ones of the garbage collector, when the handler ran last

    def begin(self, work: Timed) -> None:
        """The work is running from now on, until `end`."""
        if threading.current_thread() is not threading.main_thread():
            return
        if not self._has_handler:
            signal.signal(signal.SIGVTALRM, self.check)
            self._has_handler = True
        patience = math.inf
        if work.hasty:
            patience = self.patience * work.share * (LATER if work.seconds else 1)
        seconds = min(self.limit - work.seconds, patience)
        now = time.thread_time()
        self._started, self._ends = now - work.seconds, now + seconds
        self.running = work
        signal.setitimer(signal.ITIMER_VIRTUAL, min(max(seconds, SHORTEST), LONGEST))

    def pause(self) -> None:
        """Notes the time that the running work has used."""
        if self.running is not None:
            self.running.seconds = time.thread_time() - self._started

    def end(self) -> None:
        """Nothing is running any more."""
        if self.running is not None and threading.current_thread() is threading.main_thread():
            self.running = None
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def check(self, _signal: int, frame: FrameType | None) -> None:
        """The handler of the signal. The timer may be early: it counts all threads, in parts of some milliseconds."""
        if self.running is None:
            return
        now = time.thread_time()
        is_late = now - self._started >= self.limit
        if now >= self._ends and not is_late and self._has_collected():
            self._ends = min(now + self.patience, self._started + self.limit)
        if now < self._ends:
            signal.setitimer(signal.ITIMER_VIRTUAL, max(self._ends - now, SHORTEST))
            return
        self._ends = now + AGAIN
        signal.setitimer(signal.ITIMER_VIRTUAL, AGAIN)
        raise Overtime(frame, is_late=is_late)

    def _has_collected(self) -> bool:
        """Whether a full collection may have taken the time, for which the plan is not to blame."""
        before, self._collections = self._collections, gc.get_stats()[2]["collections"]
        return before != self._collections


GUARD: Final = Guard()
