"""Which child comes first, and cycles."""

from __future__ import annotations

from tests.rules.projects import Row, said, table, watch

ROWS = (
    Row(
        "cycle of one",
        watch("""
children:
  a: {template: a.yaml, waitFor: a.status.x}
  b: {template: a.yaml, waitFor: ready.b}
  c: {template: a.yaml, dependsOn: [c]}
  d: {template: a.yaml, waitFor: live.d.x}
"""),
        [
            'watches.yaml:5:36: "a" reads itself, which it is to become: read what exists of it, `live.a`',
            'watches.yaml:6:36: "b" reads itself, which it is to become: read what exists of it, `live.b`',
            'watches.yaml:7:39: "c" depends on itself: remove it from its `dependsOn`',
        ],
    ),
    Row(
        "cycle of three",
        watch("""
children:
  z: {template: a.yaml, dependsOn: [a]}
  a: {template: a.yaml, waitFor: b.status.x}
  b: {template: a.yaml, dependsOn: [c]}
  c: {template: a.yaml, waitFor: "ready.a and b"}
finalize:
  f: {template: a.yaml, dependsOn: [g]}
  g: {template: a.yaml, dependsOn: [f]}
"""),
        [
            'watches.yaml:6:36: a cycle: "a" reads "b" (watches.yaml:6:36), "b" depends on "c" (watches.yaml:7:39), "c" reads "a" (watches.yaml:8:37); break it by reading what exists, `live.<id>`, which waits for nothing',
            'watches.yaml:10:39: a cycle: "f" depends on "g" (watches.yaml:10:39), "g" depends on "f" (watches.yaml:11:39); break it by reading what exists, `live.<id>`, which waits for nothing',
        ],
    ),
    Row(
        "cycle in templates",
        watch("""
children:
  a: {template: a.yaml}
  b: {template: b.yaml}
"""),
        [
            'templates/a.yaml:4:7: a cycle: "a" reads "b" (templates/a.yaml:4:7), "b" reads "a" (templates/b.yaml:5:16); break it by reading what exists, `live.<id>`, which waits for nothing',
        ],
        files={
            "templates/a.yaml": """\
apiVersion: v1
kind: Service
metadata: {name: a}
x: {{ b.x }}
""",
            "templates/b.yaml": """\
apiVersion: v1
kind: Service
metadata: {name: a}
y: 1
x: {% for i in a.list %}{{ i.x }}{% endfor %}
""",
        },
    ),
)


@table(*ROWS)
def test_each_mistake_is_said_with_its_place_and_nothing_else_is(row: Row) -> None:
    assert said(row.watches, row.files, row.environ) == row.said
