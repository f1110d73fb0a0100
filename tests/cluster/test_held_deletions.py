"""A removed member loses the ConfigMap that gave access, though the API server rejects another child. And a child that
reads an object of the same pass is in sync without a further event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from controlplane.cluster import ControlPlane

from tests.cluster.custom_resource import CustomResource
from tests.cluster.operator import Operator, eventually, operator_of

RULES = """\
- group: example.com
  version: v1
  kind: Team
  children:
    quota:
      object:
        apiVersion: v1
        kind: ResourceQuota
        metadata: {name: quota}
        spec: {hard: {limits.cpu: "{{ spec.cpu }}"}}
    members:
      forEach: spec.members
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "member-{{ item }}"}, data: {as: "{{ spec.role }}"}}
    token: {object: {apiVersion: v1, kind: Secret, metadata: {name: token}, stringData: {a: b}}}
    reader:
      object:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: reader}
        data: {members: "{{ live.members | length }} {{ ready.members }}", token: "{{ ready.token | string }}"}
"""


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    children = ["configmaps", "secrets", "resourcequotas"]
    with operator_of(control_plane, tmp_path_factory.mktemp("teams"), "Team", RULES, children=children) as operator:
        yield operator


def spec(*members: str, cpu: str = "1", **more: Any) -> dict[str, Any]:
    return {"cpu": cpu, "members": list(members), "role": "admin", **more}


class Team(CustomResource):
    def members(self) -> list[str]:
        found = self.admin.get(f"/api/v1/namespaces/{self.namespace}/configmaps")["items"]
        names = sorted(each["metadata"]["name"] for each in found)
        return [name.removeprefix("member-") for name in names if name.startswith("member-")]


@pytest.fixture
def team(operator: Operator, namespace: str) -> Team:
    return Team(operator, namespace, "red", spec("ada", "joe"))


def test_a_child_that_reads_objects_of_the_same_pass_is_in_sync_without_an_event(team: Team) -> None:
    reader = team.admin.get(f"/api/v1/namespaces/{team.namespace}/configmaps/reader")
    assert reader["data"] == {"members": "2 true", "token": "true"}


def test_a_removed_member_goes_though_the_server_rejects_another_child(team: Team) -> None:
    team.edit(**spec("zoe", cpu="ten"))
    eventually("ada and joe to be gone", lambda: team.members() == ["zoe"])
    eventually("the rejection to be reported", lambda: team.ready()["reason"] == "ApplyFailed")
    assert "held back" not in team.ready()["message"]


def test_an_error_among_the_members_holds_their_deletions_back_and_is_reported(team: Team) -> None:
    team.edit(**spec("joe", "Not Valid"))
    words = "the deletion of 1 object is held back by an error of members"
    eventually("it to be reported", lambda: words in team.ready()["message"])
    assert team.members() == ["ada", "joe"]
    team.edit(**spec("joe"))
    eventually("ada to be gone", lambda: team.members() == ["joe"])
    eventually("the team to be ready", lambda: team.ready()["status"] == "True")
