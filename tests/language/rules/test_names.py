"""The scope of names in expressions."""

from __future__ import annotations

import pytest

from ruleop.language.rules.checks.read_names import OWN_CONDITIONS
from tests.definitions import definition
from tests.language.rules.projects import Row, rows, said, table, watch

ROWS = rows("""
== unknown name in a template
children:
  a: {template: a.yaml}
-- templates/a.yaml
apiVersion: v1
kind: Service
metadata: {name: a}
spec:
  x: {{ spce.size }}
>> templates/a.yaml:5:9: "spce" is not known in the child "a" (did you mean "spec"?)

== a name that is set by the caller of a rendered file
children:
  a: {template: a.yaml}
-- templates/a.yaml
{% set tls = spec.tls %}
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data:
  x: {{ render('x.txt') }}
  {% include 'y.yaml' %}
-- templates/x.txt
{% include 'z.txt' %}{{ tls }} {{ render('w.txt') }}
-- templates/y.yaml
own: "{{ tls }}"
-- templates/z.txt
{% set z = 1 %}{{ z }}
-- templates/w.txt
{{ z }}
>> templates/w.txt:1:4: "z" is not known in the child "a": a file of `render()` sees no name that its caller has `set`; include it, or use `let`
>> templates/x.txt:1:25: "tls" is not known in the child "a": a file of `render()` sees no name that its caller has `set`; include it, or use `let`

== unknown name in an include
children:
  a: {template: a.yaml}
-- templates/a.yaml
apiVersion: v1
kind: Service
metadata: {name: a}
spec:
  {% include 'b.yaml' %}
-- templates/b.yaml
x: {{ spce.size }}
>> templates/b.yaml:1:7: "spce" is not known in the child "a" (did you mean "spec"?)

== unknown function
children:
  a: {template: a.yaml, when: "has_knd('v1', 'Pod')"}
  b: {template: a.yaml, when: "has_kind('v1', 'Pod')"}
>> watches.yaml:5:34: unknown function "has_knd" (did you mean "has_kind"?)

== names and functions of Helm and Ansible
children:
  a: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ Release.Name }}"}, data: {x: "{{ Values.x }}", w: "{{ ansible_operator_meta.name }}"}}}
  b: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {x: "{{ lookup(spec.x, 'x') }}", w: "{{ include('x') }}", z: "{{ hasKey(spec, 'x') }}"}}}
  c: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {x: "{{ default('a', spec.x) }}", w: "{{ toYaml(spec) }}", z: "{{ quote .Values }}"}}}
  d: {template: a.yaml, when: "spec.x == null", waitFor: "empty(spec.x) or len(spec.y)", deletion: "{{ hostvars.a }}"}
  e: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: e}, data: {x: "{{ sepc.x }}", w: "{{ trimSuffix('a', spec.x) }}"}}}
>> watches.yaml:5:72: "Release" is not known in the child "a": write metadata.name or metadata.namespace
>> watches.yaml:5:105: "Values" is not known in the child "a": write spec.x
>> watches.yaml:5:126: "ansible_operator_meta" is not known in the child "a": write metadata.name and metadata.namespace
>> watches.yaml:6:86: unknown function "lookup": read objects of the cluster with `observe` in the watch, a file of templates/ with `file('x')`, the environment with `vars`
>> watches.yaml:6:118: unknown function "include": write a macro and import it: `{% from 'macros.j2' import labels %}`, then `{{ labels() }}`
>> watches.yaml:6:143: unknown function "hasKey": write `'key' in x`, or `x.key is defined`
>> watches.yaml:7:86: unknown function "default": write `x | default('a')`
>> watches.yaml:7:119: unknown function "toYaml": write `{{ x }}` alone on its line, below the key: its fields or items are inserted there, indented as the line is; `x | to_yaml` is text
>> watches.yaml:7:144: "quote" is not known in the child "c": write `x | quote`
>> watches.yaml:8:44: "null" is not known in `when`: write none
>> watches.yaml:8:61: unknown function "empty": write `not x`
>> watches.yaml:8:78: unknown function "len": write `x | length`
>> watches.yaml:8:106: "hostvars" is not known in `deletion`: ruleop has no inventory of hosts; what a rule needs is in `spec` or `vars`
>> watches.yaml:9:86: "sepc" is not known in the child "e" (did you mean "spec"?)
>> watches.yaml:9:105: unknown function "trimSuffix": write `x.removesuffix('a')`

== block scalar
status:
  x: |
    {% set y = 1 %}
    {{ speck.size + y }}
>> watches.yaml:7:10: "speck" is not known in `status` (did you mean "spec"?)

== item outside of forEach
children:
  a: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: '{{ item.x }}'}}}
  b: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: '{{ item.x }} {{ index }} {{ this }} '}}, forEach: spec.list, as: thing}
  c: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: '{{ thing.x }} {{ index }}'}}, forEach: spec.list, as: thing}
  d: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: '{{ item.x }} {{ index }}'}}, forEach: "spec.list[item]", when: item.on, waitFor: item.on, deletion: "{{ item.deletion }}"}
>> watches.yaml:5:86: `item` is available only with `forEach`, not in the child "a"
>> watches.yaml:6:86: `item` is not available in the child "b"; here the item is named `thing`
>> watches.yaml:6:111: `this` is available only in `readyWhen` and `where`, not in the child "b"
>> watches.yaml:8:132: `item` is available only with `forEach`, not in `forEach`

== this
children:
  a: {template: a.yaml, readyWhen: this.status.x == spec.x and b, when: this.x}
  b: {template: a.yaml}
>> watches.yaml:5:66: `readyWhen` cannot read the child `b`, only the CR, vars, let and observed objects
>> watches.yaml:5:75: `this` is available only in `readyWhen` and `where`, not in `when`

== the child itself
children:
  sts: {template: a.yaml, readyWhen: sts.status.x == 1 and live.sts.status.y == 1, when: sts.x}
>> watches.yaml:5:40: `readyWhen` cannot read the child `sts`, only the CR, vars, let and observed objects: write `this` for the child itself
>> watches.yaml:5:62: `readyWhen` cannot read `live.`, only the CR, vars, let and observed objects: write `this` for the child itself
>> watches.yaml:5:92: `when` cannot read the child `sts`, only the CR, vars, let and observed objects: use `waitFor`, or an {% if %} in the template over `live.`

== words of YAML 1.1
children:
  a: {template: a.yaml, when: 'no', waitFor: 'On', readyWhen: this.x == Yes}
>> watches.yaml:5:34: "no" is not known in `when`: write false
>> watches.yaml:5:49: "On" is not known in `waitFor`: write true
>> watches.yaml:5:75: "Yes" is not known in `readyWhen`: write true

== dependencies by their kind
children:
  a: {template: a.yaml, dependsOn: [service, statefulset, bb]}
  svc: {object: {apiVersion: v1, kind: Service, metadata: {name: b}}, dependsOn: [a]}
  sts: {object: {apiVersion: apps/v1, kind: StatefulSet, metadata: {name: b}}}
>> watches.yaml:5:39: no child has the id "service" (the ids are "a", "sts" and "svc")
>> watches.yaml:5:48: no child has the id "statefulset" (did you mean "sts", the StatefulSet?)
>> watches.yaml:5:61: no child has the id "bb" (the ids are "a", "sts" and "svc")

== when over children
children:
  a: {template: a.yaml, when: b.spec.x, waitFor: b.spec.x and live.a.x}
  b: {template: a.yaml, when: live.a.x or ready.a}
>> watches.yaml:5:33: `when` cannot read the child `b`, only the CR, vars, let and observed objects: use `waitFor`, or an {% if %} in the template over `live.`
>> watches.yaml:6:33: `when` cannot read `live.`, only the CR, vars, let and observed objects: use `waitFor`, or an {% if %} in the template over `live.`
>> watches.yaml:6:45: `when` cannot read `ready.`, only the CR, vars, let and observed objects: use `waitFor`, or an {% if %} in the template over `live.`

== let
let:
  a: "{{ b }}"
  b: "{{ pods | length }} {{ cr.spec.x }} {{ a }}"
  c: "{{ child.x }} {{ live.child }}"
children:
  child: {template: a.yaml}
observe:
  pods: {version: v1, kind: Pod, selector: {app: x}}
>> watches.yaml:5:12: `let` cannot read `b`: a let sees only the names before it
>> watches.yaml:7:12: `let` cannot read the child `child`, only the CR, vars, let and observed objects
>> watches.yaml:7:26: `let` cannot read `live.`, only the CR, vars, let and observed objects

== observe reads
let:
  plain: "{{ metadata.name }}"
  deep: "{{ one.data.x }}"
  deeper: "{{ deep }}"
observe:
  one: {version: v1, kind: ConfigMap, name: "{{ plain }}-{{ vars.x }}"}
  two: {version: v1, kind: ConfigMap, name: "{{ one.data.x }}"}
  three: {version: v1, kind: ConfigMap, selector: {app: "{{ deeper }}"}}
vars: {x: 1}
>> watches.yaml:10:51: `observe` cannot read the observed `one`: observed objects must not depend on observed objects
>> watches.yaml:11:63: `observe` cannot read the let `deeper`, which reads the observed `one`

== validate reads
validate:
  - {rule: a.spec.x > 1, message: "{{ ready.a }}"}
children:
  a: {template: a.yaml}
>> watches.yaml:5:14: `validate` cannot read the child `a`, only the CR, vars, let and observed objects
>> watches.yaml:5:41: `validate` cannot read `ready.`, only the CR, vars, let and observed objects

== items of other loops
children:
  a: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: '{{ team }} {{ env }} {{ index }} {{ item }}'}}, when: env, forEach: {team: env, env: team + index + env}}
>> watches.yaml:5:119: `item` is not available in the child "a"; here the item is named `env`
>> watches.yaml:5:158: `forEach` cannot read `env` here: a list sees only the items of the loops before it
>> watches.yaml:5:175: `index` is not available in `forEach`; here the item is named `team`
>> watches.yaml:5:183: `forEach` cannot read `env` here: a list sees only the items of the loops before it

== status reads status
let: {x: "{{ status.y }}", z: "{{ x }}", w: "{{ cr.status.y }}"}
status:
  a: "{{ status.a }}"
  b: "{{ cr.status.a }}"
  c: "{{ z }}"
  d: "{{ w }}"
conditions:
  - {type: Fine, status: status.a}
>> watches.yaml:6:12: `status` cannot read `status`, because it would change what it reads: read the children instead
>> watches.yaml:7:12: `status` cannot read `status`, because it would change what it reads: read the children instead
>> watches.yaml:8:12: `status` cannot read the let `z`, which reads `status`: the status would change what it reads
>> watches.yaml:9:12: `status` cannot read the let `w`, which reads `status`: the status would change what it reads

== finalize reads
children:
  a: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: '{{ f.x }} {{ live.f.x }}'}}}
finalize:
  f: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: '{{ a.x }} {{ live.a.x }} {{ ready.a }}'}}}
  g: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: '{{ f.x }} {{ live.f }} {{ ready.f }}'}}}
status: {x: "{{ f.x }} {{ live.g }}"}
>> watches.yaml:5:86: the child "a" cannot read the finalize child `f`, which exists only during deletion
>> watches.yaml:5:96: `live.f`: a finalize child exists only during deletion
>> watches.yaml:7:111: `ready.a`: children are not rendered during deletion, so their readiness is unknown

== live and ready
children:
  a: {template: a.yaml, waitFor: "live.bb and ready.bb and live and ready[spec.x] and live[spec.x]"}
  bbb: {template: a.yaml}
>> watches.yaml:5:37: `live.bb`: no child has the id "bb" (the ids are "a" and "bbb")
>> watches.yaml:5:37: `live` needs an id in plain text, `live.a`, so that ruleop knows what the template reads
>> watches.yaml:5:49: `ready.bb`: no child has the id "bb" (the ids are "a" and "bbb")
>> watches.yaml:5:49: `ready` needs an id in plain text, `ready.a`, so that ruleop knows what the template reads

== vars
vars: {image: x}
children:
  a: {template: a.yaml, when: vars.imgae == vars.image}
>> watches.yaml:6:33: warning: vars has no "imgae" (did you mean "image"?)

== set of a taken name
children:
  a: {template: a.yaml}
  b: {template: a.yaml}
-- templates/a.yaml
{% set spec = 1 %}
{% macro b() %}{% endmacro %}
{% for item in spec.x %}{% endfor %}
apiVersion: v1
kind: Service
metadata: {name: a}
>> templates/a.yaml:1:8: a template cannot set "spec", which is already defined: choose another name
>> templates/a.yaml:2:10: a template cannot set "b", which is already defined: choose another name

== shared lets
-- watches.yaml
let: {name: 'x', other: '{{ pods }}'}
watches:
- group: example.com
  version: v1
  kind: App
  let: {x: '{{ other }}', name: '{{ x }}'}
>> watches.yaml:1:29: "pods" is not known in `let`
>> watches.yaml:6:37: `let` cannot read `x`: a let sees only the names before it
""")


