"""Ends a plan that uses too much CPU time, whatever it is doing.

The account of a plan (`values/cost.py`) bounds its memory. The guard stands outside of the plan, and bounds its time,
whatever it does. There are two:

- A plan on the event loop has some milliseconds, because everything else waits for it. A timer of the process's CPU
  time is set to the moment at which they are used up, and Python runs the handler of its signal in the main thread,
  between two instructions: there it raises `TooSlow` in the plan, which is then made in a thread. Nothing else could
  end it: the loop itself stands still.
- A plan in a thread has a second. The event loop reads the CPU clock of the thread and, when the second is used up,
  raises `Overtime` in it (`PlanThread`).

Neither interrupts a long call into C, whose work the account bounds. Both may be raised at any instruction, so what
plans share has to bear that: the entry of a cache is made whole before it is added. All else belongs to the plan, and
its account and the state of its renders to its thread as well.

Each signal writes a byte to the socket that wakes asyncio's loop. The socket holds some 280 of them; when it is full,
that of SIGTERM is lost. So the timer has no interval: only the handler sets it again.
"""

from __future__ import annotations

import contextvars
import gc
import signal
import threading
import time
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from ruleop.language.templates import template_line
from ruleop.language.templates.filters.registry import filter_of
from ruleop.language.templates.values import cost

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType

    from ruleop.errors import Site

T = TypeVar("T")

EVALUATION: Final = "ruleop.language.templates.tree."
"""The modules that evaluate templates: of these, the line of the template says more."""
SECONDS: Final = 1.0
PATIENCE: Final = 0.02
"""Seconds that a plan on the event loop may use. Ordinary plans take less than one millisecond."""
AGAIN: Final = 0.5
"""Further seconds after which it is raised again: Python discards what is raised while it deletes an object."""
AGAIN_ON_LOOP: Final = 0.05
SHORTEST: Final = 0.001
LONGEST: Final = 3600.0  # an hour; then the handler sets the timer again


class Ended(BaseException):
    """A plan is ended. A BaseException, so that nothing which handles the errors of templates catches it."""


class TooSlow(Ended):
    """The plan has used its time on the event loop."""


class Overtime(Ended):
    """The plan has used all its time. It reports that."""


class GuardedPlace(NamedTuple):
    """Where a plan was ended."""

    site: Site | None  # the innermost line of a template
    inside: str  # the filter, or else the function; may be empty


def place_of(ended: Ended) -> GuardedPlace:
    """Where the plan was, by the traceback: outside of the templates the innermost function counts."""
    frames, at = [], ended.__traceback__
    while at is not None:
        frames.append(_frame_of(at))
        at = at.tb_next
    inside = ""
    for frame in reversed(frames):
        module = frame.f_globals.get("__name__", "")
        if module in {__name__, cost.__name__}:
            continue
        site = template_line(frame)
        if name := filter_of(frame):
            inside = f"the filter {name}"
        elif not inside and module.startswith("ruleop.") and not module.startswith(EVALUATION):
            inside = f"{module}.{frame.f_code.co_name}"
        if site is not None:
            return GuardedPlace(site, inside)
    return GuardedPlace(None, inside)


def _frame_of(traceback: TracebackType) -> FrameType:
    return traceback.tb_frame


class Guard:
    """Watches the plan that the main thread makes now. `limit`: the seconds of a plan in a thread."""

    def __init__(self) -> None:
        self.limit = SECONDS
        self.patience = PATIENCE
        self.is_running = False
        self._seconds = 0.0  # that the plan has
        self._ends = 0.0  # by the clock of the thread: then the plan is ended
        self._has_handler = False
        self._collections = 0  # of the garbage collector, when the handler ran last: full ones

    def within(self, seconds: float, work: Callable[[], T]) -> T:
        """The result of the work. Raises TooSlow after this time. Only the main thread can be interrupted."""
        if threading.current_thread() is not threading.main_thread():
            return work()
        if not self._has_handler:
            signal.signal(signal.SIGVTALRM, self.check)
            self._has_handler = True
        self._seconds, self._ends = seconds, time.thread_time() + seconds
        try:
            try:
                self.is_running = True
                signal.setitimer(signal.ITIMER_VIRTUAL, min(max(seconds, SHORTEST), LONGEST))
                return contextvars.copy_context().run(work)  # with the account as it was, wherever it is ended
            finally:
                self.is_running = False
        finally:  # it may be raised before the work has begun, and after it was done
            self.is_running = False
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def check(self, _signal: int, _frame: FrameType | None) -> None:
        """The handler of the signal. The timer may be early: it counts all threads, in parts of some milliseconds."""
        if not self.is_running:
            return
        now = time.thread_time()
        if now >= self._ends and self._collections != (collections := _collections()):
            self._ends, self._collections = now + self._seconds, collections
        if now < self._ends:
            signal.setitimer(signal.ITIMER_VIRTUAL, min(max(self._ends - now, SHORTEST), LONGEST))
            return
        self._ends = now + AGAIN_ON_LOOP
        signal.setitimer(signal.ITIMER_VIRTUAL, AGAIN_ON_LOOP)
        raise TooSlow


def _collections() -> int:
    """The full collections so far: one may have taken the time of a plan, which is not to blame for it."""
    return int(gc.get_stats()[2]["collections"])


GUARD: Final = Guard()


class PlanThread(Generic[T]):
    """A thread that does one piece of work, and can be ended.

    Its owner may call `end` any number of times, until the thread has reported that it is done and the owner has
    answered by `release`. So nothing is raised in it after that, and what is raised before, wherever it is, costs at
    most the result.
    """

    def __init__(self, work: Callable[[], T], done: Callable[[], object]) -> None:
        """`done` is called in the thread, perhaps twice. It has to lead to `release`."""
        self._work, self._done = work, done
        self.result: tuple[T] | None = None
        self.error: BaseException | None = None
        self._is_begun = self._is_over = self._is_released = False
        self._owner = threading.Lock()
        self._owner.acquire()
        self._clock: int | None = None
        self._started = time.monotonic()
        self._seconds = 0.0  # when it is over
        self._thread = threading.Thread(target=self._run, name="ruleop plan", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def seconds(self) -> float:
        """The CPU time that the work has used, for its owner; the time that has passed where there is no such clock, as
        on macOS."""
        if self._is_over:
            return self._seconds
        return time.monotonic() - self._started if self._clock is None else time.clock_gettime(self._clock)

    def end(self) -> None:
        """Raises Overtime in the thread, once it has begun. By its owner only, before `release`."""
        if not self._is_begun:
            return
        import ctypes  # noqa: PLC0415 - a mebibyte that is nearly never needed

        ident = ctypes.c_ulong(self._thread.ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(Overtime))

    def release(self) -> None:
        self._is_released = True
        self._owner.release()

    def _run(self) -> None:
        while not self._is_released:
            try:
                self._is_begun = True
                if not self._is_over:
                    self._make()
                self._done()
                self._owner.acquire()
            except Overtime:  # it was raised when the work was done
                self._is_over = True

    def _make(self) -> None:
        try:
            self._clock = _clock_of_thread()
            self.result = (self._work(),)
        except BaseException as error:  # noqa: BLE001 - raised by the owner
            self.error = error
        self._seconds = time.thread_time()
        self._is_over = True


def _clock_of_thread() -> int | None:
    """The CPU clock of the current thread, for others."""
    found: Any = getattr(time, "pthread_getcpuclockid", None)
    return None if found is None else found(threading.get_ident())
