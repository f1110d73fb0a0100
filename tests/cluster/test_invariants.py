"""The invariants as the API server sees them: what the work costs, counted in its audit log. No controllers run, so
nothing but the operator and the test writes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.cluster.apps import Apps
from tests.cluster.conftest import NewCluster
from tests.cluster.example_projects import ROOT
from tests.cluster.in_memory import in_memory
from tests.cluster.operator import Operator, described, eventually, is_bookkeeping
from tests.cluster.test_examples import APP

MANY = 200


@pytest.fixture(scope="module")
def operator(new_cluster: NewCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with new_cluster(controllers=False) as plane:
        plane.define(ROOT / "crds")
        with Operator(plane, APP.project, APP.permissions, tmp_path_factory.mktemp("operator") / "log") as running:
            # The very first child of each kind is preceded by a write of the inventory.
            Apps(running, "first").create("first")
            yield running
            running.check()
            assert running.terminate() == 0
        plane.check()


def test_a_new_cr_costs_a_write_for_each_child_and_one_status(operator: Operator) -> None:
    """There are no reads either."""
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


def test_a_new_name_costs_a_create_and_a_delete_after_one_read(operator: Operator) -> None:
    """Each deletion follows a live read."""
    apps = Apps(operator, "renamed")
    apps.create("web")
    asked = apps.edit("web", {"spec": {"service": {"name": "another"}}})
    assert asked == ["create services another", "get services web-s", "delete services web-s", "patch apps/status web"]


def test_changes_without_effect_cause_no_write(operator: Operator) -> None:
    """An annotation on the CR, and a field of a child that is not ruleop's."""
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


def test_an_irrelevant_status_change_of_a_child_causes_no_write(operator: Operator) -> None:
    apps = Apps(operator, "meaningless")
    apps.create("web")
    mark = operator.mark()
    child = "/apis/apps/v1/namespaces/meaningless/deployments/web-d"
    condition = {"type": "Progressing", "status": "Unknown", "reason": "Somebody", "message": "thinks about it"}
    apps.admin.merge(f"{child}/status", {"status": {"collisionCount": 1, "conditions": [condition]}}, "somebody")
    assert apps.asked(mark) == []


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


@pytest.fixture
def idle(request: pytest.FixtureRequest) -> float:
    """Seconds that are watched for requests."""
    return 3.0 if in_memory(request.config) else 60.0


@pytest.mark.newest("lists are streams")
def test_many_crs_cost_the_sum_of_their_writes_and_a_restart_costs_none(operator: Operator, idle: float) -> None:
    """Whether it has worked on them or found them as they should be: at rest there are no requests but the watches.
    After a restart these are all that is read of objects, once each, as streams."""
    apps = Apps(operator, "many")
    mark = operator.mark()
    for number in range(MANY):
        apps.add(f"web-{number}")
    eventually("all to be observed", lambda: _observed(apps) == MANY, timeout=120)
    eventually("the audit log", lambda: len(operator.writes(mark, "many")) >= 3 * MANY)
    eventually(
        "the events",
        lambda: sum(described(each).startswith("create events") for each in operator.requests(mark, "many")) == MANY,
        60,
    )
    made = Counter(
        described(each).rsplit(" ", 1)[0] for each in operator.requests(mark, "many") if not is_bookkeeping(each)
    )
    assert made == {"create deployments": MANY, "create services": MANY, "patch apps/status": MANY}

    operator.kill()
    mark = operator.mark()
    operator.start()
    # Not a wait for something: it is the time in which nothing may happen.
    time.sleep(idle)
    assert "controller App.myapp.k8s.io: 0 running, 0 queued, 0 failing" in operator.probe("/readyz?verbose")[1], (
        "each was reconciled"
    )
    asked = [each for each in operator.requests(mark) if "objectRef" in each]
    streams = [
        each["requestURI"]
        for each in asked
        if each["verb"] == "watch" and "sendInitialEvents=true" in each["requestURI"]
    ]
    assert len(streams) == len(set(streams)) > 4
    assert sorted(described(each) for each in asked if each["verb"] != "watch") == [
        "get configmaps ruleop-inventory",
        "get configmaps ruleop-revisions",  # before the Lease: whether the rules were in force
        "get configmaps ruleop-revisions",  # by the leader, which writes them
    ]


def _observed(apps: Apps) -> int:
    return sum("observedGeneration" in (each.get("status") or {}) for each in apps.admin.get(apps.path)["items"])
