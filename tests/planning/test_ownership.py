"""Whose an object is: ownerReferences where they are legal, annotations and a finalizer where not, and hands off what is not ours."""

from __future__ import annotations

import copy

import orjson
import pytest

from ruleop.kinds import Kind, ObjectKey
from ruleop.merge import decode
from ruleop.planning import AddFinalizer, Failed, Failure, KindInfo, Owner, Patch, Served, State
from ruleop.planning.marks import APPLIED, MANAGED_BY, OWNER, PART_OF
from tests.planning.world import CR, FINALIZER, RESYNCED, World, app, config, key

ONE = "children: {a: {template: a.yaml%s}}"
A = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '{{ spec.v }}'}\n"
FAR = "reach: cluster\nchildren: {a: {template: a.yaml, namespace: far}}"


def one(more: str = "", v: str = "1") -> World:
    return World.of(ONE % more, {"v": v}, a=A)


def owned(world: World, name: str = "a", namespace: str = "shop") -> dict:
    return world.objects[key(name, namespace=namespace)]["metadata"]


# -- marks -------------------------------------------------------------------------------------------------------------------------------


def test_a_child_carries_its_owner_labels_and_record_and_no_value_in_the_record():
    world = one(v="canary")
    world.settle()
    metadata = owned(world)
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
    assert world.finalizers == []


def test_the_part_of_label_identifies_the_cr_across_versions():
    label = Owner.of(app()).part_of
    assert Owner.of({**app(), "apiVersion": "example.com/v2"}).part_of == label
    assert Owner.of(app(namespace="x")).part_of != label
    assert Owner.of(app(name="x")).part_of != label
    assert len(label) <= 63


def test_a_foreign_managed_by_label_is_kept():
    world = one(", adopt: orphans")
    world.add(config("a", labels={MANAGED_BY: "Helm"}))
    world.settle()
    assert owned(world)["labels"][MANAGED_BY] == "Helm"
    world.edit({"v": "2"})
    world.settle()
    assert owned(world)["labels"][MANAGED_BY] == "Helm"


def test_drift_of_ruleops_managed_by_label_is_reverted():
    world = one()
    world.settle()
    world.change(key("a"), {"metadata": {"labels": {MANAGED_BY: "other"}}})
    world.settle()
    assert owned(world)["labels"][MANAGED_BY] == "ruleop"


def test_a_template_may_set_managed_by():
    world = World.of(
        ONE % "",
        a=A.replace("name: a}", "name: a, labels: {app.kubernetes.io/managed-by: platform}}").replace(
            "{{ spec.v }}", "1"
        ),
    )
    world.settle()
    assert owned(world)["labels"][MANAGED_BY] == "platform"


# -- where no ownerReference may stand -----------------------------------------------------------------------------------------------------


def test_a_child_in_another_namespace_has_an_owner_annotation_and_the_cr_a_finalizer():
    world = World.of(FAR, {"v": "1"}, a=A)
    planned = world.step()
    assert planned.actions[0] == AddFinalizer(CR, FINALIZER)
    assert all("" in action.needs for action in planned.actions[1:])
    metadata = owned(world, namespace="far")
    assert "ownerReferences" not in metadata
    assert orjson.loads(metadata["annotations"][OWNER]) == {
        "group": "example.com",
        "kind": "App",
        "namespace": "shop",
        "name": "web",
        "uid": "cr-1",
        "of": "ConfigMap./far/a",
    }
    world.settle()
    assert world.plan().quiet
    assert world.finalizers == [FINALIZER]


def test_nothing_is_created_when_the_finalizer_could_not_be_written():
    world = World.of(FAR, {"v": "1"}, a=A)
    create = world.plan().actions[1]
    assert create.needs == {""}


def test_a_cluster_scoped_cr_owns_children_in_all_namespaces():
    head = "- group: example.com\n  version: v1\n  kind: Global\n"
    world = World.of(FAR, {"v": "1"}, head=head, a=A)
    world.resource = {**app({"v": "1"}), "kind": "Global"}
    del world.resource["metadata"]["namespace"]
    world.settle()
    assert owned(world, namespace="far")["ownerReferences"][0]["kind"] == "Global"
    assert world.finalizers == []


