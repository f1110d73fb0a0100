"""Breaking changes between two CRDs: each has a name, and a change that breaks nothing has none."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ruleop.authoring.generate.crds import breaking_changes
from ruleop.kubernetes.crd import default, prune
from ruleop.kubernetes.schema.validation import validate
from ruleop.localcluster.objects.patches import merge_patch
from tests.authoring.checking.random_schemas import definition_of, schemas
from tests.exploration import examples
from tests.kubernetes.schema.chance import NAMES, Chance
from tests.tables import cases

OPEN = "x-kubernetes-preserve-unknown-fields"

FIELDS: dict[str, Any] = yaml.safe_load("""
text: {type: string, enum: [a, b], default: a, maxLength: 5}
number: {type: integer, minimum: 0, maximum: 10}
items: {type: array, maxItems: 3, items: {type: string, pattern: ^a}}
labels: {type: object, additionalProperties: {type: string}}
nested: {type: object, required: [x], properties: {x: {type: string}, y: {type: boolean}}}
free: {type: object, x-kubernetes-preserve-unknown-fields: true}
maybe: {type: string, nullable: true}
""")


def crd(fields: dict[str, Any], *, required: list[str] | None = None, **version: Any) -> dict[str, Any]:
    spec = {"type": "object", "properties": fields, **({"required": required} if required else {})}
    one = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        **version,
    }
    names = {"kind": "App", "plural": "apps", "shortNames": ["ap"]}
    return {"spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [one]}}


def changed(fields: dict[str, Any]) -> list[str]:
    """The breaking changes when these fields get other keywords. One that has a type is replaced; null removes a field
    and a keyword.
    """
    replaced = {name: each for name, each in FIELDS.items() if "type" not in (fields.get(name) or {})}
    return [str(each) for each in breaking_changes(crd(FIELDS), crd(merge_patch(replaced, fields)))]


@pytest.mark.parametrize(
    ("fields", "expected"),
    cases("""
{text: null}
>> v1 spec.text: removed
{number: {type: string}}
>> v1 spec.number: type changed from integer to string
{number: {type: null, x-kubernetes-int-or-string: true}}
>> v1 spec.number: type changed from integer to int-or-string
{number: {minimum: 1, maximum: 9}}
>> v1 spec.number: minimum raised from 0 to 1
>> v1 spec.number: maximum lowered from 10 to 9
{number: {multipleOf: 2}}
>> v1 spec.number: multipleOf added
{number: {exclusiveMaximum: true}}
>> v1 spec.number: exclusiveMaximum added
{text: {enum: [a, c]}}
>> v1 spec.text: removed from enum: b
{text: {default: b}}
>> v1 spec.text: default changed from a to b
{text: {type: string, maxLength: 5}}
>> v1 spec.text: default removed
{maybe: {type: string}}
>> v1 spec.maybe: nullable removed
{maybe: {enum: [a]}}
>> v1 spec.maybe: enum added
{maybe: {default: a}}
>> v1 spec.maybe: default added: a
{maybe: {minLength: 1}}
>> v1 spec.maybe: minLength added: 1
{items: {maxItems: 2, items: {type: string, pattern: ^b}}}
>> v1 spec.items: maxItems lowered from 3 to 2
>> v1 spec.items[]: pattern changed from ^a to ^b
{items: {x-kubernetes-list-type: set}}
>> v1 spec.items: x-kubernetes-list-type changed from atomic to set
{labels: {additionalProperties: {type: string, minLength: 1}}}
>> v1 spec.labels[]: minLength added: 1
{labels: {type: object, properties: {a: {type: string}}}}
>> v1 spec.labels: other fields are no longer kept (additionalProperties removed)
{nested: {required: [x, y]}}
>> v1 spec.nested.y: required now
{free: {type: object, properties: {a: {type: string}}}}
>> v1 spec.free: x-kubernetes-preserve-unknown-fields removed
{maybe: {x-kubernetes-validations: [{rule: self == oldSelf}]}}
>> v1 spec.maybe: validation rule added: self == oldSelf
{free: {properties: {a: {type: string}}}}
>> v1 spec.free.a: type changed from any to string
{free: {x-kubernetes-embedded-resource: true}}
>> v1 spec.free: x-kubernetes-embedded-resource added
{labels: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: integer}}}}
>> v1 spec.labels.a: type changed from string to integer
{new: {type: string, default: a}}
{text: {enum: [a, b, c], maxLength: 6, description: words}}
{text: {type: string, default: a}}
{number: {type: integer, minimum: -1}}
{items: {type: array, items: {type: string}, x-kubernetes-list-type: atomic}}
{nested: {required: null, default: {}}}
{nested: {type: object, x-kubernetes-preserve-unknown-fields: true}}
{number: {nullable: true}}
{labels: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""),
)
def test_a_breaking_change_of_a_field_has_a_name_and_what_allows_more_has_none(fields, expected):
    assert changed(fields) == expected


