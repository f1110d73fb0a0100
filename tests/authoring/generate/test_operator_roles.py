"""The roles of `ruleop generate rbac`: nothing that the rules do not need, each rule with its reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ruleop.authoring.checking.dataflow import Sources
from ruleop.authoring.checking.missing_permissions import Grants, Roles, check_permissions
from ruleop.authoring.checking.needed_permissions import PermissionScope
from ruleop.authoring.generate.operator_roles import (
    operator_roles,
    role_objects,
    rule_of,
    user_roles,
    wide_permissions,
)
from ruleop.language.rules import Findings, ProjectErrors
from ruleop.language.rules.checking import build_with_sources, load_with_sources
from ruleop.language.rules.operator_choices import Choices
from tests.definitions import definition
from tests.language.rules.projects import watch

ROOT = Path(__file__).parents[3]
PROJECTS = [
    ROOT,
    *(
        path.parent
        for folder in ("examples", "tests/projects")
        for path in sorted((ROOT / folder).rglob("watches.yaml"))
    ),
]
PLAIN = "children: {a: {template: a.yaml}}"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
RBAC = "rbac.authorization.k8s.io"


def loaded(body: str, template: str = CONFIG_MAP, **crd: Any):
    files = {"watches.yaml": watch(body), "templates/a.yaml": template, "crds/apps.yaml": definition(**crd)}
    return build_with_sources(files, root="/project", environ={})


def generated(body: str, template: str = CONFIG_MAP, choices: Choices | None = None, **crd: Any):
    return operator_roles(loaded(body, template, **crd), choices or Choices())


def granted(permissions) -> dict[str, str]:
    """The verbs by resource and, in brackets, names."""
    return {
        each.title + (f" [{' '.join(each.names)}]" if each.names else ""): " ".join(each.verbs) for each in permissions
    }


WRITTEN = "get list watch create patch delete"


def test_all_kinds_of_a_choice_need_permissions_and_no_other_combination():
    chosen = (
        "apiVersion: {{ 'v1' if spec.local else 'apps/v1' }}\nkind: {{ 'Secret' if spec.local else 'Deployment' }}\n"
        "metadata: {name: a}\n"
    )
    budget = (
        "apiVersion: \"{{ 'policy/v1' if has_kind('policy/v1', 'PodDisruptionBudget') else 'policy/v1beta1' }}\", "
        "kind: PodDisruptionBudget, metadata: {name: a}"
    )
    roles = generated(f"children: {{a: {{template: a.yaml}}, b: {{object: {{{budget}}}}}}}", chosen)
    assert granted(roles.cluster) == {
        "apps.example.com": "get list watch",
        "apps.example.com/status": "patch",
        "secrets": WRITTEN,
        "deployments.apps": WRITTEN,
        "poddisruptionbudgets.policy": WRITTEN,
        "events.events.k8s.io": "create patch",
        "customresourcedefinitions.apiextensions.k8s.io": "list watch",
    }


def test_a_plain_rule_needs_no_key_and_no_finalizer():
    roles = generated(PLAIN)
    assert granted(roles.cluster) == {
        "apps.example.com": "get list watch",
        "apps.example.com/status": "patch",
        "configmaps": WRITTEN,
        "events.events.k8s.io": "create patch",
        "customresourcedefinitions.apiextensions.k8s.io": "list watch",
    }
    assert granted(roles.operator) == {
        "configmaps": "create",
        "configmaps [ruleop-inventory ruleop-revisions]": "get update",
        "leases.coordination.k8s.io": "list create",
        "leases.coordination.k8s.io [ruleop]": "get update",
    }
    assert (roles.watched, roles.elsewhere, roles.warnings) == ((), {}, ())


@pytest.mark.parametrize(
    ("body", "choices", "more", "less"),
    [
        (
            PLAIN,
            Choices(leader_elect=False),
            set(),
            {"leases.coordination.k8s.io", "leases.coordination.k8s.io [ruleop]"},
        ),
        (
            f"rollout: {{}}\n{PLAIN}",
            Choices(),
            {"configmaps [ruleop-rollouts]"},
            set(),
        ),
        (f"reach: cluster\n{PLAIN}", Choices(), {"secrets", "secrets [ruleop-owner-key]"}, set()),
        (f"manageStatus: false\n{PLAIN}", Choices(), set(), {"apps.example.com/status"}),
        (
            PLAIN,
            Choices(metrics_auth=True),
            {"tokenreviews.authentication.k8s.io", "subjectaccessreviews.authorization.k8s.io"},
            set(),
        ),
        (
            "finalize: {a: {template: a.yaml}}",
            Choices(),
            {"secrets", "secrets [ruleop-owner-key]", "namespaces"},
            set(),
        ),
    ],
    ids=["no Lease", "rollout", "key", "no status", "metrics", "finalize"],
)
def test_each_feature_brings_its_permissions(body: str, choices: Choices, more: set[str], less: set[str]):
    roles, plain = generated(body, choices=choices), generated(PLAIN)
    before, after = ({*granted([*each.cluster, *each.operator])} for each in (plain, roles))
    assert (after - before, before - after) == (more, less)


def test_single_namespaces_need_no_cluster_role():
    choices = Choices(namespaces=("blog", "shop"))
    roles = generated(PLAIN, choices=choices)
    assert roles.cluster == ()
    assert "customresourcedefinitions.apiextensions.k8s.io" not in granted(roles.watched)
    places = [(each["kind"], each["metadata"].get("namespace")) for each in role_objects(roles, choices)]
    assert places == [(kind, place) for place in ("blog", "shop", "ruleop-system") for kind in ("Role", "RoleBinding")]


def test_a_watched_namespace_of_the_operator_has_one_role_for_both():
    choices = Choices(namespaces=("ruleop-system",))
    (role, binding) = role_objects(generated(PLAIN, choices=choices), choices)
    assert (role["kind"], binding["kind"]) == ("Role", "RoleBinding")
    by_resource = [each for each in role["rules"] if each["resources"] == ["configmaps"]]
    assert [each.get("resourceNames", []) for each in by_resource] == [[], ["ruleop-inventory", "ruleop-revisions"]]
    assert by_resource[1]["verbs"] == ["update"], "get is granted on all ConfigMaps"


def test_a_cluster_scoped_kind_needs_a_cluster_role_and_the_reason_is_given():
    choices = Choices(namespaces=("blog",))
    roles = generated(PLAIN, choices=choices, scope="Cluster")
    assert granted(roles.cluster) == {"apps.example.com": "get list watch", "apps.example.com/status": "patch"}
    assert next(wide_permissions(roles, choices)) == (
        "get, list, watch on apps.example.com needs a ClusterRole: App is cluster-scoped "
        "(the custom resources App (watches.yaml:1))"
    )
    assert granted(roles.elsewhere["default"]) == {"events.events.k8s.io": "create patch"}


def test_an_observed_object_with_a_fixed_name_and_namespace_is_the_only_one_that_may_be_read():
    observed = "{version: v1, kind: Secret, name: defaults, namespace: platform}"
    roles = generated(f"reach: cluster\n{PLAIN}\nobserve: {{defaults: {observed}}}")
    assert granted(roles.elsewhere["platform"]) == {"secrets [defaults]": "list watch"}
    assert "secrets" not in granted(roles.cluster)


def test_an_installer_without_roles_in_other_namespaces_grants_in_the_cluster():
    observed = "{version: v1, kind: Secret, name: defaults, namespace: platform}"
    project = loaded(f"reach: cluster\n{PLAIN}\nobserve: {{defaults: {observed}}}")
    roles = operator_roles(project, Choices(namespaces=("blog",)), elsewhere=False)
    assert granted(roles.cluster) == {"secrets [defaults]": "list watch"}
    assert roles.elsewhere == {}


def test_a_permission_that_is_needed_in_the_whole_cluster_stays_so_beside_another_need():
    role = ROLE.replace("kind: Role", "kind: ClusterRole")
    pods = "observe: {pods: {version: v1, kind: Pod, selector: {a: b}}}"
    roles = generated(f"reach: cluster\n{PLAIN}\n{pods}", role)
    (found,) = (each for each in roles.cluster if each.resource == "pods")
    assert found.scope is PermissionScope.CLUSTER


def test_all_objects_of_a_kind_are_listed_and_watched_where_the_custom_resources_are():
    roles = generated(f"{PLAIN}\nobserve: {{pods: {{version: v1, kind: Pod}}}}")
    assert [(each.verbs, each.names, each.scope) for each in roles.cluster if each.resource == "pods"] == [
        (("list", "watch"), (), PermissionScope.WATCHED)
    ]


def test_an_observed_object_of_a_kind_of_children_needs_nothing_more():
    observed = "{version: v1, kind: ConfigMap, name: defaults, namespace: platform}"
    roles = generated(f"reach: cluster\n{PLAIN}\nobserve: {{defaults: {observed}}}")
    assert roles.elsewhere == {}
    local = generated(f"{PLAIN}\nobserve: {{defaults: {{version: v1, kind: ConfigMap, name: defaults}}}}")
    assert granted(local.cluster)["configmaps"] == WRITTEN
    assert "configmaps [defaults]" not in granted(local.cluster)


def test_each_rule_has_its_reasons_and_places():
    roles = generated(f"reach: cluster\n{PLAIN}\nobserve: {{b: {{version: v1, kind: ConfigMap, selector: {{a: b}}}}}}")
    role = role_objects(roles, Choices(), comments=True)[0]
    assert [each.comment.split("\n") for each in role["rules"]][:3] == [
        [
            "the custom resources App (watches.yaml:1): get, list, watch",
            "the finalizer of App (watches.yaml:1): patch",
        ],
        ["the status of App (watches.yaml:1)"],
        ["the child a of App (watches.yaml:5)", "the observed b of App (watches.yaml:6): list, watch"],
    ]


def mistakes(body: str, template: str = CONFIG_MAP) -> list[str]:
    with pytest.raises(ProjectErrors) as raised:
        generated(body, template)
    return [str(each) for each in raised.value.findings]


UNKNOWN = "apiVersion: other.io/v1\nkind: Thing\nmetadata: {name: a}\n"
THINGS = "{apiGroups: [other.io], resources: [things], verbs: [%s]}"


def test_a_kind_with_an_unknown_plural_is_an_error_until_rbac_lists_it():
    needed = WRITTEN.replace(" ", ", ")
    assert mistakes(PLAIN, UNKNOWN) == [
        (
            "watches.yaml:4:14: the plural of Thing in the API group other.io is unknown, and a role needs it: put the CRD "
            "into crds/, or list the permission under `rbac` in the watch: "
            f"[{{apiGroups: [other.io], resources: [PLURAL], verbs: [{needed}]}}]"
        )
    ]
    assert mistakes(f"{PLAIN}\nrbac: [{THINGS % 'get'}]", UNKNOWN), "not all that is needed"
    roles = generated(f"{PLAIN}\nrbac: [{THINGS % needed}]", UNKNOWN)
    assert granted(roles.cluster)["things.other.io"] == WRITTEN


def test_wildcards_of_the_author_are_granted_with_a_warning():
    roles = generated(f"{PLAIN}\nrbac: [{{apiGroups: ['*'], resources: [pods], verbs: [get]}}]")
    (warning,) = roles.warnings
    assert str(warning) == ("watches.yaml:5:10: warning: get on pods.*: the operator may do more than these rules need")
    assert {"apiGroups": ["*"], "resources": ["pods"], "verbs": ["get"]} in map(rule_of, roles.cluster)


# -- children that grant permissions -----------------------------------------------------------------------------------

BINDING = f"""\
apiVersion: {RBAC}/v1
kind: RoleBinding
metadata: {{name: a}}
roleRef: {{apiGroup: {RBAC}, kind: ClusterRole, name: view}}
"""
ROLE = f"""\
apiVersion: {RBAC}/v1
kind: Role
metadata: {{name: "{{{{ metadata.name }}}}"}}
rules:
- {{apiGroups: [""], resources: [pods, pods/log], verbs: [get]}}
"""
TO_ROLE = BINDING.replace("ClusterRole, name: view", 'Role, name: "{{ metadata.name }}"')


def test_a_binding_needs_bind_on_the_role_that_it_names():
    permissions = granted(generated(PLAIN, BINDING).cluster)
    assert permissions[f"clusterroles.{RBAC} [view]"] == "bind"
    assert permissions[f"rolebindings.{RBAC}"] == WRITTEN
    assert not any("escalate" in verbs for verbs in permissions.values())


def test_the_bind_of_a_role_binding_is_granted_in_the_namespaces():
    roles = generated(PLAIN, BINDING, Choices(namespaces=("blog",)))
    assert roles.cluster == ()
    assert granted(roles.watched)[f"clusterroles.{RBAC} [view]"] == "bind"


def test_roles_that_the_schema_enumerates_are_named():
    computed = BINDING.replace("view}", "'{{ spec.role }}'}")
    spec = "{type: object, required: [role], properties: {role: {type: string, enum: [view, edit]}}}"
    roles = generated(PLAIN, computed, spec=spec, requires_spec=True)
    assert granted(roles.cluster)[f"clusterroles.{RBAC} [edit view]"] == "bind"


def test_a_role_needs_all_that_it_grants():
    permissions = granted(generated(PLAIN, ROLE).cluster)
    assert (permissions["pods"], permissions["pods/log"]) == ("get", "get")


def test_a_permission_that_a_role_grants_is_not_repeated():
    observed = "observe: {pods: {version: v1, kind: Pod, selector: {a: b}}}"
    assert granted(generated(f"{PLAIN}\n{observed}", ROLE).cluster)["pods"] == "get list watch"


def test_a_binding_to_a_role_of_the_same_watch_needs_no_bind():
    permissions = granted(generated(PLAIN, f"{ROLE}---\n{TO_ROLE}").cluster)
    assert not any("bind" in verbs for verbs in permissions.values())


def test_a_cluster_role_needs_its_permissions_in_the_whole_cluster():
    urls = ROLE.replace("kind: Role", "kind: ClusterRole") + "- {nonResourceURLs: [/metrics], verbs: [get]}\n"
    choices = Choices(namespaces=("blog",))
    roles = generated(f"reach: cluster\n{PLAIN}", urls, choices)
    assert granted(roles.cluster) == {
        f"clusterroles.{RBAC}": WRITTEN,
        "pods": "get",
        "pods/log": "get",
        "/metrics": "get",
    }
    assert {"nonResourceURLs": ["/metrics"], "verbs": ["get"]} in map(rule_of, roles.cluster)


COMPUTED = {
    "binding": (
        BINDING.replace("view}", "'{{ spec.role }}'}"),
        f"""\
