"""`patch` beside others who write the same objects: an operator sets fields, each is owned by one manager, and nothing
of it is left when the rules or the custom resource give the fields up."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from controlplane.cluster import ControlPlane

from ruleop.planning.model.managers import managers_on
from tests.cluster.custom_resource import CustomResource
from tests.cluster.operator import Operator, eventually, operator_of

RULES = """\
- group: example.com
  version: v1
  kind: Team
  reach: cluster
  children:
    label:
      patch:
        version: v1
        kind: Namespace
        name: "{{ metadata.namespace }}"
        fields: {metadata: {labels: {example.com/team: "{{ spec.team }}"}}}
    pull:
      when: spec.pull
      patch:
        version: v1
        kind: ConfigMap
        name: FIXED
        force: true
        fields: {data: {team: "{{ spec.team }}"}}
"""
LABEL = "example.com/team"


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with operator_of(
        control_plane,
        tmp_path_factory.mktemp("teams"),
        "Team",
        RULES.replace("FIXED", "first"),
        children=["configmaps", "namespaces"],
    ) as operator:
        yield operator


class Team(CustomResource):
    def __init__(self, operator: Operator, namespace: str) -> None:
        for name in ("first", "second"):
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"theirs": "x"}}
            operator.admin.post(f"/api/v1/namespaces/{namespace}/configmaps", body)
        super().__init__(operator, namespace, "red", {"team": "red", "pull": True})

    def label(self) -> str | None:
        return self.admin.get(self.home)["metadata"]["labels"].get(LABEL)

    def data(self, name: str) -> dict[str, str]:
        return dict(self.admin.get(f"{self.home}/configmaps/{name}")["data"])

    def set_label(self, value: str | None, manager: str) -> None:
        self.admin.merge(self.home, {"metadata": {"labels": {LABEL: value}}}, manager)


@pytest.fixture
def team(operator: Operator, namespace: str) -> Iterator[Team]:
    found = Team(operator, namespace)
    yield found
    if not found.is_gone():
        found.end()


def test_fields_are_set_and_nothing_else_is_and_they_go_with_the_custom_resource(team: Team) -> None:
    before = team.admin.get(team.home)
    assert before["metadata"]["labels"][LABEL] == "red"
    assert not {"annotations", "ownerReferences", "finalizers"} & before["metadata"].keys()
    assert team.data("first") == {"theirs": "x", "team": "red"}
    team.end()
    assert team.label() is None
    assert team.data("first") == {"theirs": "x"}
    assert not list(managers_on(team.admin.get(team.home)))


def test_nothing_is_written_when_nothing_differs_also_after_a_restart(team: Team) -> None:
    mark = team.operator.mark()
    team.operator.kill()
    team.operator.start()
    team.edit(other="x")
    team.settle()
    writes = team.operator.writes(mark)
    assert not [each for each in writes if "teams/status" not in each], writes


def test_a_field_of_another_manager_is_reported_until_it_gives_the_field_up(team: Team) -> None:
    team.set_label("theirs", "kubectl-label")
    eventually("the conflict", lambda: team.ready().get("reason") == "FieldConflict")
    assert f'metadata.labels.{LABEL} is held by "kubectl-label"' in team.ready()["message"]
    assert team.label() == "theirs"
    team.set_label(None, "kubectl-label")
    team.settle()
    assert team.label() == "red"


def test_a_field_is_taken_from_another_manager_with_force(team: Team) -> None:
    team.admin.merge(f"{team.home}/configmaps/first", {"data": {"team": "theirs"}}, "kubectl-edit")
    eventually("the field to be taken", lambda: team.data("first")["team"] == "red")


def test_a_removed_field_is_set_again_and_an_edited_one_follows(team: Team) -> None:
    team.set_label(None, "kubectl-label")
    eventually("the label", lambda: team.label() == "red")
    team.edit(team="blue")
    eventually("the label", lambda: team.label() == "blue")


def test_fields_of_rules_that_changed_while_no_operator_ran_are_released(team: Team) -> None:
    watches = team.operator.project / "watches.yaml"
    before = watches.read_text()
    team.operator.kill()
    watches.write_text(before.replace("name: first", "name: second"))
    team.operator.start()
    eventually("the fields to be moved", lambda: team.data("first") == {"theirs": "x"})
    assert team.data("second") == {"theirs": "x", "team": "red"}
    team.operator.kill()
    watches.write_text(before.partition("  children:\n")[0])
    team.operator.start()
    eventually("the fields to be released", lambda: team.data("second") == {"theirs": "x"} and team.label() is None)
    eventually("no finalizer", lambda: not team.admin.get(team.path)["metadata"].get("finalizers"))
    team.operator.kill()
    watches.write_text(before)
    team.operator.start()
    eventually("the fields to be set again", lambda: team.data("first")["team"] == "red")


@pytest.mark.parametrize("seed", range(3))
def test_after_quick_edits_there_and_back_the_fields_are_those_of_the_last_one(team: Team, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - the edits of a test
    first = f"{team.home}/configmaps/first"
    for _ in range(3):
        for _ in range(chance.randint(1, 4)):
            team.edit(pull=chance.random() < 0.5, team=chance.choice(["red", "blue"]))
            if chance.random() < 0.3:
                eventually("the fields to go", lambda: team.edit(pull=False) or "team" not in team.data("first"))
            if chance.random() < 0.2:
                team.admin.delete(first)
                body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first"}, "data": {"theirs": "x"}}
                team.admin.post(f"{team.home}/configmaps", body)
            if chance.random() < 0.2:
                team.operator.kill()
                team.operator.start()
        spec = team.admin.get(team.path)["spec"]
        expected = {"theirs": "x"} | ({"team": spec["team"]} if spec["pull"] else {})
        eventually("the fields of the last edit", lambda expected=expected: team.data("first") == expected)
    team.edit(pull=True, team="blue")
    eventually("the fields", lambda: team.data("first") == {"theirs": "x", "team": "blue"})
    team.settle()
