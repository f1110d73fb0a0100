"""`forEachOf` in a finalize child: what it may name, and what the child sees."""

from __future__ import annotations

from ruleop.language.rules import ItemEnd, Ordinary
from tests.language.rules.projects import Row, rows, rule, said, table

LOOP = "forEach: spec.tenants, as: tenant, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ tenant }}'}}"
OBJECT = "object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}"

ROWS = rows("""
== what it may name
children:
  a: {forEach: spec.tenants, as: tenant, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ tenant }}'}}}
  b: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}}
  c: {forEach: spec.x, patch: {version: v1, kind: ConfigMap, name: x, fields: {data: {a: b}}}}
  d: {forEach: spec.x, template: two.yaml}
  e: {forEachOf: a, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}}
finalize:
  f: {forEachOf: b, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}}
  g: {forEachOf: c, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}}
  h: {forEachOf: d, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}}
  i: {forEachOf: f, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}}
  j: {forEachOf: aa, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}}
  k: {forEachOf: a, forEach: spec.x, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}}
  l: {forEachOf: a, dependsOn: [f], object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}}
-- templates/two.yaml
apiVersion: v1
kind: ConfigMap
metadata: {name: x}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: x}
---
>> watches.yaml:9:9: "e" is made while its item exists: `forEachOf` is for `finalize`
>> watches.yaml:11:20: "b" makes no object for each item of a `forEach`, so it has no items that end
>> watches.yaml:12:20: "c" makes no object for each item of a `forEach`, so it has no items that end
>> watches.yaml:13:20: "d" makes several objects for each item, and one of them has to stand for the item: make several children of its template
>> watches.yaml:14:20: "f" is a finalize child: `forEachOf` names a child with `forEach`
>> watches.yaml:15:20: no child has the id "aa" (the ids are "a", "b", "c", "d" and "e")
>> watches.yaml:16:23: a child has "forEachOf" and "forEach": remove "forEach", because it is made for one item, and removed when that has ended
>> watches.yaml:17:23: a child has "forEachOf" and "dependsOn": remove "dependsOn", because it is made for one item, and removed when that has ended

== what it sees
children:
  a: {forEach: spec.tenants, as: tenant, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ tenant }}'}}}
finalize:
  f:
    forEachOf: a
    when: tenant
    readyWhen: this.data.x == tenant
    object:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "{{ tenant }}"}
      data:
        x: "{{ a | length }} {{ live.a | length }}"
        i: "{{ index }}"
        j: "{{ item }}"
        k: "{{ g.x }}"
        l: "{{ ready.a }}"
  g:
    dependsOn: [f]
    object: {apiVersion: v1, kind: ConfigMap, metadata: {name: g}, data: {x: "{{ live.f }}", w: "{{ f.x }}"}}
>> watches.yaml:17:18: the finalize child "f" cannot read `index`: the item has no position when it has ended
>> watches.yaml:18:18: `item` is not available in the finalize child "f"; here the item is named `tenant`
>> watches.yaml:19:18: the finalize child "f" cannot read the finalize child `g`: one with `forEachOf` is made for one item, and reads no other finalize child, nor is it read by one
>> watches.yaml:20:18: the finalize child "f" cannot read `ready.`: one with `forEachOf` is made for one item, and reads no other finalize child, nor is it read by one
>> watches.yaml:22:19: "g" cannot depend on "f": one with `forEachOf` is made for one item, and reads no other finalize child, nor is it read by one
>> watches.yaml:23:84: `live.f`: one with `forEachOf` is made for one item, and reads no other finalize child, nor is it read by one
>> watches.yaml:23:103: the finalize child "g" cannot read the finalize child `f`: one with `forEachOf` is made for one item, and reads no other finalize child, nor is it read by one

== items of Secrets
observe:
  login: {version: v1, kind: Secret, name: login}
let:
  users: "{{ login.data.users }}"
children:
  a: {forEach: login.data.users, as: tenant, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ tenant }}'}}}
  b: {forEach: users, as: tenant, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ tenant }}'}}}
  c: {forEach: login.data.users, as: tenant, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}
finalize:
  f: {forEachOf: a, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}}
  g: {forEachOf: b, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}}
>> watches.yaml:9:18: `login.data.users` would give the items data of a Secret, and they are recorded for `forEachOf`: loop over something else, and read the Secret in the body
>> watches.yaml:10:18: `users` would give the items data of a Secret, and they are recorded for `forEachOf`: loop over something else, and read the Secret in the body
""")


@table(*ROWS)
def test_mistakes_are_reported_at_their_place(row: Row) -> None:
    found = said(row.watches, row.files)
    assert [each for each in found if "would expose" not in each] == row.said


def test_the_child_knows_what_ends_its_items_and_needs_no_garbage_collector() -> None:
    found = rule(f"children: {{a: {{{LOOP}}}}}\nfinalize: {{f: {{forEachOf: a, {OBJECT}}}, g: {{{OBJECT}}}}}")
    assert (found.children["a"].form, found.children["a"].deletion.in_order) == (Ordinary(ended_by=("f",)), True)
    assert (found.finalize["f"].form, found.finalize["f"].many) == (ItemEnd("a"), True)
    assert (found.finalize["g"].form, found.finalize["g"].many) == (Ordinary(), False)
    assert found.item_ends == (found.finalize["f"],)
