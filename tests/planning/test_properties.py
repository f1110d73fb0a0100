"""Properties for any spec, any history, and a crash at any point."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ruleop.language.rules import Project
from ruleop.planning import AddFinalizer, Plan, RemoveFinalizer
from ruleop.planning.model.marks import APPLIED
from tests.exploration import examples
from tests.planning.harness import Harness, app, as_bytes, config, key, project

FILES = {
    "db": """
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: "{{ metadata.name }}-db"}
        spec: {replicas: "{{ spec.replicas }}", selector: {matchLabels: {a: b}}, template: {metadata: {labels: "{{ spec.labels }}"}, spec: {containers: []}}}
        """.replace('"{{ spec.replicas }}"', "{{ spec.replicas }}").replace('"{{ spec.labels }}"', "{{ spec.labels }}"),
    "web": """
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: web, labels: {{ spec.labels }}}
        data: {db: "{{ db.metadata.name }}", up: "{{ db.status.availableReplicas }}"}
        """,
    "each": """
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "e-{{ item }}"}
        data: {v: "{{ spec.v }}", list: "{{ spec.items | join(',') }}"}
        """,
    "kept": """
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: kept}
        data: {v: "{{ spec.v }}"}
        """,
    "far": """
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: far}
        data: {v: "{{ spec.v }}"}
        """,
    "secret": """
        apiVersion: v1
        kind: Secret
        metadata: {name: secret}
        stringData: {p: "{{ random_password(8) }}"}
        """,
    "last": """
        apiVersion: batch/v1
        kind: Job
        metadata: {name: last}
        spec: {note: "{{ web.data.db | default('none') }}"}
        """,
}
BODY = """
reach: cluster
children:
  web: {template: web.yaml, when: spec.web}
  each: {template: each.yaml, forEach: spec.items, waitFor: spec.go}
  kept: {template: kept.yaml, deletion: "{{ 'orphan' if spec.keep else 'delete' }}"}
  far: {template: far.yaml, namespace: far, when: spec.far, apply: {strategy: server-side}}
  secret: {template: secret.yaml, apply: {strategy: create-only}}
  db: {template: db.yaml, apply: {strategy: STRATEGY}, dependsOn: [secret]}
FINALIZE
validate: [{rule: spec.v != 'bad', message: bad}]
status:
  up: "{{ db.status.availableReplicas }}"
  items: "{{ each | map(attribute='metadata.name') | list }}"
