"""Imported macros see the current resource, like macros of the same file, and nothing leaks from one resource into
another."""

from __future__ import annotations

import pytest

from ruleop.errors import RenderError
from ruleop.language.templates import RuleErrors, TemplateFunction
from tests.language.templates.rendering import library, paths_read, render, scope

READS = {"m": "{% macro f() %}{{ v.x }}{% endmacro %}{% set top = v.x %}"}


@pytest.mark.parametrize(
    "source",
    [
        "{% import 'm' as m %}\na: {{ m.f() }}",
        "{% from 'm' import f %}\na: {{ f() }}",
        "{%- from 'm' import f as g, top -%}\na: {{ g() }}",
        "{% import 'm' as m with context %}\na: {{ m.f() }}",
        "{% from 'm' import f with context %}\na: {{ f() }}",
        "{% import 'm' as m %}\na: {{ m.top }}",
        "{% from 'n' import g %}\na: {{ g() }}",
    ],
)
def test_an_imported_macro_sees_the_current_resource(source):
    template = library(
        source, {**READS, "n": "{% from 'm' import f %}{% macro g() %}{{ f() }}{% endmacro %}"}
    ).text_mapping("main.j2")
    assert [template.render(scope({"v": {"x": value}})) for value in ("1a", "2a", "1a")] == [
        [{"a": "1a"}],
        [{"a": "2a"}],
        [{"a": "1a"}],
    ]
    assert ("v", "x") in {reference.path for reference in template.references}


def test_an_imported_macro_sees_names_set_before_its_import():
    files = {"m": "{% macro f() %}{{ w }}{% endmacro %}"}
    assert render("{% set w = 1 %}{% import 'm' as m %}\na: {{ m.f() }}", files) == {"a": 1}
    assert render("{% for w in ['x', 'y'] %}{% from 'm' import f %}\n- {{ f() }}\n{% endfor %}", files) == ["x", "y"]


def test_an_imported_macro_can_call_the_functions_of_the_pass():
    names = {"now": TemplateFunction("now", lambda: "today")}
    assert render(
        "{% from 'm' import f %}\na: {{ f() }}", {"m": "{% macro f() %}{{ now() }}{% endmacro %}"}, **names
    ) == {"a": "today"}


def test_importing_a_macro_that_reads_the_scope_without_context_is_refused_with_its_line():
    for source, line in [
        ("a: 1\n{% import 'm' as m without context %}", 2),
        ("{% from 'm' import f without context %}", 1),
    ]:
        with pytest.raises(RuleErrors) as caught:
            library(source, READS).text_mapping("main.j2")
        assert (
            str(caught.value)
            == f"templates/main.j2:{line}: m reads v, which an import `without context` hides: remove `without context`"
        )
    with pytest.raises(RuleErrors, match="n reads v, x, which an import"):
        library("{% import 'n' as n without context %}", {**READS, "n": "{% import 'm' as m %}{{ x }}"}).text_mapping(
            "main.j2"
        )
    assert render(
        "{% import 'm' as m without context %}\na: {{ m.f(1) }}", {"m": "{% macro f(v) %}{{ v }}{% endmacro %}"}
    ) == {"a": 1}


@pytest.mark.parametrize(
    "macros",
    [
        "{% set ns = namespace(n=0) %}{% macro f() %}{% set ns.n = ns.n + 1 %}{{ ns.n }}{% endmacro %}",
        "{% set c = cycler('1', '2') %}{% macro f() %}{{ c.next() }}{% endmacro %}",
        "{% set j = joiner('2') %}{% macro f() %}{{ j() }}1{% endmacro %}",
    ],
)
def test_state_in_an_imported_module_ends_with_the_render(macros):
    template = library("{% from 'm' import f %}\na: {{ f() }}", {"m": macros}).text_mapping("main.j2")
    first = template.render({})
    assert first[0]["a"] in {1, "1"}
    assert [template.render({}) for _ in range(2)] == [first] * 2


@pytest.mark.slow
def test_an_import_in_each_iteration_of_a_loop_counts_against_the_budget():
    macros = "".join(f"{{% macro m{number}() %}}{{{{ v }}}}{{% endmacro %}}" for number in range(200))
    with pytest.raises(RenderError, match="the templates do too much work"):
        render("{% for i in range(10000) %}{% import 'm' as m %}{% endfor %}", {"m": macros}, v=1)


def test_fields_read_by_an_imported_macro_are_known_before_rendering():
    assert paths_read("{% from 'm' import f %}{{ f() }}", READS) == {("v", "x")}
    assert paths_read(
        "{% for p in pods %}{% from 'm' import f %}{{ f() }}{% endfor %}",
        {"m": "{% macro f() %}{{ p.spec }}{% endmacro %}"},
    ) == {("pods",)}
    template = library(
        "{% for p in pods %}{% from 'm' import f %}{{ f() }}{% endfor %}",
        {"m": "{% macro f() %}{{ p.spec }}{% endmacro %}"},
    ).text_mapping("main.j2")
    assert [reference.passes for reference in template.references] == [False], "the whole of each pod may be read"


def test_only_macros_that_are_imported_or_called_read_what_is_in_them():
    helpers = {
        "m": "{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ v.x }}{% endmacro %}"
        "{% macro h() %}{{ v.y }}{{ other }}{% endmacro %}{% macro i() %}{{ v.z }}{% endmacro %}{% set top = i %}"
    }
    for source, read in [
        ("{% from 'm' import f %}\na: {{ f() }}", {"x", "z"}),
        ("{% from 'm' import g as h %}\na: {{ h() }}", {"x", "z"}),
        ("{% from 'm' import f %}{% from 'm' import h %}\na: {{ f() }}", {"x", "y", "z"}),
        ("{% from 'm' import f %}{% import 'm' as m %}\na: {{ f() }}", {"x", "y", "z"}),
        ("{% from 'n' import k %}\na: {{ k() }}", {"x", "z"}),
        ("{% include 'm' %}\na: b", {"x", "y", "z"}),
    ]:
        files = {**helpers, "n": "{% from 'm' import f %}{% macro k() %}{{ f() }}{% endmacro %}"}
        template = library(source, files).text_mapping("main.j2")
        assert {reference.path[1] for reference in template.references if reference.name == "v"} == read, source
        assert ("other" in template.names) is ("y" in read), source
    assert render("{% from 'm' import f %}\na: {{ f() }}", helpers, v={"x": 1, "z": 2}) == {"a": 1}


def test_a_syntax_error_in_an_import_keeps_jinjas_message():
    with pytest.raises(RuleErrors, match="expected token 'as', got 'end of statement block'"):
        library("{% import 'm' %}", READS).text_mapping("main.j2")
    with pytest.raises(RuleErrors, match="expected token 'name', got 'end of statement block'"):
        library("{% from 'm' import %}", READS).text_mapping("main.j2")
