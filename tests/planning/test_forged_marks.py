"""Forged marks: labels, annotations, records and ownerReferences that name another tenant's CR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.planning import Create, Delete, Owner, Patch
from ruleop.planning.model.marks import APPLIED, OWNER, PART_OF, KeyedProofs, Proofs, claim_on, names_an_owner
from tests.planning.harness import CR, Harness, app, config, key
from tests.planning.settled import settled

PROOFS, OTHER_KEY = KeyedProofs((b"k" * 32,)), KeyedProofs((b"x" * 32,))
COPIES = "children: {a: {template: a.yaml}}"
READS_LIVE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ spec.name | default('a') }}"}
data: {v: "{{ live.a.data.v | default('first') }}"}
"""
FAR = "reach: cluster\nchildren: {a: {template: a.yaml, namespace: far}}"
PLAIN = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
RECORD = orjson.dumps({"id": "a", "fields": {}}).decode()


@dataclass
class Secured(Harness):
    """A harness whose operator has a key."""

    proofs: Proofs | None = PROOFS


def read_record(id_: str = "a") -> str:
    """A record as ruleop writes it."""
    made = settled(f"children: {{{id_}: {{template: a.yaml}}}}", a=PLAIN)
    return made.objects[key("a")]["metadata"]["annotations"][APPLIED]


def forged(
    called: str = "a", namespace: str = "shop", *, annotated: bool = False, proofs: Any = None, **reference: Any
) -> dict[str, Any]:
    """A ConfigMap that claims to be the child `a` of the CR."""
    owner = Owner.of(app(), proofs)
    annotations = {APPLIED: read_record()}
    metadata: dict[str, Any] = {"namespace": namespace, "labels": {PART_OF: owner.part_of}}
    if annotated:
        annotations[OWNER] = owner.annotation(ObjectKey("", "ConfigMap", namespace, called), orphan=False)
    else:
        metadata["ownerReferences"] = [{**owner.reference(), **reference}]
    return config(called, {"v": "forged"}, **metadata, annotations=annotations)


# -- ownerReferences ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong", [{"kind": "Deployment"}, {"apiVersion": "apps/v1"}, {"apiVersion": "v1"}, {"name": "other"}], ids=str
)
def test_an_owner_reference_that_matches_only_by_uid_is_not_trusted(wrong: dict):
    harness = Harness.of(COPIES, a=READS_LIVE)
    harness.add(forged(**wrong))
    harness.settle()
    assert harness.objects[key("a")]["data"] == {"v": "forged"}
    assert harness.ready()[1] == "ErrResourceExists"


def test_an_owner_reference_from_another_namespace_is_never_trusted():
    for reach in ("", "reach: cluster\n"):
        harness = Harness.of(reach + COPIES, a=READS_LIVE)
        harness.add(forged(namespace="attack"))
        harness.settle()
        assert harness.objects[key("a")]["data"] == {"v": "first"}
        assert harness.objects[key("a", namespace="attack")]["data"] == {"v": "forged"}


def test_an_owner_reference_in_any_version_of_the_group_is_trusted():
    harness = Harness.of(COPIES, a=READS_LIVE)
    harness.add(forged(apiVersion="example.com/v7"))
    harness.settle()
    assert harness.ready()[0] == "True"


# -- live --------------------------------------------------------------------------------------------------------------


def test_live_contains_the_object_with_the_rendered_name_not_a_forged_one():
    harness = Harness.of(COPIES, a=READS_LIVE)
    harness.add(forged("0"))
    harness.settle()
    assert harness.objects[key("a")]["data"] == {"v": "first"}
    harness.add(forged("0"))
    assert not any(isinstance(action, (Create, Patch)) for action in harness.plan().actions)
    harness.settle()
    assert set(harness.objects) == {key("a")}, "what only claims to be a child is pruned"


def test_live_contains_no_object_of_an_undeclared_kind():
    harness = Harness.of(COPIES, a=READS_LIVE)
    secret = {**forged("a"), "kind": "Secret", "data": {"v": "Zm9yZ2Vk"}}
    harness.add(secret)
    harness.settle()
    assert harness.objects[key("a")]["data"] == {"v": "first"}


