"""`ruleop check --rbac FILE` compares what the rules need with what the roles of a manifest grant."""

import re

import pytest

from tests.cli.conftest import project, ruleop

__all__ = ["project", "ruleop"]

ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: ruleop}
rules:
  - {apiGroups: [example.com], resources: [sites], verbs: [get, list, watch]}
  - {apiGroups: [example.com], resources: [sites/status], verbs: [patch]}
  - {apiGroups: [""], resources: [configmaps], verbs: ["*"]}
  - {apiGroups: [apps], resources: [deployments], verbs: [get, list, watch, create, patch, delete]}
  - {apiGroups: [events.k8s.io], resources: [events], verbs: [create, patch]}
  - {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [list, watch]}
"""
CORE = '  - {apiGroups: [""], resources: [configmaps], verbs: ["*"]}\n'


@pytest.fixture
def said(project, ruleop):
    def check(role: str, *flags: str) -> list[str]:
        project.write("rbac.yaml", role)
        ran = ruleop("check", "--rbac", "rbac.yaml", *flags)
        lines = [line for line in ran.out.split("\n") if "RO704" in line]
        assert ran.status == (1 if any("error[" in line for line in lines) else 0)
        return [line.replace("error[RO704]: rbac.yaml ", "") for line in lines]

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
    assert said(
        ROLE.replace("create, patch, delete]", "create]").replace(
            "list, watch]}\n  - {apiGroups: [example.com], resources: [sites/",
            "list]}\n  - {apiGroups: [example.com], resources: [sites/",
        )
    ) == [
        "watches.yaml:1:3: does not grant watch on sites.example.com; it needs get, list, watch",
        "watches.yaml:6:5: does not grant patch, delete on deployments.apps; it needs get, list, watch, create, patch, delete",
    ]


def test_a_subresource_is_granted_by_itself(said):
    assert said(ROLE.replace("sites/status", "sites/scale")) == [
        "watches.yaml:1:3: does not grant patch on sites.example.com/status"
    ]


def test_an_entry_for_names_does_not_count(said):
    assert said(ROLE.replace('["*"]}', '["*"], resourceNames: [a]}')) == [
        (
            "watches.yaml:1:3: warning[RO704]: rbac.yaml does not grant get, create, update on configmaps in the "
            "operator's namespace, for revisions of the rules (ruleop-revisions): without it, they are not kept"
        ),
        (
            "watches.yaml:1:3: does not grant get, create, update on configmaps in the operator's namespace, for the "
            "inventory (ruleop-inventory)"
        ),
        "watches.yaml:5:5: does not grant get, list, watch, create, patch, delete on configmaps",
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


# -- the operator itself -----------------------------------------------------------------------------------------------

OPERATOR = """\
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: ruleop, namespace: ops}
rules:
  - {apiGroups: [""], resources: [configmaps, secrets], verbs: [create]}
  - {apiGroups: [""], resources: [configmaps], resourceNames: [ruleop-inventory], verbs: [get, update]}
  - {apiGroups: [""], resources: [configmaps], resourceNames: [ruleop-revisions], verbs: [get, update]}
  - {apiGroups: [""], resources: [secrets], resourceNames: [ruleop-owner-key], verbs: [get, update]}
  - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [list, create]}
  - {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [ruleop], verbs: [get, update]}
