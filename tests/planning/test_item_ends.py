"""Children of `finalize` with `forEachOf`: an item that is removed, or whose CR is deleted, keeps its object until what
ends it is ready."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.authoring.ruletests.running.plan_mode import made_ready
from ruleop.kubernetes.kinds import Object, ObjectKey
from ruleop.planning import Failed, Failure
from ruleop.planning.model.marks import APPLIED, ITEM, MAX_ITEM, PAUSED, SKIP_FINALIZE, KeyedProofs
from tests.planning.harness import Harness, key, project
from tests.planning.settled import edit_and_settle

DATABASE = """\
children:
  databases:
    forEach: spec.tenants
    as: tenant
    object:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "db-{{ tenant.name }}"}
      data: {size: "{{ tenant.size | default('1') }}"}
"""
DROP = """\
finalize:
  drop:
    forEachOf: databases
    object:
      apiVersion: batch/v1
      kind: Job
      metadata: {name: "drop-{{ tenant.name }}"}
      spec: {note: "{{ tenant.note | default('') }}"}
"""
RULE = DATABASE + DROP
FAILURE = {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}


def tenants(*names: str, **more: str) -> dict[str, Any]:
    return {"tenants": [{"name": name, **more} for name in names]}


def settled(body: str = RULE, *names: str) -> Harness:
    found = Harness.of(body, tenants(*(names or ("a", "b"))))
    found.settle(controllers=False)
    found.writes.clear()
    return found


def job(name: str) -> ObjectKey:
    return key(f"drop-{name}", "Job", group="batch")


def finish(found: Harness) -> None:
    """The Jobs end, and everything that this allows is done."""
    found.settle()


def test_the_item_is_recorded_and_its_object_has_no_owner_reference():
    found = settled()
    metadata = found.objects[key("db-a")]["metadata"]
    assert orjson.loads(metadata["annotations"][ITEM])["items"] == {"tenant": {"name": "a"}}
    assert "ownerReferences" not in metadata
    assert found.plan().quiet
    assert "drop" not in {each.id for each in found.plan().children}


def test_the_object_of_a_removed_item_goes_when_its_end_is_ready_and_what_ended_it_goes_then():
    found = settled()
    edit_and_settle(found, tenants("b"), controllers=False)
    assert found.names() == ["ConfigMap/db-a", "ConfigMap/db-b", "Job/drop-a"]
    waits = "databases waits for ConfigMap/shop/db-a to be deleted: Job/shop/drop-a is not ready"
    assert found.ready() == ("False", "Waiting", f"Job/drop-a: running; {waits}")
    assert found.plan().quiet
    finish(found)
    assert found.names() == ["ConfigMap/db-b"]
    assert [each for each in found.writes if each != "status"] == [
        "Create Job/drop-a",
        "Delete ConfigMap/db-a",
        "Delete Job/drop-a",
    ]
    assert found.ready()[:2] == ("True", "Ready")
    assert found.plan().quiet


def test_the_end_has_the_item_as_it_was_rendered_last():
    found = settled()
    edit_and_settle(found, {"tenants": [{"name": "a", "note": "last"}]}, controllers=False)
    assert found.plan().quiet
    edit_and_settle(found, tenants(), controllers=False)
    assert found.objects[job("a")]["spec"] == {"note": "last"}


def test_a_changed_item_with_the_same_object_has_not_ended():
    found = settled()
    edit_and_settle(found, tenants("a", "b", size="2"), controllers=False)
    assert found.names() == ["ConfigMap/db-a", "ConfigMap/db-b"]


def test_an_item_whose_object_has_a_new_name_has_not_ended():
    found = settled()
    renamed = project(RULE.replace("db-{{", "data-{{"))
    found.project = renamed
    found.settle(controllers=False)
    assert found.names() == ["ConfigMap/data-a", "ConfigMap/data-b"]


def test_equal_items_of_two_children_end_each_for_itself():
    users = DATABASE.replace("children:\n", "").replace("databases:", "users:").replace("db-{{", "user-{{")
    condition = "    as: tenant\n    when: spec.databases | default(true)\n"
    found = settled(DATABASE.replace("    as: tenant\n", condition) + users + DROP, "a")
    edit_and_settle(found, {**tenants("a"), "databases": False}, controllers=False)
    assert found.names() == ["ConfigMap/db-a", "ConfigMap/user-a", "Job/drop-a"]
    edit_and_settle(found, {**tenants("a", size="2"), "databases": False}, controllers=False)
    assert found.objects[key("user-a")]["data"] == {"size": "2"}, "it does not wait for the end of the other"
    finish(found)
    assert found.names() == ["ConfigMap/user-a"]


def test_an_item_whose_condition_is_false_has_ended():
    found = settled(RULE.replace("    as: tenant\n", "    as: tenant\n    when: tenant.on | default(true)\n"))
    found.edit({"tenants": [{"name": "a", "on": False}, {"name": "b"}]})
    finish(found)
    assert found.names() == ["ConfigMap/db-b"]
    assert "Create Job/drop-a" in found.writes


def test_the_condition_of_the_end_decides_for_each_item():
    found = settled(RULE.replace("forEachOf: databases", "forEachOf: databases\n    when: tenant.name != 'a'"))
    edit_and_settle(found, tenants(), controllers=False)
    assert found.names() == ["ConfigMap/db-b", "Job/drop-b"]


def test_an_item_that_is_back_waits_for_its_end_and_is_created_again():
    found = settled()
    edit_and_settle(found, tenants("b"), controllers=False)
    edit_and_settle(found, tenants("a", "b", size="2"), controllers=False)
    assert found.objects[key("db-a")]["data"] == {"size": "1"}
    waits = "databases waits for Job/shop/drop-a to be gone: it ends the item that was there before"
    assert waits in found.ready()[2]
    found.writes.clear()
    finish(found)
    assert [each for each in found.writes if "db-a" in each or "drop-a" in each] == [
        "Delete ConfigMap/db-a",
        "Delete Job/drop-a",
        "Create ConfigMap/db-a",
    ]
    assert found.objects[key("db-a")]["data"] == {"size": "2"}
    assert found.plan().quiet


def test_an_object_that_somebody_deleted_is_not_created_before_the_end_is_over():
    found = settled()
    edit_and_settle(found, tenants("b"), controllers=False)
    found.delete(key("db-a"))
    edit_and_settle(found, tenants("a", "b"), controllers=False)
    assert found.names() == ["ConfigMap/db-b", "Job/drop-a"]
    finish(found)
    assert found.names() == ["ConfigMap/db-a", "ConfigMap/db-b"]


def test_the_end_stays_until_the_object_is_gone():
    found = settled()
    found.change(key("db-a"), {"metadata": {"finalizers": ["example.com/x"]}})
    found.edit(tenants("b"))
    finish(found)
    assert found.names() == ["ConfigMap/db-a", "ConfigMap/db-b", "Job/drop-a"]
    assert found.plan().quiet
    found.change(key("db-a"), {"metadata": {"finalizers": None}})
    finish(found)
    assert found.names() == ["ConfigMap/db-b"]


def test_a_failed_end_keeps_the_object_and_delays_no_other_item():
    found = settled(RULE, "a", "b", "c")
    edit_and_settle(found, tenants("c"), controllers=False)
    found.change(job("a"), FAILURE)
    found.events.clear()
    found.put(made_ready(found.objects[job("b")]))
    found.settle(controllers=False)
    assert found.names() == ["ConfigMap/db-a", "ConfigMap/db-c", "Job/drop-a"]
    assert found.ready()[1:] == ("ChildFailed", "drop: Job/drop-a: failed")
    assert found.condition("Stalled")["status"] == "True"
    assert [each.reason for each in found.events if each.type == "Warning"] == ["ChildFailed"]
    found.delete(job("a"))
    finish(found)
    assert found.names() == ["ConfigMap/db-c"]


def test_an_end_that_cannot_be_rendered_delays_no_other_child():
    found = settled(RULE.replace("tenant.note | default('')", "tenant.note"))
    edit_and_settle(found, {"tenants": [{"name": "c"}]}, controllers=False)
    assert found.names() == ["ConfigMap/db-a", "ConfigMap/db-b", "ConfigMap/db-c"]
    assert found.ready()[1] == "RenderFailed"
    assert "the end of the item of ConfigMap/shop/db-a (and 1 more): " in found.ready()[2]


def test_skip_finalize_gives_up_on_ends_with_an_event():
    found = settled()
    edit_and_settle(found, tenants("b"), controllers=False)
    found.patch_resource({"annotations": {SKIP_FINALIZE: "true"}})
    planned = found.step()
    assert {(each.key, each.why) for each in planned.actions} == {(key("db-a"), "skipped"), (job("a"), "finalized")}  # type: ignore[union-attr]
    found.settle(controllers=False)
    assert found.names() == ["ConfigMap/db-b"]
    assert found.plan().quiet


def test_nothing_ends_in_a_pause_nor_directly_after_a_change_of_the_rules():
    found = settled()
    found.patch_resource({"annotations": {PAUSED: "true"}})
    edit_and_settle(found, tenants("b"), controllers=False)
    assert "Job/drop-a" not in found.names()
    found.patch_resource({"annotations": {PAUSED: None}})
    found.held_until = "2026-01-01T00:00:30Z"
    found.step()
    assert "Job/drop-a" not in found.names()
    assert found.ready()[2] == "the deletion of 1 object is held back until 00:00:30 UTC"
    found.held_until = ""
    found.settle(controllers=False)
    assert "Job/drop-a" in found.names()


def test_nothing_ends_in_a_pass_with_an_error_nor_before_other_writes_are_done():
    body = RULE.replace(
        "finalize:",
        "  web: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {v: '{{ spec.v }}'}}}\nfinalize:",
    )
    found = Harness.of(body, {**tenants("a"), "v": "1"})
    found.settle()
    edit_and_settle(found, tenants(), controllers=False)
    assert found.ready()[1] == "RenderFailed"
    assert "Job/drop-a" not in found.names()
    found.edit({**tenants(), "v": "2"})
    found.refuse[key("web")] = Failed(Failure.INVALID, "no")
    found.step()
    assert "Job/drop-a" not in found.names()
    found.refuse.clear()
    found.settle(controllers=False)
    assert "Job/drop-a" in found.names()


def test_an_orphan_has_no_end():
    found = settled(RULE.replace("    as: tenant\n", "    as: tenant\n    deletion: orphan\n"))
    edit_and_settle(found, tenants("b"), controllers=False)
    assert found.names() == ["ConfigMap/db-a", "ConfigMap/db-b"]
    assert found.objects[key("db-a")]["metadata"].get("annotations") in (None, {})


def test_an_end_waits_for_those_that_are_deleted_before_its_object():
    body = RULE.replace("    as: tenant\n", "    as: tenant\n    deleteAfter: [web]\n").replace(
        "finalize:",
        "  web: {when: spec.tenants, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}}}\nfinalize:",
    )
    found = settled(body, "a")
    found.change(key("web"), {"metadata": {"finalizers": ["example.com/x"]}})
    edit_and_settle(found, tenants(), controllers=False)
    assert found.names() == ["ConfigMap/db-a", "ConfigMap/web"]
    found.change(key("web"), {"metadata": {"finalizers": None}})
    found.settle(controllers=False)
    assert found.names() == ["ConfigMap/db-a", "Job/drop-a"]
    finish(found)
    assert found.names() == []


def test_dropping_the_end_from_the_rules_removes_the_record_and_what_has_begun():
    found = settled()
    edit_and_settle(found, tenants("b"), controllers=False)
    found.project = project(DATABASE)
    found.settle(controllers=False)
    assert found.names() == ["ConfigMap/db-b"]
    assert ITEM not in found.objects[key("db-b")]["metadata"].get("annotations", {})


# -- a CR that is deleted ----------------------------------------------------------------------------------------------


def test_the_items_of_a_deleted_cr_end_after_its_other_finalize_children():
    found = settled(RULE + "  last: {object: {apiVersion: batch/v1, kind: Job, metadata: {name: last}}}\n")
    found.end()
    found.settle(controllers=False)
    assert found.names() == ["ConfigMap/db-a", "ConfigMap/db-b", "Job/last"]
    found.put(made_ready(found.objects[key("last", "Job", group="batch")]))
    found.settle(controllers=False)
    assert found.names() == ["ConfigMap/db-a", "ConfigMap/db-b", "Job/drop-a", "Job/drop-b"]
    assert found.ready()[1] == "Finalized"
    finish(found)
    assert (found.resource, found.objects) == (None, {})
    assert [found.writes.count(f"Create Job/{name}") for name in ("last", "drop-a", "drop-b")] == [1, 1, 1]


def test_a_deleted_cr_reports_the_ends_of_its_items():
    found = settled(RULE, "a")
    found.end()
    found.settle(controllers=False)
    waits = "ConfigMap/shop/db-a is to be deleted: Job/shop/drop-a is not ready"
    assert found.ready() == ("False", "Finalizing", f"Job/drop-a: running; {waits}")
    assert found.plan().quiet
    found.change(job("a"), FAILURE)
    found.events.clear()
    found.settle(controllers=False)
    assert found.ready() == ("False", "Finalizing", f"drop: Job/drop-a: failed; {waits}")
    assert found.condition("Stalled")["status"] == "True"
    assert [(each.type, each.reason) for each in found.events] == [("Warning", "ChildFailed")]
    found.patch_resource({"annotations": {SKIP_FINALIZE: "true"}})
    found.settle(controllers=False)
    assert (found.resource, found.objects) == (None, {})


def test_other_objects_stay_until_all_items_have_ended():
    body = "reach: cluster\n" + RULE.replace(
        "finalize:",
        "  login: {namespace: far, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: login}}}\nfinalize:",
    )
    found = settled(body, "a")
    found.end()
    found.settle(controllers=False)
    assert found.names() == ["ConfigMap/db-a", "ConfigMap/login", "Job/drop-a"]
    assert "ConfigMap/far/login is to be deleted when all items have ended" in found.ready()[2]
    finish(found)
    assert (found.resource, found.objects) == (None, {})


def test_cascade_orphan_ends_no_item():
    found = settled(RULE, "a")
    found.patch_resource({"finalizers": [*found.finalizers, "orphan"]})
    found.end()
    found.settle(controllers=False)
    assert found.names() == ["ConfigMap/db-a"]


# -- the record --------------------------------------------------------------------------------------------------------


def signed() -> Harness:
    class Signing(Harness):
        def observed(self, **more: Any) -> Any:
            return replace(super().observed(**more), proofs=KeyedProofs((b"k" * 32,)))

        def claim(self, key_: ObjectKey) -> Any:
            return replace(super().claim(key_), owned=True)

    found = Signing(project(RULE), Harness.of(RULE, tenants("a", "b")).resource)
    found.settle(controllers=False)
    return found


def test_a_forged_item_is_not_ended_but_written_again_or_reported():
    found = signed()
    theirs = found.objects[key("db-b")]["metadata"]["annotations"][ITEM]
    true = found.objects[key("db-a")]["metadata"]["annotations"][ITEM]
    forged = orjson.dumps({**orjson.loads(true), "items": {"tenant": {"name": "victim"}}}).decode()
    for text in (forged, theirs, "{", "[]", "x" * 10_000, "[" * 5000, None):
        found.change(key("db-a"), {"metadata": {"annotations": {ITEM: text}}})
        found.settle(controllers=False)
        assert found.objects[key("db-a")]["metadata"]["annotations"][ITEM] == true
    found.change(key("db-a"), {"metadata": {"annotations": {ITEM: forged}}})
    edit_and_settle(found, tenants("b"), controllers=False)
    assert found.names() == ["ConfigMap/db-a", "ConfigMap/db-b"]
    assert found.ready()[1] == "ChildFailed"
    assert "the item of ConfigMap/shop/db-a is not recorded on it" in found.ready()[2]
    found.patch_resource({"annotations": {SKIP_FINALIZE: "true"}})
    found.settle(controllers=False)
    assert found.names() == ["ConfigMap/db-b"]


def test_an_object_that_claims_to_be_of_another_child_is_not_ended_as_one_of_that():
    users = DATABASE.replace("children:\n", "").replace("databases:", "users:").replace("db-{{", "user-{{")
    leave = DROP.replace("finalize:\n", "").replace("drop", "leave").replace("databases", "users")
    found = settled(DATABASE + users.replace("spec.tenants", "spec.tenants[1:]") + DROP + leave)
    record = found.objects[key("db-a")]["metadata"]["annotations"][APPLIED]
    forged = record.replace('"id":"databases"', '"id":"users"')
    found.change(key("db-a"), {"metadata": {"annotations": {APPLIED: forged}}})
    found.edit(tenants("c", "b"))
    found.step()
    assert not [each for each in found.objects if each.kind == "Job"]
    assert "the item of ConfigMap/shop/db-a is not recorded on it" in found.ready()[2]


def test_templates_in_an_item_are_text():
    found = settled()
    edit_and_settle(found, {"tenants": [{"name": "a", "note": "{{ 7 * 7 }}"}]}, controllers=False)
    edit_and_settle(found, tenants(), controllers=False)
    assert found.objects[job("a")]["spec"] == {"note": "{{ 7 * 7 }}"}


def test_an_item_that_is_too_large_fails_alone():
    found = settled()
    edit_and_settle(found, {"tenants": [{"name": "a", "note": "x" * MAX_ITEM}, {"name": "c"}]}, controllers=False)
    assert found.names() == ["ConfigMap/db-a", "ConfigMap/db-b", "ConfigMap/db-c"], "nothing is pruned with an error"
    assert found.ready()[1] == "RenderFailed"
    assert "bytes, and at most 4,096 are recorded for drop" in found.ready()[2]
    assert "watches.yaml:" in found.ready()[2]


def test_all_names_of_loops_in_loops_are_recorded():
    body = RULE.replace("forEach: spec.tenants\n    as: tenant", "forEach: {tenant: spec.tenants, zone: tenant.zones}")
    body = body.replace("-{{ tenant.name }}", "-{{ tenant.name }}-{{ zone }}")
    found = Harness.of(body, {"tenants": [{"name": "a", "zones": ["x", "y"]}]})
    found.settle(controllers=False)
    edit_and_settle(found, {"tenants": [{"name": "a", "zones": ["x"]}]}, controllers=False)
    # The item of the other zone has changed too, as its tenant has, but it has the same object.
    assert found.names() == ["ConfigMap/db-a-x", "ConfigMap/db-a-y", "Job/drop-a-y"]


def test_a_create_only_child_records_its_item_as_well():
    found = settled(RULE.replace("    as: tenant\n", "    as: tenant\n    apply: {strategy: create-only}\n"))
    edit_and_settle(found, tenants("a", "b", note="new"), controllers=False)
    assert found.plan().quiet
    edit_and_settle(found, tenants(), controllers=False)
    assert found.objects[job("a")]["spec"] == {"note": "new"}


# -- whatever happens --------------------------------------------------------------------------------------------------


class Walk(Harness):
    """A harness that allows no object to be created or deleted too early."""

    def delete(self, key_: ObjectKey) -> None:
        other = job(_tenant(key_)) if key_.kind == "ConfigMap" else key(f"db-{_tenant(key_)}")
        if key_.kind == "ConfigMap":
            assert other in self.objects, f"{key_} goes without an end"
        else:
            assert other not in self.objects, f"{key_} goes before the object of the item"
        assert self.is_done(job(_tenant(key_))), f"{key_} goes before the end is ready"
        super().delete(key_)

    def put(self, obj: Object, *, fresh: bool = False) -> dict[str, Any]:
        key_ = ObjectKey.of(obj)
        assert not (fresh and key_.kind == "ConfigMap" and job(_tenant(key_)) in self.objects), "the end is not over"
        return super().put(obj, fresh=fresh)

    def is_done(self, key_: ObjectKey) -> bool:
        status = self.objects[key_].get("status", {})
        return any(each["type"] == "Complete" for each in status.get("conditions", ()))

    def jobs(self, names: Collection[str]) -> list[ObjectKey]:
        """Those of these tenants that have not ended."""
        return [
            each for each in self.objects if each.kind == "Job" and _tenant(each) in names and not self.is_done(each)
        ]

    # -- steps of others -----------------------------------------------------------------------------------------------

    def end_jobs(self, names: Collection[str]) -> None:
        for each in self.jobs(names):
            self.put(made_ready({name: value for name, value in self.objects[each].items() if name != "status"}))

    def fail_jobs(self, names: Collection[str]) -> None:
        for each in self.jobs(names):
            self.change(each, FAILURE)

    def retry_jobs(self, names: Collection[str]) -> None:
        for each in self.jobs(names):
            super().delete(each)

    def hold(self, names: Collection[str], finalizers: list[str] | None) -> None:
        for each in [each for each in self.objects if each.kind == "ConfigMap" and _tenant(each) in names]:
            if finalizers is None or "deletionTimestamp" not in self.objects[each]["metadata"]:
                self.change(each, {"metadata": {"finalizers": finalizers}})


def _tenant(key_: ObjectKey) -> str:
    return key_.name.rpartition("-")[2]


STEPS: dict[str, Callable[[Walk, set[str], int], object]] = {
    "edit": lambda found, names, number: found.edit(tenants(*sorted(names), size=str(number))),
    "end": lambda found, names, _: found.end_jobs(names),
    "fail": lambda found, names, _: found.fail_jobs(names),
    "retry": lambda found, names, _: found.retry_jobs(names),
    "hold": lambda found, names, _: found.hold(names, ["example.com/x"]),
    "release": lambda found, names, _: found.hold(names, None),
    "crash": lambda found, _, number: found.step(crash_after=number),
    "pass": lambda found, _, __: found.step(),
}


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["merge", "create-only"])
@given(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.sets(st.sampled_from("abc")), st.integers(0, 3))))
def test_no_object_of_an_item_goes_before_its_end_is_ready(
    strategy: str, steps: list[tuple[str, set[str], int]]
) -> None:
    """Items that come, go, change and come back, ends that fail, objects that are held, and crashes in between; and
    in the end nothing is left, and nothing is written at rest."""
    body = RULE.replace("    as: tenant\n", f"    as: tenant\n    apply: {{strategy: {strategy}}}\n")
    found = Walk.of(body, tenants("a", "b"))
    assert isinstance(found, Walk)
    found.settle()
    found.edit(tenants("b"))
    found.step()
    for step, names, number in steps:
        STEPS[step](found, names, number)
    for _ in range(4):
        found.hold("abc", None)
        found.settle(controllers=False)
        found.end_jobs("abc")
    found.settle(controllers=False)
    assert found.resource is not None
    assert found.names() == sorted(f"ConfigMap/db-{each['name']}" for each in found.resource["spec"]["tenants"])
    assert found.plan().quiet
    found.end()
    while found.resource is not None:
        found.settle(controllers=False)
        found.end_jobs("abc")
    assert found.objects == {}
