"""Secret data is not copied into public fields."""

from __future__ import annotations

import json

import pytest

from ruleop.language.rules.checking import build_project
from tests.language.rules.projects import SERVICE, Row, rows, said, table, watch

ROWS = rows("""
== secrets
observe:
  creds: {version: v1, kind: Secret, name: x}
  all: {version: v1, kind: Secret, selector: {a: b}}
  config: {version: v1, kind: ConfigMap, name: x}
let:
  fine: "{{ creds.metadata.name }}"
  bad: {a: "{{ creds.data.password | b64decode }}"}
  worse: "{{ bad.a }}"
children:
  own: {object: {apiVersion: v1, kind: Secret, metadata: {name: x}, stringData: {a: "{{ bad.a }}"}}}
status:
  a: "{{ creds.data.password }}"
  b: "{{ creds }}"
  c: "{{ creds is defined }} {{ creds.metadata.name }} {{ creds.type }} {{ all | length }} {{ config.data }} {{ fine }}"
  d: "{{ all | map(attribute='metadata.name') | list }}"
  e: "{{ all | map(attribute='data') | list }}"
  f: "{% for s in all %}{{ s.metadata.name }}{% endfor %}"
  g: "{% for s in all %}{{ s.data }}{% endfor %}"
  h: "{% for s in all %}{{ s }}{% endfor %}"
  i: "{{ worse }}"
  j: "{{ own.data.a }} {{ live.own.stringData }} {{ live.own.metadata.uid }}"
  k: "{{ all[0].data }} {{ all[0].metadata }} {{ (all | first).data }}"
  l: "{{ creds[spec.key] }}"
  m: "{{ all | sort(attribute='metadata.name') | map(attribute='metadata.name') | first }}"
  o: "{{ creds.data is defined }} {{ creds.data | length }}"
conditions:
  - {type: Fine, status: creds.data.x == 'a', message: "{{ creds.data.x }}"}
validate:
  - {rule: creds.data.x == 'a', message: "{{ creds.data.x }}"}
>> watches.yaml:15:12: `creds.data.password` would expose the data of a Secret in `status`: use its metadata, or test whether it exists
>> watches.yaml:16:12: `creds` would expose the data of a Secret in `status`: use its metadata, or test whether it exists
>> watches.yaml:19:12: `all.*.data` would expose the data of a Secret in `status`: use its metadata, or test whether it exists
>> watches.yaml:21:21: `all.*.data` would expose the data of a Secret in `status`: use its metadata, or test whether it exists
>> watches.yaml:22:21: `all.*` would expose the data of a Secret in `status`: use its metadata, or test whether it exists
>> watches.yaml:23:12: `worse` would expose the data of a Secret in `status`: use its metadata, or test whether it exists
>> watches.yaml:24:12: `own.data.a` would expose the data of a Secret in `status`: use its metadata, or test whether it exists
>> watches.yaml:24:29: `live.own.stringData` would expose the data of a Secret in `status`: use its metadata, or test whether it exists
>> watches.yaml:25:12: `all.*.data` would expose the data of a Secret in `status`: use its metadata, or test whether it exists
>> watches.yaml:25:12: `all.*.metadata` would expose the data of a Secret in `status`: use its metadata, or test whether it exists
>> watches.yaml:25:12: `all` would expose the data of a Secret in `status`: use its metadata, or test whether it exists
>> watches.yaml:26:12: `creds.*` would expose the data of a Secret in `status`: use its metadata, or test whether it exists
>> watches.yaml:30:28: `creds.data.x` would expose the data of a Secret in `conditions`: use its metadata, or test whether it exists
>> watches.yaml:30:62: `creds.data.x` would expose the data of a Secret in `conditions`: use its metadata, or test whether it exists
>> watches.yaml:32:48: `creds.data.x` would expose the data of a Secret in `validate`: use its metadata, or test whether it exists

== secret in a file that a loop includes
observe:
  all: {version: v1, kind: Secret, selector: {a: b}}
status: status.yaml
-- templates/status.yaml
passwords: "{% for s in all | default([]) %}{{ s.metadata.name }}{% include 'password' %}{% endfor %}"
names: "{% for s in all | default([]) %}{{ s.metadata.name }}{% endfor %}"
-- templates/password
{{ s.data.password }}
>> templates/status.yaml:1:25: `all` would expose the data of a Secret in `status`: use its metadata, or test whether it exists

== secret in a request id, a schedule and a time zone
observe:
  creds: {version: v1, kind: Secret, name: x}
let:
  again: "{{ creds.data.id }}"
children:
  a: {once: "{{ creds.data.id }}", object: {apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {}}}}
  b: {once: "v-{{ again }}", object: {apiVersion: batch/v1, kind: Job, metadata: {name: b}, spec: {template: {}}}}
  c: {schedule: "{{ creds.data.at | b64decode }}", timeZone: "{{ creds.data.zone }}", object: {apiVersion: batch/v1, kind: Job, metadata: {name: c}, spec: {template: {}}}}
  d: {once: "{{ creds.data.id | sha256 }} {{ creds.metadata.resourceVersion }}", object: {apiVersion: batch/v1, kind: Job, metadata: {name: d}, spec: {template: {}}}}
>> watches.yaml:9:19: `creds.data.id` would expose the data of a Secret in `once` of the child a, which everyone can read: use its metadata, or a checksum (`sha256`)
>> watches.yaml:10:21: `again` would expose the data of a Secret in `once` of the child b, which everyone can read: use its metadata, or a checksum (`sha256`)
>> watches.yaml:11:23: `creds.data.at | b64decode` would expose the data of a Secret in `schedule` of the child c, which everyone can read: use its metadata, or a checksum (`sha256`)
>> watches.yaml:11:68: `creds.data.zone` would expose the data of a Secret in `timeZone` of the child c, which everyone can read: use its metadata, or a checksum (`sha256`)

== secret in whole objects
observe:
  creds: {version: v1, kind: Secret, name: x}
  others: {version: v1, kind: Secret, selector: {a: b}}
let:
  parsed: "{{ creds.data.all | b64decode | from_json }}"
children:
  a: {objects: "creds.data.all | b64decode | from_json", kinds: [v1/ConfigMap]}
  b: {objects: parsed, kinds: [v1/Secret]}
  c: {objects: "spec.extra if creds is defined else []", kinds: [v1/ConfigMap]}
>> watches.yaml:10:19: `creds.data.all` would give whole objects from data of a Secret, and everyone can read their names: read the Secret in the body of a `template`
>> watches.yaml:11:18: `parsed` would give whole objects from data of a Secret, and everyone can read their names: read the Secret in the body of a `template`

== secret in a status template
observe:
  creds: {version: v1, kind: Secret, name: x}
status: s.yaml
-- templates/s.yaml
a: {{ creds.metadata.name }}
b: {{ creds.data.x }}
>> templates/s.yaml:2:7: `creds.data.x` would expose the data of a Secret in `status`: use its metadata, or test whether it exists

== secret in a list of arguments
observe:
  creds: {version: v1, kind: Secret, name: x}
status:
  a: "{{ '%s' | format(*[creds.data.a]) }}"
  b: "{{ 1 is divisibleby(*[creds.data.b]) }}"
>> watches.yaml:7:28: `creds.data.a` would expose the data of a Secret in `status`: use its metadata, or test whether it exists
>> watches.yaml:8:31: `creds.data.b` would expose the data of a Secret in `status`: use its metadata, or test whether it exists

== whole secrets in texts
observe:
  creds: {version: v1, kind: Secret, name: x}
  all: {version: v1, kind: Secret, selector: {a: b}}
let:
  names: "{{ all | map(attribute='metadata.name') | list }}"
  whole: "{{ all | list }}"
  count: "{{ all | length }}"
status: s.yaml
conditions:
  - {type: A, status: "creds is defined and all | count > 1"}
  - {type: B, status: "all"}
  - {type: C, status: "all | selectattr('data.x', 'defined') | list | length > 1"}
  - {type: D, status: "(all | selectattr('type', 'equalto', 'x') | list | length) > 1"}
  - {type: E, status: "spec.x in all"}
  - {type: F, status: "names and count and whole"}
  - {type: G, status: "all | tojson"}
  - {type: H, status: "all | map('upper') | list"}
  - {type: I, status: "spec.x | default(all)"}
-- templates/s.yaml
a: {{ all | length }}
{% include 'p.yaml' %}
b:
  {% for s in all | sort(attribute='metadata.name') %}
  b{{ loop.index }}: {{ s.metadata.name }}
  {% endfor %}
-- templates/p.yaml
p: {{ all | to_json }}
q: {% if live is defined %}1{% endif %}
>> templates/p.yaml:1:7: `all` would expose the data of a Secret in `status`: use its metadata, or test whether it exists
>> templates/p.yaml:2:10: `status` cannot read `live.`, only the CR, vars, let and observed objects
>> watches.yaml:14:26: `all` would expose the data of a Secret in `conditions`: use its metadata, or test whether it exists
>> watches.yaml:17:36: `all` would expose the data of a Secret in `conditions`: use its metadata, or test whether it exists
>> watches.yaml:18:46: `whole` would expose the data of a Secret in `conditions`: use its metadata, or test whether it exists
>> watches.yaml:19:26: `all` would expose the data of a Secret in `conditions`: use its metadata, or test whether it exists
>> watches.yaml:20:26: `all` would expose the data of a Secret in `conditions`: use its metadata, or test whether it exists
>> watches.yaml:21:43: `all` would expose the data of a Secret in `conditions`: use its metadata, or test whether it exists
""")