"""
EXACT = (
    ROLE.replace(CORE, CORE.replace('["*"]', "[get, list, watch, create, patch, delete]")).replace(
        "[sites], verbs: [get, list, watch]", "[sites], verbs: [get, list, watch, patch]"
    )
    + OPERATOR
)
FLAGS = ("--leader-elect", "--operator-namespace", "ops")
IN_OPS = "in namespace ops, for"
LEFT_OUT = {
    "resourceNames: [ruleop-inventory], verbs: [get, update]": [
        f"watches.yaml:1:3: does not grant update on configmaps {IN_OPS} the inventory (ruleop-inventory)"
    ],
    "resourceNames: [ruleop-revisions], verbs: [get, update]": [
        (
            f"watches.yaml:1:3: warning[RO704]: rbac.yaml does not grant update on configmaps {IN_OPS} revisions of the "
            "rules (ruleop-revisions): without it, they are not kept"
        )
    ],
    "resources: [secrets], resourceNames: [ruleop-owner-key], verbs: [get, update]": [
        (
            f"watches.yaml:1:3: does not grant get, update on secrets {IN_OPS} the key that signs owner annotations "
            "(ruleop-owner-key)"
        )
    ],
    "resources: [leases], verbs: [list, create]": [
        f"watches.yaml:1:3: does not grant create on leases.coordination.k8s.io {IN_OPS} leader election (ruleop)",
        (
            "watches.yaml:1:3: warning[RO704]: rbac.yaml does not grant list on leases.coordination.k8s.io in namespace "
            "ops, for other processes of the operator: without it, another process that reconciles the same custom "
            "resources is not noticed"
        ),
    ],
    "resources: [events], verbs: [create, patch]": [
        (
            "watches.yaml:1:3: warning[RO704]: rbac.yaml does not grant create, patch on events.events.k8s.io, for Events on "
            "custom resources: without it, no Events are written"
        )
    ],
    "resources: [customresourcedefinitions]": [
        (
            "watches.yaml:1:3: warning[RO704]: rbac.yaml does not grant list, watch on "
            "customresourcedefinitions.apiextensions.k8s.io, for changes of CRDs: without it, changed CRDs are noticed once "
            "a minute, by discovery"
        )
    ],
}


@pytest.fixture
def far(project):
    project.edit("watches.yaml", "  children:", "  reach: cluster\n  children:")


@pytest.mark.usefixtures("far")
def test_roles_for_exactly_what_is_needed_are_enough(said):
    assert said(EXACT, *FLAGS) == []


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize("rule", LEFT_OUT)
def test_each_rule_that_is_left_out_is_reported(said, rule: str):
    (line,) = (line for line in EXACT.splitlines() if rule in line)
    assert said(EXACT.replace(f"{line}\n", ""), *FLAGS) == LEFT_OUT[rule]


@pytest.mark.slow
@pytest.mark.usefixtures("far")
def test_the_flags_of_run_decide_what_is_needed(said):
    assert any("for leader election (other)" in line for line in said(EXACT, *FLAGS, "--name", "other"))
    without = EXACT.replace("[coordination.k8s.io]", "[none]")
    assert said(without) == []
    assert any("leases" in line for line in said(without, "--leader-elect"))
    assert any("tokenreviews" in line for line in said(EXACT, "--metrics-auth"))
    assert any("in namespace elsewhere" in line for line in said(EXACT, "--operator-namespace", "elsewhere"))


def test_a_project_without_watches_needs_nothing_that_is_checked(said, project):
    project.write("watches.yaml", "watches: []\n")
    assert said(ROLE) == []


def test_a_flag_of_run_without_roles_is_wrong_usage(ruleop):
    ran = ruleop("check", "--leader-elect")
    assert (ran.status, ran.err) == (2, "ruleop: --leader-elect needs --rbac\n")


def test_a_role_holds_in_its_namespace_only(said):
    role = ROLE.replace("kind: ClusterRole", "kind: Role").replace("name: ruleop}", "name: ruleop, namespace: shop}")
    everywhere = said(role)
    assert (
        "watches.yaml:6:5: does not grant get, list, watch, create, patch, delete on deployments.apps in all namespaces: "
        "it needs a ClusterRole with a ClusterRoleBinding, or --namespaces"
    ) in everywhere
    assert said(role, "--namespaces", "shop") == []
    assert (
        "watches.yaml:6:5: does not grant get, list, watch, create, patch, delete on deployments.apps in namespace blog"
    ) in said(role, "--namespaces", "shop,blog")


def test_a_cluster_role_holds_where_it_is_bound(said):
    binding = """---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: ruleop, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ruleop}
"""
    assert said(ROLE + binding, "--namespaces", "shop") == []
    assert said(ROLE + binding) != []
    assert said(ROLE + binding + binding.replace("kind: RoleBinding", "kind: ClusterRoleBinding")) == []


# -- children that grant permissions -----------------------------------------------------------------------------------

BINDING = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ metadata.name }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: default}]
"""
WRITES = "verbs: [get, list, watch, create, patch, delete]}\n"
ALL_RBAC = f"  - {{apiGroups: [rbac.authorization.k8s.io], resources: [roles, rolebindings], {WRITES}"
REMEDY = "grant the operator `bind` on clusterroles.rbac.authorization.k8s.io"


def bind(role: str) -> str:
    return f"  - {{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [bind]{role}}}\n"


@pytest.mark.parametrize(
    ("grant", "missing"),
    [
        ("", True),
        (bind(", resourceNames: [edit]"), True),
        (bind(", resourceNames: [view]"), False),
        (bind(""), False),
    ],
)
def test_a_binding_needs_bind_on_its_role(said, project, grant: str, missing: bool):
    project.write("templates/config.yaml.j2", BINDING)
    found = said(ROLE + ALL_RBAC + grant)
    message = (
        "templates/config.yaml.j2:5:1: does not permit the operator to write this RoleBinding: "
        f"{REMEDY} (resourceNames: [view]), or all permissions of that role"
    )
    assert found == ([message] if missing else [])


def test_a_binding_to_a_computed_role_needs_bind_on_all(said, project):
    project.write("templates/config.yaml.j2", BINDING.replace("name: view", "name: '{{ spec.page }}'"))
    assert f"{REMEDY}, or all" in said(ROLE + ALL_RBAC + bind(", resourceNames: [view]"))[0]
    assert said(ROLE + ALL_RBAC + bind("")) == []


