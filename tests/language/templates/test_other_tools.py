"""Syntax of Helm, Ansible and other languages is answered with a hint."""

from __future__ import annotations

import re

import pytest

from ruleop.language.templates import RuleErrors
from ruleop.language.templates.compile import Library
from ruleop.language.templates.compile.hints import (
    ALONE,
    FILTERS,
    FUNCTIONS,
    LOOKUPS,
    NAMES,
    NOT_OFFERED,
    TESTS,
    instead_of,
)
from ruleop.language.templates.filters.registry import FILTER_NAMES
from tests.language.templates.rendering import HERE, documents

KNOWN = Library({}).environment.filters
MACRO = "write a macro and import it: `{% from 'macros.j2' import labels %}`, then `{{ labels() }}`"
OBSERVE = "read objects of the cluster with `observe` in the watch, a file of templates/ with `file('x')`, the environment with `vars`"
DOT = "a name cannot start with a dot: write spec.x, not .Values.x"
EQUALS = "write `x == y` to compare, and `{% set x = y %}` to give a value a name"
SYNTAX = {
    # Helm
    '{{ include "labels" . }}': f"unknown function include: {MACRO}",
    '{{ include "labels" . | nindent 4 }}': f"{MACRO} alone on its line, which is indented as the line is",
    '{{ include "labels" . | indent 4 }}': f"{MACRO} alone on its line, which is indented as the line is",
    '{{- template "labels" $ | nindent 8 -}}': f"{MACRO} alone on its line, which is indented as the line is",
    '{{- include "labels" $ -}}': f"unknown function include: {MACRO}",
    '{{ template "labels" . }}': MACRO,
    "{{ tpl .Values.x . }}": "unknown function tpl: write `render('file.j2')`; a value is never rendered as a template",
    '{{ required "say" .Values.x }}': "required is a filter: write `x | required('message')`",
    '{{ default "a" .Values.x }}': "default is a filter: write `x | default('a')`",
    "{{ default 3 spec.x }}": "default is a filter: write `x | default('a')`",
    '{{ .Values.x | default "a" }}': "the arguments of a filter must be in brackets: write `x | default('a')`",
    "{{ spec.x | nindent 4 }}": f"write {ALONE}",
    "{{ toYaml .Values.x | nindent 4 }}": f"write {ALONE}",
    "{{ toYaml spec.x | indent 4 }}": f"write {ALONE}",
    "{{ .Values.x | toYaml | nindent 4 }}": f"write {ALONE}",
    '{{ lookup "v1" "Secret" "a" "b" }}': f"unknown function lookup: {OBSERVE}",
    '{{ fail "no" }}': "unknown function fail: write a rule with its message under `validate` in the watch, or `x | required('message')`",
    '{% if hasKey .Values "x" %}{% endif %}': "unknown function hasKey: write `'key' in x`, or `x.key is defined`",
    '{% if eq .Values.a "b" %}{% endif %}': "unknown function eq: write `x == y`",
    '{{ printf "%s-%s" a b }}': "unknown function printf: write `'%s-%s' | format(x, y)`, or `x ~ '-' ~ y`",
    '{{ trimSuffix "a" x }}': "unknown function trimSuffix: write `x.removesuffix('a')`",
    "{{ .Values.x }}": DOT,
    "{{ .Values.x | quote }}": DOT,
    "{{ not .Values.x }}": DOT,
    "{{ .Release.Name }}": "write metadata.name, not .Release.Name",
    "{{ .Release.Namespace }}": "write metadata.namespace, not .Release.Namespace",
    "{{ .Release.Service }}": "write metadata.name or metadata.namespace; a custom resource has no release",
    "{{ .Chart.Version }}": "write vars.x, with `vars` in watches.yaml, not .Chart.x",
    '{{ .Files.Get "x" }}': "write `file('x')`, not .Files.Get",
    '{{ .Capabilities.APIVersions.Has "x" }}': "write `has_kind('group/v1', 'Kind')`, not .Capabilities",
    "{{ $x }}": "$ is not valid in an expression: write spec.x, not $x or .Values.x",
    "{{- $x := spec.y -}}": "write `{% set x = y %}`, not `$x := y`",
    "{{/* why */}}": "write a comment as `{# ... #}`",
    '{{ define "labels" }}': "write `{% macro labels() %}` and `{% endmacro %}`",
    "{{ if .Values.x }}": "write `{% if x %}` and `{% endif %}`",
    '{{- if eq spec.x "a" }}': "write `{% if x %}` and `{% endif %}`",
    "{{ range .Values.x }}": "write `{% for item in x %}` and `{% endfor %}`",
    "{{ range $k, $v := .Values.x }}": "write `{% for item in x %}` and `{% endfor %}`",
    "{{ with .Values.x }}": "write `{% set y = x %}`",
    "{{ else }}": "write `{% else %}`",
    "{{ and .Values.a .Values.b }}": "write `x and y`",
    "{{ or .Values.a .Values.b }}": "write `x or y`",
    # other languages
    "{% if a && b %}{% endif %}": "write `x and y`, not `x && y`",
    "{{ a || b }}": "write `x or y`, not `x || y`",
    "{% if !a %}{% endif %}": "write `not x`, not `!x`",
    "{% if a and !b.c %}{% endif %}": "write `not x`, not `!x`",
    "{% if a === b %}{% endif %}": "write `x == y`, not `x === y`",
    "{% if a !== b %}{% endif %}": "write `x != y`, not `x !== y`",
    "{% if a <> b %}{% endif %}": "write `x != y`, not `x <> y`",
    "{% if a = 'b' %}{% endif %}": EQUALS,
    "{{ a = b }}": EQUALS,
    "{{ a ? 'b' : 'c' }}": "write `y if x else z`, not `x ? y : z`",
    "{{ a > 1 ? b : c }}": "write `y if x else z`, not `x ? y : z`",
    "{{ a ?? b }}": "write `x | default(y)`, not `x ?? y`",
    "{{ a?.b }}": "write `x.y | default('')`, not `x?.y`",
    "{{ [x for x in a] }}": "write `list | map(...)` or `list | select(...)`, not `[x for x in list]`",
    "{% if a %}{% else if b %}{% endif %}": "write `{% elif x %}`, not `{% else if x %}`",
    "{% set list = a && b %}": "write `x and y`, not `x && y`",
    "{% for values in a && b %}{% endfor %}": "write `x and y`, not `x && y`",
    "{{ toYaml . }}": f"unknown function toYaml: write {ALONE}; `x | to_yaml` is text",
    "{{ eq (len .Values.x) 3 }}": "unknown function eq: write `x == y`",
    '{% if and .Values.a .Values.b "c" %}{% endif %}': DOT,
    # nothing to say, or nothing better than Jinja does
    "{{ a + }}": "unexpected 'end of print statement'",
    "{{ '&&' + }}": "unexpected 'end of print statement'",
    "{{ a b }}": "expected token 'end of print statement', got 'b'",
    "{{ 'a' 'b' 5 }}": "expected token 'end of print statement', got 'integer'",
    "{% for x of a %}{% endfor %}": "expected token 'in', got 'of'",
}  # fmt: skip


