"""${NAME} in vars."""

from __future__ import annotations

from tests.rules.projects import Row, said, table, watch

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
  b: {object: {apiVersion: v1, kind: Service, metadata: {name: "${A}"}}}
"""),
        [
            "watches.yaml:5:8: the variable A is not set: set it, or write a default, ${A:-default}",
            'watches.yaml:7:8: the variable C must be a number, as its default is; a default in quotes makes it text: ${C:-"2"}',
            "watches.yaml:8:8: the variable D must be true or false, as its default is",
            'watches.yaml:9:8: "x-${A}-${}" holds a `${` that is neither ${NAME} nor ${NAME:-default}',
            "watches.yaml:9:8: the variable A is not set: set it, or write a default, ${A:-default}",
            "watches.yaml:10:13: the variable A is not set: set it, or write a default, ${A:-default}",
            "watches.yaml:11:8: warning: vars are constants and hold no templates, so this is plain text: say it under `let`",
            "watches.yaml:12:15: warning: ${A} is read from the environment only in `vars`: here it is plain text",
            "watches.yaml:12:37: warning: ${B:-x} is read from the environment only in `vars`: here it is plain text",
            "watches.yaml:14:33: warning: ${A} is read from the environment only in `vars`: here it is plain text",
        ],
        environ={"C": "x", "D": "maybe"},
    ),
)


@table(*ROWS)
def test_each_mistake_is_said_with_its_place_and_nothing_else_is(row: Row) -> None:
    assert said(row.watches, row.files, row.environ) == row.said
