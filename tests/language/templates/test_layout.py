"""Where a printed value lands: in its place, spread, left out, or as text."""

from __future__ import annotations

import pytest

from ruleop.errors import RenderError
from ruleop.language.templates import RuleErrors
from tests.language.templates.rendering import documents, render

SPREAD = {
    "a mapping first": ("a:\n  {{ v }}\n  z: 1\n", {"x": 1, "q": "2"}, {"a": {"x": 1, "q": "2", "z": 1}}),
    "a mapping in the middle": ("a:\n  b: 1\n  {{ v }}\n  z: 1\n", {"x": 1}, {"a": {"b": 1, "x": 1, "z": 1}}),
    "a mapping last": ("a:\n  b: 1\n  {{ v }}\n", {"x": 1}, {"a": {"b": 1, "x": 1}}),
    "a mapping alone": ("a:\n  {{ v }}\nb: 1\n", {"x": {"z": 1}}, {"a": {"x": {"z": 1}}, "b": 1}),
    "a mapping at the root": ("{{ v }}\n", {"x": 1}, {"x": 1}),
    "a mapping among the root's keys": ("a: 1\n{{ v }}\n", {"x": 1}, {"a": 1, "x": 1}),
    "a mapping with a comment behind": ("a:\n  {{ v }}  # {{ v }}\n  z: 1\n", {"x": 1}, {"a": {"x": 1, "z": 1}}),
    "a list first": ("a:\n  {{ v }}\n  - z\n", [1, {"b": 2}], {"a": [1, {"b": 2}, "z"]}),
    "a list in the middle": ("a:\n  - b\n  {{ v }}\n  - z\n", [1], {"a": ["b", 1, "z"]}),
    "a list last": ("a:\n  - b\n  {{ v }}\n", [1, 2], {"a": ["b", 1, 2]}),
    "a list alone": ("a:\n  {{ v }}\n", [1, 2], {"a": [1, 2]}),
    "a list at the column of its key": ("a:\n- b\n{{ v }}\nc: 1\n", [1], {"a": ["b", 1], "c": 1}),
    "a list alone at the column of its key": ("a:\n{{ v }}\nc: 1\n", [1], {"a": [1], "c": 1}),
    "a list among mappings": ("a:\n  - name: x\n    value: 1\n  {{ v }}\n  - name: z\n", [{"name": "w"}], {"a": [{"name": "x", "value": 1}, {"name": "w"}, {"name": "z"}]}),
    "a mapping in an item": ("a:\n  - name: x\n    {{ v }}\n  - name: z\n", {"value": 1}, {"a": [{"name": "x", "value": 1}, {"name": "z"}]}),
    "a mapping below a deeper one": ("a:\n  b:\n    c: 1\n  {{ v }}\n", {"x": 1}, {"a": {"b": {"c": 1}, "x": 1}}),
    "a text alone": ("a:\n  {{ v }}\nb: 1", "x: y", {"a": "x: y", "b": 1}),
    "a number alone": ("a:\n  {{ v }}\n", 5, {"a": 5}),
    "a null in a spread list": ("a:\n  {{ v }}\n", [1, None, 2], {"a": [1, 2]}),
    "a null in a spread mapping": ("a:\n  {{ v }}\n", {"x": None, "q": 1}, {"a": {"q": 1}}),
    "a list as the whole document": ("{{ v }}\n", [1, 2], [1, 2]),
    "items as pairs": ("a:\n  {{ v.items() }}\n", {"x": 1}, {"a": [["x", 1]]}),
    "keys": ("a:\n  {{ v | list }}\n", {"x": 1}, {"a": ["x"]}),
}  # fmt: skip


