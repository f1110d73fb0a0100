"""Type errors are reported in the terms of templates, never in Python's."""

from __future__ import annotations

import re

import pytest

from ruleop.errors import RenderError
from tests.language.templates.rendering import evaluate

NAMES = {
    "text": "x", "number": 3, "flag": True, "list": [1, "a"], "map": {"a": 1}, "nothing": None, "maps": [{"a": 1}, {"a": "x"}],
}  # fmt: skip
NUMBER_OF_TEXT = "is not possible; convert the text to a number with `| int`"
ALIKE = "is not possible: compare numbers with numbers, text with text, lists with lists"
SAYINGS = {
    "text > 3": f"text > a number {NUMBER_OF_TEXT}",
    "3 <= text": f"a number <= text {NUMBER_OF_TEXT}",
    "1 < 2 < text": f"a number < text {NUMBER_OF_TEXT}",
    "[1, 2] > [1, 'a']": f"a number > text {NUMBER_OF_TEXT}",
    "list < 3": f"a list < a number {ALIKE}",
    "map >= map": f"a mapping >= a mapping {ALIKE}",
    "nothing > 3": f"null > a number {ALIKE}",
    "flag < text": f"a boolean < text {ALIKE}",
    "{} > []": f"a mapping > a list {ALIKE}",
    "1 in number": "`in` needs text, a list or a mapping on the right, not a number",
    "number in text": "a number in text: only text can be searched in text",
    "text + number": "text + a number: only text can be added to text; join anything with ~",
    "nothing + 1": "null + a number is not possible",
    "map - map": "a mapping - a mapping is not possible",
    "-text": "needs a number, not text",
    "number / 0": "division by zero",
    "number % 0": "division by zero",
    "1e300 ** number": "the result of ** is too large",
    "(-8) ** 0.5": "** is not possible: the root of a negative number",
    "list | sort": f"sort: text < a number {NUMBER_OF_TEXT}",
    "maps | sort": f"sort: a mapping < a mapping {ALIKE}",
    "maps | sort(attribute='a')": f"sort: text < a number {NUMBER_OF_TEXT}",
    "list | max": f"max: text > a number {NUMBER_OF_TEXT}",
    "maps | selectattr('a', 'gt', 1) | list": f"selectattr: text > a number {NUMBER_OF_TEXT}",
    "number | sort": "sort: needs a list, not a number",
    "number | first": "first: needs a list, not a number",
    "number | map('upper')": "map: needs a list, not a number",
    "nothing | length": "length: needs text, a list or a mapping, not null",
    "text | abs": "abs: needs a number, not text",
    "text | round": "round cannot use these values",
    "text | replace('a')": "replace: new is missing",
    "text | shell_quote(3)": "shell_quote: it takes no more arguments here",
    "text | truncate(5, nonsense=1)": "truncate: unknown argument nonsense",
    "number | join(',')": "a loop needs a list or a mapping, not a number",
}
PYTHONS = re.compile(
    r"'(str|int|float|dict|list|tuple|bool)'|NoneType|View|Error\b|\bobject\b|positional|iterable|supported|len\(\)|operand"
)


@pytest.mark.parametrize("expression", SAYINGS)
def test_a_type_error_is_reported_in_the_terms_of_templates(expression):
    with pytest.raises(RenderError) as caught:
        evaluate(expression, **NAMES)
    told = caught.value.message.removeprefix(f"{{{{ {expression} }}}}: ")
    assert told == SAYINGS[expression]
    assert not PYTHONS.search(told)
