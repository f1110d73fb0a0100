"""Undesired objects are deleted, but only if it is known that no child desires them."""

from __future__ import annotations

import pytest

from ruleop.kubernetes.merge import Record, encode
from ruleop.kubernetes.merge.fields import FieldSet
from ruleop.planning import Delete, Failed, Failure, Patch
from ruleop.planning.child.existing import read_record
from ruleop.planning.model.marks import APPLIED, OWNER, PART_OF
from tests.planning.harness import FINALIZER, Harness, app, config, key
from tests.planning.settled import edit_and_settle, settled

A = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ spec.name }}'}\n"
B = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {v: '{{ spec.v }}'}\n"
BODY = "children: {a: {template: a.yaml, waitFor: spec.go%s}, b: {template: b.yaml%s}}"


def harness(a: str = "", b: str = "") -> Harness:
    return settled(BODY % (a, b), {"name": "a", "v": "1", "go": True}, a=A, b=B)


def renamed(found: Harness, **more: object) -> Harness:
    found.edit({"name": "other", "v": "1", "go": True, **more})
    return found


def deletes(found: Harness) -> list[str]:
    return [action.key.name for action in found.plan().actions if isinstance(action, Delete)]


def test_an_object_no_longer_rendered_is_deleted_after_the_writes_by_uid_and_version():
    found = renamed(harness())
    (create, delete) = found.plan().actions
    assert create.key.name == "other"
    assert isinstance(delete, Delete)
    assert (delete.why, delete.after_writes) == ("pruned", True)
    assert delete.needs == {"a"}
    assert delete.live == found.objects[key("a")]
    found.settle()
    assert found.names() == ["ConfigMap/b", "ConfigMap/other"]


def test_nothing_is_pruned_whose_replacement_is_not_written_because_of_a_rendering_error():
    found = renamed(harness())
    del found.resource["spec"]["v"]
    assert deletes(found) == []


@pytest.mark.parametrize(
    "broken",
    [
        "status: {x: '{{ spec.nope }}'}",
        "status: s.yaml",
        "conditions: [{type: X, status: spec.nope}]",
        "conditions: [{type: X, status: 'true', message: '{{ spec.nope }}'}]",
    ],
)
def test_an_error_in_status_or_conditions_stops_neither_pruning_nor_the_writes_of_children(broken: str):
    found = settled(
        BODY % ("", "") + "\n" + broken,
        {"name": "a", "v": "1", "go": True, "nope": "1"},
        a=A,
        b=B,
        s="x: {{ spec.nope }}\n",
    )
    renamed(found)
    assert deletes(found) == ["a"]
    found.settle()
    assert found.names() == ["ConfigMap/b", "ConfigMap/other"]
    assert found.ready()[:2] == ("False", "RenderFailed")
    renamed(found, nope="2")
    found.settle()
    assert found.ready()[0] == "True"


def test_a_waiting_status_does_not_delay_pruning():
    found = settled(
        BODY % ("", "") + "\nstatus: {x: '{{ b.data.later }}'}", {"name": "a", "v": "1", "go": True}, a=A, b=B
    )
    assert deletes(renamed(found)) == ["a"]


def test_nothing_is_pruned_that_a_name_conflict_keeps_from_being_replaced():
    found = harness()
    found.add(config("other"))
    assert deletes(renamed(found)) == []


def test_nothing_is_pruned_when_the_write_of_its_replacement_fails():
    found = renamed(harness())
    found.refuse[key("other")] = Failed(Failure.OTHER, "no")
    found.step()
    assert "ConfigMap/a" in found.names()
    found.refuse.clear()
    found.settle()
    assert "ConfigMap/a" not in found.names()


def test_an_old_rejection_does_not_delay_pruning():
    found = renamed(harness())
    found.refused_before({key("b"): Failed(Failure.IMMUTABLE, "no", "another wish")})
    assert deletes(found) == ["a"]


def test_nothing_is_pruned_shortly_after_a_reload():
    found = renamed(harness())
    found.held_until = "2026-01-01T12:00:30Z"
    assert deletes(found) == []


def test_held_back_pruning_is_reported_with_its_objects_and_time():
    found = harness()
    left_behind(found, {**config("dropped"), "kind": "Secret"}, "dropped")
    renamed(found)
    found.held_until = "2026-01-01T12:00:30Z"
    found.settle()
    assert found.ready() == ("False", "Progressing", "the deletion of 2 objects is held back until 12:00:30 UTC")
    assert {each["type"]: each["status"] for each in found.status["conditions"]} == {
        "Ready": "False",
        "Reconciling": "True",
        "Stalled": "False",
    }
    assert found.plan().quiet, "the deadline is fixed: nothing is written until it has passed"
    found.held_until = ""
    reported = len(found.events)
    found.settle()
    assert {"ConfigMap/a", "Secret/dropped"}.isdisjoint(found.names())
    assert found.ready() == ("True", "Ready", "")
    assert found.events[reported:] == [], "all was written before"


