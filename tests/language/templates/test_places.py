"""An error has the file and line of the template that caused it, wherever its text was inserted."""

from __future__ import annotations

import pytest

from ruleop.errors import RenderError
from ruleop.language.templates import RuleErrors
from ruleop.language.templates.compile import Library
from tests.language.templates.rendering import HERE, documents, library, render, scope

FILES = {
    "m": "{# macros #}\n{% macro ok(v) %}\nx: {{ v }}\n{% endmacro %}\n{% macro bad(v) %}\nok: 1\nbad: &a {{ v }}\nmore: 2\n{% endmacro %}\n",
    "i": "first: 1\n\nsecond: *a\n",
    "j": "one: 1\n{% include 'i' %}\n",
    "k": "first: 1\n",
}

MISTAKES = {
    "an anchor": ("a: 1\nb: &x 2\n", "main.j2:2", "anchors are not allowed \\(&x\\)"),
    "an alias": ("a: 1\n\nb: *x\n", "main.j2:3", "alias"),
    "a tag": ("a: !!str 1\n", "main.j2:1", "tags are not allowed \\(tag:yaml.org,2002:str\\)"),
    "a merge key": ("a:\n  <<: {x: 1}\n", "main.j2:2", "the merge key << is not allowed"),
    "a duplicate key": ("a: 1\nb: 2\na: 3\n", "main.j2:3", 'duplicate key "a": the first is on line 1'),
    "a number as a key": ("1: a\n", "main.j2:1", "the key 1 is not a string in YAML"),
    "a boolean as a key": ("a:\n  on: b\n", "main.j2:2", 'put it in quotes, "on"'),
    "behind a value": ("a: {{ v }}\nb: &x 2\n", "main.j2:2", "anchor"),
    "behind a vanished tag": ("{% if v %}\na: 1\n{% endif %}\nb: &x 2\n", "main.j2:4", "anchor"),
    "right behind a tag": ("a: 1\n{% if v %}\nb: &x 2\n{% endif %}\n", "main.j2:3", "anchor"),
    "behind a comment of three lines": ("a: 1\n{# x\ny\nz #}\nb: &x 2\n", "main.j2:5", "anchor"),
    "behind a loop": ("{% for i in [1, 2, 3] %}\nk{{ i }}: 1\n{% endfor %}\nb: &x 2\n", "main.j2:4", "anchor"),
    "in a loop's third pass": ("{% for i in [1, 2, 3] %}\nk{{ i }}:\n  {% if i == 3 %}\n  b: &x 2\n  {% endif %}\n{% endfor %}\n", "main.j2:4", "anchor"),
    "behind a set block": ("{% set s %}\nq: 1\n{% endset %}\na: 1\nb: &x 2\n", "main.j2:5", "anchor"),
    "behind raw": ("{% raw %}\na: 1\n{% endraw %}\nb: &x 2\n", "main.j2:4", "anchor"),
    "behind blanks that were stripped": ("a: 1\n{%- if true %}\n\n\n{% endif -%}\n\n\nb: &x 2\n", "main.j2:1", "a second `: ` in one value"),
    "in a macro": ("{% import 'm' as m %}\na:\n  {{ m.bad(1) }}\n", "m:7", "anchors are not allowed \\(&a\\)"),
    "behind a macro": ("{% import 'm' as m %}\na:\n  {{ m.ok(1) }}\nb: &x 2\n", "main.j2:4", "anchor"),
    "in an include": ("a:\n  {% include 'i' %}\n", "i:3", "alias"),
    "in an include's include": ("a:\n  {% include 'j' %}\n", "i:3", "alias"),
    "behind an include": ("a:\n  {% include 'x' ignore missing %}\nb: &x 2\n", "main.j2:3", "anchor"),
    "in captured text in captured text": ("{% import 'm' as m %}\n{% set s %}\nz: 1\n{{ m.bad(1) }}\n{% endset %}\na:\n  {{ s }}\n", "m:7", "anchor"),
    "twice, in a file and in its include": ("first: 0\n{% include 'k' %}\n", "k:1", 'duplicate key "first": the first is at templates/main.j2:1'),
    "not YAML": ("a: 1\nb: c: d\n", "main.j2:2", "a second `: ` in one value"),
    "a tab": ("a:\n\tb: 1\n", "main.j2:2", "tabs are not allowed"),
    "an open quote": ("a: 'x\nb: 1\n", "main.j2:\\d", "not YAML"),
    "an open brace": ("a: {b: 1\nc: 2\n", "main.j2:\\d", "not YAML"),
    "a bad indent": ("a:\n    b: 1\n  c: 2\n", "main.j2:3", "check its indentation"),
    "a line without a colon": ("a: 1\nb\nc: 2\n", "main.j2:\\d", "without `: `"),
    "a reserved start": ("a: @b\n", "main.j2:1", "a value cannot start with '@'"),
    "a control character": ("a: 1\nb: \x07\n", "main.j2:2", "not YAML"),
    "a directive": ("%YAML 1.1\n---\na: 1\n", "main.j2:1", "directives are not allowed"),
    "infinity": ("a: 1\nb: .inf\n", "main.j2:2", "a number that JSON cannot represent"),
    "a mapping as a key": ("a:\n  {b: 1}: c\n", "main.j2:2", "a key must be a string"),
    "an error in an expression": ("a: 1\nb: {{ v.x }}\n", "main.j2:2", "v.x|has no field x"),
    "an error in an expression of several lines": ("a: 1\nb: {{ [1,\n  v.x] }}\n", "main.j2:2", "has no field x"),
    "an error in a condition": ("a: 1\n{% if v.x > 1 %}\n{% endif %}\n", "main.j2:2", "has no field x"),
    "an error in a loop's list": ("a: 1\n\n{% for i in v.x %}\n{% endfor %}\n", "main.j2:3", "has no field x"),
    "an error in a macro": ("{% macro m() %}\nq: 1\nr: {{ v.x }}\n{% endmacro %}\na:\n  {{ m() }}\n", "main.j2:3", "has no field x"),
    "an error in a condition of a macro": ("{% macro m() %}\n{% if v.x %}{% endif %}\n{% endmacro %}\na: 1\nb: {{ m() }}\n", "main.j2:2", "has no field x"),
    "an error in an included condition": ("a: 1\n{% include 'c' %}\n", "c:2", "has no field x"),
    "an error in a set": ("a: 1\n{% set q = 1 / 0 %}\n", "main.j2:2", "division by zero"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_an_error_has_the_file_and_line_of_its_template(case):
    source, place, message = MISTAKES[case]
    with pytest.raises((RenderError, RuleErrors), match=rf"^templates/{place}(:\d+)?: (.|\n)*({message})") as caught:
        documents(source, {**FILES, "c": "q: 1\n{% if v.x %}{% endif %}\n"}, v=1)
    assert not set("\ufdd0\ufdd1\ufdd2") & set(str(caught.value))


def test_no_message_contains_a_value():
    secret = "TOP\nSECRET: {"  # noqa: S105 - that is the point
    for source in [
        "a: {{ v }}\nb: &x {{ v }}", "{{ v }}: 1\n{{ v }}: 2", "x{{ v }}: &a 1", "a: {{ v }}: {{ v }}", "a: {{ [v] }}x", "a: {{ v | int + v }}", "a: {{ v | from_json }}", "a: {{ v | from_yaml }}", "a: {{ v + 1 }}",
        "a: {{ v / 2 }}", "a: {{ v.nothing }}", "a: {{ {'a': 1}[v] }}", "a: {{ s[v] }}", "a: {{ s[v].x }}", "a: {{ v | b64decode }}", "a: {{ v | quantity }}", "a: {{ 1 | quantity(v) }}", "a: {{ v | regex_match(v ~ '(') }}",
        "a: {{ [1] | map(v) | list }}", "a: {{ [1] | select(v) | list }}", "a: {{ file(v) }}", "a: {{ v() }}", "a: {{ v < 1 }}", "a: {{ [v, 1] | sort }}", "a: {{ v | round }}", "a: {{ range(v) }}", "{% for i in 5 if v %}{% endfor %}",
        "a: {{ v | combine({}) }}", "a: {{ v % 1 }}", "a: {{ '%d' % v }}", "a: {{ '%d' | format(v) }}", "a: {{ v | dictsort }}", "a: {{ {v: 1} ~ 'x' }}", "a:\n  b: 1\n  {{ v }}", "a:\n  - 1\n  {{ v }}",
        "a: {{ v | condition('Ready') }}", "a: {{ v | sha256(v) }}", "a: {{ [1] | batch(v) }}", "a: {{ v.replace(1, 2, v) }}", "a: {{ v.split(1) }}", "a: {{ v | float | round(v) }}", "a: {{ [{'x': v}] | sum(attribute='x') }}",
        "{% macro m() %}{% endmacro %}a: {{ m(**{v: 1}) }}", "a: {{ v in 5 }}", "a: {{ 5 in v }}", "a: {{ v ** 2 }}", "a: {{ -v }}", "a: {{ v[v] }}", "a: {{ v[:v] }}", "a: {{ v | urlencode | items }}", "a: {{ [[v]] | join }}", "a: {{ v | dns_label([]) }}",
        "a: {{ v | bool }}", "{% for a, b in [v] %}{% endfor %}", "{% for a, b in {v: 1} %}{% endfor %}", "{% set a, b = {v: v} %}", "a: {{ v | dict2items }}", "a: {{ [{v: 1}] | items2dict }}", "a: {{ v | difference([]) }}", "a: {{ v | flatten }}",
        "a: {{ [] | zip(v) }}", "a: {{ v | regex_search(v, v) }}", "a: {{ v | regex_search('S', v) }}", "a: {{ [v] | basename }}", "a: {{ {} | combine({}, list_merge=v) }}", "a: {{ {} | combine([v]) }}", "a: {{ {v: 1} | dict2items(v, v) }}",
    ]:  # fmt: skip
        with pytest.raises((RenderError, RuleErrors)) as caught:
            documents(source, v=secret, s={"x": 1})
        assert "TOP" not in str(caught.value), source
        assert "SECRET" not in str(caught.value), source


def test_all_errors_of_the_structure_are_reported():
    with pytest.raises(RuleErrors, match=r"(?s)main.j2:2:4: .*main.j2:3:4: "):
        documents("a: 1\nb: &x 2\nc: &y 3\n")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("a: 1\n{{ 1 + }}", "main.j2:2: template syntax: "),
        ("a: {{ v", "main.j2:1: template syntax: unexpected end of template"),
        ("{% if v %}\na: 1\n", "main.j2:2: template syntax: .*endif"),
        ("a: 1\n{% fi %}", r"main.j2:2: unknown tag \{% fi %\}"),
        ("{% if v %}\n{% endfor %}", "main.j2:2: there is no tag .* endfor|main.j2:2.*endfor"),
        ("a: {{ .Values.x }}", "main.j2:1: template syntax: a name cannot start with a dot: write spec.x"),
        ("a: {{ $x }}", r"main.j2:1: template syntax: \$ is not valid"),
        ("a: {{ v | toYaml | nindent(4) }}", "main.j2:1: unknown filter toYaml; use to_yaml"),
        ("\na: {{ v | nindent(4) }}", "main.j2:2: unknown filter nindent; use `{{ x }}` alone on its line"),
        ("a: {{ v | b64enc }}", "use b64encode"),
        ("a: {{ v | safe }}", "the filter safe is not offered: it is for HTML"),
        ("a: {{ v | attr('x') }}", r"the filter attr is not offered: use a\['b'\]"),
        ("a: {{ [1] | random }}", "use random_password in a create-only child"),
        ("a: {{ v | uper }}", r"unknown filter uper \(did you mean upper\?\)"),
        ("a: {{ 1 if v is strin }}", r"unknown test strin \(did you mean string\?\)"),
        ("a: {{ 1 if v is callable }}", "unknown test callable"),
        ("{% include v %}", "main.j2:1: the name in include must be literal text"),
        ("\n{% import v ~ 'x' as y %}", "main.j2:2: the name in import must be literal text"),
        ("{% from v import y %}", "the name in import must be literal text"),
        ("{% extends v %}", "the name in extends must be literal text"),
        ("a: {{ render(v) }}", "the name in render must be literal text"),
        ("a: {{ render() }}", "the name in render must be literal text"),
        ("a: {{ 1 < v in [2] }}", "`in` cannot be chained with another comparison; join two with `and`"),
        ("a: {{ " + "9" * 300 + " }}", "number too large"),
        ("a: {{ " + "9" * 5000 + " }}", "number too large"),
        ("a: {{ 0x" + "f" * 5000 + " }}", "number too large"),
        ("a: {{ -1e999 }}", "number too large"),
        ("a: {{ 1_0.0e3_09 }}", "number too large"),
        ("a: 1\n{% set x | indent(v) %}{% endset %}", "main.j2:2: the arguments of the filter of a set block"),
        ("{% set x | replace('a', v.x) | upper %}{% endset %}", "the filter of a set block"),
        ("{% autoescape true %}{% endautoescape %}", "the tag autoescape is not offered"),
        (
            "a: {{ 1 }}\n{% block x %}{% endblock %}{% block x %}{% endblock %}",
            "main.j2:2: template syntax: block 'x' defined twice",
        ),
    ],
)
def test_a_template_syntax_error_is_found_at_load_in_plain_words(source, message):
    with pytest.raises(RuleErrors, match=message):
        library(source).text_mapping("main.j2")


