"""A release that Helm has installed, adopted by the rules that `ruleop init` makes of its chart."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from controlplane.cluster import ControlPlane

from ruleop.authoring.checking.inferred_definitions import with_definitions
from ruleop.cli.program import program
from ruleop.language.rules.checking import load_with_sources
from tests.cluster.generated_roles import GeneratedRoles
from tests.cluster.helm import Helm
from tests.cluster.operator import eventually
from tests.cluster.server import Client

pytestmark = pytest.mark.real_server("RBAC, and Helm's own way with objects")

GROUP = "released.example.com"
PROD = {
    "replicaCount": 2,
    "image": {"tag": "1.27"},
    "service": {"port": 8080},
    "ingress": {
        "enabled": True,
        "className": "nginx",
        "hosts": [{"host": "shop.example.org", "paths": [{"path": "/", "pathType": "Prefix"}]}],
    },
    "autoscaling": {"enabled": True, "maxReplicas": 3},
    "podLabels": {"tier": "front"},
    "nodeSelector": {"disk": "ssd"},
    "resources": {"limits": {"memory": "128Mi"}},
}
KINDS = {
    "Deployment": "apis/apps/v1",
    "Service": "api/v1",
    "ServiceAccount": "api/v1",
    "Ingress": "apis/networking.k8s.io/v1",
    "HorizontalPodAutoscaler": "apis/autoscaling/v2",
}
MARKS = {"labels", "annotations", "ownerReferences", "resourceVersion", "managedFields", "generation"}
"""Metadata that the marks of ruleop change. Annotations count in the generation of a Deployment."""


class Release:
    """A chart as `helm create` makes it, installed with other values than its own, and the project made of it."""

    def __init__(self, helm: Helm, folder: Path, namespace: str) -> None:
        self.namespace, self.project = namespace, folder / "operator"
        chart = str(folder / "web")
        helm("create", chart)
        (folder / "prod.yaml").write_text(yaml.safe_dump(PROD))
        values = ("--values", str(folder / "prod.yaml"))
        objects = folder / "objects.yaml"
        objects.write_text(helm("template", "web", chart, *values, namespace=namespace))
        self.run("init", str(self.project), "--group", GROUP, "--version", "v1", "--from-manifests", str(objects))
        self.adopt()
        helm("install", "web", chart, *values, namespace=namespace)

    def adopt(self) -> None:
        """Lets each child adopt its object of the release."""
        watches = self.project / "watches.yaml"
        (watch,) = yaml.safe_load(watches.read_text())
        for child in watch["children"].values():
            child["adopt"] = "helm"
        watches.write_text(yaml.safe_dump([watch], sort_keys=False))

    def run(self, *arguments: str) -> str:
        ran = CliRunner().invoke(program, list(arguments), prog_name="ruleop")
        assert ran.exit_code == 0, ran.output
        return ran.stdout

    @property
    def custom_resource(self) -> dict[str, Any]:
        """That of the release's values, with its name."""
        found: dict[str, Any] = yaml.safe_load((self.project / "examples" / "web.yaml").read_text())
        found["metadata"] = {"name": "web", "namespace": self.namespace}
        return found

    def path(self, kind: str) -> str:
        plural = "ingresses" if kind == "Ingress" else f"{kind.lower()}s"
        return f"/{KINDS[kind]}/namespaces/{self.namespace}/{plural}/web"

    def plan(self, kubeconfig: Path) -> tuple[int, str]:
        command = [sys.executable, "-m", "ruleop", "plan", "--live", "--all", "-C", str(self.project)]
        command += ["--kubeconfig", str(kubeconfig), "-n", self.namespace]
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
        ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=120)
        return ran.returncode, ran.stdout  # not the warning that other tests have operators of the same name


@pytest.fixture
def admin(control_plane: ControlPlane) -> Iterator[Client]:
    client = Client(control_plane)
    yield client
    client.close()


@pytest.fixture
def release(control_plane: ControlPlane, admin: Client, tmp_path: Path, namespace: str) -> Iterator[Release]:
    found = Release(Helm(control_plane, tmp_path / "helm"), tmp_path, namespace)
    (definition,) = with_definitions(load_with_sources(found.project, environ={})).project.definitions
    admin.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    control_plane.until_served(f"crd/{definition['metadata']['name']}")
    yield found
    admin.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{definition['metadata']['name']}")


def without_marks(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: each for key, each in obj["metadata"].items() if key not in MARKS}
    return {**obj, "metadata": metadata, "status": None}


def test_a_release_is_adopted_without_a_change_and_follows_the_custom_resource(
    release: Release, control_plane: ControlPlane, admin: Client, tmp_path: Path
) -> None:
    before = {kind: admin.get(release.path(kind)) for kind in KINDS}
    resources = f"/apis/{GROUP}/v1/namespaces/{release.namespace}/webs"
    admin.post(resources, release.custom_resource)
    status, out = release.plan(control_plane.kubeconfig())
    assert (status, out.splitlines()[-1]) == (0, "1 of 1 would change."), out

    with GeneratedRoles(control_plane, release.project, tmp_path / "run" / "log") as operator:
        eventually(
            "the objects to be the custom resource's",
            lambda: all(admin.get(release.path(kind))["metadata"].get("ownerReferences") for kind in KINDS),
        )
        operator.until_at_rest()
        for kind, old in before.items():
            new = admin.get(release.path(kind))
            assert without_marks(new) == without_marks(old)
            assert not [each for each in new["metadata"].get("annotations", {}) if "helm.sh" in each]
            assert new["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "ruleop"
        unchanged = (0, "0 of 1 would change.\n")  # the status may still be on its way
        eventually("nothing to change", lambda: release.plan(control_plane.kubeconfig()) == unchanged)

        edit = {"spec": {"resources": {"limits": None}, "image": "nginx:1.28"}}
        admin.merge(f"{resources}/web", edit, "kubectl-edit")

        def has_followed() -> bool:
            (container,) = admin.get(release.path("Deployment"))["spec"]["template"]["spec"]["containers"]
            return "limits" not in container["resources"] and container["image"] == "nginx:1.28"

        eventually("the removed value to be removed from the Deployment", has_followed)
        assert not operator.refused()
