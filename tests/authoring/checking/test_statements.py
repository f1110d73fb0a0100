"""Statements and the keys around them: what a condition shows holds where it is tested, and nowhere else."""

from __future__ import annotations

import textwrap

import pytest

from tests.authoring.checking.typed_projects import CRD, findings, said

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n"
NOTE = "warning maybe-missing: spec.note may be missing (it is optional in the CRD): use `default(...)`, or test it with `is defined`"
TLS = "warning maybe-missing: spec.tls may be missing (it is optional in the CRD)"


def of(data: str, child: str = "", watch: str = "", **templates: str) -> list[str]:
    """The findings of a ConfigMap with this data, as a child with these keys in a watch with these."""
    text = HEAD + textwrap.indent(textwrap.dedent(data).strip("\n"), "  ") + "\n"
    body = f"{textwrap.dedent(watch)}\nchildren:\n  body:\n    template: body.yaml\n{textwrap.indent(textwrap.dedent(child), '    ')}"
    return said(findings(body, body=text, **templates))


QUIET = {
    "inside an if": "{% if spec.note is defined %}\na: {{ spec.note }}\n{% endif %}",
    "in the else of a negation": "{% if spec.note is not defined %}\na: b\n{% else %}\na: {{ spec.note }}\n{% endif %}",
    "in an elif": "{% if spec.note is not defined %}\na: b\n{% elif spec.note == 'a' %}\na: {{ spec.note }}\n{% endif %}",
    "a field below": "{% if spec.tls.secret is defined %}\na: {{ spec.tls.secret }}\n{% endif %}",
    "a loop over an optional list": "{% for port in spec.ports | default([]) %}\na{{ port.port }}: {{ port.name | default('a') }}\n{% endfor %}",
    "a pair of items": "{% for key, value in spec.labels.items() %}\n{{ key }}: {{ value }}\n{% endfor %}",
    "an entry": "{% for each in spec.labels | dictsort %}\n{{ each.key }}: {{ each.value }}\n{% endfor %}",
    "a variable": "{% set note = spec.note | default('a') %}\na: {{ note }}",
    "a namespace": "{% set ns = namespace(found='a') %}\n{% set ns.found = 'b' %}\na: {{ ns.found }}",
    "with": "{% with tls = spec.tls | default({}) %}\na: {{ tls.secret | default('') }}\n{% endwith %}",
    "a macro that is called in an if": "{% macro secret() %}{{ spec.tls.secret }}{% endmacro %}\n{% if spec.tls is defined %}\na: {{ secret() }}\n{% endif %}",
    "a macro with an argument": "{% macro of(tls) %}{{ tls.secret }}{% endmacro %}\n{% if spec.tls is defined %}\na: {{ of(spec.tls) }}\n{% endif %}",
    "a macro that is never called": "{% macro note() %}{{ spec.note }}{% endmacro %}\na: b",
    "captured text": "{% set text %}{{ spec.image }}{% endset %}\na: {{ text }}",
    "a filter block": "a: {% filter upper %}{{ spec.image }}{% endfilter %}",
    "a call block": "{% macro box() %}{{ caller() }}{% endmacro %}\na: {% call box() %}{{ spec.image }}{% endcall %}",
    "items with the attribute": "{% for port in spec.ports | default([]) | selectattr('name') %}\n{{ port.name }}: a\n{% endfor %}",
    "items where it is defined": "{% for port in spec.ports | default([]) | selectattr('name', 'defined') %}\n{{ port.name }}: a\n{% endfor %}",
    "a filtered loop": "{% for port in spec.ports | default([]) if port.name is defined %}\n{{ port.name }}: a\n{% endfor %}",
    "the loop variable": "{% for host in spec.hosts %}\na{{ loop.index }}: {{ 'x' if loop.last else 'y' }}\n{% endfor %}",
    "a comment": "# {{ spec.note }}\na: b",
    "the first of a list": "{% if spec.hosts %}\na: {{ spec.hosts[0] }}\n{% endif %}",
}  # fmt: skip


@pytest.mark.parametrize("data", QUIET.values(), ids=QUIET)
def test_statements_that_work_are_not_found(data: str) -> None:
    assert of(data) == []