@table(*ROWS)
def test_exposed_secret_data_is_reported_with_its_position(row: Row) -> None:
    assert said(row.watches, row.files, row.environ) == row.said


SECRETS = """
observe:
  one: {version: v1, kind: Secret, name: x}
  all: {version: v1, kind: Secret, selector: {a: b}}
children:
  own: {object: {apiVersion: v1, kind: Secret, metadata: {name: x}}}
  mixed: {template: mixed.yaml}
"""
MIXED = {"templates/mixed.yaml": SERVICE + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: x}\n"}


def shown(expression: str) -> bool:
    """Whether a status of this expression is let through."""
    lines = said(watch(SECRETS + f"status:\n  a: {json.dumps(expression)}\n"), MIXED)
    assert all("would expose the data of a Secret" in line for line in lines)
    return not lines


@pytest.mark.parametrize(
    "expression",
    [
        "{{ one.metadata.name }}",
        "{{ one.type }}",
        "{{ one.metadata.labels }} {{ one.metadata.annotations.owner }}",
        "{{ 'there' if one is defined }}",
        "{{ one.data is defined }}",
        "{{ all | length }}",
        "{{ all | map(attribute='metadata.name') | list }}",
        "{{ all | sort(attribute='metadata.name') | map(attribute='type') | first }}",
        "{% for s in all %}{{ s.metadata.name }}{% endfor %}",
        "{% for s in all | reverse %}{{ loop.index }}{% endfor %}",
        "{{ all[0].metadata.name }}",
        "{{ live.own.metadata.uid }}",
        "{{ mixed['x'].metadata.name }}",
        "{{ ready.own }}",
        "{{ spec.data.password }}",
    ],
)
def test_metadata_of_a_secret_may_be_copied(expression: str) -> None:
    assert shown(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "{{ one }}",
        "{{ one.metadata }}",
        "{{ one.metadata.annotations }}",
        "{{ one.metadata[spec.key] }}",
        "{{ one.metadata.annotations[spec.key] }}",
        "{{ one.metadata.annotations['kubectl.kubernetes.io/last-applied-configuration'] }}",
        "{% for k, v in one.metadata.annotations.items() %}{{ v }}{% endfor %}",
        "{{ all | map(attribute='metadata.annotations') | list }}",
        "{{ one | to_json }}",
        "{{ one.data }}",
        "{{ one['data'].password }}",
        "{{ one[spec.key] }}",
        "{{ one.stringData.x }}",
        "{{ own.data.x }}",
        "{{ live.own }}",
        "{{ live.own.data }}",
        "{{ mixed[0].data }}",
        "{{ mixed['Secret/x'].data.y }}",
        "{{ all }}",
        "{{ all | list }}",
        "{{ (all | first).data }}",
        "{{ all | map(attribute='data.x') | list }}",
        "{% for s in all %}{{ s }}{% endfor %}",
        "{% for s in all %}{{ s.data.x }}{% endfor %}",
        "{% for k in one.data %}{{ k }}{% endfor %}",
        "{% set s = one %}{{ s.data.x }}",
        "{% set s = one.data %}{{ s.x }}",
        "{{ [one][0].data }}",
        "{{ {'a': one}.a.data }}",
        "{{ one if spec.x else 1 }}",
        "{{ spec.x | default(one) }}",
        "{{ one.metadata.name ~ one.data.x }}",
        "{% macro m(s) %}{{ s.data.x }}{% endmacro %}{{ m(one) }}",
    ],
)
def test_copying_data_or_possible_data_of_a_secret_is_refused(expression: str) -> None:
    assert not shown(expression)