templates/a.yaml:4:1: the permissions that this RoleBinding grants cannot be read from the template: list the roles \
under `rbac` in the watch: [{{apiGroups: [{RBAC}], resources: [clusterroles], resourceNames: [NAME], verbs: [bind]}}]""",
        f"{{apiGroups: [{RBAC}], resources: [clusterroles], resourceNames: [view], verbs: [bind]}}",
    ),
    "role": (
        ROLE.replace("[get]", "['{{ spec.verb }}']"),
        """\
templates/a.yaml:4:1: the permissions that this Role grants cannot be read from the template: list all that the role \
may grant under `rbac` in the watch, such as [{apiGroups: [apps], resources: [deployments], verbs: [get]}]""",
        "{apiGroups: [''], resources: [pods, pods/log], verbs: [get, list]}",
    ),
    "aggregated": (
        f"""\
apiVersion: {RBAC}/v1
kind: ClusterRole
metadata: {{name: all}}
aggregationRule: {{clusterRoleSelectors: [{{}}]}}
""",
        f"""\
templates/a.yaml:4:1: this ClusterRole grants what other roles grant (aggregationRule): permit it under `rbac` in the \
watch: [{{apiGroups: [{RBAC}], resources: [clusterroles], resourceNames: [all], verbs: [escalate]}}]; with that, the \
operator can grant everything""",
        f"{{apiGroups: [{RBAC}], resources: [clusterroles], resourceNames: [all], verbs: [escalate]}}",
    ),
}


@pytest.mark.parametrize("case", COMPUTED)
def test_computed_permissions_are_an_error_that_shows_what_to_write(case: str):
    template, message, by_hand = COMPUTED[case]
    body = f"reach: cluster\n{PLAIN}"
    assert mistakes(body, template) == [message]
    assert mistakes(f"{body}\nrbac: [{{apiGroups: [{RBAC}], resources: [pods], verbs: [bind]}}]", template) == [message]
    written = granted(generated(f"{body}\nrbac: [{by_hand}]", template).cluster)
    verbs = by_hand.rpartition("[")[2].removesuffix("]}")
    assert verbs.replace(", ", " ") in written.values()


# -- whole projects ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("namespaces", [(), ("blog", "ruleop-system")], ids=["cluster", "namespaces"])
@pytest.mark.parametrize("root", PROJECTS, ids=lambda root: root.name)
def test_check_finds_nothing_missing_in_the_generated_roles(root: Path, namespaces: tuple[str, ...]):
    project = load_with_sources(root, environ={})
    choices = Choices(namespaces=namespaces, metrics_auth=True)
    objects = role_objects(operator_roles(project, choices), choices)
    roles = Roles(Grants.of("roles", objects), choices, choices.namespace)
    findings = Findings(project.files)
    check_permissions([Sources(each, project) for each in project.watches], roles, findings)
    assert [*map(str, findings.sorted())] == []


@pytest.mark.parametrize("root", PROJECTS, ids=lambda root: root.name)
def test_check_misses_each_verb_of_each_rule(root: Path):
    """Of the roles of the cluster: what is granted twice there is too much."""
    project = load_with_sources(root, environ={})
    choices = Choices()
    roles = operator_roles(project, choices)
    for number, permission in enumerate(roles.cluster):
        for verb in permission.verbs:
            fewer = replace(permission, verbs=tuple(each for each in permission.verbs if each != verb))
            others = (*roles.cluster[:number], fewer, *roles.cluster[number + 1 :])
            objects = role_objects(replace(roles, cluster=others), choices)
            compared = Roles(Grants.of("roles", objects), choices, choices.namespace)
            findings = Findings(project.files)
            check_permissions([Sources(each, project) for each in project.watches], compared, findings)
            assert findings.sorted(), (permission.title, verb)


@pytest.mark.parametrize("root", PROJECTS, ids=lambda root: root.name)
def test_no_role_has_a_wildcard_and_every_rule_a_reason(root: Path):
    roles = operator_roles(load_with_sources(root, environ={}), Choices())
    every = [*roles.cluster, *roles.operator, *(each for found in roles.elsewhere.values() for each in found)]
    assert not any("*" in str(rule_of(each)) for each in every)
    assert all(each.reason for each in every)
    assert all(each.everywhere for each in every if each.scope is PermissionScope.CLUSTER and each.site is not None)


# -- roles for people --------------------------------------------------------------------------------------------------


def test_people_get_roles_that_are_part_of_those_of_kubernetes():
    project = loaded(PLAIN).project
    view, edit, admin = user_roles(project, Choices(name="shop"))
    assert [each["metadata"]["name"] for each in (view, edit, admin)] == ["shop-view", "shop-edit", "shop-admin"]
    assert edit["metadata"]["labels"] == {f"{RBAC}/aggregate-to-edit": "true"}
    reading = ["get", "list", "watch"]
    assert [(each["resources"], each["verbs"]) for each in view["rules"]] == [
        (["apps"], reading),
        (["apps/status"], ["get"]),
    ]
    writing = [*reading, "create", "update", "patch", "delete", "deletecollection"]
    assert [(each["resources"], each["verbs"]) for each in edit["rules"]] == [
        (["apps"], writing),
        (["apps/status"], ["get"]),
    ]
    assert admin["rules"] == edit["rules"]


def test_people_who_may_edit_may_scale_and_nobody_writes_the_status():
    files = {
        "watches.yaml": watch(PLAIN),
        "templates/a.yaml": CONFIG_MAP,
        "crds/apps.yaml": definition().replace(
            "{status: {}}", "{status: {}, scale: {specReplicasPath: .spec.n, statusReplicasPath: .status.n}}"
        ),
    }
    project = build_with_sources(files, root="/project", environ={}).project
    view, edit, _ = user_roles(project, Choices())
    assert view["rules"][-1] == {"apiGroups": ["example.com"], "resources": ["apps/scale"], "verbs": ["get"]}
    assert edit["rules"][-1]["verbs"] == ["get", "update", "patch"]


def test_a_cluster_scoped_kind_is_marked_in_the_roles_of_people():
    (view, *_) = user_roles(loaded(PLAIN, scope="Cluster").project, Choices())
    assert view["rules"][0].comment.startswith("App is cluster-scoped: only a ClusterRoleBinding gives access to it")


def test_owners_in_between_need_to_be_followed_too():
    body = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\n"
    roles = generated(f"{PLAIN}\nobserve: {{pods: {{version: v1, kind: Pod, ownedBy: a}}}}", body)
    found = granted(roles.cluster)
    assert (found["jobs.batch"], found["pods"], found["cronjobs.batch"]) == ("list watch", "list watch", WRITTEN)


def test_a_patch_of_all_objects_that_match_needs_the_kind_and_no_creation_or_deletion():
    roles = generated(
        "reach: cluster\n"
        "children: {a: {patch: {version: v1, kind: Node, selector: {pool: x}, fields: {metadata: {labels: {a: b}}}}}}"
    )
    assert granted(roles.cluster)["nodes"] == "get list watch patch"


# -- `writeAs` and `expire` --------------------------------------------------------------------------------------------

IMPERSONATE = "serviceaccounts"


def test_an_account_writes_children_so_the_operator_may_only_read_them_and_impersonate_it():
    found = generated(f"writeAs: '{{{{ metadata.namespace }}}}/deployer'\n{PLAIN}")
    assert granted(found.cluster)["configmaps"] == "get list watch"
    assert granted(found.cluster)[f"{IMPERSONATE} [deployer]"] == "impersonate"
    assert not found.warnings
    narrow = generated(
        f"writeAs: '{{{{ metadata.namespace }}}}/deployer'\n{PLAIN}", choices=Choices(namespaces=("shop",))
    )
    assert granted(narrow.watched)[f"{IMPERSONATE} [deployer]"] == "impersonate"
    assert IMPERSONATE not in " ".join(granted(narrow.cluster))


def test_a_literal_account_is_impersonated_in_its_namespace_only():
    found = generated(f"writeAs: platform/deployer\n{PLAIN}")
    assert granted(found.elsewhere["platform"]) == {f"{IMPERSONATE} [deployer]": "impersonate"}
    assert IMPERSONATE not in " ".join(granted(found.cluster))
    in_cluster = operator_roles(loaded(f"writeAs: platform/deployer\n{PLAIN}"), Choices(), elsewhere=False)
    assert granted(in_cluster.cluster)[f"{IMPERSONATE} [deployer]"] == "impersonate"


def test_an_account_that_the_custom_resource_chooses_is_warned_of():
    body = f"writeAs: '{{{{ metadata.namespace }}}}/{{{{ spec.account }}}}'\n{PLAIN}"
    found = generated(body)
    assert granted(found.cluster)[IMPERSONATE] == "impersonate"
    (warning,) = found.warnings
    assert "the operator may write as every ServiceAccount" in warning.message
    (checked,) = [each for each in loaded(body).project.findings if each.code == "sensitive-field"]
    assert "the custom resource chooses by whose permissions its children are written" in checked.message


def test_patches_and_bindings_of_an_account_need_no_permission_of_the_operator():
    binding = (
        f"apiVersion: {RBAC}/v1\nkind: RoleBinding\nmetadata: {{name: b}}\n"
        f"roleRef: {{apiGroup: {RBAC}, kind: ClusterRole, name: edit}}\n"
    )
    patch = "{patch: {version: v1, kind: ServiceAccount, name: default, fields: {metadata: {labels: {a: b}}}}}"
    found = generated(f"writeAs: platform/deployer\nchildren: {{a: {{template: a.yaml}}, p: {patch}}}", binding)
    verbs = granted(found.cluster)
    assert verbs[f"rolebindings.{RBAC}"] == "get list watch"
    assert f"clusterroles.{RBAC}" not in " ".join(verbs)
    assert verbs["serviceaccounts [default]"] == "get list watch"


def test_expire_needs_to_delete_custom_resources_and_nothing_else_does():
    crd = "apps.example.com"
    assert "delete" not in granted(generated(PLAIN).cluster)[crd].split()
    assert "delete" in granted(generated(f"expire: {{after: 2h}}\n{PLAIN}").cluster)[crd].split()
    body = f"expire: {{after: 2h}}\n{PLAIN}"
    findings = Findings({})
    sources = [Sources(each, loaded(body)) for each in loaded(body).watches]
    roles = role_objects(generated(PLAIN), Choices())
    check_permissions(sources, Roles(Grants.of("rbac.yaml", roles), Choices(leader_elect=False), "default"), findings)
    (missing,) = [each for each in findings.sorted() if "delete" in each.message]
    assert missing.message.startswith(f"rbac.yaml does not grant delete on {crd}")
