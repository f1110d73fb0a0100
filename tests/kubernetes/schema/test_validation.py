"""Validation by each keyword of a CRD's schema, as by the API server."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.kubernetes.schema.validation import validate


def messages(value: Any, schema: dict[str, Any]) -> list[str]:
    found = validate({"spec": value}, {"type": "object", "properties": {"spec": schema}})
    return [str(finding) for finding in found]


def accepts(value: Any, schema: dict[str, Any]) -> bool:
    return not messages(value, schema)


@pytest.mark.parametrize(
    ("value", "types"),
    [
        (True, {"boolean"}),
        (1, {"integer", "number"}),
        (0, {"integer", "number"}),
        (-(2**63), {"integer", "number"}),
        (2**63, {"number"}),
        (1.0, {"integer", "number"}),
        (1e3, {"integer", "number"}),
        (2.0**53 - 1, {"integer", "number"}),
        (2.0**53, {"number"}),
        (2.0**60, {"number"}),
        (1.5, {"number"}),
        ("1", {"string"}),
        ("", {"string"}),
        ([], {"array"}),
        ({}, {"object"}),
        (None, set()),
    ],
)
def test_a_value_has_exactly_the_accepted_types(value: Any, types: set[str]):
    everything = ("boolean", "integer", "number", "string", "array", "object")
    assert {name for name in everything if accepts(value, {"type": name})} == types


@pytest.mark.parametrize(
    ("value", "accepted"),
    [(80, True), ("80%", True), (1.0, True), (1.5, False), (True, False), ([], False), (None, False)],
)
def test_an_int_or_string_accepts_integers_and_strings(value: Any, accepted: bool):
    assert accepts(value, {"x-kubernetes-int-or-string": True}) is accepted


def test_null_needs_nullable_and_never_matches_an_enum():
    assert accepts(None, {"type": "string", "nullable": True})
    assert accepts(None, {"x-kubernetes-preserve-unknown-fields": True})
    assert accepts(None, {"type": "string", "nullable": True, "minLength": 3})
    assert messages(None, {"type": "string"}) == ["spec: must be a string, not null"]
    assert messages(None, {"type": "string", "nullable": True, "enum": ["a", None]}) == [
        'spec: must be one of "a", null, not null'
    ]


def test_messages_have_the_path_and_the_error():
    schema = {
        "type": "object",
        "required": ["size", "mode"],
        "properties": {
            "size": {"type": "integer"},
            "mode": {"enum": ["Always", "Never"]},
            "ports": {
                "type": "array",
                "items": {"type": "object", "properties": {"port": {"type": "integer", "maximum": 65535}}},
            },
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    }
    value = {"size": "3", "ports": [{"port": 1}, {"port": 70000}], "labels": {"a/b": 1, "c": []}}
    assert messages(value, schema) == [
        "spec.mode: is required",
        'spec.size: must be an integer, not "3"',
        "spec.ports[1].port: must be at most 65535, not 70000",
        "spec.labels['a/b']: must be a string, not 1",
        "spec.labels.c: must be a string, not a list",
    ]
    assert messages({"size": 1, "mode": "Alway"}, schema) == [
        'spec.mode: must be one of "Always", "Never", not "Alway" (did you mean Always?)'
    ]
    assert messages("x" * 100, {"type": "integer"}) == ["spec: must be an integer, not a long string"]
    assert messages({}, {"type": "integer"}) == ["spec: must be an integer, not an object"]
    assert messages(10**30, {"type": "integer"}) == [f"spec: must be an integer, not {10**30}"]


def test_required_checks_only_that_the_key_exists():
    assert accepts({"a": None}, {"type": "object", "required": ["a"]})
    assert not accepts({}, {"type": "object", "required": ["a"]})


@pytest.mark.parametrize(
    ("value", "enum", "accepted"),
    [
        ("a", ["a"], True),
        ("b", ["a"], False),
        (1, [1.0], True),
        (1.0, [1], True),
        (True, [1], False),
        (1, [True], False),
        (True, [True], True),
        (0, [False], False),
        (7.5, [7], True),  # made an integer before they are compared
        (7.5, [2.5], False),
        (2, [2.5], False),
        (49, ["1"], True),  # made a text, which in Go is the character of that number
        ("7", [7], False),
    ],
)
def test_enums_compare_by_value_and_distinguish_booleans_from_numbers(value: Any, enum: list[Any], accepted: bool):
    assert accepts(value, {"enum": enum}) is accepted


@pytest.mark.parametrize(
    ("value", "limits", "accepted"),
    [
        (3, {"minimum": 3}, True),
        (2, {"minimum": 3}, False),
        (3, {"minimum": 3, "exclusiveMinimum": True}, False),
        (4, {"minimum": 3, "exclusiveMinimum": True}, True),
        (2, {"minimum": 3, "exclusiveMinimum": True}, False),
        (3, {"maximum": 3}, True),
        (4, {"maximum": 3}, False),
        (3, {"maximum": 3, "exclusiveMaximum": True}, False),
        (2.9, {"maximum": 3, "exclusiveMaximum": True}, True),
        (3.1, {"maximum": 3, "exclusiveMaximum": True}, False),
        (0, {"minimum": 0}, True),
        (True, {"minimum": 5}, True),
        ("1", {"minimum": 5}, True),
        (10, {"multipleOf": 5}, True),
        (11, {"multipleOf": 5}, False),
        (10, {"multipleOf": 2.5, "type": "integer"}, False),
        (10, {"multipleOf": 2.5}, True),
        (-4, {"multipleOf": 2}, True),
        (3.0, {"multipleOf": 3, "type": "integer"}, True),
        (5, {"multipleOf": 2.5, "type": "number"}, False),
        (5.0, {"multipleOf": 2.5, "type": "number"}, True),
        (5, {"multipleOf": 0.5, "type": "number"}, False),
        (2, {"minimum": 2.5, "type": "number"}, True),
        (3, {"minimum": 2.5, "type": "integer"}, False),
        (3, {"minimum": 2.0, "type": "integer"}, True),
        (3, {"maximum": 3.5, "exclusiveMaximum": True}, False),
        (2.0, {"minimum": 2.5, "type": "number"}, False),
        (0.3, {"multipleOf": 0.1}, True),
        (0.35, {"multipleOf": 0.1}, False),
        (0.0, {"multipleOf": 0.1}, True),
        (2**31 - 1, {"type": "integer", "format": "int32"}, True),
        (2**31, {"type": "integer", "format": "int32"}, False),
        (2**31, {"type": "integer", "format": "int64"}, True),
        (2**31, {"type": "integer"}, True),
        (2**31, {"type": "number", "format": "int32"}, True),
    ],
)
def test_numeric_limits_are_checked(value: Any, limits: dict[str, Any], accepted: bool):
    assert accepts(value, limits) is accepted


@pytest.mark.parametrize(
    ("value", "limits", "accepted"),
    [
        ("ab", {"minLength": 2}, True),
        ("a", {"minLength": 2}, False),
        ("äö", {"maxLength": 2}, True),
        ("abc", {"maxLength": 2}, False),
        (5, {"minLength": 2}, True),
        ([1], {"minItems": 1}, True),
        ([], {"minItems": 1}, False),
        ([1, 2], {"maxItems": 1}, False),
        ({"a": 1}, {"minProperties": 1}, True),
        ({}, {"minProperties": 1}, False),
        ({"a": 1, "b": 2}, {"maxProperties": 1}, False),
        ("abc", {"pattern": "b"}, True),
        ("abc", {"pattern": "^b"}, False),
        ("abc\n", {"pattern": "c$"}, False),
        (5, {"pattern": "^b"}, True),
        ("abc", {"pattern": r"\pL"}, True),
        ([1, 2], {"uniqueItems": True}, True),
        ([1, 1], {"uniqueItems": True}, False),
        ([1, True, "1", [1], {"a": 1}], {"uniqueItems": True}, True),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], {"uniqueItems": True}, False),
        ([1, 1], {}, True),
        (["a", "a"], {"x-kubernetes-list-type": "set"}, False),
        (["a", "a"], {"x-kubernetes-list-type": "atomic"}, True),
        ([1, 1.0], {"x-kubernetes-list-type": "set"}, True),
        ([{"a": 1}, {"a": 1.0}], {"x-kubernetes-list-type": "set"}, False),
        ([[1.5], [1.5]], {"x-kubernetes-list-type": "set"}, False),
    ],
)
def test_limits_of_strings_lists_and_objects_are_checked(value: Any, limits: dict[str, Any], accepted: bool):
    assert accepts(value, limits) is accepted


def test_an_invalid_pattern_is_reported_as_an_error_of_the_schema():
    assert messages("abc", {"pattern": "(?=a)"}) == [
        "spec: the pattern '(?=a)' of the schema is invalid: invalid perl operator: (?="
    ]


PORTS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["port", "protocol"],
    "items": {"type": "object", "properties": {"port": {"type": "integer"}, "protocol": {"type": "string"}}},
}


def test_the_keys_of_a_list_of_type_map_are_unique_together():
    assert accepts([{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}, {"port": 53}], PORTS)
    assert messages([{"port": 53, "protocol": "UDP"}, {"port": 1}, {"port": 53, "protocol": "UDP"}], PORTS) == [
        'spec[2]: has the same key as item 0: port 53, protocol "UDP"'
    ]
    assert messages([{}, {}], PORTS) == ["spec[1]: has the same key as item 0: no port and no protocol"]
    assert messages([1], PORTS) == ["spec[0]: must be an object, not 1"]


def test_unknown_fields_are_refused_only_if_additional_properties_is_false():
    closed = {"type": "object", "properties": {"size": {}}, "additionalProperties": False}
    assert messages({"sise": 1}, closed) == ["spec.sise: is an unknown field (did you mean size?)"]
    assert accepts({"x": 1}, {"type": "object", "properties": {}})


def test_all_of_any_of_one_of_and_not_are_checked():
    low, high, even = {"minimum": 1}, {"minimum": 10}, {"multipleOf": 2}
    assert messages(0, {"allOf": [low, high]}) == [
        "spec: must be at least 1, not 0",
        "spec: must be at least 10, not 0",
    ]
    assert accepts(5, {"anyOf": [high, low]})
    assert messages(0, {"anyOf": [high, low]}) == [
        "spec: must match at least one of 2 alternatives; the nearest: spec: must be at least 10, not 0"
    ]
    assert accepts(11, {"oneOf": [high, even]})
    assert messages(12, {"oneOf": [high, even]}) == ["spec: must match exactly one of 2 alternatives, but matches 2"]
    assert messages(9, {"oneOf": [high, even]}) == [
        "spec: must match exactly one of 2 alternatives; the nearest: spec: must be at least 10, not 9"
    ]
    assert accepts(9, {"not": high})
    assert messages(10, {"not": high}) == ["spec: must not match the schema in `not`"]
    assert messages({}, {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}) == [
        "spec: must match exactly one of 2 alternatives; the nearest: spec.a: is required"
    ]


@pytest.mark.parametrize(
    ("text", "name", "accepted"),
    [
        ("2026-02-28T23:59:59Z", "date-time", True),
        ("2026-02-28t23:59:59.123456+01:00", "date-time", True),
        ("2026-02-29T00:00:00Z", "date-time", False),
        ("2026-02-28T24:00:00Z", "date-time", False),
        ("2026-02-28T23:60:00Z", "date-time", False),
        ("2026-02-28T23:59:60Z", "date-time", False),
        ("2026-02-28T23:59:59", "date-time", False),
        ("2026-02-28", "date-time", False),
        ("yesterday", "datetime", False),
        ("2026-02-28", "date", True),
        ("20260228", "date", False),
        ("2026-W01-1", "date", False),
        ("2026-13-01", "date", False),
        ("aGk=", "byte", True),
        ("", "byte", False),
        ("aGk", "byte", False),
        ("a k=", "byte", False),
        ("10.0.0.1", "ipv4", True),
        ("10.0.0.256", "ipv4", False),
        ("::1", "ipv6", True),
        ("10.0.0.1", "ipv6", False),
        ("10.0.0.0/8", "cidr", True),
        ("10.0.0.1/8", "cidr", True),
        ("10.0.0.0", "cidr", False),
        ("10.0.0.0/99", "cidr", False),
        ("123E4567-e89b-12d3-a456-426614174000", "uuid", True),
        ("123e4567", "uuid", False),
        ("anything", "made-up", True),
    ],
)
def test_string_formats_are_checked(text: str, name: str, accepted: bool):
    assert accepts(text, {"type": "string", "format": name}) is accepted


def test_a_format_of_strings_does_not_apply_to_other_types():
    assert accepts("x", {"x-kubernetes-int-or-string": True, "type": "integer", "format": "date"})
    assert messages("x", {"type": "string", "format": "date"}) == ['spec: must be a date, not "x"']


def test_an_item_that_occurs_three_times_is_reported_once():
    schema = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}}
    assert messages([0, 0, 0], schema) == ["spec[1]: repeats item 0, but each may occur only once"]


def test_a_list_passes_a_string_format_as_on_the_server():
    assert accepts([[]], {"type": "string", "format": "date-time"})
    assert not accepts([[]], {"type": "string"})
    assert not accepts([[]], {"type": "integer", "format": "int32"})
    assert not accepts(1, {"type": "string", "format": "date-time"})