@pytest.mark.parametrize("source", SYNTAX)
def test_a_syntax_error_of_another_tool_has_a_hint(source):
    with pytest.raises(RuleErrors) as caught:
        documents(f"a: 1\nb: {{{{ 'x' }}}} {source}\n")
    assert str(caught.value) == f"templates/main.j2:2: template syntax: {SYNTAX[source]}"


def test_an_expression_in_watches_yaml_has_the_same_hint():
    for source in ("spec.a && spec.b", "{{ spec.a && spec.b }}"):
        with pytest.raises(RuleErrors, match="template syntax: write `x and y`, not `x && y`"):
            Library({}).expression(source, HERE)


UNKNOWN = {
    "{{ v | toYaml }}": "unknown filter toYaml; use to_yaml",
    "{{ v | trimSuffix('a') }}": "unknown filter trimSuffix; use `x.removesuffix('a')`",
    "{{ v | community.general.json_query('a') }}": "unknown filter community.general.json_query; use `map`, `selectattr` and `dict2items`",
    "{{ v | ansible.builtin.to_nice_yaml }}": "unknown filter ansible.builtin.to_nice_yaml; use to_nice_yaml",
    "{{ v | ansible.utils.ipaddr }}": "unknown filter ansible.utils.ipaddr; use `x | ip_network`, `x | host(1)` or `x is ip_address`",
    "{{ v | omit('a') }}": "unknown filter omit; use remove_keys",
    "{{ lookup('env', 'X') }}": "unknown function lookup('env'): read the environment in `vars`: `name: ${NAME}`",
    "{{ query('kubernetes.core.k8s', 'x') }}": "unknown function query('kubernetes.core.k8s'): read objects of the cluster with `observe` in the watch",
    "{{ lookup('ansible.builtin.file', 'x') | b64encode }}": "unknown function lookup('ansible.builtin.file'): write `file('x')`, of a file of templates/",
    "{{ v | ansible.builtin.combine({}) }}": "unknown filter ansible.builtin.combine; use combine",
    "{{ 1 if v is regex('a') }}": "unknown test regex; use `x is search('a')`",
    "{{ 1 if v is ansible.builtin.version_compare('1') }}": "unknown test ansible.builtin.version_compare; use version",
}


@pytest.mark.parametrize("source", UNKNOWN)
def test_an_unknown_filter_or_test_of_another_tool_has_a_hint(source):
    with pytest.raises(RuleErrors) as caught:
        documents(source)
    assert str(caught.value) == f"templates/main.j2:1: {UNKNOWN[source]}"


def test_a_macro_may_have_the_name_of_a_lookup():
    assert documents("{% macro lookup(x) %}{{ x }}{% endmacro %}\na: {{ lookup('env') }}\n") == [{"a": "env"}]


def test_hints_are_valid_templates():
    library = Library({"file.j2": "", "x": "", "x.j2": ""})
    assert {name for name in KNOWN if name.isidentifier()} == FILTER_NAMES
    assert not set(FILTERS) & set(KNOWN)
    assert not set(NOT_OFFERED) & set(KNOWN)
    assert not set(TESTS) & set(library.environment.tests)
    assert not set(FUNCTIONS) & {*KNOWN, *NAMES} - {"list"}
    for told in (
        *FILTERS.values(),
        *TESTS.values(),
        *FUNCTIONS.values(),
        *NAMES.values(),
        *LOOKUPS.values(),
        *(instead_of(name) for name in FILTER_NAMES),
    ):
        assert told in KNOWN or told in library.environment.tests or "`" in told or told.startswith("write ")
        for snippet in re.findall(r"`([^`]+)`", told):
            if "{" in snippet:
                assert snippet.startswith(("{%", "{{", "name: ${", "x | combine")), snippet
            elif snippet not in KNOWN:
                library.expression(snippet, HERE)
