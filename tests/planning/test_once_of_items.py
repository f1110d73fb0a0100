"""A child with `once` and `forEach`: the object of each item is made once for each request id of that item, through
crashes, deletions, edits of the list and retries. And request ids that come from what exists."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.authoring.ruletests.plan_mode import made_ready
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.planning import Delete, Served
from ruleop.planning.child.kinds.run_records import MAX_EARLIER_OF_ITEMS, MAX_ITEMS, MAX_RECORDED, RETRY
from ruleop.planning.model.actions import Create
from tests.planning.harness import Harness, config, key
from tests.planning.settled import edit_and_settle

JOB = "object: {apiVersion: batch/v1, kind: Job, metadata: {name: 'm-{{ item.name }}'}, spec: {note: '{{ item.v }}'}}"
RULE = (
    "children:\n"
    f"  migrate: {{forEach: spec.items, once: '{{{{ item.v }}}}', {JOB}%s}}\n"
    "  web: {waitFor: ready.migrate, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}}}\n"
    "status: {jobs: \"{{ migrate | map(attribute='metadata.name') }}\"}\n"
)
FAILURE = {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}


def spec(**versions: str) -> dict[str, Any]:
    return {"items": [{"name": name, "v": version} for name, version in versions.items()]}


def harness(more: str = "", **versions: str) -> Harness:
    found = Harness.of(RULE % more, spec(**versions))
    found.settle(controllers=False)
    return found


def edit(found: Harness, **versions: str) -> None:
    edit_and_settle(found, spec(**versions), controllers=False)


def jobs(found: Harness, item: str = "") -> list[ObjectKey]:
    return sorted(each for each in found.objects if each.kind == "Job" and each.name.startswith(f"m-{item}"))


def finish(found: Harness, item: str = "") -> None:
    for each in jobs(found, item):
        found.put(made_ready(found.objects[each]))
    found.settle(controllers=False)


def fail(found: Harness, item: str) -> None:
    for each in jobs(found, item):
        found.change(each, FAILURE)
    found.settle(controllers=False)


def runs(found: Harness) -> list[dict[str, Any]]:
    recorded: list[dict[str, Any]] = found.status["ruleop"]["once"]["migrate"]
    return recorded


def results(found: Harness) -> set[tuple[str, str, str]]:
    return {(each["item"], each["id"], each["result"]) for each in runs(found) if "item" in each}


def test_each_item_has_a_run_of_its_own():
    found = harness(red="1", blue="1")
    assert [each.name[:6] for each in jobs(found)] == ["m-blue", "m-red-"]
    assert results(found) == {("red", "1", "Running"), ("blue", "1", "Running")}
    finish(found, "red")
    assert results(found) == {("red", "1", "Succeeded"), ("blue", "1", "Running")}
    assert key("web") not in found.objects
    finish(found, "blue")
    assert key("web") in found.objects
    assert found.ready()[:2] == ("True", "Ready")
    assert found.status["jobs"] == [each.name for each in jobs(found)]
    assert found.plan().quiet


def test_a_new_id_of_one_item_runs_that_item_alone():
    found = harness(red="1", blue="1")
    finish(found)
    before = jobs(found)
    edit(found, red="2", blue="1")
    (job,) = set(jobs(found)) - set(before)
    assert found.objects[job]["spec"] == {"note": "2"}
    finish(found)
    edit(found, red="1", blue="1")
    assert len(jobs(found)) == 3, "an id that has run does not run again"


def test_an_item_waits_only_for_its_own_run():
    found = harness(red="1", blue="1")
    finish(found, "blue")
    edit(found, red="2", blue="2")
    assert len(jobs(found, "red")) == 1
    assert len(jobs(found, "blue")) == 2
    assert f"migrate waits for {jobs(found, 'red')[0]} to finish" in found.ready()[2]


def test_the_objects_of_a_removed_item_are_deleted_and_its_runs_are_not_repeated_when_it_is_back():
    found = harness(red="1", blue="1")
    finish(found)
    edit(found, blue="1")
    assert jobs(found, "red") == []
    assert results(found) == {("red", "1", "Succeeded"), ("blue", "1", "Succeeded")}
    edit(found, red="1", blue="1")
    assert jobs(found, "red") == []
    assert found.ready()[:2] == ("True", "Ready")
    edit(found, red="2", blue="1")
    assert len(jobs(found, "red")) == 1


def test_a_run_of_a_removed_item_that_has_not_ended_begins_again_when_the_item_is_back():
    found = harness(red="1", blue="1")
    edit(found, blue="1")
    assert jobs(found, "red") == []
    assert results(found) == {("blue", "1", "Running")}
    edit(found, blue="1", red="1")
    assert len(jobs(found, "red")) == 1


def test_the_order_of_items_and_their_other_fields_do_not_matter():
    found = harness(red="1", blue="1")
    finish(found)
    found.edit({"items": [{"name": "blue", "v": "1", "more": True}, {"name": "red", "v": "1"}]})
    assert not [each for each in found.plan().actions if isinstance(each, (Create, Delete))]


def test_objects_of_items_that_are_not_known_stay():
    found = harness(red="1", blue="1")
    finish(found)
    before, recorded = jobs(found), runs(found)
    for unknown in ("text", None, [{"name": "red", "v": "1"}, {}]):
        found.edit({"items": unknown} if unknown is not None else {})
        assert not [each for each in found.plan().actions if isinstance(each, Delete)]
        found.settle(controllers=False)
        assert jobs(found) == before
        assert results(found) == {(each["item"], each["id"], each["result"]) for each in recorded}


def test_an_item_whose_when_is_false_keeps_its_objects_and_begins_no_run():
    found = harness(", when: item.v != '2'", red="1", blue="1")
    finish(found)
    edit(found, red="2", blue="1")
    assert len(jobs(found)) == 2
    assert found.ready()[:2] == ("True", "Ready")


def test_a_failed_item_is_named_and_a_retry_repeats_no_item_that_has_succeeded():
    found = harness(red="1", blue="1")
    finish(found, "blue")
    fail(found, "red")
    assert found.ready()[1] == "OnceFailed"
    found.delete(jobs(found, "red")[0])
    found.settle(controllers=False)
    assert f"the run '1' of red has failed: change the request id, or the annotation {RETRY}migrate" in found.ready()[2]
    for value in ("a", "b"):
        found.patch_resource({"annotations": {f"{RETRY}migrate": value}})
        found.settle(controllers=False)
        assert len(jobs(found, "blue")) == 1
        (job,) = [each for each in jobs(found, "red") if "status" not in found.objects[each]]
        if value == "a":
            found.change(job, FAILURE)
        else:
            found.put(made_ready(found.objects[job]))
        found.settle(controllers=False)
    assert found.ready()[1] == "Ready"
    found.patch_resource({"annotations": {f"{RETRY}migrate": "c"}})
    assert not [each for each in found.plan().actions if isinstance(each, Create)]


def test_the_number_of_failed_items_is_reported():
    found = harness(red="1", blue="1", green="1")
    finish(found, "green")
    fail(found, "red")
    fail(found, "blue")
    assert "item 0 of forEach (and 1 more): the run '1' of red has failed" in found.ready()[2]


@pytest.mark.parametrize("history", [0, 2])
def test_finished_objects_beyond_the_history_of_an_item_are_removed(history: int):
    found = harness(f", history: {history}", red="1", blue="1")
    for version in "12345":
        edit(found, red=version, blue="1")
        finish(found)
    assert (len(jobs(found, "red")), len(jobs(found, "blue"))) == (history, min(history, 1))


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([{"name": "red", "v": "1"}, {"name": "red", "v": "2"}], "two items are named 'red'"),
        ([{"v": "1"}], "an item has no name: for `once` it is text or a number, or a mapping with `id`"),
        ([{"name": "a b", "v": "1"}], "an item has no name"),
        ([{"name": f"n{number}", "v": ""} for number in range(MAX_ITEMS + 1)], f"at most {MAX_ITEMS} items"),
    ],
)
def test_items_without_a_name_of_their_own_are_errors(items: list[dict[str, str]], message: str):
    found = Harness.of(RULE % "", {"items": items})
    assert any(message in each.message and each.reason == "RenderFailed" for each in found.plan().problems)


def test_items_of_loops_in_loops_have_names_of_both():
    body = (
        "children: {m: {forEach: {team: spec.teams, env: team.envs}, once: '{{ spec.v }}', object: {apiVersion: batch/v1,"
        " kind: Job, metadata: {name: 'm-{{ team.name }}-{{ env }}'}, spec: {}}}}"
    )
    found = Harness.of(body, {"v": "1", "teams": [{"name": "red", "envs": ["dev", "prod"]}]})
    found.settle(controllers=False)
    assert sorted(each["item"] for each in found.status["ruleop"]["once"]["m"]) == ["red,dev", "red,prod"]


@pytest.mark.slow
def test_the_record_is_bounded_and_has_the_last_run_of_each_item():
    names = {f"n{number}": "0" for number in range(20)}
    found = harness(", history: 0", **names)
    for version in range(4):
        edit(found, **dict.fromkeys(names, str(version)))
        finish(found)
    recorded = runs(found)
    assert len([each for each in recorded if each.get("id") == "3"]) == 20
    assert len([each for each in recorded if "id" in each]) == 20 + MAX_RECORDED
    assert len(recorded[-1]["earlier"].split()) == 20 * 3 - MAX_RECORDED <= MAX_EARLIER_OF_ITEMS
    for version in ("0", "2"):
        found.edit(spec(**dict.fromkeys(names, version)))
        assert not [each for each in found.plan().actions if isinstance(each, Create)]


@pytest.mark.parametrize(
    "record", [7, [7], [{"run": 1}], [{"run": "a", "result": "Odd", "time": "", "item": 7}] * 999, [{"earlier": 7}]]
)
def test_a_record_that_others_wrote_is_read_as_far_as_it_makes_sense(record: Any):
    found = harness(red="1")
    assert found.resource is not None
    found.resource["status"]["ruleop"] = {"once": {"migrate": record}}
    found.settle()
    assert ("red", "1", "Succeeded") in results(found)


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("edit"),
            st.dictionaries(st.sampled_from(["red", "blue"]), st.sampled_from(["", "1", "2"]), max_size=2),
        ),
        st.tuples(st.sampled_from(["finish", "fail", "delete", "restart"]), st.integers(0, 3)),
        st.tuples(st.just("crash"), st.integers(0, 2)),
    ),
    max_size=14,
)


@pytest.mark.slow
@given(STEPS, st.integers(0, 2))
def test_no_run_of_an_item_ends_twice(steps: list[tuple[str, Any]], history: int) -> None:
    """An object may be deleted at any time but between its end and the pass that sees it; so may an item be removed."""
    found = harness(f", history: {history}", red="1")
    ends: Counter[str] = Counter()

    def recorded(job: ObjectKey) -> bool:
        return any(each.get("object") == job.name and each["result"] != "Running" for each in runs(found))

    for what, value in steps:
        match what:
            case "edit":
                found.edit(spec(**value))
            case "finish" | "fail":
                open_ = [each for each in jobs(found) if "status" not in found.objects[each]]
                if open_:
                    job = open_[value % len(open_)]
                    ends[job.name] += 1
                    found.change(job, FAILURE) if what == "fail" else found.put(made_ready(found.objects[job]))
            case "delete" if jobs(found):
                job = jobs(found)[value % len(jobs(found))]
                if "status" not in found.objects[job] or recorded(job):
                    found.delete(job)
            case "restart":
                found.history = type(found.history).NONE
            case "crash":
                found.step(crash_after=value)
                continue
        found.step()
    assert all(number == 1 for number in ends.values()), ends
    found.settle(controllers=False)
    assert not [each for each in found.plan().actions if isinstance(each, (Create, Delete))]


# -- request ids that come from what exists ----------------------------------------------------------------------------

BY_LIVE = """
children:
  db: {when: spec.on, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: db}}}
  init:
    once: "{{ live.db.metadata.uid | default('') }}"
    object: {apiVersion: batch/v1, kind: Job, metadata: {name: m}, spec: {}}
