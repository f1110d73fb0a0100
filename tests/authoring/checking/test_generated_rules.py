"""Rules that the search of `make fuzz` generates are checked without an internal error, whatever they hold."""

from __future__ import annotations

import random

import pytest

from bench.fuzz.case import DEFINITIONS
from bench.fuzz.genes import Genetics, case_of
from ruleop.authoring.checking.typing.watches import check_types
from ruleop.language.rules import Findings, ProjectErrors
from ruleop.language.rules.checking import build_with_sources

TYPES = (
    "{type: object, required: [text, number, flag, many, table], properties: {text: {type: string}, "
    "number: {type: integer}, flag: {type: boolean}, many: {type: array, items: {type: string}}, "
    "table: {type: object, additionalProperties: {type: string}}, entries: {type: array, items: {type: object, "
    "properties: {name: {type: string}, value: {type: string}}}}}}"
)
OPEN = "spec: {type: object, x-kubernetes-preserve-unknown-fields: true}"
TYPED = {**DEFINITIONS, "crds/app.yaml": DEFINITIONS["crds/app.yaml"].replace(OPEN, f"spec: {TYPES}")}


def check(seed: int) -> None:
    files = {**TYPED, **case_of(Genetics(random.Random(seed)).random()).files}  # noqa: S311 - for test data
    try:
        loaded = build_with_sources(files, root="/project", environ={})
    except ProjectErrors:
        return
    check_types(loaded, Findings(files))


@pytest.mark.parametrize("seed", range(10))
def test_generated_rules_are_checked(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(10, 500, 70))
def test_many_generated_rules_are_checked(start: int) -> None:
    for seed in range(start, start + 70):
        check(seed)
