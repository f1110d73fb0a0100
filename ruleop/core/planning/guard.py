"""Ends a plan that has used a second of CPU time, whatever it is doing.

Units give the same answer everywhere, but bound the time only as far as each operation is charged for what it costs.
The guard bounds it whatever the charges are. A timer of the process's CPU time sends a signal twenty times a second
while the process works, and never while it waits. Python runs the handler in the main thread, between two instructions:
if a plan that has used its time is running there, the handler raises `Overtime` in it. Units end a pass in half of the
time that the guard gives it.

Three things are not interrupted: a plan in another thread, of which ruleop has none; a long call into C, whose input
the units bound; and the code around a plan, which does not depend on what templates do.

`Overtime` may be raised at any instruction, so what plans share has to bear that. A cache is changed by one instruction
or cleared if the change is interrupted; the state of an evaluation is reset (`Renderer.reset`).
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Final

from ruleop.core.templating.compile.environment import template_line
from ruleop.core.templating.filters.registry import filter_of

if TYPE_CHECKING:
    from types import FrameType
    from typing import Protocol

    from ruleop.core.errors import Site

    class Timed(Protocol):
        """Work that is interrupted when it has used its time."""

        seconds: float


SECONDS: Final = 1.0
TICK: Final = 0.05  # seconds of CPU time between two signals
AGAIN: Final = 0.5
"""Further seconds after which it is raised again: Python discards what is raised while it deletes an object."""


class Overtime(BaseException):
    """A plan has used its time. A BaseException, so that nothing which handles the errors of templates catches it."""

    def __init__(self, frame: FrameType | None) -> None:
        super().__init__()
        self.site: Site | None = None  # the innermost line of a template
        self.inside = ""  # the filter, or else the function
        while frame is not None and self.site is None:
            self.site = template_line(frame, frame.f_lineno)
            module = frame.f_globals.get("__name__", "")
            if name := filter_of(frame):
                self.inside = f"the filter {name}"
            elif not self.inside and module.startswith("ruleop."):
                self.inside = f"{module}.{frame.f_code.co_name}"
            frame = frame.f_back


class Guard:
    """Watches the plan that runs now."""

    def __init__(self) -> None:
        self.limit = SECONDS
        self.running: Timed | None = None
        self._started = 0.0
        self._thread = 0  # the one in which the handler runs; 0: there is no timer yet

    def begin(self, work: Timed) -> None:
        """The work is running from now on, until `running` is None."""
        thread = threading.get_ident()
        if not self._thread and threading.current_thread() is threading.main_thread():
            self._set_up()
        if thread == self._thread:
            self._started = time.thread_time() - work.seconds
            self.running = work

    def pause(self) -> None:
        """Notes the time that the running work has used."""
        if self.running is not None:
            self.running.seconds = time.thread_time() - self._started

    def check(self, _signal: int, frame: FrameType | None) -> None:
        """The handler of the signal."""
        if self.running is not None and time.thread_time() - self._started > self.limit:
            self._started += AGAIN
            raise Overtime(frame)

    def _set_up(self) -> None:
        self._thread = threading.get_ident()
        signal.signal(signal.SIGVTALRM, self.check)
        signal.setitimer(signal.ITIMER_VIRTUAL, TICK, TICK)
        atexit.register(signal.setitimer, signal.ITIMER_VIRTUAL, 0)  # Python removes the handler before it ends

    def in_new_process(self) -> None:
        """A forked process has no timers."""
        self._thread = 0


GUARD: Final = Guard()
os.register_at_fork(after_in_child=GUARD.in_new_process)