def test_a_new_required_field_breaks_unless_it_has_a_default():
    new = {**FIELDS, "new": {"type": "string"}}
    assert [str(each) for each in breaking_changes(crd(FIELDS), crd(new, required=["new"]))] == [
        "v1 spec.new: required now"
    ]
    new = {**FIELDS, "new": {"type": "string", "default": "a"}}
    assert breaking_changes(crd(FIELDS), crd(new, required=["new"])) == []


def test_changes_of_the_kind_and_its_versions_have_names():
    old, new = crd(FIELDS), crd(FIELDS, served=False, subresources={})
    new["spec"] |= {"scope": "Cluster", "names": {"kind": "App", "plural": "applis"}}
    assert [str(each) for each in breaking_changes(old, new)] == [
        "scope changed from Namespaced to Cluster",
        "plural changed from apps to applis",
        'short name "ap" removed',
        "v1: no longer served",
        "v1: subresource status removed",
    ]


def test_a_version_that_is_removed_breaks_if_it_is_served_or_stored():
    old, new = crd(FIELDS), crd(FIELDS, name="v2")
    assert [str(each) for each in breaking_changes(old, new)] == ["v1: removed"]
    unserved = crd(FIELDS, served=False)
    assert breaking_changes(unserved, new) == []
    (stored,) = breaking_changes({**unserved, "status": {"storedVersions": ["v1"]}}, new)
    assert "may be stored in it" in str(stored)


def with_root(**properties: Any) -> dict[str, Any]:
    document = crd(FIELDS)
    root = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    root["properties"] |= properties
    root["required"] = [*properties]
    return document


def test_restricted_names_are_the_only_change_of_fields_that_every_object_has():
    text, open_metadata = {"type": "string"}, {"type": "object"}
    written = with_root(apiVersion=text, kind=text, metadata=open_metadata)
    assert breaking_changes(written, crd(FIELDS)) == breaking_changes(crd(FIELDS), written) == []
    limited = with_root(metadata={"type": "object", "properties": {"name": {"type": "string", "maxLength": 40}}})
    assert [str(each) for each in breaking_changes(written, limited)] == ["v1 metadata.name: maxLength added: 40"]
    assert breaking_changes(limited, written) == []


def test_changes_of_scale_and_of_selectable_fields_have_names():
    scale = {"specReplicasPath": ".spec.number", "statusReplicasPath": ".status.a", "labelSelectorPath": ".status.b"}
    other = {"specReplicasPath": ".spec.other", "statusReplicasPath": ".status.a"}
    old = crd(FIELDS, subresources={"status": {}, "scale": scale}, selectableFields=[{"jsonPath": ".spec.text"}])
    new = crd(FIELDS, subresources={"status": {}, "scale": other})
    assert [str(each) for each in breaking_changes(old, new)] == [
        "v1: specReplicasPath of the subresource scale changed from .spec.number to .spec.other",
        "v1: labelSelectorPath of the subresource scale changed from .status.b to none",
        "v1: selectable field .spec.text removed",
    ]


