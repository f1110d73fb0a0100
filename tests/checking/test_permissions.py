"""`ruleop check --rbac FILE` compares what the rules need with what the roles of a manifest grant."""

import re

import pytest

from tests.cli.conftest import project, ruleop
from tests.docs.messages import ROOT

__all__ = ["project", "ruleop"]

ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: ruleop}
rules:
  - {apiGroups: [example.com], resources: [sites], verbs: [get, list, watch, patch]}
  - {apiGroups: [example.com], resources: [sites/status], verbs: [patch]}
  - {apiGroups: [""], resources: [configmaps], verbs: ["*"]}
  - {apiGroups: [apps], resources: [deployments], verbs: [get, list, watch, create, patch, delete]}
"""


@pytest.fixture
def said(project, ruleop):
    def check(role: str) -> list[str]:
        project.write("rbac.yaml", role)
        ran = ruleop("check", "--rbac", "rbac.yaml")
        found = [line.replace("error[RO704]: rbac.yaml ", "") for line in ran.out.split("\n") if "RO704" in line]
        assert ran.status == (1 if found else 0)
        return found

    return check


def test_roles_that_grant_all_are_silent(said):
    assert said(ROLE) == []
    assert said("apiVersion: v1\nkind: List\nitems:\n- " + ROLE.replace("\n", "\n  ").strip()) == []


def test_an_asterisk_grants_everything(said):
    assert (
        said(re.sub(r"rules:.*", "rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]", ROLE, flags=re.DOTALL))
        == []
    )


def test_missing_verbs_are_named_with_the_resource(said):
    assert said(ROLE.replace("create, patch, delete]", "create]").replace("list, watch, patch]", "list, watch]")) == [
        "watches.yaml:1:3: does not grant patch on sites.example.com; it needs get, list, watch, patch",
        "watches.yaml:6:5: does not grant patch, delete on deployments.apps; it needs get, list, watch, create, patch, delete",
    ]


def test_a_subresource_is_granted_by_itself(said):
    assert said(ROLE.replace("sites/status", "sites/scale")) == [
        "watches.yaml:1:3: does not grant patch on sites.example.com/status"
    ]


def test_an_entry_for_names_does_not_count(said):
    assert said(ROLE.replace('["*"]}', '["*"], resourceNames: [a]}')) == [
        "watches.yaml:5:5: does not grant get, list, watch, create, patch, delete on configmaps"
    ]


def test_a_rule_for_the_group_is_enough_for_a_kind_with_an_unknown_plural(said, project):
    project.edit("templates/config.yaml.j2", "apiVersion: v1\nkind: ConfigMap", "apiVersion: other.io/v1\nkind: Thing")
    assert said(ROLE) == [
        (
            "watches.yaml:5:5: grants nothing in the API group other.io, and Thing needs "
            "get, list, watch, create, patch, delete"
        )
    ]
    assert said(f"{ROLE}  - {{apiGroups: [other.io], resources: [things], verbs: [get]}}\n") == []


def test_the_roles_of_the_documentation_are_enough_for_this_project(ruleop, tmp_path):
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    (block,) = (
        each for each in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "resources: [apps/status]" in each
    )
    (tmp_path / "rbac.yaml").write_text(block, encoding="utf-8")
    assert ruleop("check", "-C", str(ROOT), "--rbac", str(tmp_path / "rbac.yaml")).status == 0