@table(*ROWS)
def test_errors_in_names_are_reported_with_their_positions(row: Row) -> None:
    assert said(row.watches, row.files, row.environ) == row.said


@pytest.mark.parametrize("type_", OWN_CONDITIONS)
def test_a_condition_type_of_ruleop_is_refused(type_: str) -> None:
    mistakes = said(watch(f"children: {{a: {{template: a.yaml}}}}\nconditions: [{{type: {type_}, status: spec.x}}]"))
    assert mistakes == [f'watches.yaml:5:23: the condition "{type_}" is set by ruleop: choose another type']


def test_a_field_of_the_spec_is_suggested_for_its_name_alone() -> None:
    spec = "{type: object, properties: {image: {type: string}, imagePullPolicy: {type: string}}}"
    body = """
children:
  a:
    when: image_pull_policy == 'Always'
    object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ image }}"}, data: {a: "{{ imag }}"}}
"""
    assert said(watch(body), {"crds/apps.yaml": definition(spec=spec)}) == [
        'watches.yaml:6:13: "image_pull_policy" is not known in `when` (did you mean "spec.imagePullPolicy"?)',
        'watches.yaml:7:70: "image" is not known in the child "a" (did you mean "spec.image"?)',
        'watches.yaml:7:96: "imag" is not known in the child "a"',
    ]