def test_a_binding_to_a_role_of_the_manifest_needs_no_more_than_the_operator_has(said, project):
    project.write("templates/config.yaml.j2", BINDING)
    view = "---\n" + re.sub(r"rules:.*", "rules:\n", ROLE, flags=re.DOTALL).replace("ruleop", "view")
    rule = "  - {apiGroups: [apps], resources: [deployments], verbs: [%s]}\n"
    assert said(ROLE + ALL_RBAC + view + rule % "get") == []
    users = BINDING.replace("{{ metadata.name }}", "users\n  namespace: x")  # so the role is not the operator's own
    found = said(f"{ROLE}{ALL_RBAC}{view}{rule % 'update'}---\n{users}")
    assert any("RoleBinding" in line for line in found)


ROLE_CHILD = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ metadata.name }}
rules:
- {apiGroups: [apps], resources: [deployments], verbs: [get, VERB]}
"""


@pytest.mark.slow
def test_a_role_needs_what_it_grants_or_escalate(said, project):
    project.write("templates/config.yaml.j2", ROLE_CHILD.replace("VERB", "patch"))
    assert said(ROLE + ALL_RBAC) == []
    for more in ("scale", "{{ spec.page }}"):
        project.write("templates/config.yaml.j2", ROLE_CHILD.replace("VERB", more))
        (found,) = said(ROLE + ALL_RBAC)
        assert found.endswith(
            "does not permit the operator to write this Role: grant the operator `escalate` on "
            "roles.rbac.authorization.k8s.io, or all permissions of that role"
        )
        assert said(ROLE + ALL_RBAC.replace("delete]", "delete, escalate]")) == []


def test_a_binding_to_a_role_of_the_same_rule_needs_no_more_than_the_role(said, project):
    role_ref = "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: '{{ metadata.name }}'}"
    binding = re.sub(r"roleRef:.*", role_ref, BINDING)
    project.write("templates/config.yaml.j2", f"{ROLE_CHILD.replace('VERB', 'patch')}---\n{binding}")
    assert said(ROLE + ALL_RBAC) == []
    project.write("templates/config.yaml.j2", f"{ROLE_CHILD.replace('VERB', 'scale')}---\n{binding}")
    assert len(said(ROLE + ALL_RBAC)) == 2


def test_an_aggregated_cluster_role_needs_everything(said, project):
    project.edit("watches.yaml", "  children:", "  reach: cluster\n  children:")
    aggregated = "kind: ClusterRole\nmetadata:\n  name: a\naggregationRule: {clusterRoleSelectors: [{}]}\n"
    project.write("templates/config.yaml.j2", f"apiVersion: rbac.authorization.k8s.io/v1\n{aggregated}")
    roles = ALL_RBAC.replace("[roles,", "[clusterroles,")
    found = said(ROLE + roles, "--operator-namespace", "x")
    assert any("`escalate` on clusterroles" in line and "every permission" in line for line in found)


# -- rbac in the watch -------------------------------------------------------------------------------------------------


def test_permissions_of_the_author_are_compared_like_all_others(said, project):
    by_hand = (
        "  rbac: [{apiGroups: [example.com, ''], resources: [pages], verbs: [get], resourceNames: [a, b]}]\n  status:"
    )
    project.edit("watches.yaml", "  status:", by_hand)
    missing = [f"watches.yaml:7:10: does not grant get on pages{group} (a, b)" for group in ("", ".example.com")]
    granted = "  - {apiGroups: [example.com, ''], resources: [pages], verbs: [get], resourceNames: [%s]}\n"
    assert said(ROLE) == said(ROLE + granted % "a") == missing
    assert said(ROLE + granted % "a, b") == []


def test_a_computed_role_is_as_good_as_what_the_author_lists(said, project):
    project.write("templates/config.yaml.j2", ROLE_CHILD.replace("VERB", "{{ spec.page }}"))
    by_hand = "  rbac: [{apiGroups: [apps], resources: [deployments], verbs: [scale]}]\n  status:"
    project.edit("watches.yaml", "  status:", by_hand)
    assert said(ROLE + ALL_RBAC) == ["watches.yaml:7:10: does not grant scale on deployments.apps"]
    assert said(ROLE + ALL_RBAC + "  - {apiGroups: [apps], resources: [deployments], verbs: [scale]}\n") == []


def test_an_observed_object_with_a_fixed_name_needs_no_more_than_its_name(said, project):
    observed = "  observe: {defaults: {version: v1, kind: Secret, name: defaults, namespace: platform}}\n  status:"
    project.edit("watches.yaml", "  children:", "  reach: cluster\n  children:")
    project.edit("watches.yaml", "  status:", observed)
    role = """---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: ruleop, namespace: platform}
rules:
  - {apiGroups: [""], resources: [secrets], resourceNames: [defaults], verbs: [list, watch]}
"""
    named = "does not grant list, watch on secrets (defaults) in namespace platform"
    assert any(named in line for line in said(EXACT, *FLAGS))
    assert not any(named in line for line in said(EXACT + role, *FLAGS))
