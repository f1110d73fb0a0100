"""The reports of a CR and its Events: when everything is written, while it is paused, and if a permission is
missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from controlplane.cluster import ControlPlane
from controlplane.fixtures import Kubectl

from tests.cluster.operator import RBAC, Permissions, eventually
from tests.cluster.pod import Pod
from tests.cluster.server import CRDS
from tests.definitions import ANYTHING, crd, fields, version
from tests.folders import write_files

GROUP = "reports.example.com"
PERMISSIONS = Permissions(watched=[f"shops.{GROUP}"], children=["secrets", "configmaps", "limitranges"])
FILES = {
    "watches.yaml": f"""
- group: {GROUP}
  version: v1
  kind: Shop
  children:
    limits: {{template: limits.yaml}}
    credentials: {{template: credentials.yaml, apply: {{strategy: create-only}}}}
    settings: {{template: settings.yaml}}
  conditions:
    - {{type: Limited, status: limits is defined}}
""",
    "templates/limits.yaml": """
apiVersion: v1
kind: LimitRange
metadata: {name: "{{ metadata.name }}"}
spec: {limits: [{type: Container, max: {cpu: "{{ spec.cpu }}"}}]}
""",
    "templates/credentials.yaml": """
apiVersion: v1
kind: Secret
metadata: {name: "{{ metadata.name }}"}
stringData: {password: "{{ random_password(12) }}"}
""",
    "templates/settings.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ metadata.name }}"}
data: {checksum: "{{ credentials.data | sha256(12) }}"}
""",
    "crds/readme.txt": "",
}


@pytest.fixture(scope="module", autouse=True)
def kind(control_plane: ControlPlane) -> Iterator[None]:
    admin = control_plane.api()
    schema = fields(spec=ANYTHING, status=ANYTHING)
    admin.post(CRDS, crd("Shop", GROUP, version("v1", schema, subresources={"status": {}})))
    control_plane.until_served(f"crd/shops.{GROUP}")
    yield
    admin.delete(f"{CRDS}/shops.{GROUP}")


class Shop:
    """One CR, and an operator for it."""

    def __init__(self, operator: Pod, namespace: str) -> None:
        self.operator, self.namespace, self.admin = operator, namespace, operator.admin
        self.path = f"/apis/{GROUP}/v1/namespaces/{namespace}/shops/web"

    def open(self) -> None:
        body = {"apiVersion": f"{GROUP}/v1", "kind": "Shop", "metadata": {"name": "web"}, "spec": {"cpu": "1"}}
        self.admin.post(self.path.rpartition("/")[0], body)
        self.until("Ready", "True")

    def edit(self, **patch: Any) -> None:
        self.admin.merge(self.path, patch, "somebody")

    def conditions(self) -> dict[str, dict[str, Any]]:
        return {each["type"]: each for each in self.admin.get(self.path)["status"]["conditions"]}

    def until(self, type_: str, status: str, reason: str = "") -> dict[str, Any]:
        def found() -> dict[str, Any] | None:
            condition = self.conditions()[type_]
            return condition if condition["status"] == status and reason in {"", condition["reason"]} else None

        return eventually(f"{type_} to be {status} {reason}", found, 60)

    def cpu(self) -> str:
        (limit,) = self.admin.get(f"/api/v1/namespaces/{self.namespace}/limitranges/web")["spec"]["limits"]
        return str(limit["max"]["cpu"])


@pytest.fixture
def shop(control_plane: ControlPlane, tmp_path: Path, namespace: str) -> Iterator[Shop]:
    source = tmp_path / "source"
    write_files(source, FILES)
    with Pod(control_plane, source, PERMISSIONS, tmp_path / "operator" / "log") as operator:
        yield Shop(operator, namespace)
        operator.check()


def test_synced_is_sent_after_the_child_that_waits_for_a_generated_secret(shop: Shop) -> None:
    mark = shop.operator.mark()
    shop.open()

    def asked() -> list[str]:
        return [
            f"{each['verb']} {each['objectRef']['resource']}" for each in shop.operator.requests(mark, shop.namespace)
        ]

    eventually("its event", lambda: "create events" in asked())
    assert asked().index("create secrets") < asked().index("create configmaps") < asked().index("create events")
    events = shop.admin.get(f"/api/v1/namespaces/{shop.namespace}/events")["items"]
    assert [each["reason"] for each in events if each["involvedObject"]["kind"] == "Shop"] == ["Synced"]


def test_a_paused_cr_keeps_ready_and_is_reconciled_after_the_pause(shop: Shop, kubectl: Kubectl) -> None:
    shop.open()
    before = shop.conditions()["Ready"]
    shop.edit(metadata={"annotations": {"ruleop.dev/paused": "true"}})
    assert shop.until("Paused", "True")["message"] == "the annotation ruleop.dev/paused stops all changes"
    assert shop.conditions()["Ready"] == before
    kubectl("wait", f"--namespace={shop.namespace}", "--for=condition=Ready", "--timeout=20s", f"shops.{GROUP}/web")
    shop.edit(spec={"cpu": "2"})
    eventually("the edit to be seen", lambda: shop.conditions()["Paused"]["observedGeneration"] == 2)
    assert (shop.cpu(), shop.admin.get(shop.path)["status"]["observedGeneration"]) == ("1", 1)
    shop.edit(metadata={"annotations": {"ruleop.dev/paused": None}})
    eventually("the edit to be carried out", lambda: shop.cpu() == "2")
    eventually(
        "the pause to be over",
        lambda: "Paused" not in shop.conditions() and shop.conditions()["Ready"]["observedGeneration"] == 2,
    )
    assert shop.conditions()["Ready"]["status"] == "True"


@pytest.mark.real_server("RBAC refuses")
def test_a_missing_permission_is_forbidden_while_the_operator_runs_and_after_its_restart(shop: Shop) -> None:
    needed = "needs get, list, watch, create, patch, delete"
    operator, role = shop.operator, f"{RBAC}/clusterroles/{shop.operator.name}"
    shop.open()
    fewer = [rule for rule in PERMISSIONS.rules() if "limitranges" not in rule["resources"]]
    operator.admin.merge(role, {"rules": fewer}, "somebody")
    operator.may(shop.namespace, "patch", "limitranges", "", yes=False)
    shop.edit(spec={"cpu": "2"})
    running = shop.until("Ready", "False", "Forbidden")
    assert (
        running["message"]
        == f"limits: templates/limits.yaml:1: cannot patch limitranges in namespace {shop.namespace}: {needed}"
    )
    operator.kill()
    operator.start()
    restarted = eventually(
        "the report of the new live_example",
        lambda: "cannot list" in shop.conditions()["Ready"]["message"] and shop.conditions(),
    )
    message = f"cannot list limitranges in all namespaces: {needed}"
    assert (restarted["Ready"]["reason"], restarted["Ready"]["message"]) == (
        "Forbidden",
        f"limits: templates/limits.yaml:1: {message}",
    )
    limited = shop.until("Limited", "Unknown")
    assert (limited["reason"], limited["message"]) == ("Forbidden", message)
    said = operator.wait_for_log("not permitted to watch; will retry")
    assert said["grant"] == "get, list, watch, create, patch, delete on limitranges in all namespaces"
    operator.admin.merge(role, {"rules": PERMISSIONS.rules()}, "somebody")
    shop.until("Ready", "True")
    assert (shop.cpu(), shop.conditions()["Limited"]["status"]) == ("2", "True")
