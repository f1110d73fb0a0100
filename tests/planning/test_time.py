"""Expressions whose results change with the time. A pass is repeated when the first of them changes."""

from __future__ import annotations

import contextlib
import datetime as dt
import textwrap
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.language.templates import Fault
from ruleop.language.templates.values.cost import Exhausted
from ruleop.planning.rendering.time_functions import TimeFunctions, parse_time
from tests.planning.harness import Harness, key

BORN = "2026-01-01T00:00:00Z"
CONFIG = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {v: VALUE}}"
CHILD = f"children: {{a: {{object: {CONFIG}}}}}"


def of(body: str, spec: dict[str, Any] | None = None) -> Harness:
    harness = Harness.of("reconcilePeriod: 0s\n" + textwrap.dedent(body), spec)
    assert harness.resource is not None
    harness.resource["metadata"]["creationTimestamp"] = BORN
    return harness


def at(harness: Harness, now: str) -> Harness:
    harness.now = now
    harness.settle()
    return harness


def due(harness: Harness) -> str:
    """When the next pass is due."""
    requeue = harness.plan().requeue_after
    if requeue is None:
        return "never"
    return stamp(parse_time(harness.now) + requeue.seconds)


def stamp(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# -- where time decides ------------------------------------------------------------------------------------------------


def test_a_child_is_pruned_when_its_time_has_passed_and_not_before() -> None:
    harness = of(
        "children: {a: {template: a.yaml, when: 'not after(metadata.creationTimestamp, spec.ttl)'}}".replace(
            "template: a.yaml", f"object: {CONFIG.replace('VALUE', 'x')}"
        ),
        {"ttl": "2h"},
    )
    assert at(harness, BORN).names() == ["ConfigMap/a"]
    assert due(harness) == "2026-01-01T02:00:01Z"
    assert at(harness, "2026-01-01T01:59:59Z").names() == ["ConfigMap/a"]
    assert at(harness, "2026-01-01T02:00:01Z").names() == []
    assert due(harness) == "never"


def test_a_value_that_a_window_decides_changes_with_it() -> None:
    harness = of(CHILD.replace("VALUE", "\"{{ 'night' if within('0 22 * * *', '8h', 'Europe/Berlin') else 'day' }}\""))
    for now, value, following in (
        ("2026-01-01T20:00:00Z", "day", "2026-01-01T21:00:01Z"),
        ("2026-01-01T21:00:01Z", "night", "2026-01-02T05:00:01Z"),
        ("2026-01-02T05:00:01Z", "day", "2026-01-02T21:00:01Z"),
    ):
        assert at(harness, now).objects[key("a")]["data"] == {"v": value}
        assert due(harness) == following


def test_a_change_waits_for_its_window() -> None:
    harness = of(
        f"children: {{a: {{object: {CONFIG.replace('VALUE', chr(34) + '{{ spec.v }}' + chr(34))}, "
        "waitFor: \"within('0 2 * * SAT', '4h')\"}}",
        {"v": "1"},
    )
    assert at(harness, BORN).names() == []
    assert harness.ready() == ("False", "Waiting", "a waits for waitFor: within('0 2 * * SAT', '4h')")
    assert due(harness) == "2026-01-03T02:00:01Z"
    assert at(harness, "2026-01-03T02:00:01Z").names() == ["ConfigMap/a"]


def test_a_let_a_condition_the_status_and_a_validation_know_when_they_change() -> None:
    for body, changes in (
        ("let: {old: \"{{ after(metadata.creationTimestamp, '1h') }}\"}\nstatus: {old: '{{ old }}'}", 1),
        ("status: {old: \"{{ after(metadata.creationTimestamp, duration('2h')) }}\"}", 2),
        ('conditions: [{type: Old, status: "after(metadata.creationTimestamp, 3 * 3600)", reason: Age}]', 3),
        ("validate: [{rule: \"after(metadata.creationTimestamp, '4h')\", message: too young}]", 4),
    ):
        assert due(of(body)) == f"2026-01-01T0{changes}:00:01Z"


def test_an_expression_that_is_not_evaluated_promises_nothing() -> None:
    harness = of("status: {old: \"{{ spec.on and after(metadata.creationTimestamp, '1h') }}\"}", {"on": False})
    assert due(harness) == "never"


def test_the_plan_after_the_writes_knows_it_too() -> None:
    """It reuses what the plan before them has rendered, as far as that depends on the CR only."""
    harness = of(CHILD.replace("VALUE", "\"{{ 'old' if after(metadata.creationTimestamp, '1h') else 'new' }}\""))
    planned = harness.plan(predict_status=False)
    assert planned.actions
    assert planned.requeue_after is None
    harness.history = harness.history.after(planned, harness.execute(planned.actions), 0.0)
    assert due(harness) == "2026-01-01T01:00:01Z"


def test_the_earliest_change_counts() -> None:
    later = " or ".join(f"after(metadata.creationTimestamp, '{hours}h')" for hours in (5, 3, 4))
    assert due(of(f'status: {{old: "{{{{ {later} }}}}"}}')) == "2026-01-01T03:00:01Z"


def test_a_time_that_is_not_there_yet_is_waited_for() -> None:
    harness = of(
        """
        observe: {other: {version: v1, kind: ConfigMap, name: other}}
        status: {old: "{{ after(other.data.time, '1h') }}", other: "1"}
        """
    )
    harness.settle()
    assert harness.resource is not None
    assert "old" not in harness.resource["status"]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("after(spec.v, '1h')", "after needs a time such as '2026-01-31T12:00:00Z'"),
        ("after(metadata.creationTimestamp, spec.v)", '"sec" is not a duration: write it like "10h", "1h30m" or "0s"'),
        ("after(metadata.creationTimestamp, spec)", "after needs a duration such as '1h30m', or a number of seconds"),
        ("within(spec.v, '1h')", "within needs a cron schedule such as '0 2 * * *' first"),
        ("within('@daily', '1h', spec.v)", "within needs a time zone such as 'Europe/Berlin' last"),
        ("within('@daily', 0)", "within needs a length of more than 0 s and at most 366 days"),
        ("after(metadata.creationTimestamp, spec.big)", "after needs a smaller number of seconds"),
        ("duration(3) > 2", "duration needs text such as '2h' or '1h30m'"),
    ],
)
def test_a_wrong_argument_is_an_error_of_its_expression(expression: str, message: str) -> None:
    (problem,) = of(f'status: {{old: "{{{{ {expression} }}}}"}}', {"v": "sec", "big": 10**400}).plan().problems
    assert message in problem.message


