"""Breaking changes between two CRDs: each has a name, and a change that breaks nothing has none."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given

from ruleop.generate.breaking_changes import breaking_changes
from tests.checking.random_schemas import definition_of, schemas

FIELDS: dict[str, Any] = {
    "text": {"type": "string", "enum": ["a", "b"], "default": "a", "maxLength": 5},
    "number": {"type": "integer", "minimum": 0, "maximum": 10},
    "items": {"type": "array", "maxItems": 3, "items": {"type": "string", "pattern": "^a"}},
    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    "nested": {"type": "object", "required": ["x"], "properties": {"x": {"type": "string"}, "y": {"type": "boolean"}}},
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "maybe": {"type": "string", "nullable": True},
}


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


def changed(**fields: Any) -> list[str]:
    """The breaking changes when these fields are replaced, or removed by None."""
    after = {name: each for name, each in {**FIELDS, **fields}.items() if each is not None}
    return [str(each) for each in breaking_changes(crd(FIELDS), crd(after))]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"text": None}, ["v1 spec.text: removed"]),
        ({"number": {"type": "string"}}, ["v1 spec.number: type changed from integer to string"]),
        (
            {"number": {"x-kubernetes-int-or-string": True}},
            ["v1 spec.number: type changed from integer to int-or-string"],
        ),
        (
            {"number": {"type": "integer", "minimum": 1, "maximum": 9}},
            ["v1 spec.number: minimum raised from 0 to 1", "v1 spec.number: maximum lowered from 10 to 9"],
        ),
        ({"number": {**FIELDS["number"], "multipleOf": 2}}, ["v1 spec.number: multipleOf added"]),
        ({"number": {**FIELDS["number"], "exclusiveMaximum": True}}, ["v1 spec.number: exclusiveMaximum added"]),
        ({"text": {**FIELDS["text"], "enum": ["a", "c"]}}, ["v1 spec.text: removed from enum: b"]),
        ({"text": {**FIELDS["text"], "default": "b"}}, ["v1 spec.text: default changed from a to b"]),
        ({"text": {"type": "string", "maxLength": 5}}, ["v1 spec.text: default removed"]),
        ({"maybe": {"type": "string"}}, ["v1 spec.maybe: nullable removed"]),
        ({"maybe": {**FIELDS["maybe"], "enum": ["a"]}}, ["v1 spec.maybe: enum added"]),
        ({"maybe": {**FIELDS["maybe"], "default": "a"}}, ["v1 spec.maybe: default added: a"]),
        ({"maybe": {**FIELDS["maybe"], "minLength": 1}}, ["v1 spec.maybe: minLength added: 1"]),
        (
            {"items": {"type": "array", "maxItems": 2, "items": {"type": "string", "pattern": "^b"}}},
            ["v1 spec.items: maxItems lowered from 3 to 2", "v1 spec.items[]: pattern changed from ^a to ^b"],
        ),
        (
            {"items": {**FIELDS["items"], "x-kubernetes-list-type": "set"}},
            ["v1 spec.items: x-kubernetes-list-type changed from atomic to set"],
        ),
        (
            {"labels": {"type": "object", "additionalProperties": {"type": "string", "minLength": 1}}},
            ["v1 spec.labels[]: minLength added: 1"],
        ),
        (
            {"labels": {"type": "object", "properties": {"a": {"type": "string"}}}},
            ["v1 spec.labels: other fields are no longer kept (additionalProperties removed)"],
        ),
        (
            {"nested": {"type": "object", "required": ["x", "y"], "properties": FIELDS["nested"]["properties"]}},
            ["v1 spec.nested.y: required now"],
        ),
        (
            {"free": {"type": "object", "properties": {"a": {"type": "string"}}}},
            ["v1 spec.free: x-kubernetes-preserve-unknown-fields removed"],
        ),
        (
            {"maybe": {**FIELDS["maybe"], "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}},
            ["v1 spec.maybe: validation rule added: self == oldSelf"],
        ),
    ],
)
def test_a_breaking_change_of_a_field_has_a_name(fields, expected):
    assert changed(**fields) == expected


@pytest.mark.parametrize(
    "fields",
    [
        {"new": {"type": "string", "default": "a"}},
        {"text": {**FIELDS["text"], "enum": ["a", "b", "c"], "maxLength": 6, "description": "words"}},
        {"text": {"type": "string", "default": "a"}},
        {"number": {"type": "integer", "minimum": -1}},
        {"items": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"}},
        {"nested": {"type": "object", "properties": FIELDS["nested"]["properties"], "default": {}}},
        {"nested": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        {"number": {**FIELDS["number"], "nullable": True}},
    ],
)
def test_a_change_that_allows_more_breaks_nothing(fields):
    assert changed(**fields) == []


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


@given(schemas(), schemas())
def test_no_definition_breaks_itself_and_every_other_can_be_compared(one, other):
    first, second = definition_of(one)[0].document, definition_of(other)[0].document
    assert breaking_changes(first, deepcopy(first)) == []
    assert all(str(each).startswith("v1 spec") for each in breaking_changes(first, second))