"""
PROJECTS = tuple((strategy, final) for strategy in ("merge", "server-side") for final in (False, True))


@cache
def project_of(strategy: str, final: bool) -> Project:
    return project(
        BODY.replace("STRATEGY", strategy).replace(
            "FINALIZE", "finalize: {last: {template: last.yaml}}" if final else "vars: {}"
        ),
        **{name: text for name, text in FILES.items() if final or name != "last"},
    )


SPECS = st.fixed_dictionaries(
    {
        "web": st.booleans(),
        "items": st.lists(st.sampled_from(["a", "b", "c"]), max_size=3),  # duplicates are a valid error
        "go": st.booleans(),
        "keep": st.booleans(),
        "far": st.booleans(),
        "replicas": st.integers(0, 3),
        "labels": st.dictionaries(st.sampled_from(["x", "z"]), st.sampled_from(["1", "2"])),
        "v": st.sampled_from(["1", "2", "bad"]),
    },
    optional={"extra": st.just(1)},
)
WORLDS = st.tuples(st.sampled_from(PROJECTS), SPECS)
SETTINGS = settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.too_slow])
THEIRS = (config("theirs", {"x": "1"}), {**config("e-b", {"x": "1"})}, config("kept", {}, labels={"app": "other"}))


def world_of(which: tuple[str, bool], spec: dict[str, Any], foreign: int = 0) -> Harness:
    harness = Harness(project_of(*which), app(spec))
    for obj in THEIRS[:foreign]:
        harness.add(obj)
    return harness


def shuffled(value: Any) -> Any:
    """The same value with the keys of each mapping in reverse order."""
    if isinstance(value, dict):
        return {name: shuffled(value[name]) for name in reversed(value)}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


def touched(planned: Plan) -> set[Any]:
    return {action.key for action in planned.actions if not isinstance(action, (AddFinalizer, RemoveFinalizer))}


@pytest.mark.slow
@SETTINGS
@given(WORLDS, SPECS, st.integers(0, 3), st.integers(0, 3))
def test_planning_is_deterministic_and_does_not_modify_its_arguments(start: Any, spec: Any, foreign: int, passes: int):
    harness = world_of(*start, foreign)
    for _ in range(passes):
        harness.controllers()
        harness.step()
    harness.edit(spec)
    before = copy.deepcopy((harness.resource, harness.objects))
    first, second = harness.plan(), harness.plan()
    assert as_bytes(first) == as_bytes(second)
    assert (harness.resource, harness.objects) == before
    other = Harness(
        harness.project,
        shuffled(harness.resource),
        {key_: shuffled(obj) for key_, obj in reversed(harness.objects.items())},
    )
    other.history = harness.history
    assert as_bytes(other.plan()) == as_bytes(first)


@pytest.mark.slow
@SETTINGS
@given(WORLDS, st.lists(SPECS, max_size=3), st.integers(0, 3))
def test_plans_converge_from_any_state_and_keep_fields_of_others(start: Any, history: Any, foreign: int):
    harness = world_of(*start, foreign)
    theirs = {key_: copy.deepcopy(obj) for key_, obj in harness.objects.items()}
    for spec in history:
        harness.controllers()
        harness.step()
        harness.edit(spec)
    harness.settle(20)
    assert harness.plan().quiet
    assert all(harness.objects[key_] == obj for key_, obj in theirs.items())
    assert not touched(harness.plan()) & theirs.keys()


@pytest.mark.slow
@SETTINGS
@given(WORLDS, SPECS, st.integers(0, 6))
def test_a_crash_after_any_write_ends_in_the_same_state(start: Any, spec: Any, writes: int):
    calm, shaken = world_of(*start), world_of(*start)
    for harness in (calm, shaken):
        harness.settle(20)
        harness.edit(spec)
    calm.settle(20)
    shaken.step(crash_after=writes)
    shaken.settle(20)
    assert shaken.masked() == calm.masked()


@SETTINGS
@given(WORLDS, st.integers(0, 8), st.integers(0, 3))
def test_a_deletion_with_crashes_leaves_only_orphans_and_objects_of_others(start: Any, when: int, foreign: int):
    harness = world_of(*start, foreign)
    theirs = {key_: copy.deepcopy(obj) for key_, obj in harness.objects.items()}
    harness.settle(20)
    harness.end()
    for number in range(20):
        if harness.resource is None:
            break
        harness.controllers()
        harness.step(crash_after=1 if number == when else None)
    assert harness.resource is None
    kept = {key("kept")} if start[1]["keep"] and start[1]["v"] != "bad" else set()
    assert harness.objects.keys() - theirs.keys() <= kept
    assert all(harness.objects[key_] == obj for key_, obj in theirs.items())


@SETTINGS
@given(WORLDS, SPECS)
def test_a_changed_cr_ends_in_the_same_state_as_a_new_one(start: Any, spec: Any):
    """Except for objects that a wait, a rejection or a policy left unchanged."""
    if spec["v"] == "bad" or not spec["go"] or len(set(spec["items"])) != len(spec["items"]) or start[1]["keep"]:
        return
    changed, fresh = world_of(*start), world_of(start[0], spec)
    changed.settle(20)
    changed.edit(spec)
    changed.settle(20)
    fresh.settle(20)
    there, here = changed.masked(), fresh.masked()
    for harness in (there, here):
        harness.pop("the CR")
        for obj in harness.values():
            del obj["metadata"]["annotations"][APPLIED]  # it also lists created maps, and the record itself creates one
    assert there == here
