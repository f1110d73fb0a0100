"""An operator for two namespaces, with permissions in these and none in the cluster: it cannot even read the definition
of its kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from controlplane.cluster import ControlPlane
from controlplane.fixtures import Kubectl

from tests.cluster.example_projects import LiveExample
from tests.cluster.operator import RBAC, Permissions, described, eventually
from tests.cluster.pod import Pod
from tests.cluster.server import RefusedError
from tests.cluster.test_examples import APP

pytestmark = pytest.mark.usefixtures("app_kind")

# Memcacheds too: the definition that another test made may be on its way out of the server.
PERMISSIONS = Permissions(
    ["apps.myapp.k8s.io", "memcacheds.cache.example.com"],
    ["deployments.apps", "services"],
    ["pods"],
    definitions=False,
)


class Tenant(Pod):
    """It may work in some namespaces, and look at nothing else."""

    def __init__(
        self, plane: ControlPlane, log: Path, permissions: dict[str, list[dict[str, Any]]], *arguments: str
    ) -> None:
        super().__init__(plane, APP.project, None, log, *arguments)
        self.by_namespace = permissions

    def _grant(self) -> None:
        super()._grant()
        for namespace, rules in self.by_namespace.items():
            self.bind("Role", rules, namespace)
            self.may(namespace, rules[-1]["verbs"][-1], rules[-1]["resources"][0], rules[-1]["apiGroups"][0])


@pytest.fixture
def other(control_plane: ControlPlane, namespace: str) -> Iterator[str]:
    """A second namespace."""
    name = f"{namespace[:50]}-other"
    admin = control_plane.api()
    admin.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    admin.delete(f"/api/v1/namespaces/{name}")


@pytest.mark.real_server("RBAC refuses")
@pytest.mark.parametrize("by", ["flag", "variable"])
def test_only_the_given_namespaces_are_watched(
    control_plane: ControlPlane, tmp_path: Path, namespace: str, other: str, kubectl: Kubectl, by: str
) -> None:
    named = f"{namespace},{other}"
    tenant = Tenant(
        control_plane,
        tmp_path / "log",
        {namespace: PERMISSIONS.rules(), other: PERMISSIONS.rules()},
        *([f"--namespaces={named}"] if by == "flag" else []),
    )
    tenant.environment = {"WATCH_NAMESPACE": named} if by == "variable" else {}
    with tenant:
        mark = tenant.mark()
        for each in (namespace, other, "default"):
            live_example = LiveExample(APP, tenant, each, kubectl)
            live_example.admin.post(live_example.path.rpartition("/")[0], APP.manifest)
        for each in (namespace, other):
            LiveExample(APP, tenant, each, kubectl).wait_until_settled()
        live_example = LiveExample(APP, tenant, namespace, kubectl)
        live_example.admin.merge(live_example.path, {"spec": APP.edit}, "somebody")
        live_example.wait_until_settled(APP.edited, APP.edited_status)
        with pytest.raises(RefusedError):
            live_example.admin.get("/apis/apps/v1/namespaces/default/deployments/web-app")
        asked = {
            each["objectRef"].get("namespace", "the cluster")
            for each in tenant.requests()
            if "objectRef" in each and each["objectRef"]["resource"] != "customresourcedefinitions"
        }
        assert asked == {namespace, other, tenant.home}
        refused = [described(each) for each in tenant.requests(mark) if each["responseStatus"]["code"] == 403]
        assert len(refused) <= 3, "the definitions, which it tries to watch again now and then"
        warnings = tenant.warnings()
        assert ["customresourcedefinitions" in line["error"] for line in warnings] == [True], warnings
        tenant.check()
        assert tenant.terminate() == 0
        control_plane.kubectl("delete", "--namespace=default", "apps.myapp.k8s.io", APP.name)


@pytest.mark.real_server("RBAC refuses")
def test_a_permission_missing_in_one_namespace_affects_only_that_namespace(
    control_plane: ControlPlane, tmp_path: Path, namespace: str, other: str, kubectl: Kubectl
) -> None:
    fewer = [rule for rule in PERMISSIONS.rules() if "services" not in rule["resources"]]
    permissions = {namespace: PERMISSIONS.rules(), other: fewer}
    with Tenant(control_plane, tmp_path / "log", permissions, f"--namespaces={namespace},{other}") as tenant:
        good, poor = LiveExample(APP, tenant, namespace, kubectl), LiveExample(APP, tenant, other, kubectl)
        for live_example in (poor, good):
            live_example.admin.post(live_example.path.rpartition("/")[0], APP.manifest)
        good.wait_until_settled()
        deployment, service = APP.children
        eventually("the child that it may make", lambda: poor.get(deployment))
        condition = eventually(
            "why it is not ready",
            lambda: "ervice" in poor.condition("Ready").get("message", "") and poor.condition("Ready"),
        )
        assert condition["status"] == "False"
        assert not poor.exists(service)
        tenant.admin.merge(f"{RBAC}/namespaces/{other}/roles/{tenant.name}", {"rules": PERMISSIONS.rules()}, "somebody")
        eventually("it to be ready", lambda: poor.condition("Ready").get("status") == "True", 60)
        tenant.check()
