"""A template can use plain data and the listed functions, and nothing else of Python."""

from __future__ import annotations

import pytest

from ruleop.errors import RenderError
from ruleop.language.templates import JINJA_NAMES, RuleErrors, TemplateFunction
from ruleop.language.templates.compile import Library
from tests.language.templates.rendering import documents, evaluate, render

SHADOWED = ["items", "keys", "values", "get", "copy", "pop", "update", "clear", "setdefault", "popitem", "data", "field", "path", "origin", "parent", "key", "wrap", "missing",
            "__class__", "__dict__", "__init__", "__len__", "index", "count", "_sneaky", "name", "first", "length", "step", "fault"]  # fmt: skip


@pytest.mark.parametrize("name", SHADOWED)
def test_a_field_wins_over_a_python_attribute_of_its_name(name):
    spec = {name: "the field", "inner": {name: {"x": 1}}}
    assert evaluate(f"spec.{name}", spec=spec) == "the field"
    assert evaluate(f"spec['{name}']", spec=spec) == "the field"
    assert evaluate(f"spec.inner.{name}.x", spec=spec) == 1
    assert evaluate(f"[spec] | map(attribute='inner.{name}.x') | list", spec=spec) == [1]
    assert render(f"a: {{{{ spec.{name} }}}}", spec=spec) == {"a": "the field"}
    assert render("{% set m = {'" + name + "': 5} %}\na: {{ m." + name + " }}") == {"a": 5}


@pytest.mark.parametrize("name", SHADOWED)
def test_attributes_of_python_objects_are_undefined(name):
    for value in ({"x": 1}, [1], "text", 5, True, 1.5):
        with pytest.raises(RenderError, match=r"is not set|has no field"):
            evaluate(f"spec.{name}", spec=value)
        assert evaluate(f"spec.{name} is defined", spec=value) is False
        assert evaluate(f"spec['{name}'] | default('d')", spec=value) == "d"


def test_methods_can_be_called_even_where_a_field_has_their_name():
    spec = {"items": {"b": 1}, "get": 3}
    assert evaluate("spec.items.items()", spec=spec) == [["b", 1]]
    assert evaluate("spec.items() | length", spec=spec) == 2
    assert evaluate("spec.get('get')", spec=spec) == 3
    assert evaluate("spec.get('no')", spec=spec) is None
    assert evaluate("spec.get('no', 4)", spec=spec) == 4
    assert evaluate("{'a': 1}.get('b', 2)") == 2


