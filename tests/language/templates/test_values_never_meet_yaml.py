"""No value can add, remove or move a field: every printed value is rendered unchanged."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ruleop.language.templates import RuleErrors
from ruleop.language.templates.compile import Library
from tests.exploration import examples
from tests.language.templates.hostile import HOSTILE
from tests.language.templates.rendering import documents, library, render, scope, tree

MACROS = """
{% macro plain(v) %}{{ v }}{% endmacro %}
{% macro entry(v) %}
inner: {{ v }}
quoted: "{{ v }}"
{% endmacro %}
{% macro around(v) %}<{{ caller(v) }}>{% endmacro %}
"""

# Each place, with what is to come out of it for a value `v`.
PLACES: dict[str, tuple[str, Any]] = {
    "the whole value": ("a: {{ v }}", lambda v: {"a": v}),
    "a part of a plain value": ("a: x-{{ v }}-y", lambda v: {"a": f"x-{v}-y"}),
    "at the end of a plain value": ("a: x{{ v }}", lambda v: {"a": f"x{v}"}),
    "at the start of a plain value": ("a: {{ v }}x", lambda v: {"a": f"{v}x"}),
    "twice": ("a: {{ v }}{{ v }}", lambda v: {"a": v + v}),
    "double quotes": ('a: "{{ v }}"', lambda v: {"a": v}),
    "single quotes": ("a: '{{ v }}'", lambda v: {"a": v}),
    "inside quotes": ('a: "x {{ v }} y"', lambda v: {"a": f"x {v} y"}),
    "a literal block": ("a: |\n  {{ v }}\n", lambda v: {"a": v + "\n"}),
    "a literal block between lines": ("a: |-\n  x\n  {{ v }}\n  y\n", lambda v: {"a": f"x\n{v}\ny"}),
    "inside a line of a literal block": ("a: |\n  x={{ v }};\n", lambda v: {"a": f"x={v};\n"}),
    "a folded block": ("a: >-\n  x\n  {{ v }}\n", lambda v: {"a": f"x {v}"}),
    "a folded block alone": ("a: >-\n  {{ v }}\n", lambda v: {"a": v}),
    "a flow mapping": ("a: {b: {{ v }}, c: 1}", lambda v: {"a": {"b": v, "c": 1}}),
    "a flow list": ("a: [{{ v }}, 1]", lambda v: {"a": [v, 1]}),
    "a flow list quoted": ('a: ["{{ v }}", 1]', lambda v: {"a": [v, 1]}),
    "a list": ("a:\n- {{ v }}\n- 1", lambda v: {"a": [v, 1]}),
    "alone on its line": ("a:\n  {{ v }}\nb: 1", lambda v: {"a": v, "b": 1}),
    "a key": ("{{ v }}: 1\nb: 2", lambda v: {v: 1, "b": 2}),
    "a part of a key": ("x-{{ v }}-y: 1\nb: 2", lambda v: {f"x-{v}-y": 1, "b": 2}),
    "a quoted key": ('"{{ v }}": 1\nb: 2', lambda v: {v: 1, "b": 2}),
    "a flow key": ("a: {x{{ v }}: 1}", lambda v: {"a": {f"x{v}": 1}}),
    "a comment": ("a: 1 # {{ v }}\n# {{ v }}\nb: 2", lambda v: {"a": 1, "b": 2}),
    "a macro": ("{% import 'm.j2' as m %}\na: {{ m.plain(v) }}", lambda v: {"a": v}),
    "a macro in a line": ("{% import 'm.j2' as m %}\na: x{{ m.plain(v) }}y", lambda v: {"a": f"x{v}y"}),
    "a macro alone": ("{% import 'm.j2' as m %}\na:\n  {{ m.entry(v) }}\nb: 1", lambda v: {"a": {"inner": v, "quoted": v}, "b": 1}),
    "a macro in a block": ("{% import 'm.j2' as m %}\na: |-\n  {{ m.plain(v) }}", lambda v: {"a": v}),
    "an imported macro": ("{% from 'm.j2' import plain %}\na: '{{ plain(v) }}'", lambda v: {"a": v}),
    "a set": ("{% set w = v %}\na: {{ w }}", lambda v: {"a": v}),
    "a set block": ("{% set w %}{{ v }}{% endset %}\na: {{ w }}", lambda v: {"a": v}),
    "a set block in text": ("{% set w %}x{{ v }}y{% endset %}\na: '{{ w }}'", lambda v: {"a": f"x{v}y"}),
    "a set block alone": ("{% set w %}\nk: {{ v }}\n{% endset %}\na:\n  {{ w }}", lambda v: {"a": {"k": v}}),
    "a call block": ("{% from 'm.j2' import around %}\na: {% call(w) around(v) %}{{ w }}{% endcall %}", lambda v: {"a": f"<{v}>"}),
    "a filter block": ("a: {% filter string %}x{{ v }}{% endfilter %}", lambda v: {"a": f"x{v}"}),
    "an include": ("a:\n  {% include 'i.j2' %}\nb: 1", lambda v: {"a": {"k": v, "q": v}, "b": 1}),
    "inheritance": ("{% extends 'base.j2' %}\n{% block body %}\nk: {{ v }}\n{% endblock %}", lambda v: {"a": 1, "k": v}),
    "a loop": ("a:\n{% for w in [v, v] %}\n- {{ w }}\n{% endfor %}", lambda v: {"a": [v, v]}),
    "a loop in a line": ("a: {% for w in [v, v] %}{{ w }},{% endfor %}", lambda v: {"a": f"{v},{v},"}),
    "a loop over a mapping": ("{% for k, w in {v: v}.items() %}\nx{{ k }}: {{ w }}\n{% endfor %}", lambda v: {f"x{v}": v}),
    "joined": ("a: {{ 'x' ~ v ~ 'y' }}", lambda v: {"a": f"x{v}y"}),
    "added": ("a: {{ 'x' + v }}", lambda v: {"a": f"x{v}"}),
    "a mapping": ("a: {{ {'k': v} }}", lambda v: {"a": {"k": v}}),
    "a mapping's key": ("a: {{ {v: 1} }}", lambda v: {"a": {v: 1}}),
    "spread among keys": ("a:\n  b: 1\n  {{ {'k': v} }}\n", lambda v: {"a": {"b": 1, "k": v}}),
    "spread as a key": ("a:\n  b: 1\n  {{ {'x' ~ v: 2} }}\n", lambda v: {"a": {"b": 1, f"x{v}": 2}}),
    "spread among items": ("a:\n  - b\n  {{ [v, v] }}\n", lambda v: {"a": ["b", v, v]}),
    "spread by to_yaml": ("a:\n  b: 1\n  {{ {'k': v} | to_yaml | indent(2) }}\n", lambda v: {"a": {"b": 1, "k": v}}),
    "from_yaml of captured text": ("{% set t %}\nk: {{ v }}\n{% endset %}\na: {{ t | from_yaml }}", lambda v: {"a": {"k": v}}),
    "from_json of captured text": ('{% set t %}{"k": "{{ v }}"}{% endset %}\na: {{ t | from_json }}', lambda v: {"a": {"k": v}}),
    "render": ("a: {{ render('r.j2') }}", lambda v: {"a": f"conf={v};"}),
    "an inline if": ("a: {{ v if true }}", lambda v: {"a": v}),
    "quote": ("a: {{ v | quote }}", lambda v: {"a": v}),
}  # fmt: skip
FILES = {
    "m.j2": MACROS,
    "i.j2": "k: {{ v }}\nq: '{{ v }}'\n",
    "base.j2": "a: 1\n{% block body %}{% endblock %}\n",
    "r.j2": "conf={{ v }};",
}


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return [shape(member) for member in value.values()]
    return [shape(item) for item in value] if isinstance(value, list) else type(value)


@pytest.fixture(scope="module")
def compiled() -> dict[str, Any]:
    return {
        place: Library({"main.j2": source, **FILES}).text_mapping("main.j2") for place, (source, _) in PLACES.items()
    }


@pytest.mark.parametrize("place", PLACES)
def test_a_hostile_string_is_rendered_unchanged_in_every_position(place, compiled):
    benign = compiled[place].render(scope({"v": "benign"}))
    for value in HOSTILE:
        rendered = compiled[place].render(scope({"v": value}))
        assert rendered == [PLACES[place][1](value)], ascii(value[:60])
        assert shape(rendered) == shape(benign)


@pytest.mark.slow
@given(st.sampled_from(sorted(PLACES)), st.text(st.characters(), max_size=30))
@settings(max_examples=examples(600), deadline=None)
def test_any_string_is_rendered_unchanged_in_every_position(place, value):
    template = _COMPILED.get(place) or _COMPILED.setdefault(
        place, Library({"main.j2": PLACES[place][0], **FILES}).text_mapping("main.j2")
    )
    assert template.render(scope({"v": value})) == [PLACES[place][1](value)]


_COMPILED: dict[str, Any] = {}

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters()), inner, max_size=4),
    max_leaves=12,
)


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types: 1, 1.0 and true are three things."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


@given(JSON.filter(lambda value: value is not None))
@settings(deadline=None)
def test_a_whole_value_keeps_its_type(value):
    assert same(
        render("a: {{ v }}\nb: [{{ v }}]\nc: {d: {{ v }}}", v=value), {"a": value, "b": [value], "c": {"d": value}}
    )
    assert same(tree('{a: "{{ v }}", b: ["{{ v }}"]}', v=value), {"a": value, "b": [value]})


@pytest.mark.parametrize("value", HOSTILE)
def test_an_inline_object_of_watches_yaml_keeps_hostile_strings_unchanged(value):
    source = """
      whole: "{{ v }}"
      part: "x-{{ v }}-y"
      "k-{{ v }}": 1
      list: ["{{ v }}", b]
      block: |
        x={{ v }}
      text: "{{ v | string }}"
    """
    expected = {
        "whole": value,
        "part": f"x-{value}-y",
        f"k-{value}": 1,
        "list": [value, "b"],
        "block": f"x={value}\n",
        "text": value,
    }
    assert tree(source, v=value) == expected


@pytest.mark.parametrize(
    "source",
    [
        "a: {{ v }}\nb: {{ w }}",
        "a: x-{{ v }}-{{ w }}",
        "a: [{{ v }}, {{ w }}]",
        "a: {b: {{ v }}}",
        "{{ v }}: {{ w }}",
        "a: {{ {'k': w} }}",
        "a: {{ w if false }}",
    ],
)
@pytest.mark.parametrize("value", ["yes", "a\nb: c", "{{ v }}", "1"])
def test_a_template_file_and_an_inline_object_give_the_same_result(source, value):
    by_hand = {
        "a: {{ v }}\nb: {{ w }}": 'a: "{{ v }}"\nb: "{{ w }}"',
        "a: x-{{ v }}-{{ w }}": 'a: "x-{{ v }}-{{ w }}"',
        "a: [{{ v }}, {{ w }}]": 'a: ["{{ v }}", "{{ w }}"]',
        "a: {b: {{ v }}}": 'a: {b: "{{ v }}"}',
        "{{ v }}: {{ w }}": '"{{ v }}": "{{ w }}"',
        "a: {{ {'k': w} }}": "a: \"{{ {'k': w} }}\"",
        "a: {{ w if false }}": 'a: "{{ w if false }}"',
    }[source]
    assert documents(source, v=value, w=5) == [tree(by_hand, v=value, w=5)]


def test_a_template_with_a_reserved_character_is_an_error_with_its_line():
    for character in "\ufdd0\ufdd1\ufdd2":
        with pytest.raises(
            RuleErrors, match=rf"templates/main.j2:2: the character U\+{ord(character):04X} is reserved"
        ):
            documents(f"a: 1\nb: {character}")
        with pytest.raises(RuleErrors, match="reserved"):
            tree(f'"x{character}"')


def test_an_unpaired_surrogate_in_a_template_is_refused():
    with pytest.raises(RuleErrors, match=r"main.j2:1:4: not YAML: unpaired surrogate"):
        documents("a: \ud800")


def test_template_syntax_in_a_value_is_not_rendered():
    assert render("{% set w = v %}\na: {{ w }}\nb: {{ w | string }}", v="{{ 7 * 7 }}") == {
        "a": "{{ 7 * 7 }}",
        "b": "{{ 7 * 7 }}",
    }


def test_inputs_are_never_modified_and_renders_repeat():
    value = {"a": {"b": [1, {"c": None}]}, "l": [3, 1, 2]}
    copy = {"a": {"b": [1, {"c": None}]}, "l": [3, 1, 2]}
    template = library(
        "x: {{ v }}\nw:\n  {{ v.a }}\nz: {{ v | combine({'a': {'n': 1}}) }}\ns: {{ v.l | sort }}\nt: {{ v.l + [4] }}"
    ).text_mapping("main.j2")
    first = template.render(scope({"v": value}))
    assert [template.render(scope({"v": value})) for _ in range(5)] == [first] * 5
    assert value == copy
