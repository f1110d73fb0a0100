"""The lifecycle of a CR, pass by pass, on a small cluster."""

from __future__ import annotations

from tests.planning.harness import Harness, key
from tests.planning.settled import edit_and_settle

TWO = """
children:
  config: {template: config.yaml}
  web: {template: web.yaml}
status:
  replicas: "{{ web.status.availableReplicas | default(0) }}"
"""
CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ metadata.name }}-config"}
data: {color: "{{ spec.color }}"}
"""
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ metadata.name }}"}
spec:
  replicas: {{ spec.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations: {checksum: "{{ config | sha256(8) }}"}
    spec: {containers: [{name: web, image: nginx}]}
"""


def two(color: str = "red", replicas: int = 2) -> Harness:
    return Harness.of(TWO, {"color": color, "replicas": replicas}, config=CONFIG, web=WEB)


def test_children_are_created_then_the_status_then_nothing_is_written():
    harness = two()
    harness.settle()
    assert harness.names() == ["ConfigMap/web-config", "Deployment/web"]
    assert harness.ready() == ("True", "Ready", "")
    assert harness.status["replicas"] == 2
    assert harness.plan().quiet


def test_creating_a_child_takes_one_write():
    harness = two()
    harness.settle()
    assert [write for write in harness.writes if write != "status"] == [
        "Create ConfigMap/web-config",
        "Create Deployment/web",
    ]


def test_a_change_of_the_spec_is_one_patch():
    harness = two()
    harness.settle()
    harness.writes.clear()
    edit_and_settle(harness, {"color": "red", "replicas": 3})
    assert [write for write in harness.writes if write != "status"] == ["Patch Deployment/web"]
    assert harness.objects[key("web", "Deployment", group="apps")]["spec"]["replicas"] == 3


def test_a_deleted_child_is_recreated():
    harness = two()
    harness.settle()
    harness.delete(key("web-config"))
    harness.settle()
    assert "ConfigMap/web-config" in harness.names()


def test_a_field_set_by_others_is_kept():
    harness = two()
    harness.settle()
    harness.change(key("web", "Deployment", group="apps"), {"metadata": {"labels": {"theirs": "1"}}})
    assert harness.plan().actions == ()


def test_drift_is_reverted():
    harness = two()
    harness.settle()
    harness.change(key("web-config"), {"data": {"color": "blue"}})
    harness.settle()
    assert harness.objects[key("web-config")]["data"] == {"color": "red"}


def test_deletion_of_children_is_left_to_the_garbage_collector():
    harness = two()
    harness.settle()
    assert harness.finalizers == []
    harness.end()
    assert harness.objects == {}


def test_a_changed_value_is_written_before_children_that_read_it_in_one_pass():
    harness = two()
    harness.settle()
    harness.edit({"color": "blue", "replicas": 2})
    harness.writes.clear()
    harness.step()
    assert harness.writes[:2] == ["Patch ConfigMap/web-config", "Patch Deployment/web"]


def test_children_unblocked_by_the_responses_of_a_pass_are_planned_at_once():
    """The cache has the responses before the watch delivers them, so no event triggers a pass. Written objects alone do
    not requeue."""
    harness = Harness.of(WAITS, config=READY_AT_ONCE, web=WEB, spec={"replicas": 1})
    assert not harness.plan().again
    first = harness.plan().actions
    harness.execute(first)
    assert harness.plan_status(done=first).again
    second = harness.plan().actions
    harness.execute(second)
    assert not harness.plan_status(done=[*first, *second]).again
    harness.change(key("web-config"), {"data": {"color": "blue"}})
    assert not harness.plan_status(done=first).again, "the server made something else of what was sent"


WAITS = """
children:
  config: {template: config.yaml}
  web: {template: web.yaml, waitFor: "config.metadata.uid is defined"}
"""
READY_AT_ONCE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ metadata.name }}-config"}
data: {color: red}
"""


def test_a_first_round_plans_writes_without_a_predicted_status():
    """The engine plans again after its writes, so a status before them would be unused."""
    harness = two()
    predicted, bare = harness.plan(), harness.plan(predict_status=False)
    assert bare.actions == predicted.actions
    assert (bare.status, bare.conditions) == (None, None)
    harness.settle()
    assert harness.plan(predict_status=False) == harness.plan(), "there is nothing to do, so there is no second plan"


def test_a_paused_cr_gets_its_status_at_once():
    harness = two()
    harness.patch_resource({"annotations": {"ruleop.dev/paused": "true"}})
    assert harness.plan(predict_status=False) == harness.plan()
