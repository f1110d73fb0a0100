"""In watches.yaml, a key that is one tag holds what its value holds, as the lines below a tag do in a template."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ruleop.errors import RenderError
from ruleop.language.templates import Lazy, LimitExceeded, NotThereYet, RuleErrors, Tree, Waiting, read_yaml
from tests.exploration import examples
from tests.language.templates.hostile import HOSTILE
from tests.language.templates.rendering import library, render, scope, tree


def compiled(source: str, files: dict[str, str] | None = None) -> Tree:
    (node,), mistakes = read_yaml(textwrap.dedent(source), "watches.yaml")
    assert not mistakes
    return library(files=files).tree(node)


def value(source: str, **names: Any) -> Any:
    return compiled(source).evaluate(scope(names))


ENV = {"A": "1", "B": "2"}


def test_a_loop_among_items_gives_an_item_for_each():
    source = """
    env:
      - name: FIRST
      - "{% for name, value in spec.env.items() %}": {name: "{{ name }}", value: "{{ value }}"}
      - name: LAST
    """
    found = value(source, spec={"env": ENV})
    assert found == {
        "env": [{"name": "FIRST"}, {"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "LAST"}]
    }


def test_a_loop_among_entries_gives_entries():
    source = """
    app: web
    "{% for name, value in spec.env.items() %}":
      "{{ name }}": "{{ value }}"
      "{{ name }}-length": "{{ value | length }}"
    last: x
    """
    found = value(source, spec={"env": ENV})
    assert list(found.items()) == [
        ("app", "web"),
        ("A", "1"),
        ("A-length", 1),
        ("B", "2"),
        ("B-length", 1),
        ("last", "x"),
    ]


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ('"{{ each }}"', [1, 2]),
        ("[a, b]", ["a", "b", "a", "b"]),
        ("[[a]]", [["a"], ["a"]]),
        ("[]", []),
        ("{}", [{}, {}]),
        ("{a: '{{ each }}'}", [{"a": 1}, {"a": 2}]),
        ("x", ["x", "x"]),
        ('{"{% if each == 2 %}": "{{ each }}"}', [2]),
        ('{"{% for other in [7, 8] %}": "{{ each * other }}"}', [7, 8, 14, 16]),
        ('{a: 1, "{% if each == 2 %}": {b: 2}}', [{"a": 1}, {"a": 1, "b": 2}]),
        ('"{{ omit }}"', []),
    ],
)
def test_among_items_a_list_gives_its_items_and_any_other_value_is_one(held, expected):
    assert value(f'- "{{% for each in [1, 2] %}}": {held}\n') == expected


@pytest.mark.parametrize(
    ("size", "expected"), [(1, 1), (2, {"two": 2}), (3, ["three"]), (4, "four"), (5, {"two": 5, "text": "a 5"})]
)
def test_tags_alone_decide_about_a_whole_value(size, expected):
    source = """
    a:
      "{% if n == 1 %}": "{{ n }}"
      "{% elif n == 2 %}": {two: "{{ n }}"}
      "{% elif n == 3 %}": [three]
      "{% elif n == 4 %}": four
      "{% else %}":
        two: "{{ n }}"
        "{% if true %}": {text: "a {{ n }}"}
    """
    assert value(source, n=size) == {"a": expected}


def test_a_whole_value_without_any_pass_is_left_out_and_a_list_is_empty():
    source = """
    labels: {"{% for each in [] %}": {"{{ each }}": x}}
    items: {"{% for each in [] %}": ["{{ each }}"]}
    list: [{"{% for each in [] %}": "{{ each }}"}]
    otherwise: {"{% for each in [] %}": ["{{ each }}"], "{% else %}": [none]}
    """
    assert value(source) == {"list": [], "otherwise": ["none"]}


def test_a_loop_has_the_conditions_and_names_of_a_template():
    source = """
    - "{% for each in range(4) if each is odd %}": "{{ loop.index }} of {{ loop.length }}: {{ each }}"
    - "{%- for a, b in [[1, 2]] -%}": "{{ a + b }}"
    """
    assert value(source) == ["1 of 2: 1", "2 of 2: 3", 3]


def test_the_names_of_a_loop_end_with_it():
    with pytest.raises(RenderError, match="each"):
        value('a:\n  "{% for each in [1] %}": {b: "{{ each }}"}\nc: "{{ each }}"\n')
    assert compiled('a:\n  "{% for each in spec.x %}": {b: "{{ each.y }}"}\n').names == {"spec"}


def test_names_that_a_string_sets_are_its_own():
    source = """
    - "{% for each in [1, 2] %}": "{% set x = each %}{{ x }}"
    - "{{ x | default('none') }}"
    """
    assert value(source) == [1, 2, "none"]


def test_the_fields_that_a_loop_reads_are_known():
    found = compiled('a:\n  "{% for each in spec.ports if each.on %}": {b: "{{ each.port }}"}\n')
    paths = {reference.path for reference in found.references}
    assert {("spec", "ports"), ("spec", "ports", None, "on"), ("spec", "ports", None, "port")} <= paths


def test_a_file_that_is_imported_in_a_loop_is_known():
    source = """
    - "{% for each in [1, 2] %}": "{% from 'm.j2' import twice %}{{ twice(each) }}"
    """
    assert compiled(source, {"m.j2": "{% macro twice(x) %}{{ x * 2 }}{% endmacro %}"}).evaluate({}) == ["2", "4"]
    with pytest.raises(RuleErrors, match=r"templates/n\.j2 does not exist"):
        compiled('- "{% for each in [1] %}": "{% from \'n.j2\' import x %}"')


# -- mistakes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('a: 1\n"{% for x in %}": {b: 1}\n', "2:1: template syntax: Expected an expression"),
        ('"{% if a %}":\nb: 1\n', "1:1: this tag holds nothing: write the entries or items below it"),
        ('"{% if a %}": {b: 1}\n"{% endif %}": 1\n', "2:1: {% endif %} is not needed: what a tag holds ends with"),
        ('a: 1\n"{% else %}": {b: 1}\n', "2:1: {% else %} needs its {% if %} or {% for %} in the key before it"),
        ('"{% if a %}": {b: 1}\nc: 1\n"{% else %}": {d: 1}\n', "3:1: {% else %} needs its {% if %} or {% for %} in"),
        ('"{% for x in y %}": {b: 1}\n"{% elif z %}": {d: 1}\n', "1:1: unknown tag {% elif %}"),
        ('a: 1\n"{% if a %}": 5\n', "2:15: this tag is among keys, so it holds a mapping, and this is a number"),
        ('a: 1\n"{% if a %}": [b]\n', "2:15: this tag is among keys, so it holds a mapping, and this is a list"),
        ('a: 1\n"{% if a %}": text\n', "2:15: this tag is among keys, so it holds a mapping, and this is text"),
        (
            '- "{% for x in y recursive %}": 1\n',
            "1:3: a loop in a key cannot be `recursive`: its body is a value, and `loop(...)` inserts text",
        ),
        ('- "{% for x in y | nope %}": 1\n', "1:3: unknown filter nope"),
        ('- "{% for x in y %}":\n    a: "{{ x | nope }}"\n', "2:8: unknown filter nope"),
        ('"{% if a %}":\n  b: 1\n"{% elif a | nope %}": {c: 1}\n', "1:1: unknown filter nope"),
    ],
)
def test_a_mistake_in_a_tag_is_found_at_its_place(source, said):
    with pytest.raises(RuleErrors) as caught:
        compiled(source)
    assert str(caught.value).startswith(f"watches.yaml:{said}")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('a: 1\n"{% for x in spec.no %}": {"{{ x }}": 1}\n', "2:1: spec.no is not set"),
        ('a: 1\n"{% if spec.no %}": {b: 1}\n', "2:1: spec.no is not set"),
        ('"{% if false %}": {a: 1}\n"{% elif spec.no %}": {b: 1}\n', "2:1: spec.no is not set"),
        ('- "{% for x in spec.list %}":\n    a: "{{ x.no }}"\n', "2:8: {{ x.no }}: spec.list[0].no is not set"),
        ('- "{% for x in spec.list %}":\n    "{{ x.no }}": 1\n', "2:5: {{ x.no }}: spec.list[0].no is not set"),
        ('- "{% for x in 5 %}": 1\n', "1:3: a loop needs a list or a mapping, not a number"),
        ('a: 1\n"{% for x in [1, 2] %}": {b: 1}\n', '2:27: duplicate key "b"'),
        ('a: 1\n"{% if true %}": {"{{ \'a\' }}": 2}\n', "2:19: {{ 'a' }}: this results in a duplicate key"),
        ('"{% for x in [1, 2] %}": "{{ x }}"\n', "1:26: this is a number among values of another type: only entries"),
    ],
)
def test_an_error_in_a_loop_names_its_line(source, said):
    with pytest.raises(RenderError) as caught:
        value(source, spec={"list": [{}]})
    assert str(caught.value).startswith(f"watches.yaml:{said}"), caught.value


def test_a_key_with_text_beside_a_tag_is_an_ordinary_one():
    assert value('"{% if true %}a{% endif %}": 1\n"{% for x in [1, 2] %}{{ x }}{% endfor %}": 2\n') == {"a": 1, "12": 2}


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_value_in_a_loop_never_becomes_yaml(text):
    source = """
    "{% for key, value in given.items() %}":
      "x{{ key }}": ["{{ value }}", {"{% for each in [value] %}": {v: "{{ each }}"}}]
    """
    try:
        expected = render("x{{ k }}: {{ k }}\n", k=text)
    except RenderError:
        with pytest.raises(RenderError):
            value(source, given={text: text})
        return
    (key,) = expected
    assert value(source, given={text: text}) == {key: [text, {"v": text}]}


# -- values that are not available yet ---------------------------------------------------------------------------------


def not_yet() -> Lazy:
    def force() -> Any:
        raise NotThereYet("db.status")

    return Lazy("db", force)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('a: 1\nb: [0, {"{% for x in db %}": "{{ x }}"}]\n', {"a": 1, "b": [0]}),
        ('a: 1\n"{% for x in db %}": {"{{ x }}": 1}\n', {"a": 1}),
        ('a: 1\nb: {"{% if db %}": {c: 1}}\n', {"a": 1}),
        ('a: 1\nb: {"{% if db %}": {c: 1}, "{% else %}": {d: 1}}\n', {"a": 1}),
        ('- "{% for x in [1, 2] %}": {x: "{{ x }}", db: "{{ db }}"}\n', [{"x": 1}, {"x": 2}]),
        ('- "{% for x in [1, 2] %}": "{{ db }}"\n', []),
        ('"{% for x in [1, 2] %}": {"{{ x }}-{{ db }}": 1, "{{ x }}": 1}\n', {"1": 1, "2": 1}),
        ('"{% for x in [1, 2] if db %}": {"{{ x }}": 1}\nb: 1\n', {"b": 1}),
    ],
)
def test_a_value_that_is_not_available_yet_omits_what_needs_it_from_a_status_and_holds_up_a_child(source, expected):
    names = {"db": not_yet()}
    assert compiled(source).evaluate(names, lenient=True) == expected
    with pytest.raises(Waiting):
        compiled(source).evaluate(names)


def test_a_template_of_a_status_omits_a_loop_over_what_is_not_available_yet():
    source = "a: 1\nb:\n  {% for x in db %}\n  - {{ x }}\n  {% endfor %}\n"
    assert render(source, lenient=True, db=not_yet()) == {"a": 1}


# -- limits ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_passes_of_a_loop_are_bounded():
    source = '- "{% for a in big %}":\n    "{% for b in big %}":\n      "{% for c in big %}": "{{ c }}"\n'
    with pytest.raises(LimitExceeded):
        value(source, big=list(range(3000)))


# -- the same as a template --------------------------------------------------------------------------------------------

NAMES: dict[str, Any] = {
    "yes": True,
    "no": False,
    "n": 7,
    "text": "a: b",
    "list": ["x", 2, {"k": 1}],
    "none": [],
    "map": {"k": "v", "m": {"n": 1}},
    "e": "outside",
}
SCALARS = st.sampled_from([1, True, "plain", "yes", "a: b", ""])
EXPRESSIONS = st.sampled_from(["n", "text", "yes", "list", "map", "e", "omit", "n if no", "e ~ n"])
TESTS = st.sampled_from(["yes", "no", "e == 'x'", "n > 3"])
LOOPS = st.sampled_from(["e in list", "e in none", "e in [1, 2]", "e, f in map.items()", "e in list if e is string"])


@st.composite
def held(draw: st.DrawFn, inner: st.SearchStrategy[Any], depth: int) -> tuple[Any, ...]:
    """A tag with what it holds: ("for", its head, what it holds) or ("if", its test, then, otherwise)."""
    if draw(st.booleans()):
        return "for", draw(LOOPS), draw(inner)
    return "if", draw(TESTS), draw(inner), draw(st.none() | inner)


def leaves() -> st.SearchStrategy[Any]:
    return (
        st.tuples(st.just("scalar"), SCALARS)
        | st.tuples(st.just("print"), EXPRESSIONS)
        | st.tuples(st.just("join"), st.sampled_from(["n", "text", "e"]))
    )


def values(depth: int) -> st.SearchStrategy[Any]:
    if not depth:
        return leaves()
    return leaves() | mappings(depth - 1) | lists(depth - 1) | held(values(depth - 1), depth)


def name_of(member: tuple[Any, ...]) -> str:
    return tag(member) if member[0] in ("for", "if") else key_of(member)


def else_of(member: tuple[Any, ...]) -> str:
    """One mapping cannot have two keys `{% else %}`."""
    return "else" if member[0] == "if" and member[3] is not None else name_of(member)


def mappings(depth: int) -> st.SearchStrategy[Any]:
    key = st.sampled_from(["static", "computed"])
    member = st.tuples(key, st.integers(0, 99), values(depth))
    if depth:
        member |= held(mappings(depth - 1), depth)
    return st.tuples(
        st.just("mapping"),
        st.lists(member, min_size=1, max_size=3, unique_by=(name_of, else_of)),
    )


def lists(depth: int) -> st.SearchStrategy[Any]:
    item = values(depth).filter(lambda each: each[0] not in ("for", "if"))
    if depth:
        item |= held(lists(depth - 1), depth)
    return st.tuples(st.just("list"), st.lists(item, min_size=1, max_size=3))


def tag(node: tuple[Any, ...]) -> str:
    return f"{{% {node[0]} {node[1]} %}}"


def text_of(node: tuple[Any, ...]) -> str:
    """A leaf as a string of watches.yaml, or a literal."""
    if node[0] == "scalar":
        return json.dumps(node[1])
    return json.dumps(f"{{{{ {node[1]} }}}}" + ("-x" if node[0] == "join" else ""))


def key_of(member: tuple[Any, ...]) -> str:
    return f"k{member[1]}" if member[0] == "static" else f"c{member[1]}-{{{{ e }}}}"


def as_rule(node: tuple[Any, ...]) -> str:
    """The value in watches.yaml, on one line."""
    if node[0] in ("for", "if"):
        return "{" + entry(node, as_rule) + "}"
    if node[0] == "mapping":
        return "{" + ", ".join(['"always": 1', *(entry(each, as_rule) for each in node[1])]) + "}"
    if node[0] == "list":
        return "[" + ", ".join(['"always"', *(as_rule(each) for each in node[1])]) + "]"
    return text_of(node)


def inner_rule(node: tuple[Any, ...]) -> str:
    """The same of what a tag among others holds: without the entry or the item that makes an empty one."""
    if node[0] == "mapping":
        return "{" + ", ".join(entry(each, as_rule) for each in node[1]) + "}"
    if node[0] == "list":
        return "[" + ", ".join(as_rule(each) for each in node[1]) + "]"
    return as_rule(node)


def entry(node: tuple[Any, ...], write: Any) -> str:
    if node[0] not in ("for", "if"):
        return f"{json.dumps(key_of(node))}: {write(node[2])}"
    parts = [f"{json.dumps(tag(node))}: {inner_rule(node[2])}"]
    if node[0] == "if" and node[3] is not None:
        parts.append(f'"{{% else %}}": {inner_rule(node[3])}')
    return ", ".join(parts)


def as_template(node: tuple[Any, ...], column: str, *, whole: bool = True) -> list[str]:
    """The same in a template."""
    if node[0] in ("for", "if"):
        lines = [column + tag(node), *as_template(node[2], column, whole=False)]
        if node[0] == "if" and node[3] is not None:
            lines += [column + "{% else %}", *as_template(node[3], column, whole=False)]
        return [*lines, f"{column}{{% end{node[0]} %}}"]
    if node[0] == "mapping":
        lines = [f"{column}always: 1"] if whole else []
        for each in node[1]:
            if each[0] in ("for", "if"):
                lines += as_template(each, column)
            else:
                lines += [f'{column}"{key_of(each)}":', *as_template(each[2], column + "  ")]
        return lines
    if node[0] == "list":
        lines = [f"{column}- always"] if whole else []
        for each in node[1]:
            if each[0] in ("for", "if"):
                lines += as_template(each, column)
            else:
                lines += [f"{column}-", *as_template(each, column + "  ")]
        return lines
    written = text_of(node)
    return [column + (f"{{{{ {node[1]} }}}}" if node[0] == "print" else written)]


def outcome(render: Any) -> Any:
    try:
        return render()
    except (RenderError, RuleErrors) as error:
        return type(error)


@pytest.mark.slow
@given(values(3))
@settings(max_examples=examples(400))
def test_a_value_gives_the_same_as_the_equal_template(node):
    rule, template = f"v: {as_rule(node)}\n", "\n".join(["v:", *as_template(node, "  ")]) + "\n"
    one, other = outcome(lambda: tree(rule, **NAMES)), outcome(lambda: render(template, **NAMES))
    if isinstance(one, type) and isinstance(other, type):
        return  # a mistake may be found when it is loaded in one, and when it is rendered in the other
    assert one == other, f"{rule}\n{template}"