HOLDERS = """
observe:
  creds: {version: v1, kind: Secret, name: x}
  all: {version: v1, kind: Secret, selector: {a: b}}
let:
  name: "{{ creds.metadata.name }}"
  password: "{{ creds.data.password | b64decode }}"
  inner: {a: "{{ password }}"}
children:
  own: {object: {apiVersion: v1, kind: Secret, metadata: {name: x}, stringData: {a: b}}}
  named: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {v: "{{ own.metadata.name }} {{ name }} {{ creds.metadata.namespace }}"}}}
  of_named: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {v: "{{ named.data.v }}"}}}
  counted: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {v: "{{ all | length }} {{ creds is defined }}"}}}
  later: {waitFor: creds.data.password == 'x', object: {apiVersion: v1, kind: ConfigMap, metadata: {name: d}}}
  ready: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {v: "{{ all | map(attribute='metadata.name') | join(',') }}"}}}
  data: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: e}, data: {v: "{{ own.data.a }}"}}}
  of_data: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: f}, data: {v: "{{ data.data.v }}"}}}
  name_of_data: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: g}, data: {v: "{{ data.metadata.name }}"}}}
  by_let: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: h}, data: {v: "{{ inner.a }}"}}}
  summed: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: i}, data: {v: "{{ creds | sha256(8) }}"}}}
  noted: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: j}, data: {v: "{{ creds.metadata.annotations | to_json }}"}}}
  items: {forEach: creds.data, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ item.key }}"}, data: {v: "{{ item.value }}"}}}
  live_one: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: k}, data: {v: "{{ live.own.data.a | default('') }}"}}}
  nested: {forEach: {one: "[creds]", two: one.data}, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ index }}"}, data: {v: "{{ two.value }}"}}}
"""


