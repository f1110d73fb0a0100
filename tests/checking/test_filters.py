"""The table of filters agrees with the filters: what they take, and the kinds that they give."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.authoring.checking.typing.environments import Environment
from ruleop.authoring.checking.typing.expressions import EXPRESSIONS
from ruleop.authoring.checking.typing.filters import FILTERS, FUNCTIONS, TESTS
from ruleop.authoring.checking.typing.inference import Inference
from ruleop.authoring.checking.typing.type_findings import Report, Source
from ruleop.authoring.checking.typing.types import kind_of, of_data
from ruleop.core.errors import RenderError, Site
from ruleop.core.rules import Findings
from ruleop.core.templating import FUNCTIONS as SCOPE_FUNCTIONS
from ruleop.core.templating import Library, Waiting, view
from ruleop.core.templating.filters.registry import FILTER_NAMES

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


def test_each_filter_has_a_row() -> None:
    assert set(FILTERS) == FILTER_NAMES


def test_each_test_has_a_row() -> None:
    assert set(TESTS) == set(Library({}).environment.tests)


def test_each_function_has_a_row() -> None:
    assert set(SCOPE_FUNCTIONS) <= set(FUNCTIONS)
    assert {name for name in Library({}).environment.globals if name != "omit"} <= set(FUNCTIONS)


@pytest.mark.parametrize("name", sorted(FILTER_NAMES))
def test_a_filter_takes_and_gives_what_its_row_has(name: str) -> None:
    source = f"value | {name}({ARGUMENTS.get(name, '')})"
    expression = LIBRARY.expression(source, Site("a", 1))
    takes = FILTERS[name].takes
    for kind, sample in ((kind, sample) for kind, samples in SAMPLES.items() for sample in samples):
        try:
            result = expression.evaluate({"value": view("value", {"value": sample}).field("value")})
        except (RenderError, Waiting):
            continue
        assert takes is None or kind in takes, f"{name} takes {kind}"
        inferred = _inferred(source, sample)
        found = kind_of(result)
        if inferred.kinds or inferred.undefined is None:
            assert found in inferred.kinds or (result is None and inferred.undefined), (sample, result, inferred.kinds)


def _inferred(source: str, sample: Any) -> Any:
    inference = Inference(Report(Findings({})), EXPRESSIONS)
    tree: Any = LIBRARY.environment._parse("{{ " + source + " }}", "a", "a")
    with inference.within(Source(Site("a", 1))):
        return inference.infer(tree.body[0].nodes[0], Environment({"value": of_data(sample)}))
