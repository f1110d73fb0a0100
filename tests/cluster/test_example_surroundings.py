"""The App operator where its surroundings are not as they should be: asked to end in the middle, without permissions,
without its kind."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from controlplane.cluster import ControlPlane
from controlplane.fixtures import Kubectl

from tests.cluster.example_projects import LiveExample, missing
from tests.cluster.operator import RBAC, Operator, described, eventually
from tests.cluster.test_examples import APP

DEPLOYMENT, _ = APP.children


@pytest.fixture
def kind(control_plane: ControlPlane) -> Iterator[None]:
    """Apps are served."""
    control_plane.define(APP.crd)
    yield
    # The API server looks only once a minute for custom resources that have ended.
    control_plane.kubectl("delete", f"--filename={APP.crd}", "--wait=true", "--ignore-not-found", timeout=150)


@pytest.fixture
def live_example(
    kind: None, control_plane: ControlPlane, tmp_path: Path, namespace: str, kubectl: Kubectl
) -> Iterator[LiveExample]:
    with Operator(control_plane, APP.project, APP.permissions, tmp_path / "log") as operator:
        yield LiveExample(APP, operator, namespace, kubectl)
        operator.check()


def many(live_example: LiveExample, count: int) -> list[dict[str, Any]]:
    manifests = []
    for number in range(count):
        name = f"web-{number}"
        spec = {
            part: {**live_example.example.spec[part], "name": f"{name}-{part}"} for part in ("deployment", "service")
        }
        manifests.append({**live_example.example.manifest, "metadata": {"name": name}, "spec": spec})
    return manifests


def test_an_operator_stopped_during_work_is_continued_by_the_next_one(live_example: LiveExample) -> None:
    """Exit status 0 within the grace period, and in both lives together each child is made once."""
    mark, count = live_example.operator.mark(), 40
    live_example.kubectl(
        "create", "--filename=-", stdin="\n---\n".join(json.dumps(each) for each in many(live_example, count))
    )
    eventually("the first writes", lambda: live_example.operator.has_written(mark, live_example.namespace))
    assert live_example.operator.terminate() == 0
    live_example.operator.start()
    path = live_example.path.rpartition("/")[0]

    def ready() -> int:
        conditions = [
            (each.get("status") or {}).get("conditions", []) for each in live_example.admin.get(path)["items"]
        ]
        return sum(each["type"] == "Ready" and each["status"] == "True" for of_one in conditions for each in of_one)

    eventually("all to be ready", lambda: ready() == count)
    made = Counter(
        described(each)
        for each in live_example.operator.requests(mark, live_example.namespace)
        if each["verb"] == "create"
    )
    assert {each: times for each, times in made.items() if "events" not in each} == {
        f"create {child.resource} web-{number}-{child.resource.removesuffix('s')}": 1
        for number in range(count)
        for child in live_example.example.children
    }


@pytest.mark.real_server("RBAC refuses")
def test_a_missing_permission_is_reported_and_stops_only_children_that_need_it(
    kind: None, control_plane: ControlPlane, tmp_path: Path, namespace: str, kubectl: Kubectl
) -> None:
    """The condition names verb and resource. When the permission is granted, the operator continues by itself."""
    permissions = replace(APP.permissions, children=["deployments.apps"], observed=["services", "pods"])
    with Operator(control_plane, APP.project, permissions, tmp_path / "log") as operator:
        live_example = LiveExample(APP, operator, namespace, kubectl)
        live_example.apply()
        condition = eventually(
            "the rejection in the status",
            lambda: live_example.condition("Stalled").get("status") == "True" and live_example.condition("Ready"),
        )
        assert "create" in condition["message"]
        assert "services" in condition["message"]
        eventually("the other child", lambda: missing(DEPLOYMENT.wanted, live_example.get(DEPLOYMENT)) == "")
        eventually("the other child's status", lambda: live_example.resource()["status"]["availableReplicas"] == 2)
        role = f"{RBAC}/clusterroles/{operator.name}"
        operator.admin.merge(role, {"rules": APP.permissions.rules()}, "somebody")
        live_example.wait_until_settled()
        operator.check()


@pytest.mark.real_server("RBAC refuses")
def test_a_kind_of_child_without_permission_waits_for_it(
    kind: None, control_plane: ControlPlane, tmp_path: Path, namespace: str, kubectl: Kubectl
) -> None:
    permissions = replace(APP.permissions, children=["deployments.apps"])
    with Operator(control_plane, APP.project, permissions, tmp_path / "log") as operator:
        live_example = LiveExample(APP, operator, namespace, kubectl)
        live_example.apply()
        eventually("the other child", lambda: missing(DEPLOYMENT.wanted, live_example.get(DEPLOYMENT)) == "")
        condition = eventually(
            "why it is not ready",
            lambda: "ervice" in live_example.condition("Ready").get("message", "") and live_example.condition("Ready"),
        )
        assert condition["status"] == "False"
        operator.admin.merge(f"{RBAC}/clusterroles/{operator.name}", {"rules": APP.permissions.rules()}, "somebody")
        live_example.wait_until_settled()
        operator.check()


def test_without_permission_for_crds_the_operator_works(
    kind: None, control_plane: ControlPlane, tmp_path: Path, namespace: str, kubectl: Kubectl
) -> None:
    with Operator(
        control_plane, APP.project, replace(APP.permissions, definitions=False), tmp_path / "log"
    ) as operator:
        live_example = LiveExample(APP, operator, namespace, kubectl)
        live_example.apply()
        live_example.wait_until_settled()
        operator.check()


def test_a_kind_of_child_is_removed_and_added_again(live_example: LiveExample, control_plane: ControlPlane) -> None:
    """Its CRs go with it; of the next definition's CRs the operator hears without a restart, however soon that
    comes."""
    live_example.apply()
    live_example.wait_until_settled()
    for name in ("second", "third", "fourth"):
        control_plane.kubectl("delete", f"--filename={APP.crd}", "--wait=true")
        if name == "second":
            eventually("the server to have no such kind", lambda: "myapp.k8s.io" not in groups(live_example))
        control_plane.define(APP.crd)
        named = {part: {**settings, "name": name} for part, settings in APP.spec.items()}
        again = LiveExample(
            replace(APP, name=name, spec=named), live_example.operator, live_example.namespace, live_example.kubectl
        )
        eventually("the server to take one", lambda again=again: applied(again))
        eventually(
            "its status", lambda again=again: (again.resource().get("status") or {}).get("availableReplicas") == 2
        )


def groups(live_example: LiveExample) -> set[str]:
    return {each["name"] for each in live_example.admin.get("/apis")["groups"]}


def applied(live_example: LiveExample) -> bool:
    live_example.admin.post(live_example.path.rpartition("/")[0], live_example.example.manifest)
    return True
