"""`ruleop run --record` beside a real API server: each recorded plan is planned again as it was, from its file
alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from controlplane.cluster import ControlPlane
from controlplane.fixtures import Kubectl

from tests.cluster.example_projects import LiveExample
from tests.cluster.operator import eventually
from tests.cluster.pod import Pod
from tests.cluster.test_examples import APP

pytestmark = pytest.mark.usefixtures("app_kind")


def test_each_recorded_pass_is_replayed_with_the_same_plan(
    control_plane: ControlPlane, namespace: str, kubectl: Kubectl, tmp_path: Path
) -> None:
    folder = tmp_path / "passes"
    with Pod(control_plane, APP.project, APP.permissions, tmp_path / "log", f"--record={folder}") as operator:
        live_example = LiveExample(APP, operator, namespace, kubectl)
        live_example.apply()
        live_example.wait_for_condition("Ready", "True", "Ready")
        kubectl("delete", "deployments", "--all", f"--namespace={namespace}")
        eventually("the Deployment again", lambda: len(recorded(folder, "Create Deployment")) == 2)
        operator.check()
        assert operator.terminate() == 0
    files = sorted(folder.iterdir())
    assert len(files) >= 4
    for file in files:
        assert actions(file) == orjson.loads(file.read_bytes())["summary"]["actions"]


def recorded(folder: Path, action: str) -> list[str]:
    summaries = [orjson.loads(file.read_bytes())["summary"] for file in sorted(folder.iterdir()) if file.stat().st_size]
    return [each for summary in summaries for each in summary["actions"] if each.startswith(action)]


def actions(file: Path) -> list[str]:
    command = [sys.executable, "-m", "ruleop", "plan", "-C", str(APP.project), "--replay", str(file), "-o", "json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    names = {"create": "Create", "patch": "Patch", "delete": "Delete"}
    found = orjson.loads(ran.stdout)["plans"][0]["actions"]
    return [f"{names[each['action']]} {key(each)}" for each in found]


def key(action: dict[str, str]) -> str:
    return f"{action['kind']}/{action['namespace']}/{action['name']}"
