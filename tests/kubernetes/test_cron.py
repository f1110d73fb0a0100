"""The times of cron schedules, where clocks are changed. Other schedules are with the CronJobs of the local cluster."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.kubernetes.cron import last_time, next_time, times_problem


def following(schedule: str, after: str, zone: str, number: int = 1) -> list[str]:
    moment: float | None = dt.datetime.fromisoformat(after).timestamp()
    found = []
    for _ in range(number):
        assert moment is not None
        moment = next_time(schedule, moment, zone)
        found.append("" if moment is None else dt.datetime.fromtimestamp(moment, dt.UTC).strftime("%d %H:%M"))
    return found


def test_a_schedule_is_in_the_time_of_its_zone() -> None:
    assert following("0 2 * * *", "2026-01-01T00:00:00Z", "Europe/Berlin") == ["01 01:00"]
    assert following("0 2 * * *", "2026-07-01T00:30:00Z", "Europe/Berlin") == ["02 00:00"]
    assert following("0 2 * * *", "2026-01-01T00:00:00Z", "Asia/Kathmandu") == ["01 20:15"]


def test_a_time_that_the_clocks_skip_does_not_occur() -> None:
    assert following("30 2 * * *", "2026-03-28T12:00:00Z", "Europe/Berlin") == ["30 00:30"]


def test_a_time_that_the_clocks_repeat_occurs_once() -> None:
    assert following("30 2 * * *", "2026-10-24T12:00:00Z", "Europe/Berlin", 2) == ["25 00:30", "26 01:30"]
    assert following("*/20 2,3 * * *", "2026-10-25T01:10:00Z", "Europe/Berlin") == ["25 02:00"]


def test_a_day_that_a_country_skips_has_no_times() -> None:
    """Samoa had no 30th of December 2011."""
    assert following("0 12 * * *", "2011-12-29T12:00:00Z", "Pacific/Apia", 2) == ["29 22:00", "30 22:00"]


@pytest.mark.parametrize("zone", ["", "Berlin", "../etc/passwd", "Europe", "europe/berlin\0"])
def test_a_schedule_in_an_unknown_zone_has_no_times(zone: str) -> None:
    assert next_time("0 2 * * *", 0.0, zone) is None


@pytest.mark.parametrize("after", [-1e12, 1e11, 1e18, float("inf")])
def test_a_schedule_has_no_times_beyond_those_of_calendars(after: float) -> None:
    found = next_time("0 2 * * *", after)
    assert found is None or found > after


def test_a_schedule_without_fixed_times_is_not_one_of_windows() -> None:
    assert times_problem("@every 1h") == "@every has no fixed times"
    assert times_problem("0 2 * *") == "expected exactly 5 fields, found 4: [0 2 * *]"
    assert times_problem("@daily") == ""


TURNS = st.sampled_from(  # of clocks; the last one skips a day
    ["2026-03-29T01:00:00", "2026-10-25T01:00:00", "2026-04-04T15:00:00", "2026-10-03T15:30:00", "2011-12-30T10:00:00"]
)
SCHEDULES = st.sampled_from(
    ["* * * * *", "*/7 1-3 * * *", "30 2 * * *", "0 0,12 * * *", "59 * * * SUN", "15 2 29 * MON", "0 0 31 2 *"]
)
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia"])


@given(TURNS, st.integers(-9000, 9000), st.integers(0, 9000), SCHEDULES, ZONES)
def test_no_other_time_follows_the_last_one(turn: str, offset: int, width: int, schedule: str, zone: str) -> None:
    until = dt.datetime.fromisoformat(f"{turn}Z").timestamp() + offset
    since = until - width
    expected, moment = None, next_time(schedule, since - 1, zone)
    while moment is not None and moment <= until:
        expected = moment if moment >= since else None
        moment = next_time(schedule, moment, zone)
    assert last_time(schedule, until, zone, since=since) == expected


def test_the_last_time_of_a_rare_schedule_may_be_years_ago() -> None:
    until, since = (
        dt.datetime.fromisoformat(text).timestamp() for text in ("2027-06-01T00:00:00Z", "2020-01-01T00:00:00Z")
    )
    found = last_time("0 3 29 2 *", until, since=since)
    assert found == dt.datetime.fromisoformat("2024-02-29T03:00:00Z").timestamp()
    assert last_time("0 3 29 2 *", until, since=until - 3600) is None
