"""The health of a custom resource in each state that the planner writes: for Argo CD, by the script of
`ruleop generate argocd` in the interpreter of Lua that it has, and for Flux, by kstatus."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from controlplane.cluster import ControlPlane
from controlplane.programs import program

from ruleop.authoring.generate.crds import argocd_text, health_script
from ruleop.kubernetes.kinds import Kind, Object
from ruleop.planning import Failed, Failure
from tests.planning.harness import Harness, key

pytestmark = pytest.mark.real_server("glua and kstatus are built with the control plane")

RULES = """
children:
  config: {template: config.yaml}
  web: {template: web.yaml}
finalize:
  bye: {template: bye.yaml}
"""
CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data:
  v: "{{ spec.v }}"
"""
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
"""
BYE = """
apiVersion: batch/v1
kind: Job
metadata: {name: bye}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: bye, image: bye}]}}}
"""


def harness() -> Harness:
    return Harness.of(RULES, {"v": "1"}, config=CONFIG, web=WEB, bye=BYE)


def unreconciled() -> Harness:
    return harness()


def progressing() -> Harness:
    found = harness()
    found.settle(controllers=False)
    return found


def ready() -> Harness:
    found = harness()
    found.settle()
    return found


def edited() -> Harness:
    found = ready()
    found.edit({"v": "2"})
    return found


def stalled() -> Harness:
    found = harness()
    found.refuse[key("a")] = Failed(Failure.INVALID, "the API server refuses it")
    found.step()
    return found


def waiting() -> Harness:
    """A child waits for a Secret of somebody else."""
    observe = "observe:\n  token: {version: v1, kind: Secret, name: token}\n"
    found = Harness.of(observe + RULES, {"v": "1"}, config=CONFIG + "  token: '{{ token.data.a }}'\n", web=WEB, bye=BYE)
    found.settle()
    return found


def broken() -> Harness:
    found = Harness.of(RULES, {}, config=CONFIG, web=WEB, bye=BYE)  # the template reads spec.v
    found.step()
    return found


def paused(found: Harness) -> Harness:
    found.patch_resource({"annotations": {"ruleop.dev/paused": "true"}})
    found.step()
    return found


def resumed() -> Harness:
    found = paused(ready())
    found.patch_resource({"annotations": {"ruleop.dev/paused": None}})
    found.settle()
    return found


def deleted() -> Harness:
    found = ready()
    found.end()
    found.step()
    return found


STATES: dict[str, tuple[Callable[[], Harness], str, str]] = {
    "not reconciled yet": (unreconciled, "Progressing", "Current"),
    "children are not ready": (progressing, "Progressing", "InProgress"),
    "ready": (ready, "Healthy", "Current"),
    "edited, and the operator has not seen it": (edited, "Progressing", "InProgress"),
    "a write is refused": (stalled, "Degraded", "Failed"),
    "an object of others is missing": (waiting, "Progressing", "InProgress"),
    "a template fails": (broken, "Degraded", "Failed"),
    "paused when it was ready": (lambda: paused(ready()), "Suspended", "Current"),
    "paused when a write was refused": (lambda: paused(stalled()), "Suspended", "Failed"),
    "paused when children were not ready": (lambda: paused(progressing()), "Suspended", "InProgress"),
    "resumed": (resumed, "Healthy", "Current"),
    "being deleted": (deleted, "Progressing", "Terminating"),
}
"""By state: how the planner gets there, and what Argo CD and kstatus have to say. kstatus takes any object without a
status as current, as Kubernetes' own controllers do not set one at once."""


@pytest.fixture(scope="module")
def resources() -> dict[str, Object]:
    found = {name: make().resource for name, (make, _, _) in STATES.items()}
    assert all(each is not None for each in found.values())
    return {name: each for name, each in found.items() if each is not None}


@pytest.mark.parametrize("state", STATES)
def test_argo_cd_shows_the_health_of_each_state(state: str, resources: dict[str, Object], tmp_path: Path) -> None:
    resource = resources[state]
    health = argocd_health(resource, tmp_path)
    assert health["status"] == STATES[state][1]
    if state == "a write is refused":
        assert "the API server refuses it" in health["message"]
    if state == "children are not ready":
        assert "Deployment/web" in health["message"]


@pytest.mark.parametrize(
    ("observed", "status"), [({"observedGeneration": 2}, "Progressing"), ({}, "Healthy")], ids=["old", "none"]
)
def test_a_crd_without_observed_generation_has_health_too(
    observed: dict[str, int], status: str, tmp_path: Path
) -> None:
    conditions = [{"type": "Ready", "status": "True"}, {"type": "Stalled", "status": "False"}]
    resource: Object = {"metadata": {"generation": 3}, "status": {"conditions": conditions, **observed}}
    assert argocd_health(resource, tmp_path)["status"] == status


def test_flux_needs_no_configuration(resources: dict[str, Object]) -> None:
    """The module of kstatus, and the copy that Flux and Helm have."""
    lines = b"".join(orjson.dumps(each) + b"\n" for each in resources.values())
    ran = subprocess.run([str(program("kstatus"))], input=lines, capture_output=True, timeout=60, check=True)
    found = dict(zip(resources, ran.stdout.decode().splitlines(), strict=True))
    assert found == {name: f"{expected} {expected}" for name, (_, _, expected) in STATES.items()}


def test_server_side_apply_leaves_the_other_parts_of_the_config_map(
    control_plane: ControlPlane, namespace: str
) -> None:
    """As the page says it: the entries of others stay, and that of a kind that is gone goes with the next apply."""
    name = ("configmap", "argocd-cm", f"--namespace={namespace}")
    control_plane.kubectl("create", *name, "--from-literal=url=https://argocd.example.com")
    command = ("apply", "--server-side", "--field-manager=ruleop-health", "-f", "-")
    sites, pages = Kind("example.com", "v1", "Site"), Kind("example.com", "v1", "Page")

    def keys() -> set[str]:
        return set(json.loads(control_plane.kubectl("get", *name, "--output=json"))["data"])

    control_plane.kubectl(*command, stdin=argocd_text([sites, pages], namespace))
    prefix = "resource.customizations.health.example.com_"
    assert keys() == {"url", f"{prefix}Site", f"{prefix}Page"}
    control_plane.kubectl(*command, stdin=argocd_text([sites], namespace))
    assert keys() == {"url", f"{prefix}Site"}


def argocd_health(resource: Object, folder: Path) -> dict[str, Any]:
    """Runs the script as Argo CD does: `obj` is the object, and of Lua's libraries there are only the basic functions
    and those of tables."""
    file = folder / "health.lua"
    file.write_text(
        f"local function health(obj)\nlocal string, math, io, os, debug, coroutine\n{health_script()}\nend\n"
        f"local hs = health({lua(resource)})\nprint(hs.status)\nprint(hs.message or '')\n"
    )
    ran = subprocess.run([str(program("glua")), str(file)], capture_output=True, text=True, timeout=60, check=True)
    status, _, message = ran.stdout.rstrip("\n").partition("\n")
    return {"status": status, "message": message}


def lua(value: Any) -> str:
    """A value as Lua writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"[{json.dumps(key)}] = {lua(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "{" + ", ".join(map(lua, value)) + "}"
    return "nil" if value is None else json.dumps(value)
