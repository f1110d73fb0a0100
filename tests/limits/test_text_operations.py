"""Each operation on text is charged by what it takes: searches by the comparisons that CPython may need, tests by the
characters that they read, filters of lists by the items that they make of a text."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.errors import RenderError
from ruleop.language.templates.values.cost import ITEM_BYTES, METER, NOT_GIVEN_BACK, TEXT_READ, Account
from tests.language.templates.rendering import evaluate

SEARCHES = (
    "t.find(n)", "t.rfind(n)", "t.count(n)", "t.split(n)", "t.rsplit(n)", "t.partition(n)", "t.rpartition(n)",
    "t.replace(n, 'x')", "t | replace(n, 'x')", "t | split(n)", "n in t", "n is in(t)", "[n] | select('in', t) | list",
)  # fmt: skip


def used(expression: str, **names: Any) -> int:
    """The bytes that an evaluation is charged."""
    before = METER.switch(account := Account())
    mark = METER.begin(outermost=False)
    try:
        evaluate(expression, **names)
    finally:
        METER.switch(before)
    return NOT_GIVEN_BACK * (mark - account.memory)


@pytest.mark.parametrize("expression", SEARCHES)
def test_a_search_in_short_text_is_charged_by_the_characters_that_may_be_compared(expression):
    text, sought = "a" * 2499, "a" * 1190 + "b" + "a" * 9
    compared = (len(text) - len(sought)) * len(sought)
    assert used(expression, t=text, n=sought) >= compared // 16


@pytest.mark.slow
@pytest.mark.parametrize("expression", SEARCHES)
def test_a_search_for_most_of_a_long_text_is_charged_by_the_characters_that_may_be_compared(expression):
    text, sought = "a" * 20_000, "a" * 18_000 + "b" + "a" * 9
    assert used(expression, t=text, n=sought) >= 1900 * 18_000 // 16


@pytest.mark.parametrize("expression", SEARCHES)
def test_a_search_for_a_short_word_is_charged_little(expression):
    assert used(expression, t="example " * 100, n="app") < 10_000


@pytest.mark.parametrize(("length", "letters"), [(30_000, 99), (200_000, 5_000)])
def test_a_search_from_the_start_of_long_text_is_linear(length, letters):
    assert used("n in t", t="a" * length, n="b" * letters) < 9 * length


@pytest.mark.parametrize("expression", ["t is lower", "t is upper", "[t] | select('lower') | list"])
def test_a_test_of_case_is_charged_by_the_length_of_the_text(expression):
    assert used(expression, t="1" * 1_000_000) >= 1_000_000 // TEXT_READ


@pytest.mark.parametrize("name", ["list", "unique", "sort", "max", "batch(3)", "map('upper') | list", "select"])
def test_a_filter_that_makes_items_of_text_is_charged_for_each_character(name):
    assert used(f"(t | {name}) is string", t="\N{GRINNING FACE}" * 50_000) >= 2 * ITEM_BYTES * 50_000


def test_text_of_more_characters_than_a_list_may_have_is_refused_before_they_become_items():
    with pytest.raises(RenderError, match="a list of 300,000 items"):
        evaluate("t | list", t="x" * 300_000)


def test_the_last_character_of_a_text_is_charged_like_its_first():
    text = "x" * 300_000
    assert evaluate("t | last", t=text + "y") == "y"
    assert used("t | last", t=text) == used("t | first", t=text)


@pytest.mark.parametrize("test", ["odd", "even", "divisibleby(3)"])
def test_a_test_of_numbers_refuses_text_instead_of_formatting_it(test):
    """`'%900000000d' % 2` is text of 900 MB."""
    with pytest.raises(RenderError, match="takes a number, not text"):
        evaluate(f"t is {test}", t="%900000000d")


def test_texts_that_one_sorting_would_compare_for_too_long_are_refused():
    long = "x" * 100_000
    assert evaluate("a | sort | first", a=[long + "b", long + "a"]) == long + "a"
    with pytest.raises(RenderError, match=r"texts of [0-9,]+ characters to sort"):
        evaluate("a | sort | length", a=[long + "a", long + "b"] * 1000)


def test_a_search_for_matches_that_would_take_too_long_is_refused():
    pattern = "(" * 100 + "a|b" + ")*" * 100
    assert evaluate("t | regex_match(p)", t="ab" * 500, p=pattern) is True
    with pytest.raises(RenderError, match=r"up to [0-9,]+ steps of a regular expression for this text"):
        evaluate("t | regex_match(p)", t="ab" * 400_000, p=pattern)


def test_matches_have_no_more_groups_and_characters_than_a_list_and_a_text():
    with pytest.raises(RenderError, match="a list of 100,020 items"):
        evaluate("t | regex_findall(p)", t="a" * 6000, p="(" * 20 + "a" + ")" * 20)
    with pytest.raises(RenderError, match="text of 3,200,000 characters"):
        evaluate("t | regex_findall(p)", t="a" * 200_000, p="(" * 16 + "a+" + ")" * 16)


@pytest.mark.parametrize(
    "expression",
    ["range(n)", "'x' * n", "[1] * n", "'x' | center(n)", "'x' | indent(n)", "[1] | slice(n)", "range(0, n, 1)"],
)
def test_a_limit_without_the_value_of_a_secret_does_not_quote_the_number(expression):
    with pytest.raises(RenderError) as caught:
        evaluate(expression, n=7391846205)
    assert "7,391,846,205" in caught.value.message
    assert "too many" in caught.value.redacted
    assert "846" not in caught.value.redacted
