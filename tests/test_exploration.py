"""The part of the tests that `make test` runs is always the same."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exploration import draw_one_case, others_slow

Table = tuple[list[Any], Any]
SLOW = pytest.param("slow", marks=pytest.mark.slow)


def drawn_case(name: str, values: Iterable[Any], **more: Any) -> Table:
    """The cases that a test of this name is given, and their ids."""
    tables: list[Table] = []

    def parametrize(_names: str, cases: list[Any], *, ids: Any = None) -> None:
        tables.append((cases, ids))

    test = SimpleNamespace(definition=SimpleNamespace(nodeid=name), parametrize=parametrize)
    draw_one_case(cast("pytest.Metafunc", test))
    test.parametrize("case", values, **more)
    (table,) = tables
    return table


def test_one_case_of_a_table_is_made_and_it_is_always_the_same() -> None:
    drawn = [drawn_case(f"test_{name}", range(100), ids=(f"case{each}" for each in range(100))) for name in "abc"]
    for (case,), (name,) in drawn:
        assert name == f"case{case}"
    assert len({case for (case,), _ in drawn}) > 1, "they are of several rows"
    assert drawn_case("test_a", range(100)) == (drawn[0][0], None)
    assert drawn_case("test_a", {"only": 1}, ids=str) == (["only"], str)


def test_a_slow_case_is_drawn_only_where_all_are_slow() -> None:
    for number in range(20):
        assert drawn_case(f"test_{number}", [SLOW, "fast", SLOW]) == (["fast"], None)
    assert drawn_case("test", [SLOW]) == ([SLOW], None)
    assert drawn_case("test", []) == ([], None)


def test_a_fast_case_is_one_of_the_cases() -> None:
    first, second = others_slow(["a", "b"], "a")
    assert (first, second.values, [mark.name for mark in second.marks]) == ("a", ("b",), ["slow"])
    with pytest.raises(AssertionError, match="none of"):
        others_slow(["a", "b"], "c")


def examples() -> list[str]:
    found: list[str] = []

    @given(st.text())
    def keep(text: str) -> None:
        found.append(text)

    keep()
    return found


def test_a_property_has_the_same_examples_each_time_unless_it_explores() -> None:
    one, other = examples(), examples()
    assert len(one) > 1
    assert (one == other) is settings().derandomize