ESCAPES = [
    "''.__class__", "''.__class__.__mro__[1].__subclasses__()", "''['__class__']", "[]['__class__']['__base__']", "().__class__.__bases__", "{}.__class__",
    "spec.__class__", "spec['__class__']", "spec.__init__.__globals__", "spec.data", "spec._data", "spec.parent.data", "spec.items.__func__", "spec.list.__class__",
    "range.__class__", "range.function", "range.function.__globals__", "range.__call__", "dict.__class__", "dict.function", "dict.mro()", "omit.__class__", "omit._path",
    "namespace.__init__", "namespace.__init__.__globals__", "namespace().__class__", "namespace()['__class__']", "namespace()._Namespace__attrs", "cycler.__init__.__globals__",
    "cycler.__init__.__globals__.os.popen('id')", "joiner.__init__.__globals__", "cycler('a').__class__", "cycler('a').items", "cycler('a').pos", "joiner('a').sep", "lipsum.__globals__",
    "self", "self.__init__", "self._TemplateReference__context", "self._TemplateReference__context.environment", "self.x.__init__", "loop", "caller", "varargs", "kwargs", "context",
    "environment", "constants", "resolve", "undefined", "missing", "Slot", "OMIT", "comparable", "field_of", "__builtins__", "__import__('os')", "open('/etc/passwd')", "eval('1')",
    "file.function", "file.__self__", "render.function.__globals__", "config", "request", "url_for.__globals__", "get_flashed_messages", "g",
    "'{0.__class__}'.format(1)", "'{0.__class__}'.format_map({'0': 1})", "'%s' | format(spec.list.__class__)", "('{0.__class__}' | format(1)).x", "'a'.format", "'a'.format_map",
    "'a'.encode()", "'a'.translate({})", "'a'.maketrans()", "'a'.__add__('b')", "spec.pop('x')", "spec.update({})", "spec.clear()", "spec.setdefault('x', 1)", "spec.list.append(1)",
    "spec.list.pop()", "spec.list.extend([1])", "spec.list.insert(0, 1)", "spec.list.remove(1)", "spec.list.sort()", "spec.list.reverse()", "spec.list.clear()", "[1].append(2)", "{}.update({'a': 1})",
    "[spec] | map(attribute='__class__') | first", "[spec] | map(attribute='__init__.__globals__') | first", "[''] | map(attribute='__class__.__mro__') | first",
    "[spec.list] | sum(attribute='__class__') ~ nothing", "spec | items | map(attribute='__class__') | first", "[1] | map('attr', '__class__') | first", "['x'] | map('__class__') | first",
    "[1] | map('no_such') | first", "[1] | select('no_such') | first", "[1] | select('callable') | first", "[1] | map('pprint') | first", "['a'] | map('safe') | first",
    "[1] | map(spec.name) | first", "[1] | groupby('__class__') | first", "[1] | sort(attribute='__class__') | first", "[1] | unique(attribute='__class__') | first", "[1] | min(attribute='__class__')",
    "nothing.__class__", "nothing._fail_with_undefined_error()", "spec.nothing.__class__", "spec.nothing._hint", "spec.nothing.fault()", "nothing.__init__.__globals__",
    "(spec.list | reverse).__class__", "(spec | items)[0].__class__", "(spec | to_json).__class__", "(spec | to_json).data", "(spec | to_yaml)._render", "('1' | quantity).__class__",
    "('1' | quantity).numerator", "1.5.real", "(1).real", "(1).__class__", "(1).bit_length()", "1 .conjugate()", "true.real", "spec()", "spec.list()", "spec.name()", "5()", "'x'()", "[1]()", "range.name",
    "(1, 2).__class__", "(1, 2).count.__class__", "range(3).__class__", "range(3).start", "range(3).__iter__()", "dict(a=1).__class__", "'a'.join.__self__", "'a'.upper.__class__",
]  # fmt: skip


@pytest.mark.parametrize("escape", ESCAPES)
def test_no_expression_escapes_the_sandbox(escape):
    with pytest.raises((RenderError, RuleErrors)):
        evaluate(escape, spec={"x": 1, "list": [1], "name": "upper_of_nothing"})


@pytest.mark.parametrize("escape", [escape for escape in ESCAPES if not escape.endswith("first") and "(" not in escape])
def test_escape_attempts_are_not_even_defined(escape):
    assert (
        evaluate(f"({escape}) is defined", spec={"x": 1, "list": [1], "name": "n"}) is False
        or escape in DEFINED_BUT_NO_DATA
    )


DEFINED_BUT_NO_DATA = {"self", "spec.list"}

