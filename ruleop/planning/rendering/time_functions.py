"""Functions whose results depend on the time: `after` and `within`; and `duration`, which they take.

The time is an input of the plan. Each result is a truth value that holds until a moment that is known, and the earliest
such moment is when the plan has to be made again. So nothing polls, and no field changes by itself each second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.cron import LONGEST_SCHEDULE, is_zone, next_time, times_problem
from ruleop.language.rules import parse_duration
from ruleop.language.templates import Exact, Fault, TemplateFunction
from ruleop.planning.model.actions import Requeue
from ruleop.planning.model.observed import LAST, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST: Final = 64  # characters of a time, or of a duration
LONGEST_WINDOW: Final = 366 * 24 * 3600.0
_MOST_JOINED: Final = 16  # windows that follow one another without a gap


class TimeFunctions:
    """The functions of one pass. `next_change`: when the first of their results changes, in seconds since 1970; None:
    not before something else does."""

    __slots__ = ("next_change", "now", "reason", "text")

    def __init__(self, now: str) -> None:
        self.text = now
        self.now = parse_time(now)
        self.next_change: float | None = None
        self.reason = ""

    def functions(self) -> dict[str, TemplateFunction]:
        found: dict[str, Callable[..., Any]] = {
            "after": self.after,
            "within": self.within,
            "duration": duration,
        }
        return {name: TemplateFunction(name, function) for name, function in found.items()}

    def changes_at(self, moment: float, reason: str = "a result of after or within changes") -> None:
        if self.now < moment < LAST and (self.next_change is None or moment < self.next_change):
            self.next_change, self.reason = moment, reason

    def requeue(self) -> Requeue | None:
        """When the plan has to be made again: a second late, so that no clock that differs a little is early."""
        if self.next_change is None:
            return None
        return Requeue(self.next_change - self.now + 1, self.reason)

    def after(self, time: Any, delay: Any = 0) -> bool:
        """Whether the delay has passed since the time."""
        moment = _time("after", time) + _seconds("after", delay)
        self.changes_at(moment)
        return self.now >= moment

    def within(self, schedule: Any, length: Any, zone: Any = "UTC") -> bool:
        """Whether a window is open that a cron schedule opens for a length of time. Windows that follow one another
        without a gap are one."""
        if not isinstance(schedule, str) or len(schedule) > LONGEST_SCHEDULE or times_problem(schedule):
            raise Fault("within needs a cron schedule such as '0 2 * * *' first")
        if not isinstance(zone, str) or not is_zone(zone):
            raise Fault("within needs a time zone such as 'Europe/Berlin' last")
        seconds = _seconds("within", length)
        if not 0 < seconds <= LONGEST_WINDOW:
            raise Fault("within needs a length of more than 0 s and at most 366 days")
        opens = _next(schedule, self.now - seconds, zone)
        if opens is None or opens > self.now:
            if opens is not None:
                self.changes_at(opens)
            return False
        closes = opens + seconds
        for _ in range(_MOST_JOINED):
            opens = _next(schedule, opens, zone)
            if opens is None or opens > closes:
                break
            closes = opens + seconds
        self.changes_at(closes)
        return True


def duration(text: Any) -> float:
    if not isinstance(text, str):
        raise Fault("duration needs text such as '2h' or '1h30m'")
    seconds = _seconds("duration", text)
    return int(seconds) if seconds.is_integer() else seconds


def _next(schedule: str, after: float, zone: str) -> float | None:
    return next_time(schedule, after, zone)


def _time(function: str, value: Any) -> float:
    try:
        return parse_time(value[:_LONGEST])
    except (TypeError, ValueError, OverflowError):
        raise Fault(f"{function} needs a time such as '2026-01-31T12:00:00Z'") from None


def _seconds(function: str, value: Any) -> float:
    """The seconds of a duration: text, or a number of seconds."""
    if isinstance(value, str) and len(value) <= _LONGEST:
        try:
            return parse_duration(value)
        except ValueError as error:
            raise Fault(str(error), redacted=f"{function} needs a duration such as '1h30m'") from None
    if isinstance(value, bool) or not isinstance(value, (int, float, Exact)):
        raise Fault(f"{function} needs a duration such as '1h30m', or a number of seconds")
    return _float(function, value)


def _float(function: str, number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        raise Fault(f"{function} needs a smaller number of seconds") from None
