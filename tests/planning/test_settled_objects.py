"""Objects of steady children are neither rendered nor merged again while nothing about them has changed, and the plan
is the same as without that."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ruleop.planning import History, Outcome, Patch, Plan, plan
from ruleop.planning.rendering import desired
from tests.exploration import examples
from tests.planning.harness import Harness, key, rule
from tests.planning.settled import settled

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ metadata.name }}", labels: {{ metadata.labels | default({}) }}}
spec:
  replicas: {{ spec.replicas }}
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: "{{ image }}"}]}}
"""
CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: web-config}
data: {ready: "{{ db.status.readyReplicas | default(0) }}"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web-more}
data: {image: "{{ image }}"}
"""
BODY = """
let: {image: "{{ spec.image | default('nginx') }}"}
children:
  db: {template: db.yaml}
  config: {template: config.yaml}
  service: {template: service.yaml, when: spec.service, deletion: "{{ 'orphan' if spec.keep else 'delete' }}"}
status: {ready: "{{ db.status.readyReplicas }}"}
"""
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: {{ spec.port }}}]}"
SPEC = {"replicas": 2, "service": True, "port": 80, "keep": False}
DB, SVC = key("web", "Deployment", group="apps"), key("web", "Service")


def of_all(spec: dict[str, Any] | None = None) -> Harness:
    return Harness.of(BODY, spec or SPEC, db=DEPLOYMENT, config=CONFIG, service=SERVICE)


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the children whose bodies are rendered, in order."""
    found: list[str] = []
    original = desired._rendered

    def counted(child: Any, *args: Any, **more: Any) -> Any:
        found.append(child.id)
        return original(child, *args, **more)

    monkeypatch.setattr(desired, "_rendered", counted)
    return found


def planned(harness: Harness) -> Plan:
    """As the operator plans: nothing is shown."""
    return plan_by(harness, harness.history)


def plan_by(harness: Harness, history: History) -> Plan:
    assert harness.resource is not None
    return plan(harness.rule, harness.resource, harness.observed(), history, predict_status=False, masks=False)


@pytest.mark.parametrize(
    ("steady", "body"),
    [
        (True, 'data: {a: "{{ spec.a }}", b: "{{ metadata.name }}", c: "{{ cr.spec.a }}"}'),
        (True, 'data: {a: "{{ metadata.labels.x }}{{ cr.metadata.annotations.y }}"}'),
        (True, 'data: {a: "{{ named }}"}'),
        (False, 'data: {a: "{{ counted }}"}'),
        (False, 'data: {a: "{{ metadata.resourceVersion }}"}'),
        (False, 'data: {a: "{{ cr.metadata.generation }}"}'),
        (False, 'data: {a: "{{ metadata | tojson }}"}'),
        (False, 'data: {a: "{{ metadata[spec.field] }}"}'),
        (False, 'data: {a: "{{ cr | tojson }}"}'),
        (False, 'data: {a: "{{ status.a | default(1) }}"}'),
        (False, 'data: {a: "{{ cr.status.a | default(1) }}"}'),
        (False, "data: {a: \"{{ has_kind('v1', 'Secret') }}\"}"),
        (False, "data: {a: \"{{ after(metadata.creationTimestamp, '1h') }}\"}"),
        (False, 'data: {a: "{{ live.other.data.a | default(1) }}"}'),
    ],
)
def test_a_child_is_steady_if_it_follows_from_what_clients_write(*, steady: bool, body: str) -> None:
    found = rule(
        """
        let: {named: "{{ metadata.name }}", counted: "{{ status.count | default(0) }}"}
        children: {child: {template: child.yaml}, other: {template: other.yaml}}
        """,
        child=f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\n{body}",
        other="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}",
    )
    assert found.children["child"].inputs.steady is steady


def test_an_object_that_is_rendered_twice_fails_in_each_pass() -> None:
    harness = Harness.of("children: {web: {template: web.yaml}}", {"a": "1"}, web=f"{CONFIG_OF_A}\n---\n{CONFIG_OF_A}")
    for _ in range(3):
        harness.step()
        assert harness.ready()[1] == "RenderFailed"
        assert not harness.objects


def test_a_resource_that_did_not_change_is_not_rendered_again(rendered: list[str]) -> None:
    harness = of_all()
    harness.settle()
    rendered.clear()
    assert not planned(harness).actions
    assert rendered == ["config"]  # it reads the Deployment's status


