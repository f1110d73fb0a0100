"""The inferred schema accepts its samples, keeps every field of them, and says the same in short form."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from ruleop.authoring.scaffold.inferred_schema import OPEN, fields, infer, schema_entry
from ruleop.authoring.scaffold.yaml_layout import rules_text
from ruleop.kubernetes.crd import default, prune
from ruleop.kubernetes.crd_checks import check_crd
from ruleop.kubernetes.schema.validation import validate
from ruleop.language.rules.keys.schema_keys import with_empty_default
from ruleop.language.rules.keys.simple_schema import INT_OR_STRING, api_type
from tests.authoring.checking.random_schemas import definition_of
from tests.definitions import crd, version
from tests.kubernetes.schema.chance import NAMES as CHANCES
from tests.kubernetes.schema.chance import Chance

NAME = {"type": "string", "maxLength": 40}
NAMES = st.sampled_from(
    ["name", "image", "replicas", "port", "labels", "resources", "limits", "cpu", "env", "a.b/c", "x", "hosts", ""]
)
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(-1e9, 1e9) | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=20
)
SPECS = st.dictionaries(NAMES, VALUES, max_size=6)


def read(spec: dict[str, Any]) -> dict[str, Any]:
    """The schema of the custom resource whose spec this is, once it is written in short form and read again."""
    (entry,) = yaml.safe_load(rules_text([schema_entry(spec, name=NAME)]))
    definition, mistakes = definition_of(entry)
    assert mistakes == []
    found: dict[str, Any] = definition.document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


@pytest.mark.slow
@given(st.lists(SPECS, min_size=1, max_size=3))
def test_a_schema_inferred_from_random_samples_accepts_each_of_them(samples):
    spec = fields(samples)
    schema = read(spec)
    assert schema["properties"]["spec"] == with_empty_default(spec)
    for sample in samples:
        cr = {"apiVersion": "shop.example.com/v1", "kind": "Shop", "metadata": {"name": "shop"}, "spec": sample}
        stored = default(prune(cr, schema), schema)
        assert validate(stored, schema) == []
        assert prune(cr, schema) == cr
        if len(samples) == 1:
            assert stored == cr


@given(st.integers(0, 2**32))
def test_every_schema_is_the_same_once_it_is_written_in_short_form_and_read(seed):
    chance = Chance(seed)
    spec = {"type": "object", "properties": {name: chance.schema(3) for name in CHANCES}}
    made = crd("Shop", "example.com", version("v1", {"type": "object", "properties": {"spec": spec}}))
    assume(check_crd(made) == [] and '"minLength": 2, "maxLength": 1' not in json.dumps(spec))  # refused in rules
    assert read(spec)["properties"]["spec"] == with_empty_default(spec)


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


def test_resources_are_those_of_a_container_if_their_amounts_are_valid():
    properties = infer([{"resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}])["properties"]
    assert properties["resources"] == {**api_type("v1.ResourceRequirements"), "default": {}}
    properties = infer([{"resources": {"limits": {"cpu": "a lot"}}}])["properties"]
    assert properties["resources"]["properties"]["limits"]["additionalProperties"] == INT_OR_STRING


def test_the_value_of_a_credential_is_not_a_default_and_is_nowhere_in_the_schema():
    spec = fields([{"pin": 1, "db": {"password": 918273, "size": 3}, "secret": {"code": 918274}, "tokenTtl": 60}])
    entry = schema_entry(spec, name=NAME)
    assert entry["types"]["Db"] == {"password": "integer | required=true", "size": "integer | default=3"}
    assert entry["spec"]["tokenTtl"] == "integer | default=60"
    assert "91827" not in rules_text(entry)


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
