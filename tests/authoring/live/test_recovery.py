"""After the operator's namespace was deleted, with its key and its inventory, a person gives the children back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ruleop.localcluster import LocalCluster
from ruleop.planning.model.marks import OWNER
from tests.authoring.live.harness import Live, new_live
from tests.definitions import definition

TEAMS = {
    "watches.yaml": """\
- group: example.com
  version: v1
  kind: Team
  reach: cluster
  children:
    home: {object: {apiVersion: v1, kind: Namespace, metadata: {name: "team-{{ metadata.name }}"}}}
    pages:
      forEach: "[1, 2]"
      object:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "page-{{ item }}", namespace: "team-{{ metadata.name }}"}
        data: {team: "{{ metadata.name }}"}
  finalize:
    last:
      forEachOf: pages
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "last-{{ item }}"}}
""",
    "crds/teams.yaml": definition("Team"),
}
RED = "apiVersion: example.com/v1\nkind: Team\nmetadata: {name: red, namespace: default}\nspec: {}\n"
REMOVE = (
    "3 objects would be believed. Remove the annotation ruleop.dev/owner from any that ruleop did not make, then run "
    "this with --yes."
)
CHILDREN = ["ConfigMap/team-red/page-1", "ConfigMap/team-red/page-2", "Namespace/team-red"]


@pytest.fixture
def teams(tmp_path: Path) -> Iterator[Live]:
    """A team whose children exist, and an operator that has lost its key and its inventory."""
    with LocalCluster() as cluster:
        found = new_live(tmp_path, cluster, TEAMS)
        found.apply(RED)
        found.converge(lambda: found.reasons("Team") == ["Ready"])
        for kind, name in (("secrets", "owner-key"), ("configmaps", "inventory"), ("configmaps", "revisions")):
            found.send("DELETE", f"/api/v1/namespaces/default/{kind}/ruleop-{name}")
        found.converge(lambda: found.reasons("Team") == ["ErrResourceExists"])
        yield found


def owners(teams: Live) -> list[str]:
    return [each["metadata"]["annotations"][OWNER] for each in (*teams.objects("Namespace"), *teams.objects("ConfigMap"))
            if OWNER in each["metadata"].get("annotations", {})]  # fmt: skip


def forge(teams: Live, name: str, uid: str) -> None:
    """A ConfigMap of somebody else, which names a team as its owner."""
    (real,) = [each for each in teams.objects("ConfigMap") if each["metadata"]["name"] == "page-1"]
    note = real["metadata"]["annotations"][OWNER].replace("page-1", name).replace(uid, "another")
    labels = {"ruleop.dev/part-of": real["metadata"]["labels"]["ruleop.dev/part-of"]}
    metadata = {"name": name, "namespace": "team-red", "labels": labels, "annotations": {OWNER: note}}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    teams.send("POST", "/api/v1/namespaces/team-red/configmaps", body)


@pytest.mark.slow
def test_the_message_names_the_command_and_no_deletion(teams: Live) -> None:
    assert "`ruleop recover`" in teams.message("Team")
    assert "delete" not in teams.message("Team")


@pytest.mark.slow
def test_objects_are_listed_first_and_nothing_is_written(teams: Live) -> None:
    before = teams.version()
    status, out, _ = teams.run("recover", "--operator-namespace", "default")
    assert status == 1
    assert out.splitlines() == [
        *(f"{each} of Team/default/red" for each in CHILDREN),
        "",
        REMOVE,
    ]
    assert teams.version() == before


@pytest.mark.slow
def test_signed_objects_are_owned_again(teams: Live) -> None:
    before = owners(teams)
    status, out, _ = teams.run("recover", "--yes", "--operator-namespace", "default")
    assert (status, out.splitlines()) == (0, [f"signed {each} of Team/default/red" for each in CHILDREN])
    assert len(set(owners(teams)) - set(before)) == len(CHILDREN)
    teams.converge(lambda: teams.reasons("Team") == ["Ready"])
    assert teams.run("recover")[:2] == (
        0,
        "No object has an owner annotation or a field manager without a valid proof.\n",
    )
    teams.send("DELETE", "/apis/example.com/v1/namespaces/default/teams/red")
    teams.converge(lambda: not teams.objects("Team"))
    assert "team-red" not in [each["metadata"]["name"] for each in teams.objects("Namespace")]


@pytest.mark.slow
def test_an_annotation_for_another_custom_resource_of_that_name_is_not_on_the_list(teams: Live) -> None:
    """It was deleted and made again, with another uid."""
    (red,) = teams.objects("Team")
    forge(teams, "theirs", red["metadata"]["uid"])
    assert "theirs" not in teams.run("recover")[1]


@pytest.mark.slow
def test_without_the_key_the_command_reports_what_makes_it(teams: Live) -> None:
    teams.send("DELETE", "/api/v1/namespaces/default/secrets/ruleop-owner-key")
    status, _, err = teams.run("recover", "--yes")
    assert status == 1
    assert err == (
        "ruleop: no Secret ruleop-owner-key found: start the operator, which makes it; or name the operator with "
        "--name and --operator-namespace\n"
    )


MARKED = {
    "watches.yaml": """\
- group: example.com
  version: v1
  kind: Team
  reach: cluster
  children:
    mark: {patch: {version: v1, kind: Namespace, name: shared, fields: {metadata: {labels: {team: "{{ spec.mark }}"}}}}}
""",
    "crds/teams.yaml": definition("Team"),
}


def managers(live: Live) -> list[str]:
    """The managers of ruleop on the Namespace, without their proofs."""
    (shared,) = [each for each in live.objects("Namespace") if each["metadata"]["name"] == "shared"]
    names = [each["manager"] for each in shared["metadata"]["managedFields"]]
    return [name.rpartition(":")[0] for name in names if name.startswith("ruleop:")]


@pytest.mark.slow
def test_fields_of_objects_of_others_are_given_back_too(tmp_path: Path) -> None:
    with LocalCluster() as cluster:
        found = new_live(tmp_path, cluster, MARKED)
        found.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: shared}\n")
        found.apply(RED.replace("spec: {}", "spec: {mark: one}"))
        found.converge(lambda: found.reasons("Team") == ["Ready"])
        for kind, name in (("secrets", "owner-key"), ("configmaps", "inventory"), ("configmaps", "revisions")):
            found.send("DELETE", f"/api/v1/namespaces/default/{kind}/ruleop-{name}")
        found.apply(RED.replace("spec: {}", "spec: {mark: two}"))
        found.converge(lambda: found.reasons("Team") == ["FieldConflict"])
        before = managers(found)
        status, out, _ = found.run("recover", "--operator-namespace", "default")
        assert (status, out.splitlines()[:1]) == (1, ["fields of Namespace/shared by Team/default/red"])
        assert found.run("recover", "--operator-namespace", "default", "--yes")[0] == 0
        assert managers(found) == before, "the fields have one manager"
        found.converge(lambda: found.reasons("Team") == ["Ready"])
        (shared,) = [each for each in found.objects("Namespace") if each["metadata"]["name"] == "shared"]
        assert shared["metadata"]["labels"]["team"] == "two"
        assert found.run("recover", "--operator-namespace", "default")[0] == 0
