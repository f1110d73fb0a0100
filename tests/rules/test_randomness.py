"""Templates that render differently each time."""

from __future__ import annotations

from tests.rules.projects import Row, said, table, watch

ROWS = (
    Row(
        "random",
        watch("""
let: {x: "{{ now() }}"}
children:
  a: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: '{{ random_password(8) }}'}}}
  b: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: '{{ random_password(8) }}'}}, apply: {strategy: create-only}}
  c: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "x-{{ now() }}"}}, apply: {strategy: create-only}}
  d: {template: d.yaml, apply: {strategy: create-only}}
  e: {template: e.yaml}
  f: {template: a.yaml, when: "now() > 1", apply: {strategy: create-only}}
  g: {template: e.yaml, apply: {strategy: merge}}
"""),
        [
            "templates/d.yaml:4:14: `random_password` in metadata.name would create another object each time: derive the name from the CR",
            "templates/d.yaml:9:34: `now` in metadata.name would create another object each time: derive the name from the CR",
            "templates/e.yaml:4:15: `now` is random: only the body of a child with `apply: {strategy: create-only}` may use it",
            "watches.yaml:4:16: `now` is random: only the body of a child with `apply: {strategy: create-only}` may use it",
            "watches.yaml:6:86: `random_password` is random: only the body of a child with `apply: {strategy: create-only}` may use it",
            "watches.yaml:8:68: `now` in metadata.name would create another object each time: derive the name from the CR",
            "watches.yaml:11:34: `now` is random: only the body of a child with `apply: {strategy: create-only}` may use it",
        ],
        files={
            "templates/d.yaml": """\
apiVersion: v1
kind: Secret
metadata:
  name: x-{{ random_password(3) }}
  labels: {name: '{{ now() }}'}
---
apiVersion: v1
kind: Secret
metadata: {labels: {}, name: '{{ now() }}'}
---
apiVersion: v1
kind: Secret
metadata: {name: now}
spec:
  name: '{{ now() }}'
""",
            "templates/e.yaml": """\
apiVersion: batch/v1
kind: Job
metadata: {name: x}
spec: {a: '{{ now() }}'}
""",
        },
    ),
    Row(
        "certificates and hashes of passwords",
        watch("""
let: {x: "{{ genCA('x').Cert }}"}
children:
  a: {object: {apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {x: "{{ htpasswd('a', 'b') }}"}}}
  b: {object: {apiVersion: v1, kind: Secret, metadata: {name: "{{ genSelfSignedCert('x').Key | sha256(8) }}"}}, apply: {strategy: create-only}}
  c: {object: {apiVersion: v1, kind: Secret, metadata: {name: c}, stringData: {x: "{{ htpasswd('a', 'b') }}"}}, apply: {strategy: create-only}}
"""),
        [
            "watches.yaml:4:16: `genCA` is random: only the body of a child with `apply: {strategy: create-only}` may use it",
            "watches.yaml:6:89: `htpasswd` is random: only the body of a child with `apply: {strategy: create-only}` may use it",
            "watches.yaml:7:65: `genSelfSignedCert` in metadata.name would create another object each time: derive the name from the CR",
        ],
    ),
    Row(
        "random in lists and branches",
        watch("""
children:
  a: {template: j.yaml}
  b: {object: {apiVersion: v1, kind: Secret, metadata: "{{ now() }}"}, apply: {strategy: create-only}}
  c: {object: {apiVersion: batch/v1, kind: Job, metadata: {name: x, labels: {a: "{{ now() }}"}}}}
"""),
        [
            "templates/j.yaml:6:16: `now` is random: only the body of a child with `apply: {strategy: create-only}` may use it",
            "templates/j.yaml:7:14: `now` is random: only the body of a child with `apply: {strategy: create-only}` may use it",
        ],
        files={
            "templates/j.yaml": """\
apiVersion: batch/v1
kind: Job
metadata:
    name: {{ spec.name }}
    labels:
      name: {{ now() }}
spec: {a: {{ now() }}}
---
apiVersion: v1
kind: Service
metadata: {name: x}
"""
        },
    ),
)


@table(*ROWS)
def test_nondeterministic_templates_are_reported_with_their_positions(row: Row) -> None:
    assert said(row.watches, row.files, row.environ) == row.said
