"""Plans under the guards of the operator, without its loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from ruleop.planning.guard import AGAIN, Overtime, PlanThread

T = TypeVar("T")


def in_thread(work: Callable[[], T], limit: float) -> T:
    """The result of work in a thread that is ended after this CPU time. It reports by a list, because an exception that
    is raised in the middle of `Event.set` leaves the event locked."""
    reports: list[bool] = []
    thread = PlanThread(work, lambda: reports.append(True))
    thread.start()
    while not reports:
        time.sleep(min(limit / 4, 0.01))
        if not reports and thread.seconds >= limit:
            thread.end()
            limit = thread.seconds + AGAIN
    thread.release()
    if thread.result is None:
        raise thread.error or Overtime
    return thread.result[0]