@pytest.mark.parametrize(
    "source",
    [
        "a: {{ " + "-" * 300 + "1 }}", "a: {{ " + "not " * 300 + "1 }}", "a: {{ " + "1 if v else " * 500 + "2 }}",
        "a: {{ " + "(" * 300 + "1" + ")" * 300 + " }}", "a: {{ 1" + " + 1" * 3000 + " }}", "a: {{ v" + ".b" * 3000 + " }}", "a: {{ v" + " | string" * 1000 + " }}",
    ],
)  # fmt: skip
def test_a_template_nested_too_deeply_for_python_is_refused_at_load(source):
    with pytest.raises(RuleErrors, match="nested too deeply"):
        library(source).text_mapping("main.j2")
    with pytest.raises(RuleErrors, match=r"watches.yaml:7:11: nested too deeply"):
        library().string(source, HERE)


def test_entries_in_as_many_conditions_as_load_can_be_rendered():
    def nested(levels):
        opened = [f"{'  ' * level}{{% if v %}}\n{'  ' * level}k:\n" for level in range(levels)]
        closed = [f"{'  ' * level}{{% endif %}}\n" for level in reversed(range(levels))]
        return "".join([*opened, "  " * levels + "end: 1\n", *closed])

    assert library(nested(79)).text_mapping("main.j2").render({"v": True})
    for levels in (80, 100):
        with pytest.raises(RuleErrors, match=r"main\.j2:1: nested too deeply"):
            library(nested(levels)).text_mapping("main.j2")


