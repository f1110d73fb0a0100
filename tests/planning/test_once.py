"""A child with `once` is made once for each request id: through crashes, deletions of its object, edits and retries."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ruleop.authoring.ruletests.plan_mode import made_ready
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.planning.child.kinds.run_records import RETRY
from ruleop.planning.model.actions import Create
from tests.planning.harness import Harness
from tests.planning.settled import edit_and_settle, settled

JOB = "object: {apiVersion: batch/v1, kind: Job, metadata: {name: m}, spec: {note: '{{ spec.v }}'}}"
RULE = (
    "children:\n"
    f"  migrate: {{once: '{{{{ spec.v }}}}', {JOB}%s}}\n"
    "  web: {waitFor: ready.migrate, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {v: '{{ spec.v }}'}}}\n"
)
FAILURE = {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}


def harness(version: str = "1", more: str = "") -> Harness:
    found = Harness.of(RULE % more, {"v": version})
    found.settle(controllers=False)
    return found


def jobs(found: Harness) -> list[ObjectKey]:
    return [each for each in found.objects if each.kind == "Job"]


def finish(found: Harness, key_: ObjectKey | None = None) -> None:
    for each in [key_] if key_ is not None else jobs(found):
        found.put(made_ready(found.objects[each]))
    found.settle(controllers=False)


def fail(found: Harness) -> None:
    (job,) = jobs(found)
    found.change(job, FAILURE)
    found.settle(controllers=False)


def runs(found: Harness) -> list[dict[str, Any]]:
    recorded: list[dict[str, Any]] = found.status["ruleop"]["once"]["migrate"]
    return recorded


def test_a_run_is_recorded_and_awaited():
    found = harness()
    (job,) = jobs(found)
    assert job.name.startswith("m-")
    assert [(each["id"], each["result"], each["object"]) for each in runs(found)] == [("1", "Running", job.name)]
    assert found.names() == [f"Job/{job.name}"]
    finish(found)
    assert [each["result"] for each in runs(found)] == ["Succeeded"]
    assert found.names() == ["ConfigMap/web", f"Job/{job.name}"]
    assert found.ready()[:2] == ("True", "Ready")
    assert found.plan().quiet


def test_a_run_that_has_ended_is_not_repeated_when_its_object_is_deleted():
    found = harness()
    finish(found)
    found.delete(jobs(found)[0])
    found.settle(controllers=False)
    assert jobs(found) == []
    assert found.ready()[:2] == ("True", "Ready")


def test_a_run_that_is_deleted_before_its_end_begins_again():
    found = harness()
    (job,) = jobs(found)
    found.delete(job)
    found.settle(controllers=False)
    assert jobs(found) == [job]


def test_a_new_request_runs_again_and_an_old_one_does_not():
    found = harness()
    finish(found)
    edit_and_settle(found, {"v": "2"}, controllers=False)
    assert len(jobs(found)) == 2
    assert found.objects[ObjectKey("", "ConfigMap", "shop", "web")]["data"] == {"v": "1"}, "it waits for the run"
    finish(found)
    assert [(each["id"], each["result"]) for each in runs(found)] == [("2", "Succeeded"), ("1", "Succeeded")]
    edit_and_settle(found, {"v": "1"}, controllers=False)
    assert len(jobs(found)) == 2
    assert found.objects[ObjectKey("", "ConfigMap", "shop", "web")]["data"] == {"v": "1"}


@pytest.mark.slow
def test_an_old_request_does_not_run_again_after_any_number_of_others():
    found = harness("1")
    finish(found)
    for number in range(2, 16):
        edit_and_settle(found, {"v": str(number)})
    recorded = runs(found)
    assert [each.get("id") for each in recorded] == [*map(str, range(15, 5, -1)), None]
    assert len(recorded[-1]["earlier"].split()) == 5
    for number in (1, 5, 6, 15):
        found.edit({"v": str(number)})
        assert not [action for action in found.plan().actions if action.key.kind == "Job"]
        found.settle()
    assert runs(found) == recorded


@pytest.mark.slow
def test_an_old_request_that_failed_is_still_reported():
    found = harness("0")
    fail(found)
    for number in range(1, 13):
        edit_and_settle(found, {"v": str(number)})
        for job in jobs(found):
            if not found.objects[job].get("status"):
                finish(found, job)
    edit_and_settle(found, {"v": "0"})
    assert found.plan().conditions.ready.reason == "OnceFailed"


def test_a_second_run_waits_for_the_end_of_the_first():
    found = harness()
    edit_and_settle(found, {"v": "2"}, controllers=False)
    (job,) = jobs(found)
    assert found.ready()[1:] == (
        "Waiting",
        f"migrate waits for Job/shop/{job.name} to finish; web waits for waitFor: ready.migrate",
    )
    finish(found)
    assert len(jobs(found)) == 2


def test_a_failed_run_stops_what_depends_on_it_until_the_request_or_the_retry_annotation_changes():
    found = harness()
    fail(found)
    (job,) = jobs(found)
    assert found.ready()[:2] == ("False", "OnceFailed")
    assert found.condition("Stalled")["status"] == "True"
    found.delete(job)
    found.settle(controllers=False)
    assert jobs(found) == []
    assert found.ready()[1:] == (
        "OnceFailed",
        f"migrate: watches.yaml:5:5: the run '1' has failed: change the request id, or the annotation {RETRY}migrate",
    )
    found.patch_resource({"annotations": {f"{RETRY}migrate": "1"}})
    found.settle(controllers=False)
    assert len(jobs(found)) == 1
    finish(found)
    assert found.ready()[1] == "Ready"
    assert [each["result"] for each in runs(found)] == ["Succeeded", "Failed"]


def test_a_recorded_end_is_final():
    found = harness()
    fail(found)
    (job,) = jobs(found)
    found.change(job, {"status": None})
    found.put(made_ready(found.objects[job]))
    found.settle(controllers=False)
    assert [each["result"] for each in runs(found)] == ["Failed"]
    assert found.ready()[1] == "OnceFailed"


def test_an_empty_request_makes_nothing_and_keeps_what_has_run():
    found = harness("")
    assert jobs(found) == []
    edit_and_settle(found, {"v": "1"})
    edit_and_settle(found, {"v": ""})
    assert len(jobs(found)) == 1
    assert found.ready()[1] == "Ready"


@pytest.mark.parametrize("history", [0, 2])
def test_finished_objects_beyond_the_history_are_removed(history: int):
    found = harness(more=f", history: {history}")
    for version in "12345":
        edit_and_settle(found, {"v": version})
        found.settle()
    assert len(jobs(found)) == history
    assert len(runs(found)) == 5


def test_the_pass_after_a_recorded_end_is_due_at_once_if_it_removes_an_object():
    found = harness(more=", history: 0")
    (job,) = jobs(found)
    found.put(made_ready(found.objects[job]))
    planned = found.step()
    assert planned.requeue_after is not None
    assert planned.requeue_after.seconds == 0.0
    found.step()
    assert jobs(found) == []


def test_the_object_is_not_changed_after_its_creation():
    found = settled(RULE.replace("spec.v }}', object", "spec.id }}', object") % "", {"v": "1", "id": "a"})
    edit_and_settle(found, {"v": "2", "id": "a"})
    assert found.objects[jobs(found)[0]]["spec"] == {"note": "1"}


def test_nothing_runs_if_the_definition_drops_the_record():
    found = harness()
    found.objects.clear()
    info = found.offline.info(found.rule.kind)
    conditions = {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    status = {"type": "object", "properties": {"conditions": conditions, "observedGeneration": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"status": status}}
    found.infos["App"] = type(info)(
        **{name: getattr(info, name) for name in info.__slots__} | {"status_schema": schema}
    )
    found.patch_resource({"annotations": {f"{RETRY}migrate": "again"}})
    found.settle()
    assert jobs(found) == []
    assert "the CRD of App has no status.ruleop.once" in found.ready()[2]


def test_nothing_runs_if_the_status_with_the_record_is_never_written():
    found = Harness.of(RULE % "", {"v": "1"})
    info = found.offline.info(found.rule.kind)
    status = {"type": "object", "required": ["never"], "x-kubernetes-preserve-unknown-fields": True}
    found.infos["App"] = replace(info, status_schema={"type": "object", "properties": {"status": status}})
    found.settle()
    assert jobs(found) == []
    problem = found.plan().problems[0]
    assert problem.message.startswith("the CRD of App requires status.never, and no status is written without")


@pytest.mark.parametrize("record", [7, [7], [{"run": 1}], {"x": []}, [{"run": "a", "result": "Odd", "time": ""}] * 99])
def test_a_record_that_others_wrote_is_read_as_far_as_it_makes_sense(record: Any):
    found = harness()
    assert found.resource is not None
    found.resource["status"]["ruleop"] = {"once": {"migrate": record}}
    found.settle()
    assert [each["result"] for each in runs(found)][:1] == ["Succeeded"]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("edit"), st.sampled_from(["", "1", "2", "3"])),
        st.tuples(st.just("retry"), st.sampled_from(["a", "b"])),
        st.tuples(st.sampled_from(["finish", "fail", "delete", "restart"]), st.integers(0, 3)),
        st.tuples(st.just("crash"), st.integers(0, 2)),
    ),
    max_size=14,
)


@pytest.mark.slow
@given(STEPS, st.integers(0, 3))
@example([("finish", 0), ("restart", 0), ("delete", 0), ("restart", 0), ("finish", 0)], 3)
def test_no_run_ends_twice(steps: list[tuple[str, Any]], history: int) -> None:
    """An object may be deleted at any time but between its end and the pass that sees it."""
    found = harness(more=f", history: {history}")
    ends: Counter[str] = Counter()

    def end(change: dict[str, Any] | None, number: int) -> None:
        open_ = [each for each in jobs(found) if "status" not in found.objects[each]]
        if open_:
            job = open_[number % len(open_)]
            ends[job.name] += 1
            found.change(job, change) if change else found.put(made_ready(found.objects[job]))

    for what, value in steps:
        match what:
            case "edit":
                found.edit({"v": value})
            case "retry":
                found.patch_resource({"annotations": {f"{RETRY}migrate": value}})
            case "finish":
                end(None, value)
            case "fail":
                end(FAILURE, value)
            case "delete" if jobs(found):
                job = jobs(found)[value % len(jobs(found))]
                if "status" not in found.objects[job] or f"'{job.name}'" in str(
                    [each for each in runs(found) if each["result"] != "Running"]
                ):
                    found.delete(job)
            case "restart":
                found.history = type(found.history).NONE
            case "crash":
                found.step(crash_after=value)
                continue
        found.step()
    assert all(number == 1 for number in ends.values())
    found.settle(controllers=False)
    assert not [each for each in found.plan().actions if isinstance(each, Create)]
