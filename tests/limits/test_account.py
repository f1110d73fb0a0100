"""The account of a plan is charged at few doors, gives back what a render has made, and ends many renders too."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ruleop
from ruleop.errors import RenderError
from ruleop.language.templates.filters.registry import FILTERS, TESTS
from ruleop.language.templates.values.cost import BEFORE, DEEP, METER, NOT_GIVEN_BACK, PASS_BYTES, ROWS, Account
from ruleop.language.templates.values.operators import METHODS
from ruleop.planning import plan
from tests.language.templates.rendering import HERE, library, scope, tree
from tests.limits.shapes import EACH, of_each, texts
from tests.planning.harness import Harness

DOORS = 8
PASSES = 1000
LOOP = "{% for i in range(" + str(PASSES) + ") %}{% endfor %}"


def charged(work: Callable[[], Any]) -> int:
    """The bytes of an account that stay charged."""
    before = METER.switch(account := Account())
    try:
        work()
    finally:
        METER.switch(before)
    return account.bytes


def test_few_modules_charge_the_account():
    folder = Path(ruleop.__file__).parent
    found = [path for path in folder.rglob("*.py") if re.search(r"\bMETER\b", path.read_text())]
    assert len(found) <= DOORS, sorted(map(str, found))


def test_each_name_of_the_table_is_a_filter_a_test_or_a_method():
    names = FILTERS.keys() | TESTS.keys() | {name for _, name in METHODS}
    assert BEFORE.keys() | ROWS | DEEP <= names


def test_a_quarter_of_what_a_render_has_made_stays_charged():
    template = library(f"a: {LOOP}x").text_mapping("main.j2")
    once = charged(lambda: template.render({}))
    assert PASSES * PASS_BYTES // NOT_GIVEN_BACK <= once < PASSES * PASS_BYTES
    assert charged(lambda: [template.render({}) for _ in range(10)]) == pytest.approx(10 * once, rel=0.01)


def test_all_that_was_made_for_a_value_of_another_scope_stays_charged():
    expression = library().expression(f"range({PASSES}) | list | length", HERE)
    kept, given_back = charged(lambda: expression.value({})), charged(lambda: expression.evaluate({}))
    assert kept == pytest.approx(NOT_GIVEN_BACK * given_back, rel=0.01)


@pytest.mark.slow
def test_many_renders_that_each_read_a_long_list_end_without_a_guard():
    harness = Harness.of(
        EACH,
        {"items": texts(5000)},
        **of_each("  a: '{{ spec['items'] | map('upper') | join }}'\n"),
    )
    assert harness.resource is not None
    account = Account()
    planned = plan(harness.rule, harness.resource, harness.observed(), account=account)
    assert [each.reason for each in planned.problems] == ["RenderFailed"]
    assert "too much work for one resource" in planned.problems[0].message


ONE_CALL = ("a: b\n\n\nc: {{ ('ab' * 1000000).rfind('ba' * 500000) }}", 4)
MANY = [
    ("a: b\nc: {{ range(9999) | list | product(range(10)) | product([1]) | length }}", 2),
    ("a: b\n\nc: {% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}", 3),
]


@pytest.mark.parametrize(
    ("source", "line"), [ONE_CALL, *(pytest.param(*each, marks=pytest.mark.slow) for each in MANY)]
)
def test_an_error_has_the_line_of_the_template(source, line):
    with pytest.raises(RenderError, match="too much work for one resource") as caught:
        library(source).text_mapping("main.j2").render(scope({}))
    assert (caught.value.site.path, caught.value.site.line) == ("templates/main.j2", line)


def test_an_error_in_a_value_of_the_rules_has_its_line():
    with pytest.raises(RenderError, match="too much work for one resource") as caught:
        tree("a: \"{{ ('ab' * 1000000).rfind('ba' * 500000) }}\"")
    assert (caught.value.site.path, caught.value.site.line) == ("watches.yaml", 1)
