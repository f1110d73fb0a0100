"""A missing permission has one reason and one message, for a forbidden request and for a kind that cannot be listed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ruleop.kubernetes.kinds import GroupKind, Kind
from ruleop.planning import GRANT, Failed, Failure, Served
from ruleop.planning.model.observed import KindInfo
from ruleop.planning.model.rule_permissions import verbs
from tests.planning.harness import Harness, config, key
from tests.planning.settled import settled

A = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '{{ spec.v }}'}\n"
D = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: 1}\n"
ONE = "children: {a: {template: a.yaml}}\n"
ALL = "get, list, watch, create, patch, delete"


def denied(verb: str) -> Failed:
    """A failure as the executor reports it for a forbidden request."""
    return Failed(Failure.FORBIDDEN, f'{verb} configmaps: User "x" cannot {verb} resource "configmaps"', verb=verb)


def narrowed(harness: Harness, state: Served) -> Harness:
    """An operator that watches only this namespace."""
    harness.infos["ConfigMap"] = replace(harness.info(Kind("", "v1", "ConfigMap")), state=state, places={"shop": state})
    return harness


@pytest.mark.parametrize("verb", ["create", "patch", "delete", "get"])
def test_a_missing_permission_is_forbidden_and_lists_all_needed_verbs(verb: str):
    harness = Harness.of(ONE, {"v": "1"}, a=A)
    harness.refuse[key("a")] = denied(verb)
    harness.step()
    message = f"a: templates/a.yaml:1: cannot {verb} configmaps in namespace shop: needs {ALL}"
    assert harness.ready() == ("False", "Forbidden", message)
    assert harness.condition("Stalled")["status"] == "True"


APP_V1 = Kind("example.com", "v1", "App")
OTHER = KindInfo(Kind("", "v1", "Other"))  # the kind of a child is served in one way
BINDING = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
"""
ROLE = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: b}\nrules: []\n"
RBAC = "rbac.authorization.k8s.io"
GRANTED = {
    "RoleBinding": (BINDING, f"`bind` on clusterroles.{RBAC} (resourceNames: [view])"),
    "Role": (ROLE, f"`escalate` on roles.{RBAC} (resourceNames: [b])"),
}


@pytest.mark.parametrize("kind", GRANTED)
def test_a_role_or_binding_that_grants_too_much_is_reported_with_the_permission(kind: str):
    body, remedy = GRANTED[kind]
    harness = Harness.of("children: {b: {template: b.yaml}}", b=body)
    harness.refuse[key("b", kind, group=RBAC)] = Failed(Failure.FORBIDDEN, "two kilobytes", verb=GRANT)
    harness.step()
    message = f"cannot write {kind}/b: grant the operator {remedy}, or all permissions of that role"
    assert harness.ready() == ("False", "Forbidden", f"b: templates/b.yaml:1: {message}")


@pytest.mark.parametrize("known", [True, False])
def test_a_forbidden_deletion_is_reported_and_retried(known: bool):
    harness = settled(
        "children: {a: {template: a.yaml, when: spec.on}, d: {template: d.yaml}}", {"v": "1", "on": True}, a=A, d=D
    )
    harness.refuse[key("a")] = denied("delete")
    if known:
        harness.edit({"v": "1", "on": False})
    else:
        harness.project = Harness.of("children: {d: {template: d.yaml}}", d=D).project
    needed = ALL if known else "get, list, watch, patch, delete"
    for _ in range(2):
        harness.step()
        message = f"ConfigMap/shop/a could not be deleted: cannot delete configmaps in namespace shop: needs {needed}"
        assert harness.ready() == ("False", "Forbidden", f"a: {message}")
    harness.refuse[key("a")] = Failed(Failure.OTHER, "the server is busy", redacted="the server is busy")
    harness.step()
    assert harness.ready() == ("False", "Waiting", "a waits for ConfigMap/shop/a to be deleted: the server is busy")
    harness.refuse.clear()
    harness.settle()
    assert harness.names() == ["Deployment/d"]
    assert harness.ready()[0] == "True"


def test_a_missing_permission_has_the_same_reason_before_and_after_a_restart():
    harness = Harness.of(ONE, {"v": "1"}, a=A)
    harness.refuse[key("a")] = denied("create")
    harness.step()
    running = harness.ready()
    restarted = narrowed(Harness.of(ONE, {"v": "1"}, a=A), Served.FORBIDDEN)
    restarted.settle()
    assert restarted.ready() == (*running[:2], running[2].replace("cannot create", "cannot list"))
    assert {each.state for each in restarted.plan().children} == {
        each.state for each in harness.plan_status({key("a"): denied("create")}).children
    }


