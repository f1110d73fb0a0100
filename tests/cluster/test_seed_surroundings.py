"""The App operator where its surroundings are not as they should be: asked to end in the middle, without rights, without its kind."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.operator import RBAC, Operator, eventually, told
from tests.cluster.seeds import Life, missing
from tests.cluster.test_seed_app import APP

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from controlplane.cluster import ControlPlane
    from controlplane.fixtures import Kubectl

DEPLOYMENT, _ = APP.children


@pytest.fixture
def kind(control_plane: ControlPlane) -> Iterator[None]:
    """Apps are served."""
    control_plane.define(APP.crd)
    yield
    control_plane.kubectl("delete", f"--filename={APP.crd}", "--wait=true", "--ignore-not-found")


@pytest.fixture
def life(kind: None, control_plane: ControlPlane, tmp_path: Path, namespace: str, kubectl: Kubectl) -> Iterator[Life]:
    with Operator(control_plane, APP.project, APP.rights, tmp_path / "log") as operator:
        yield Life(APP, operator, namespace, kubectl)
        operator.check()


def many(life: Life, count: int) -> list[dict[str, Any]]:
    manifests = []
    for number in range(count):
        name = f"web-{number}"
        spec = {part: {**life.seed.spec[part], "name": f"{name}-{part}"} for part in ("deployment", "service")}
        manifests.append({**life.seed.manifest, "metadata": {"name": name}, "spec": spec})
    return manifests


def test_asked_to_end_in_the_middle_it_ends_in_order_and_the_next_one_goes_on(life: Life) -> None:
    """Exit status 0 within the grace period, and in both lives together each child is made once."""
    mark, count = life.operator.mark(), 40
    life.kubectl("create", "--filename=-", stdin="\n---\n".join(json.dumps(each) for each in many(life, count)))
    eventually("the first writes", lambda: life.operator.has_written(mark, life.namespace))
    assert life.operator.terminate() == 0
    life.operator.start()
    path = life.path.rpartition("/")[0]

    def ready() -> int:
        conditions = [(each.get("status") or {}).get("conditions", []) for each in life.admin.get(path)["items"]]
        return sum(each["type"] == "Ready" and each["status"] == "True" for of_one in conditions for each in of_one)

    eventually("all to be ready", lambda: ready() == count)
    made = Counter(told(each) for each in life.operator.requests(mark, life.namespace) if each["verb"] == "create")
    assert {each: times for each, times in made.items() if "events" not in each} == {
        f"create {child.resource} web-{number}-{child.resource.removesuffix('s')}": 1
        for number in range(count)
        for child in life.seed.children
    }


def test_a_missing_right_is_told_and_stops_only_what_needs_it(
    kind: None, control_plane: ControlPlane, tmp_path: Path, namespace: str, kubectl: Kubectl
) -> None:
    """The condition names verb and resource. When the right is granted, nobody has to do anything."""
    rights = replace(APP.rights, children=["deployments.apps"], observed=["services", "pods"])
    with Operator(control_plane, APP.project, rights, tmp_path / "log") as operator:
        life = Life(APP, operator, namespace, kubectl)
        life.apply()
        condition = eventually(
            "the refusal to be told", lambda: life.condition("Stalled").get("status") == "True" and life.condition("Ready")
        )
        assert "create" in condition["message"]
        assert "services" in condition["message"]
        eventually("the other child", lambda: missing(DEPLOYMENT.wanted, life.get(DEPLOYMENT)) == "")
        eventually("the other child's status", lambda: life.resource()["status"]["availableReplicas"] == 2)
        role = f"{RBAC}/clusterroles/{operator.name}"
        operator.admin.merge(role, {"rules": APP.rights.rules()}, "somebody")
        life.settled()
        operator.check()


def test_a_kind_of_child_that_may_not_be_read_waits_for_the_right(
    kind: None, control_plane: ControlPlane, tmp_path: Path, namespace: str, kubectl: Kubectl
) -> None:
    rights = replace(APP.rights, children=["deployments.apps"])
    with Operator(control_plane, APP.project, rights, tmp_path / "log") as operator:
        life = Life(APP, operator, namespace, kubectl)
        life.apply()
        eventually("the other child", lambda: missing(DEPLOYMENT.wanted, life.get(DEPLOYMENT)) == "")
        condition = eventually(
            "why it is not ready", lambda: "ervice" in life.condition("Ready").get("message", "") and life.condition("Ready")
        )
        assert condition["status"] == "False"
        operator.admin.merge(f"{RBAC}/clusterroles/{operator.name}", {"rules": APP.rights.rules()}, "somebody")
        life.settled()
        operator.check()


def test_without_the_right_to_read_definitions_all_goes_on(
    kind: None, control_plane: ControlPlane, tmp_path: Path, namespace: str, kubectl: Kubectl
) -> None:
    with Operator(control_plane, APP.project, replace(APP.rights, definitions=False), tmp_path / "log") as operator:
        life = Life(APP, operator, namespace, kubectl)
        life.apply()
        life.settled()
        operator.check()


def test_a_kind_that_goes_and_comes_back(life: Life, control_plane: ControlPlane) -> None:
    """Its CRs go with it; of the next definition's CRs the operator hears without a restart, however soon that comes."""
    life.apply()
    life.settled()
    for name in ("second", "third", "fourth"):
        control_plane.kubectl("delete", f"--filename={APP.crd}", "--wait=true")
        if name == "second":
            eventually("the server to have no such kind", lambda: "myapp.k8s.io" not in groups(life))
        control_plane.define(APP.crd)
        named = {part: {**settings, "name": name} for part, settings in APP.spec.items()}
        again = Life(replace(APP, name=name, spec=named), life.operator, life.namespace, life.kubectl)
        eventually("the server to take one", lambda again=again: applied(again))
        eventually("its status", lambda again=again: (again.resource().get("status") or {}).get("availableReplicas") == 2)


def groups(life: Life) -> set[str]:
    return {each["name"] for each in life.admin.get("/apis")["groups"]}


def applied(life: Life) -> bool:
    life.admin.post(life.path.rpartition("/")[0], life.seed.manifest)
    return True
