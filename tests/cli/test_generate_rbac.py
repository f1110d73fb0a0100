"""`ruleop generate rbac`: the text, the files, and the errors and notes of a terminal."""

from __future__ import annotations

import pytest
import yaml

from tests.cli.conftest import project, ruleop

__all__ = ["project", "ruleop"]


@pytest.fixture
def generate(project, ruleop):
    def run(*arguments: str):
        return ruleop("generate", "rbac", *arguments)

    return run


def kinds(text: str) -> list[tuple[str, str]]:
    return [(each["kind"], each["metadata"].get("namespace", "")) for each in yaml.safe_load_all(text)]


def test_the_objects_are_one_stream_that_is_the_same_each_time(generate):
    ran = generate()
    assert (ran.status, ran.err) == (0, "")
    assert kinds(ran.out) == [
        ("ServiceAccount", "ruleop-system"),
        ("ClusterRole", ""),
        ("ClusterRoleBinding", ""),
        ("Role", "ruleop-system"),
        ("RoleBinding", "ruleop-system"),
    ]
    assert generate().out == ran.out


def test_each_rule_has_its_reason_above_it(generate):
    assert (
        """\
  # the child web of Site (watches.yaml:6)
  - apiGroups: [apps]
    resources: [deployments]
    verbs: [get, list, watch, create, patch, delete]
"""
        in generate().out
    )


def test_names_and_namespaces_are_those_of_the_options_or_of_the_file(generate, project):
    project.write("ruleop.yaml", "name: shop\nnamespace: operators\nnamespaces: [a]\nleaderElect: false\n")
    documents = list(yaml.safe_load_all(generate().out))
    assert kinds(generate().out)[1:] == [
        ("Role", "a"),
        ("RoleBinding", "a"),
        ("Role", "operators"),
        ("RoleBinding", "operators"),
    ]
    assert {each["metadata"]["name"] for each in documents} == {"shop"}
    assert documents[-1]["subjects"] == [{"kind": "ServiceAccount", "name": "shop", "namespace": "operators"}]
    assert "leases" not in generate().out
    assert ("Role", "b") in kinds(generate("--namespaces", "b", "--name", "other").out)


def test_a_cluster_role_beside_single_namespaces_is_explained_in_the_file_and_on_stderr(generate, project):
    project.edit("crds/sites.yaml", "scope: Namespaced", "scope: Cluster")
    project.edit("watches.yaml", "  children:", "  reach: cluster\n  children:")
    ran = generate("--namespaces", "a")
    note = "get, list, watch on sites.example.com needs a ClusterRole: Site is cluster-scoped"
    assert ran.err.startswith(f"note: {note} (")
    assert f"\n# {note} (" in ran.out
    assert "\n  # not in a Role: Site is cluster-scoped\n" in ran.out


def test_a_permission_that_cannot_be_computed_is_an_error_with_its_place_and_nothing_is_written(
    generate, project, tmp_path
):
    project.edit("templates/web.yaml.j2", "apiVersion: apps/v1", "apiVersion: other.io/v1")
    ran = generate("--out", str(tmp_path / "deploy"))
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("watches.yaml:6:5: error[RO704]: the plural of Deployment in the API group other.io")
    assert not (tmp_path / "deploy").exists()


def test_roles_for_people_are_a_file_of_their_own(generate, tmp_path):
    out = str(tmp_path / "deploy")
    assert generate("--users", "--out", out).out == f"{out}/rbac.yaml: written\n{out}/users.yaml: written\n"
    assert generate("--users").out.endswith((tmp_path / "deploy" / "users.yaml").read_text())
    assert generate("--users", "--out", out, "--check").status == 0


def test_a_file_of_somebody_else_is_not_overwritten(generate, tmp_path):
    (tmp_path / "rbac.yaml").write_text("mine\n")
    ran = generate("--out", str(tmp_path))
    assert ran.status == 2
    assert "was not made by `ruleop generate`" in ran.err
    assert generate("--out", str(tmp_path), "--force").status == 0


def test_a_wildcard_under_rbac_is_a_warning(generate, project):
    project.edit("watches.yaml", "  status:", "  rbac: [{apiGroups: [''], resources: [pods], verbs: ['*']}]\n  status:")
    ran = generate()
    assert ran.status == 0
    assert "watches.yaml:7:10: warning[RO704]: * on pods: the operator may do more than these rules need" in ran.err
    rules = [rule for each in yaml.safe_load_all(ran.out) for rule in each.get("rules", ())]
    assert {"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]} in rules


def test_a_project_with_mistakes_has_no_roles(generate, project):
    project.edit("watches.yaml", "children:", "childrn:")
    ran = generate()
    assert (ran.status, ran.out) == (1, "")
    assert 'did you mean "children"?' in ran.err
