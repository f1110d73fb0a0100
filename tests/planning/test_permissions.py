"""A missing permission is one reason and one sentence, whether a request was refused or the kind could not be listed at the start."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ruleop.kinds import GroupKind, Kind
from ruleop.planning import Failed, Failure, Served
from ruleop.planning.permissions import verbs
from tests.planning.world import World, config, key

A = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '{{ spec.v }}'}\n"
D = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: 1}\n"
ONE = "children: {a: {template: a.yaml}}\n"
ALL = "get, list, watch, create, patch, delete"


def denied(verb: str) -> Failed:
    """As the executor reports what the API server's authorizer refuses."""
    return Failed(Failure.FORBIDDEN, f'{verb} configmaps: User "x" cannot {verb} resource "configmaps"', verb=verb)


def narrowed(world: World, state: Served) -> World:
    """An operator that watches this namespace alone."""
    world.infos["ConfigMap"] = replace(world.info(Kind("", "v1", "ConfigMap")), state=state, places={"shop": state})
    return world


@pytest.mark.parametrize("verb", ["create", "patch", "delete", "get"])
def test_a_missing_permission_is_forbidden_and_lists_all_needed_verbs(verb: str):
    world = World.of(ONE, {"v": "1"}, a=A)
    world.refuse[key("a")] = denied(verb)
    world.step()
    message = f"a: templates/a.yaml:1: cannot {verb} configmaps in namespace shop: needs {ALL}"
    assert world.ready() == ("False", "Forbidden", message)
    assert world.condition("Stalled")["status"] == "True"


@pytest.mark.parametrize("known", [True, False])
def test_a_forbidden_deletion_is_reported_and_retried(known: bool):
    world = World.of(
        "children: {a: {template: a.yaml, when: spec.on}, d: {template: d.yaml}}", {"v": "1", "on": True}, a=A, d=D
    )
    world.settle()
    world.refuse[key("a")] = denied("delete")
    if known:
        world.edit({"v": "1", "on": False})
    else:
        world.project = World.of("children: {d: {template: d.yaml}}", d=D).project
    needed = ALL if known else "get, list, watch, patch, delete"
    for _ in range(2):
        world.step()
        message = f"ConfigMap/shop/a could not be deleted: cannot delete configmaps in namespace shop: needs {needed}"
        assert world.ready() == ("False", "Forbidden", f"a: {message}")
    world.refuse[key("a")] = Failed(Failure.OTHER, "the server is busy", redacted="the server is busy")
    world.step()
    assert world.ready() == ("False", "Waiting", "a waits for ConfigMap/shop/a to be deleted: the server is busy")
    world.refuse.clear()
    world.settle()
    assert world.names() == ["Deployment/d"]
    assert world.ready()[0] == "True"


def test_the_reason_is_the_same_before_and_after_a_restart():
    world = World.of(ONE, {"v": "1"}, a=A)
    world.refuse[key("a")] = denied("create")
    world.step()
    running = world.ready()
    restarted = narrowed(World.of(ONE, {"v": "1"}, a=A), Served.FORBIDDEN)
    restarted.settle()
    assert restarted.ready() == (*running[:2], running[2].replace("cannot create", "cannot list"))
    assert {each.state for each in restarted.plan().children} == {
        each.state for each in world.plan_status({key("a"): denied("create")}).children
    }


def test_the_message_of_an_admission_policy_is_shown():
    world = World.of(ONE, {"v": "1"}, a=A)
    world.refuse[key("a")] = Failed(Failure.FORBIDDEN, "create configmaps: exceeded quota: shop")
    world.step()
    assert world.ready()[1:] == ("Forbidden", "a: templates/a.yaml:1: create configmaps: exceeded quota: shop")


def test_replacing_needs_update_and_observing_needs_to_read():
    body = """
    children: {a: {template: a.yaml, apply: {strategy: replace}}, d: {template: d.yaml}}
    observe: {d2: {group: apps, version: v1, kind: Deployment, name: x}, pods: {version: v1, kind: Pod, selector: {a: b}}}
    """
    rules = World.of(body, a=A, d=D).project.rules
    assert verbs(rules, GroupKind("", "ConfigMap")) == {"get", "list", "watch", "create", "update", "patch", "delete"}
    assert verbs(rules, GroupKind("apps", "Deployment")) == {"get", "list", "watch", "create", "patch", "delete"}
    assert verbs(rules, GroupKind("", "Pod")) == {"get", "list", "watch"}
    assert verbs(rules, GroupKind("example.com", "App")) == {"get", "list", "watch", "patch"}


def test_resources_are_named_with_their_group_and_cluster_scoped_ones_without_a_namespace():
    world = World.of("children: {d: {template: d.yaml}}", d=D)
    world.served["Deployment"] = Served.FORBIDDEN
    assert world.plan().problems[0].message == f"cannot list deployments.apps in all namespaces: needs {ALL}"
    world = World.of(
        "reach: cluster\nchildren: {home: {template: n.yaml}}",
        n="apiVersion: v1\nkind: Namespace\nmetadata: {name: tools}\n",
    )
    world.served["Namespace"] = Served.FORBIDDEN
    assert world.plan().problems[0].message == f"cannot list namespaces: needs {ALL}"