def test_the_message_of_an_admission_policy_is_shown():
    harness = Harness.of(ONE, {"v": "1"}, a=A)
    harness.refuse[key("a")] = Failed(Failure.FORBIDDEN, "create configmaps: exceeded quota: shop")
    harness.step()
    assert harness.ready()[1:] == ("Forbidden", "a: templates/a.yaml:1: create configmaps: exceeded quota: shop")


def test_a_child_needs_write_and_observe_needs_read_permissions():
    body = """
    children: {a: {template: a.yaml}, d: {template: d.yaml}}
    observe: {d2: {group: apps, version: v1, kind: Deployment, name: x}, pods: {version: v1, kind: Pod, selector: {a: b}}}
    """
    rules = Harness.of(body, a=A, d=D).project.rules
    assert verbs(rules, GroupKind("", "ConfigMap"), OTHER) == {"get", "list", "watch", "create", "patch", "delete"}
    assert verbs(rules, GroupKind("apps", "Deployment"), OTHER) == {"get", "list", "watch", "create", "patch", "delete"}
    assert verbs(rules, GroupKind("", "Pod"), OTHER) == {"list", "watch"}


APP, CONFIG_MAP = GroupKind("example.com", "App"), GroupKind("", "ConfigMap")


@pytest.mark.parametrize(
    ("body", "subresource", "needed"),
    [
        (ONE, True, {"get", "list", "watch"}),
        (ONE, False, {"get", "list", "watch", "patch"}),
        (f"manageStatus: false\n{ONE}", True, {"list", "watch"}),
        (f"reach: cluster\n{ONE}", True, {"get", "list", "watch", "patch"}),
        ("children: {a: {template: a.yaml, deletion: orphan}}", True, {"get", "list", "watch", "patch"}),
        ("finalize: {a: {template: a.yaml}}", True, {"get", "list", "watch", "patch"}),
    ],
    ids=["plain", "no status subresource", "no status", "reach", "orphan", "finalize"],
)
def test_a_cr_is_patched_only_for_the_finalizer_or_a_status_without_subresource(body, subresource, needed):
    rules = Harness.of(body, a=A).project.rules
    assert verbs(rules, APP, KindInfo(APP_V1, status_subresource=subresource)) == needed


def test_a_cluster_scoped_cr_needs_no_finalizer_for_children_elsewhere():
    rules = Harness.of(f"reach: cluster\n{ONE}", a=A).project.rules
    assert verbs(rules, APP, KindInfo(APP_V1, namespaced=False)) == {"get", "list", "watch"}


@pytest.mark.parametrize(
    ("child", "missing"),
    [
        ("", set()),
        (", apply: {strategy: server-side}", set()),
        (", apply: {strategy: create-only}", set()),
        (", deletion: orphan", {"delete"}),
        (", deletion: orphan, apply: {onImmutable: recreate}", set()),
        (", deletion: orphan, apply: {onImmutable: fail}", {"delete"}),
        (", deletion: orphan, apply: {onImmutable: '{{ spec.how }}'}", set()),
        (", deletion: \"{{ 'orphan' if spec.keep else 'delete' }}\"", set()),
    ],
)
def test_a_child_needs_no_verb_that_its_strategy_and_deletion_never_use(child: str, missing: set[str]):
    rules = Harness.of(f"children: {{a: {{template: a.yaml{child}}}}}", a=A).project.rules
    every = {"get", "list", "watch", "create", "patch", "delete"}
    assert verbs(rules, CONFIG_MAP, OTHER) == every - missing


def test_messages_name_resources_with_group_and_namespaced_ones_with_a_namespace():
    harness = Harness.of("children: {d: {template: d.yaml}}", d=D)
    harness.served["Deployment"] = Served.FORBIDDEN
    assert harness.plan().problems[0].message == f"cannot list deployments.apps in all namespaces: needs {ALL}"
    harness = Harness.of(
        "reach: cluster\nchildren: {home: {template: n.yaml}}",
        n="apiVersion: v1\nkind: Namespace\nmetadata: {name: tools}\n",
    )
    harness.served["Namespace"] = Served.FORBIDDEN
    assert harness.plan().problems[0].message == f"cannot list namespaces: needs {ALL}"


@pytest.mark.parametrize(("place", "where"), [("", "all namespaces"), (", namespace: tools", "namespace tools")])
def test_a_missing_permission_of_an_observe_names_its_namespace(place: str, where: str):
    body = f"reach: cluster\n{ONE}observe: {{other: {{version: v1, kind: Secret, name: other{place}}}}}"
    harness = Harness.of(body, {"v": "1"}, a=A.replace("spec.v", "other.type"))
    harness.served["Secret"] = Served.FORBIDDEN
    (problem,) = harness.plan().problems
    assert (problem.child, problem.reason) == ("a", "Forbidden")
    assert problem.message == f"cannot list secrets in {where}: needs list, watch"


