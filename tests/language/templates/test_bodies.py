"""Every branch of a template is parsed when it is loaded, where it stands: one that is not YAML, or that can never be
beside what is around it, is a mistake, and no other is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ruleop.errors import RenderError, Site
from ruleop.kubernetes.kinds import Kind
from ruleop.language.templates import RuleErrors, Waiting, view
from ruleop.language.templates.bodies.body import BodyEntry, BodyMembers, Items, Node, Scalar, Sum
from ruleop.language.templates.compile import Library
from ruleop.language.templates.tree import parser
from tests.exploration import examples


def mistakes(text: str, **others: str) -> list[str]:
    sources = {"a.yaml": text, **{f"{name}.j2": other for name, other in others.items()}}
    return [str(each) for each in Library(sources).possible("a.yaml").mistakes]


def lines(text: str, **others: str) -> list[int]:
    library = Library({"a.yaml": text, **{f"{name}.j2": other for name, other in others.items()}})
    return [each.site.line for each in library.possible("a.yaml").mistakes]


def test_a_line_that_is_never_yaml_is_a_mistake_with_its_place():
    (found,) = mistakes("a: 1\n{% if spec.x %}\nb\n  c: 1\n{% endif %}\n")
    assert found.startswith("templates/a.yaml:3:1: not YAML: a line without `: ` among the entries of a mapping;")


BROKEN = {
    "in the body of an if": ("a: 1\n{% if spec.x %}\n b: 1\n{% endif %}\n", 3),
    "in an elif": ("a: 1\n{% if spec.x %}\nb: 1\n{% elif spec.y %}\nc\n{% endif %}\nd: 1\n", 5),
    "in an else": ("{% if spec.x %}\na: 1\n{% else %}\na: b: c\n{% endif %}\n", 4),
    "inside another if": ("{% if spec.x %}\na: 1\n{% if spec.y %}\n\tb: 1\n{% endif %}\n{% endif %}\n", 4),
    "in a loop": ("a:\n{% for x in spec.xs %}\n  - b: {{ x }}\n   c: 1\n{% endfor %}\n", 4),
    "in the else of a loop": ("a:\n{% for x in spec.xs %}\n  - b\n{% else %}\n  c\n d: 1\n{% endfor %}\n", 5),
    "after the first pass of a loop": (
        "a:\n{% for x in spec.xs %}\n  - b\n{% if not loop.first %}\n c: 1\n{% endif %}\n{% endfor %}\n",
        5,
    ),
    "in a macro": ("{% macro m() %}\nx: 1\ny\n{% endmacro %}\na:\n  {{ m() }}\n", 3),
    "in captured text": ("{% set t %}\nx: 1\ny\n{% endset %}\na:\n  {{ t }}\n", 3),
    "in a filter block": ("a:\n  {% filter indent(2) %}\nx: 1\ny\n  {% endfilter %}\n", 4),
    "in one of two texts": ("{% macro m() %}\nx: 1\ny\n{% endmacro %}\na:\n  {{ m() if spec.x else omit }}\n", 3),
    "in a loop after another one": (
        "{% for x in spec.xs %}\n  - q\n{% endfor %}\n{% for x in spec.xs %}\n{% if spec.c %}\nk: 1\nk: 1\n{% endif %}\n{% endfor %}\n",
        7,
    ),
    "by a repeated key": ("a: 1\n{% if spec.x %}\na: 2\n{% endif %}\n", 3),
    "by the key of an equal condition": (
        "{% if spec.x %}\na: 1\n{% endif %}\nb: 1\n{% if spec.x and spec.y %}\na: 2\n{% endif %}\n",
        6,
    ),
    "by the key of a condition of many parts": (
        "{% if spec.a or spec.b or spec.c or spec.d or spec.e or spec.f or spec.g or spec.h %}\nk: 1\n{% endif %}\n{% if spec.x %}\nl: 1\n{% else %}\nm: 1\n{% endif %}\n{% if spec.z %}\nk: 2\nl: 2\nm: 2\n{% endif %}\n",
        10,
    ),
    "by a key that is a boolean": ("{% if spec.x %}\nn: 1\n{% endif %}\n", 2),
    "by quotes that are not closed": ("{% if spec.x %}\na: 'b\n{% endif %}\n", 2),
}


@pytest.mark.parametrize("title", BROKEN)
def test_a_branch_that_is_never_yaml_is_found_at_its_line(title):
    text, line = BROKEN[title]
    assert lines(text) == [line]


def test_two_broken_branches_are_two_mistakes_and_one_inside_another_is_one():
    two = "{% if spec.x %}\na: 'b\n{% endif %}\n{% if spec.y %}\nc: d: e\n{% endif %}\n"
    assert lines(two) == [2, 5]
    inside = "{% if spec.x %}\na: b: c\n{% if spec.y %}\nd: 1\n{% endif %}\n{% endif %}\nz: 1\n"
    assert lines(inside) == [2]


def test_a_mistake_of_another_file_is_at_its_place_there():
    assert mistakes("a:\n  {% include 'b.j2' %}\n", b="x: 1\n{% if spec.x %}\nx: 2\n{% endif %}\n") == [
        'templates/b.j2:3:1: duplicate key "x": the first is on line 1'
    ]
    child = "{% extends 'b.j2' %}\n{% block c %}\n{{ super() }}\ny\n{% endblock %}\n"
    assert lines(child, b="x: 1\n{% block c %}\nz: 1\n{% endblock %}\nw: 1\n") == [3]


VALID = {
    "keys of conditions that exclude each other": (
        "{% if spec.x %}\na: 1\n{% endif %}\n{% if not spec.x %}\na: 2\n{% endif %}\n"
        "{% if spec.m == 'p' %}\nb: 1\n{% endif %}\n{% if spec.m == 'q' %}\nb: 2\n{% endif %}\n"
    ),
    "keys of conditions that only people know to exclude each other": (
        "{% if spec.small %}\na: 1\n{% endif %}\n{% if spec.medium %}\na: 2\n{% endif %}\n"
        "{% if spec.large %}\na: 3\n{% endif %}\n{% if spec.huge %}\na: 4\n{% endif %}\n"
    ),
    "one condition of two calls": (
        "{% macro m(x) %}\n{% if x %}\na: 1\n{% else %}\nb: 1\n{% endif %}\n{% endmacro %}\n{{ m(true) }}\n{{ m(false) }}\n"
    ),
    "a variable with two values": (
        "{% set x = spec.x %}\n{% if x %}\na: 1\n{% endif %}\n{% set x = spec.y %}\n{% if not x %}\nb: 1\n{% else %}\n"
        "c: 1\n{% endif %}\n"
    ),
    "values alone on their lines": (
        "a:\n  {{ spec.a }}\nb:\n  - 1\n  {{ spec.b }}\nc:\n  {{ unknown }}\n  d: 1\ne: >\n  x\n  {{ spec.e }}\n  y\n"
    ),
    "a loop that prints to itself": (
        "a:\n{% for x in spec.xs recursive %}\n  - b:\n    {{ loop(x.children) }}\n{% endfor %}\n"
    ),
    "documents of a loop": "{% for x in spec.xs %}\n---\na: {{ x }}\n{% endfor %}\n",
    "a block scalar": "a: |\n  {% if spec.x %}\n  b: c: d\n  {% endif %}\n",
    "a branch that is never taken": "a: 1\n{% if false %}\nb: 1\na: 2\n{% endif %}\n",
    "tags that print nothing": "a:\n  {% for x in spec.xs %}{% if x %}{% endif %}{% endfor %}\n  - 1\n",
    "a list at the column of its key": "a:\n{{ spec.xs }}\nb:\n{% for x in spec.xs %}\n- {{ x }}\n{% endfor %}\n",
    "keys that depend on three conditions": (
        "{% if spec.x %}\na: 1\n{% else %}\nb: 1\n{% endif %}\n{% if spec.y %}\nb: 2\n{% else %}\nc: 1\n{% endif %}\n"
        "{% if spec.z %}\na: 3\n{% endif %}\n{% if spec.w %}\nc: 3\n{% endif %}\n"
    ),
    "text that is not YAML": "{% macro m() %}\nif a: b: c\n{% endmacro %}\na: '{{ m() }}'\nb: {{ m() }}\nc: |\n  {{ m() }}\n",
}


@pytest.mark.parametrize("title", VALID)
def test_a_template_that_may_be_yaml_in_each_branch_has_no_mistakes(title):
    assert mistakes(VALID[title]) == []


NOT_BY_ITSELF = {
    "an if that opens what another one fills": (
        "{% if spec.env %}\nenv:\n{% endif %}\n{% for x in spec.env | default([]) %}\n  - {{ x }}\n{% endfor %}\n",
        "5:3: not YAML: this is indented deeper than the block on line 1, which does not hold it: write a key and all that is",
    ),
    "an item below a block": ("a:\n{% for x in spec.xs %}\n- {{ x }}\n{% endfor %}\n    b\n", "5:5: not YAML: this is indented deeper than the block on line 2"),
    "a block behind a value": ("a: 1\n{% if spec.x %}\n  b\n{% endif %}\n", "2: a block cannot continue a value: write it at the column"),
    "text that ends with a key": ("a:\n  {{ text }}\n    b: 1\n", "2:3: not YAML: a line without `: ` among the entries"),
    "tags between items": ("a: [{% for x in spec.xs %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}]\n", "1: a tag cannot be between the items of"),
    "a bracket in two branches": ("a: 1\n{% if spec.x %}\nb: [\n{% endif %}\n{% if spec.x %}\n]\n{% endif %}\n", "3: not YAML: a value is missing here, or a bracket or brace is not closed"),
    "an item in the else of entries": ("a: 1\n{% if spec.x %}\nb: 1\n{% else %}\n- 1\n{% endif %}\n", "5:3: not YAML: an item of a list beside an entry of a mapping on line 1; check the indentation and the dashes"),
    "two values": ("a:\n  {% if spec.x %}\n  b\n  {% endif %}\n  {% if spec.x %}\n  c\n  {% endif %}\n", "6:3: not YAML: a value of its own beside a value of its own on line 3"),
    "documents in a value": ("a:\n  {% include 'b.j2' %}\n", "2: this has documents of its own (a line `---`)"),
}  # fmt: skip


@pytest.mark.parametrize("title", NOT_BY_ITSELF)
def test_branches_that_are_yaml_only_together_are_a_mistake(title):
    text, expected = NOT_BY_ITSELF[title]
    found = mistakes(text, b="---\nx: 1\n")
    assert found[0].startswith(f"templates/a.yaml:{expected}"), found


# -- against what is rendered ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class If:
    test: str
    body: tuple[object, ...]
    otherwise: tuple[object, ...]


@dataclass(frozen=True)
class For:
    name: str
    body: tuple[object, ...]


TESTS = {
    "spec.a": lambda spec: spec["a"],
    "not spec.a": lambda spec: not spec["a"],
    "spec.b": lambda spec: spec["b"],
    "spec.c": lambda spec: spec["c"],
    "spec.a and spec.b": lambda spec: spec["a"] and spec["b"],
    "spec.b or spec.c": lambda spec: spec["b"] or spec["c"],
    "spec.m == 'x'": lambda spec: spec["m"] == "x",
    "spec.m == 'y'": lambda spec: spec["m"] == "y",
    "spec.m != 'x'": lambda spec: spec["m"] != "x",
    "spec.xs": lambda spec: bool(spec["xs"]),
}
LINES = [
    "k: 1",
    "l: 1",
    "m:",
    "  n: 1",
    "  o: 1",
    "- p",
    "  - q",
    "word",
    "- r: 1",
    "s: {{ spec.a }}",
    "  {{ spec.d }}",
]
STATEMENTS = st.recursive(
    st.sampled_from(LINES),
    lambda inner: st.one_of(
        st.builds(
            If,
            st.sampled_from(sorted(TESTS)),
            st.lists(inner, min_size=1, max_size=3).map(tuple),
            st.lists(inner, max_size=2).map(tuple),
        ),
        st.builds(For, st.just("xs"), st.lists(inner, min_size=1, max_size=2).map(tuple)),
    ),
    max_leaves=7,
)


def source(body: tuple[object, ...]) -> str:
    text = ""
    for each in body:
        if isinstance(each, If):
            otherwise = f"{{% else %}}\n{source(each.otherwise)}" if each.otherwise else ""
            text += f"{{% if {each.test} %}}\n{source(each.body)}{otherwise}{{% endif %}}\n"
        elif isinstance(each, For):
            text += f"{{% for x in spec.{each.name} %}}\n{source(each.body)}{{% endfor %}}\n"
        else:
            text += f"{each}\n"
    return text


def taken(body: tuple[object, ...], spec: dict[str, object], path: tuple[object, ...] = ()) -> set[tuple[object, ...]]:
    """The branches that a template takes, by their places."""
    found: set[tuple[object, ...]] = set()
    for number, each in enumerate(body):
        if isinstance(each, If):
            true = TESTS[each.test](spec)
            inner, place = (each.body if true else each.otherwise), (*path, number, true)
        elif isinstance(each, For):
            inner, place = (each.body if spec[each.name] else ()), (*path, number)
        else:
            continue
        if inner:
            found |= {place} | taken(inner, spec, place)
    return found


SPECS = [
    {"a": a, "b": b, "c": c, "m": m, "xs": xs, "d": d}
    for a, b, c, m, xs, d in itertools.product(
        (True, False), (True, False), (True, False), ("x", "y", "z"), ([], [1]), ({"d": 1}, ["d"], None, "d")
    )
]


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(st.lists(STATEMENTS, min_size=1, max_size=5).map(tuple))
def test_a_template_is_refused_if_a_branch_of_it_can_never_be_rendered(body):
    library = Library({"a.yaml": source(body)})
    found = library.possible("a.yaml").mistakes
    try:
        template = library.text_mapping("a.yaml")
    except RuleErrors:
        assert found, source(body)
        return
    rendered, reached = set(), set()
    for spec in SPECS:
        branches = {(), *taken(body, spec)}
        reached |= branches
        try:
            template.render({"spec": view("spec", spec)})
        except (RenderError, Waiting):
            continue
        rendered |= branches
    assert bool(found) == (rendered != reached), (source(body), [str(each) for each in found])


def test_an_entry_that_is_null_is_omitted_so_another_may_have_its_key():
    text = "m:\n{% if spec.a %}\nm: {{ spec.m }}\n{% endif %}\n"
    library = Library({"a.yaml": text})
    assert list(library.possible("a.yaml").mistakes) == []
    template = library.text_mapping("a.yaml")
    assert template.render({"spec": view("spec", {"a": True, "m": "x"})}) == [{"m": "x"}]


# -- positions ---------------------------------------------------------------------------------------------------------

POSITIONS = {
    "in a line": "a: {b: {{ spec.x }}, c: [d, {{ spec.y }}]}\n",
    "in blocks": "a:\n  {% if spec.x %}\n  b: c\n  {% else %}\n  - d: e\n    f: {{ spec.y }}\n  {% endif %}\n",
    "behind tags": "{% if spec.x %}a: b{% endif %}\n{% for x in spec.xs -%}\n  c: 'd'\n{% endfor %}\n",
    "in a macro": "{% macro m() %}\n    a: b\n    {{ spec.x }}:\n      c: d\n{% endmacro %}\ne:\n  {{ m() }}\nf: {{ m() }}\n",
    "in another file": "{% import 'b.j2' as b %}\na:\n  {{ b.m() }}\n{% include 'b.j2' %}\n",
    "in a block that is overridden": "{% extends 'b.j2' %}\n{% block x %}\n{{ super() }}\nc: d\n{% endblock %}\n",
}


def sites(node: Node) -> Iterator[tuple[object, Site]]:
    if isinstance(node, Scalar):
        yield node.value, node.site
        return
    for each in node.members if isinstance(node, (BodyMembers, Items)) else ():
        if isinstance(each, BodyEntry):
            yield each.key.value, each.key.site
            yield from sites(each.value)
        elif isinstance(each, (Scalar, BodyMembers, Items)):
            yield from sites(each)


@pytest.mark.parametrize("title", POSITIONS)
def test_keys_and_values_have_their_places_in_the_files(title):
    texts = {
        "a.yaml": POSITIONS[title],
        "b.j2": "g: h\n{% block x %}\ni: j\n{% endblock %}\n{% macro m() %}\nk: l\n{% endmacro %}\n",
    }
    found = [each for body in Library(texts).possible("a.yaml").bodies for each in sites(body.document)]
    words = [(text, site) for text, site in found if isinstance(text, str) and text.isalpha()]
    assert words
    for text, site in words:
        written = texts[site.path.removeprefix("templates/")].split("\n")[site.line - 1][site.column - 1 :]
        assert written.lstrip("'").startswith(text), (text, site)


NESTED = 60


def test_branches_with_one_key_and_conditions_of_many_parts_are_mistakes_of_bounded_work():
    tests = [" or ".join(f"spec.f{(i + other) % 60}" for other in range(12)) for i in range(60)]
    library = Library({"a.yaml": "a: 1\n" + "".join(f"{{% if {each} %}}\nk: 1\n{{% endif %}}\n" for each in tests)})
    found = library.possible("a.yaml").mistakes
    assert len(found) > 50
    assert all(each.message.startswith('duplicate key "k"') for each in found)


@pytest.mark.parametrize("tag", ["if spec.a", "for i in spec.a"])
def test_a_line_in_many_statements_is_not_read_again_for_each_way_to_it(monkeypatch, tag):
    read = []
    monkeypatch.setattr(parser, "_text_of", lambda line, text_of=parser._text_of: read.append(1) or text_of(line))
    end = tag.split()[0]
    library = Library({"a.yaml": f"{{% {tag} %}}\n" * NESTED + "a: 1\n" + f"{{% end{end} %}}\n" * NESTED})
    assert library.possible("a.yaml").bodies
    assert len(read) < NESTED**2


def test_a_value_without_conditions_is_a_body_at_once_and_any_other_keeps_its_parts():
    text = "a: {b: '{{ spec.b }}', c: [1, 2]}\nd:\n{% if spec.e %}\n  e: 1\n{% endif %}\n"
    parts = Library({"a.yaml": text}).possible("a.yaml").stream.parts
    assert [type(each.value) for each in parts] == [BodyMembers, Sum, type(None)]


BRANCHES = 400


@pytest.mark.parametrize(
    "text",
    [
        "{% if spec.a == 'x' %}\n"
        + "".join(f"a: {i}\n{{% elif spec.a == 'x{i}' %}}\n" for i in range(BRANCHES))
        + "a: y\n{% endif %}\n",
        "".join(f"{{% if spec.a == {i} %}}\na: {i}\n{{% endif %}}\n" for i in range(BRANCHES)),
    ],
    ids=["one if", "one if each"],
)
def test_a_template_of_hundreds_of_branches_has_no_mistakes_and_its_kinds(text):
    assert mistakes(text) == []
    kinds, errors = Library({"a.yaml": "apiVersion: v1\nkind: ConfigMap\n" + text}).possible("a.yaml").kinds
    assert (kinds, errors) == ({Kind("", "v1", "ConfigMap")}, [])