@pytest.mark.parametrize(("place", "where"), [("", "all namespaces"), (", namespace: tools", "namespace tools")])
def test_a_missing_permission_of_an_observe_names_its_namespace(place: str, where: str):
    body = f"reach: cluster\n{ONE}observe: {{other: {{version: v1, kind: Secret, name: other{place}}}}}"
    world = World.of(body, {"v": "1"}, a=A.replace("spec.v", "other.type"))
    world.served["Secret"] = Served.FORBIDDEN
    (problem,) = world.plan().problems
    assert (problem.child, problem.reason) == ("a", "Forbidden")
    assert problem.message == f"cannot list secrets in {where}: needs get, list, watch"


def test_items_with_the_same_missing_permission_are_reported_once():
    body = "children: {a: {template: a.yaml, forEach: range(3)}}\nobserve: {other: {version: v1, kind: Secret, name: other}}"
    world = World.of(body, a=A.replace("name: a", "name: 'a{{ item }}'").replace("spec.v", "other.type"))
    world.served["Secret"] = Served.FORBIDDEN
    (problem,) = world.plan().problems
    assert (problem.reason, problem.message) == (
        "Forbidden",
        "cannot list secrets in all namespaces: needs get, list, watch",
    )


def test_a_child_whose_ready_when_is_forbidden_is_not_ready():
    body = "children: {a: {template: a.yaml, readyWhen: other.type == 'x'}}\nobserve: {other: {version: v1, kind: Secret, name: other}}"
    world = World.of(body, {"v": "1"}, a=A)
    world.served["Secret"] = Served.FORBIDDEN
    world.settle()
    message = "cannot list secrets in all namespaces: needs get, list, watch"
    assert world.plan().children[0].message == f"ConfigMap/a is not ready: {message}"
    assert world.ready()[1] == "Forbidden"
    assert message in world.ready()[2]


def test_a_validation_over_a_forbidden_kind_is_forbidden_and_changes_nothing():
    body = (
        ONE
        + "observe: {other: {version: v1, kind: Secret, name: other}}\nvalidate: [{rule: other.type == 'x', message: broken}]"
    )
    world = World.of(body, {"v": "1"}, a=A)
    world.served["Secret"] = Served.FORBIDDEN
    world.settle()
    assert world.objects == {}
    assert world.ready() == (
        "False",
        "Forbidden",
        "spec: watches.yaml:6:21: cannot list secrets in all namespaces: needs get, list, watch",
    )


def test_children_that_do_not_need_a_forbidden_kind_are_created():
    body = "children: {a: {template: a.yaml}, d: {template: d.yaml}}"
    world = World.of(body, {"v": "1"}, a=A, d=D)
    world.served["Deployment"] = Served.FORBIDDEN
    world.settle()
    assert world.names() == ["ConfigMap/a"]
    world.served.clear()
    world.settle()
    assert world.ready()[0] == "True"


# -- conditions of one's own ---------------------------------------------------------------------------------------------------------------

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
    world = World.of(SEEN % status, {"v": "1"}, a=A)
    world.served |= dict.fromkeys(("Secret", "Pod", "ConfigMap"), Served.FORBIDDEN)
    world.settle()
    found = world.condition("Seen")
    assert (found["status"], found["reason"]) == ("Unknown", "Forbidden")
    assert found["message"].startswith("cannot list ")
    world.served.clear()
    world.settle()
    assert world.condition("Seen")["status"] in {"True", "False"}


@pytest.mark.parametrize("status", ["spec.v == '1'", "ready.a", "a.data.v == '1'"])
def test_a_condition_over_something_else_is_not_affected(status: str):
    world = World.of(SEEN % status, {"v": "1"}, a=A)
    world.served |= dict.fromkeys(("Secret", "Pod"), Served.FORBIDDEN)
    world.settle()
    found = world.condition("Seen")
    assert (found["status"], found["reason"]) == ("True", "Holds")


def test_a_condition_over_an_undesired_child_of_a_forbidden_kind_is_known():
    world = World.of(
        ONE.replace("a.yaml", "a.yaml, when: spec.on") + "conditions: [{type: Seen, status: a is defined}]",
        {"v": "1", "on": False},
        a=A,
    )
    world.served["ConfigMap"] = Served.FORBIDDEN
    world.settle()
    assert (world.condition("Seen")["status"], world.condition("Seen")["reason"]) == ("False", "DoesNotHold")


def test_a_condition_of_an_invalid_cr_over_a_forbidden_kind_is_unknown():
    world = World.of(SEEN % "ready.a" + "validate: [{rule: 'false', message: broken}]", {"v": "1"}, a=A)
    world.served["ConfigMap"] = Served.FORBIDDEN
    world.add(config("x"))
    world.settle()
    assert world.condition("Seen")["reason"] == "Forbidden"
