"""Objects that a child owns, itself or through owners in between: uids decide, and no name or label does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.planning import Served
from ruleop.planning.rendering import scope
from tests.planning.harness import Harness, config, key
from tests.planning.settled import settled

RULES = """
children:
  web:
    when: spec.on | default(true)
    object:
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: web}
      spec:
        selector: {matchLabels: {a: b}}
        template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}
observe:
  pods: {version: v1, kind: Pod, ownedBy: web}
status:
  names: "{{ pods | map(attribute='metadata.name') | list }}"
  phase: "{{ pods['p'].status.phase }}"
"""
DEPLOYMENT = ObjectKey("apps", "Deployment", "shop", "web")


def uid_of(harness: Harness, key_: ObjectKey) -> str:
    return str(harness.objects[key_]["metadata"]["uid"])


def owned(kind: str, name: str, *owners: str, **more: Any) -> dict[str, Any]:
    references = [{"apiVersion": "x/v1", "kind": "X", "name": "anything", "uid": uid} for uid in owners]
    api_version = "v1" if kind == "Pod" else "apps/v1"
    metadata = {"name": name, "namespace": "shop", "ownerReferences": references}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def add_set(harness: Harness, name: str, owner: str) -> str:
    return str(harness.add(owned("ReplicaSet", name, owner))["metadata"]["uid"])


def names(harness: Harness) -> list[str]:
    harness.settle()
    return list(harness.status["names"])


def test_objects_of_owners_in_between_are_found_and_sorted_by_name():
    harness = settled(RULES)
    web = uid_of(harness, DEPLOYMENT)
    old, new = add_set(harness, "old", web), add_set(harness, "new", web)
    for name, owners in {"p": [new], "c": [old], "both": [new, old]}.items():
        harness.add(owned("Pod", name, *owners, status={"phase": "Running"}))
    assert names(harness) == ["both", "c", "p"]
    assert harness.status["phase"] == "Running"


def test_uids_decide_and_no_names():
    harness = settled(RULES)
    web = uid_of(harness, DEPLOYMENT)
    other = add_set(harness, "other", "another-uid")
    own = add_set(harness, "own", web)
    harness.add(owned("Pod", "of-other", other))
    harness.add(owned("Pod", "direct", web))  # a Deployment owns Pods through ReplicaSets only
    nameless = owned("Pod", "by-name")
    nameless["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "own"}]
    harness.add(nameless)
    assert names(harness) == []
    harness.add(owned("Pod", "p", own))
    assert names(harness) == ["p"]


def test_a_recreated_owner_owns_nothing_of_the_old_one():
    harness = settled(RULES)
    harness.add(owned("Pod", "p", add_set(harness, "set", uid_of(harness, DEPLOYMENT))))
    assert names(harness) == ["p"]
    harness.delete(DEPLOYMENT)
    assert names(harness) == []


def test_the_list_is_empty_while_there_is_no_owner():
    assert names(settled(RULES, spec={"on": False})) == []
    assert names(settled(RULES)) == []


def test_objects_of_each_item_of_a_child_are_found():
    rules = """
    children:
      jobs:
        forEach: spec.jobs
        object:
          apiVersion: batch/v1
          kind: Job
          metadata: {name: "{{ item }}"}
          spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}
    observe: {pods: {version: v1, kind: Pod, ownedBy: jobs, where: this.spec.nodeName == 'x'}}
    status: {names: "{{ pods | map(attribute='metadata.name') | list }}"}
    """
    harness = settled(rules, {"jobs": ["a", "b"]})
    for name in ("a", "b"):
        uid = uid_of(harness, ObjectKey("batch", "Job", "shop", name))
        harness.add(owned("Pod", f"{name}-1", uid, spec={"nodeName": "x"}))
        harness.add(owned("Pod", f"{name}-2", uid, spec={"nodeName": "y"}))
    assert names(harness) == ["a-1", "b-1"]


def test_kinds_in_between_can_be_named_and_none_can():
    rules = """
    children: {own: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: own}}}}
    observe:
      direct: {version: v1, kind: Pod, ownedBy: own, through: []}
      far: {version: v1, kind: Pod, ownedBy: own, through: [v1/Secret, apps/v1/ReplicaSet]}
    status:
      names: "{{ direct | map(attribute='metadata.name') | list }}"
      far: "{{ far | map(attribute='metadata.name') | list }}"
    """
    harness = settled(rules)
    own = uid_of(harness, key("own"))
    secret = harness.add({**config("s"), "kind": "Secret"})
    harness.change(ObjectKey.of(secret), {"metadata": {"ownerReferences": [{"uid": own}]}})
    harness.add(owned("Pod", "near", own))
    harness.add(owned("Pod", "far", add_set(harness, "set", secret["metadata"]["uid"])))
    assert (names(harness), harness.status["far"]) == (["near"], ["far"])


def test_the_targets_are_the_uids_of_each_step():
    harness = settled(RULES)
    web = uid_of(harness, DEPLOYMENT)
    sets = [add_set(harness, name, web) for name in ("a", "b")]
    found = [(target.kind.kind, target.namespace, target.owner) for target in harness.plan().watches]
    assert found == [("ReplicaSet", "shop", web), *(("Pod", "shop", uid) for uid in sets)]


@pytest.mark.parametrize("kind", ["Pod", "ReplicaSet", "Deployment"])
@pytest.mark.parametrize("state", [Served.PENDING, Served.FORBIDDEN])
def test_a_list_that_cannot_be_known_is_not_available_yet_instead_of_empty(kind: str, state: Served):
    harness = settled(RULES + "conditions: [{type: Idle, status: pods | length == 0}]\n")
    assert harness.condition("Idle")["status"] == "True"
    harness.served[kind] = state
    harness.edit({"x": "y"})
    harness.step()
    assert harness.condition("Idle")["status"] == "Unknown"
    assert "names" not in harness.status


@pytest.mark.parametrize("at", ["owners", "objects"])
def test_more_than_the_limit_are_an_error_and_still_followed(monkeypatch: pytest.MonkeyPatch, at: str):
    monkeypatch.setattr(scope, "MAX_OWNED", 2)
    harness = settled(RULES)
    web = uid_of(harness, DEPLOYMENT)
    for number in range(3 if at == "owners" else 1):
        uid = add_set(harness, f"set-{number}", web)
        for pod in range(1 if at == "owners" else 3):
            harness.add(owned("Pod", f"p-{number}-{pod}", uid))
    harness.settle()
    _, reason, message = harness.ready()
    assert reason == "RenderFailed"
    assert 'the observed resource "pods" has more than 1,000 objects, or owners in between' in message
    assert harness.plan().watches[0].owner == web
    last = ObjectKey("apps", "ReplicaSet", "shop", "set-2") if at == "owners" else key("p-0-2", "Pod")
    del harness.objects[last]
    assert len(names(harness)) == 2


@pytest.mark.parametrize("references", [None, "text", [7], [{}], [{"uid": 7}], [{"uid": ""}], [{"uid": None}]])
def test_forged_references_do_no_harm(references: Any):
    harness = settled(RULES)
    pod = owned("Pod", "p")
    pod["metadata"]["ownerReferences"] = references
    harness.add(pod)
    assert names(harness) == []


@pytest.mark.slow
@given(
    st.dictionaries(st.sampled_from("abc"), st.sampled_from(["web", "other"])),
    st.dictionaries(st.sampled_from("pqrst"), st.lists(st.sampled_from([*"abc", "web"]), max_size=3)),
)
def test_exactly_the_objects_with_a_chain_of_references_are_found(sets: dict[str, str], pods: dict[str, list[str]]):
    harness = settled(RULES)
    uids = {"web": uid_of(harness, DEPLOYMENT), "other": "another-uid"}
    for name, owner in sets.items():
        uids[name] = add_set(harness, name, uids[owner])
    for name, owners in pods.items():
        harness.add(owned("Pod", name, *(uids.get(each, "gone") for each in owners)))
    of_web = {name for name, owner in sets.items() if owner == "web"}
    assert names(harness) == sorted(name for name, owners in pods.items() if of_web.intersection(owners))
