"""Loops and conditions among the keys of watches.yaml, against the schemas."""

from __future__ import annotations

import textwrap

import pytest

from ruleop.language.rules.checking import build_with_sources
from tests.authoring.checking import typed_projects
from tests.authoring.checking.projects import said
from tests.authoring.checking.test_slots_at_fields import of
from tests.authoring.checking.typed_projects import findings
from tests.definitions import definition
from tests.language.rules.projects import watch

HEAD = "children:\n  a: {template: a.yaml}\n  web:\n    object:\n" + textwrap.indent(
    typed_projects.DEPLOYMENT.strip().replace("{name: a}", "{name: web}") + "\n", " " * 6
)


def container(text: str) -> list[str]:
    """The findings of a container with more fields."""
    return typed_projects.said(findings(HEAD + textwrap.indent(textwrap.dedent(text).strip("\n"), " " * 16) + "\n"))


@pytest.mark.parametrize(
    ("head", "item", "messages"),
    [
        ("each in spec.ports | default([])", '{containerPort: "{{ each.port }}", name: "{{ each.name | default(omit) }}"}', []),
        (
            "each in spec.ports | default([])",
            '{containerPort: "{{ each.prt }}"}',
            ["error unknown-field: spec.ports[].prt is not in the schema (did you mean spec.ports[].port?)"],
        ),
        (
            "each in spec.prts",
            '{containerPort: "{{ each.port }}"}',
            ["error unknown-field: spec.prts is not in the schema (did you mean spec.ports?)"],
        ),
        (
            "each in spec.ports",
            '{containerPort: "{{ each.port }}"}',
            ["warning maybe-missing: spec.ports may be missing (it is optional in the CRD): use `default(...)`, or test it with `is defined`"],
        ),
        (
            "each in spec.size",
            '{containerPort: "{{ each }}"}',
            ["error type-mismatch: spec.size is an integer: a loop needs a list or a mapping"],
        ),
    ],
)  # fmt: skip
def test_the_items_of_a_loop_have_the_types_of_the_definition(head, item, messages):
    assert container(f'ports:\n  - "{{% for {head} %}}": {item}\n') == messages


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('env:\n  - "{% for k, v in spec.labels.items() %}": {name: "{{ k }}", valu: "{{ v }}"}\n', "env[0].valu is not"),
        ('env:\n  - "{% if spec.debug %}": {name: DEBUG, value: 1}\n', "env[0].value must be a string, not 1"),
        ('env:\n  - "{% if spec.debug %}": []\n    "{% else %}": [{name: x, nam: y}]\n', "env[0].nam is not in the schema"),
        ('ports:\n  - "{% for each in spec.hosts %}": {containerPort: "{{ each }}"}\n', "each is a string, and spec.template.spec.containers[0].ports[0].containerPort must be an integer"),
        ('"{% if spec.debug %}": {imag: x}\n', "containers[0].imag is not in the schema"),
        ('resources:\n  "{% if spec.debug %}": {limits: {cpu: 1}}\n  "{% else %}": {limit: {}}\n', "resources.limit is not"),
    ],
)  # fmt: skip
def test_every_branch_of_a_tag_is_compared_with_the_schema(text, part):
    (found,) = container(text)
    assert part in found


@pytest.mark.parametrize("word", ["forEach", "loop", "with_items"])
def test_the_loop_of_another_tool_is_named(word):
    (found,) = container(f"env: [{{{word}: spec.hosts, name: x}}]\n")
    assert found.endswith(
        f'env[0].{word} is not in the schema of Deployment: a loop is a tag as a key, `"{{% for each in spec.list %}}":`'
    )


def test_a_value_that_fits_is_not_reported():
    assert (
        container(
            """
            env:
              - {name: A, value: b}
              - "{% for key, value in spec.labels.items() if key != 'x' %}": {name: "{{ key }}", value: "{{ value }}"}
              - "{% if spec.note is defined %}": {name: NOTE, value: "{{ spec.note }}"}
            "{% if spec.debug %}":
              command: [debug]
              args: [{"{% for host in spec.hosts %}": "--host={{ host }}"}]
            """
        )
        == []
    )


def test_a_mistake_in_a_loop_is_reported_once_at_its_column():
    text = (
        HEAD + " " * 16 + 'ports: [{"{% for each in spec.ports | default([]) %}": {containerPort: "{{ each.prt }}"}}]\n'
    )
    (found,) = findings(text)
    line = (typed_projects.WATCH + text).strip().split("\n")[found.site.line - 1]
    assert ("  " + line)[found.site.column - 1 :].startswith("each.prt }}")


def test_a_number_sign_in_one_string_of_a_loop_hides_nothing_in_another():
    item = '[{name: A, value: "a # {{ each }}"}, {name: "a #b", value: "{{ spec.nope }}"}, {name: x, value: "{{ spec.nop }}"}]'
    found = container(f'env:\n  - "{{% for each in spec.hosts %}}": {item}\n')
    assert [each.split()[2] for each in found] == ["spec.nope", "spec.nop"]


def test_bodies_show_every_branch_and_one_pass_of_each_loop():
    files = {
        "watches.yaml": watch(
            """
            children:
              a:
                object:
                  apiVersion: v1
                  kind: ConfigMap
                  metadata: {name: a}
                  data:
                    "{{ spec.more }}":
                    a: "{{ spec.a }}-x"
                    "{% if spec.x %}": {b: "1"}
                    "{% else %}": {c: "{{ spec.c }}"}
                    "{% for each in spec.list %}": {"d-{{ each }}": "{{ each }}"}
            """
        ),
        "crds/apps.yaml": definition(),
    }
    found = of(build_with_sources(files, root="/project", environ={}))
    always = {"data.**": "{spec.more}", "data.a": "{spec.a}-x", "data.*": "{each}"}
    assert {**always, "data.b": "1"} in found
    assert {**always, "data.c": "{spec.c}"} in found


def test_data_of_a_secret_is_followed_through_a_loop():
    body = """
    observe: {creds: {version: v1, kind: Secret, name: x}}
    children:
      a:
        object:
          apiVersion: v1
          kind: ConfigMap
          metadata: {name: "{{ metadata.name }}"}
          data:
            "{% for key, value in creds.data.items() %}": {"{{ key }}": "{{ value | b64decode }}"}
    status: {seen: "{{ creds.metadata.name }}"}
    """
    found = [each for each in said(watch(body)) if each.startswith("RO705")]
    assert found
    safe = body.replace("creds.data.items()", "creds.metadata.labels.items()").replace(" | b64decode", "")
    assert [each for each in said(watch(safe)) if each.startswith("RO705")] == []
