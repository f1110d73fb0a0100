"""${NAME} in vars."""

from __future__ import annotations

import json
import os

import pytest

from tests.language.rules.projects import Row, rule, said, table, watch

ROWS = (
    Row(
        "environment",
        watch("""
vars:
  a: ${A}
  b: ${B:-x}
  c: ${C:-2}
  d: ${D:-true}
  e: x-${A}-${}
  f: [{g: "${A}"}]
  h: "{{ spec.x }}"
status: {a: "${A}", b: "$A", "c": "${B:-x} {{ spec.x }}"}
children:
  a: {template: a.yaml, when: "spec.x == '${A}'"}
  b: {object: {apiVersion: v1, kind: Service, metadata: {name: x, labels: {a: "${A}"}}}}
"""),
        [
            "watches.yaml:5:8: the variable A is not set: set it, or write a default, ${A:-default}",
            'watches.yaml:7:8: the variable C must be a number, like its default; put the default in quotes for text: ${C:-"2"}',
            "watches.yaml:8:8: the variable D must be true or false, like its default",
            'watches.yaml:9:8: "x-${A}-${}" holds a `${` that is neither ${NAME} nor ${NAME:-default}',
            "watches.yaml:9:8: the variable A is not set: set it, or write a default, ${A:-default}",
            "watches.yaml:10:13: the variable A is not set: set it, or write a default, ${A:-default}",
            "watches.yaml:11:8: warning: vars are constants without templates, so this is plain text: use `let`",
            "watches.yaml:12:15: warning: ${A} is read from the environment only in `vars`: here it is plain text",
            "watches.yaml:12:37: warning: ${B:-x} is read from the environment only in `vars`: here it is plain text",
            "watches.yaml:14:33: warning: ${A} is read from the environment only in `vars`: here it is plain text",
        ],
        environ={"C": "x", "D": "maybe"},
    ),
)


@table(*ROWS)
def test_errors_in_environment_variables_are_reported_with_their_positions(row: Row) -> None:
    assert said(row.watches, row.files, row.environ) == row.said


def value(text: str, **environ: str) -> object:
    """What a var of this text is."""
    return rule("vars: {a: " + json.dumps(text) + "}", environ=environ).vars["a"]


@pytest.mark.parametrize(
    ("text", "environ", "expected"),
    [
        ("${A}", {"A": "5"}, "5"),
        ("${A}", {"A": ""}, ""),
        ("${A}", {"A": "true"}, "true"),
        ("${A:-2}", {}, 2),
        ("${A:-2}", {"A": "5"}, 5),
        ("${A:-2}", {"A": " 5 "}, 5),
        ("${A:-2}", {"A": "5.5"}, 5.5),
        ("${A:-2}", {"A": ""}, 2),
        ("${A:--1}", {}, -1),
        ("${A:-2.5}", {}, 2.5),
        ("${A:-1e3}", {}, 1000.0),
        ("${A:-'2'}", {}, "2"),
        ('${A:-"2"}', {"A": "5"}, "5"),
        ("${A:-02}", {}, "02"),
        ("${A:-2Gi}", {}, "2Gi"),
        ("${A:-true}", {}, True),
        ("${A:-true}", {"A": "false"}, False),
        ("${A:-false}", {"A": "True"}, True),
        ("${A:-'true'}", {}, "true"),
        ("${A:-}", {}, ""),
        ("${A:-apache/kafka:3.9.0}", {}, "apache/kafka:3.9.0"),
        ("${A:-'a}b'}", {}, "a}b"),
        ("${A:-'}", {}, "'"),
        ("x-${A:-2}", {}, "x-2"),
        ("${A:-2}${B}", {"B": "3"}, "23"),
        ("${A:-'x'}y", {}, "xy"),
        ("$A {A}", {"A": "5"}, "$A {A}"),
        ("plain", {}, "plain"),
    ],
)
def test_a_value_is_text_unless_its_default_is_a_bare_number_or_boolean(
    text: str, environ: dict[str, str], expected: object
) -> None:
    found = value(text, **environ)
    assert found == expected
    assert type(found) is type(expected)


def test_environment_variables_are_replaced_in_nested_values_and_other_types_are_kept() -> None:
    assert rule("vars: {a: [1, {b: '${A}', c: null}], d: 2.5}", environ={"A": "x"}).vars == {
        "a": [1, {"b": "x", "c": None}],
        "d": 2.5,
    }


def test_the_value_of_a_variable_is_never_shown() -> None:
    lines = said(watch("vars: {a: '${A:-2}', b: '${B:-true}'}"), environ={"A": "hunter2", "B": "hunter3"})
    assert len(lines) == 2
    assert "hunter" not in "".join(lines)


def test_a_value_that_is_not_valid_utf8_is_an_error() -> None:
    """An environment consists of bytes; those that are not UTF-8 cannot be part of an object."""
    assert said(watch("vars: {a: '${A}', b: 'x${A:-y}'}"), environ={"A": os.fsdecode(b"\xff")}) == [
        "watches.yaml:4:13: the variable A is not valid UTF-8",
        "watches.yaml:4:24: the variable A is not valid UTF-8",
    ]


@pytest.mark.parametrize("value", ["9" * 5000, "9" * 400, "1e999"])
def test_a_number_that_json_cannot_represent_is_refused(value: str) -> None:
    (line,) = said(watch("vars: {a: '${A:-1}'}"), environ={"A": value})
    assert "the variable A must be a number, like its default" in line
