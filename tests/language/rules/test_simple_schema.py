"""Fields in short form: what each marker means, what is refused, and that nothing else than an error comes of any
text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.kubernetes.schema.validation import validate
from ruleop.language.rules.keys.simple_schema import (
    BASIC,
    SchemaField,
    SimpleSchemaError,
    UnknownTypeError,
    is_type,
    parse_field,
)

PORT = {"type": "object", "required": ["port"], "properties": {"port": {"type": "integer"}}}


def resolve(name: str):
    if name == "Port":
        return PORT
    raise UnknownTypeError(" (did you mean Port?)" if name == "Prot" else "")


def outcome(text: str) -> SchemaField | SimpleSchemaError:
    try:
        return parse_field(text, resolve)
    except SimpleSchemaError as error:
        return error


def schema_of(text: str):
    return parse_field(text, resolve).schema


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("string", {"type": "string"}),
        (" integer ", {"type": "integer"}),
        ("float", {"type": "number"}),
        ("number", {"type": "number"}),
        ("boolean", {"type": "boolean"}),
        ("object", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        ("[]string", {"type": "array", "items": {"type": "string"}}),
        ("map[string]integer", {"type": "object", "additionalProperties": {"type": "integer"}}),
        (
            "map[string][]map[string]Port",
            {
                "type": "object",
                "additionalProperties": {"type": "array", "items": {"type": "object", "additionalProperties": PORT}},
            },
        ),
        ("string | default=a=b", {"type": "string", "default": "a=b"}),
        ("string|default=3", {"type": "string", "default": "3"}),
        ('string | default="a b" description="it\'s"', {"type": "string", "default": "a b", "description": "it's"}),
        ("string | description='say \"hi\"'", {"type": "string", "description": 'say "hi"'}),
        (r'string | description="say \"hi\" \\ there"', {"type": "string", "description": 'say "hi" \\ there'}),
        (r'string | pattern="^\d+\.\w$"', {"type": "string", "pattern": r"^\d+\.\w$"}),
        ('string | pattern="^(a|b)$" minLength=1 maxLength=1', {
            "type": "string", "pattern": "^(a|b)$", "minLength": 1, "maxLength": 1,
        }),
        ('string | enum="a, b,c" default=b', {"type": "string", "enum": ["a", "b", "c"], "default": "b"}),
        ("integer | minimum=-1 maximum=10 default=0", {"type": "integer", "minimum": -1, "maximum": 10, "default": 0}),
        ('integer | enum="1,2"', {"type": "integer", "enum": [1, 2]}),
        ("number | minimum=0.5 default=1e3", {"type": "number", "minimum": 0.5, "default": 1000.0}),
        ("boolean | default=true", {"type": "boolean", "default": True}),
        ('[]string | default=["a", "b c"] minItems=1 maxItems=3', {
            "type": "array", "items": {"type": "string"}, "default": ["a", "b c"], "minItems": 1, "maxItems": 3,
        }),
        ("[]string | uniqueItems=true", {
            "type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set",
        }),
        ('map[string]string | default={"a": "b"}', {
            "type": "object", "additionalProperties": {"type": "string"}, "default": {"a": "b"},
        }),
        ('Port | default={"port": 80}', {**PORT, "default": {"port": 80}}),
        ('integer | validation="self % 2 == 0"', {
            "type": "integer", "x-kubernetes-validations": [{"rule": "self % 2 == 0"}],
        }),
        ("string | immutable=true", {
            "type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is immutable"}],
        }),
        ("string | immutable=false required=false", {"type": "string"}),
    ],
)  # fmt: skip
def test_a_field_in_short_form_has_a_schema(text, schema):
    assert schema_of(text) == schema


def test_required_is_for_the_mapping_around_the_field():
    assert parse_field("string | required=true", resolve) == SchemaField({"type": "string"}, required=True)
    assert parse_field("string", resolve) == SchemaField({"type": "string"}, required=False)


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ("", 'the type is missing: write one such as "string" or "[]string"', 0),
        ("| default=1", 'the type is missing: write one such as "string" or "[]string"', 0),
        ("strng", 'unknown type "strng"', 0),
        ("[]Prot", 'unknown type "Prot" (did you mean Port?)', 2),
        ("int", 'unknown type "int" (did you mean "integer"?)', 0),
        ("map[integer]string", 'the keys of a map are text: write "map[string]TYPE"', 0),
        ("string required=true", '"string required=true" is not a type (before markers there is a "|": "string | ...")', 0),
        ("string | requird=true", 'unknown marker "requird" (did you mean required?)', 9),
        ("string | required", '"required" is not a marker of the form name=value: write required=true', 9),
        ("string | required=yes", 'required must be true or false, not "yes"', 18),
        ("string | minimum=1", '"minimum" is a marker of "integer" or "number", and this is "string"', 9),
        ("[]string | maxLength=1", '"maxLength" is a marker of "string", and this is a list', 11),
        ("integer | maxItems=1", '"maxItems" is a marker of a list, and this is "integer"', 10),
        ("integer | default=1.5", 'default must be a whole number, not "1.5"', 18),
        ("integer | maximum=1 default=2", "the default must be at most 1, not 2", 28),
        ("integer | minimum=3 maximum=2", "minimum is 3 and maximum is 2, so no value is valid", 10),
        ("integer | minimum=99999999999999999999", "minimum is beyond 64 bits", 18),
        ('string | enum="a,b" default=c', 'the default must be one of "a", "b", not "c"', 28),
        ('string | enum="a,a"', "enum has a twice", 14),
        ('integer | enum="1,"', 'enum has an empty member: write enum="1,2"', 15),
        ("string | minLength=-1", 'minLength must be a whole number, not "-1"', 19),
        ("string | default=a default=b", 'the marker "default" is a duplicate', 19),
        ('string | default="a"b', 'a space is missing after the value of "default"', 20),
        ("string | default=", 'the value is missing after "="', 17),
        ('string | pattern="("', "pattern is not a valid regular expression (RE2): missing ): (", 17),
        ("[]string | default=[a]", 'this is not JSON: text in it needs double quotes, as in ["a", "b"]', 19),
        ("[]string | default=a", 'default must be JSON, such as [] or {}, not "a"', 19),
        ("[]string | default=[1]", "the default [0]: must be a string, not 1", 19),
        ("[]Port | uniqueItems=true", "uniqueItems needs a list of text, numbers or booleans", 9),
        (
            'string | description="see',
            'the closing " is missing (in YAML, ` #` begins a comment, and a `,` in braces ends the field: put the whole field in quotes)',
            21,
        ),
    ],
)  # fmt: skip
def test_a_mistake_in_a_field_is_reported_with_its_offset(text, message, offset):
    with pytest.raises(SimpleSchemaError) as error:
        parse_field(text, resolve)
    assert (error.value.message, error.value.offset) == (message, offset)


WORDS = "string integer [] map[string] map[ | = \" ' \\ [ { default enum 1 minimum= pattern= a,b Port é # } ]"
PIECES = st.sampled_from([*WORDS.split(), "required=true", "uniqueItems=true", " ", "\n"])


@given(st.lists(PIECES, max_size=12).map("".join))
def test_any_text_is_a_field_or_an_error_inside_of_it(text):
    found = outcome(text)
    if isinstance(found, SchemaField):
        assert "default" not in found.schema or not validate(found.schema["default"], found.schema)
    else:
        assert found.message
        assert 0 <= found.offset <= len(text)


@given(st.text(alphabet=st.characters(exclude_characters="\x00", exclude_categories=("Cs",)), max_size=20))
def test_any_text_can_be_quoted(value):
    quoted = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    assert schema_of(f"string | description={quoted} default={quoted}") == {
        "type": "string",
        "description": value,
        "default": value,
    }


@given(st.lists(st.sampled_from(["[]", "map[string]"]), max_size=5), st.sampled_from([*BASIC]))
def test_a_type_is_nested_as_it_is_written(nesting, basic):
    schema = schema_of("".join(nesting) + basic)
    for each in nesting:
        schema = schema["items"] if each == "[]" else schema["additionalProperties"]
    assert schema == BASIC[basic]


@given(
    st.recursive(st.integers(-5, 5), lambda inner: st.lists(inner, max_size=3), max_leaves=6).filter(
        lambda each: isinstance(each, list)
    )
)
def test_a_json_default_is_read_as_json(value):
    depth, inner = 0, value
    while isinstance(inner, list):
        depth, inner = depth + 1, inner[0] if inner else 0
    text = f"{'[]' * depth}integer | default={json.dumps(value)} required=true"
    found = outcome(text)
    if isinstance(found, SchemaField):
        assert found.schema["default"] == value
    else:
        assert found.message.startswith("the default ")  # lists of different depths


@pytest.mark.parametrize(("text", "expected"), [("[]string", True), ("Port", False), ("a b", False), ("date", False)])
def test_only_basic_types_are_types_by_themselves(text, expected):
    assert is_type(text) is expected