@pytest.mark.parametrize("case", SPREAD)
@pytest.mark.parametrize("written", ["{{ v }}", "{{ v | to_yaml | indent(4) }}", "{{ v | to_json }}", "{{ m(v) }}"])
def test_a_mapping_or_list_alone_on_its_line_is_spread(case, written):
    source, value, expected = SPREAD[case]
    if written != "{{ v }}" and (
        "items()" in source or not isinstance(value, (dict, list)) or "comment" in case or "| list" in source
    ):
        return  # the same only for a whole mapping or list
    macro = "{% macro m(w) %}\n{{ w }}\n{% endmacro %}\n" if "m(v)" in written else ""
    assert render(macro + source.replace("{{ v }}", written), v=value) == expected


EMPTY = {
    "among keys": ("a:\n  b: 1\n  {{ v }}\n", {"a": {"b": 1}}),
    "first among keys": ("a:\n  {{ v }}\n  b: 1\n", {"a": {"b": 1}}),
    "among items": ("a:\n  - 1\n  {{ v }}\n", {"a": [1]}),
    "first among items": ("a:\n  {{ v }}\n  - 1\n", {"a": [1]}),
    "below an item's first key": ("a:\n  - b: 1\n    {{ v }}\n", {"a": [{"b": 1}]}),
    "behind a deeper entry": ("a:\n  b:\n    c: 1\n  {{ v }}\n", {"a": {"b": {"c": 1}}}),
    "behind a comment": ("a:\n  b: 1\n  # note\n\n  {{ v }}\n", {"a": {"b": 1}}),
    "twice among keys": ("a:\n  {{ v }}\n  {{ v }}\n  b: 1\n", {"a": {"b": 1}}),
    "in a loop": ("a:\n  b: 1\n{% for i in [1, 2] %}\n  {{ v }}\n{% endfor %}\n", {"a": {"b": 1}}),
    "at the root": ("{{ v }}\nb: 1\n", {"b": 1}),
}  # fmt: skip


@pytest.mark.parametrize("case", EMPTY)
@pytest.mark.parametrize("value", [{}, []])
@pytest.mark.parametrize("written", ["{{ v }}", "{{ v | to_yaml | indent }}"])
def test_an_empty_mapping_or_list_adds_nothing_among_other_entries(case, value, written):
    source, expected = EMPTY[case]
    assert render(source.replace("{{ v }}", written), v=value) == expected


@pytest.mark.parametrize("value", [{}, []])
@pytest.mark.parametrize(
    "source",
    ["a:\n  {{ v }}\n", "a:\n  {{ v }}\nb: 1\n", "b: 1\na:\n  # note\n  {{ v }}\n", "a: {{ v }}\n", "a: {{ v }}\nb: 1", "b: 1\na:\n    {{ v | to_yaml | indent(4) }}\n"],
)  # fmt: skip
def test_an_empty_mapping_or_list_without_other_entries_is_the_value(source, value):
    assert render(source, v=value)["a"] == value


def test_an_empty_list_at_the_column_of_its_key_is_its_value():
    assert render("a:\n{{ v }}\nb: 1\n", v=[]) == {"a": [], "b": 1}


ABSENT = ["omit", "none", "'x' if false", "v.n", "omit if true"]


@pytest.mark.parametrize("nothing", ABSENT)
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a: @\nb: 1", {"b": 1}),
        ("a: '@'\nb: 1", {"b": 1}),
        ('a: "@"\nb: 1', {"b": 1}),
        ("a:\n  @\nb: 1", {"b": 1}),
        ("a: {c: @, d: 1}", {"a": {"d": 1}}),
        ("a: [@, 1]", {"a": [1]}),
        ("a:\n- @\n- 1", {"a": [1]}),
        ("a:\n  c: 1\n  @\n", {"a": {"c": 1}}),
        ("a:\n  - 1\n  @\n", {"a": [1]}),
        ("a: {c: @}", {"a": {}}),
        ("a: [@]", {"a": []}),
    ],
)
def test_omit_null_and_an_if_without_else_leave_out_their_field(source, expected, nothing):
    assert render(source.replace("@", "{{ " + nothing + " }}"), v={"n": None}) == expected


