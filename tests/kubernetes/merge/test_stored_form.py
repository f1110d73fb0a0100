"""Values that the server stores in another form, by the schema of the kind, are equal: nothing has to be learned, and a
restart writes nothing."""

from __future__ import annotations

import pytest

from ruleop.kubernetes.builtin.table import builtin_shape
from ruleop.kubernetes.crd import crd_shape
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.merge import Learned, create_fields, three_way

STATEFUL_SET = builtin_shape(Kind("apps", "v1", "StatefulSet"))
BINDING = builtin_shape(Kind("rbac.authorization.k8s.io", "v1", "RoleBinding"))
RULE = {
    "type": "object",
    "required": ["port"],
    "properties": {
        "port": {"type": "integer"},
        "protocol": {"type": "string", "default": "TCP"},
        "match": {"type": "object", "default": {}, "properties": {"any": {"type": "boolean", "default": True}}},
    },
}
CUSTOM = crd_shape(
    {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"rules": {"type": "array", "items": RULE}}}},
    }
)


def at_rest(wanted, live, shape) -> bool:
    """Whether there is nothing to do, without any memory of what the server answered; and nothing to be remembered
    either."""
    fields = create_fields(wanted, shape)
    found = [three_way(live, wanted, record, shape) for record in (fields, None)]
    quiet = found[0].object is live and found[0].fields == fields
    assert found[1].object is live or not quiet
    assert not quiet or not len(Learned.NOTHING.learn(wanted, live, shape))
    return quiet


def pod(**container):
    return {"spec": {"template": {"spec": {"containers": [{"name": "app", **container}]}}}}


def claims(*extra):
    one = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1024Mi"}}}}
    filled = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"resources": {"requests": {"storage": "1Gi"}}, "volumeMode": "Filesystem", **dict(extra)},
        "status": {"phase": "Pending"},
    }
    return {"spec": {"volumeClaimTemplates": [one]}}, {"spec": {"volumeClaimTemplates": [filled]}}


def test_defaults_in_a_claim_template_are_not_a_difference():
    assert at_rest(*claims(), STATEFUL_SET)


@pytest.mark.parametrize("extra", [("storageClassName", "fast"), ("volumeMode", "Block")], ids=["more", "another"])
def test_a_field_of_others_in_a_claim_template_is_a_difference(extra):
    wanted, live = claims(extra)
    assert three_way(live, wanted, create_fields(wanted, STATEFUL_SET), STATEFUL_SET).object["spec"] == wanted["spec"]


def test_the_defaulted_api_version_of_a_field_reference_is_not_a_difference():
    wanted, live = (
        {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x", **more}}}]}
        for more in ({}, {"apiVersion": "v1"})
    )
    assert at_rest(pod(**wanted), pod(**live), STATEFUL_SET)


def test_defaulted_api_groups_in_a_role_binding_are_not_a_difference():
    group = {"apiGroup": "rbac.authorization.k8s.io"}
    wanted = {"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u"}]}
    live = {"roleRef": {**wanted["roleRef"], **group}, "subjects": [{**wanted["subjects"][0], **group}]}
    assert at_rest(wanted, live, BINDING)


@pytest.mark.parametrize(("type_", "default"), [("boolean", False), ("integer", 0), ("string", "")])
def test_a_zero_value_default_of_a_required_field_is_not_a_difference(type_, default):
    item = {
        "type": "object",
        "required": ["name", "x"],
        "properties": {"name": {"type": "string"}, "x": {"type": type_, "default": default}},
    }
    keys = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "x"]}
    spec = {
        "type": "object",
        "properties": {"whole": {"type": "array", "items": item}, "keyed": {"type": "array", "items": item, **keys}},
    }
    shape = crd_shape({"type": "object", "properties": {"spec": spec}})
    wanted = {"spec": {"whole": [{"name": "a"}], "keyed": [{"name": "a"}]}}
    live = {"spec": {name: [{"name": "a", "x": default}] for name in ("whole", "keyed")}}
    assert at_rest(wanted, live, shape)


def test_schema_defaults_inside_an_atomic_list_are_not_a_difference():
    wanted = {"spec": {"rules": [{"port": 1}, {"port": 2, "protocol": "UDP"}]}}
    filled = {"protocol": "TCP", "match": {"any": True}}
    live = {"spec": {"rules": [{"port": 1, **filled}, {**filled, "port": 2, "protocol": "UDP"}]}}
    assert at_rest(wanted, live, CUSTOM)
    live["spec"]["rules"][0]["match"] = {"any": False}
    assert not at_rest(wanted, live, CUSTOM)


@pytest.mark.parametrize(
    "empty",
    [{"env": []}, {"args": []}, {"resources": {"limits": {}}}, {"workingDir": ""}, {"stdin": False}, {"ports": []}],
    ids=lambda empty: next(iter(empty)),
)
def test_empty_and_missing_are_equal_where_the_server_does_not_distinguish_them(empty):
    assert at_rest(pod(**empty), pod(**({"resources": {}} if "resources" in empty else {})), STATEFUL_SET)


def test_an_empty_value_of_an_environment_variable_equals_a_missing_one():
    assert at_rest(pod(env=[{"name": "A", "value": ""}]), pod(env=[{"name": "A"}]), STATEFUL_SET)


def test_where_empty_and_missing_differ_a_removed_empty_value_is_restored():
    """`privileged: false` differs from a missing field, and so does an empty map of a custom kind."""
    wanted = pod(securityContext={"privileged": False})
    live = pod(securityContext={})
    assert three_way(live, wanted, create_fields(wanted, STATEFUL_SET), STATEFUL_SET).object == wanted
    assert not at_rest({"spec": {"rules": []}}, {"spec": {}}, CUSTOM)


def test_an_empty_desired_value_that_others_filled_is_emptied_again():
    wanted, live = pod(workingDir="", args=[]), pod(workingDir="/x", args=["a"])
    assert three_way(live, wanted, create_fields(wanted, STATEFUL_SET), STATEFUL_SET).object == wanted


def test_a_default_that_others_changed_is_left_alone():
    """Only in values that are replaced as a whole an additional field counts."""
    assert at_rest(
        {"spec": {"serviceName": "s"}}, {"spec": {"serviceName": "s", "podManagementPolicy": "Parallel"}}, STATEFUL_SET
    )


def test_an_omitted_value_that_is_no_longer_desired_leaves_the_record():
    wanted = pod(workingDir="", image="x")
    live = pod(image="x")
    fields = create_fields(wanted, STATEFUL_SET)
    merged = three_way(live, pod(image="x"), fields, STATEFUL_SET)
    assert merged.object is live
    assert merged.fields == create_fields(pod(image="x"), STATEFUL_SET)
