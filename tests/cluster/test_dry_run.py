"""`--dry-run` beside an operator at work, as one would before an upgrade, and alone: it says what it would do, and
writes nothing at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from controlplane.cluster import ControlPlane
from controlplane.fixtures import Kubectl

from tests.cluster.example_projects import LiveExample
from tests.cluster.operator import WRITES, described, eventually
from tests.cluster.pod import Pod
from tests.cluster.test_examples import APP

pytestmark = pytest.mark.usefixtures("app_kind")


@pytest.fixture
def dry(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Pod]:
    """An operator with all permissions and a Lease, neither of which it uses."""
    with Pod(
        control_plane, APP.project, APP.permissions, tmp_path / "dry" / "log", "--dry-run", "--leader-elect"
    ) as operator:
        yield operator
        operator.check()
        assert operator.terminate() == 0
        asked = [described(each) for each in operator.requests() if "objectRef" in each]
        assert [each for each in asked if each.partition(" ")[0] in WRITES or "leases" in each] == []


def said(dry: Pod, live_example: LiveExample) -> list[tuple[str, Any]]:
    """The writes that it logs for the CR, with their fields."""
    mine = [
        line
        for line in dry.log()
        if line["event"] == "dry run" and line["resource"] == f"{live_example.namespace}/{APP.name}"
    ]
    return [(line["would"], line.get("fields")) for line in mine]


def test_a_dry_run_logs_what_it_would_create(dry: Pod, namespace: str, kubectl: Kubectl) -> None:
    live_example = LiveExample(APP, dry, namespace, kubectl)
    live_example.apply()
    eventually("its intents", lambda: len(said(dry, live_example)) == 3)
    first, second, (status, fields) = said(dry, live_example)
    assert {first, second} == {
        (f"create Deployment/{namespace}/web-app", None),
        (f"create Service/{namespace}/web-service", None),
    }
    assert status == f"write the status of App/{namespace}/web"
    assert "status.conditions" in fields
    assert all(line["because"] for line in dry.log() if line["event"] == "dry run")


def test_a_dry_run_beside_a_running_operator_follows_changes(
    dry: Pod, control_plane: ControlPlane, tmp_path: Path, namespace: str, kubectl: Kubectl
) -> None:
    """While no other operator runs, an edit is not carried out. It is logged with its fields and without its values."""
    with Pod(control_plane, APP.project, APP.permissions, tmp_path / "wet" / "log") as wet:
        live_example = LiveExample(APP, wet, namespace, kubectl)
        live_example.apply()
        live_example.wait_until_settled()
        eventually("nothing to be left to do", lambda: said(dry, live_example)[-1:] == [("do nothing", None)])
        assert wet.terminate() == 0
        before = len(said(dry, live_example))
        live_example.admin.merge(
            live_example.path, {"spec": {"deployment": {"image": "nginx:hunter2", "replicas": 3}}}, "somebody"
        )
        patch = f"patch Deployment/{namespace}/web-app"
        fields = ["spec.replicas", "spec.template.spec.containers[name=web-app].image"]
        eventually(
            "the patch",
            lambda: (patch, fields) in [(would, (of or [])[-2:]) for would, of in said(dry, live_example)[before:]],
        )
        assert "hunter2" not in dry.log_file.read_text()