def test_eighteen_nested_loops_are_allowed():
    assert render("a: " + "{% for i in [1] %}" * 18 + "{{ i }}" + "{% endfor %}" * 18) == {"a": 1}


def test_errors_in_all_files_of_a_template_are_reported_at_once():
    with pytest.raises(RuleErrors) as caught:
        Library(
            {"a": "{% include 'b' %}{% include 'c' %}", "b": "{{ x | nope }}{{ y | nope }}", "c": "{{"}
        ).text_mapping("a")
    assert sorted(mistake.site.path for mistake in caught.value.mistakes) == [
        "templates/b",
        "templates/b",
        "templates/c",
    ]
    with pytest.raises(RuleErrors, match=r"templates/nope: no such template \(did you mean none\?\)"):
        Library({"none": ""}).text("nope")


def test_errors_in_string_templates_have_the_site_of_the_string():
    made = library()
    for source in (
        "{{ 1 + }}",
        "{{ x | nope }}",
        "\n\n{{ x | nope }}",
        "{% include 'x' %}",
        "{% extends 'x' %}",
        "{% block x %}{% endblock %}",
        "{{ render('no') }}",
        "{% import 'no' as n %}",
        "{{ 1 in 2 in 3 }}",
        "\ufdd0",
    ):
        with pytest.raises(RuleErrors) as caught:
            made.string(source, HERE)
        assert [mistake.site for mistake in caught.value.mistakes] == [HERE]
    for source in (
        "",
        " ",
        "{{ }}",
        "a {{ b }}",
        "{% if x %}",
        "{{ a }}{{ b }}",
        "x }}",
        "{{ a }} b }}",
        "1 +",
        "{{ a }} }}",
        "x }} y {# z #}",
    ):
        with pytest.raises(RuleErrors) as caught:
            made.expression(source, HERE)
        assert [mistake.site for mistake in caught.value.mistakes] == [HERE]
    with pytest.raises(RenderError) as error:
        made.string("x\ny\n{{ v.x }} z", HERE).evaluate(scope({"v": {}}))
    assert error.value.site == HERE
    assert error.value.expression == "v.x"


