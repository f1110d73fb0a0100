"""Rules in an image of their own, mounted as a volume: the API server takes the Deployment and, in a namespace with Pod
Security `restricted`, its pods. No kubelet runs them here: kwok reports them as ready."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from controlplane.cluster import ControlPlane

from ruleop.cli.program import program
from tests.cluster.example_projects import ROOT
from tests.cluster.helm import Helm

pytestmark = pytest.mark.real_server("it drops a volume of a type that it does not know, and Pod Security answers")

RULES = f"registry.example.com/rules:1.2.0@sha256:{'0' * 64}"
VOLUME = {"name": "rules", "image": {"reference": RULES, "pullPolicy": "IfNotPresent"}}
COMMON = (
    "-C",
    str(ROOT / "examples" / "cookbook" / "config-reload"),
    "--rules-image",
    RULES,
    "--image",
    "registry.example.com/ruleop:1",
)


def generated(*arguments: str) -> str:
    ran = CliRunner().invoke(program, ["generate", *arguments])
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def mounted(plane: ControlPlane, name: str, namespace: str) -> Any:
    """The volume of the rules of a pod, once the Deployment has one that is ready."""
    plane.kubectl("rollout", "status", f"deployment/{name}", f"--namespace={namespace}", "--timeout=60s")
    pods = json.loads(plane.kubectl("get", "pods", f"--namespace={namespace}", "--output=json"))["items"]
    (volume,) = [each for each in pods[0]["spec"]["volumes"] if each["name"] == "rules"]
    return volume


@pytest.fixture
def restricted(control_plane: ControlPlane) -> Iterator[str]:
    name = "rules-image"
    control_plane.kubectl("create", "namespace", name)
    control_plane.kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
    yield name
    control_plane.kubectl("delete", "namespace", name, "--wait=false")


def test_kubectl_installs_an_operator_with_an_image_of_rules(control_plane: ControlPlane) -> None:
    text = generated("manifests", *COMMON, "--name", "ruled", "--namespace", "ruled-system")
    try:
        control_plane.kubectl("apply", "-f", "-", stdin=text)
        assert mounted(control_plane, "ruled", "ruled-system") == VOLUME
        assert "unchanged" in control_plane.kubectl("apply", "-f", "-", stdin=text)
    finally:
        control_plane.kubectl("delete", "-f", "-", "--wait=false", stdin=text)


def test_helm_installs_an_operator_with_an_image_of_rules(
    control_plane: ControlPlane, restricted: str, tmp_path: Path
) -> None:
    generated("helm", *COMMON, "--name", "charted", "--out", str(tmp_path / "chart"))
    helm = Helm(control_plane, tmp_path)
    helm("install", "charted", str(tmp_path / "chart"), "--set=crds.keep=false", namespace=restricted)
    try:
        assert mounted(control_plane, "charted", restricted) == VOLUME
        assert control_plane.kubectl("get", "configmap", f"--namespace={restricted}", "--output=name").split() == [
            "configmap/kube-root-ca.crt"
        ]
    finally:
        helm("uninstall", "charted", namespace=restricted)
