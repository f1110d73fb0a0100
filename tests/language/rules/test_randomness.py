"""Templates that render differently each time."""

from __future__ import annotations

from tests.language.rules.projects import Row, rows, said, table

ROWS = rows("""
== random
let: {x: "{{ now() }}"}
children:
  a: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: '{{ random_password(8) }}'}}}
  b: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: '{{ random_password(8) }}'}}, apply: {strategy: create-only}}
  c: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "x-{{ now() }}"}}, apply: {strategy: create-only}}
  d: {template: d.yaml, apply: {strategy: create-only}}
  e: {template: e.yaml}
  f: {template: a.yaml, when: "now() > 1", apply: {strategy: create-only}}
  g: {template: e.yaml, apply: {strategy: merge}}
-- templates/d.yaml
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
-- templates/e.yaml
apiVersion: batch/v1
kind: Job
metadata: {name: x}
spec: {a: '{{ now() }}'}
>> templates/d.yaml:4:14: `random_password` in metadata.name would create another object each time: derive the name from the CR
>> templates/d.yaml:9:34: `now` in metadata.name would create another object each time: derive the name from the CR
>> templates/e.yaml:4:15: `now` is random: only the body of a child with `apply: {strategy: create-only}` may use it
>> watches.yaml:4:16: `now` is random: only the body of a child with `apply: {strategy: create-only}` may use it
>> watches.yaml:6:86: `random_password` is random: only the body of a child with `apply: {strategy: create-only}` may use it
>> watches.yaml:8:74: `now` in metadata.name would create another object each time: derive the name from the CR
>> watches.yaml:11:34: `now` is random: only the body of a child with `apply: {strategy: create-only}` may use it

== a random name behind a variable, and in a macro
children:
  a: {template: a.yaml, apply: {strategy: create-only}}
-- templates/a.yaml
{% set suffix = random_password(6) | lower %}
{% macro place() %}at-{{ now() }}{% endmacro %}
apiVersion: v1
kind: Secret
metadata:
  name: >-
    {{ metadata.name }}-{{ suffix }}
  namespace: "{% if spec.x %}{{ place() }}{% endif %}"
>> templates/a.yaml:2:26: `now` in metadata.namespace would create another object each time: derive the namespace from the CR
>> templates/a.yaml:7:28: `suffix` in metadata.name would create another object each time: derive the name from the CR
>> templates/a.yaml:8:33: `place()` in metadata.namespace would create another object each time: derive the namespace from the CR

== certificates and hashes of passwords
let: {x: "{{ genCA('x').Cert }}"}
children:
  a: {object: {apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {x: "{{ htpasswd('a', 'b') }}"}}}
  b: {object: {apiVersion: v1, kind: Secret, metadata: {name: "{{ genSelfSignedCert('x').Key | sha256(8) }}"}}, apply: {strategy: create-only}}
  c: {object: {apiVersion: v1, kind: Secret, metadata: {name: c}, stringData: {x: "{{ htpasswd('a', 'b') }}"}}, apply: {strategy: create-only}}
>> watches.yaml:4:16: `genCA` is random: only the body of a child with `apply: {strategy: create-only}` may use it
>> watches.yaml:6:89: `htpasswd` is random: only the body of a child with `apply: {strategy: create-only}` may use it
>> watches.yaml:7:69: `genSelfSignedCert` in metadata.name would create another object each time: derive the name from the CR

== a renewal before the certificate is made
children:
  a: {renewBefore: 400d, object: {apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {x: "{{ genSelfSignedCert('x', days=365).Cert }}"}}, apply: {strategy: create-only}}
  b: {renewBefore: 365d, object: {apiVersion: v1, kind: Secret, metadata: {name: b}, stringData: {x: "{{ genCA('x').Cert }}"}}, apply: {strategy: create-only}}
  c: {renewBefore: 400d, object: {apiVersion: v1, kind: Secret, metadata: {name: c}, stringData: {x: "{{ genCA('x', spec.days).Cert }}"}}, apply: {strategy: create-only}}
>> watches.yaml:5:9: `renewBefore` must be shorter than the 365 days of `genSelfSignedCert`

== the time
let: {v: "{{ after(spec.t, '1h') }}", w: "{{ 1 if v }}"}
observe: {o: {version: v1, kind: Pod, name: "{{ w }}"}}
reach: cluster
children:
  a:
    forEach: range(2 if after(spec.t) else 1)
    namespace: "{{ 'a' if after(spec.t, 5) }}"
    apply: {ignore: [{path: data.x, when: v}]}
    object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {z: '{{ v }}'}}
  b: {template: b.yaml, waitFor: "within('0 2 * *', '2 h', 'Mars') or within('@every 1h', length='1h', zones='UTC')"}
status: {a: "{{ after('2026-01-01') }}{{ after() }}{{ duration('2') }}{{ after(*spec.list) }}"}
-- templates/b.yaml
apiVersion: v1
kind: ConfigMap
metadata: {name: b}
data: {x: "{{ after(spec.t, '2') }}"}
>> templates/b.yaml:4:15: `after`: the duration "2" needs a unit: "2s", "2m" or "2h"
>> watches.yaml:5:51: `observe` cannot depend on the time, as `w` does: use it in `when`, or where it decides a value of a field
>> watches.yaml:9:27: `forEach` cannot depend on the time, as `after` does: use it in `when`, or where it decides a value of a field
>> watches.yaml:10:29: `namespace` cannot depend on the time, as `after` does: use it in `when`, or where it decides a value of a field
>> watches.yaml:11:45: `apply.ignore` cannot depend on the time, as `v` does: use it in `when`, or where it decides a value of a field
>> watches.yaml:13:37: `within` takes schedule and length, optionally zone
>> watches.yaml:13:37: `within`: "0 2 * *" is not a cron schedule with fixed times: expected exactly 5 fields, found 4: [0 2 * *]
>> watches.yaml:13:37: `within`: "2 h" is not a duration: write it like "10h", "1h30m" or "0s"
>> watches.yaml:13:37: `within`: "Mars" is not a time zone: write it like "Europe/Berlin"
>> watches.yaml:14:19: `after` takes time, optionally delay
>> watches.yaml:14:19: `after`: "2026-01-01" is not a time: write it like "2026-01-31T12:00:00Z"
>> watches.yaml:14:57: `duration`: the duration "2" needs a unit: "2s", "2m" or "2h"

== a request id that changes with each write
let: {version: "{{ cr.metadata.resourceVersion }}"}
children:
  a: {once: "{{ metadata.resourceVersion }}", object: {apiVersion: batch/v1, kind: Job, metadata: {name: a}}}
  b: {once: "{{ spec.tag }}-{{ version }}", object: {apiVersion: batch/v1, kind: Job, metadata: {name: b}}}
  c: {once: "{{ metadata.generation }}", object: {apiVersion: batch/v1, kind: Job, metadata: {name: c}}}
>> watches.yaml:6:19: `metadata.resourceVersion` changes whenever the CR is written, so it would run without end: use a field of the spec, or `metadata.generation`
>> watches.yaml:7:34: `version` changes whenever the CR is written, so it would run without end: use a field of the spec, or `metadata.generation`

== a request id of all that changes with each write or run
let: {digest: "{{ cr | to_json | sha256 }}"}
children:
  a: {once: "{{ metadata | to_yaml | hash }}", object: {apiVersion: batch/v1, kind: Job, metadata: {name: a}}}
  b: {once: "v-{{ digest }}", object: {apiVersion: batch/v1, kind: Job, metadata: {name: b}}}
  c: {once: "{{ status | to_json | sha1 }}", object: {apiVersion: batch/v1, kind: Job, metadata: {name: c}}}
  d: {once: "{{ status.conditions | string }}", object: {apiVersion: batch/v1, kind: Job, metadata: {name: d}}}
  e: {once: "{{ random_password(3) }}", object: {apiVersion: batch/v1, kind: Job, metadata: {name: e}}}
>> watches.yaml:6:19: `metadata` changes whenever the CR is written, so it would run without end: use a field of the spec, or `metadata.generation`
>> watches.yaml:7:21: `digest` changes whenever the CR is written, so it would run without end: use a field of the spec, or `metadata.generation`
>> watches.yaml:8:19: `status` changes whenever a run begins or ends, so it would run without end: use a field of the spec, or `metadata.generation`
>> watches.yaml:9:19: `status.conditions` changes whenever a run begins or ends, so it would run without end: use a field of the spec, or `metadata.generation`
>> watches.yaml:10:19: `random_password` is random: only the body of a child with `apply: {strategy: create-only}` may use it

== a request id of a part of what changes
let: {labels: "{{ metadata.labels | to_json | hash }}"}
children:
  a: {once: "{{ metadata.get('labels') | to_json }}", object: {apiVersion: batch/v1, kind: Job, metadata: {name: a}}}
  b: {once: "{{ labels }}-{{ status.version }}", object: {apiVersion: batch/v1, kind: Job, metadata: {name: b}}}
  c: {once: "{{ status | to_json }}", object: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}
  d: {once: "{{ after(metadata.creationTimestamp, 60) }}", object: {apiVersion: v1, kind: ConfigMap, metadata: {name: d}}}
  e: {once: "{{ spec | to_json | sha256 }}", object: {apiVersion: batch/v1, kind: Job, metadata: {name: e}}}

== random in lists and branches
children:
  a: {template: j.yaml}
  b: {object: {apiVersion: v1, kind: Secret, metadata: "{{ now() }}"}, apply: {strategy: create-only}}
  c: {object: {apiVersion: batch/v1, kind: Job, metadata: {name: x, labels: {a: "{{ now() }}"}}}}
-- templates/j.yaml
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
>> templates/j.yaml:6:16: `now` is random: only the body of a child with `apply: {strategy: create-only}` may use it
>> templates/j.yaml:7:14: `now` is random: only the body of a child with `apply: {strategy: create-only}` may use it
""")


@table(*ROWS)
def test_nondeterministic_templates_are_reported_with_their_positions(row: Row) -> None:
    assert said(row.watches, row.files, row.environ) == row.said
