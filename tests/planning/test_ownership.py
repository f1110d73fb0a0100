"""Ownership: by ownerReference if possible, else by annotation and finalizer; objects of other owners are never
changed."""

from __future__ import annotations

import copy

import orjson
import pytest

from ruleop.kubernetes.kinds import Kind, ObjectKey
from ruleop.kubernetes.merge import decode
from ruleop.planning import AddFinalizer, Failed, Failure, KindInfo, Owner, Patch, Served, State
from ruleop.planning.model.marks import APPLIED, MANAGED_BY, OWNER, PART_OF
from tests.planning.harness import CR, FINALIZER, RESYNCED, Harness, app, config, key
from tests.planning.settled import edit_and_settle, settled

ONE = "children: {a: {template: a.yaml%s}}"
A = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '{{ spec.v }}'}\n"
FAR = "reach: cluster\nchildren: {a: {template: a.yaml, namespace: far}}"


def one(more: str = "", v: str = "1") -> Harness:
    return Harness.of(ONE % more, {"v": v}, a=A)


def owned(harness: Harness, name: str = "a", namespace: str = "shop") -> dict:
    return harness.objects[key(name, namespace=namespace)]["metadata"]


# -- metadata ----------------------------------------------------------------------------------------------------------


def test_a_child_has_owner_labels_and_a_record_without_values():
    harness = one(v="canary")
    harness.settle()
    metadata = owned(harness)
    (reference,) = metadata["ownerReferences"]
    assert reference == {
        "apiVersion": "example.com/v1",
        "kind": "App",
        "name": "web",
        "uid": "cr-1",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert metadata["labels"] == {MANAGED_BY: "ruleop", PART_OF: Owner.of(app()).part_of}
    assert OWNER not in metadata["annotations"]
    assert decode(metadata["annotations"][APPLIED]).id == "a"
    assert "canary" not in metadata["annotations"][APPLIED]
    assert harness.finalizers == []


def test_the_part_of_label_identifies_the_cr_across_versions():
    label = Owner.of(app()).part_of
    assert Owner.of({**app(), "apiVersion": "example.com/v2"}).part_of == label
    assert Owner.of(app(namespace="x")).part_of != label
    assert Owner.of(app(name="x")).part_of != label
    assert len(label) <= 63


def test_a_foreign_managed_by_label_is_kept():
    harness = one(", adopt: orphans")
    harness.add(config("a", labels={MANAGED_BY: "Helm"}))
    harness.settle()
    assert owned(harness)["labels"][MANAGED_BY] == "Helm"
    edit_and_settle(harness, {"v": "2"})
    assert owned(harness)["labels"][MANAGED_BY] == "Helm"


def test_drift_of_ruleops_managed_by_label_is_reverted():
    harness = one()
    harness.settle()
    harness.change(key("a"), {"metadata": {"labels": {MANAGED_BY: "other"}}})
    harness.settle()
    assert owned(harness)["labels"][MANAGED_BY] == "ruleop"


def test_a_template_may_set_managed_by():
    harness = settled(
        ONE % "",
        a=A.replace("name: a}", "name: a, labels: {app.kubernetes.io/managed-by: platform}}").replace(
            "{{ spec.v }}", "1"
        ),
    )
    assert owned(harness)["labels"][MANAGED_BY] == "platform"


# -- without an ownerReference -----------------------------------------------------------------------------------------


def test_a_child_in_another_namespace_has_an_owner_annotation_and_the_cr_a_finalizer():
    harness = Harness.of(FAR, {"v": "1"}, a=A)
    planned = harness.step()
    assert planned.actions[0] == AddFinalizer(CR, FINALIZER)
    assert all("" in action.needs for action in planned.actions[1:])
    metadata = owned(harness, namespace="far")
    assert "ownerReferences" not in metadata
    assert orjson.loads(metadata["annotations"][OWNER]) == {
        "group": "example.com",
        "kind": "App",
        "namespace": "shop",
        "name": "web",
        "uid": "cr-1",
        "of": "ConfigMap./far/a",
    }
    harness.settle()
    assert harness.plan().quiet
    assert harness.finalizers == [FINALIZER]


def test_creating_children_elsewhere_depends_on_the_write_of_the_finalizer():
    harness = Harness.of(FAR, {"v": "1"}, a=A)
    create = harness.plan().actions[1]
    assert create.needs == {""}


def test_a_cluster_scoped_cr_owns_children_in_all_namespaces():
    head = "- group: example.com\n  version: v1\n  kind: Global\n"
    harness = Harness.of(FAR, {"v": "1"}, head=head, a=A)
    harness.resource = {**app({"v": "1"}), "kind": "Global"}
    del harness.resource["metadata"]["namespace"]
    harness.settle()
    assert owned(harness, namespace="far")["ownerReferences"][0]["kind"] == "Global"
    assert harness.finalizers == []


def test_an_orphan_has_an_annotation_instead_of_an_owner_reference():
    harness = one(", deletion: orphan")
    harness.settle()
    assert "ownerReferences" not in owned(harness)
    assert orjson.loads(owned(harness)["annotations"][OWNER])["orphan"] is True
    assert harness.finalizers == [FINALIZER]


def test_a_changed_deletion_policy_is_applied_and_the_finalizer_is_added_first_and_removed_last():
    harness = one(', deletion: "{{ spec.keep }}"')
    edit_and_settle(harness, {"v": "1", "keep": "delete"})
    harness.edit({"v": "1", "keep": "orphan"})
    assert harness.plan().actions[0] == AddFinalizer(CR, FINALIZER)
    assert harness.plan().actions[1].needs == {""}
    harness.settle()
    assert "ownerReferences" not in owned(harness)
    edit_and_settle(harness, {"v": "1", "keep": "delete"})
    assert owned(harness)["ownerReferences"]
    assert OWNER not in owned(harness)["annotations"]
    assert harness.finalizers == []


def test_an_invalid_deletion_policy_is_reported_without_its_value():
    harness = one(', deletion: "{{ spec.v }}"', v="canary")
    (problem,) = harness.plan().problems
    assert problem.message == "deletion must be delete or orphan"


def test_the_finalizer_stays_after_a_reload_and_while_a_child_waits():
    harness = settled(FAR.replace("a.yaml,", "a.yaml, when: spec.on,"), {"v": "1", "on": True}, a=A)
    harness.edit({"v": "1", "on": False})
    harness.held_until = "2026-01-01T12:00:30Z"
    harness.settle()
    assert harness.finalizers == [FINALIZER]
    harness.held_until = ""
    harness.settle()
    assert harness.finalizers == []
    assert harness.objects == {}


def test_a_lost_finalizer_is_restored_while_annotated_children_exist():
    harness = settled(FAR.replace("a.yaml,", "a.yaml, waitFor: spec.go,"), {"v": "1", "go": True}, a=A)
    harness.edit({"v": "1", "go": False})
    harness.patch_resource({"finalizers": []})
    assert harness.plan().actions == (AddFinalizer(CR, FINALIZER),)


# -- objects of other owners -------------------------------------------------------------------------------------------


def other_owner(**more: object) -> dict:
    return {"apiVersion": "v1", "kind": "Pod", "name": "boss", "uid": "x", **more}


def annotation_of(uid: str = "cr-2", of: str = "ConfigMap./shop/a", name: str = "other") -> dict:
    note = {"group": "example.com", "kind": "App", "namespace": "shop", "name": name, "uid": uid, "of": of}
    return {OWNER: orjson.dumps(note).decode()}


ADOPTABLE = " (it has no owner): rename the child, delete the object, or use `adopt: orphans`"
FOREIGN = {
    "a plain object": ({}, ADOPTABLE),
    "another controller's": (
        {"ownerReferences": [other_owner(controller=True)]},
        " (it belongs to Pod/boss): rename the child",
    ),
    "the CR's namesake of before": (
        {
            "ownerReferences": [
                {"apiVersion": "example.com/v1", "kind": "App", "name": "web", "uid": "cr-0", "controller": True}
            ]
        },
        " (it belongs to App/web): rename the child",
    ),
    "another CR's by annotation": ({"annotations": annotation_of()}, " (it belongs to App/other): rename the child"),
    "the CR's namesake's by annotation": (
        {"annotations": annotation_of("cr-0", name="web")},
        " (it belongs to App/web): rename the child",
    ),
    "a copy of ours under another name": (
        {"annotations": annotation_of("cr-1", of="ConfigMap./shop/b", name="web")},
        ADOPTABLE,
    ),
    "one with our label only": ({"labels": {PART_OF: Owner.of(app()).part_of}}, ADOPTABLE),
    "one with half a reference to us": (
        {"ownerReferences": [other_owner(uid="cr-1")]},
        ": rename the child, or delete the object",
    ),
    "one with an annotation that cannot be read": ({"annotations": {OWNER: "{"}}, ADOPTABLE),
    "one with an annotation that is no mapping": ({"annotations": {OWNER: "[]"}}, ADOPTABLE),
    "one with an annotation that is no text": ({"annotations": {OWNER: 1}}, ADOPTABLE),
}


@pytest.mark.parametrize("title", FOREIGN)
def test_a_name_conflict_is_reported_and_the_conflicting_object_is_not_touched(title: str):
    metadata, whose = FOREIGN[title]
    harness = one()
    harness.add(config("a", {"v": "theirs"}, **metadata))
    before = copy.deepcopy(harness.objects)
    harness.settle()
    message = f"ConfigMap a in namespace shop already exists and is not managed by App{whose}"
    assert harness.objects == before
    assert harness.ready() == ("False", "ErrResourceExists", message)
    assert [(event.type, event.reason, event.message) for event in harness.events] == [
        ("Warning", "ErrResourceExists", message)
    ]
    assert harness.plan().requeue_after.seconds == 60.0
    assert harness.plan().children[0].state is State.REFUSED


def test_a_child_is_created_when_a_name_conflict_ends():
    harness = one()
    harness.add(config("a"))
    harness.settle()
    harness.delete(key("a"))
    harness.settle()
    assert harness.ready()[0] == "True"
    assert harness.plan().requeue_after == RESYNCED


def test_a_conflicting_object_outside_of_the_cache_is_reported_in_the_same_way():
    harness = one()
    harness.refuse[key("a")] = Failed(Failure.EXISTS, 'configmaps "a" already exists')
    harness.step()
    message = (
        "ConfigMap a in namespace shop already exists and is not managed by App: rename the child, or delete the object"
    )
    assert harness.ready() == ("False", "ErrResourceExists", message)


def test_an_orphan_is_adopted_if_the_rule_allows_it():
    harness = one(", adopt: orphans")
    harness.add(config("a", {"v": "0", "theirs": "1"}))
    planned = harness.step()
    assert isinstance(planned.actions[0], Patch)
    assert planned.actions[0].why == "adopted"
    harness.settle()
    assert harness.objects[key("a")]["data"] == {"v": "1", "theirs": "1"}
    assert harness.claim(key("a")).owned


def test_an_adopted_object_keeps_its_record():
    harness = one()
    harness.settle()
    record = owned(harness)["annotations"][APPLIED].replace('"v":1', '"v":1,"left":1', 1)
    adopter = one(", adopt: orphans", v="2")
    adopter.add(config("a", {"left": "1"}, annotations={APPLIED: record}))
    adopter.settle()
    assert adopter.objects[key("a")]["data"] == {"left": "1", "v": "2"}


@pytest.mark.parametrize("title", [title for title, (_, whose) in FOREIGN.items() if whose != ADOPTABLE])
def test_an_object_with_an_owner_is_never_adopted(title: str):
    harness = one(", adopt: orphans")
    harness.add(config("a", {}, **FOREIGN[title][0]))
    before = copy.deepcopy(harness.objects)
    harness.settle()
    assert harness.objects == before
    assert harness.condition()["reason"] == "ErrResourceExists"


def test_a_terminating_object_is_waited_for_and_not_adopted():
    harness = one(", adopt: orphans")
    harness.add(config("a", {}, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["x/y"]))
    planned = harness.plan()
    assert planned.actions == ()
    assert planned.children[0].state is State.TERMINATING


def test_a_cr_without_uid_owns_nothing():
    harness = one()
    del harness.resource["metadata"]["uid"]
    harness.add(
        config(
            "a",
            {},
            ownerReferences=[{"apiVersion": "example.com/v1", "kind": "App", "name": "web", "controller": True}],
        )
    )
    assert harness.plan().problems[0].reason == "ErrResourceExists"


def test_references_to_other_owners_are_kept_also_for_unknown_kinds():
    for text in (A, "apiVersion: x.io/v1\nkind: Thing\nmetadata: {name: a}\nspec: {v: '{{ spec.v }}'}\n"):
        harness = settled(ONE % "", {"v": "1"}, a=text)
        (where,) = harness.objects
        references = [other_owner(), *harness.objects[where]["metadata"]["ownerReferences"]]
        harness.change(where, {"metadata": {"ownerReferences": references}})
        edit_and_settle(harness, {"v": "2"})
        assert sorted(each["uid"] for each in harness.objects[where]["metadata"]["ownerReferences"]) == ["cr-1", "x"]


# -- lost or renamed metadata ------------------------------------------------------------------------------------------


def test_a_lost_label_is_restored_in_one_write():
    harness = one()
    harness.settle()
    harness.change(key("a"), {"metadata": {"labels": None}})
    harness.step()
    assert owned(harness)["labels"] == {MANAGED_BY: "ruleop", PART_OF: Owner.of(app()).part_of}
    assert harness.plan().quiet


@pytest.mark.parametrize("record", [None, "rubbish", '{"v":99,"id":"a","fields":{}}'])
def test_a_lost_record_is_restored_in_one_write(record: str | None):
    harness = one()
    harness.settle()
    harness.change(key("a"), {"metadata": {"annotations": {APPLIED: record}}, "data": {"extra": "1"}})
    harness.step()
    assert decode(owned(harness)["annotations"][APPLIED]).id == "a"
    assert harness.objects[key("a")]["data"] == {"v": "1", "extra": "1"}
    assert harness.plan().quiet


def test_renaming_an_id_changes_only_the_record():
    harness = one()
    harness.settle()
    before = copy.deepcopy(harness.objects)
    harness.project = Harness.of("children: {b: {template: a.yaml}}", a=A).project
    planned = harness.step()
    assert [type(action) for action in planned.actions] == [Patch]
    assert set(planned.actions[0].patch["metadata"]) == {"uid", "resourceVersion", "annotations"}
    assert decode(owned(harness)["annotations"][APPLIED]).id == "b"
    assert harness.objects[key("a")]["data"] == before[key("a")]["data"]
    assert harness.plan().quiet


def referring_to(version: str, more: str = "") -> Harness:
    """The child's ownerReference has an older version of the CR's kind."""
    harness = one(more)
    harness.settle()
    reference = owned(harness)["ownerReferences"][0]
    harness.change(key("a"), {"metadata": {"ownerReferences": [{**reference, "apiVersion": f"example.com/{version}"}]}})
    return harness


EVERY_STRATEGY = pytest.mark.parametrize(
    "more", [f", apply: {{strategy: {strategy}}}" for strategy in ("merge", "create-only", "server-side")]
)


@EVERY_STRATEGY
def test_a_new_version_of_the_crs_kind_causes_no_write(more: str):
    harness = referring_to("v1alpha1", more)
    harness.infos["App"] = KindInfo(Kind("example.com", "v1alpha1", "App"))  # also served
    assert harness.plan().actions == ()


@EVERY_STRATEGY
def test_an_owner_reference_in_a_removed_version_is_rewritten_once(more: str):
    """The garbage collector could not find the owner in this version."""
    harness = referring_to("v1alpha1", more)
    (action,) = harness.plan().actions
    if isinstance(action, Patch):
        assert set(action.patch) == {"metadata"}
        assert set(action.patch["metadata"]) == {"uid", "resourceVersion", "ownerReferences"}
    harness.settle()
    (reference,) = owned(harness)["ownerReferences"]
    assert reference == Owner.of(app()).reference()
    assert harness.plan().actions == ()


@EVERY_STRATEGY
def test_an_owner_reference_stays_while_served_versions_are_unknown(more: str):
    harness = referring_to("v1alpha1", more)
    harness.served["App"] = Served.UNSERVED
    assert harness.plan().actions == ()


def test_a_recreated_cr_does_not_adopt_the_children_of_its_predecessor():
    harness = one()
    harness.settle()
    harness.patch_resource({"uid": "cr-9"})
    harness.resource["status"] = {}
    before = copy.deepcopy(harness.objects)
    harness.settle()
    assert harness.objects == before
    assert harness.condition()["reason"] == "ErrResourceExists"
    harness.end()
    assert set(harness.objects) == {ObjectKey("", "ConfigMap", "shop", "a")}
