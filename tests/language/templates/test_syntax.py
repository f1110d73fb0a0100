"""The syntax tree of templates: what its nodes are, where they are, and which names a template leaves to others."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import nodes as jinja
from jinja2.meta import TrackingCodeGenerator

import ruleop
from ruleop.errors import RenderError, Site
from ruleop.language.templates import RuleErrors, syntax
from ruleop.language.templates.compile import Library
from ruleop.language.templates.compile.conversion import _Conversion
from ruleop.language.templates.compile.references import read_tree
from ruleop.language.templates.syntax import find, source_of, walk
from tests.language.templates.rendering import library, render

EVERYTHING = """\
{% import 'm' as m %}{% from 'm' import f as g, h without context %}
{% macro made(a, b=[1, (2, 3)]) %}{{ caller() }}{% endmacro %}
{% set x = {'k': -v.a['b'][0][1:] ** 2 % 3} %}{% set ns.y = 1 %}
{% set z | upper %}t{% endset %}
{% for i, (j, k) in v.l if i is not none recursive %}{{ loop(i) }}{% else %}e{% endfor %}
{% if v and not w or +1 < 2 <= 3 %}a{% elif v.x in [1] %}b{% else %}c{% endif %}
{% with q = v ~ 1, r = 2 // 1 %}{{ q if r else w }}{% endwith %}
{% call(c) made(*v, a=1, **w) %}{{ c }}{% endcall %}
{% filter indent(2) | trim %}f{% endfilter %}
{% include ['m', 'n'] ignore missing %}
{% block p %}{{ super() }}{% endblock %}
{{ v | default('d', boolean=true) / 1 - 2 + 3 * 4 }}
"""
LIBRARY = Library({})
ENVIRONMENT = LIBRARY.environment
FILES = {"m": "{% macro f() %}{% endmacro %}{% macro h() %}{% endmacro %}"}


def tree_of(text: str) -> syntax.Template:
    return library(text, FILES).source("main.j2").tree


# -- nodes -------------------------------------------------------------------------------------------------------------


def below(node: Any) -> list[syntax.Node]:
    """All nodes that the fields of a node hold, without the tables of `syntax`."""
    if isinstance(node, syntax.Node):
        values = [getattr(node, each.name) for each in fields(node) if each.name not in {"_index", "overridden"}]
        return [node, *(each for value in values for each in below(value))]
    if isinstance(node, (tuple, dict)):
        return [each for value in (node.values() if isinstance(node, dict) else node) for each in below(value)]
    return []


def test_a_walk_comes_to_every_node_once():
    tree = tree_of(EVERYTHING)
    walked = list(walk(tree))
    assert {*walked} == {*below(tree)}
    assert len(walked) == len({*walked})
    kinds = {each for each in vars(syntax).values() if isinstance(each, type) and issubclass(each, syntax.Node)} - {
        syntax.Node,
        syntax.Expr,
        syntax.Stmt,
        syntax.WithArguments,
        syntax.Extends,
    }
    assert {type(each) for each in walked} == kinds


def test_every_class_that_jinjas_parser_makes_is_converted():
    made = {
        each
        for each in vars(jinja).values()
        if isinstance(each, type) and issubclass(each, (jinja.Stmt, jinja.Expr)) and not each.abstract
    }
    of_extensions = {
        jinja.Break, jinja.Continue, jinja.ContextReference, jinja.DerivedContextReference, jinja.EnvironmentAttribute,
        jinja.EvalContextModifier, jinja.ExprStmt, jinja.ExtensionAttribute, jinja.ImportedName, jinja.InternalName,
        jinja.MarkSafe, jinja.MarkSafeIfAutoescape, jinja.OverlayScope, jinja.ScopedEvalContextModifier,
    }  # fmt: skip
    elsewhere = {jinja.Output, jinja.TemplateData, jinja.NSRef}
    operators = {each for each in made if issubclass(each, jinja.BinExpr)} - {jinja.And, jinja.Or}
    for each in made - of_extensions - elsewhere - operators - {jinja.Stmt, jinja.Expr, jinja.Literal}:
        assert hasattr(_Conversion, f"_{each.__name__.lower()}"), each


@pytest.mark.slow
def test_jinjas_nodes_are_known_to_their_conversion_alone():
    importing = set()
    for path in Path(ruleop.__file__).parent.rglob("*.py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "jinja2" in text else ():
            names = [alias.name for alias in node.names] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
            module = getattr(node, "module", None)
            if (module == "jinja2" and "nodes" in names) or module == "jinja2.nodes" or "jinja2.nodes" in names:
                importing.add(path.name)
    assert importing == {"conversion.py"}


def test_every_node_has_its_line():
    assert {each.site.path for each in walk(tree_of(EVERYTHING))} == {"templates/main.j2"}
    lines = {type(each).__name__: each.site.line for each in reversed(tree_of(EVERYTHING).body)}
    assert lines["Macro"] == 2
    assert [each.site.line for each in find(tree_of("a: 1\n\nb: {{ x\n  + y }}\n"), syntax.Name)] == [3, 4]
    string = library().written_string("a\n{{ x }}", Site("watches.yaml", 7, 11))
    assert [each.site for each in find(string, syntax.Name)] == [Site("watches.yaml", 8)]
    assert [each.place.site for each in find(string, syntax.Print)] == [Site("watches.yaml", 7, 11)]


def test_a_field_is_the_same_in_both_spellings_and_keeps_its_own():
    dotted, bracketed = (value_of(text) for text in ("a.b", "a['b']"))
    assert repr(dotted) == repr(bracketed)
    assert (source_of(dotted), source_of(bracketed)) == ("a.b", "a['b']")
    assert source_of(value_of("a[0].b")) == "a[0].b"
    assert source_of(value_of("a[b].c")) == ""


def value_of(text: str) -> syntax.Expr | None:
    return library().written_string("{{ " + text + " }}", Site("watches.yaml", 7, 11)).only_value


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("a: {{ v[1:2, 3] }}", "main.j2:1: template syntax: a slice cannot be one of several keys"),
        ("\n{% import ['m'] as m %}", "main.j2:2: the name in import must be literal text"),
        ("{% for x in v %}{% extends 'm' %}{% endfor %}", "cannot use extend from a non top-level scope"),
        ("{% for x in v %}{% set loop = 1 %}{% endfor %}", "Can't assign to special loop variable"),
        ("{% macro f(caller) %}{{ caller() }}{% endmacro %}", 'the special "caller" argument must be omitted'),
        ("{% extends 'main.j2' %}", "main.j2:1: nested too deeply"),
    ],
)
def test_the_language_refuses_some_of_what_jinja_parses(source: str, message: str):
    with pytest.raises(RuleErrors, match=message):
        library(source, FILES).text_mapping("main.j2")


# -- blocks ------------------------------------------------------------------------------------------------------------


def test_a_block_inside_of_another_is_the_one_in_force_also_in_what_super_gives():
    files = {
        "base": "{% block outer %}\n{% if v %}\n{% block inner %}\nb: 1\n{% endblock %}\n{% endif %}\n{% endblock %}\n"
    }
    main = "{% extends 'base' %}{% block outer %}\na: 1\n{{ super() }}\n{% endblock %}{% block inner %}\nb: 2\n{% endblock %}"
    assert render(main, files, v=True) == {"a": 1, "b": 2}


def test_an_error_of_an_extended_file_has_the_line_of_that_file():
    files = {"base": "{% if v.x %}\n{% endif %}\n{% block b %}\n{% endblock %}\n"}
    with pytest.raises(RenderError) as error:
        render("{% extends 'base' %}\n\n\n{% block b %}\na: 1\n{% endblock %}", files, v={})
    assert error.value.site == Site("templates/base", 1)


def test_all_filters_of_a_block_are_applied():
    assert render("a: '[{% filter trim | upper %}  x {% endfilter %}]'") == {"a": "[X]"}
    assert render("{% set x | trim | upper %}  x {% endset %}\na: '[{{ x }}]'") == {"a": "[X]"}


# -- free names --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("{% set x = a %}{{ x }}", {"a"}),
        ("{{ x }}{% set x = a %}", {"x", "a"}),
        ("{% if a %}{% set x = 1 %}{% endif %}{{ x }}", {"a", "x"}),
        ("{% if a %}{% set x = 1 %}{{ x }}{% endif %}", {"a"}),
        ("{% if a %}{% set x = 1 %}{% elif b %}{% set x = 2 %}{% else %}{% set x = 3 %}{% endif %}{{ x }}", {"a", "b"}),
        ("{% for x in a if x.b %}{{ loop.index }}{{ x }}{% else %}{{ x }}{% endfor %}", {"a", "x"}),
        ("{% for x in a if loop.first %}{% endfor %}", {"a", "loop"}),
        ("{% macro f(x, y=x) %}{{ x }}{{ y }}{{ caller() }}{{ z }}{% endmacro %}{% set z = 1 %}", set()),
        ("{% with x = a %}{{ x }}{% endwith %}{{ x }}", {"a", "x"}),
        ("{% set x = 1 %}{% block p %}{{ x }}{{ super() }}{% endblock %}{{ self.p() }}{{ super() }}", {"super"}),
        ("{% set ns.x = 1 %}{{ namespace() }}", {"ns", "namespace"}),
    ],
)
def test_the_names_that_a_template_reads_and_does_not_set(source: str, names: set[str]):
    assert read_tree(tree_of(source)).names == names


NAMES = st.sampled_from("abc")
EXPRESSIONS = st.one_of(NAMES, NAMES.map("{0}.x".format), st.builds("{} | default({})".format, NAMES, NAMES))


def _around(bodies: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.builds("{}{}".format, bodies, bodies)
    return st.one_of(
        st.builds("{{% if {} %}}{}{{% endif %}}".format, EXPRESSIONS, two),
        st.builds(
            "{{% if {} %}}{}{{% elif {} %}}{}{{% else %}}{}{{% endif %}}".format, EXPRESSIONS, two, NAMES, two, two
        ),
        st.builds("{{% for {} in {} %}}{}{{% else %}}{}{{% endfor %}}".format, NAMES, EXPRESSIONS, two, two),
        st.builds("{{% macro m({}={}) %}}{}{{% endmacro %}}".format, NAMES, EXPRESSIONS, two),
        st.builds("{{% set {} %}}{}{{% endset %}}".format, NAMES, two),
        st.builds("{{% with {} = {} %}}{}{{% endwith %}}".format, NAMES, EXPRESSIONS, two),
        st.builds("{{% call f({}) %}}{}{{% endcall %}}".format, EXPRESSIONS, two),
        st.builds("{{% filter upper %}}{}{{% endfilter %}}".format, two),
        two,
    )


LINES = st.one_of(
    st.builds("{{{{ {} }}}}".format, EXPRESSIONS), st.builds("{{% set {} = {} %}}".format, NAMES, EXPRESSIONS)
)


@pytest.mark.slow
@given(st.recursive(LINES, _around, max_leaves=12))
def test_no_name_is_free_that_jinja_finds_set(text: str):
    """Jinja's generator of code calls more names free: also one that is set and read in the same branch."""
    generator = TrackingCodeGenerator(ENVIRONMENT)
    generator.optimizer = None
    generator.visit(ENVIRONMENT._parse(text, None, None))
    free = read_tree(LIBRARY._parse(text, Site("main.j2", 1), is_file=True)).names
    assert free <= generator.undeclared_identifiers
    if "{% if" not in text:
        assert free == generator.undeclared_identifiers
