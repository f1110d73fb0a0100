"""Strings that are valid but probably not intended."""

from __future__ import annotations

from tests.language.rules.projects import Row, rows, said, table, watch

ROWS = rows("""
== looks like an expression
observe:
  pods: {version: v1, kind: Pod, name: metadata.name}
let:
  a: {b: [spec.size]}
  c: pods | length
status:
  a: pods[0].metadata.name
  b: not spec.x
  c: spec.size is big, I think
  d: nobody.knows
  e: "a spec.size"
  f: "{{ spec.size }}"
validate:
  - {rule: spec.x, message: spec.ingress needs a host}
  - {rule: spec.x, message: spec.ingress}
>> watches.yaml:5:42: warning: "metadata.name" is plain text here, but looks like an expression: write "{{ metadata.name }}" if it is one
>> watches.yaml:7:13: warning: "spec.size" is plain text here, but looks like an expression: write "{{ spec.size }}" if it is one
>> watches.yaml:8:8: warning: "pods | length" is plain text here, but looks like an expression: write "{{ pods | length }}" if it is one
>> watches.yaml:10:8: warning: "pods[0].metadata.name" is plain text here, but looks like an expression: write "{{ pods[0].metadata.name }}" if it is one
>> watches.yaml:11:8: warning: "not spec.x" is plain text here, but looks like an expression: write "{{ not spec.x }}" if it is one
>> watches.yaml:18:31: warning: "spec.ingress" is plain text here, but looks like an expression: write "{{ spec.ingress }}" if it is one

== expressions of kro
children:
  web: {template: web.yaml}
  config:
    object:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: web, labels: {app: "${schema.metadata.name}"}}
      data:
        port: "${web.status.port} of ${other.status.port}"
        script: echo ${schema} ${NAME:-web.spec}
-- templates/web.yaml
apiVersion: v1
kind: Service
metadata: {name: a}
spec:
  clusterIP: ${ schema.spec.address }  # not ${schema.spec.name}
  # ${schema.spec.name}
>> templates/web.yaml:5:14: ${ schema.spec.address } is an expression of kro, and plain text here: write {{ spec.address }}
>> watches.yaml:10:45: ${schema.metadata.name} is an expression of kro, and plain text here: write {{ metadata.name }}
>> watches.yaml:12:17: ${web.status.port} is an expression of kro, and plain text here: write {{ web.status.port }}
""")


@table(*ROWS)
def test_probably_unintended_strings_are_reported_with_their_positions(row: Row) -> None:
    assert said(row.watches, row.files, row.environ) == row.said


def test_a_host_name_that_starts_with_an_id_is_not_an_expression() -> None:
    text = """
    children:
      app: {template: a.yaml}
    status: {host: app.example.com, size: app.spec.replicas, all: "app | length", one: "app['a'].x"}
    """
    assert [line.split('"')[1] for line in said(watch(text))] == ["app.spec.replicas", "app | length", "app['a'].x"]


def test_the_path_of_a_field_of_the_pod_is_not_an_expression() -> None:
    text = """
    children:
      app:
        object:
          apiVersion: v1
          kind: Pod
          metadata: {name: "{{ metadata.name }}"}
          spec:
            containers:
              - name: app
                image: metadata.name
                env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    """
    assert [line.split(":")[1] for line in said(watch(text))] == ["13"]
