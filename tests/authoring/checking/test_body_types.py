"""The bodies of children against the schemas of their kinds, in templates and in `object:`."""

from __future__ import annotations

import textwrap

import pytest

from tests.authoring.checking.typed_projects import findings, said

HEAD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  selector: {matchLabels: {app: a}}
"""
POD = """\
  template:
    metadata: {labels: {app: a}}
    spec:
      containers:
        - name: app
          image: app
"""


def of(text: str, watch: str = "") -> list[str]:
    """The findings of a template, as the only child."""
    return said(findings(f"{textwrap.dedent(watch)}\nchildren: {{body: {{template: body.yaml}}}}", body=text))


def deployment(spec: str = "", container: str = "") -> list[str]:
    """The findings of a Deployment with more in its spec and its container."""
    return of(
        HEAD
        + textwrap.indent(textwrap.dedent(spec).strip() + "\n", "  ")
        + POD
        + textwrap.indent(textwrap.dedent(container), " " * 10)
    )


MISTAKES = [
    ("replica: 3", "", "error unknown-field: spec.replica is not in the schema of Deployment (did you mean spec.replicas?)"),
    ('replicas: "3"', "", 'error invalid-literal: spec.replicas must be an integer, not "3": remove the quotes'),
    ("replicas: true", "", "error invalid-literal: spec.replicas must be an integer, not true"),
    ("replicas: [1]", "", "error invalid-literal: spec.replicas must be an integer, not a list"),
    ("strategy: Recreate", "", 'error invalid-literal: spec.strategy must be a mapping, not "Recreate"'),
    ("strategy: {type: Rolling}", "", "error invalid-literal: spec.strategy.type must be one of"),
    ("replicas: {{ spec.image }}", "", "error type-mismatch: spec.image is a string, and spec.replicas must be an integer"),
    ('replicas: "{{ spec.size }}"', "", "error type-mismatch: spec.replicas must be an integer, and a value in quotes is a string"),
    ("replicas: {{ spec.hosts }}", "", "error type-mismatch: spec.hosts is a list, and spec.replicas must be an integer"),
    ("replicas: {{ spec.memory }}", "", "warning type-mismatch: spec.memory may be a string, and spec.replicas must be"),
    ("replicas: {{ spec.size | string }}", "", "error type-mismatch"),
    ("replicas: {{ 1 if spec.debug else 'a' }}", "", "warning type-mismatch"),
    ("strategy: {type: {{ 'Recreate' if spec.debug else 'Rolling' }}}", "", "error invalid-literal: spec.strategy.type"),
    ("", "env: [{name: A, value: 7}]", "spec.template.spec.containers[0].env[0].value must be a string, not 7: put it in quotes"),
    ("", "env: [{name: A, value: true}]", "must be a string, not true: put it in quotes"),
    ("", "env: [{value: a}]", "error invalid-literal: spec.template.spec.containers[0].env[0].name is required"),
    ("", "env: {A: b}", "containers[0].env must be a list, not a mapping"),
    ("", "env: [{name: A, value: {{ spec.size }}}]", "spec.size is an integer, and"),
    ("", "env: [{name: A, vale: a}]", "env[0].vale is not in the schema of Deployment (did you mean"),
    ("", "args: {{ [1, 2] }}", "error type-mismatch: a value in [1, 2] is an integer, and spec.template.spec.containers[0].args[] must be a string"),
    ("", "ports: [{containerPort: '80'}]", 'containerPort must be an integer, not "80": remove the quotes'),
    ("", "ports: [{containerPort: 80, protocol: HTTP}]", "error invalid-literal: spec.template.spec.containers[0].ports[0].protocol"),
    ("", "imagePullPolicy: Sometimes", "error invalid-literal"),
    ("", "command: sh -c true", 'containers[0].command must be a list, not "sh -c true"'),
    ("", "args: [-c, 7]", "error invalid-literal: spec.template.spec.containers[0].args[1] must be a string, not 7"),
    ("", "resources: {limits: {memory: 1GB}}", "must be a quantity such as 500m or 1Gi"),
    ("", "env: [{name: A, value: 'a{{ spec.hosts }}'}]", "error type-mismatch: spec.hosts is a list, which cannot be a part of text"),
    ("", "env: [{name: A, value: 'a{{ spec.image if spec.debug }}'}]", "warning maybe-missing: spec.image if spec.debug can leave no value"),
    ("", "resources: {limits: {memory: {{ spec.note }}}}", "warning type-mismatch: spec.note may be any text, and spec.template.spec.containers[0].resources.limits.memory must be a quantity such as 500m or 1Gi: give the field a pattern"),
    ("", "resources: {limits: {memory: '{{ spec.image }}'}}", "warning type-mismatch: spec.image may be any text, and"),
    ("", "resources: {limits: {memory: '{{ spec.image }}Gi'}}", "warning type-mismatch: spec.image may be any text, and"),
    ("", "resources: {limits: {{ spec.labels }}}", "warning type-mismatch: spec.labels[] may be any text, and"),
    ("{% if spec.debug %}\nreplica: 3\n{% endif %}", "", "error unknown-field: spec.replica"),
    ("{% for host in spec.hosts %}\nreplica: 3\n{% endfor %}", "", "error unknown-field: spec.replica"),
    ("{% if spec.debug %}\nreplicas: 1\n{% else %}\nreplicas: '1'\n{% endif %}", "", "error invalid-literal: spec.replicas"),
    ("{{ {'replica': 1} }}", "", "sets spec.replica, which is not in the schema of Deployment (did you mean replicas?)"),
    ("{{ {'replicas': 'a'} }}", "", "error type-mismatch"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "container", "message"), MISTAKES, ids=[a or b for a, b, _ in MISTAKES])
def test_a_mistake_in_a_body_is_found(spec: str, container: str, message: str) -> None:
    found = deployment(spec, container)
    assert any(message in each for each in found), found


def test_a_macro_as_a_whole_value_is_data_if_it_is_a_mapping_and_else_text() -> None:
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {{ labels() }}}\n"
    assert of("{% macro labels() %}\napp: a\n{% endmacro %}\n" + config) == []
    found = of("{% macro labels() %}\nsome\nlines\n{% endmacro %}\n" + config)
    place = "data is inserted where `{{ x }}` is alone on its line, below the key"
    assert [each.partition(": ")[2] for each in found] == [
        f"labels() is a string, and metadata.labels must be a mapping: {place}"
    ]


QUIET = [
    ("replicas: 3", ""),
    ("replicas: {{ spec.size }}", ""),
    ("replicas: {{ spec.size if spec.debug }}", ""),
    ("replicas: {{ spec.size | default(omit) }}", ""),
    ("replicas: {{ spec.memory | int }}", ""),
    ("strategy: {type: {{ 'Recreate' if spec.debug else 'RollingUpdate' }}}", ""),
    ("strategy:\n  {{ spec.more | default({}) }}", ""),
    ("{{ spec.more | default({}) }}", ""),
    ("", 'env: [{name: A, value: "{{ spec.size }}"}]'),
    ("", "env:\n  {% for host in spec.hosts %}\n  - name: {{ host }}\n    value: a{{ loop.index }}\n  {% endfor %}"),
    ("", "env:\n  - name: A\n    value: b\n  {{ spec.more.env | default([]) }}"),
    ("", "env:\n  {{ vars.zones | map('string') | list | to_yaml }}"),
    ("", "resources: {limits: {memory: {{ spec.memory }}, cpu: 1}}"),
    ("", "resources: {limits: {memory: '{{ spec.memory }}', cpu: '{{ spec.size }}m'}}"),
    ("", "resources: {limits: {memory: {{ spec.amount }}, cpu: '{{ spec.mode }}'}}"),
    ("", "resources: {limits: {memory: {{ metadata.name }}, cpu: {{ vars.registry }}}}"),
    ("", "resources: {limits: {memory: {{ spec.image if spec.image == '1Gi' else '2Gi' }}}}"),
    ("", "resources:\n  {{ spec.more | default({}) | to_yaml | indent(2) }}"),
    (
        "",
        "livenessProbe:\n  {% if spec.debug %}\n  exec: {command: [a]}\n  {% else %}\n  httpGet: {port: 80}\n  {% endif %}",
    ),
    ("", "livenessProbe: {httpGet: {port: http, path: /}}"),
    ("", "args:\n  - |\n    {{ spec.image }} {{ spec.size }}"),
    ("", "env: []"),
    ("", "ports: [{name: http, containerPort: {{ spec.service.port }}}]"),
    ("{% if spec.mode == 'Test' %}\nreplicas: 1\n{% elif spec.mode == 'Production' %}\nreplicas: 2\n{% endif %}", ""),
    ("# replicas: {{ spec.serivce }}", ""),
]


@pytest.mark.parametrize(("spec", "container"), QUIET, ids=[a or b for a, b in QUIET])
def test_a_body_that_works_is_not_found(spec: str, container: str) -> None:
    assert deployment(spec, container) == []


def test_a_required_field_that_no_variant_has_is_found() -> None:
    found = of("apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{name: a}]}\n")
    assert found == ["error invalid-literal: spec.ports[0].port is required by the schema of Service"]


def test_a_required_field_that_is_null_is_found() -> None:
    text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  selector:\n" + POD
    assert of(text) == ["error invalid-literal: spec.selector is required by the schema of Deployment"]


def test_a_required_field_of_one_branch_is_not_missed() -> None:
    text = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec:\n  ports:\n    - name: a\n"
    assert of(text + "      {% if spec.debug %}\n      port: 80\n      {% endif %}\n") == []


def test_a_required_field_may_be_spread() -> None:
    text = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec:\n  ports:\n    - name: a\n"
    assert of(text + "      {{ spec.more | default({}) }}\n") == []


def test_members_with_computed_keys_are_compared() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n"
    loop = "  {% for host in spec.hosts %}\n  {{ KEY }}: {{ VALUE }}\n  {% endfor %}\n"
    assert of(text + loop.replace("KEY", "host").replace("VALUE", "host")) == []
    (found,) = of(text + loop.replace("KEY", "host").replace("VALUE", "loop.index0"))
    assert "loop.index0 is an integer, and data[] must be a string" in found
    (found,) = of(text + loop.replace("KEY", "spec.hosts").replace("VALUE", "host"))
    assert "spec.hosts is a list, which cannot be a part of text" in found


def test_labels_are_strings() -> None:
    found = of("apiVersion: v1\nkind: Service\nmetadata: {name: a, labels: {a: 7}}\nspec: {ports: [{port: 1}]}\n")
    assert found == ["error invalid-literal: metadata.labels.a must be a string, not 7: put it in quotes"]


def test_an_object_of_watches_yaml_is_compared() -> None:
    watch = """
    let:
      labels: {app: a, "number": 7}
    children:
      service:
        object:
          apiVersion: v1
          kind: Service
          metadata:
            name: "{{ metadata.name }}"
            labels: "{{ labels }}"
          spec:
            selektor: {a: b}
            ports:
              - port: "{{ spec.image }}"
              - port: "{{ spec.size }}"
                name: "{{ spec.size }}"
                nodePort: "1{{ spec.size }}"
    """
    found = said(findings(watch))
    assert sorted(found) == [
        "error type-mismatch: a value in labels is an integer, and metadata.labels.number must be a string",
        "error type-mismatch: spec.image is a string, and spec.ports[0].port must be an integer: use `| int`, or change its type in the CRD",
        "error type-mismatch: spec.ports[1].nodePort must be an integer, and text with slots is a string",
        "error type-mismatch: spec.size is an integer, and spec.ports[1].name must be a string: use `| string`",
        "error unknown-field: spec.selektor is not in the schema of Service (did you mean spec.selector?)",
    ]


def test_a_custom_kind_is_compared_with_its_definition() -> None:
    text = (
        "apiVersion: example.com/v1\nkind: App\nmetadata: {name: a}\nspec: {size: 1, image: a, hosts: [], mode: Prod}\n"
    )
    found = of(text)
    assert found == [
        'error invalid-literal: spec.mode must be one of "Production", "Test", not "Prod" (did you mean Production?)'
    ]


def test_a_status_is_compared_with_the_definition() -> None:
    watch = """
    status:
      ready: "{{ spec.image }}"
      phase: 7
      hosts: "{{ spec.hosts }}"
    """
    found = said(findings(watch))
    assert len(found) == 2
    assert "error invalid-literal: status.phase must be a string, not 7: put it in quotes" in found
    assert any("spec.image is a string, and status.ready must be an integer" in each for each in found)


def test_a_mistake_has_its_line_and_column() -> None:
    found = findings("children: {body: {template: body.yaml}}", body=HEAD + "  replica: 3\n" + POD)
    assert [(each.site.path, each.site.line, each.site.column) for each in found] == [("templates/body.yaml", 6, 3)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("spec: ^{replicas: {{ spec.size }}}", "spec.selector is required"),
        ("spec: {strategy: ^[{{ strategy }}]}", "spec.strategy must be a mapping"),
        ("spec: {minReadySeconds: ^paused, paused: {{ paused }}}", "spec.minReadySeconds must be an integer"),
    ],
)
def test_a_mistake_in_what_is_written_out_is_where_it_begins(line: str, message: str) -> None:
    """And not at a slot that has the same word."""
    watch = "let: {strategy: '{{ spec.image }}', paused: '{{ spec.debug }}'}\nchildren: {body: {template: body.yaml}}"
    body = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n" + line.replace("^", "") + "\n"
    assert {each.site.column for each in findings(watch, body=body) if message in each.message} == {line.index("^") + 1}


@pytest.mark.parametrize(
    "expression",
    [
        "[spec.image][0].colour",
        "(spec.image ~ 'a').colour",
        "[spec.image][0].colour()",
        "spec.ports | map(attribute='colour') | join",
    ],
)
def test_a_mistake_in_a_field_is_at_its_name_whatever_it_is_a_field_of(expression: str) -> None:
    line = f"  paused: {{{{ {expression} }}}}"
    found = findings("children: {body: {template: body.yaml}}", body=HEAD + line + "\n" + POD)
    assert line.index("colour") + 1 in {each.site.column for each in found if "colour" in each.message}


def test_an_unknown_field_is_at_its_name_even_where_the_value_has_the_same_word() -> None:
    watch = "let: {hosts: '{{ spec.hosts }}'}\nchildren: {body: {template: body.yaml}}"
    found = findings(watch, body=HEAD + "  hosts: {{ hosts }}\n" + POD)
    (unknown,) = (each for each in found if "in the schema of Deployment" in each.message)
    assert unknown.site.column == 3


def test_macros_and_included_files_are_read() -> None:
    part = "{% macro ports(number) %}\n- containerPort: {{ number }}\n  nam: a\n{% endmacro %}\n"
    text = "{% import 'part.yaml' as part %}\n" + HEAD + POD + "          ports:\n            {{ part.ports(80) }}\n"
    found = findings("children: {body: {template: body.yaml}}", body=text, part=part)
    assert said(found) == [
        "error unknown-field: spec.template.spec.containers[0].ports[0].nam is not in the schema of Deployment (did you mean spec.template.spec.containers[0].ports[0].name?)"
    ]
    assert found[0].site.path == "templates/part.yaml"
