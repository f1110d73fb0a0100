"""What a tree has to carry beyond entries, items and values: text in two forms, white space, folds, errors' places."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.errors import RenderError
from ruleop.language.templates import Origin, RuleErrors, Waiting, view
from ruleop.language.templates.compile import Library

FILES = {
    "labels": "{% macro labels(part) %}\napp: web\npart: {{ part }}\n{% endmacro %}\n",
    "script": "echo {{ v }}\n{% for x in [1, 2] %}\necho {{ x }}\n{% endfor %}\n",
    "data": "one: 1\n{% if v %}\ntwo: {{ v }}\n{% endif %}\n",
    "items": "- 1\n- {{ v }}\n",
    "service": "---\nkind: Service\nname: {{ v }}\n",
    "base": "a: 1\n{% block body %}\nb: base\n{% endblock %}\n",
}


def documents(main: str, *, lenient: bool = False, **names: Any) -> list[Any]:
    scope = {name: value if name == "later" else view(name, value) for name, value in names.items()}
    return Library({"main": main, **FILES}).text_mapping("main").render(scope, lenient=lenient)


CASES: dict[str, tuple[str, Any]] = {
    "render gives text": ("a: {{ render('script') }}", {"a": "echo val\necho 1\necho 2\n"}),
    "render sees no name that was set": ("{% set v = 'x' %}\na: {{ render('script') }}", {"a": "echo val\necho 1\necho 2\n"}),
    "captured text alone and within a line": (
        "{% set t %}\nx: {{ v }}\nz: 2\n{% endset %}\na:\n  {{ t }}\nb: |\n  {{ t }}\nc: 'z{{ t | trim }}'\n",
        {"a": {"x": "val", "z": 2}, "b": "x: val\nz: 2\n", "c": "zx: val\nz: 2"},
    ),
    "a macro as a whole value is data": (
        "{% from 'labels' import labels %}\na: {{ labels('p') }}\nb:\n  c: 1\n  {{ labels('q') }}\n",
        {"a": {"app": "web", "part": "p"}, "b": {"c": 1, "app": "web", "part": "q"}},
    ),
    "a document in a branch": ("a: 1\n{% if v %}\n---\nb: 1\n{% endif %}\n", [{"a": 1}, {"b": 1}]),
    "nothing from a loop in quotes": ("a: '{% for x in [1] %}{{ none }}{% endfor %}'\nb: 1\n", {"b": 1}),
    "an expression behind a text block": ("a:\n  x: |\n    one\n    {{ v }}end\n  {{ {'y': 1} }}\n", {"a": {"x": "one\nvalend\n", "y": 1}}),
    "an include behind items at the column of their key": ("a:\n- 1\n{% for x in [2] %}\n- {{ x }}\n{% endfor %}\n{% include 'data' %}\n", {"a": [1, 2], "one": 1, "two": "val"}),
    "items behind items at the column of their key": ("a:\n- 1\n{% include 'items' %}\n", {"a": [1, 1, "val"]}),
    "a macro in quotes is text": ("{% from 'labels' import labels %}\na: '{{ labels(1) }}'", {"a": "app: web\npart: 1\n"}),
    "a macro of one expression has its type": ("{% macro n() %}{{ 5 }}{% endmacro %}\na: {{ n() }}\nb: x{{ n() }}", {"a": 5, "b": "x5"}),
    "a macro of text is text": ("{% macro t() %}\nsome\nlines\n{% endmacro %}\na: {{ t() }}", {"a": "some\nlines\n"}),
    "includes within blocks": (
        "a:\n  {% if v %}\n  {% include 'data' %}\n  {% endif %}\nb:\n{% for x in [1] %}\n  {% include 'items' %}\n{% endfor %}\n",
        {"a": {"one": 1, "two": "val"}, "b": [1, "val"]},
    ),
    "an include as a whole value": ("a: {% include 'data' %}\nb:\n  - {% include 'items' %}\n", {"a": {"one": 1, "two": "val"}, "b": [[1, "val"]]}),
    "documents in includes": ("kind: A\n{% include 'service' %}\n{% include 'service' %}\n", [{"kind": "A"}, *2 * [{"kind": "Service", "name": "val"}]]),
    "documents in a loop": ("{% for x in [1, 2] %}\n---\na: {{ x }}\n{% endfor %}\n", [{"a": 1}, {"a": 2}]),
    "white space is stripped in a text block": (
        "a: |\n  one\n  {%- if v %}\n  two\n  {%- endif %}\n  three\n",
        {"a": "one\ntwo\nthree\n"},
    ),
    "stripped tags around entries": ("a:\n  {%- if v %}\n  b: 1\n  {%- endif %}\n  c: 2\n", {"a": {"b": 1, "c": 2}}),
    "a folded scalar with tags": ("a: >-\n  one\n  {% for x in [1, 2] %}\n  more {{ x }}\n  {% endfor %}\n\n  end\n", {"a": "one more 1 more 2\nend"}),
    "a tag behind a key": ("a: {% if v %}\n  b: 1\n{% endif %}\nc: 2\n", {"a": {"b": 1}, "c": 2}),
    "a value that an if decides": ("a: {% if v %}{{ [1] }}{% else %}text{% endif %}\nb: {% if not v %}x{% endif %}", {"a": [1]}),
    "a mapping in one branch and a list in another": (
        "a:\n  {% if v %}\n  - 1\n  {% else %}\n  b: 1\n  {% endif %}\n",
        {"a": [1]},
    ),
    "a call block": (
        "{% macro wrap() %}\nouter:\n  {{ caller() }}\n{% endmacro %}\na:\n  {% call wrap() %}\n  inner: {{ v }}\n  {% endcall %}\n",
        {"a": {"outer": {"inner": "val"}}},
    ),
    "a block that is overridden": ("{% extends 'base' %}\n{% block body %}\n{{ super() }}\nc: {{ v }}\n{% endblock %}", {"a": 1, "b": "base", "c": "val"}),
    "names that a file sets which extends another": (
        "{% extends 'base' %}\n{% set w = 5 %}\n{% macro m() %}\nd: 6\n{% endmacro %}\n{% block body %}\nc: {{ w }}\n{{ m() }}\n{% endblock %}",
        {"a": 1, "c": 5, "d": 6},
    ),
    "a macro of text that is not YAML": ("{% macro t() %}\nif a: b: c\n{% endmacro %}\na: {{ t() }}", {"a": "if a: b: c\n"}),
    "documents of a file that is included in blocks": (
        "k: 1\n{% for x in [1, 2] %}\n{% if x > 1 %}\n{% include 'service' %}\n{% endif %}\n{% endfor %}\n",
        [{"k": 1}, {"kind": "Service", "name": "val"}],
    ),
    "a recursive loop": (
        "{% for n in tree recursive %}\n{{ n.name }}:\n  leaf: {{ not n.below }}\n  {{ loop(n.below) }}\n{% endfor %}\n",
        {"x": {"leaf": False, "y": {"leaf": True}}},
    ),
    "data in a text block takes the column": ("a: |\n  k:\n    {{ tree | to_yaml }}\n", {"a": 'k:\n  - name: x\n    below:\n    - name: "y"\n      below: []\n'}),
    "a namespace that a loop changes": ("{% set n = namespace(c=0) %}\n{% for x in [1, 2] %}\n{% set n.c = n.c + x %}\n{% endfor %}\na: {{ n.c }}", {"a": 3}),
}  # fmt: skip
TREE = [{"name": "x", "below": [{"name": "y", "below": []}]}]


@pytest.mark.parametrize("case", CASES)
def test_a_hard_case_renders_as_it_reads(case: str) -> None:
    source, expected = CASES[case]
    assert documents(source, v="val", tree=TREE) == (expected if isinstance(expected, list) else [expected])


HOSTILE = "x: 1\n- {{ spec }}\n--- # ${a} '\"\t\ufeff"


@pytest.mark.parametrize(
    "source",
    [
        "a: {{ v }}",
        "a: '{{ v }}'",
        "a: |\n  {% if true %}\n  {{ v }}\n  {% endif %}\n",
        "{% macro m() %}{{ v }}{% endmacro %}\na: {{ m() }}",
        "a:\n  {% if true %}\n  {{ v }}\n  {% endif %}\n",
        "a: {% if true %}{{ v }}{% endif %}",
    ],
)
def test_a_value_is_never_read(source: str) -> None:
    (found,) = documents(source, v=HOSTILE)
    assert found["a"].rstrip("\n") == HOSTILE.rstrip("\n")


# -- values that are not available yet ---------------------------------------------------------------------------------

LENIENT = {
    "a value": ("a: {{ later.x }}\nb: 1", {"b": 1}),
    "text": ("a: x{{ later.x }}\nb: 1", {"b": 1}),
    "a text block": ("a: |\n  {% if true %}\n  {{ later.x }}\n  {% endif %}\nb: 1", {"b": 1}),
    "a key": ("k-{{ later.x }}: 1\nb: 1", {"b": 1}),
    "an item": ("a:\n  - {{ later.x }}\n  - 2\n", {"a": [2]}),
    "what is spread": ("a:\n  b: 1\n  {{ later.x }}\n", {"a": {"b": 1}}),
    "a macro": ("{% macro m() %}\nx: {{ later.x }}\n{% endmacro %}\na:\n  {{ m() }}\n  b: 1\n", {"a": {"b": 1}}),
}


@pytest.mark.parametrize("case", LENIENT)
def test_a_value_that_is_not_available_yet_omits_its_own_field(case: str) -> None:
    source, expected = LENIENT[case]
    later = view("later", {}, Origin.LATER)
    assert documents(source, lenient=True, later=later) == [expected]
    with pytest.raises(Waiting, match=r"later\.x is not available yet"):
        documents(source, later=later)


# -- errors ------------------------------------------------------------------------------------------------------------

AT_LOAD = {
    "entries beside items": ("a:\n  b: 1\n  {% if v %}\n  - 2\n  {% endif %}\n", 4, "does not match its neighbours"),
    "a block across levels": ("a:\n  b:\n    {% if v %}\n    c: 1\n  d: 2\n  {% endif %}\n", 5, "not YAML"),
    "a branch that nobody takes": ("a: 1\n{% if false %}\nb: &x 1\n{% endif %}\n", 3, "anchors are not allowed"),
    "tags between the items of brackets": ("a: [1{% if v %}, 2{% endif %}]\n", 1, "write each item or entry on a line"),
    "half of a document in a block": ("a: 1\n{% if v %}\nb: 1\n---\nc: 1\n{% endif %}\n", 1, "put `---` before the block"),
    "a repeated key": ("a: 1\n{% if v %}\nb: 1\nb: 2\n{% endif %}\n", 4, 'duplicate key "b": the first is on line 3'),
}  # fmt: skip


@pytest.mark.parametrize("case", AT_LOAD)
def test_a_mistake_in_the_structure_is_found_at_load_with_its_line(case: str) -> None:
    source, line, message = AT_LOAD[case]
    with pytest.raises(RuleErrors) as caught:
        Library({"main": source}).text_mapping("main")
    assert caught.value.mistakes[0].site.line == line
    assert message in caught.value.mistakes[0].message


AT_RENDER = {
    "in a value": ("a: 1\nb: {{ v.x }}\n", "templates/main:2: "),
    "in a text block": ("a: |\n  x\n  {% if v %}\n  {{ 1 / 0 }}\n  {% endif %}\n", "templates/main:4: {{ 1 / 0 }}: division by zero"),
    "in a condition": ("a: 1\n{% if v.x > 1 %}\nb: 1\n{% endif %}\n", "templates/main:2: "),
    "in a loop": ("a: 1\n\n{% for x in v.x %}\nb: 1\n{% endfor %}\n", "templates/main:3: "),
    "in a macro": ("{% macro m() %}\nq: 1\nr: {{ v.x }}\n{% endmacro %}\na:\n  {{ m() }}\n", "templates/main:3: "),
    "a key in two branches": ("a: 1\n{% if v %}\nb: 1\n{% endif %}\n{% if v %}\nb: 2\n{% endif %}\n", 'templates/main:6:1: duplicate key "b": the first is on line 3'),
    "a list among entries": ("a:\n  b: 1\n  {{ [1] }}\n", "templates/main:3: {{ [1] }} is alone on its line among entries of another type: it is a list here"),
    "an endless recursion": ("{% macro m() %}\nx:\n  {{ m() }}\n{% endmacro %}\n{{ m() }}\n", "templates/main:"),
}  # fmt: skip


@pytest.mark.parametrize("case", AT_RENDER)
def test_an_error_of_a_value_has_its_line(case: str) -> None:
    source, message = AT_RENDER[case]
    with pytest.raises(RenderError) as caught:
        documents(source, v="text")
    assert str(caught.value).startswith(message)
