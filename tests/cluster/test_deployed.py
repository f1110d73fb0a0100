"""The permissions and the mounted ConfigMap of docs/operations.md, with the operator as a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.cluster import deployed
from tests.cluster.example_projects import ROOT
from tests.cluster.operator import eventually
from tests.cluster.test_example_app import APP
from tests.cluster.test_example_memcached import V1ALPHA1 as MEMCACHED
from tests.docs.manifests import DEPLOYMENT, TEXT, mounted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from controlplane.cluster import ControlPlane

pytestmark = pytest.mark.real_server("RBAC, and kubectl's diff of the published manifests")


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[deployed.Deployed]:
    control_plane.define(APP.crd, MEMCACHED.crd)
    with deployed.Deployed(control_plane, tmp_path_factory.mktemp("operator") / "log") as running:
        yield running
    for example in (APP, MEMCACHED):
        control_plane.kubectl("delete", f"--filename={example.crd}", "--wait=true")


class TestDeployed(deployed.DeploymentTests):
    """The operator as a process of this machine."""


def test_the_documented_deployment_is_valid_and_starts(
    operator: deployed.Deployed, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """By the commands of the page; kwok makes pods ready that the API server and the scheduler take."""
    path = f"{control_plane.layout.built}:/usr/bin:/bin"
    # A HOME of its own: kubectl keeps what it discovers there.
    environment = {"PATH": path, "HOME": str(tmp_path), "KUBECONFIG": str(control_plane.kubeconfig())}
    (command,) = re.findall(r"^\$ (kubectl create configmap .*?)\n```", TEXT, re.MULTILINE | re.DOTALL)
    subprocess.run(["sh", "-c", command], cwd=ROOT, env=environment, check=True, timeout=60)
    own = f"/api/v1/namespaces/{operator.home}"
    data = operator.admin.get(f"{own}/configmaps/rules")["data"]
    (volume,) = DEPLOYMENT["spec"]["template"]["spec"]["volumes"]
    assert {item["path"]: data[item["key"]] for item in volume["configMap"]["items"]} == mounted()
    control_plane.kubectl("apply", "--filename=-", stdin=json.dumps(DEPLOYMENT))
    path = f"/apis/apps/v1/namespaces/{operator.home}/deployments/ruleop"
    eventually("both pods", lambda: operator.admin.get(path)["status"]["readyReplicas"] == 2, 60)


def test_the_deployed_operator_stops_cleanly(operator: deployed.Deployed) -> None:
    deployed.stops_in_order(operator)