def test_an_expression_wrapped_in_braces_has_the_same_value():
    made = library()
    for source, value in [
        ("{{ 1 + 1 }}", 2),
        ("{{- -1 -}}", -1),
        ("{{ -v }}", -3),
        ("{{+ 1 }}", 1),
        (" v ", 3),
        ("{'a': {'b': v}}", {"a": {"b": 3}}),
        ("{{ {'a': v} }}", {"a": 3}),
        ("-v", -3),
        ("omit", None),
        ("none", None),
    ]:
        assert made.expression(source, HERE).evaluate(scope({"v": 3})) == value, source
    assert made.expression("omit", HERE).truth({}) is False
    assert made.expression("[]", HERE).truth({}) is False
    assert made.expression("v", HERE).truth(scope({"v": {"x": 1}})) is True


def test_strings_of_watches_yaml_are_constants_or_expressions():
    made = library()
    string = made.string("{{ v }}", HERE)
    assert string.evaluate(scope({"v": 5})) == 5
    assert string.string(scope({"v": 5})) == "5"
    assert string.string(scope({"v": None})) == ""
    assert string.constant is None
    with pytest.raises(RenderError, match=r"\{\{ v \}\}: a mapping inside longer text") as caught:
        string.string(scope({"v": {"a": 1}}))
    assert caught.value.expression == "v"
    fixed = made.string("plain", HERE)
    assert (fixed.constant, fixed.evaluate({}), fixed.string({})) == ("plain", "plain", "plain")
    assert made.string("{# note #}x", HERE).evaluate({}) == "x"
    assert made.string("a{{ v }}b{{ v }}", HERE).evaluate(scope({"v": 1})) == "a1b1"
    assert made.string("{% if v %}x{% endif %}", HERE).evaluate(scope({"v": 0})) == ""


def test_runtime_errors_never_show_a_python_message():
    for source in (
        "{% macro m() %}{{ m() }}{% endmacro %}a: {{ m() }}",
        "a: {{ {}[[]] }}",
        "a: {{ {[]: 1} }}",
        "a: {{ 'x' * 1.5 }}",
        "a: {{ [] < 1 }}",
        "a: {{ {} < {} }}",
        "a: {{ -'x' }}",
        "a: {{ 5 | upper(1, 2) }}",
    ):
        with pytest.raises(RenderError) as caught:
            render(source)
        assert "Traceback" not in str(caught.value)
        assert "ruleop" not in str(caught.value)
        assert "View" not in str(caught.value)