def test_items_with_the_same_missing_permission_are_reported_once():
    body = "children: {a: {template: a.yaml, forEach: range(3)}}\nobserve: {other: {version: v1, kind: Secret, name: other}}"
    harness = Harness.of(body, a=A.replace("name: a", "name: 'a{{ item }}'").replace("spec.v", "other.type"))
    harness.served["Secret"] = Served.FORBIDDEN
    (problem,) = harness.plan().problems
    assert (problem.reason, problem.message) == (
        "Forbidden",
        "cannot list secrets in all namespaces: needs list, watch",
    )


def test_a_child_whose_ready_when_is_forbidden_is_not_ready():
    body = "children: {a: {template: a.yaml, readyWhen: other.type == 'x'}}\nobserve: {other: {version: v1, kind: Secret, name: other}}"
    harness = Harness.of(body, {"v": "1"}, a=A)
    harness.served["Secret"] = Served.FORBIDDEN
    harness.settle()
    message = "cannot list secrets in all namespaces: needs list, watch"
    assert harness.plan().children[0].message == f"ConfigMap/a: readyWhen: {message}"
    assert harness.ready()[1] == "Forbidden"
    assert message in harness.ready()[2]


def test_a_validation_over_a_forbidden_kind_is_forbidden_and_changes_nothing():
    body = (
        ONE
        + "observe: {other: {version: v1, kind: Secret, name: other}}\nvalidate: [{rule: other.type == 'x', message: broken}]"
    )
    harness = Harness.of(body, {"v": "1"}, a=A)
    harness.served["Secret"] = Served.FORBIDDEN
    harness.settle()
    assert harness.objects == {}
    assert harness.ready() == (
        "False",
        "Forbidden",
        "spec: watches.yaml:6:21: cannot list secrets in all namespaces: needs list, watch",
    )


def test_children_that_do_not_need_a_forbidden_kind_are_created():
    body = "children: {a: {template: a.yaml}, d: {template: d.yaml}}"
    harness = Harness.of(body, {"v": "1"}, a=A, d=D)
    harness.served["Deployment"] = Served.FORBIDDEN
    harness.settle()
    assert harness.names() == ["ConfigMap/a"]
    harness.served.clear()
    harness.settle()
    assert harness.ready()[0] == "True"


# -- custom conditions -------------------------------------------------------------------------------------------------

SEEN = (
    ONE
    + """
observe: {other: {version: v1, kind: Secret, name: other}, pods: {version: v1, kind: Pod, selector: {a: b}}}
let: {has_other: "{{ other is defined }}"}
conditions: [{type: Seen, status: "%s"}]
"""
)


@pytest.mark.parametrize(
    "status",
    [
        "other is defined", "other is not defined", "other.type | default('') == 'x'", "has_other", "pods | default([]) | length == 0",
        "ready.a", "not ready.a", "live.a is defined", "a.data.v | default('') == '2'", "a is defined",
    ],
)  # fmt: skip
def test_a_condition_over_a_forbidden_kind_is_unknown_and_names_the_permission(status: str):
    harness = Harness.of(SEEN % status, {"v": "1"}, a=A)
    harness.served |= dict.fromkeys(("Secret", "Pod", "ConfigMap"), Served.FORBIDDEN)
    harness.settle()
    found = harness.condition("Seen")
    assert (found["status"], found["reason"]) == ("Unknown", "Forbidden")
    assert found["message"].startswith("cannot list ")
    harness.served.clear()
    harness.settle()
    assert harness.condition("Seen")["status"] in {"True", "False"}


@pytest.mark.parametrize("status", ["spec.v == '1'", "ready.a", "a.data.v == '1'"])
def test_a_condition_over_something_else_is_not_affected(status: str):
    harness = Harness.of(SEEN % status, {"v": "1"}, a=A)
    harness.served |= dict.fromkeys(("Secret", "Pod"), Served.FORBIDDEN)
    harness.settle()
    found = harness.condition("Seen")
    assert (found["status"], found["reason"]) == ("True", "Holds")


def test_a_condition_over_an_undesired_child_of_a_forbidden_kind_is_known():
    harness = Harness.of(
        ONE.replace("a.yaml", "a.yaml, when: spec.on") + "conditions: [{type: Seen, status: a is defined}]",
        {"v": "1", "on": False},
        a=A,
    )
    harness.served["ConfigMap"] = Served.FORBIDDEN
    harness.settle()
    assert (harness.condition("Seen")["status"], harness.condition("Seen")["reason"]) == ("False", "DoesNotHold")


def test_a_condition_of_an_invalid_cr_over_a_forbidden_kind_is_unknown():
    harness = Harness.of(SEEN % "ready.a" + "validate: [{rule: 'false', message: broken}]", {"v": "1"}, a=A)
    harness.served["ConfigMap"] = Served.FORBIDDEN
    harness.add(config("x"))
    harness.settle()
    assert harness.condition("Seen")["reason"] == "Forbidden"
