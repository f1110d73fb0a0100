"""Decoding of built-in objects. `tests/cluster/test_local_objects.py` compares it with the real API server."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.kubernetes.kinds import Kind
from ruleop.localcluster.objects.decoding import DecodingError, decode, strict_problem, undecodable, unknown_field
from ruleop.localcluster.objects.typed import NotTypedError, check_typed
from tests.localcluster.objects.kinds import TRACKING
from tests.tables import cases

JSON = Any
SHAPE, CONFIG_MAP = TRACKING["Deployment"].shape, TRACKING["ConfigMap"].shape
KIND = Kind("apps", "v1", "Deployment")


def container(**fields: JSON) -> JSON:
    return {"spec": {"template": {"spec": {"containers": [{"name": "a", **fields}]}}}}


def test_unknown_fields_are_dropped_and_listed() -> None:
    found = decode({"foo": 1, "metadata": {"boo": {}}, **container(bar=1, image="x")}, SHAPE)
    assert found.obj == {"metadata": {}, **container(image="x")}
    assert found.unknown == ("foo", "metadata.boo", "spec.template.spec.containers[0].bar")


def test_nulls_are_missing_fields_and_zero_values_in_maps() -> None:
    found = decode({"data": {"a": None, "b": "x"}, "immutable": None, "metadata": None}, CONFIG_MAP)
    assert found.obj == {"data": {"a": "", "b": "x"}}
    limits = decode(container(resources={"limits": {"cpu": None}}, args=[None]), SHAPE)
    assert limits.obj == container(resources={"limits": {"cpu": "0"}}, args=[""])


@pytest.mark.parametrize(
    ("obj", "messages"),
    cases("""
{spec: {replicas: 1.5}}
>> spec.replicas: expected an integer of 32 bits, got a number
{spec: []}
>> spec: expected an object, got a list
{spec: {template: {spec: {containers: [{name: a, ports: {}}]}}}}
>> spec.template.spec.containers[0].ports: expected a list, got an object
{spec: {template: {spec: {containers: [{name: a, resources: {limits: {cpu: x}}}]}}}}
>> spec.template.spec.containers[0].resources.limits.cpu: expected a quantity, got a string
{metadata: {creationTimestamp: x}}
>> metadata.creationTimestamp: expected a time such as 2006-01-02T15:04:05Z, got a string
{binaryData: {a: "%%"}}
>> binaryData.a: expected base64, got a string
{binaryData: {a: 1}}
>> binaryData.a: expected a string, got a number
{data: {a: 1}}
>> data.a: expected a string, got a number
{spec: {paused: 1}}
>> spec.paused: expected true or false, got a number
"""),
)
def test_a_wrong_type_is_reported_with_its_field(obj: JSON, messages: list[str]) -> None:
    with pytest.raises(DecodingError) as caught:
        decode(obj, CONFIG_MAP if {"data", "binaryData"} & obj.keys() else SHAPE)
    assert [str(caught.value)] == messages


@pytest.mark.parametrize(("code", "reason"), [(400, "BadRequest"), (422, "Invalid"), (500, "")])
def test_a_decoding_error_has_the_code_of_its_verb(code: int, reason: str) -> None:
    found = undecodable(KIND, strict_problem([unknown_field("spec.foo"), unknown_field("bar")]), code)
    assert (found.code, found.reason) == (code, reason)
    assert found.message == (
        'Deployment in version "v1" cannot be handled as a Deployment: '
        'strict decoding error: unknown field "spec.foo", unknown field "bar"'
    )


def test_all_errors_of_an_apply_configuration_are_reported() -> None:
    config = {"metadata": {"name": "q", "labels": {"a": 1}}, **container(foo=1, env=[{"name": "a"}, {"name": "a"}])}
    with pytest.raises(NotTypedError) as caught:
        check_typed(config, SHAPE)
    app = '.spec.template.spec.containers[name="a"]'
    assert str(caught.value) == (
        "errors:\n"
        "  .metadata.labels.a: expected string, got a number\n"
        f"  {app}.foo: field not declared in schema\n"
        f'  {app}.env: duplicate entries for key [name="a"]'
    )
    check_typed(container(image="x"), SHAPE)
