"""Every example of docs/templates.md is rendered, and gives what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import jinja2.filters
import pytest

from ruleop.errors import RenderError
from ruleop.language.templates import NONDETERMINISTIC, read_yaml
from ruleop.language.templates.compile import Library
from tests.language.templates.rendering import documents, evaluate, scope

PAGE = (Path(__file__).parents[3] / "docs" / "templates.md").read_text()
BLOCKS = re.findall(r"^```(\w+) ([^\n]+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
FILES = {what.removeprefix("file="): text for _, what, text in BLOCKS if what.startswith("file=")}
EXAMPLES = [
    (text, BLOCKS[number + 1]) for number, (_, what, text) in enumerate(BLOCKS) if what in {"template", "error"}
]


def data_of(text):
    found, mistakes = read_yaml(text, "docs/templates.md")
    assert not mistakes
    return [document.data() for document in found]


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_renders_as_documented(number):
    template, (_, what, expected) = EXAMPLES[number]
    (resource,) = data_of(next(text for _, kind, text in BLOCKS if kind == "resource"))
    if what == "message":
        with pytest.raises(RenderError) as caught:
            documents(template, FILES, **resource)
        assert str(caught.value) == expected.strip()
    else:
        assert what == "result"
        assert documents(template, FILES, **resource) == data_of(expected)


ROWS = [
    (name, found.groups())
    for row in re.findall(r"^\| (`.*?`.*) \|$", PAGE.split("## Filters")[1].split("\n## ")[0], re.MULTILINE)
    for name in re.findall(r"`(\w+)", row.split(" | ")[0])
    if (found := re.search(r"\| `([^`]+)` gives `([^`]+)`$", row))
]


@pytest.mark.parametrize(("expression", "gives"), sorted({example for _, example in ROWS}))
def test_the_example_of_a_filter_evaluates_as_documented(expression, gives):
    (resource,) = data_of(next(text for _, kind, text in BLOCKS if kind == "resource"))
    assert [evaluate(expression.replace("\\|", "|"), **resource)] == data_of(f"[{gives}]")[0]


def test_every_filter_that_ruleop_adds_has_an_example():
    jinjas = {*jinja2.filters.FILTERS, "tojson"}
    assert {name for name, _ in ROWS} - jinjas == {
        name for name in Library({}).environment.filters if name.isidentifier()
    } - jinjas


def test_the_documented_functions_are_the_existing_ones():
    table = PAGE.split("## Passwords and certificates")[1].split("```")[0]
    assert set(re.findall(r"^\| `(\w+)\(", table, re.MULTILINE)) == NONDETERMINISTIC


def test_every_block_of_the_templates_page_is_tested():
    assert len(EXAMPLES) >= 10
    assert PAGE.count("\n```") == 2 * len(BLOCKS), "each block says what it is"
    assert {what.split("=")[0] for _, what, _ in BLOCKS} == {
        "resource",
        "template",
        "result",
        "error",
        "message",
        "file",
        "create-only",
    }


def test_the_documented_filters_exist():
    table = PAGE.split("## Filters")[1].split("```")[0]
    names = {name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)", row)}
    assert names <= set(Library({}).environment.filters)
    assert {"to_yaml", "dns_label", "condition"} <= names
    assert scope({}) == {}
