"""`explain` and `plan --live` of fields that a child sets in an object of somebody else."""

import pytest

from ruleop.localcluster import LocalCluster
from tests.authoring.live.harness import new_live
from tests.definitions import definition

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
        fields: {metadata: {labels: {team: "{{ spec.team }}"}}}
"""
TEAM = """\
apiVersion: example.com/v1
kind: Team
metadata: {name: a, namespace: default}
spec: {team: red}
"""


@pytest.mark.slow
def test_fields_of_an_object_of_others_are_explained_and_planned(tmp_path):
    with LocalCluster() as cluster:
        live = new_live(tmp_path, cluster, {"watches.yaml": RULES, "crds/teams.yaml": definition("Team")})
        live.apply(TEAM)
        live.converge(lambda: live.reasons("Team") == ["Ready"])
        status, out, err = live.run("explain", "Team/a")
        assert (status, err) == (0, "")
        assert "ready  Namespace/default" in out
        assert "all 1 fields that ruleop sets are as it wrote them" in out
        assert "Nothing to do." in out
        status, out, _ = live.run("plan", "--live", "Team/a")
        assert status == 0
        assert "Nothing to do." in out
        live.edit("watches.yaml", "labels: {team:", "labels: {of-team:")
        status, out, _ = live.run("plan", "--live", "Team/a", "--server-dry-run")
        assert status == 0
        assert "~ apply Namespace/default  server-side" in out
        assert "accepted by the server" in out


SELECTED = RULES.replace('name: "{{ metadata.namespace }}"', 'selector: {tier: "{{ spec.tier }}"}')


@pytest.mark.slow
def test_fields_of_all_objects_that_match_are_planned_and_those_that_no_longer_match_are_released(tmp_path):
    with LocalCluster() as cluster:
        live = new_live(tmp_path, cluster, {"watches.yaml": SELECTED, "crds/teams.yaml": definition("Team")})
        for name, tier in {"a": "web", "b": "web", "c": "db"}.items():
            live.apply(f"{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}, labels: {{tier: {tier}}}}}}}")
        live.apply(TEAM.replace("team: red", "team: red, tier: web"))
        live.converge(lambda: live.reasons("Team") == ["Ready"])
        status, out, err = live.run("plan", "--live", "Team/a")
        assert (status, err) == (0, "")
        assert "Nothing to do." in out
        status, out, _ = live.run("explain", "Team/a")
        assert status == 0
        assert "ready  Namespace/a" in out
        assert "ready  Namespace/b" in out
        live.edit("watches.yaml", 'tier: "{{ spec.tier }}"', "tier: db")
        status, out, _ = live.run("plan", "--live", "Team/a")
        assert status == 0
        assert "~ apply Namespace/c  server-side" in out
        for name in ("a", "b"):
            assert f"Namespace/{name}" in out


@pytest.mark.slow
def test_fields_that_another_custom_resource_holds_are_not_ready(tmp_path):
    with LocalCluster() as cluster:
        live = new_live(tmp_path, cluster, {"watches.yaml": RULES, "crds/teams.yaml": definition("Team")})
        live.apply(TEAM)
        live.converge(lambda: live.reasons("Team") == ["Ready"])
        live.apply(TEAM.replace("name: a", "name: b").replace("red", "blue"))
        live.converge(lambda: sorted(live.reasons("Team")) == ["FieldConflict", "Ready"])
        status, out, err = live.run("explain", "Team/b")
        assert (status, err) == (0, "")
        held = "metadata.labels.team is held by the child label of Team/a; let only one of them set it"
        assert "not ready  Namespace/default: metadata.labels.team is held by" in out
        assert "(ruleop's child label, " in out
        assert f"Namespace/default is not ready: {held}" in out
        assert "force" not in out
        status, out, _ = live.run("explain", "Team/a")
        assert "ready  Namespace/default" in out