def test_the_status_of_a_child_is_no_reason_to_render_it(rendered: list[str]) -> None:
    harness = of_all()
    harness.settle()
    harness.change(DB, {"status": {"readyReplicas": 1}, "metadata": {"managedFields": [{"manager": "kubelet"}]}})
    rendered.clear()
    assert [action.key.name for action in planned(harness).actions] == ["web-config"]
    assert rendered == ["config"]


@pytest.mark.parametrize(
    "patch", [{"spec": {"replicas": 9}}, {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}}]
)
def test_drift_is_seen(patch: dict[str, Any]) -> None:
    harness = of_all()
    harness.settle()
    before = copy.deepcopy(harness.objects[DB])
    harness.change(DB, patch)
    harness.step()
    for each in (before, harness.objects[DB]):
        each["metadata"].pop("resourceVersion"), each["metadata"].pop("generation")
    assert harness.objects[DB] == before


def test_a_default_that_is_added_to_the_definition_is_an_edit(rendered: list[str]) -> None:
    """The spec changes without a new generation."""
    harness = of_all()
    harness.settle()
    rendered.clear()
    assert harness.resource is not None
    harness.resource["spec"]["port"] = 81
    assert [action.key for action in planned(harness).actions] == [SVC]
    assert {"db", "service"} <= {*rendered}


def test_an_answer_that_differs_from_what_was_sent_is_compared_in_the_next_plan(rendered: list[str]) -> None:
    harness = settled("children: {web: {template: web.yaml}}", {"a": "1"}, web=CONFIG_OF_A)
    for answered, expected in (("2", []), ("by a webhook", ["web"])):
        harness.edit({"a": answered[:1]})
        changes, outcome = planned(harness), Outcome()
        for action in changes.actions:
            harness.do(action)
            harness.change(action.key, {"data": {"a": answered}})
            assert isinstance(action, Patch)
            outcome.done.append(action)
            outcome.wrote(action, harness.objects[action.key], harness.info)
        harness.history = harness.history.after(changes, outcome, 0.0)
        rendered.clear()
        planned(harness)
        assert rendered == expected


@pytest.mark.parametrize("value", [2**70, "deep"])
def test_a_spec_that_cannot_be_hashed_is_rendered_each_time(value: Any, rendered: list[str]) -> None:
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    harness = settled(
        "children: {web: {template: web.yaml}}", {"a": "1", "b": deep if value == "deep" else value}, web=CONFIG_OF_A
    )
    rendered.clear()
    assert not planned(harness).actions
    assert rendered == ["web"]


CONFIG_OF_A = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {a: "{{ spec.a }}"}'

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("edit"), st.fixed_dictionaries({}, optional={
            "replicas": st.integers(1, 3), "service": st.booleans(), "port": st.integers(1, 2), "keep": st.booleans(),
            "image": st.sampled_from(["a", "b"]),
        })),
        st.tuples(st.just("labels"), st.sampled_from([{"x": "1"}, {"x": "2"}, None])),
        st.tuples(st.just("status"), st.integers(0, 2)),
        st.tuples(st.just("drift"), st.sampled_from([
            {"spec": {"replicas": 7}}, {"metadata": {"labels": {"x": "y"}}}, {"metadata": {"ownerReferences": []}},
            {"metadata": {"annotations": {"ruleop.dev/applied": "?"}}},
        ])),
        st.tuples(st.just("delete"), st.sampled_from([DB, SVC])),
        st.tuples(st.just("step"), st.none()),
        st.tuples(st.just("crash"), st.integers(0, 2)),
    ),
    max_size=12,
)  # fmt: skip


def take(harness: Harness, step: str, value: Any) -> None:
    assert harness.resource is not None
    match step:
        case "edit":
            harness.edit({**harness.resource["spec"], **value})
        case "labels":
            harness.patch_resource({"labels": value})
        case "status":
            if DB in harness.objects:
                harness.change(DB, {"status": {"readyReplicas": value}})
        case "drift":
            if DB in harness.objects:
                harness.change(DB, value)
        case "delete":
            if value in harness.objects:
                harness.delete(value)
        case "step":
            harness.step()
        case "crash":
            harness.step(crash_after=value)


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_a_plan_is_the_same_without_what_is_settled(steps: list[tuple[str, Any]]) -> None:
    harness = of_all()
    harness.step()
    for step, value in steps:
        take(harness, step, value)
        known, fresh = (
            replace(plan_by(harness, history), account=None)
            for history in (harness.history, replace(harness.history, settled=None))
        )
        assert known == fresh
