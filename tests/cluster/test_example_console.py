"""The Console example: a database, a migration before each version, a backup and a restore, while the operator is
killed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from controlplane.cluster import ControlPlane
from controlplane.fixtures import Kubectl

from tests.cluster.example_projects import INTERRUPTIONS, ROOT, Example, LiveExample, operating
from tests.cluster.operator import Operator, Permissions, eventually
from tests.projects.samples import sample

pytestmark = pytest.mark.real_server("kubectl is typed by the administrator")

PROJECT = "examples/console"
TEAM = Example(
    project=ROOT / PROJECT,
    crd=ROOT / PROJECT / "crds",
    permissions=Permissions(
        watched=["consoles.console.example.com", "consolebackups.console.example.com"],
        children=[
            "secrets",
            "configmaps",
            "services",
            "persistentvolumeclaims",
            "statefulsets.apps",
            "deployments.apps",
            "jobs.batch",
            "ingresses.networking.k8s.io",
        ],
    ),
    api_version="console.example.com/v1",
    resource="consoles",
    kind="Console",
    name="team",
    spec={**sample(PROJECT, "console")["spec"], "database": {"storageClass": "kwok-volume"}},
    children=(),
    status={"version": "1.0"},
    edit={},
    edited=(),
    edited_status={},
    leftovers=(),
)


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with operating(TEAM, control_plane, tmp_path_factory.mktemp("console") / "operator" / "log") as operator:
        yield operator


@pytest.fixture
def team(operator: Operator, namespace: str, kubectl: Kubectl) -> LiveExample:
    return LiveExample(TEAM, operator, namespace, kubectl)


def jobs(team: LiveExample) -> list[str]:
    return sorted(each["spec"]["template"]["spec"]["containers"][0]["name"] for each in team.list("jobs"))


def images(team: LiveExample) -> set[str]:
    found = team.list("deployments")
    return {each["spec"]["template"]["spec"]["containers"][0]["image"].rpartition(":")[2] for each in found}


@INTERRUPTIONS
def test_each_version_is_migrated_once_before_its_pods(team: LiveExample, interruption: str) -> None:
    with team.interrupted(interruption):
        team.apply()
    team.wait_until_settled()
    assert images(team) == {"1.0"}
    mark = team.operator.mark()
    with team.interrupted(interruption):
        team.admin.merge(team.path, {"spec": {"version": "2.0"}}, "somebody")
    team.wait_until_settled(status={"version": "2.0"})
    assert images(team) == {"2.0"}
    assert jobs(team) == ["migrate", "migrate"]
    writes = [each for each in team.operator.writes(mark, team.namespace) if "jobs" in each or "deployments" in each]
    assert ["jobs" in each for each in writes] == [True, False, False], writes


@INTERRUPTIONS
def test_a_backup_is_restored_once_and_outlives_what_it_was_made_of(team: LiveExample, interruption: str) -> None:
    team.apply()
    team.wait_until_settled()
    backup: dict[str, Any] = {**sample(PROJECT, "backup"), "metadata": {"name": "friday"}}
    backup["spec"] |= {"storageClass": "kwok-volume"}
    path = f"/apis/{TEAM.api_version}/namespaces/{team.namespace}/consolebackups"
    with team.interrupted(interruption):
        team.admin.post(path, backup)
    eventually("the dump", lambda: team.admin.get(f"{path}/friday")["status"]["claim"] == "friday-dump")
    with team.interrupted(interruption):
        team.admin.merge(team.path, {"spec": {"restoreFrom": "friday"}}, "somebody")
    team.wait_until_settled()
    assert jobs(team) == ["dump", "migrate", "migrate", "restore"]
    team.kubectl("delete", "consoles.console.example.com", "team", "--wait=true")
    team.admin.delete(f"{path}/friday")
    eventually("the pods to be gone", lambda: not team.list("deployments") and not team.list("statefulsets"))
    eventually("the Jobs to be gone", lambda: jobs(team) == [])
    assert {"team-secret-key", "team-postgres"} == {each["metadata"]["name"] for each in team.list("secrets")}
    assert "friday-dump" in {each["metadata"]["name"] for each in team.list("persistentvolumeclaims")}