@pytest.mark.parametrize("nothing", ABSENT)
@pytest.mark.parametrize(
    "source", ["a: x@", "a: 'x @'", "a: @-@", "a: |\n  x=@\n", "a: |\n  x\n  @\n  z\n", "@: 1", "x@: 1", "'@': 1"]
)
def test_omit_and_null_inside_longer_text_are_errors(source, nothing):
    with pytest.raises(RenderError, match=r"null inside longer text|omits its field"):
        render(source.replace("@", "{{ " + nothing + " }}"), v={"n": None})


def test_a_literal_null_in_a_template_leaves_out_its_key_or_item():
    assert render("a: null\nb: ~\nc:\nd: [null, 1]\ne: {f: null}\n") == {"d": [1], "e": {}}


def test_nulls_inside_a_printed_value_are_kept():
    assert render("a: {{ v }}", v={"x": None, "l": [None]}) == {"a": {"x": None, "l": [None]}}


def test_omit_inside_a_mapping_or_list_of_the_template_leaves_out_its_entry():
    assert render("a: {{ {'x': omit, 'q': 1, 'l': [omit, 2]} }}") == {"a": {"q": 1, "l": [2]}}


@pytest.mark.parametrize("value", [{"x": 1}, [1], {}, []])
@pytest.mark.parametrize(
    "source",
    [
        "a: x{{ v }}",
        "a: '{{ v }}'",
        "a: |\n  {{ v }}\n",
        "a: |\n  x\n  {{ v }}\n",
        "{{ v }}: 1",
        "a: {{ 'x' ~ v }}",
        "a: {{ v | string }}",
    ],
)
def test_a_mapping_or_list_inside_text_or_as_a_key_is_an_error_with_file_line_and_expression(source, value):
    with pytest.raises(
        RenderError, match=r"templates/main.j2:\d: \{\{ .*v.* \}\}: a (mapping|list) inside longer text"
    ) as caught:
        render(source, v=value)
    assert caught.value.expression
    assert "v" in caught.value.expression


@pytest.mark.parametrize(
    ("source", "line"),
    [("a:\n  x: 1\n  {{ v }}\n", 3), ("a:\n  {{ v }}\n  x: 1\n", 3), ("{{ k }}: 1\nx: 2", 1), ("x: 2\n{{ k }}: 1", 2)],
)
def test_a_duplicate_key_is_an_error(source, line):
    with pytest.raises(RenderError, match=r"duplicate key") as caught:
        render(source, v={"x": 1}, k="x")
    assert caught.value.site.line == line or "spread above" in caught.value.message


@pytest.mark.parametrize(
    ("source", "value"),
    [("a:\n  - 1\n  {{ v }}\n", {"x": 1}), ("a:\n  b: 1\n  {{ v }}\n", [1]), ("a:\n  b: 1\n  {{ v }}\n", "text"), ("a:\n  - 1\n  {{ v }}\n", 5)],
)  # fmt: skip
def test_a_slot_that_does_not_match_its_neighbours_is_reported(source, value):
    with pytest.raises(RenderError, match=r"main.j2:3: \{\{ v \}\} is alone on its line among entries of another type"):
        render(source, v=value)


def test_to_yaml_and_to_json_are_data_alone_on_a_line_and_text_elsewhere():
    value = {"x": [1], "q": "a: b"}
    assert render("a: {{ v | to_json }}", v=value) == {"a": '{"x":[1],"q":"a: b"}'}
    assert render("a: '{{ v | to_json }}'", v=value) == {"a": '{"x":[1],"q":"a: b"}'}
    assert render("a: |\n  b:\n    {{ v | to_yaml | indent(4) }}\n", v=value) == {"a": "b:\n  x:\n  - 1\n  q: 'a: b'\n"}
    assert render("a: |\n  {{ v | to_json(indent=2) }}\n", v=value) == {
        "a": '{\n  "x": [\n    1\n  ],\n  "q": "a: b"\n}\n'
    }
    assert render("a: |\n  {{ {} | to_yaml }}\n") == {"a": "{}\n"}
    assert render("a: {{ (v | to_json) | b64encode }}", v=[1]) == {"a": "WzFd"}
    assert render(
        "a: {{ v | to_yaml | length }}\nb: {{ 'x' in (v | to_json) }}\nc: {{ (v | to_json) == '[1]' }}", v=[1]
    ) == {
        "a": 3,
        "b": False,
        "c": True,
    }
    assert render("a: x{{ v | to_json | indent(2, true) }}", v=[1]) == {"a": "x  [1]"}


