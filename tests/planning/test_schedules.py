"""A child with `schedule` is made once for each time: late, through crashes, restarts, and clocks that are set back."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.authoring.ruletests.plan_mode import made_ready
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.planning.child.kinds.run_records import RETRY
from ruleop.planning.rendering.time_functions import parse_time
from tests.planning.harness import Harness
from tests.planning.test_time import due, stamp

JOB = "object: {apiVersion: batch/v1, kind: Job, metadata: {name: b}, spec: {note: x}}"
FAILURE = {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}
BORN = "2026-01-01T00:00:00Z"


def harness(
    keys: str = "schedule: '0 3 * * *'", spec: dict[str, Any] | None = None, *, born: str = "01-01 00:00", now: str = ""
) -> Harness:
    """After the first pass, which is at the creation unless it is `now`."""
    found = Harness.of(f"reconcilePeriod: 0s\nchildren:\n  backup: {{{keys}, {JOB}}}\n", spec)
    assert found.resource is not None
    found.resource["metadata"]["creationTimestamp"] = whole(born)
    return at(found, now or born)


def whole(time: str) -> str:
    """A time of 2026 in short form, or a whole one."""
    return time if time.endswith("Z") else f"2026-{time.replace(' ', 'T')}:00Z"


def at(found: Harness, now: str) -> Harness:
    found.now = whole(now)
    found.settle(controllers=False)
    return found


def jobs(found: Harness) -> list[ObjectKey]:
    return [each for each in found.objects if each.kind == "Job"]


def finish(found: Harness) -> None:
    for each in jobs(found):
        if "status" not in found.objects[each]:
            found.put(made_ready(found.objects[each]))
    found.settle(controllers=False)


def record(found: Harness) -> list[str]:
    """The entries of the record without the one of the schedule: `day hour:minute result`."""
    *entries, last = found.status["ruleop"]["once"]["backup"]
    assert last["result"] == "Scheduled"
    return [f"{each['id'][8:16].replace('T', ' ')} {each['result']}" for each in entries]


def skips(found: Harness) -> list[str]:
    return [each.message[27:43] for each in found.events if each.reason == "RunSkipped"]


# -- runs --------------------------------------------------------------------------------------------------------------


def test_a_run_is_made_at_its_time_and_once() -> None:
    found = harness()
    assert jobs(found) == []
    assert found.ready()[:2] == ("True", "Ready")
    assert due(found) == "2026-01-01T03:00:01Z"
    at(found, "01-01 03:00")
    (job,) = jobs(found)
    assert record(found) == ["01 03:00 Running"]
    assert found.ready()[:2] == ("False", "Progressing")
    finish(found)
    assert record(found) == ["01 03:00 Succeeded"]
    assert found.ready()[:2] == ("True", "Ready")
    assert due(found) == "2026-01-02T03:00:01Z"
    found.delete(job)
    at(found, "01-01 03:10")
    assert jobs(found) == []
    at(found, "01-02 03:00")
    assert len(jobs(found)) == 1
    assert record(found) == ["02 03:00 Running", "01 03:00 Succeeded"]


def test_the_status_has_the_time_since_which_a_schedule_is_in_force() -> None:
    entry = harness("schedule: '0 3 * * *', timeZone: Europe/Berlin").status["ruleop"]["once"]["backup"][0]
    assert {**entry, "run": ""} == {
        "id": "0 3 * * * Europe/Berlin",
        "run": "",
        "result": "Scheduled",
        "time": "2026-01-01T00:00:00Z",
    }


def test_a_late_run_is_made_within_the_deadline_and_skipped_after_it() -> None:
    assert record(at(harness(), "01-01 03:59")) == ["01 03:00 Running"]
    late = at(harness(), "01-01 04:00")
    assert jobs(late) == []
    assert record(late) == ["01 03:00 Skipped"]
    assert late.ready()[:2] == ("True", "Ready")
    assert [each.message for each in late.events if each.reason == "RunSkipped"] == [
        "backup: skipped the run of 2026-01-01T03:00:00Z: it did not start before its startingDeadline or the next run"
    ]
    assert record(at(late, "01-02 03:00")) == ["02 03:00 Running", "01 03:00 Skipped"]
    assert skips(late) == ["2026-01-01T03:00"]


def test_the_last_of_several_missed_runs_is_made_up_for_and_one_that_was_skipped_is_recorded() -> None:
    found = at(harness(), "01-05 03:10")
    assert record(found) == ["05 03:00 Running", "04 03:00 Skipped"]
    assert skips(found) == ["2026-01-04T03:00"]


def test_a_run_waits_for_the_end_of_the_one_before_until_its_deadline() -> None:
    found = harness("schedule: '0 * * * *', startingDeadline: 20m", born="01-01 03:00")
    (first,) = jobs(found)
    at(found, "01-01 04:00")
    assert found.ready()[1:] == ("Waiting", f"backup waits for Job/shop/{first.name} to finish")
    assert due(found) == "2026-01-01T04:20:01Z"
    at(found, "01-01 04:20")
    assert record(found) == ["01 04:00 Skipped", "01 03:00 Running"]
    assert found.ready()[1] == "Progressing"
    at(found, "01-01 05:00")
    finish(found)
    assert record(found) == ["01 05:00 Running", "01 04:00 Skipped", "01 03:00 Succeeded"]


def test_many_skipped_runs_leave_the_results_in_the_record() -> None:
    found = harness("schedule: '0 * * * *', startingDeadline: 20m", born="01-01 03:00")
    for hour in range(4, 24):
        at(found, f"01-01 {hour:02}:30")
    assert record(found) == ["01 23:00 Skipped", "01 03:00 Running"]
    assert len(skips(found)) == 20


def test_a_deadline_longer_than_the_period_ends_with_the_next_run() -> None:
    found = harness("schedule: '0 * * * *', startingDeadline: 24h", born="01-01 03:00")
    at(found, "01-01 04:30")
    at(found, "01-01 05:00")
    assert record(found) == ["01 04:00 Skipped", "01 03:00 Running"]
    finish(found)
    assert record(found) == ["01 05:00 Running", "01 04:00 Skipped", "01 03:00 Succeeded"]


def test_a_failed_run_is_reported_until_the_next_one() -> None:
    found = at(harness(), "01-01 03:00")
    found.change(jobs(found)[0], FAILURE)
    at(found, "01-01 09:00")
    assert found.ready()[:2] == ("False", "OnceFailed")
    found.objects.clear()
    at(found, "01-01 10:00")
    assert found.ready()[1:] == (
        "OnceFailed",
        (
            "backup: watches.yaml:6:5: the run '2026-01-01T03:00:00Z' has failed: wait for the next one, or change the "
            f"annotation {RETRY}backup"
        ),
    )
    at(found, "01-02 05:00")
    assert record(found) == ["02 03:00 Skipped", "01 03:00 Failed"]
    assert found.ready()[1] == "OnceFailed", "a skipped run has no result"
    at(found, "01-03 03:00")
    finish(found)
    assert found.ready()[1] == "Ready"


@pytest.mark.parametrize("before", ["Failed", "Skipped", "Succeeded"])
def test_a_new_value_of_the_retry_annotation_repeats_the_last_run_at_any_time(before: str) -> None:
    found = at(harness(), "01-01 06:00" if before == "Skipped" else "01-01 03:00")
    if before == "Failed":
        found.change(jobs(found)[0], FAILURE)
        found.settle(controllers=False)
    finish(found)
    found.patch_resource({"annotations": {f"{RETRY}backup": "1"}})
    at(found, "01-01 12:00")
    finish(found)
    assert record(found) == ["01 03:00 Succeeded", f"01 03:00 {before}"]
    assert found.ready()[1] == "Ready"
    at(found, "01-02 03:00")
    finish(found)
    runs = len(jobs(found))
    found.patch_resource({"annotations": {f"{RETRY}backup": ""}})
    at(found, "01-02 12:00")
    assert len(jobs(found)) == runs, "its removal repeats nothing"


def test_a_run_whose_object_is_deleted_begins_again_within_the_deadline() -> None:
    found = at(harness(), "01-01 03:00")
    found.delete(jobs(found)[0])
    at(found, "01-01 03:30")
    (job,) = jobs(found)
    found.delete(job)
    at(found, "01-01 04:30")
    assert jobs(found) == []
    assert record(found) == ["01 03:00 Skipped"]


@pytest.mark.slow
@pytest.mark.parametrize("history", [0, 2])
def test_finished_objects_beyond_the_history_are_removed(history: int) -> None:
    found = harness(f"schedule: '0 3 * * *', history: {history}")
    for day in range(1, 15):
        at(found, f"01-{day:02} 03:00")
        finish(found)
    assert len(jobs(found)) == history
    assert len(record(found)) == 10


# -- which times count -------------------------------------------------------------------------------------------------


def test_no_run_is_due_for_a_time_before_the_creation() -> None:
    found = harness(born="01-01 03:10")
    assert jobs(found) == []
    assert record(found) == []


def test_a_run_that_was_due_before_the_first_pass_over_a_new_resource_is_made_up_for() -> None:
    assert record(harness(now="01-01 03:30")) == ["01 03:00 Running"]
    assert record(harness(now="01-01 05:00")) == ["01 03:00 Skipped"]


def test_a_schedule_that_is_new_for_a_resource_is_not_due_for_earlier_times() -> None:
    found = harness("schedule: '{{ spec.at }}'", {"at": ""})
    at(found, "01-01 03:30")
    assert "ruleop" not in found.status
    found.edit({"at": "0 3 * * *"})
    at(found, "01-01 03:31")
    assert jobs(found) == []
    assert record(found) == []
    assert due(found) == "2026-01-02T03:00:01Z"
    found.edit({"at": "15 3 * * *"})
    at(found, "01-02 03:14")
    assert due(found) == "2026-01-02T03:15:01Z"
    found.edit({"at": "10 3 * * *"})
    at(found, "01-02 03:14")
    assert record(found) == []


def test_times_that_pass_while_the_child_is_not_desired_are_not_due() -> None:
    found = harness("schedule: '0 3 * * *', when: spec.on", {"on": True})
    found.edit({"on": False})
    at(found, "01-01 02:00")
    assert due(found) == "never"
    at(found, "01-01 03:10")
    found.edit({"on": True})
    at(found, "01-01 03:20")
    assert jobs(found) == []
    assert record(found) == []
    assert skips(found) == []


def test_a_paused_resource_starts_nothing_and_records_the_skipped_run() -> None:
    found = harness()
    found.patch_resource({"annotations": {"ruleop.dev/paused": "true"}})
    at(found, "01-01 03:00")
    assert jobs(found) == []
    assert due(found) == "2026-01-01T04:00:01Z"
    at(found, "01-01 04:00")
    assert record(found) == ["01 03:00 Skipped"]
    at(found, "01-02 03:00")
    found.patch_resource({"annotations": {"ruleop.dev/paused": "false"}})
    at(found, "01-02 03:20")
    assert record(found) == ["02 03:00 Running", "01 03:00 Skipped"]


def test_a_clock_that_is_set_back_repeats_nothing() -> None:
    found = harness("schedule: '*/10 * * * *'", born="01-01 03:00")
    for minute in range(0, 60, 10):
        at(found, f"01-01 03:{minute:02}")
        finish(found)
    found.objects.clear()
    for minute in range(0, 60, 10):
        at(found, f"01-01 03:{minute:02}")
    assert jobs(found) == []
    assert due(found) == "2026-01-01T04:00:01Z"
    assert record(at(found, "01-01 04:00"))[0] == "01 04:00 Running"


def test_records_of_a_clock_that_was_days_ahead_do_not_stop_a_schedule() -> None:
    found = at(harness(born="2030-01-01T00:00:00Z"), "2030-01-01T03:00:00Z")
    finish(found)
    at(found, "01-05 02:00")
    assert due(found) == "2026-01-05T03:00:01Z"
    at(found, "01-05 03:00")
    assert len(jobs(found)) == 2


def test_a_time_that_the_clocks_skip_has_no_run_and_one_that_they_repeat_has_one() -> None:
    berlin = "schedule: '30 2 * * *', timeZone: Europe/Berlin"
    spring = at(harness(berlin, born="03-28 01:30"), "03-29 12:00")
    finish(spring)
    assert record(spring) == ["28 01:30 Succeeded"]
    assert due(spring) == "2026-03-30T00:30:01Z"
    autumn = at(harness(berlin, born="10-24 12:00"), "10-25 00:30")
    finish(autumn)
    assert record(at(autumn, "10-25 01:31"))[0] == "25 00:30 Succeeded"
    assert due(autumn) == "2026-10-26T01:30:01Z"


# -- values from the custom resource -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"at": "0 3 * *"}, '"0 3 * *" is not a cron schedule such as "0 3 * * *": expected exactly 5 fields'),
        ({"at": "@every 1h"}, '"@every 1h" is not a cron schedule such as "0 3 * * *": @every has no fixed times'),
        ({"at": "0" * 300}, 'is not a cron schedule such as "0 3 * * *": it is too long'),
        ({"at": "@daily", "zone": "Berlin"}, '"Berlin" is not a time zone such as "Europe/Berlin"'),
    ],
)
def test_a_malformed_schedule_of_the_resource_is_a_problem_of_its_line(spec: dict[str, str], message: str) -> None:
    found = Harness.of(
        "children: {backup: {schedule: '{{ spec.at }}', timeZone: \"{{ spec.zone | default('') }}\", " + JOB + "}}",
        spec,
    )
    (problem,) = found.plan().problems
    assert message in problem.message
    assert problem.site is not None
    assert problem.site.line == 4


def test_a_schedule_is_a_problem_if_the_definition_drops_the_record() -> None:
    found = harness("schedule: '{{ spec.at }}'", {"at": ""})
    info = found.offline.info(found.rule.kind)
    found.infos["App"] = replace(info, status_schema={"type": "object", "properties": {"status": {"type": "object"}}})
    assert found.plan().problems == ()
    found.edit({"at": "0 3 * * *"})
    assert "drop the results of `schedule`" in found.plan().problems[0].message


def test_a_schedule_without_times_never_runs() -> None:
    found = harness("schedule: '0 0 31 2 *'")
    assert due(found) == "never"


@pytest.mark.parametrize("entries", [7, [7], [{"run": "a", "result": "Scheduled", "time": "x"}], [{}] * 99])
def test_a_record_that_others_wrote_is_read_as_far_as_it_makes_sense(entries: Any) -> None:
    found = harness()
    assert found.resource is not None
    found.resource["status"]["ruleop"] = {"once": {"backup": entries}}
    at(found, "01-01 02:00")
    at(found, "01-01 03:00")
    assert record(found) == ["01 03:00 Running"]


# -- any course of events ----------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), st.integers(-90, 400)),
        st.tuples(st.sampled_from(["finish", "fail", "delete", "restart", "retry", "pause"]), st.integers(0, 3)),
        st.tuples(st.just("crash"), st.integers(0, 1)),
    ),
    max_size=16,
)


@pytest.mark.slow
@given(STEPS, st.sampled_from(["*/30 * * * *", "0 */2 * * *", "7 3,4 * * *"]), st.sampled_from(["10m", "1h", "5h"]))
def test_no_run_ends_twice_or_begins_after_its_deadline(
    steps: list[tuple[str, Any]], schedule: str, deadline: str
) -> None:
    found = harness(f"schedule: '{schedule}', startingDeadline: {deadline}, history: 1")
    ends: Counter[str] = Counter()
    retries = 0
    seconds = {"10m": 600.0, "1h": 3600.0, "5h": 18000.0}[deadline]
    for what, value in steps:
        known = set(jobs(found))
        running = [each for each in known if "status" not in found.objects[each]]
        match what:
            case "pass":
                found.now = stamp(max(parse_time(BORN), parse_time(found.now) + 60 * value))
            case "finish" | "fail" if running:
                ends[running[0].name] += 1
                found.change(running[0], FAILURE) if what == "fail" else found.put(
                    made_ready(found.objects[running[0]])
                )
            case "delete" if running:
                found.delete(running[0])
            case "restart":
                found.history = type(found.history).NONE
            case "retry":
                retries += 1
                found.patch_resource({"annotations": {f"{RETRY}backup": str(retries)}})
            case "pause":
                found.patch_resource({"annotations": {"ruleop.dev/paused": str(value % 2 == 1).lower()}})
            case "crash":
                found.step(crash_after=value)
                continue
        found.step()
        made = set(jobs(found)) - known
        assert len(made) <= 1
        for job in made:
            entry = next(each for each in found.status["ruleop"]["once"]["backup"] if each.get("object") == job.name)
            assert parse_time(found.now) - parse_time(entry["id"]) < seconds or retries
    assert all(number == 1 for number in ends.values())


@pytest.mark.slow
@given(st.integers(0, 3000), st.lists(st.floats(0, 1), max_size=5), st.sampled_from(["*/30 * * * *", "7 3,4 * * *"]))
def test_nothing_changes_before_the_promised_moment(minutes: int, fractions: list[float], schedule: str) -> None:
    found = harness(f"schedule: '{schedule}', startingDeadline: 20m")
    at(found, stamp(parse_time(BORN) + 60 * minutes))
    now, promised = parse_time(found.now), parse_time(due(found)) - 1
    for fraction in sorted(fractions):
        found.now = stamp(int(now + (promised - now) * fraction * 0.999))
        assert found.plan().quiet
    found.now = stamp(promised)
    assert not found.plan().quiet
