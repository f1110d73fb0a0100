"""`adopt: helm`: the objects of the Helm release with the name and namespace of the CR are adopted, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.planning import FinalizerAction, Patch
from ruleop.planning.child.existing import FINALIZER, RELEASE_NAME, RELEASE_NAMESPACE
from ruleop.planning.model.marks import APPLIED, MANAGED_BY, PART_OF
from ruleop.planning.model.rule_permissions import verbs
from tests.planning.harness import Harness, config, key
from tests.planning.settled import edit_and_settle

ADOPT = "children: {a: {adopt: helm, template: a.yaml}}"
A = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '{{ spec.v }}', w: '{{ spec.w | default(omit) }}'}\n"


def released(name: str = "web", namespace: str = "shop", **metadata: Any) -> dict[str, Any]:
    """An object as Helm leaves it, which other people have changed too."""
    return config(
        "a",
        {"v": "1", "theirs": "x"},
        labels={MANAGED_BY: "Helm", "helm.sh/chart": "web-0.1.0", "team": "a"},
        annotations={RELEASE_NAME: name, RELEASE_NAMESPACE: namespace, "note": "b"},
        **metadata,
    )


def harness(body: str = ADOPT, obj: dict[str, Any] | None = None, **spec: str) -> Harness:
    made = Harness.of(body, {"v": "1", **spec}, a=A)
    made.add(obj or released())
    return made


def test_an_object_of_the_release_is_adopted_and_only_marks_are_written():
    taken = harness()
    (patch,) = taken.plan().actions
    assert isinstance(patch, Patch)
    assert patch.why == "adopted"
    assert set(patch.patch) == {"metadata"}
    taken.settle()
    metadata = taken.objects[key("a")]["metadata"]
    assert metadata["labels"] == {MANAGED_BY: "ruleop", PART_OF: metadata["labels"][PART_OF], "team": "a"}
    assert set(metadata["annotations"]) == {"note", APPLIED}
    assert metadata["ownerReferences"][0]["uid"] == "cr-1"
    assert taken.plan().quiet


def test_a_value_that_is_removed_afterwards_removes_its_field():
    taken = harness(w="2")
    taken.settle()
    assert taken.objects[key("a")]["data"] == {"v": "1", "w": "2", "theirs": "x"}
    edit_and_settle(taken, {"v": "1"})
    assert taken.objects[key("a")]["data"] == {"v": "1", "theirs": "x"}


@pytest.mark.parametrize(
    "obj",
    [released(name="other"), released(namespace="other"), config("a"), config("a", annotations={RELEASE_NAME: "web"})],
    ids=["another release", "another namespace", "no release", "half a release"],
)
def test_any_other_object_is_a_name_conflict(obj):
    kept = harness(obj=obj)
    kept.settle()
    assert kept.objects[key("a")]["data"] == obj["data"]
    assert "it has no owner" in kept.condition("Ready")["message"]


def test_an_object_of_the_release_that_another_cr_owns_is_a_name_conflict():
    reference = {"apiVersion": "example.com/v1", "kind": "App", "name": "b", "uid": "x", "controller": True}
    kept = harness(obj=released(ownerReferences=[reference]))
    kept.settle()
    assert "it belongs to App/b" in kept.condition("Ready")["message"]


def test_without_adopt_the_conflict_names_the_remedy():
    kept = harness("children: {a: {template: a.yaml}}")
    kept.settle()
    message = kept.condition("Ready")["message"]
    assert message.endswith("(it belongs to the Helm release of this name): use `adopt: helm`")


def test_objects_of_the_helm_operator_lose_their_marks_and_the_cr_its_finalizer():
    reference = {"apiVersion": "example.com/v1", "kind": "App", "name": "web", "uid": "cr-1", "controller": True}
    taken = harness(obj=released(ownerReferences=[reference]))
    taken.resource["metadata"]["finalizers"] = [FINALIZER, "example.com/theirs"]
    assert not [each for each in taken.plan().actions if isinstance(each, FinalizerAction)], "objects come first"
    taken.settle()
    assert RELEASE_NAME not in taken.objects[key("a")]["metadata"]["annotations"]
    assert taken.resource["metadata"]["finalizers"] == ["example.com/theirs"]


def test_the_finalizer_of_the_helm_operator_stays_without_adopt_and_while_something_fails():
    for body, obj in (("children: {a: {template: a.yaml}}", None), (ADOPT, released(name="other"))):
        kept = harness(body, obj)
        kept.resource["metadata"]["finalizers"] = [FINALIZER]
        kept.settle()
        assert kept.resource["metadata"]["finalizers"] == [FINALIZER]


def test_a_cr_that_is_deleted_is_not_held_by_the_finalizer_of_the_helm_operator():
    taken = harness()
    taken.settle()
    taken.resource["metadata"] |= {"finalizers": [FINALIZER], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    taken.settle()
    assert taken.resource is None


def test_a_rule_that_adopts_releases_may_patch_its_custom_resources():
    made = harness()
    served = made.info(made.rule.kind)
    assert "patch" in verbs([made.rule], made.rule.kind.versionless, served)
    plain = harness("children: {a: {template: a.yaml}}")
    assert "patch" not in verbs([plain.rule], plain.rule.kind.versionless, served)