def test_several_versions_need_the_webhook_that_converts_them():
    old, new = crd(FIELDS), crd(FIELDS)
    old["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {}}
    assert breaking_changes(old, new) == []
    new["spec"]["versions"].append({**new["spec"]["versions"][0], "name": "v2", "storage": False})
    assert [str(each) for each in breaking_changes(old, new)] == [
        "conversion webhook removed: fields that versions do not share are lost"
    ]


@pytest.mark.parametrize(
    ("change", "expected"),
    cases("""
[{multipleOf: 4}, {multipleOf: 2}]
[{multipleOf: 2}, {multipleOf: 4}]
>> multipleOf changed from 2 to 4
[{format: int32}, {format: int64}]
[{format: int64}, {format: int32}]
>> format changed from int64 to int32
[{anyOf: [{minimum: 1}]}, {anyOf: [{minimum: 1}, {minimum: 0}]}]
[{}, {anyOf: [{minimum: 1}]}]
>> anyOf added
[{allOf: [{minimum: 1}, {maximum: 3}]}, {allOf: [{maximum: 3}]}]
[{oneOf: [{minimum: 1}]}, {}]
[{x-kubernetes-validations: [{rule: self > oldSelf}]}, {x-kubernetes-validations: [{rule: self > oldSelf, message: grows}]}]
[{x-kubernetes-validations: [{rule: self > oldSelf}]}, {x-kubernetes-validations: [{rule: self > oldSelf, optionalOldSelf: true}]}]
>> validation rule added: self > oldSelf
"""),
)
def test_only_what_refuses_a_value_that_was_valid_is_a_change_of_a_condition(change, expected):
    before, after = (crd({"a": {"type": "integer", **each}}) for each in change)
    assert [each.message for each in breaking_changes(before, after)] == expected


@pytest.mark.slow
@given(schemas(), schemas())
def test_no_definition_breaks_itself_and_every_other_can_be_compared(one, other):
    first, second = definition_of(one)[0].document, definition_of(other)[0].document
    assert breaking_changes(first, deepcopy(first)) == []
    assert all(str(each).startswith("v1 spec") for each in breaking_changes(first, second))


# -- random changes ----------------------------------------------------------------------------------------------------

_CHILDREN = ("properties", "items", "additionalProperties")


def random_schema(chance: Chance) -> dict[str, Any]:
    return {"type": "object", "properties": {name: chance.schema(3) for name in NAMES}}


def nodes(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The schema, and those of all values below it."""
    below = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return [schema, *(node for each in below if isinstance(each, dict) for node in nodes(each))]


def reworded(chance: Chance, schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with other keywords on some of its values, and the same fields."""
    changed = deepcopy(schema)
    for node in nodes(changed)[1:]:
        if not chance.seldom() or "default" in node:
            continue
        fresh = next(each for each in iter(lambda: chance.schema(1), None) if each.get("type") == node.get("type"))
        kept = {key: each for key, each in node.items() if key in (*_CHILDREN, "type")}
        node.clear()
        node.update({key: each for key, each in fresh.items() if key not in _CHILDREN and "list" not in key} | kept)
    for node in nodes(changed):
        if "default" in node and validate(default({"a": node["default"]}, whole := _at_a(node)), whole):
            del node["default"]  # the server refuses a definition with such a default
    return changed


def _at_a(node: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": node}}


def without_formats(schema: dict[str, Any]) -> dict[str, Any]:
    changed = deepcopy(schema)
    for node in nodes(changed):
        node.pop("format", None)
    return changed


def widened(chance: Chance, schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with some values allowed that were not."""
    changed = deepcopy(schema)
    for node in nodes(changed):
        for keyword in ("required", "pattern", "format", "multipleOf", "enum", "not", "allOf", "anyOf", "oneOf"):
            if chance.seldom():
                node.pop(keyword, None)
        for keyword, step in (("minimum", -1), ("maximum", 1), ("minItems", -1), ("maxItems", 1), ("maxLength", 2)):
            if keyword in node and chance.often():
                node[keyword] += step
        if "enum" in node:
            node["enum"] = [*node["enum"], "another"]
        if "properties" in node and not node.get(OPEN) and chance.seldom():
            node["properties"] = {**node["properties"], "new": chance.schema(1)}
        if node.get("type") and chance.seldom():
            node["nullable"] = True
    return changed


@given(st.integers(0, 2**32))
def test_a_schema_that_allows_more_breaks_nothing(seed):
    chance = Chance(seed)
    old = random_schema(chance)
    found = breaking_changes(crd({"a": old}), crd({"a": widened(chance, old)}))
    assert [str(each) for each in found] == []


@settings(max_examples=examples(200))
@given(st.integers(0, 2**32))
def test_a_resource_that_is_refused_now_has_a_change_that_breaks_it(seed):
    chance = Chance(seed)
    old = random_schema(chance)
    new = reworded(chance, old)
    found = breaking_changes(crd({"a": old}), crd({"a": new}))
    strict = without_formats(old)  # where a string has a format, the server also allows lists: nobody means that
    for _ in range(20):
        stored = default(prune(chance.value(old, wild=0.1), old), old)
        if validate(stored, old) or validate(stored, strict):
            continue
        if validate(default(prune(stored, new), new), new):
            assert found, (stored, old, new)
