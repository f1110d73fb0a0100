"""`patch` in a child: what is refused when the rules are loaded, and what it becomes."""

from __future__ import annotations

from ruleop.kubernetes.kinds import Kind
from ruleop.language.rules import Patched
from tests.language.rules.projects import Row, rows, rule, said, table

NAMESPACE = "version: v1, kind: Namespace, name: team"

ROWS = (
    *rows("""
== keys of a patch
reach: cluster
children:
  a: {patch: {kind: Namespace, name: x, fields: {metadata: {labels: {a: b}}}}}
  b: {patch: {version: v1, kind: Namespace, name: x}}
  c: {patch: {version: v1, kind: Namespace, name: x, fields: text}}
  d: {patch: {version: v1, kind: Namespace, name: x, fields: {}}}
  e: {patch: {version: v1, kind: Namespace, name: x, fields: {metadata: {}}}}
  f: {patch: {version: v1, kind: Namespace, name: x, forced: true, fields: {spec: {}}}}
  g: {patch: {version: v1, kind: Namespace, name: UP, fields: {metadata: {labels: {a: b}}}}}
>> watches.yaml:6:16: a patch needs the key "version"
>> watches.yaml:7:16: a patch needs the key "fields"
>> watches.yaml:8:64: "fields" must be a mapping, not the text "text"
>> watches.yaml:9:64: "patch" sets no fields
>> watches.yaml:10:64: "patch" sets no fields
>> watches.yaml:11:56: unknown key "forced" in a patch (did you mean "force"?)
>> watches.yaml:12:53: "UP" is not valid: a name has up to 63 lowercase letters, digits and `-`, with a letter or digit at both ends

== fields that cannot be set
children:
  a: {patch: {group: example.com, version: v1, kind: App, name: "{{ metadata.name }}", fields: {metadata: {labels: {a: b}}, spec: {size: 1}}}}
  b: {patch: {group: apps, version: v1, kind: Deployment, name: x, fields: {spec: {template: {spec: {containers: [{image: a}]}}}}}}
  c: {patch: {group: apps, version: v1, kind: Deployment, name: x, fields: {spec: {template: {spec: {containers: [{name: a, ports: [{containerPort: 80}]}]}}}}}}
>> watches.yaml:5:127: `spec` of the CR itself belongs to its authors: set a default in its CRD
>> watches.yaml:6:117: an item of spec.template.spec.containers needs `name`: server-side apply finds the item by it

== a selector
reach: cluster
children:
  a: {patch: {version: v1, kind: Namespace, fields: {metadata: {labels: {a: b}}}}}
  b: {patch: {version: v1, kind: Namespace, name: x, selector: {a: b}, fields: {metadata: {labels: {a: b}}}}}
  c: {patch: {version: v1, kind: ConfigMap, name: x, namespaces: all, fields: {data: {a: b}}}}
  d: {patch: {version: v1, kind: ConfigMap, selector: {a: b}, namespaces: all, namespace: x, fields: {data: {a: b}}}}
  e: {patch: {version: v1, kind: Namespace, selector: {}, fields: {metadata: {labels: {a: b}}}}}
  f: {patch: {version: v1, kind: Secret, selector: {a: b}, namespaces: all, fields: {data: {a: YQ==}}}}
  g: {patch: {version: v1, kind: ConfigMap, selector: {a: "{{ spec.x +}}"}, fields: {data: {a: b}}}}
>> watches.yaml:6:16: a patch needs "name" or "selector"
>> watches.yaml:7:56: a patch has both "name" and "selector": remove one of them
>> watches.yaml:8:56: a patch has "namespaces", which requires "selector"
>> watches.yaml:9:65: a patch has both "namespace" and "namespaces": remove one of them
>> watches.yaml:10:57: "selector" is empty: to match everything, write `matchExpressions: [{key: no-such-label, operator: DoesNotExist}]`
>> watches.yaml:11:88: `data` of a Secret in another namespace than the CR's cannot be set
>> watches.yaml:12:61: template syntax: unexpected 'end of print statement'

== objects of a selector out of reach
children:
  a: {patch: {version: v1, kind: ConfigMap, selector: {a: b}, namespaces: all, fields: {data: {a: b}}}}
  b: {patch: {version: v1, kind: ConfigMap, selector: {a: b}, namespace: "{{ spec.x }}", fields: {data: {a: b}}}}
  c: {patch: {version: v1, kind: ConfigMap, selector: {a: "{{ missing }}"}, fields: {data: {a: b}}}}
  d: {patch: {version: v1, kind: ConfigMap, selector: {a: "{{ within('0 2 * * *', '2h') }}"}, fields: {data: {a: b}}}}
>> watches.yaml:5:65: the child "a" may be in another namespace than its CR: set `reach: cluster` in the watch to allow that
>> watches.yaml:6:76: the child "b" may be in another namespace than its CR: set `reach: cluster` in the watch to allow that
>> watches.yaml:7:65: "missing" is not known in `selector`
>> watches.yaml:8:65: `selector` cannot depend on the time, as `within` does: use it in `when`, or where it decides a value of a field

== fields that no rule may set
reach: cluster
children:
  a: {patch: {version: v1, kind: Namespace, name: x, fields: {status: {phase: Active}}}}
  b: {patch: {version: v1, kind: Namespace, name: x, fields: {metadata: {finalizers: [x/y]}}}}
  c: {patch: {version: v1, kind: Namespace, name: x, fields: {metadata: {ownerReferences: []}}}}
  d: {patch: {version: v1, kind: Namespace, name: x, fields: {spec: {finalizers: [kubernetes]}}}}
  e: {patch: {version: v1, kind: Namespace, name: x, fields: {metadata: {name: y}}}}
  f: {patch: {version: v1, kind: Namespace, name: x, fields: {kind: Pod, spec: {}}}}
  g: {patch: {version: v1, kind: Namespace, name: x, fields: {metadata: {labels: {ruleop.dev/part-of: x}}}}}
>> watches.yaml:6:65: `status` is set by ruleop or the API server: remove it
>> watches.yaml:7:76: `metadata.finalizers` is set by ruleop or the API server: remove it
>> watches.yaml:8:76: `metadata.ownerReferences` is set by ruleop or the API server: remove it
>> watches.yaml:9:72: `spec.finalizers` is not allowed: only the controller that removes a finalizer may set it
>> watches.yaml:10:76: `metadata.name` is not a field to set: write `name` beside `fields`
>> watches.yaml:11:65: `kind` is not a field to set: the patch has `group`, `version` and `kind`
>> watches.yaml:12:85: `metadata.labels['ruleop.dev/part-of']` is set by ruleop or the API server: remove it

== keys of a child beside patch
reach: cluster
children:
  a: {template: a.yaml, patch: {version: v1, kind: Namespace, name: team, fields: {metadata: {labels: {a: b}}}}}
  b: {adopt: orphans, patch: {version: v1, kind: Namespace, name: team, fields: {metadata: {labels: {a: b}}}}}
finalize:
  c: {patch: {version: v1, kind: Namespace, name: team, fields: {metadata: {labels: {a: b}}}}}
>> watches.yaml:6:27: a child has both "template" and "patch": remove one of them
>> watches.yaml:7:9: a child has "patch" and "adopt": remove "adopt", because the object belongs to somebody else
>> watches.yaml:9:5: "c" has `patch`, which is for `children`: fields are released when the CR is deleted

== an object out of reach
children:
  a: {patch: {version: v1, kind: Namespace, name: team, fields: {metadata: {labels: {a: b}}}}}
  b: {patch: {version: v1, kind: ConfigMap, name: x, namespace: "{{ spec.x }}", fields: {data: {a: b}}}}
  c: {patch: {version: v1, kind: ConfigMap, name: x, fields: {data: {a: "{{ spec.y +}}"}}}}
>> watches.yaml:5:16: Namespace is a cluster-scoped kind: set `reach: cluster` in the watch to allow that
>> watches.yaml:6:67: the child "b" may be in another namespace than its CR: set `reach: cluster` in the watch to allow that
>> watches.yaml:7:75: template syntax: unexpected 'end of print statement'
"""),
)