def test_an_orphan_has_an_annotation_instead_of_an_owner_reference():
    world = one(", deletion: orphan")
    world.settle()
    assert "ownerReferences" not in owned(world)
    assert orjson.loads(owned(world)["annotations"][OWNER])["orphan"] is True
    assert world.finalizers == [FINALIZER]


def test_a_changed_deletion_policy_is_applied_and_the_finalizer_is_added_first_and_removed_last():
    world = one(', deletion: "{{ spec.keep }}"')
    world.edit({"v": "1", "keep": "delete"})
    world.settle()
    world.edit({"v": "1", "keep": "orphan"})
    assert world.plan().actions[0] == AddFinalizer(CR, FINALIZER)
    assert world.plan().actions[1].needs == {""}
    world.settle()
    assert "ownerReferences" not in owned(world)
    world.edit({"v": "1", "keep": "delete"})
    world.settle()
    assert owned(world)["ownerReferences"]
    assert OWNER not in owned(world)["annotations"]
    assert world.finalizers == []


def test_an_invalid_deletion_policy_is_reported_without_its_value():
    world = one(', deletion: "{{ spec.v }}"', v="canary")
    (problem,) = world.plan().problems
    assert problem.message == "deletion must be delete or orphan"


def test_the_finalizer_stays_after_a_reload_and_while_a_child_waits():
    world = World.of(FAR.replace("a.yaml,", "a.yaml, when: spec.on,"), {"v": "1", "on": True}, a=A)
    world.settle()
    world.edit({"v": "1", "on": False})
    world.held_until = "2026-01-01T12:00:30Z"
    world.settle()
    assert world.finalizers == [FINALIZER]
    world.held_until = ""
    world.settle()
    assert world.finalizers == []
    assert world.objects == {}


def test_a_lost_finalizer_is_restored_while_annotated_children_exist():
    world = World.of(FAR.replace("a.yaml,", "a.yaml, waitFor: spec.go,"), {"v": "1", "go": True}, a=A)
    world.settle()
    world.edit({"v": "1", "go": False})
    world.patch_resource({"finalizers": []})
    assert world.plan().actions == (AddFinalizer(CR, FINALIZER),)


# -- what is not ours ----------------------------------------------------------------------------------------------------------------------


def other_owner(**more: object) -> dict:
    return {"apiVersion": "v1", "kind": "Pod", "name": "boss", "uid": "x", **more}


def annotation_of(uid: str = "cr-2", of: str = "ConfigMap./shop/a", name: str = "other") -> dict:
    note = {"group": "example.com", "kind": "App", "namespace": "shop", "name": name, "uid": uid, "of": of}
    return {OWNER: orjson.dumps(note).decode()}


FOREIGN = {
    "a plain object": ({}, ""),
    "another controller's": ({"ownerReferences": [other_owner(controller=True)]}, " (it belongs to Pod/boss)"),
    "the CR's namesake of before": (
        {
            "ownerReferences": [
                {"apiVersion": "example.com/v1", "kind": "App", "name": "web", "uid": "cr-0", "controller": True}
            ]
        },
        " (it belongs to App/web)",
    ),
    "another CR's by annotation": ({"annotations": annotation_of()}, " (it belongs to App/other)"),
    "the CR's namesake's by annotation": (
        {"annotations": annotation_of("cr-0", name="web")},
        " (it belongs to App/web)",
    ),
    "a copy of ours under another name": (
        {"annotations": annotation_of("cr-1", of="ConfigMap./shop/b", name="web")},
        "",
    ),
    "one with our label only": ({"labels": {PART_OF: Owner.of(app()).part_of}}, ""),
    "one with half a reference to us": ({"ownerReferences": [other_owner(uid="cr-1")]}, ""),
    "one with an annotation that cannot be read": ({"annotations": {OWNER: "{"}}, ""),
    "one with an annotation that is no mapping": ({"annotations": {OWNER: "[]"}}, ""),
    "one with an annotation that is no text": ({"annotations": {OWNER: 1}}, ""),
}


