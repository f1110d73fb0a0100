"""What the work costs the API server, counted in its audit log. No controllers run, so nothing but the operator and the test writes."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from controlplane.cluster import ControlPlane

from tests.cluster.operator import Operator, beside, eventually, told
from tests.cluster.seeds import ROOT
from tests.cluster.test_seed_app import APP

if TYPE_CHECKING:
    from collections.abc import Iterator

MANY = 200
IDLE = 20.0  # seconds that are watched for requests


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with ControlPlane(controllers=False) as plane:
        plane.kubectl("apply", f"--filename={ROOT / 'crds'}")
        plane.kubectl("wait", "--for=condition=Established", f"--filename={ROOT / 'crds'}", "--timeout=30s")
        with Operator(plane, APP.project, APP.rights, tmp_path_factory.mktemp("operator") / "log") as running:
            # The very first child of each kind is preceded by a write of the inventory.
            Apps(running, "first").create("first")
            yield running
            running.check()
            assert running.terminate() == 0
        plane.check()


class Apps:
    """Apps in a namespace of their own, and what the operator did there."""

    def __init__(self, operator: Operator, namespace: str) -> None:
        self.operator, self.admin, self.namespace = operator, operator.admin, namespace
        self.admin.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        self.path = f"/apis/myapp.k8s.io/v1/namespaces/{namespace}/apps"

    def add(self, name: str) -> None:
        spec = {"deployment": {"name": f"{name}-d", "image": "nginx:1", "replicas": 1}, "service": {"name": f"{name}-s"}}
        self.admin.post(self.path, {"apiVersion": "myapp.k8s.io/v1", "kind": "App", "metadata": {"name": name}, "spec": spec})

    def create(self, name: str) -> None:
        self.add(name)
        self.wait_until_told(name)

    def edit(self, name: str, patch: dict[str, Any]) -> list[str]:
        """Everything that the operator asked for because of it."""
        mark = self.operator.mark()
        self.admin.merge(f"{self.path}/{name}", patch, "somebody")
        self.wait_until_told(name)
        return self.asked(mark)

    def wait_until_told(self, name: str) -> None:
        def done() -> bool:
            app = self.admin.get(f"{self.path}/{name}")
            return (app.get("status") or {}).get("observedGeneration") == app["metadata"]["generation"]

        eventually(f"{name} to be told of", done)

    def asked(self, mark: int) -> list[str]:
        """In order, once the operator has gone on to something else: an App elsewhere, made now, has been seen to."""
        other = self.namespace + "-after"
        sentinel = Apps(self.operator, f"{other}-{time.monotonic_ns()}")
        sentinel.create("sentinel")
        eventually("the audit log", lambda: len(self.operator.requests(mark, sentinel.namespace)) >= 3)
        return [told(each) for each in self.operator.requests(mark, self.namespace) if not beside(each)]


def test_a_resource_costs_a_write_per_child_and_one_status(operator: Operator) -> None:
    """And no reads."""
    apps = Apps(operator, "created")
    mark = operator.mark()
    apps.create("web")
    asked = apps.asked(mark)
    assert sorted(asked) == ["create deployments web-d", "create services web-s", "patch apps/status web"]
    assert asked[-1] == "patch apps/status web"


def test_an_edit_costs_a_patch_per_changed_child_and_one_status(operator: Operator) -> None:
    apps = Apps(operator, "edited")
    apps.create("web")
    asked = apps.edit("web", {"spec": {"deployment": {"image": "nginx:2", "replicas": 5}}})
    assert asked == ["patch deployments web-d", "patch apps/status web"]


def test_a_new_name_costs_a_create_and_a_delete_after_one_look(operator: Operator) -> None:
    """What is deleted is read live first."""
    apps = Apps(operator, "renamed")
    apps.create("web")
    asked = apps.edit("web", {"spec": {"service": {"name": "another"}}})
    assert asked == ["create services another", "get services web-s", "delete services web-s", "patch apps/status web"]


def test_what_changes_nothing_costs_nothing(operator: Operator) -> None:
    """An annotation on the CR, and a field of a child that is not ours."""
    apps = Apps(operator, "touched")
    apps.create("web")
    mark = operator.mark()
    apps.admin.merge(f"{apps.path}/web", {"metadata": {"annotations": {"example.com/seen": "yes"}}}, "somebody")
    child = "/apis/apps/v1/namespaces/touched/deployments/web-d"
    apps.admin.merge(child, {"spec": {"paused": True}}, "somebody")
    assert apps.asked(mark) == []


def test_a_childs_status_costs_one_status_write(operator: Operator) -> None:
    apps = Apps(operator, "progressed")
    apps.create("web")
    mark = operator.mark()
    child = "/apis/apps/v1/namespaces/progressed/deployments/web-d"
    generation = apps.admin.get(child)["metadata"]["generation"]
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
    apps.admin.merge(f"{child}/status", {"status": {"observedGeneration": generation, **counts}}, "somebody")
    eventually("the status", lambda: apps.admin.get(f"{apps.path}/web")["status"].get("availableReplicas") == 1)
    assert apps.asked(mark) == ["patch apps/status web"]


def test_drift_costs_one_write(operator: Operator) -> None:
    """Whether somebody changed a child or deleted it."""
    apps = Apps(operator, "drifted")
    apps.create("web")
    child = "/api/v1/namespaces/drifted/services/web-s"
    mark = operator.mark()
    apps.admin.merge(child, {"spec": {"selector": {"app": "another"}}}, "somebody")
    eventually("it to be put back", lambda: apps.admin.get(child)["spec"]["selector"]["app"] == "myApp")
    assert apps.asked(mark) == ["patch services web-s"]
    mark = operator.mark()
    apps.admin.delete(child)
    eventually("it to be made again", lambda: apps.admin.get(child))
    assert apps.asked(mark) == ["create services web-s"]


def test_many_resources_cost_what_each_does_and_then_nothing(operator: Operator) -> None:
    apps = Apps(operator, "many")
    mark = operator.mark()
    for number in range(MANY):
        apps.add(f"web-{number}")
    eventually("all to be told of", lambda: _told_of(apps) == MANY, timeout=60)
    eventually("the audit log", lambda: len(operator.writes(mark, "many")) >= 3 * MANY)
    eventually("the events", lambda: sum(told(each).startswith("create events") for each in operator.requests(mark, "many")) == MANY)
    idle = operator.mark()
    # Not a wait for something: it is the time in which nothing may happen.
    time.sleep(IDLE)
    assert [told(each) for each in operator.requests(idle) if each["verb"] != "watch"] == []
    made = Counter(told(each).rsplit(" ", 1)[0] for each in operator.requests(mark, "many") if not beside(each))
    assert made == {"create deployments": MANY, "create services": MANY, "patch apps/status": MANY}


def test_a_restart_writes_nothing(operator: Operator) -> None:
    """What is as it should be is left alone by the next life too; reading is done once a kind, by its watch."""
    mark = operator.mark()
    operator.kill()
    operator.start()
    Apps(operator, "restarted").create("web")
    eventually("the audit log", lambda: len(operator.writes(mark, "restarted")) >= 3)
    assert [each for each in operator.requests(mark) if each["verb"] == "list"] == []
    assert operator.writes(mark) == operator.writes(mark, "restarted")


def _told_of(apps: Apps) -> int:
    return sum("observedGeneration" in (each.get("status") or {}) for each in apps.admin.get(apps.path)["items"])
