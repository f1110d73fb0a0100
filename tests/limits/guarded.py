"""Plans under the guards of the operator, without its loop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from ruleop.core.planning.guard import AGAIN, Overtime, PlanThread

T = TypeVar("T")


def in_thread(work: Callable[[], T], limit: float) -> T:
    """The result of work in a thread that is ended after this CPU time."""
    done = threading.Event()
    thread = PlanThread(work, done.set)
    thread.start()
    while not done.wait(min(limit / 4, 0.01)):
        if thread.seconds >= limit:
            thread.end()
            limit = thread.seconds + AGAIN
    thread.release()
    if thread.result is None:
        raise thread.error or Overtime
    return thread.result[0]
