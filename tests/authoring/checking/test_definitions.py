"""The whole CRD of a `schema`: the status is inferred, types of the API are filled in, files of crds/ agree."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from ruleop.authoring.checking import check_project
from ruleop.authoring.checking.inferred_definitions import whole_definitions, with_definitions
from ruleop.authoring.generate.crds import crd_files
from ruleop.language.rules import Findings
from ruleop.language.rules.checking import build_with_sources
from tests.authoring.checking.random_schemas import definition_of, schemas
from tests.language.rules.projects import watch

SPEC = """
schema:
  spec:
    size: integer | minimum=1 maximum=3
    mode: string | enum="a,b" default=a
    memory: resource.Quantity | default=10Gi
    hosts: "[]string"
    labels: "map[string]string"
    env: "[]v1.EnvVar"
    free: object
children:
  web:
    object:
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: "{{ metadata.name }}"}
      spec: {replicas: "{{ spec.size }}"}
"""


def said(body: str, **files: str) -> list[str]:
    texts = {path.replace("__", "/").replace("_yaml", ".yaml"): text for path, text in files.items()}
    loaded = build_with_sources({"watches.yaml": watch(body), **texts}, root="/project", environ={})
    return [str(each) for each in check_project(loaded) if each.code in ("crd", "wrong-value")]


def inferred(status: str, **files: str) -> dict[str, Any]:
    """The fields of the status besides those that every status has."""
    texts = {path.replace("__", "/").replace("_yaml", ".yaml"): text for path, text in files.items()}
    loaded = build_with_sources({"watches.yaml": watch(SPEC + status), **texts}, root="/project", environ={})
    (document,) = with_definitions(loaded).project.definitions
    fields = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    assert list(fields)[-2:] == ["observedGeneration", "conditions"]
    return {name: each for name, each in fields.items() if name not in ("observedGeneration", "conditions")}


TEXT, NUMBER, TIME = {"type": "string"}, {"type": "integer"}, {"type": "string", "format": "date-time"}


@pytest.mark.parametrize(
    ("expression", "schema"),
    [
        ("{{ spec.size }}", NUMBER),
        ("{{ spec.mode }}", TEXT),
        ("{{ spec.size }} of 3", TEXT),
        ("{{ spec.size / 2 }}", {"type": "number"}),
        ("{{ spec.size > 2 }}", {"type": "boolean"}),
        ("{{ spec.memory }}", {"x-kubernetes-int-or-string": True}),
        ("{{ spec.hosts }}", {"type": "array", "items": TEXT}),
        ("{{ spec.hosts | first }}", TEXT),
        ("{{ spec.hosts | length }}", NUMBER),
        ("{{ spec.labels }}", {"type": "object", "additionalProperties": TEXT}),
        ("{{ spec.env | map(attribute='name') | list }}", {"type": "array", "items": TEXT}),
        ("{{ 'big' if spec.size > 2 }}", TEXT),
        ("{{ spec.size if spec.size > 2 else 'small' }}", {"x-kubernetes-int-or-string": True}),
        ("{{ web.status.readyReplicas | default(0) }}", NUMBER),
        ("{{ live.web.status.readyReplicas }}", NUMBER),
        ("{{ metadata.creationTimestamp }}", TIME),
        ("{{ web.spec.strategy.rollingUpdate.maxSurge }}", {"x-kubernetes-int-or-string": True}),
        ("{{ ready.web }}", {"type": "boolean"}),
        ("{{ spec.free }}", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
    ],
)  # fmt: skip
def test_the_type_of_a_field_is_that_of_its_expression(expression, schema):
    assert inferred(f'status:\n  field: "{expression}"\n') == {"field": schema}


def test_the_type_of_a_field_that_all_kinds_of_a_choice_have_is_theirs():
    chosen = SPEC.replace("kind: Deployment", "kind: \"{{ 'StatefulSet' if spec.size > 1 else 'Deployment' }}\"")
    expressions = {
        "ready": ("web.status.readyReplicas | default(0)", NUMBER),
        "reasons": ("web.status.conditions | map(attribute='reason') | list", {"type": "array", "items": TEXT}),
        "image": ("live.web.spec.template.spec.containers[0].image", TEXT),
        "kind": ("web.kind", TEXT),
    }
    status = ", ".join(f'{name}: "{{{{ {expression} }}}}"' for name, (expression, _) in expressions.items())
    text = watch(f"{chosen}status: {{{status}}}\n")
    loaded = build_with_sources({"watches.yaml": text}, root="/project", environ={})
    (document,) = with_definitions(loaded).project.definitions
    fields = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    assert {name: fields[name] for name in expressions} == {name: each for name, (_, each) in expressions.items()}


def test_mappings_and_lists_are_inferred_field_by_field():
    found = inferred("""
status:
  one: {a: 1, b: "{{ spec.mode }}", c: true, d: [1.5, 2]}
  computed: {"{{ spec.mode }}": "{{ spec.size }}"}
""")
    assert found == {
        "one": {
            "type": "object",
            "properties": {
                "a": NUMBER,
                "b": TEXT,
                "c": {"type": "boolean"},
                "d": {"type": "array", "items": {"type": "number"}},
            },
        },
        "computed": {"type": "object", "additionalProperties": NUMBER},
    }


def test_a_template_of_the_status_is_inferred_in_all_of_its_branches():
    template = """\
