"""Cron schedules, as CronJobs have them."""

from __future__ import annotations

import datetime as dt
import math
import time
from functools import cache
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo, available_timezones

_Fields: TypeAlias = tuple[set[int], set[int], set[int], set[int], set[int]]

LONGEST_SCHEDULE: Final = 256  # characters of the schedules of rules
_LONGEST_ZONE: Final = 64
_MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS: Final = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS: Final = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_MINUTE: Final = 60
_DAY: Final = 24 * 3600
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - of a clock on the wall
_LAST: Final = 253_370_764_800  # the year 9999
_HORIZON: Final = 5 * 366 * 24 * 60  # minutes; a 29th of February comes within them


def next_time(schedule: str, after: float, zone: str = "UTC") -> float | None:
    """The first time after this one, in seconds; None if the schedule or the zone is invalid, or has none. An hour that
    the clocks skip has no times; in an hour that they repeat, each time counts once, the first time."""
    try:
        fields, place = _fields(schedule), _zone(zone)
        wall = _wall(after, place)
    except (ValueError, OverflowError, OSError):  # the last for a time that the machine's own calendar lacks
        return None
    while (next_wall := _next_wall(fields, wall)) is not None:
        wall = next_wall
        found = _moment(wall, place)
        if found is not None and found > after:
            return found
    return None


def last_time(schedule: str, until: float, zone: str = "UTC", *, since: float) -> float | None:
    """The last of the times that `next_time` finds, at `until` or before, and not before `since`; None if there is
    none."""
    try:
        fields, place = _fields(schedule), _zone(zone)
        wall, first = _wall(until, place), _wall(since, place) - _DAY
    except (ValueError, OverflowError, OSError):
        return None
    last = math.nextafter(since, -math.inf)
    while (last_wall := _last_wall(fields, wall, first)) is not None:
        wall = last_wall - 1
        found = _moment(last_wall, place)
        if found is not None and found <= until:
            last = max(last, found)
            break
    if zone != "UTC":  # where the clocks were set back, a time that the wall has not reached again may have passed
        while (found := next_time(schedule, last, zone)) is not None and found <= until:
            last = found
    return last if last >= since else None


def _wall(moment: float, place: dt.tzinfo) -> int:
    """The seconds of a clock on the wall."""
    return int((dt.datetime.fromtimestamp(moment, place).replace(tzinfo=None) - _EPOCH).total_seconds())


def _moment(wall: int, place: dt.tzinfo) -> float | None:
    """The moment at which a clock on the wall first shows a time; None if it skips that."""
    local = _EPOCH + dt.timedelta(seconds=wall)
    found = local.replace(tzinfo=place).timestamp()
    return found if dt.datetime.fromtimestamp(found, place).replace(tzinfo=None) == local else None


def _next_wall(fields: _Fields, after: int) -> int | None:
    """As `next_time`, in seconds of a clock on the wall."""
    at = (after // _MINUTE + 1) * _MINUTE
    end = min(at + _HORIZON * _MINUTE, _LAST)
    while at < end:
        passed, length = _misfit(fields, at)
        if not length:
            return at
        at += length - passed
    return None


def _last_wall(fields: _Fields, until: int, first: int) -> int | None:
    """As `last_time`, in seconds of a clock on the wall."""
    at = until // _MINUTE * _MINUTE
    first = max(first, at - _HORIZON * _MINUTE)
    while at >= first:
        passed, length = _misfit(fields, at)
        if not length:
            return at
        at -= passed + _MINUTE
    return None


def _misfit(fields: _Fields, at: int) -> tuple[int, int]:
    """The seconds that have passed of the day, hour or minute in which no time fits, and its length: 0 if this one
    fits."""
    minutes, hours, days, months, weekdays = fields
    found = time.gmtime(at)
    any_day, any_weekday = len(days) == 31, len(weekdays) == 7
    by_day, by_weekday = found.tm_mday in days, (found.tm_wday + 1) % 7 in weekdays
    fits = by_day and by_weekday if any_day or any_weekday else by_day or by_weekday
    if found.tm_mon not in months or not fits:
        return found.tm_hour * 3600 + found.tm_min * _MINUTE, _DAY
    if found.tm_hour not in hours:
        return found.tm_min * _MINUTE, 3600
    return 0, 0 if found.tm_min in minutes else _MINUTE


def is_zone(name: str) -> bool:
    """Whether a time zone is in the database of time zones."""
    return name == "UTC" or name in _zones()


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def _zone(name: str) -> dt.tzinfo:
    if name == "UTC":
        return dt.UTC
    if not is_zone(name):
        raise ValueError(f"unknown time zone {name}")
    return ZoneInfo(name)


def schedule_problem(schedule: str) -> str:
    """The reason for which the server does not accept a schedule; empty if it does."""
    if "TZ" in schedule:
        return "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
    if schedule.startswith("@every "):
        return ""
    if schedule.startswith("@") and schedule not in _MACROS:
        return f"unrecognized descriptor: {schedule}"
    try:
        _fields(schedule)
    except ValueError as error:
        return str(error)
    return ""


def times_problem(schedule: str) -> str:
    """The reason for which a schedule does not say at which times it starts; empty if it does."""
    return "@every has no fixed times" if schedule.startswith("@every ") else schedule_problem(schedule)


def schedule_fault(schedule: str) -> str:
    """The mistake in the schedule of a rule; empty if there is none, as in an empty schedule."""
    problem = "" if not schedule else "it is too long" if len(schedule) > LONGEST_SCHEDULE else times_problem(schedule)
    return f'"{schedule[:LONGEST_SCHEDULE]}" is not a cron schedule such as "0 3 * * *": {problem}' if problem else ""


def zone_fault(zone: str) -> str:
    """The mistake in a time zone; empty if there is none."""
    return "" if not zone or is_zone(zone) else f'"{zone[:_LONGEST_ZONE]}" is not a time zone such as "Europe/Berlin"'


def _fields(schedule: str) -> _Fields:
    parts = _MACROS.get(schedule.strip(), schedule).split()
    if len(parts) != 5:
        raise ValueError(f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]")
    minute, hour, day, month, weekday = parts
    return (
        _field(minute, 0, 59, ()),
        _field(hour, 0, 23, ()),
        _field(day, 1, 31, ()),
        _field(month, 1, 12, _MONTHS),
        {number % 7 for number in _field(weekday, 0, 7, _DAYS)} if weekday not in ("*", "?") else set(range(7)),
    )


def _field(text: str, first: int, last: int, names: list[str] | tuple[()]) -> set[int]:
    found: set[int] = set()
    for part in text.lower().split(","):
        span, _, step = part.partition("/")
        if span in ("*", "?"):
            start, end = first, last
        else:
            low, _, high = span.partition("-")
            start = _number(low, first, names)
            end = _number(high, first, names) if high else (last if step else start)
        if start < first:
            raise ValueError(f"beginning of range ({start}) below minimum ({first}): {part}")
        if end > last:
            raise ValueError(f"end of range ({end}) above maximum ({last}): {part}")
        if start > end:
            raise ValueError(f"beginning of range ({start}) beyond end of range ({end}): {part}")
        found.update(range(start, end + 1, int(step or 1)))
    return found


def _number(text: str, first: int, names: list[str] | tuple[()]) -> int:
    if text in names:
        return names.index(text) + first
    try:
        return int(text)
    except ValueError:
        problem = f'strconv.Atoi: parsing "{text}": invalid syntax'
        raise ValueError(f"failed to parse int from {text}: {problem}") from None
