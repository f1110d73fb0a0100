"""`deletionOrder: reverse` beside a cluster's garbage collector and namespace controller: whichever way the custom
resource is deleted, an object goes when those that depend on it are gone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from controlplane.cluster import ControlPlane

from tests.cluster.custom_resource import CustomResource
from tests.cluster.operator import Operator, eventually, operator_of

RULES = """\
- group: example.com
  version: v1
  kind: Stack
  deletionOrder: reverse
  reach: cluster
  children:
    ground: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: ground}}}
    floor:
      when: spec.high
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: floor}, data: {below: "{{ ground.metadata.name }}"}}
    roof:
      when: spec.high
      dependsOn: [floor]
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: roof}}
    room:
      dependsOn: [roof]
      object: {apiVersion: v1, kind: Namespace, metadata: {name: "{{ metadata.namespace }}-room"}}
    chair:
      namespace: "{{ room.metadata.name }}"
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: chair}}
"""
HELD = "example.com/held"


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with operator_of(
        control_plane, tmp_path_factory.mktemp("stacks"), "Stack", RULES, children=["configmaps", "namespaces"]
    ) as operator:
        yield operator


class Stack(CustomResource):
    def place(self, name: str) -> str:
        if name == "room":
            return f"/api/v1/namespaces/{self.namespace}-room"
        return f"/api/v1/namespaces/{self.namespace}{'-room' if name == 'chair' else ''}/configmaps/{name}"

    def hold(self, name: str, finalizers: list[str] | None) -> None:
        self.admin.merge(self.place(name), {"metadata": {"finalizers": finalizers}}, "somebody")

    def deletions(self) -> list[str]:
        """The children in the order in which ruleop or the garbage collector asked to delete them."""
        asked = self.operator.plane.audit(mark=self.mark, verb="delete")
        names = [(each["objectRef"].get("namespace", ""), each["objectRef"]["name"]) for each in asked]
        ours = {(self.namespace, name): name for name in ("ground", "floor", "roof")}
        ours |= {(f"{self.namespace}-room", "chair"): "chair", (f"{self.namespace}-room",) * 2: "room"}
        ours[("", f"{self.namespace}-room")] = "room"
        return list(dict.fromkeys(ours[each] for each in names if each in ours))


@pytest.fixture
def stack(operator: Operator, namespace: str) -> Stack:
    return Stack(operator, namespace, "high", {"high": True})


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_the_objects_of_a_deleted_custom_resource_go_one_after_another(stack: Stack, propagation: str) -> None:
    stack.hold("roof", [HELD])
    stack.admin.delete(f"{stack.path}?propagationPolicy={propagation}")
    waits = f"ConfigMap/{stack.namespace}/roof is still there, held by its finalizer {HELD}"
    eventually("the roof to be waited for", lambda: waits in stack.ready()["message"])
    assert stack.ready()["reason"] == "Deleting"
    for name in ("ground", "floor", "roof"):
        assert stack.exists(stack.place(name))
    assert "deletionTimestamp" not in stack.admin.get(stack.place("floor"))["metadata"]
    stack.operator.kill()
    stack.operator.start()
    stack.hold("roof", None)
    eventually("the stack to be gone", lambda: not stack.exists(stack.path))
    assert not any(stack.exists(stack.place(name)) for name in ("ground", "floor", "roof", "room", "chair"))
    assert stack.deletions() == ["chair", "room", "roof", "floor", "ground"]


def test_children_that_are_no_longer_desired_go_one_after_another(stack: Stack) -> None:
    stack.hold("roof", [HELD])
    stack.admin.merge(stack.path, {"spec": {"high": False}}, "somebody")
    eventually("the floor to wait", lambda: "floor waits for" in stack.ready()["message"])
    assert "deletionTimestamp" not in stack.admin.get(stack.place("floor"))["metadata"]
    stack.hold("roof", None)
    eventually("the stack to be ready", lambda: stack.ready()["status"] == "True")
    assert stack.deletions() == ["roof", "floor"]
    assert stack.exists(stack.place("room"))
    stack.admin.delete(stack.path)
    eventually("the stack to be gone", lambda: not stack.exists(stack.path))


def test_the_order_can_be_given_up(stack: Stack) -> None:
    stack.hold("roof", [HELD])
    stack.admin.delete(stack.path)
    eventually("the roof to be waited for", lambda: HELD in stack.ready()["message"])
    skip = {"metadata": {"annotations": {"ruleop.dev/skip-deletion-order": "true"}}}
    stack.admin.merge(stack.path, skip, "somebody")
    eventually("the ground to be gone", lambda: not stack.exists(stack.place("ground")))
    events = f"/apis/events.k8s.io/v1/namespaces/{stack.namespace}/events"
    skipped = "DeletionOrderSkipped"
    eventually("an Event", lambda: skipped in {each["reason"] for each in stack.admin.get(events)["items"]})
    stack.hold("roof", None)
    eventually("the stack to be gone", lambda: not stack.exists(stack.path))