def test_objects_to_be_released_are_reported_as_such():
    found = harness(", deletion: orphan")
    renamed(found)
    found.held_until = "2026-01-01T12:00:30Z"
    found.settle()
    assert found.ready()[2] == "the release of 1 object is held back until 12:00:30 UTC"


def test_new_rules_without_pruning_delay_nothing():
    found = harness()
    found.held_until = "2026-01-01T12:00:30Z"
    found.settle()
    assert found.ready()[0] == "True"


def test_held_back_pruning_is_reported_beside_waits():
    found = harness()
    left_behind(found, {**config("dropped"), "kind": "Secret"}, "dropped")
    renamed(found, go=False)
    found.held_until = "2026-01-01T12:00:30Z"
    found.settle()
    assert found.ready()[:2] == ("False", "Waiting")
    assert found.ready()[2].startswith("the deletion of 2 objects is held back while a waits, until 12:00:30 UTC; ")


def test_a_waiting_child_keeps_its_own_objects_and_those_without_a_record():
    found = harness()
    found.change(key("b"), {"metadata": {"annotations": {APPLIED: encode(Record("gone", FieldSet()))}}})
    left_behind(found, config("bare", {}))
    left_behind(found, {**config("dropped"), "kind": "Secret"}, "dropped")
    renamed(found, go=False)
    assert deletes(found) == ["dropped"]
    renamed(found, go=True)
    assert sorted(deletes(found)) == ["a", "bare", "dropped"]


def test_a_waiting_child_keeps_objects_of_its_kinds_with_unknown_ids():
    found = harness()
    left_behind(found, config("dropped"), "dropped")
    left_behind(found, {**config("dropped"), "apiVersion": "example.com/v1"}, "dropped")
    renamed(found, go=False)
    assert [each.key.group for each in found.plan().actions if isinstance(each, Delete)] == ["example.com"]
    renamed(found, go=True)
    assert sorted(deletes(found)) == ["a", "dropped", "dropped"]


@pytest.mark.parametrize("labels", ["{a: '{{ spec.no }}'}", '{"{% for each in spec.no %}": {"{{ each }}": x}}'])
def test_a_child_that_cannot_be_rendered_keeps_its_object_by_its_name(labels: str):
    found = settled("children: {a: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}}", {})
    child = f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a, labels: {labels}}}}}"
    found.project = Harness.of(f"children: {{b: {{waitFor: spec.go, object: {child}}}}}").project
    edit_and_settle(found, {"go": False})
    assert key("a") in found.objects


def left_behind(found: Harness, obj: dict, id_: str = "") -> None:
    """An object of the CR with a record of this id."""
    model = found.objects[key("b")]["metadata"]
    notes = {"annotations": {APPLIED: encode(Record(id_, FieldSet()))}} if id_ else {}
    obj["metadata"] |= {
        "ownerReferences": model["ownerReferences"],
        "labels": {PART_OF: model["labels"][PART_OF]},
        **notes,
    }
    found.add(obj)


def test_a_waiting_child_with_a_new_id_keeps_its_object():
    claim = (
        "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {volumeName: '{{ spec.volume }}'}}"
    )
    found = settled(f"children: {{data: {{object: {claim}}}}}", {"volume": "x"})
    uid = found.objects[key("data", "PersistentVolumeClaim")]["metadata"]["uid"]
    found.project = Harness.of(f"children: {{storage: {{waitFor: spec.go, object: {claim}}}}}").project
    edit_and_settle(found, {"volume": "x", "go": False})
    assert found.ready()[1] == "Waiting"
    edit_and_settle(found, {"volume": "x", "go": True})
    live = found.objects[key("data", "PersistentVolumeClaim")]
    assert live["metadata"]["uid"] == uid
    assert read_record(live).id == "storage"


def test_an_object_that_is_being_deleted_is_not_deleted_again():
    found = harness()
    found.change(key("a"), {"metadata": {"finalizers": ["x/y"]}})
    renamed(found)
    found.settle()
    assert found.objects[key("a")]["metadata"]["deletionTimestamp"]
    assert deletes(found) == []
    renamed(found, name="third")
    assert deletes(found) == ["other"]
    found.edit({"name": "a", "v": "1", "go": True})
    assert [(wait.child, wait.for_what) for wait in found.plan().waits] == [("a", "ConfigMap/shop/a to be gone")]
    assert deletes(found) == []


