"""Objects that a custom resource gives as a whole: only the kinds of the rule, only its namespace, and no permissions
that its author does not have."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.planning import Create, Delete
from tests.planning.harness import Harness
from tests.planning.settled import edit_and_settle

KINDS = "v1/ConfigMap, v1/Secret, apps/v1/Deployment, batch/v1/CronJob"
RULE = (
    "reach: cluster\nchildren:\n  extras: {objects: 'spec.extra | default([])', kinds: ["
    + KINDS
    + "]%s}\nstatus: {extras: '{{ extras | length }}'}"
)


def obj(name: str, kind: str = "ConfigMap", version: str = "v1", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def harness(*extra: Any, more: str = "") -> Harness:
    return Harness.of(RULE % more, {"extra": list(extra)})


def problems(*extra: Any, more: str = "") -> list[str]:
    return [each.message for each in harness(*extra, more=more).plan().problems]


def test_objects_come_change_and_go_with_the_list():
    found = harness(obj("a", data={"x": "{{ spec.extra }}"}), obj("b", "Secret"))
    found.settle()
    assert found.names() == ["ConfigMap/a", "Secret/b"]
    assert next(iter(found.objects.values()))["data"] == {"x": "{{ spec.extra }}"}
    assert found.status["extras"] == 2
    assert found.plan().quiet
    edit_and_settle(found, {"extra": [obj("b", "Secret"), obj("c")]})
    assert found.names() == ["ConfigMap/c", "Secret/b"]
    edit_and_settle(found, {})
    assert found.names() == []


def test_a_mistake_in_one_object_is_reported_and_concerns_no_other():
    found = harness(obj("good"), obj("a", "Service"), obj("other", metadata={"namespace": "far"}), 7, obj("alike"))
    assert [each.key.name for each in found.plan().actions if isinstance(each, Create)] == ["good", "alike"]
    known = "apps/v1 Deployment, batch/v1 CronJob, v1 ConfigMap, v1 Secret"
    assert [each.message for each in found.plan().problems] == [
        f"item 1 of objects: it is a v1 Service, and `kinds` permits only: {known}",
        "item 2 of objects: the ConfigMap 'other': `objects` can only be in the namespace shop",
        "item 3 of objects: an item must be an object (a mapping with apiVersion, kind and metadata), not a list or text",
    ]


def test_two_objects_of_one_name_fail_and_nothing_of_the_child_is_deleted():
    found = harness(obj("a"), obj("b"))
    found.settle()
    found.edit({"extra": [obj("a"), obj("a")]})
    planned = found.plan()
    assert [each.message for each in planned.problems] == ["ConfigMap/shop/a is rendered twice, by this child"]
    assert not [each for each in planned.actions if isinstance(each, Delete)]


POD = {"template": {"spec": {"containers": []}}}


@pytest.mark.parametrize(
    "wrong",
    [
        obj("a", "Secret", type="kubernetes.io/service-account-token"),
        obj("a", "Deployment", "apps/v1", spec={"template": {"spec": {"serviceAccountName": "admin"}}}),
        obj("a", "Deployment", "apps/v1", spec={"template": {"spec": {"serviceAccount": "admin"}}}),
        obj(
            "a",
            "CronJob",
            "batch/v1",
            spec={"jobTemplate": {"spec": {"template": {"spec": {"serviceAccountName": "x"}}}}},
        ),
        obj("a", "Deployment", "apps/v1", spec={"auth": {"serviceAccountRef": {"name": "admin"}}}),
        obj("a", "Deployment", "apps/v1", spec={"vault": [{"ServiceAccounts": ["admin"]}]}),
        obj("a", "Deployment", "apps/v1", spec={"podServiceAccountName": "admin"}),
        obj("a", "Deployment", "apps/v1", subjects=[{"kind": "ServiceAccount", "name": "admin"}]),
    ],
    ids=["token", "account", "old name", "nested", "reference", "list", "another name", "subject"],
)
def test_an_object_that_uses_a_service_account_needs_the_permission_of_the_rule(wrong: dict[str, Any]):
    (message,) = problems(wrong)
    assert message.endswith("`allow: [extra-privileges]` in the child would permit that")
    assert problems(wrong, more=", allow: [extra-privileges]") == []


@pytest.mark.parametrize(
    "right",
    [
        obj("a", data={"serviceAccountName": "admin"}),
        obj("a", "Secret", stringData={"serviceAccount": "admin"}),
        obj("a", "Deployment", "apps/v1", spec={"template": {"spec": {"serviceAccountName": "default"}}}),
        obj("a", metadata={"namespace": "shop"}),
        obj("a", "Deployment", "apps/v1", spec={"automountServiceAccountToken": False, "serviceAccounts": []}),
    ],
    ids=["data", "secret", "default", "namespace", "none"],
)
def test_other_objects_do_not(right: dict[str, Any]):
    assert problems(right) == []


@pytest.mark.parametrize("value", ["text", 3, {"a": obj("a")}])
def test_the_list_has_to_be_a_list(value: Any):
    found = Harness.of(RULE % "", {"extra": value})
    assert [each.message for each in found.plan().problems] == ["objects needs a list"]


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.sampled_from(["v1", "apps/v1", "rbac.authorization.k8s.io/v1"]) | ANY,
        "kind": st.sampled_from(["ConfigMap", "Secret", "Role", "Namespace", "Deployment"]) | ANY,
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "name": st.sampled_from(["a", "b"]) | ANY,
                "namespace": st.sampled_from(["shop", "kube-system"]) | ANY,
                "ownerReferences": ANY,
                "finalizers": ANY,
                "labels": st.dictionaries(st.sampled_from(["a", "ruleop.dev/part-of"]), ANY),
                "annotations": st.dictionaries(st.sampled_from(["a", "ruleop.dev/owner"]), ANY),
            },
        )
        | ANY,
        "spec": ANY,
        "data": ANY,
    },
)


@pytest.mark.slow
@given(st.lists(FIELDS | ANY, max_size=4))
def test_objects_of_any_form_stay_in_the_namespace_and_the_kinds(extra: list[Any]):
    found = harness(*extra)
    planned = found.plan()
    for action in planned.actions:
        if isinstance(action, Create):
            assert action.key.namespace == "shop"
            assert action.key.kind in {"ConfigMap", "Secret", "Deployment", "CronJob"}
            assert "finalizers" not in action.object["metadata"]
            (reference,) = action.object["metadata"]["ownerReferences"]
            assert reference["uid"] == "cr-1"
    assert planned.actions or planned.problems or not [each for each in extra if each is not None]