phase: up
{% if spec.size > 1 %}
detail: {count: {{ spec.size }}}
{% else %}
detail: {only: yes it is}
{% endif %}
hosts:
{% for host in spec.hosts | default([]) %}
  - name: {{ host }}
{% endfor %}
"""
    assert inferred("status: status.yaml\n", templates__status_yaml=template) == {
        "phase": TEXT,
        "detail": {"type": "object", "properties": {"count": NUMBER, "only": TEXT}},
        "hosts": {"type": "array", "items": {"type": "object", "properties": {"name": TEXT}}},
    }


def test_a_bound_of_the_spec_does_not_bind_the_status():
    assert inferred('status: {copy: "{{ spec.size }}", mode: "{{ spec.mode }}"}\n') == {"copy": NUMBER, "mode": TEXT}


def test_a_field_whose_type_is_not_known_is_an_error_with_the_remedy():
    body = SPEC + 'status: {url: "{{ spec.free.url }}", none: [], size: "{{ spec.size }}"}\n'
    remedy = "cannot be inferred: declare it in `status` of the schema, such as"
    line = watch(body).partition("spec.free.url")[0].count("\n") + 1
    assert said(body) == [
        f"watches.yaml:{line}:12: the type of status.url {remedy} `url: string`",
        f"watches.yaml:{line}:40: the type of status.none {remedy} `none: string`",
    ]
    by_hand = body.replace("schema:\n", 'schema:\n  status: {url: string, none: "[]string"}\n')
    assert said(by_hand) == []


def test_the_status_of_a_child_with_a_schema_is_known_too():
    db = """\
- group: example.com
  version: v1
  kind: Db
  schema: {spec: {port: integer}}
  status: {address: "db:{{ spec.port }}", port: "{{ spec.port }}"}
"""
    app = watch("""
schema: {spec: {size: integer}}
children:
  db:
    object:
      apiVersion: example.com/v1
      kind: Db
      metadata: {name: "{{ metadata.name }}"}
      spec: {port: 80}
status: {port: "{{ db.status.port }}", address: "{{ db.status.address | upper }}"}
""")
    loaded = build_with_sources({"watches.yaml": app + db}, root="/project", environ={})
    assert [each for each in check_project(loaded) if each.severity == "error"] == []
    document = with_definitions(loaded).project.definitions[0]
    fields = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    assert (fields["port"], fields["address"]) == (NUMBER, TEXT)


def test_an_invalid_json_schema_is_an_error_at_its_place():
    several = 'several groups have it: write "flowcontrol.v1.Subject" or "rbac.v1.Subject"'
    assert said("""
schema:
  spec:
    a: {type: object, propertys: {b: {type: string}}, properties: {c: {typ: string}}}
    b: {$ref: v1.EnvVars}
    c: v1.Subject
""") == [
        "watches.yaml:6:25: spec.a.propertys: is not a keyword of a CRD's schema (did you mean properties?)",
        "watches.yaml:6:70: spec.a.c.type: is required in a structural schema",
        "watches.yaml:6:74: spec.a.c.typ: is not a keyword of a CRD's schema (did you mean type?)",
        'watches.yaml:7:17: unknown type "v1.EnvVars" (did you mean v1.EnvVar?)',
        f'watches.yaml:8:10: unknown type "v1.Subject": {several}',
    ]


def test_a_field_of_an_unknown_type_is_one_mistake():
    text = watch(
        SPEC.replace("resource.Quantity", "apps.k8s.io.v1.Deployment").replace("spec.size", "spec.memory.size")
    )
    loaded = build_with_sources({"watches.yaml": text}, root="/project", environ={})
    messages = [each.message for each in check_project(loaded) if each.severity == "error"]
    assert [each for each in messages if "memory" in each or "type" in each] == [
        'unknown type "apps.k8s.io.v1.Deployment" (did you mean apps.v1.Deployment?)'
    ]


def test_a_default_that_breaks_a_rule_in_cel_is_an_error_at_its_place():
    assert said("""
schema:
  spec:
    size: string | default=a validation="self.size() > 1"
    port: integer | default=1 validation="self > 0"
""") == [
        "watches.yaml:6:7: spec.size.default: does not match its own schema: must satisfy the rule self.size() > 1",
    ]


# -- files of crds/ ----------------------------------------------------------------------------------------------------


def test_a_file_of_crds_has_to_agree_with_the_schema():
    body = "schema: {spec: {size: integer | maximum=3}, shortNames: [ap]}\n"
    loaded = build_with_sources({"watches.yaml": watch(body)}, root="/project", environ={})
    (text,) = crd_files(whole_definitions(loaded, Findings({}))).values()
    assert said(body, crds__apps_yaml=text) == []
    without_names = text.replace("    listKind: AppList\n", "").replace("    singular: app\n", "")
    assert said(body, crds__apps_yaml=without_names) == []
    (found,) = said(body, crds__apps_yaml=text.replace("maximum: 3", "maximum: 5"))
    assert "spec.size.maximum is 5 here, and 3 by the schema at watches.yaml:4:" in found
    assert found.startswith("crds/apps.yaml:")


# -- random schemas ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(schemas())
def test_random_schemas_make_the_same_valid_definition_each_time(schema):
    definition, mistakes = definition_of(schema)
    assert mistakes == []
    assert crd_files([definition]) == crd_files([definition_of(schema)[0]])
