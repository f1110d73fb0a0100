"""The part of the tests that `make test` runs is always the same."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exploration import MOST_CASES, few, others_slow


@dataclass(frozen=True)
class Row:
    nodeid: str


def test_few_cases_of_a_large_table_are_kept_and_always_the_same() -> None:
    rows = [Row(f"tests/test_a.py::test_a[{origin}-{use}]") for origin in "abc" for use in range(100)]
    kept = few(rows)
    assert len(kept) == MOST_CASES
    assert kept == few(rows)
    assert len({each.nodeid.split("[")[1][0] for each in kept}) > 1, "they are of several columns"


def test_each_test_keeps_its_cases_if_they_are_few() -> None:
    rows = [Row(f"tests/test_{name}.py::test_a[{number}]") for name in "abc" for number in range(MOST_CASES)]
    assert few([*rows, Row("tests/test_a.py::test_b")]) == {*rows, Row("tests/test_a.py::test_b")}


def test_a_fast_case_is_one_of_the_cases() -> None:
    first, second = others_slow(["a", "b"], "a")
    assert (first, second.values, [mark.name for mark in second.marks]) == ("a", ("b",), ["slow"])
    with pytest.raises(AssertionError, match="none of"):
        others_slow(["a", "b"], "c")


def drawn() -> list[str]:
    found: list[str] = []

    @given(st.text())
    def keep(text: str) -> None:
        found.append(text)

    keep()
    return found


def test_a_property_has_the_same_examples_each_time_unless_it_explores() -> None:
    one, other = drawn(), drawn()
    assert len(one) > 1
    assert (one == other) is settings().derandomize
