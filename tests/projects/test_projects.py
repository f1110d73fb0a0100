"""The objects of the example projects, from the snapshots of their rule tests: they refer to what there is.

Their form, and that they are what the rules make, is the business of those tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ruleop.kubernetes.kinds import Object
from tests.docs.messages import ROOT
from tests.projects.rendering import documents

SNAPSHOTS = [
    pytest.param(file, id=f"{file.parts[-4]}-{file.stem}")
    for pattern in (
        "tests/snapshots/*.yaml",
        "examples/*/tests/snapshots/*.yaml",
        "tests/projects/*/tests/snapshots/*.yaml",
    )
    for file in sorted(ROOT.glob(pattern))
]


@pytest.mark.parametrize("file", SNAPSHOTS)
def test_pods_mount_all_their_volumes_and_probe_existing_ports(file: Path) -> None:
    for pod, claims in (found for obj in documents(file) for found in pods_of(obj)):
        volumes = {volume["name"] for volume in pod.get("volumes", ())} | claims
        mounted = {mount["name"] for container in pod["containers"] for mount in container.get("volumeMounts", ())}
        assert mounted == volumes
        for container in pod["containers"]:
            ports = {port.get("name") for port in container.get("ports", ())} | {
                port["containerPort"] for port in container.get("ports", ())
            }
            for probe in ("livenessProbe", "readinessProbe"):
                for name, action in container.get(probe, {}).items():
                    assert not isinstance(action, dict) or name == "exec" or action["port"] in ports


@pytest.mark.parametrize("file", SNAPSHOTS)
def test_services_select_pods_and_existing_ports(file: Path) -> None:
    if " waits: " in file.read_text():
        return  # it lacks the pods that wait
    made = documents(file)
    workloads = [obj for obj in made if obj["kind"] in {"Deployment", "StatefulSet"}]
    for service in (obj for obj in made if obj["kind"] == "Service"):
        if "statefulset.kubernetes.io/pod-name" in service["spec"]["selector"]:
            continue
        found = [
            obj
            for obj in workloads
            if service["spec"]["selector"].items() <= obj["spec"]["template"]["metadata"]["labels"].items()
        ]
        assert len(found) == 1 or service["spec"].get("clusterIP") == "None"
        named = {
            port.get("name")
            for obj in found
            for pod, _ in pods_of(obj)
            for container in pod["containers"]
            for port in container.get("ports", ())
        }
        assert (
            not found
            or {port["targetPort"] for port in service["spec"]["ports"] if isinstance(port.get("targetPort"), str)}
            <= named
        )


def pods_of(obj: Object) -> Iterator[tuple[dict[str, Any], set[str]]]:
    """Each pod template of an object, with the volumes of its claims."""
    spec = obj.get("spec") or {}
    spec = spec["jobTemplate"]["spec"] if obj["kind"] == "CronJob" else spec
    if "template" in spec:
        yield spec["template"]["spec"], {claim["metadata"]["name"] for claim in spec.get("volumeClaimTemplates", ())}
