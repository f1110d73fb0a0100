"""Keys, values and functions that former versions had: the message names what does the same."""

from __future__ import annotations

from tests.language.rules.projects import Row, rows, said, table

ROWS = rows("""
== names of an observed resource
observe: {a: {version: v1, kind: Pod, names: [x, y]}}
>> watches.yaml:4:41: unknown key "names" in an observed resource: write `forEach` with the list of names, and `name: "{{ item }}"`

== propagation
children: {a: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, propagation: foreground}}
>> watches.yaml:4:82: unknown key "propagation" in a child: ruleop deletes in the background; `deleteAfter` holds a deletion until other children are gone

== the strategy replace
apply: {strategy: replace}
>> watches.yaml:4:21: "strategy" must be "merge", "server-side" or "create-only", not the text "replace": write `merge`; `apply.own` removes items of others from a list, and `apply.onImmutable: recreate` makes an object again whose immutable fields change

== categories
schema: {spec: {a: string}, categories: [all]}
>> watches.yaml:4:31: unknown key "categories" in schema: write the CRD as a file in crds/ (`ruleop generate crd` prints it), with `spec.names.categories`

== age
status: {old: "{{ age(metadata.creationTimestamp) > duration('2h') }}"}
>> watches.yaml:4:21: unknown function "age": write `after(time, '2h')`, which is true once that has passed since the time
""")


@table(*ROWS)
def test_the_message_names_what_does_the_same(row: Row) -> None:
    assert said(row.watches, row.files, row.environ) == row.said