"""


def test_a_new_object_is_initialised_once_more():
    found = Harness.of(BY_LIVE, {"on": True})
    found.step()
    assert jobs(found) == [], "the id is empty before the object exists"
    found.settle()
    assert len(jobs(found)) == 1
    first = found.objects[key("db")]["metadata"]["uid"]
    edit_and_settle(found, {"on": False})
    assert len(jobs(found)) == 1
    edit_and_settle(found, {"on": True})
    assert found.objects[key("db")]["metadata"]["uid"] != first
    assert len(jobs(found)) == 2
    assert found.plan().quiet


def test_the_runs_of_items_may_depend_on_the_objects_of_items():
    body = """
    children:
      dbs: {forEach: spec.teams, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "db-{{ item }}"}}}
      init:
        forEach: spec.teams
        once: "{{ live.dbs['db-' ~ item].metadata.uid | default('') }}"
        object: {apiVersion: batch/v1, kind: Job, metadata: {name: "m-{{ item }}"}, spec: {}}
    """
    found = Harness.of(body, {"teams": ["red", "blue"]})
    found.settle()
    assert len(jobs(found)) == 2
    edit_and_settle(found, {"teams": ["red"]})
    edit_and_settle(found, {"teams": ["red", "blue"]})
    assert (len(jobs(found, "red")), len(jobs(found, "blue"))) == (1, 1)
    recorded = [each["item"] for each in found.status["ruleop"]["once"]["init"]]
    assert recorded.count("blue") == 2, "the database is another one"


def test_a_missing_live_value_without_a_default_is_an_error():
    found = Harness.of(BY_LIVE.replace(" | default('')", ""), {"on": True})
    assert [(each.child, each.reason) for each in found.plan().problems] == [("init", "RenderFailed")]


def test_nothing_runs_while_the_kind_that_decides_is_not_readable():
    found = Harness.of(BY_LIVE, {"on": True})
    found.add(config("other"))
    found.served["ConfigMap"] = Served.FORBIDDEN
    found.settle()
    assert jobs(found) == []
