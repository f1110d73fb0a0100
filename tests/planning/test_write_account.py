"""`writeAs`: by whose permissions children are written. The custom resource's author may write any value into it."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.kubernetes.permissions import IMPERSONATE, ServiceAccount, literal_parts
from ruleop.language.rules import ProjectErrors
from ruleop.planning import GRANT, Delete, Failed, Failure, RemoveFinalizer
from ruleop.planning.model.marks import SKIP_FINALIZE
from tests.planning.harness import Harness, key, rule
from tests.planning.settled import settled
from tests.planning.test_permissions import BINDING, RBAC

A = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '{{ spec.v }}'}\n"
CHILD = "children: {a: {template: a.yaml}}\n"
OWN = "writeAs: '{{ metadata.namespace }}/deployer'\n"
CHOSEN = "writeAs: '{{ spec.account }}'\n"
FAR = f"reach: cluster\n{OWN}children: {{a: {{template: a.yaml, namespace: far}}}}\n"
DENIED = (
    "the ServiceAccount shop/deployer cannot {verb} configmaps in namespace {namespace}: grant it {verbs} by a Role"
)


def denied(verb: str) -> Failed:
    return Failed(Failure.FORBIDDEN, "no", verb=verb, account="shop/deployer")


def account(body: str, spec: dict[str, Any]) -> ServiceAccount | None:
    return Harness.of(body + CHILD, {"v": "1", **spec}, a=A).plan().account


def test_children_are_written_by_the_account_of_the_rule() -> None:
    assert account("", {}) is None
    assert account("writeAs: platform/deployer\n", {}) == ServiceAccount("platform", "deployer")
    own = account(OWN, {})
    assert own == ServiceAccount("shop", "deployer")
    assert own is not None
    assert own.user == "system:serviceaccount:shop:deployer"
    assert account(CHOSEN, {"account": "shop/ci.builder"}) == ServiceAccount("shop", "ci.builder")


@pytest.mark.parametrize(
    ("hostile", "message"),
    [
        ("kube-system/admin", "kube-system/admin is not permitted: the custom resource can name only"),
        ("shop/x\r\nImpersonate-Group: system:masters", "is not a ServiceAccount as NAMESPACE/NAME"),
        ("shop:x/y", "is not a ServiceAccount as NAMESPACE/NAME"),
        ("shop/kube-system:admin", "is not a ServiceAccount as NAMESPACE/NAME"),
        ("shop/../../admin", "is not a ServiceAccount as NAMESPACE/NAME"),
        ("shop/", "is not a ServiceAccount as NAMESPACE/NAME"),
        ("shop/deployer\n", "is not a ServiceAccount as NAMESPACE/NAME"),
        ("shop/Ädmin", "is not a ServiceAccount as NAMESPACE/NAME"),
        ("shop/" + "a" * 254, "is not a ServiceAccount as NAMESPACE/NAME"),
        ("a" * 64 + "/x", "is not a ServiceAccount as NAMESPACE/NAME"),
        ("", "is not a ServiceAccount as NAMESPACE/NAME"),
        (7, "is not a ServiceAccount as NAMESPACE/NAME"),
    ],
)
def test_a_custom_resource_cannot_become_anybody_else(hostile: Any, message: str) -> None:
    harness = Harness.of(CHOSEN + CHILD, {"v": "1", "account": hostile}, a=A)
    harness.settle()
    status, reason, found = harness.ready()
    assert (status, reason) == ("False", "RenderFailed")
    assert message in found
    assert found.startswith("writeAs: watches.yaml:4:")
    assert harness.names() == [], "nothing is written"


def test_existing_objects_stay_while_the_account_is_invalid() -> None:
    harness = settled(CHOSEN + CHILD, {"v": "1", "account": "shop/deployer"}, a=A)
    harness.edit({"v": "2", "account": "other/deployer"})
    harness.settle()
    assert harness.objects[key("a")]["data"] == {"v": "1"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("deployer", "must be a ServiceAccount as NAMESPACE/NAME"),
        ("'{{ status.account }}'", "`writeAs` cannot read `status`"),
        ("'{{ cr.status.account }}'", "`writeAs` cannot read `status`"),
        ("'{{ a.data.v }}'", "`writeAs` cannot read the child `a`"),
        ("'kube-system/{{ spec.account }}'", "cannot choose an account of the namespace kube-system"),
        ("\"{{ 'a/b' if after(metadata.creationTimestamp, '1h') else 'c/d' }}\"", "cannot depend on the time"),
    ],
)
def test_an_account_that_others_could_choose_is_refused(given: str, message: str) -> None:
    with pytest.raises(ProjectErrors, match=message):
        rule(f"writeAs: {given}\n{CHILD}", a=A)


def test_a_cluster_scoped_resource_has_no_account_of_its_own() -> None:
    head = "- group: example.com\n  version: v1\n  kind: Global\n"
    with pytest.raises(ProjectErrors, match="Global is cluster-scoped"):
        Harness.of(f"reach: cluster\n{CHOSEN}{CHILD}", {}, head=head, a=A)
    Harness.of(f"reach: cluster\nwriteAs: platform/deployer\n{CHILD}", {}, head=head, a=A)


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("shop/deployer", ("shop", "deployer")),
        ("{{ metadata.namespace }}/deployer", ("", "deployer")),
        ("{{ a / b }}/{{ c }}", ("", "")),
        ("shop/x-{{ c }}", ("shop", "")),
        ("{% if a %}x/y{% else %}z/y{% endif %}", ("", "")),
        ("{{ spec.account }}", ("", "")),
    ],
)
def test_the_literal_parts_are_known(source: str, parts: tuple[str, str]) -> None:
    assert literal_parts(source) == parts


def test_a_refusal_names_the_account_the_verb_and_what_to_grant() -> None:
    harness = Harness.of(OWN + CHILD, {"v": "1"}, a=A)
    harness.refuse[key("a")] = denied("create")
    harness.step()
    told = DENIED.format(verb="create", namespace="shop", verbs="create, patch, delete")
    assert harness.ready() == ("False", "Forbidden", f"a: templates/a.yaml:1: {told} and a RoleBinding")


def test_a_missing_permission_to_impersonate_is_the_operators() -> None:
    harness = Harness.of(OWN + CHILD, {"v": "1"}, a=A)
    harness.refuse[key("a")] = denied(IMPERSONATE)
    harness.step()
    assert harness.ready()[2] == (
        "a: templates/a.yaml:1: cannot write as the ServiceAccount shop/deployer: the operator needs impersonate on "
        "serviceaccounts (resourceNames: [deployer]) in namespace shop"
    )


def test_a_binding_that_grants_too_much_is_the_accounts() -> None:
    harness = Harness.of(OWN + "children: {b: {template: b.yaml}}", b=BINDING)
    harness.refuse[key("b", "RoleBinding", group=RBAC)] = denied(GRANT)
    harness.step()
    assert "grant the ServiceAccount shop/deployer `bind` on clusterroles" in harness.ready()[2]


# -- deletion ----------------------------------------------------------------------------------------------------------


def deleted() -> Harness:
    """A CR that is being deleted, and whose account may delete nothing any more."""
    harness = settled(FAR, {"v": "1"}, a=A)
    harness.refuse[key("a", namespace="far")] = denied("delete")
    harness.end()
    harness.step()
    return harness


def test_a_deletion_that_the_account_may_not_make_is_reported_and_holds_the_resource() -> None:
    harness = deleted()
    told = DENIED.format(verb="delete", namespace="far", verbs="create, patch, delete")
    expected = (
        f"ConfigMap/far/a is to be gone: {told} and a RoleBinding; set the annotation {SKIP_FINALIZE} to give up on it"
    )
    assert harness.ready() == ("False", "Deleting", expected)
    assert [(each.reason, each.message) for each in harness.events if each.type == "Warning"] == [
        ("NotDeleted", expected)
    ]
    assert [type(each) for each in harness.plan().actions] == [Delete], "it is tried again"
    harness.refuse.clear()
    harness.settle()
    assert harness.resource is None
    assert harness.objects == {}


def test_an_orphan_that_the_account_may_not_release_is_reported_and_given_up_as_well() -> None:
    harness = settled(f"{OWN}children: {{a: {{template: a.yaml, deletion: orphan}}}}\n", {"v": "1"}, a=A)
    harness.refuse[key("a")] = denied("patch")
    harness.end()
    harness.step()
    assert harness.ready()[2].startswith("ConfigMap/shop/a is to be released: the ServiceAccount shop/deployer cannot")
    harness.patch_resource({"annotations": {SKIP_FINALIZE: "true"}})
    assert [type(each) for each in harness.plan().actions] == [RemoveFinalizer]


@pytest.mark.parametrize("how", ["annotation", "namespace"])
def test_such_a_deletion_is_given_up_by_the_annotation_and_with_the_namespace(how: str) -> None:
    harness = deleted()
    if how == "annotation":
        harness.patch_resource({"annotations": {SKIP_FINALIZE: "true"}})
    else:
        harness.namespace_terminating = True
    planned = harness.plan()
    assert [type(each) for each in planned.actions] == [RemoveFinalizer]
    (event,) = [each for each in planned.events if each.reason == "LeftBehind"]
    assert event.message.startswith("ConfigMap/far/a is left behind: the ServiceAccount shop/deployer cannot delete")


def test_the_operators_own_missing_permission_is_given_up_by_the_annotation_only() -> None:
    harness = deleted()
    failed = Failed(Failure.FORBIDDEN, "no", verb="delete")
    harness.refuse[key("a", namespace="far")] = failed
    harness.step()
    harness.namespace_terminating = True
    assert [type(each) for each in harness.plan().actions] == [Delete]
    harness.patch_resource({"annotations": {SKIP_FINALIZE: "true"}})
    assert [type(each) for each in harness.plan().actions] == [RemoveFinalizer]


def test_without_an_account_nothing_is_deleted_until_it_is_given_up() -> None:
    body = FAR.replace(OWN, CHOSEN)
    harness = settled(body, {"v": "1", "account": "shop/deployer"}, a=A)
    harness.edit({"v": "1", "account": "nobody"})
    harness.end()
    harness.settle()
    status, reason, message = harness.ready()
    assert (status, reason) == ("False", "Deleting")
    assert message.startswith("writeAs: ")
    assert harness.condition("Stalled")["status"] == "True"
    assert harness.names() == ["ConfigMap/a"]
    harness.patch_resource({"annotations": {SKIP_FINALIZE: "true"}})
    planned = harness.plan()
    assert [type(each) for each in planned.actions] == [RemoveFinalizer]
    assert [each.reason for each in planned.events] == ["LeftBehind"]


def test_a_change_of_the_account_holds_from_the_next_write() -> None:
    harness = settled(CHOSEN + CHILD, {"v": "1", "account": "shop/one"}, a=A)
    harness.edit({"v": "1", "account": "shop/two"})
    assert harness.plan().account == ServiceAccount("shop", "two")
    assert not harness.plan().actions