MISTAKES = {
    "after the if": ("{% if spec.note is defined %}{% endif %}\na: {{ spec.note }}", NOTE),
    "in the else": ("{% if spec.note is defined %}\na: b\n{% else %}\na: {{ spec.note }}\n{% endif %}", "error maybe-missing: spec.note is not set here"),
    "a condition": ("{% if spec.note %}\na: {{ spec.note }}\n{% endif %}", NOTE),
    "a loop": ("{% for port in spec.ports %}\na: b\n{% endfor %}", "warning maybe-missing: spec.ports"),
    "a field of an item": ("{% for port in spec.ports | default([]) %}\na: {{ port.nmae }}\n{% endfor %}", "error unknown-field: spec.ports[].nmae is not in the schema (did you mean spec.ports[].name?)"),
    "an optional field of an item": ("{% for port in spec.ports | default([]) %}\na: {{ port.name }}\n{% endfor %}", "warning maybe-missing: spec.ports[].name may be missing"),
    "a loop over a number": ("{% for n in spec.size %}\na: b\n{% endfor %}", "error type-mismatch: spec.size is an integer: a loop needs a list or a mapping"),
    "a loop over text": ("{% for n in spec.image %}\na: b\n{% endfor %}", "error type-mismatch: spec.image is a string: a loop needs"),
    "pairs of a mapping": ("{% for k, v in spec.labels %}\na: b\n{% endfor %}", "error type-mismatch: spec.labels is a mapping, whose loop has only its keys: write `for k, v in spec.labels.items()`"),
    "a variable": ("{% set tls = spec.tls %}\na: {{ tls.secret }}", TLS),
    "in a macro": ("{% macro secret() %}{{ spec.tls.secret }}{% endmacro %}\na: {{ secret() }}", TLS),
    "an argument of a macro": ("{% macro of(tls) %}{{ tls.secrte | default('') }}{% endmacro %}\na: {{ of(spec.tls | default({})) }}", "error unknown-field: spec.tls.secrte"),
    "text that is always true": ("{% if metadata.name | condition('Ready') %}\na: b\n{% endif %}", "warning constant-condition: this is always true"),
    "an enumeration that is always true": ("{% if spec.mode %}\na: b\n{% endif %}", "warning constant-condition: this is always true: spec.mode is one of Production, Test"),
    "a member that is not in the enumeration": ("{% if spec.mode == 'Tset' %}\na: b\n{% endif %}", "this is always false: spec.mode is one of Production, Test, never Tset (did you mean Test?)"),
    "the same test twice": ("{% if spec.note is defined %}{% if spec.note is defined %}\na: b\n{% endif %}{% endif %}", "warning constant-condition: this is always true: spec.note is always set"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_found(data: str, message: str) -> None:
    found = of(data)
    assert any(message in each for each in found), found


def test_when_holds_in_the_body() -> None:
    assert of("a: {{ spec.note }}", "when: spec.note is defined") == []


def test_wait_for_holds_in_the_body() -> None:
    assert of("a: {{ live.body.data.a }}", "waitFor: live.body.data.a is defined") == []


def test_a_wait_for_text_that_is_always_true_is_found() -> None:
    (found,) = of("a: b", "waitFor: live.body | default({}) | condition('Ready')")
    assert "this is always true" in found
    assert "compare it with ==" in found


def test_a_validation_holds_in_the_children() -> None:
    watch = "validate: [{rule: spec.tls is defined, message: a}]"
    assert of("a: {{ spec.tls.secret }}", watch=watch) == []


def test_for_each_gives_the_type_of_item() -> None:
    assert of("a: {{ item.name | default('a') }}", "forEach: spec.ports | default([])") == []
    (found,) = of("a: {{ port.nam | default('a') }}", "forEach: spec.ports | default([])\nas: port")
    assert "spec.ports[].nam is not in the schema (did you mean spec.ports[].name?)" in found


def test_loops_in_loops_give_the_types_of_their_items() -> None:
    loops = "forEach: {port: 'spec.ports | default([])', label: spec.labels, number: range(port.port)}"
    assert of("a: {{ port.port + number + index }}{{ label.key }}{{ label.value | upper }}", loops) == []
    (found,) = of("a: {{ port.nam | default('a') }}", loops)
    assert "spec.ports[].nam is not in the schema (did you mean spec.ports[].name?)" in found
    assert of("a: b", "forEach: {port: 'spec.ports | default([])', number: port.port}") == [
        "error type-mismatch: port.port is an integer: forEach needs a list or a mapping"
    ]
    (found,) = of("a: b", "forEach: {port: 'spec.ports | default([])', number: port.hosts}")[:1]
    assert "spec.ports[].hosts is not in the schema" in found


CHOSEN = """
reach: cluster
children:
  c: {template: c.yaml}
  i:
    object:
      apiVersion: "{{ 'v1' if spec.debug else 'apps/v1' }}"
      kind: "{{ 'ConfigMap' if spec.debug else 'Deployment' }}"
      metadata: {name: "{{ metadata.name }}-i"}
      spec: {replics: 1}
"""


def test_a_body_is_typed_by_each_kind_of_a_choice() -> None:
    template = (
        "apiVersion: {{ 'v1' if spec.debug else 'apps/v1' }}\nkind: {{ 'ConfigMap' if spec.debug else 'Deployment' }}\n"
        "metadata: {name: '{{ metadata.name }}'}\nspec: {replics: 1}\n"
    )
    found = findings(CHOSEN, c=template)
    for file in ("templates/c.yaml", "watches.yaml"):
        messages = [each.message for each in found if each.site.path == file]
        assert any("spec.replics is not in the schema of Deployment" in each for each in messages)
        assert any("spec.selector is required by the schema of Deployment" in each for each in messages)
        assert any("spec is not in the schema of ConfigMap" in each for each in messages)


def test_a_child_of_a_choice_has_the_fields_of_each_of_its_kinds() -> None:
    reading = """\
  j:
    waitFor: i.data.size and i.spec.replicas and i.metadata.nmae
    object: {apiVersion: v1, kind: ConfigMap, metadata: {name: j}}
"""
    template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
    messages = [each.message for each in findings(CHOSEN + reading, c=template) if "i." in each.message]
    assert messages == ["i.metadata.nmae is not in the schema (did you mean i.metadata.name?)"]


def test_for_each_needs_a_list_or_a_mapping() -> None:
    assert of("a: b", "forEach: spec.size") == [
        "error type-mismatch: spec.size is an integer: forEach needs a list or a mapping"
    ]


def test_a_let_is_evaluated_where_it_is_used() -> None:
    watch = 'let: {secret: "{{ spec.tls.secret }}", name: "{{ secret }}-a"}'
    assert of("a: b", watch=watch) == []
    assert of("a: {{ name }}", "when: spec.tls is defined", watch=watch) == []
    assert of("a: {{ secret | default('') }}", watch=watch) == []
    assert any(TLS in each for each in of("a: {{ name }}", watch=watch))
    assert any(TLS in each for each in of("a: {{ name }}", "when: spec.note is defined", watch=watch))


def test_a_let_that_is_true_shows_what_its_expression_shows() -> None:
    watch = 'let: {secured: "{{ spec.tls is defined and spec.debug }}"}'
    assert of("{% if secured %}\na: {{ spec.tls.secret }}\n{% endif %}", watch=watch) == []


def test_a_child_exists_where_its_condition_holds() -> None:
    other = "apiVersion: v1\nkind: Service\nmetadata: {name: b}\nspec: {ports: [{port: 1}]}\n"
    watch = "children:\n  web: {template: web.yaml, when: spec.tls is defined}\n  body: {template: body.yaml, when: %s}"

    def with_when(when: str) -> list[str]:
        return said(findings(watch % when, web=other, body=HEAD + "  a: {{ web.metadata.name }}\n"))

    assert with_when("spec.tls is defined and spec.debug") == []
    assert with_when("spec.debug") == [
        "warning maybe-missing: web has no value while `when` of the child is false: test it with `is defined`"
    ]


def test_a_child_that_exists_shows_its_condition() -> None:
    other = "apiVersion: v1\nkind: Service\nmetadata: {name: b}\nspec: {ports: [{port: 1}]}\n"
    watch = """
    children: {web: {template: web.yaml, when: spec.tls is defined}}
    status: {phase: "{{ spec.tls.secret if web.spec.clusterIP | default('') != '' else 'a' }}"}
    """
    assert said(findings(watch, web=other)) == []


def test_included_and_rendered_files_are_typed() -> None:
    part = "  b: {{ spec.note }}\n"
    assert of("{% include 'part.yaml' %}", part=part) == [NOTE]
    assert of("{% if spec.note is defined %}\n{% include 'part.yaml' %}\n{% endif %}", part=part) == []
    assert of("a: {{ render('part.yaml') }}", part=part) == [NOTE]


def test_a_file_of_two_rules_has_a_finding_only_if_both_have_it() -> None:
    shared = HEAD + "  a: {{ spec.tls.secret if spec.tls is defined and item.x is defined else '' }}\n"
    watch = """
    children:
      one: {template: shared.yaml, forEach: "[{'x': 1}]"}
      two: {template: shared.yaml, forEach: "[{'y': 1}]"}
    """
    assert said(findings(watch, shared=shared)) == []


def test_a_crd_that_does_not_require_spec_is_one_finding() -> None:
    crd = CRD.replace("          required: [spec]\n", "")
    found = said(
        findings(
            "children: {body: {template: body.yaml}}", crd=crd, body=HEAD + "  a: {{ spec.image }}{{ spec.size }}\n"
        )
    )
    assert len(found) == 1
    assert "the CRD does not require `spec`" in found[0]


def test_an_optional_child_may_not_exist() -> None:
    other = "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: b}\n"
    watch = """
    children: {web: {template: web.yaml, optional: true}}
    status: {phase: "{{ %s }}"}
    """
    (found,) = said(findings(watch % "web.metadata.name", web=other))
    assert "web has no value where its kind is not served (it is optional)" in found
    guarded = "web.metadata.name if has_kind('cert-manager.io/v1', 'Certificate') else 'a'"
    assert said(findings(watch % guarded, web=other)) == []
    assert said(findings(watch % "web.metadata.name | default('')", web=other)) == []


def test_a_deletion_is_delete_or_orphan() -> None:
    assert of("a: b", """deletion: "{{ 'orphan' if spec.debug else 'delete' }}" """) == []
    assert of("a: b", """deletion: "{{ 'orpan' if spec.debug else 'delete' }}" """) == [
        'error invalid-literal: deletion is "delete" or "orphan", not "orpan"'
    ]


def test_the_word_for_an_immutable_field_is_fail_or_recreate() -> None:
    assert of("a: b", """apply: {onImmutable: "{{ 'recreate' if spec.debug else 'fail' }}"}""") == []
    assert of("a: b", """apply: {onImmutable: "{{ 'recrate' if spec.debug else 'fail' }}"}""") == [
        'error invalid-literal: onImmutable is "fail" or "recreate", not "recrate"'
    ]
    (found,) = of("a: b", """apply: {onImmutable: "{{ spec.onImmutabel }}"}""")
    assert found.startswith("error unknown-field: spec.onImmutabel")


def test_a_schedule_and_its_zone_are_checked_where_they_are_literals() -> None:
    assert of("a: b", """schedule: "{{ '@daily' if spec.debug else '' }}" """) == []
    assert of("a: b", """schedule: "{{ '0 3 * *' if spec.debug else '@daily' }}" """) == [
        'error invalid-literal: "0 3 * *" is not a cron schedule such as "0 3 * * *": expected exactly 5 fields, found 4: [0 3 * *]'
    ]
    assert of("a: b", """schedule: "@daily"\ntimeZone: "{{ 'Berlin' if spec.debug else 'UTC' }}" """) == [
        'error invalid-literal: "Berlin" is not a time zone such as "Europe/Berlin"'
    ]
    for key in ("once", "schedule"):
        assert of("a: b", f"""{key}: "{{{{ spec.hosts }}}}" """) == [
            "error type-mismatch: spec.hosts is a list, and text is needed here"
        ]


BASE = HEAD + "  {% if spec.note is defined %}\n  {% block inner %}\n  a: b\n  {% endblock %}\n  {% endif %}\n"


def test_a_block_is_typed_at_its_place_in_the_file_that_is_extended() -> None:
    def found(block: str, base: str = BASE) -> list[str]:
        text = "{% extends 'base.yaml' %}\n{% set size = spec.size %}\n{% block inner %}\n" + block + "{% endblock %}\n"
        return said(findings("children: {body: {template: body.yaml}}", body=text, base=base))

    assert found("  a: '{{ spec.note }}{{ size }}'\n") == []
    (message,) = found("  a: '{{ spec.nto }}'\n")
    assert message.startswith("error unknown-field: spec.nto is not in the schema")
    assert found("  a: '{{ spec.note }}'\n", BASE.replace("spec.note is defined", "spec.debug")) == [NOTE]


def test_a_namespace_is_text() -> None:
    assert of("a: b", """namespace: "{{ spec.hosts }}" """, watch="reach: cluster") == [
        "error type-mismatch: spec.hosts is a list, and text is needed here"
    ]


@pytest.mark.slow
def test_deep_expressions_end() -> None:
    many = " and ".join(f"(spec.note == '{number}' or spec.debug)" for number in range(40))
    assert of("a: b", f"when: not ({many})")
    assert isinstance(of("a: {{ " + " + ".join(["spec.size"] * 150) + " }}"), list)
