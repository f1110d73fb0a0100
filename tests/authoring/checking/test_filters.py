"""The declarations of filters agree with the filters: what they take, and the kinds that they give."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.authoring.checking.typing.expressions import EXPRESSIONS
from ruleop.authoring.checking.typing.filters import REFINED
from ruleop.authoring.checking.typing.inference import Inference, Report, TypeEnvironment
from ruleop.authoring.checking.typing.types import declared, kind_of, of_data
from ruleop.errors import RenderError, Site
from ruleop.language.rules import Findings
from ruleop.language.templates import FUNCTION_NAMES, Waiting, view
from ruleop.language.templates.compile import Library
from ruleop.language.templates.declarations import FUNCTIONS, KINDS, declared_kinds
from ruleop.language.templates.filters.registry import FILTERS, TESTS
from ruleop.language.templates.values.operators import METHODS

LIBRARY = Library({})
ARGUMENTS = {
    "batch": "2", "slice": "2", "combine": "{}", "condition": "'Ready'", "difference": "[]", "intersect": "[]",
    "union": "[]", "symmetric_difference": "[]", "zip": "[]", "zip_longest": "[]", "ternary": "1, 2", "map": "'string'",
    "select": "'string'", "reject": "'string'", "selectattr": "'a'", "rejectattr": "'a'", "groupby": "'a'",
    "regex_match": "'a'", "regex_findall": "'a'", "regex_search": "'a'", "regex_replace": "'a', 'b'",
    "keep_keys": "'a'", "pick": "'a'", "remove_keys": "'a'", "product": "[1]", "subelements": "'a', skip_missing=true",
    "host": "0", "ip_in": "'10.0.0.0/8'", "replace": "'a', 'b'", "dns_label": "'a'", "center": "9",
}  # fmt: skip
SAMPLES: dict[str, list[Any]] = {
    "null": [None],
    "boolean": [True, False],
    "integer": [1, 0],
    "number": [1.5],
    "string": ["a", "1Gi", "YQ==", "2", "yes", "10.0.0.1"],
    "mapping": [{"a": "b"}, {"a": {"b": 1}, "b": 2}, {"a": 1, "b": 2}],
    "list": [["a"], [{"a": 1}], [{"key": "a", "value": 1}], [1, 2], [["a"], ["b"]], [{"a": [1]}]],
}


def test_a_declaration_is_in_known_words() -> None:
    for words in (
        *(word for each in FILTERS.values() for word in (each.takes, each.gives)),
        *(each.true_for for each in TESTS.values() if each.true_for),
        *(each.gives for each in (*FUNCTIONS.values(), *METHODS.values())),
    ):
        assert declared_kinds(words) <= KINDS
        assert declared(words).kinds == declared_kinds(words)


def test_only_filters_are_refined() -> None:
    assert set(REFINED) <= set(FILTERS)


def test_each_function_is_declared() -> None:
    assert {name for name in Library({}).environment.globals if name != "omit"} <= FUNCTION_NAMES


@pytest.mark.parametrize("name", sorted(FILTERS))
def test_a_filter_takes_and_gives_what_it_declares(name: str) -> None:
    source = f"value | {name}({ARGUMENTS.get(name, '')})"
    expression = LIBRARY.expression(source, Site("a", 1))
    takes, gives = declared_kinds(FILTERS[name].takes), declared_kinds(FILTERS[name].gives)
    for kind, sample in ((kind, sample) for kind, samples in SAMPLES.items() for sample in samples):
        try:
            result = expression.evaluate({"value": view("value", {"value": sample}).field("value")})
        except (RenderError, Waiting):
            continue
        assert kind in takes, f"{name} takes {kind}"
        inferred = _inferred(source, sample)
        found = kind_of(result)
        assert result is None or found in gives, f"{name} gives {found}"
        assert inferred.kinds <= gives or not inferred.is_known, (sample, inferred.kinds)
        if inferred.kinds or inferred.undefined is None:
            assert found in inferred.kinds or (result is None and inferred.undefined), (sample, result, inferred.kinds)


def _inferred(source: str, sample: Any) -> Any:
    inference = Inference(Report(Findings({})), EXPRESSIONS)
    value = LIBRARY.written_string("{{ " + source + " }}", Site("a", 1)).only_value
    assert value is not None
    return inference.infer(value, TypeEnvironment({"value": of_data(sample)}))
