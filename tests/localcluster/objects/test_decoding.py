"""Decoding of built-in objects. `tests/cluster/test_local_objects.py` compares it with the real API server."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.kubernetes.kinds import Kind
from ruleop.localcluster.objects.config_checks import check_config
from ruleop.localcluster.objects.decoding import DecodingError, decode, in_body, in_patch, strict_problem, unknown_field
from ruleop.localcluster.status_errors import Rejected
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
>> json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32
{spec: []}
>> json: cannot unmarshal array into Go struct field Deployment.spec of type v1.DeploymentSpec
{spec: {template: {spec: {containers: [{name: a, ports: {}}]}}}}
>> json: cannot unmarshal object into Go struct field Container.spec.template.spec.containers.ports of type []v1.ContainerPort
{spec: {template: {spec: {containers: [{name: a, resources: {limits: {cpu: x}}}]}}}}
>> quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
{metadata: {creationTimestamp: x}}
>> parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"
{binaryData: {a: "%%"}}
>> illegal base64 data at input byte 0
{binaryData: {a: 1}}
>> json: cannot unmarshal number into Go struct field ConfigMap.binaryData of type []uint8
{data: {a: 1}}
>> json: cannot unmarshal number into Go struct field ConfigMap.data of type string
"""),
)
def test_wrong_types_are_described_as_by_the_server(obj: JSON, messages: list[str]) -> None:
    with pytest.raises(DecodingError) as caught:
        decode(obj, CONFIG_MAP if {"data", "binaryData"} & obj.keys() else SHAPE)
    assert [str(caught.value)] == messages


def test_decoding_errors_of_bodies_and_patches_have_the_form_of_the_server() -> None:
    problem = strict_problem([unknown_field("spec.foo"), unknown_field("bar")])
    body = in_body(KIND, problem)
    assert (body.code, body.reason) == (400, "BadRequest")
    assert body.message == (
        'Deployment in version "v1" cannot be handled as a Deployment: '
        'strict decoding error: unknown field "spec.foo", unknown field "bar"'
    )
    patch = in_patch('{"a":1}', 'strict decoding error: unknown field "a"')
    assert patch.message == (
        ' "" is invalid: patch: Invalid value: "{\\"a\\":1}": strict decoding error: unknown field "a"'
    )
    assert patch.details["causes"][0]["field"] == "patch"


def test_all_errors_of_an_apply_configuration_are_reported() -> None:
    config = {"metadata": {"name": "q", "labels": {"a": 1}}, **container(foo=1, env=[{"name": "a"}, {"name": "a"}])}
    with pytest.raises(Rejected) as caught:
        check_config(config, SHAPE, KIND)
    app = '.spec.template.spec.containers[name="a"]'
    assert caught.value.message == (
        "failed to create typed patch object (/q; apps/v1, Kind=Deployment): errors:\n"
        "  .metadata.labels.a: expected string, got &value.valueUnstructured{Value:1}\n"
        f"  {app}.foo: field not declared in schema\n"
        f'  {app}.env: duplicate entries for key [name="a"]'
    )
    check_config(container(image="x"), SHAPE, KIND)
