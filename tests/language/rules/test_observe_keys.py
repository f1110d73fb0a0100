"""Keys of an observed resource that exclude or need each other."""

from __future__ import annotations

from tests.language.rules.projects import Row, rows, said, table

ROWS = rows("""
== keys
observe:
  a: {version: v1, kind: Pod, forEach: spec.a, selector: {a: b}}
  b: {version: v1, kind: Pod, name: x, as: thing}
  c: {version: v1, kind: Pod, name: x, where: this.spec}
  d: {version: v1, kind: Pod, selector: {a: b}, namespaces: all, namespace: default}
  e: {version: v1, kind: Pod, selector: {a: b}, name: x}
  f: {version: v1, kind: Pod, name: x, namespaces: all}
  g: {version: v1, kind: Pod, selector: {a: b}, namespaces: some}
  h: {version: v1, kind: Pod}
  i: {version: v1, kind: Pod, where: this.spec, namespaces: all}
  j: {version: v1, kind: Pod, as: thing}
  k: {version: v1, kind: Pod, selector: {}}
  l: {version: v1, kind: Pod, ownedBy: web, namespaces: all}
>> watches.yaml:5:33: an observed resource has "forEach", which requires "name"
>> watches.yaml:6:42: an observed resource has "as", which requires "forEach"
>> watches.yaml:7:42: the observed resource "c" is one object, and "where" selects objects of a list: use `when` or `waitFor` of a child
>> watches.yaml:8:51: an observed resource has both "namespace" and "namespaces": remove one of them
>> watches.yaml:8:51: the observed resource "d" may be in another namespace than its CR: set `reach: cluster` in the watch to allow that
>> watches.yaml:8:79: the observed resource "d" may be in another namespace than its CR: set `reach: cluster` in the watch to allow that
>> watches.yaml:9:33: an observed resource has both "name" and "selector": remove one of them
>> watches.yaml:10:42: an observed resource has "name" and "namespaces": remove "namespaces", because a name is looked up in one namespace
>> watches.yaml:10:42: the observed resource "f" may be in another namespace than its CR: set `reach: cluster` in the watch to allow that
>> watches.yaml:11:63: "namespaces" must be "all", not the text "some"
>> watches.yaml:13:51: the observed resource "i" may be in another namespace than its CR: set `reach: cluster` in the watch to allow that
>> watches.yaml:14:33: an observed resource has "as", which requires "forEach"
>> watches.yaml:15:43: "selector" is empty: to match everything, leave the key out
>> watches.yaml:16:42: no child has the id "web"
>> watches.yaml:16:47: an observed resource has "ownedBy" and "namespaces": remove "namespaces", because they are where their owner is

== owners
children:
  web: {object: {apiVersion: apps/v1, kind: Deployment, metadata: {name: w}}}
  map: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: m}}}
  far: {patch: {version: v1, kind: ConfigMap, name: x, fields: {data: {a: b}}}}
observe:
  a: {version: v1, kind: Pod, ownedBy: wep}
  b: {version: v1, kind: Pod, ownedBy: map}
  c: {version: v1, kind: Pod, ownedBy: far}
  d: {version: v1, kind: Pod, ownedBy: web, selector: {a: b}}
  e: {version: v1, kind: Pod, ownedBy: web, namespace: shop}
  f: {version: v1, kind: Pod, selector: {a: b}, through: []}
  g: {version: v1, kind: Pod, ownedBy: web, through: [Job]}
  h: {group: apps, version: v1, kind: Deployment, ownedBy: web}
  i: {version: v1, kind: Pod, ownedBy: map, through: [apps/v1/ReplicaSet]}
>> watches.yaml:9:42: no child has the id "wep" (did you mean "web"?)
>> watches.yaml:10:42: which owners are between ConfigMap and Pod is not known: list their kinds in `through`, outermost first; `through: []` if there are none
>> watches.yaml:11:42: "far" has `patch`: its objects belong to somebody else. Use `selector` or `name`
>> watches.yaml:12:33: an observed resource has both "selector" and "ownedBy": remove one of them
>> watches.yaml:13:47: an observed resource has "ownedBy" and "namespace": remove "namespace", because they are where their owner is
>> watches.yaml:14:51: an observed resource has "through", which requires "ownedBy"
>> watches.yaml:15:57: a kind must be a kind with its version, like "v1/ConfigMap" or "apps/v1/Deployment", not "Job"
>> watches.yaml:16:62: which owners are between Deployment and Deployment is not known: list their kinds in `through`, outermost first; `through: []` if there are none

== names
let: {later: "{{ p | length }}"}
observe:
  p: {version: v1, kind: Pod, forEach: p, as: item, name: "{{ index }}{{ this.x }}"}
  q: {version: v1, kind: Pod, forEach: spec.a, as: p, name: "{{ p }}", where: p}
  r: {version: v1, kind: Pod, forEach: later, as: spec, name: "{{ item }}"}
  s: {version: v1, kind: Pod, selector: {x: x}, where: later}
>> watches.yaml:6:42: `observe` cannot read the observed `p`: observed objects must not depend on observed objects
>> watches.yaml:6:76: `this` is available only in `readyWhen` and `where`, not in `observe`
>> watches.yaml:7:54: an item cannot be named "p": watches.yaml:6:5 has an observed resource of that name
>> watches.yaml:7:81: `where` cannot read the observed `p`: observed objects must not depend on observed objects
>> watches.yaml:8:42: `observe` cannot read the let `later`, which reads the observed `p`
>> watches.yaml:8:53: an item cannot be named "spec", which is reserved by ruleop: choose another name
>> watches.yaml:8:69: `item` is not available in `observe`; here the item is named `spec`
>> watches.yaml:9:58: `observe` cannot read the let `later`, which reads the observed `p`
""")


@table(*ROWS)
def test_a_mistake_in_an_observe_is_reported_with_its_position(row: Row) -> None:
    assert said(row.watches, row.files, row.environ) == row.said