CAPTURED = "{% macro m(v) %}\nx: {{ v }}\nq:\n  - {{ v }}\n{% endmacro %}\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a:\n  {{ m(1) }}\nb: 2", {"a": {"x": 1, "q": [1]}, "b": 2}),
        ("a:\n      {{ m(1) | indent(6) }}\nb: 2", {"a": {"x": 1, "q": [1]}, "b": 2}),
        ("a:\n  {{ m(1) | indent(20, true) }}\nb: 2", {"a": {"x": 1, "q": [1]}, "b": 2}),
        ("a:\n  {{ m(1) | trim }}\nb: 2", {"a": {"x": 1, "q": [1]}, "b": 2}),
        ("a:\n  z: 1\n  {{ m(1) }}\n  e: 2\n", {"a": {"z": 1, "x": 1, "q": [1], "e": 2}}),
        ("a:\n  - {{ m(1) }}\n", {"a": [{"x": 1, "q": [1]}]}),
        ("a: {{ m(1) }}", {"a": {"x": 1, "q": [1]}}),
        ("a: '{{ m(1) }}'", {"a": "x: 1\nq:\n  - 1\n"}),
        ("a: z{{ m(1) | trim }}", {"a": "zx: 1\nq:\n  - 1"}),
        ("a: |\n  {{ m(1) }}\n", {"a": "x: 1\nq:\n  - 1\n"}),
        ("a: {{ m(1) | length }}", {"a": 14}),
        ("a: {{ m(1) | upper }}", {"a": "X: 1\nQ:\n  - 1\n"}),
        ("a: {{ m(1) | from_yaml }}", {"a": {"x": 1, "q": [1]}}),
        ("a: {{ (m(1) | from_yaml).q[0] }}", {"a": 1}),
        ("{{ m(1) }}", {"x": 1, "q": [1]}),
        ("a:\n  {% filter indent(2) %}{{ m(1) }}{% endfilter %}\nb: 2", {"a": {"x": 1, "q": [1]}, "b": 2}),
        ("{% set t = m(1) %}\na:\n  {{ t }}\n", {"a": {"x": 1, "q": [1]}}),
        ("{% set t %}\n{{ m(1) }}\n{% endset %}\na:\n  {{ t }}\n", {"a": {"x": 1, "q": [1]}}),
        ("a: {{ 'x' in m(1) }}\nb: {{ m(1) == m(1) }}\nc: {{ m(1)[0] }}\nd: {{ m(1)[:2] }}\ne: {{ m(1).startswith('x') }}", {"a": True, "b": True, "c": "x", "d": "x:", "e": True}),
        ("a: {{ m(1) < m(2) }}\nb: {{ m(2) > m(1) }}\nc: {{ 'yes' if m(1) else 'no' }}\nd: {{ (m(1) ~ '')[:2] }}", {"a": True, "b": True, "c": "yes", "d": "x:"}),
    ],
)  # fmt: skip
def test_captured_text_is_laid_out_like_text_of_the_template(source, expected):
    assert render(CAPTURED + source) == expected