def test_a_child_that_reads_more_than_the_name_of_a_secret_contains_secret_data():
    text = HOLDERS.replace("  ready: {", "  names: {").replace("  items: {", "  each: {")
    (rule,) = build_project({"watches.yaml": watch(text)}, root="/p", environ={}).rules
    holders = {child.id for child in rule.every_child if child.secrecy.holds}
    assert holders == {"own", "data", "of_data", "by_let", "summed", "noted", "each", "live_one", "nested"}


# -- names and namespaces ----------------------------------------------------------------------------------------------


def named(name: str, **more: str) -> list[str]:
    """The mistakes of a rule with a template and an object of this name."""
    children = f"""
  cm: {{template: c.yaml}}
  inline: {{object: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {json.dumps(name)}}}}}}}
"""
    template = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {json.dumps(name)}\n"
    return said(watch(SECRETS + children), {**MIXED, "templates/c.yaml": template, **more})


@pytest.mark.parametrize(
    "name",
    [
        "{{ one.data.name | b64decode }}",
        "db-{{ own.data.name | b64decode | dns_label }}",
        "{{ live.own.data.name | default('x') }}",
        "{{ (all | first).data.x }}",
        "{% set n = one.data.name | lower %}{{ n }}",
        "{% for s in all %}{{ s.data.x }}{% endfor %}",
        "{% macro m(s) %}{{ s }}{% endmacro %}{{ m(one.data.x) }}",
    ],
)
def test_a_name_from_a_secret_is_refused(name: str) -> None:
    places = [line.split(":")[0] for line in named(name)]
    assert sorted(set(places)) == ["templates/c.yaml", "watches.yaml"]
    assert all("would expose the data of a Secret in metadata.name" in line for line in named(name))


@pytest.mark.parametrize(
    "name",
    [
        "{{ one.metadata.name }}-x",
        "{{ one.metadata.labels.app }}",
        "x-{{ one.data | sha256(8) }}",
        "x{{ all | length }}",
        "{{ spec.name }}",
        "{% for s in all %}{{ s.metadata.name }}{{ loop.index }}{% endfor %}",
        "{{ 'a' if one.data.x is defined else 'b' }}",
        "{{ mixed['x'].metadata.name }}",
    ],
)
def test_a_name_from_metadata_or_a_checksum_is_accepted(name: str) -> None:
    assert named(name) == []


def test_a_namespace_from_a_secret_is_refused() -> None:
    head = "apiVersion: v1, kind: ConfigMap, metadata: "
    lines = said(
        watch(
            SECRETS
            + f"""
  a: {{object: {{{head} {{name: a, namespace: "{{{{ one.data.x }}}}"}}}}}}
  b: {{namespace: "{{{{ one.data.x }}}}", object: {{{head} {{name: b}}}}}}
  c: {{template: c.yaml}}
"""
        ),
        {
            **MIXED,
            "templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: '{{ one.data.x }}'}\n",
        },
    )
    found = [line.rpartition("Secret in ")[2].partition(",")[0] for line in lines if "data of a Secret" in line]
    assert found == ["metadata.namespace", "metadata.namespace", "the namespace of the child b"]