IN_TEMPLATES = [
    "{% macro m() %}{% endmacro %}a: {{ m.__class__ }}", "{% macro m() %}{% endmacro %}a: {{ m._func.__globals__ }}", "{% macro m() %}{% endmacro %}a: {{ m.name }}",
    "{% macro m() %}{% endmacro %}a: {{ m._environment }}", "{% macro m() %}{% endmacro %}a: {{ m.arguments }}", "{% macro m() %}{% endmacro %}a: {{ m }}", "{% macro m() %}{{ caller.__class__ }}{% endmacro %}a: {% call m() %}{% endcall %}",
    "{% macro m() %}{{ varargs.__class__ }}{% endmacro %}a: {{ m(1) }}", "{% macro m() %}{{ kwargs.__class__ }}{% endmacro %}a: {{ m(x=1) }}", "{% macro m() %}{{ caller._func }}{% endmacro %}a: {% call m() %}{% endcall %}",
    "{% import 'o' as o %}a: {{ o.__class__ }}", "{% import 'o' as o %}a: {{ o._body_stream }}", "{% import 'o' as o %}a: {{ o.__name__ }}", "{% import 'o' as o %}a: {{ o.__dict__ }}", "{% import 'o' as o %}a: {{ o }}",
    "{% import 'o' as o %}a: {{ o.nothing }}", "{% from 'o' import nothing %}a: {{ nothing }}", "{% from 'o' import __class__ %}a: 1", "{% for i in [1] %}a: {{ loop.__class__ }}{% endfor %}", "{% for i in [1] %}a: {{ loop._iterator }}{% endfor %}",
    "{% for i in [1] %}a: {{ loop._undefined }}{% endfor %}", "{% for i in [1] %}a: {{ loop }}{% endfor %}", "{% for i in [1] %}a: {{ loop.cycle }}{% endfor %}", "{% set ns = namespace() %}{% set ns.__class__ = 1 %}a: {{ ns.__init__ }}",
    "{% set ns = namespace(a=1) %}a: {{ ns }}", "{% set spec.x = 1 %}a: 1", "{% block b %}a: {{ self.b.__class__ }}{% endblock %}", "{% block b %}{{ self._TemplateReference__context }}{% endblock %}", "{% block b %}a: {{ super.__class__ }}{% endblock %}",
    "{% block b %}a: {{ super() }}{% endblock %}", "{% block b %}a: {{ self.b }}{% endblock %}", "{% with x = cycler %}a: {{ x.__init__ }}{% endwith %}", "a: {{ range }}", "a: {{ cycler('a') }}", "a: {{ namespace }}", "a: {{ joiner }}", "a: {{ dict }}",
    "{% filter attr('__class__') %}x{% endfilter %}", "{% set x | attr('__class__') %}x{% endset %}", "{% include spec.name %}", "{% include ['o', spec.name] %}", "{% import spec.name as x %}", "{% from spec.name import x %}", "{% extends spec.name %}",
    "a: {{ render(spec.name) }}", "a: {{ file('../../etc/passwd') }}", "a: {{ file('/etc/passwd') }}", "{% include '../main.j2' %}", "{% include '/etc/passwd' %}", "{% debug %}", "{% do spec.x %}", "{% trans %}x{% endtrans %}", "{% autoescape true %}{% endautoescape %}",
    "{% for i in range %}{% endfor %}a: 1", "{% for i in spec.name.upper %}{% endfor %}a: 1", "a: {{ [range] }}", "a: {{ {'x': cycler} }}", "a: {{ range | to_json }}", "a: {{ range ~ '' }}", "a: {{ [namespace()] | to_yaml }}",
]  # fmt: skip


@pytest.mark.parametrize("source", IN_TEMPLATES)
def test_no_statement_escapes_the_sandbox(source):
    with pytest.raises((RenderError, RuleErrors)) as caught:
        documents(source, {"o": "{% macro n() %}{% endmacro %}{% set _private = 1 %}"}, spec={"x": 1, "name": "o"})
    assert "0x" not in str(caught.value)
    assert "ruleop." not in str(caught.value)


def test_private_names_of_an_import_stay_private():
    with pytest.raises(RenderError):
        render("{% import 'o' as o %}\na: {{ o._private }}", {"o": "{% set _private = 1 %}{% set public = 2 %}"})
    assert render(
        "{% import 'o' as o %}\na: {{ o.public }}\nb: {{ o.other | default(3) }}", {"o": "{% set public = 2 %}"}
    ) == {
        "a": 2,
        "b": 3,
    }


def test_a_file_outside_of_the_project_is_reported_as_missing_although_it_exists():
    with pytest.raises(RenderError, match=r"no such file below templates/"):
        render("a: {{ file(spec.name) }}", spec={"name": "../../../etc/hostname"})


def test_only_template_functions_of_the_scope_can_be_called():
    assert render("a: {{ f(1, b='x') }}", f=TemplateFunction("f", lambda a, b: [a, b])) == {"a": [1, "x"]}
    with pytest.raises(RenderError, match="is data, not a function"):
        Library({"main.j2": "a: {{ f() }}"}).text_mapping("main.j2").render({"f": len})
    with pytest.raises(RenderError, match=r"no data|has no field"):
        Library({"main.j2": "a: {{ f.x }}\nb: {{ f }}"}).text_mapping("main.j2").render({"f": object()})


def test_reserved_ids_include_all_names_of_jinja_and_ruleop():
    environment = Library({}).environment
    assert set(environment.globals) <= JINJA_NAMES
    assert not {"lipsum", "attr", "random", "pprint", "safe", "urlize", "xmlattr"} & (
        set(environment.globals) | set(environment.filters)
    )