@table(*ROWS)
def test_mistakes_in_a_patch_are_reported_with_their_positions(row: Row) -> None:
    assert said(row.watches, row.files, row.environ) == row.said


def test_a_patch_is_a_body_with_the_identity_of_the_object() -> None:
    found = rule("""
apply: {ignore: [spec.replicas], strategy: server-side}
children:
  scale:
    patch: {group: apps, version: v1, kind: Deployment, name: web, force: true, fields: {spec: {replicas: 2}}}
""")
    child = found.children["scale"]
    assert isinstance(child.form, Patched)
    assert child.form.force
    assert child.form.target.kind == Kind("apps", "v1", "Deployment")
    assert found.patches == (child.form,)
    assert child.kinds == {Kind("apps", "v1", "Deployment")}
    assert child.body.render({}) == [
        {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 2}, "metadata": {"name": "web"}}
    ]
    assert (child.apply.strategy, child.apply.ignore) == ("server-side", ())


def test_a_selector_is_a_list_of_objects_and_the_body_has_only_the_fields() -> None:
    found = rule("""
children:
  maps:
    patch: {version: v1, kind: ConfigMap, selector: {a: "{{ metadata.name }}"}, fields: {data: {a: b}}}
""")
    child = found.children["maps"]
    assert child.many
    assert isinstance(child.form, Patched)
    assert child.form.target.selector is not None
    assert child.body.render({}) == [{"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}, "metadata": {}}]