@pytest.mark.parametrize("title", FOREIGN)
def test_a_name_conflict_is_reported_and_the_conflicting_object_is_not_touched(title: str):
    metadata, whose = FOREIGN[title]
    world = one()
    world.add(config("a", {"v": "theirs"}, **metadata))
    before = copy.deepcopy(world.objects)
    world.settle()
    message = f'Resource "a" already exists and is not managed by App{whose}'
    assert world.objects == before
    assert world.ready() == ("False", "ErrResourceExists", message)
    assert [(event.type, event.reason, event.message) for event in world.events] == [
        ("Warning", "ErrResourceExists", message)
    ]
    assert world.plan().requeue_after.seconds == 60.0
    assert world.plan().children[0].state is State.REFUSED


def test_a_child_is_created_when_a_name_conflict_ends():
    world = one()
    world.add(config("a"))
    world.settle()
    world.delete(key("a"))
    world.settle()
    assert world.ready()[0] == "True"
    assert world.plan().requeue_after == RESYNCED


def test_a_conflicting_object_outside_of_the_cache_is_reported_in_the_same_way():
    world = one()
    world.refuse[key("a")] = Failed(Failure.EXISTS, 'configmaps "a" already exists')
    world.step()
    assert world.ready() == ("False", "ErrResourceExists", 'Resource "a" already exists and is not managed by App')


def test_an_orphan_is_adopted_if_the_rule_allows_it():
    world = one(", adopt: orphans")
    world.add(config("a", {"v": "0", "theirs": "1"}))
    planned = world.step()
    assert isinstance(planned.actions[0], Patch)
    assert planned.actions[0].why == "adopted"
    world.settle()
    assert world.objects[key("a")]["data"] == {"v": "1", "theirs": "1"}
    assert world.claim(key("a")).owned


def test_an_adopted_object_keeps_its_record():
    world = one()
    world.settle()
    record = owned(world)["annotations"][APPLIED].replace('"v":1', '"v":1,"left":1', 1)
    adopter = one(", adopt: orphans", v="2")
    adopter.add(config("a", {"left": "1"}, annotations={APPLIED: record}))
    adopter.settle()
    assert adopter.objects[key("a")]["data"] == {"left": "1", "v": "2"}


@pytest.mark.parametrize(
    "title", [title for title, (metadata, whose) in FOREIGN.items() if whose or "ownerReferences" in metadata]
)
def test_an_object_with_an_owner_is_never_adopted(title: str):
    world = one(", adopt: orphans")
    world.add(config("a", {}, **FOREIGN[title][0]))
    before = copy.deepcopy(world.objects)
    world.settle()
    assert world.objects == before
    assert world.condition()["reason"] == "ErrResourceExists"


def test_a_terminating_object_is_not_adopted_but_waited_for():
    world = one(", adopt: orphans")
    world.add(config("a", {}, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["x/y"]))
    planned = world.plan()
    assert planned.actions == ()
    assert planned.children[0].state is State.TERMINATING


def test_a_cr_without_uid_owns_nothing():
    world = one()
    del world.resource["metadata"]["uid"]
    world.add(
        config(
            "a",
            {},
            ownerReferences=[{"apiVersion": "example.com/v1", "kind": "App", "name": "web", "controller": True}],
        )
    )
    assert world.plan().problems[0].reason == "ErrResourceExists"


def test_other_owners_stay_also_for_unknown_kinds():
    for text in (A, "apiVersion: x.io/v1\nkind: Thing\nmetadata: {name: a}\nspec: {v: '{{ spec.v }}'}\n"):
        world = World.of(ONE % "", {"v": "1"}, a=text)
        world.settle()
        (where,) = world.objects
        references = [other_owner(), *world.objects[where]["metadata"]["ownerReferences"]]
        world.change(where, {"metadata": {"ownerReferences": references}})
        world.edit({"v": "2"})
        world.settle()
        assert sorted(each["uid"] for each in world.objects[where]["metadata"]["ownerReferences"]) == ["cr-1", "x"]