def test_captured_text_of_a_single_value_has_its_type_and_is_text_in_quotes():
    macro = "{% macro m(v) %}{{ v }}{% endmacro %}\n"
    assert render(macro + "a:\n  {{ m({'x': 1}) }}\n  b: 2\n") == {"a": {"x": 1, "b": 2}}
    assert render(macro + "a: {{ m(5) }}\nb: '{{ m(true) }}'") == {"a": 5, "b": "true"}
    assert render(macro + "a:\n  {{ m(none) }}\nb: 1") == {"b": 1}


def test_the_line_of_empty_captured_text_is_removed():
    source = (
        "{% macro m(v) %}{% if v %}\nx: 1\n{% endif %}{% endmacro %}\na:\n  b: 1\n  {{ m(false) }}  # {{ v }}\n  c: 2\n"
    )
    assert render(source, v="never") == {"a": {"b": 1, "c": 2}}
    assert render("{% macro m() %}{% endmacro %}\na: |\n  b\n  {{ m() }}\n  c\n") == {"a": "b\nc\n"}
    assert render("{% macro m() %}{% endmacro %}\n{{ m() }}\nb: 1") == {"b": 1}


def test_several_values_on_one_line_are_concatenated_as_text():
    assert render("a:\n  {{ v }}{{ v }}\n", v=1) == {"a": "11"}
    assert render("a:\n  {% for i in v %}{{ i }}{% endfor %}\n", v=[1, 2]) == {"a": "12"}
    with pytest.raises(RenderError, match="inside longer text"):
        render("a:\n  {{ v }}{{ v }}\n", v={"x": 1})


def test_a_template_may_render_several_documents_or_none():
    assert documents("---\na: 1\n---\n---\nb: {{ v }}\n--- \n# nothing\n", v=1) == [{"a": 1}, {"b": 1}]
    assert documents("{% for i in v %}\n---\na: {{ i }}\n{% endfor %}\n", v=[1, 2]) == [{"a": 1}, {"a": 2}]
    assert documents("{% if false %}\na: 1\n{% endif %}\n") == []
    assert documents("") == []
    assert documents("a: {{ v }}\n...\n---\nb: 1", v=1) == [{"a": 1}, {"b": 1}]


def test_booleans_and_numbers_print_as_in_yaml():
    source = "a: x{{ v.t }}{{ v.f }}{{ v.i }}{{ v.d }}\nb: '{{ v.t }}'\nc: {{ v.d }}\n{{ v.t }}: 1\n{{ v.i }}: 2"
    assert render(source, v={"t": True, "f": False, "i": 3, "d": 1.5}) == {
        "a": "xtruefalse31.5",
        "b": "true",
        "c": 1.5,
        "true": 1,
        "3": 2,
    }
    assert render("a: x{{ 1e21 }}y{{ 1e-7 }}") == {"a": "x1e+21y1e-07"}


@pytest.mark.parametrize("expression", ["1e308 * 10", "'nan' | float", "'inf' | float", "2 ** 65", "-(2 ** 64)"])
@pytest.mark.parametrize("source", ["a: @", "a: x@", "a:\n  @", "a: {{ [v] }}"])
def test_a_number_that_json_cannot_hold_is_an_error(expression, source):
    source = source.replace("@", "{{ " + expression + " }}").replace("[v]", f"[{expression}]")
    with pytest.raises(RenderError, match="a number that JSON cannot represent"):
        render(source)


def test_a_value_in_a_comment_is_not_evaluated():
    assert render("a: 1 # {{ v.missing.more }} {{ 1 / 0 }}\n# {{ v.missing }}\nb: |\n  x\n# {{ 1/0 }}\n", v={}) == {
        "a": 1,
        "b": "x\n",
    }


def test_an_inline_if_is_a_value():
    assert render("b: {% if v %}yes{% else %}no{% endif %}\n", v=[1, "x"]) == {"b": True}


def test_a_loop_in_brackets_is_refused():
    with pytest.raises(RuleErrors, match="a tag cannot be between the items of"):
        render("a: [{% for i in v %}{{ i }}, {% endfor %}]\n", v=[1, "x"])
