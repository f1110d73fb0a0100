"""The part of the tests that `make test` runs is always the same."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exploration import one_of_each, others_slow


@dataclass(frozen=True)
class Row:
    nodeid: str


def test_one_case_of_each_test_is_kept_and_it_is_always_the_same() -> None:
    rows = [Row(f"tests/test_a.py::test_{name}[{number}]") for name in "abc" for number in range(100)]
    kept = one_of_each(rows)
    assert sorted(each.nodeid.split("[")[0][-1] for each in kept) == ["a", "b", "c"]
    assert kept == one_of_each(rows)
    assert len({each.nodeid.split("[")[1] for each in kept}) > 1, "they are of several rows"


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