# -- what was lost or renamed ---------------------------------------------------------------------------------------------------------------


def test_a_lost_label_is_restored_in_one_write():
    world = one()
    world.settle()
    world.change(key("a"), {"metadata": {"labels": None}})
    world.step()
    assert owned(world)["labels"] == {MANAGED_BY: "ruleop", PART_OF: Owner.of(app()).part_of}
    assert world.plan().quiet


@pytest.mark.parametrize("record", [None, "rubbish", '{"v":99,"id":"a","fields":{}}'])
def test_a_lost_record_is_restored_in_one_write(record: str | None):
    world = one()
    world.settle()
    world.change(key("a"), {"metadata": {"annotations": {APPLIED: record}}, "data": {"extra": "1"}})
    world.step()
    assert decode(owned(world)["annotations"][APPLIED]).id == "a"
    assert world.objects[key("a")]["data"] == {"v": "1", "extra": "1"}
    assert world.plan().quiet


def test_renaming_an_id_changes_only_the_record():
    world = one()
    world.settle()
    before = copy.deepcopy(world.objects)
    world.project = World.of("children: {b: {template: a.yaml}}", a=A).project
    planned = world.step()
    assert [type(action) for action in planned.actions] == [Patch]
    assert set(planned.actions[0].patch["metadata"]) == {"uid", "resourceVersion", "annotations"}
    assert decode(owned(world)["annotations"][APPLIED]).id == "b"
    assert world.objects[key("a")]["data"] == before[key("a")]["data"]
    assert world.plan().quiet


def referring_to(version: str, more: str = "") -> World:
    """The child's ownerReference was written when the CRs were watched in this version."""
    world = one(more)
    world.settle()
    reference = owned(world)["ownerReferences"][0]
    world.change(key("a"), {"metadata": {"ownerReferences": [{**reference, "apiVersion": f"example.com/{version}"}]}})
    return world


EVERY_STRATEGY = pytest.mark.parametrize(
    "more", [f", apply: {{strategy: {strategy}}}" for strategy in ("merge", "create-only", "replace", "server-side")]
)


@EVERY_STRATEGY
def test_a_new_version_of_the_crs_kind_causes_no_write(more: str):
    world = referring_to("v1alpha1", more)
    world.infos["App"] = KindInfo(Kind("example.com", "v1alpha1", "App"))  # it is served, too
    assert world.plan().actions == ()


@EVERY_STRATEGY
def test_an_owner_reference_in_a_removed_version_is_rewritten_once(more: str):
    """The garbage collector could not find the owner by it."""
    world = referring_to("v1alpha1", more)
    (action,) = world.plan().actions
    if isinstance(action, Patch):
        assert set(action.patch) == {"metadata"}
        assert set(action.patch["metadata"]) == {"uid", "resourceVersion", "ownerReferences"}
    world.settle()
    (reference,) = owned(world)["ownerReferences"]
    assert reference == Owner.of(app()).reference()
    assert world.plan().actions == ()


@EVERY_STRATEGY
def test_an_owner_reference_stays_while_served_versions_are_unknown(more: str):
    world = referring_to("v1alpha1", more)
    world.served["App"] = Served.UNSERVED
    assert world.plan().actions == ()


def test_a_recreated_cr_does_not_adopt_the_children_of_its_predecessor():
    world = one()
    world.settle()
    world.patch_resource({"uid": "cr-9"})
    world.resource["status"] = {}
    before = copy.deepcopy(world.objects)
    world.settle()
    assert world.objects == before
    assert world.condition()["reason"] == "ErrResourceExists"
    world.end()
    assert set(world.objects) == {ObjectKey("", "ConfigMap", "shop", "a")}