def test_a_duration_is_a_number() -> None:
    harness = of("status: {a: \"{{ duration('1h30m') }}\", b: \"{{ duration('250ms') }}\"}")
    harness.settle()
    assert harness.resource is not None
    assert (harness.resource["status"]["a"], harness.resource["status"]["b"]) == (5400, 0.25)


# -- windows -----------------------------------------------------------------------------------------------------------


def window(now: str, *arguments: Any) -> tuple[bool, str]:
    times = TimeFunctions(now)
    return times.within(*arguments), "" if times.next_change is None else stamp(times.next_change)[5:16]


def test_a_window_in_a_skipped_hour_does_not_open_and_a_length_is_elapsed_time() -> None:
    assert window("2026-03-29T00:59:00Z", "30 2 * * *", "2h", "Europe/Berlin") == (False, "03-30T00:30")
    assert window("2026-03-29T00:30:00Z", "0 1 * * *", "4h", "Europe/Berlin") == (True, "03-29T04:00")
    assert window("2026-10-25T00:30:00Z", "0 1 * * *", "4h", "Europe/Berlin") == (True, "10-25T03:00")


def test_a_window_in_a_repeated_hour_opens_once() -> None:
    assert window("2026-10-25T00:35:00Z", "30 2 * * *", "10m", "Europe/Berlin") == (True, "10-25T00:40")
    assert window("2026-10-25T01:35:00Z", "30 2 * * *", "10m", "Europe/Berlin") == (False, "10-26T01:30")


def test_windows_without_a_gap_are_one() -> None:
    assert window("2026-01-01T00:30:00Z", "0 0,1,2 * * *", "1h") == (True, "01-01T03:00")
    assert window("2026-01-01T00:30:00Z", "0 0,1,2 * * *", "59m") == (True, "01-01T00:59")


def test_a_window_that_never_opens_promises_nothing() -> None:
    assert window("2026-01-01T00:30:00Z", "0 0 31 2 *", "1h") == (False, "")


@pytest.mark.slow
def test_schedules_are_charged() -> None:
    """A CR may have thousands of them."""
    body = "status: {open: \"{% for s in spec.windows %}{{ 1 if within(s, '1h') }}{% endfor %}\"}"
    (problem,) = of(body, {"windows": ["0 0 31 2 *"] * 2000}).plan().problems
    assert problem.reason == "RenderFailed"


NOWS = st.integers(-(2**33), 2**35)
SECONDS = st.one_of(st.integers(-5, 5), st.integers(-(10**9), 10**9), st.floats(-1e7, 1e7))
FIELDS = ("*", "*/7", "0", "5", "1-3", "2,4")
SCHEDULES = st.tuples(st.sampled_from(("*/20", "0", "59", "*/45", "*")), *[st.sampled_from(FIELDS)] * 4).map(
    lambda fields: " ".join("1" if field == "0" and number > 1 else field for number, field in enumerate(fields))
)
ZONES = st.sampled_from(("UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia"))


@st.composite
def questions(draw: st.DrawFn) -> tuple[int, Any]:
    """A time, and a question that is asked then."""
    now = draw(NOWS)
    if draw(st.booleans()):
        schedule, length, zone = draw(SCHEDULES), draw(st.integers(1, 10**6)), draw(ZONES)
        return now, lambda times: times.within(schedule, length, zone)
    time, delay = stamp(now + draw(st.integers(-9, 9))), draw(SECONDS)
    return now, lambda times: times.after(time, delay)


def asked(question: Any, now: int) -> tuple[bool, float | None]:
    times = TimeFunctions(stamp(now))
    return question(times), times.next_change


@given(questions(), st.lists(st.floats(0, 1), max_size=8), st.integers(1, 10**8))
def test_a_result_holds_until_the_moment_that_was_promised(
    asking: tuple[int, Any], fractions: list[float], horizon: int
) -> None:
    now, question = asking
    result, change = asked(question, now)
    end = now + horizon if change is None else change
    assert change is None or change > now
    for fraction in fractions:
        moment = now + int((end - now) * fraction)
        if moment < end:
            assert asked(question, moment)[0] is result, stamp(moment)


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_no_text_does_more_than_fail(schedule: str, length: str, zone: str) -> None:
    times = TimeFunctions(BORN)
    for call in (
        lambda: times.within(schedule, length, zone),
        lambda: times.within("@daily", length, zone),
        lambda: times.after(schedule, length),
        lambda: times.after(zone),
    ):
        with contextlib.suppress(Fault, Exhausted):
            call()
