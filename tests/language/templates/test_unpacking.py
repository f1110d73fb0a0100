"""Keys and values: one form from every filter, and a hint where a value cannot be unpacked."""

from __future__ import annotations

import pytest

from ruleop.errors import RenderError
from tests.language.templates.rendering import evaluate, render

LABELS = {"b": 2, "a": 1}
NAMES = {
    "labels": LABELS, "letters": {"ab": 1, "cd": 2}, "items_": [{"key": "a", "value": 1}], "text": "ab", "texts": ["ab"],
    "threes": [[1, 2, 3]], "numbers": [1], "tree": [["a", []]],
}  # fmt: skip


@pytest.mark.parametrize("pairs", ["labels | items", "labels.items()", "labels | dictsort", "labels | dict2items"])
def test_pairs_of_keys_and_values_have_one_form_from_every_filter(pairs):
    found = render(f"{{% for item in {pairs} %}}\n{{{{ item.key }}}}: {{{{ item.value }}}}\n{{% endfor %}}", **NAMES)
    assert found == LABELS
    assert evaluate(f"({pairs}) | map(attribute='key') | sort | list", **NAMES) == ["a", "b"]


@pytest.mark.parametrize(
    "pairs", ["labels | items", "labels.items()", "labels | dictsort", "labels.items() | list", "[('b', 2), ['a', 1]]"]
)
def test_pairs_are_unpacked_into_two_names(pairs):
    assert render(f"{{% for k, v in {pairs} %}}\n{{{{ k }}}}: {{{{ v }}}}\n{{% endfor %}}", **NAMES) == LABELS


def test_nested_names_are_unpacked():
    assert render("{% for (a, b), c in [[(1, 2), 3]] %}\nx: {{ [a, b, c] }}\n{% endfor %}") == {"x": [1, 2, 3]}
    assert render("{% set a, b = [1, 2] %}\nx: {{ a }}{{ b }}") == {"x": "12"}
    assert render("{% set a, (b, c) = threes[0][0], threes[0][1:] %}\nx: {{ a }}{{ b }}{{ c }}", **NAMES) == {
        "x": "123"
    }


def test_a_loop_of_several_names_supports_loop_filter_and_else():
    source = "{% for k, v in m.items() if v > 1 %}\n{{ k }}: {{ loop.index }}/{{ loop.length }}\n{% else %}\nnone: 1\n{% endfor %}"
    assert render(source, m=LABELS) == {"b": "1/1"}
    assert render(source, m={}) == {"none": 1}


KEYS = "a loop over a mapping iterates over its keys: write "
SAYINGS = {
    "{% for k, v in labels %}{% endfor %}": f"{KEYS}`for k, v in labels.items()`",
    "{% for k, v in letters %}{% endfor %}": f"{KEYS}`for k, v in letters.items()`",
    "{% for key, value in cr.spec['a-b'] %}{% endfor %}": f"{KEYS}`for key, value in cr.spec['a-b'].items()`",
    "{% for k, v in labels | default({}) %}{% endfor %}": f"{KEYS}`for k, v in mapping.items()`",
    "{% for k, v in {'a': 1} %}{% endfor %}": f"{KEYS}`for k, v in mapping.items()`",
    "{% for a, b, c in labels %}{% endfor %}": f"{KEYS}`for key, value in labels.items()`",
    "{% for (a, b), c in labels %}{% endfor %}": f"{KEYS}`for key, value in labels.items()`",
    "{% for k, v in items_ %}{% endfor %}": "a mapping cannot be unpacked into `k, v`: write `for item in ...` and read item.key, item.value",
    "{% for k, v in labels | dict2items %}{% endfor %}": "a mapping cannot be unpacked into `k, v`: write `for item in ...` and read item.key, item.value",
    "{% for k, v in [labels] %}{% endfor %}": "a mapping cannot be unpacked into `k, v`: use one name and read its fields",
    "{% for k, v in text %}{% endfor %}": "text cannot be unpacked into `k, v`: a list of 2 items is needed",
    "{% for k, v in texts %}{% endfor %}": "text cannot be unpacked into `k, v`: a list of 2 items is needed",
    "{% for k, v in numbers %}{% endfor %}": "a number cannot be unpacked into `k, v`: a list of 2 items is needed",
    "{% for k, v in threes %}{% endfor %}": "a list of 3 items cannot be unpacked into `k, v`: a list of 2 items is needed",
    "{% for a, (b, c) in [[1, [2]]] %}{% endfor %}": "a list of 1 item cannot be unpacked into `b, c`: a list of 2 items is needed",
    "{% for k, v in 5 %}{% endfor %}": "a loop needs a list or a mapping, not a number",
    "{% set a, b = labels %}": "a mapping cannot be unpacked into `a, b`: use one name and read its fields",
    "{% set a, b = 5 %}": "a number cannot be unpacked into `a, b`: a list of 2 items is needed",
    "{% set a, b = none %}": "null cannot be unpacked into `a, b`: a list of 2 items is needed",
    "{% for k, v in tree recursive %}{{ loop(numbers) }}{% endfor %}": "a number cannot be unpacked into `k, v`: a list of 2 items is needed",
    "{% for k, v in tree recursive %}{{ loop(threes) }}{% endfor %}": "a list of 3 items cannot be unpacked into `k, v`: a list of 2 items is needed",
}  # fmt: skip


@pytest.mark.parametrize("source", SAYINGS)
def test_a_value_that_cannot_be_unpacked_has_a_hint(source):
    with pytest.raises(RenderError) as caught:
        render(f"a: 1\n{source}\n", **NAMES, cr={"spec": {"a-b": LABELS}})
    assert str(caught.value).endswith(SAYINGS[source])
    assert str(caught.value).startswith("templates/main.j2:2: ")


def test_a_loop_of_several_names_over_an_undefined_value_is_an_error():
    with pytest.raises(RenderError, match=r"labels.x is not set"):
        render("{% for k, v in labels.x %}{% endfor %}", **NAMES)