def test_live_contains_the_older_object_while_the_name_is_unknown():
    body = """
    children:
      z: {template: z.yaml, waitFor: spec.go}
      b: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {v: "{{ live.z.data.v | default('-') }}"}}}
    """
    harness = settled(body, {"go": True}, z=PLAIN.replace("name: a", "name: z") + "data: {v: ours}\n")
    harness.objects[key("z")]["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    assert harness.resource is not None
    harness.resource["spec"]["go"] = False
    younger = forged("a", creationTimestamp="")
    younger["metadata"]["annotations"] = {APPLIED: read_record("z")}
    younger["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    harness.add(younger)
    harness.settle()
    assert harness.objects[key("b")]["data"] == {"v": "ours"}


def test_finalize_reads_the_object_with_the_rendered_name():
    body = """
    children: {a: {template: a.yaml}}
    finalize: {bye: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: bye}, data: {v: '{{ a.data.v }}'}}}}
    """
    harness = settled(body, a=READS_LIVE)
    harness.add(forged("0"))
    harness.resource["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    (made,) = [action.object for action in harness.plan().actions if isinstance(action, Create)]
    assert made["data"] == {"v": "first"}


# -- annotations -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("proofs", [None, OTHER_KEY], ids=["no proof", "another key's"])
@pytest.mark.parametrize("reach", ["", "reach: cluster\n"])
def test_a_forged_annotation_adds_no_finalizer_and_its_object_is_neither_read_nor_deleted(reach: str, proofs: Any):
    harness = Secured.of(reach + COPIES, a=READS_LIVE)
    victim = forged("a", "attack", annotated=True, proofs=proofs)
    harness.add(victim)
    harness.settle()
    assert harness.finalizers == []
    assert harness.objects[key("a")]["data"] == {"v": "first"}
    assert harness.objects[key("a", namespace="attack")]["data"] == {"v": "forged"}


def test_a_forged_annotation_does_not_delay_a_deletion():
    harness = Secured.of(FAR, a=PLAIN)
    harness.settle()
    harness.add(forged("other", "attack", annotated=True))
    harness.resource["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    harness.settle()
    assert harness.resource is None
    assert set(harness.objects) == {key("other", namespace="attack")}


def test_a_proof_is_valid_for_one_object_and_the_whole_annotation():
    harness = Secured.of(FAR, a=PLAIN)
    harness.settle()
    mine = harness.objects[key("a", namespace="far")]
    assert claim_on(mine, key("a", namespace="far"), Owner.of(app(), PROOFS)).proven
    note = orjson.loads(mine["metadata"]["annotations"][OWNER])
    assert len(note["proof"]) == 32
    for change in ({"of": "ConfigMap./far/b"}, {"orphan": True}, {"name": "other"}, {"uid": "cr-9"}, {"proof": "é"}):
        text = orjson.dumps({**note, **change}).decode()
        altered = {**mine, "metadata": {**mine["metadata"], "annotations": {OWNER: text}}}
        name = "b" if "of" in change else "a"
        assert not claim_on(altered, key(name, namespace="far"), Owner.of(app(), PROOFS)).owned


def test_an_unproven_annotation_on_a_desired_object_is_a_name_conflict_with_its_reason():
    harness = Secured.of(FAR.replace("namespace: far", "namespace: far, adopt: orphans"), a=PLAIN)
    harness.add(forged("a", "far", annotated=True))
    harness.settle()
    assert harness.objects[key("a", namespace="far")]["data"] == {"v": "forged"}
    assert harness.ready()[2] == (
        "ConfigMap a in namespace far already exists and is not managed by App (its annotation ruleop.dev/owner has "
        "no valid proof): if the operator's key was lost, run `ruleop recover`; else rename the child"
    )


@pytest.mark.parametrize("before", [None, OTHER_KEY], ids=["no proof", "a lost key's"])
def test_children_of_earlier_versions_and_of_a_lost_key_are_adopted(before: Any):
    old = Secured.of(FAR, a=PLAIN)
    old.proofs = before
    old.settle()
    new = Secured.of(FAR, a=PLAIN)
    new.objects, new.resource, new.proofs = old.objects, old.resource, KeyedProofs(PROOFS.keys, accept_unproven=True)
    new.settle()
    new.proofs = PROOFS
    assert new.plan().quiet
    assert new.claim(key("a", namespace="far")).proven


def test_proofs_of_the_previous_key_are_valid_and_renewed():
    harness = Secured.of(FAR, a=PLAIN)
    harness.settle()
    harness.proofs = KeyedProofs((b"n" * 32, *PROOFS.keys))
    (patch,) = harness.plan().actions
    assert isinstance(patch, Patch)
    harness.settle()
    harness.proofs = KeyedProofs((b"n" * 32,))
    assert harness.plan().quiet


@pytest.mark.parametrize("apply", ["", ", apply: {strategy: create-only}", ", apply: {strategy: server-side}"])
def test_a_plan_without_the_key_shows_no_difference(apply: str):
    harness = Secured.of(FAR.replace("namespace: far", f"namespace: far{apply}"), a=PLAIN)
    harness.settle()
    harness.proofs = None
    assert harness.plan().quiet


def test_a_narrower_reach_prunes_only_proven_children_elsewhere():
    harness = Secured.of(FAR, a=PLAIN)
    harness.settle()
    harness.project = Harness.of("children: {a: {template: a.yaml}}", a=PLAIN).project
    harness.add(forged("b", "far", annotated=True))
    assert any(isinstance(action, Delete) and action.key.namespace == "far" for action in harness.plan().actions)
    harness.settle()
    assert set(harness.objects) == {key("a"), key("b", namespace="far")}


@pytest.mark.parametrize("text", ["[" * 2000 + "]" * 2000, '{"of":' + "[" * 300 + "]" * 300 + "}", "{}", " " * 5000])
def test_malformed_owner_annotations_name_no_owner(text: str):
    live = config("a", annotations={OWNER: text})
    assert not claim_on(live, key("a"), Owner.of(app(), PROOFS)).owned
    assert not names_an_owner(live["metadata"], key("a"), PROOFS)


# -- which objects are kept --------------------------------------------------------------------------------------------


def test_the_part_of_label_alone_names_no_owner():
    child = forged()
    assert names_an_owner(child["metadata"], key("a"), PROOFS)
    for without in ("ownerReferences", "labels"):
        metadata = {name: value for name, value in child["metadata"].items() if name != without}
        assert not names_an_owner(metadata, key("a"), PROOFS)
    for wrong in ({"name": "other"}, {"controller": False}, {"kind": "Pod"}, {"name": "x" * 2000}):
        assert not names_an_owner(forged(**wrong)["metadata"], key("a"), PROOFS)


def test_an_owner_annotation_counts_only_with_a_proof():
    there = key("a", namespace="far")
    assert names_an_owner(forged("a", "far", annotated=True, proofs=PROOFS)["metadata"], there, PROOFS)
    unproven = forged("a", "far", annotated=True)["metadata"]
    assert not names_an_owner(unproven, there, PROOFS)
    assert names_an_owner(unproven, there, KeyedProofs(PROOFS.keys, accept_unproven=True))
    assert not names_an_owner(unproven, key("b", namespace="far"), PROOFS)


# -- the operator's own objects ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("adopt", ["never", "orphans"])
def test_no_rule_can_write_the_objects_of_the_operator(adopt: str):
    own = key("a", namespace="far")
    harness = Harness.of(FAR.replace("namespace: far", f"namespace: far, adopt: {adopt}"), a=PLAIN)
    for exists in (False, True):
        if exists:
            harness.add(config("a", {"children": "[]"}, namespace="far"))
        planned = harness.plan(own=frozenset({own}))
        assert planned.actions == ()
        assert planned.problems[0].reason == "RenderFailed"
        assert planned.problems[0].message == (
            "ConfigMap/far/a belongs to the operator itself, and no rule can write it"
        )


def test_objects_of_the_operator_are_never_pruned():
    harness = settled(COPIES, a=PLAIN)
    harness.add(forged("inventory"))
    assert [type(action) for action in harness.plan().actions] == [Delete]
    assert harness.plan(own=frozenset({key("inventory")})).quiet
    assert CR.name == "web"