def test_an_orphan_no_longer_desired_is_released():
    found = renamed(harness(", deletion: orphan"))
    (release,) = [action for action in found.plan().actions if isinstance(action, Patch)]
    assert release.why == "released"
    assert release.needs == {"a"}
    found.settle()
    metadata = found.objects[key("a")]["metadata"]
    assert not {OWNER, APPLIED} & set(metadata.get("annotations") or {})
    assert "labels" not in metadata
    assert "ownerReferences" not in metadata


def test_a_removed_id_is_pruned_by_the_policy_on_its_object():
    for policy, left in (("delete", ["ConfigMap/b"]), ("orphan", ["ConfigMap/a", "ConfigMap/b"])):
        found = harness(f", deletion: {policy}")
        found.project = Harness.of("children: {b: {template: b.yaml}}", b=B).project
        found.settle()
        assert found.names() == left
        assert found.finalizers == []


def test_a_policy_that_cannot_be_evaluated_is_read_from_the_object():
    found = settled(
        "children: {a: {template: a.yaml, when: spec.on, deletion: '{{ spec.keep }}'}}",
        {"name": "a", "on": True, "keep": "orphan"},
        a=A,
    )
    edit_and_settle(found, {"name": "a", "on": False})
    assert found.names() == ["ConfigMap/a"]


def test_the_policy_of_the_last_rules_counts_when_a_child_is_removed():
    found = settled(
        "children: {a: {template: a.yaml, when: spec.on, deletion: '{{ spec.keep }}'}}",
        {"name": "a", "on": True, "keep": "delete"},
        a=A,
    )
    edit_and_settle(found, {"name": "a", "on": False, "keep": "orphan"})
    assert found.names() == ["ConfigMap/a"]


def test_each_item_keeps_its_deletion_policy():
    body = "children: {a: {template: a.yaml, forEach: spec.items, deletion: '{{ item.keep }}'}}"
    text = A.replace("spec.name", "item.name")
    found = settled(body, {"items": [{"name": "x", "keep": "orphan"}, {"name": "z", "keep": "delete"}]}, a=text)
    edit_and_settle(found, {"items": []})
    assert found.names() == ["ConfigMap/x"]


def test_a_cr_that_moves_to_another_watch_loses_the_children_of_the_old_one():
    found = harness()
    found.project = Harness.of("children: {c: {template: c.yaml}}", c=B.replace("name: b", "name: c")).project
    found.settle()
    assert found.names() == ["ConfigMap/c"]


def test_a_child_that_moves_to_finalize_is_pruned_and_recreated_in_the_deletion():
    found = harness()
    found.project = Harness.of("children: {b: {template: b.yaml}}\nfinalize: {a: {template: a.yaml}}", a=A, b=B).project
    found.settle()
    assert found.names() == ["ConfigMap/b"]
    assert found.finalizers == [FINALIZER]


def test_children_are_pruned_in_reverse_order_and_unknown_ones_first():
    body = "children: {web: {template: web.yaml, when: spec.on}, db: {template: db.yaml, when: spec.on}, last: {template: last.yaml, when: spec.on}}"
    texts = {name: B.replace("name: b", f"name: {name}").replace("{{ spec.v }}", "1") for name in ("db", "last")}
    web = B.replace("name: b", "name: web").replace("{{ spec.v }}", "{{ db.metadata.name }}")
    found = settled(body, {"on": True}, web=web, **texts)
    found.change(key("last"), {"metadata": {"annotations": {APPLIED: encode(Record("x", FieldSet()))}}})
    found.edit({"on": False})
    assert deletes(found) == ["last", "web", "db"]


@pytest.mark.parametrize("hint", [{}, {"labels": {PART_OF: "x"}}])
def test_objects_of_others_are_never_pruned(hint: dict):
    found = harness()
    found.add(config("theirs", {}, **hint))
    theirs = {"labels": {PART_OF: found.objects[key("a")]["metadata"]["labels"][PART_OF]}}
    found.add(config("labelled", {}, **theirs))
    assert deletes(renamed(found)) == ["a"]


def test_ruleops_own_metadata_is_removed_and_that_of_others_stays():
    found = harness(", deletion: orphan")
    more = {
        "labels": {"x": "y"},
        "annotations": {"n": "1"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "x"}],
    }
    found.change(key("a"), {"metadata": more})
    renamed(found)
    found.settle()
    metadata = found.objects[key("a")]["metadata"]
    assert (metadata["labels"], metadata["annotations"]) == ({"x": "y"}, {"n": "1"})
    assert [each["uid"] for each in metadata["ownerReferences"]] == ["x"]
    assert app()["metadata"]["uid"] == "cr-1"
