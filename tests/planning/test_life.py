"""A CR's whole life, pass by pass, on a small cluster."""

from __future__ import annotations

from tests.planning.world import RESYNCED, World, key

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


def two(color: str = "red", replicas: int = 2) -> World:
    return World.of(TWO, {"color": color, "replicas": replicas}, config=CONFIG, web=WEB)


def test_children_are_created_then_the_status_then_nothing_is_written():
    world = two()
    world.settle()
    assert world.names() == ["ConfigMap/web-config", "Deployment/web"]
    assert world.ready() == ("True", "Ready", "")
    assert world.status["replicas"] == 2
    assert world.plan().quiet


def test_creating_costs_one_write_a_child():
    world = two()
    world.settle()
    assert [write for write in world.writes if write != "status"] == [
        "Create ConfigMap/web-config",
        "Create Deployment/web",
    ]


def test_a_change_of_the_spec_is_one_patch():
    world = two()
    world.settle()
    world.writes.clear()
    world.edit({"color": "red", "replicas": 3})
    world.settle()
    assert [write for write in world.writes if write != "status"] == ["Patch Deployment/web"]
    assert world.objects[key("web", "Deployment", group="apps")]["spec"]["replicas"] == 3


def test_a_deleted_child_is_recreated():
    world = two()
    world.settle()
    world.delete(key("web-config"))
    world.settle()
    assert "ConfigMap/web-config" in world.names()


def test_a_field_that_somebody_else_sets_stays():
    world = two()
    world.settle()
    world.change(key("web", "Deployment", group="apps"), {"metadata": {"labels": {"theirs": "1"}}})
    assert world.plan().actions == ()


def test_drift_is_reverted():
    world = two()
    world.settle()
    world.change(key("web-config"), {"data": {"color": "blue"}})
    world.settle()
    assert world.objects[key("web-config")]["data"] == {"color": "red"}


def test_deletion_of_children_is_left_to_the_garbage_collector():
    world = two()
    world.settle()
    assert world.finalizers == []
    world.end()
    assert world.objects == {}


def test_a_changed_value_is_written_before_children_that_read_it_in_one_pass():
    world = two()
    world.settle()
    world.edit({"color": "blue", "replicas": 2})
    world.writes.clear()
    world.step()
    assert world.writes[:2] == ["Patch ConfigMap/web-config", "Patch Deployment/web"]


def test_children_made_possible_by_the_responses_of_a_pass_are_planned_at_once():
    """No event tells of it: it is in the stores before the watch can tell. What was just written is not looked at for its own sake."""
    world = World.of(WAITS, config=READY_AT_ONCE, web=WEB, spec={"replicas": 1})
    assert world.plan().requeue_after == RESYNCED
    world.execute(world.plan().actions)
    first = key("web-config")
    assert world.plan_status(done=[first]).requeue_after.seconds == 0
    world.execute(world.plan().actions)
    assert world.plan_status(done=[first, key("web", "Deployment", group="apps")]).requeue_after == RESYNCED
    world.change(first, {"data": {"color": "blue"}})
    assert world.plan_status(done=[first]).requeue_after == RESYNCED


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
    """The engine acts and plans once more; a status for a world that is not there yet would be worked out for nobody."""
    world = two()
    foretold, bare = world.plan(), world.plan(foresee=False)
    assert bare.actions == foretold.actions
    assert (bare.status, bare.conditions) == (None, None)
    world.settle()
    assert world.plan(foresee=False) == world.plan(), "there is nothing to do, so there is no again"


def test_a_paused_cr_gets_its_status_at_once():
    world = two()
    world.patch_resource({"annotations": {"ruleop.dev/paused": "true"}})
    assert world.plan(foresee=False) == world.plan()
