"""The inferred schema accepts its samples, keeps every field of them, and is one that the API server accepts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.kinds import Kind
from ruleop.scaffold.definition import definition
from ruleop.scaffold.inference import INT_OR_STRING, OPEN, fields, infer
from ruleop.schema.crd_checks import check_crd
from ruleop.schema.structural import default, prune
from ruleop.schema.validation import validate

KIND = Kind("shop.example.com", "v1", "Shop")

NAMES = st.sampled_from(
    ["name", "image", "replicas", "port", "labels", "resources", "limits", "cpu", "env", "a.b/c", "x", "hosts", ""]
)
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(-1e9, 1e9) | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=20
)
SPECS = st.dictionaries(NAMES, VALUES, max_size=6)


def crd(samples: list[dict[str, Any]]) -> dict[str, Any]:
    schema = fields([{"spec": sample} for sample in samples])
    return definition(
        KIND,
        schema["properties"],
        required=schema.get("required", []),
        status={"replicas": {"type": "integer"}},
        longest=40,
    )


@given(st.lists(SPECS, min_size=1, max_size=3))
def test_a_definition_from_random_samples_accepts_each_of_them(samples):
    document = crd(samples)
    assert check_crd(document) == []
    schema = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for sample in samples:
        cr = {"apiVersion": "shop.example.com/v1", "kind": "Shop", "metadata": {"name": "shop"}, "spec": sample}
        stored = default(prune(cr, schema), schema)
        assert validate(stored, schema) == []
        assert prune(cr, schema) == cr
        if len(samples) == 1:
            assert stored == cr


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ("nginx", {"type": "string"}),
        (2, {"type": "integer"}),
        (0.5, {"type": "number"}),
        (True, {"type": "boolean"}),
        (2**63, {"type": "number"}),
        (None, {**OPEN, "nullable": True}),
        ({}, {"type": "object", **OPEN}),
        ([], {"type": "array", "items": OPEN}),
        (["a", "b"], {"type": "array", "items": {"type": "string"}}),
        ([1, "b"], {"type": "array", "items": INT_OR_STRING}),
        ([1, 0.5], {"type": "array", "items": {"type": "number"}}),
        ([1, {}], {"type": "array", "items": OPEN}),
        ({"example.com/a": "b"}, {"type": "object", "additionalProperties": {"type": "string"}}),
    ],
    ids=str,
)
def test_a_value_has_the_schema_of_its_type(value, schema):
    assert infer([value]) == schema


def test_numbers_and_booleans_are_defaults_and_text_is_required():
    assert infer([{"image": "nginx", "size": 2, "debug": False}]) == {
        "type": "object",
        "required": ["image"],
        "properties": {
            "image": {"type": "string"},
            "size": {"type": "integer", "default": 2},
            "debug": {"type": "boolean", "default": False},
        },
    }


def test_a_mapping_whose_fields_all_have_defaults_is_empty_by_default():
    schema = infer([{"php": {"size": 2}, "db": {"name": "x"}, "hosts": ["a"]}])
    assert schema["required"] == ["db"]
    assert schema["properties"]["php"]["default"] == {}
    assert schema["properties"]["hosts"]["default"] == []


def test_fields_of_list_items_are_required_where_all_items_have_them_and_have_no_defaults():
    schema = infer([[{"name": "a", "port": 80}, {"name": "b", "port": 81, "debug": True}]])
    assert schema["items"]["required"] == ["name", "port"]
    assert schema["items"]["properties"]["debug"] == {"type": "boolean"}


def test_a_list_of_mappings_with_unique_names_is_merged_by_name():
    schema = infer([[{"name": "a"}, {"name": "b"}]])
    assert schema["x-kubernetes-list-map-keys"] == ["name"]
    assert "x-kubernetes-list-type" not in infer([[{"name": "a"}, {"name": "a"}]])


def test_labels_are_a_map_although_their_keys_could_be_fields():
    assert infer([{"labels": {"team": "red"}}])["properties"]["labels"] == {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "default": {},
    }


def test_resources_are_maps_of_amounts():
    properties = infer([{"resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}])["properties"]["resources"][
        "properties"
    ]
    amounts = {"type": "object", "additionalProperties": INT_OR_STRING}
    assert properties == {"limits": amounts, "requests": amounts}


def test_fields_that_the_api_takes_as_number_and_as_text_are_both():
    schema = infer([{"targetPort": 80, "storage": "1Gi"}])
    assert schema["properties"]["targetPort"] == INT_OR_STRING
    assert schema["required"] == ["targetPort", "storage"]


def test_replicas_and_ports_have_their_range():
    schema = infer([{"replicas": 2, "port": 80}])
    assert schema["properties"]["replicas"] == {"type": "integer", "minimum": 0, "default": 2}
    assert schema["properties"]["port"] == {"type": "integer", "minimum": 1, "maximum": 65535, "default": 80}


def test_a_field_that_some_samples_lack_is_optional():
    schema = infer([{"image": "a", "tls": "x"}, {"image": "b"}])
    assert schema["required"] == ["image"]
