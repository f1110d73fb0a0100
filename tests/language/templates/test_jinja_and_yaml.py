"""With harmless values, a template renders what Jinja's own text is as YAML."""

from __future__ import annotations

from typing import Any

import jinja2
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.language.templates.rendering import documents

SPEC = {"yes": True, "no": False, "text": "some text", "number": 7, "list": ["i", 2], "map": {"m1": "v"}, "none": []}
VALUES = [
    "1",
    "true",
    "plain",
    "'quoted {{ spec.text }}'",
    "{{ spec.number }}",
    "{{ spec.text }}",
    "a-{{ spec.number }}-{{ spec.text }}",
    "'{% if spec.yes %}one{% else %}{{ spec.number }}{% endif %}'",
    "x{% if spec.no %}-no{% endif %}-{{ x | default('none') }}",
    "[1, {{ spec.number }}]",
    "{a: {{ spec.text }}}",
]
TEXTS = ["line {{ spec.text }}", "  deeper", "", "{{ spec.number }}", "# no comment"]
TESTS = ["spec.yes", "spec.no", "spec.list", "x is defined"]
LOOPS = ["spec.list", "spec.map", "spec.none", "[1, 2]"]
JINJA = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=False)  # noqa: S701 - no HTML


@st.composite
def entries(draw: Any, indent: int, depth: int, prefix: str) -> list[str]:
    space, lines = " " * indent, []
    for number in range(draw(st.integers(1, 3))):
        key = f"{prefix}{number}"
        kind = draw(st.sampled_from(["value", "text", *(["map", "list", "if", "for", "with"] if depth else [])]))
        if kind == "value":
            lines.append(f"{space}{key}: {draw(st.sampled_from(VALUES))}")
        elif kind == "text":
            lines.append(f"{space}{key}: {draw(st.sampled_from(['|', '|-', '|+', '>', '>-']))}")
            lines.append(f"{space}  first")
            lines += draw(text_lines(indent + 2))
        elif kind == "map":
            lines += [f"{space}{key}:", *draw(entries(indent + 2, depth - 1, key))]
        elif kind == "list":
            lines += [f"{space}{key}:", *draw(items(indent + draw(st.sampled_from([0, 2])), depth - 1, key))]
        elif kind == "if":
            lines += [f"{space}{{% if {draw(st.sampled_from(TESTS))} %}}", *draw(entries(indent, depth - 1, key + "a"))]
            if draw(st.booleans()):
                lines += [f"{space}{{% else %}}", *draw(entries(indent, depth - 1, key + "b"))]
            lines.append(f"{space}{{% endif %}}")
        elif kind == "with":
            lines += ["{% with x = spec.number %}", *draw(entries(indent, depth - 1, key + "w")), "{% endwith %}"]
        else:
            lines.append(f"{space}{{% for x in {draw(st.sampled_from(LOOPS))} %}}")
            inner = draw(items(indent + 4, depth - 1, key))
            lines += [f"{space}{key}l{{{{ loop.index }}}}:", *inner, f"{space}{{% endfor %}}"]
    return lines


@st.composite
def items(draw: Any, indent: int, depth: int, prefix: str) -> list[str]:
    space, lines = " " * indent, []
    for number in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["value", "map", *(["if", "for", "set"] if depth else [])]))
        if kind == "value":
            lines.append(f"{space}- {draw(st.sampled_from(VALUES))}")
        elif kind == "map":
            first, *others = draw(entries(indent + 2, max(depth - 1, 0), f"{prefix}i"))
            if "{%" in first.split(":")[0]:
                lines += [f"{space}- {prefix}h: 1", first, *others]
            else:
                lines += [f"{space}- {first.strip()}", *others]
        elif kind == "set":
            lines += [f"{space}{{% set x = {number} %}}", f"{space}- {{{{ x }}}}"]
        elif kind == "if":
            lines += [f"{space}{{% if {draw(st.sampled_from(TESTS))} %}}", *draw(items(indent, depth - 1, prefix))]
            lines.append(f"{space}{{% endif %}}")
        else:
            lines.append(f"{space}{{% for x in {draw(st.sampled_from(LOOPS))} %}}")
            lines += [*draw(items(indent, depth - 1, prefix)), f"{space}{{% endfor %}}"]
    return lines


@st.composite
def text_lines(draw: Any, indent: int) -> list[str]:
    space, lines = " " * indent, []
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["line", "line", "if", "for"]))
        text = draw(st.sampled_from(TEXTS))
        if kind == "line":
            lines.append(f"{space}{text}")
        elif kind == "if":
            lines += [f"{space}{{% if {draw(st.sampled_from(TESTS))} %}}", f"{space}in {text}", f"{space}{{% endif %}}"]
        else:
            lines += [f"{space}{{% for x in [1, 2] %}}", f"{space}- {{{{ x }}}}", f"{space}{{% endfor %}}"]
    return lines


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(member) for key, member in value.items() if member is not None}
    return [without_nulls(each) for each in value if each is not None] if isinstance(value, list) else value


@pytest.mark.slow
@given(entries(0, 3, "k"))
def test_a_random_template_renders_what_its_text_is_as_yaml(lines: list[str]) -> None:
    source = "\n".join(lines) + "\n"
    text = JINJA.from_string(source).render(spec=SPEC)
    expected = without_nulls(yaml.safe_load(text) or {})
    found = documents(source, spec=SPEC)
    assert (found or [{}]) == [expected], f"{source}\n----\n{text}"
