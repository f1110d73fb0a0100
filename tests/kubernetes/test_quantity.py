"""Kubernetes quantities: parsing and equality."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.kubernetes.quantity import SUFFIXES, parse_quantity, quantity_equal


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", 0),
        ("1", 1),
        ("+1", 1),
        ("-1", -1),
        ("1.5", Fraction(3, 2)),
        ("1.", 1),
        (".5", Fraction(1, 2)),
        ("-.5Gi", -(2**29)),
        ("100n", Fraction(1, 10**7)),
        ("100u", Fraction(1, 10**4)),
        ("100m", Fraction(1, 10)),
        ("1k", 1000),
        ("1M", 10**6),
        ("1G", 10**9),
        ("1T", 10**12),
        ("1P", 10**15),
        ("1E", 10**18),
        ("1Ki", 2**10),
        ("1Mi", 2**20),
        ("1Gi", 2**30),
        ("1Ti", 2**40),
        ("1Pi", 2**50),
        ("1Ei", 2**60),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1e-3", Fraction(1, 1000)),
        ("1e+3", 1000),
        ("1.5e3", 1500),
        ("1e-9", Fraction(1, 10**9)),
        ("1.E", 10**18),
        ("001", 1),
        (5, 5),
        (0.5, Fraction(1, 2)),
        (-2, -2),
        (1e21, 10**21),
    ],
)
def test_a_quantity_is_parsed_to_its_exact_amount(text, amount):
    assert parse_quantity(text) == amount


@pytest.mark.parametrize(
    "text",
    [
        "",
        "m",
        "1 Gi",
        "1gi",
        "1K",
        "1mi",
        "1e",
        "e3",
        ".",
        "-",
        "--1",
        "1e3Gi",
        "1e31",
        "1e-31",
        "1e1.5",
        "1e1000",
        "٣",
        "1\n",
        "1" * 65,
        True,
        None,
        [],
        {},
    ],
)
def test_other_text_is_not_a_quantity(text):
    assert parse_quantity(text) is None
    assert not quantity_equal(text, text)


@pytest.mark.parametrize(
    ("a", "b"),
    [("1000m", "1"), ("1024Mi", "1Gi"), ("1", 1), ("0.5", "500m"), (1.5, "1500m"), ("1e3", "1k"), ("0", "0Gi")],
)
def test_different_spellings_of_one_amount_are_equal(a, b):
    assert quantity_equal(a, b)
    assert quantity_equal(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [("1000m", "1001m"), ("1G", "1Gi"), ("1", "x"), ("x", "1"), ("1", "-1"), ("9007199254740993", "9007199254740992")],
)
def test_different_amounts_are_not_equal(a, b):
    assert not quantity_equal(a, b)


@given(st.integers(-(10**18), 10**18), st.sampled_from(["", "k", "M", "G", "T", "P", "E"]))
def test_a_decimal_suffix_is_a_power_of_a_thousand(number, suffix):
    assert quantity_equal(f"{number}{suffix}", number * 1000 ** ["", "k", "M", "G", "T", "P", "E"].index(suffix))


@given(st.integers(-(10**18), 10**18), st.integers(0, 10**9), st.sampled_from(sorted(SUFFIXES)))
def test_an_amount_is_its_number_times_its_suffix(whole, fraction, suffix):
    number = Fraction(f"{whole}.{fraction:09}")
    assert parse_quantity(f"{whole}.{fraction:09}{suffix}") == number * SUFFIXES[suffix]


@given(st.text(alphabet="+-.0123456789eEinumkKMGTP", max_size=8))
def test_equality_is_reflexive_exactly_for_quantities(text):
    assert quantity_equal(text, text) == (parse_quantity(text) is not None)


@given(st.integers(-(10**6), 10**6), st.integers(-9, 9))
def test_an_exponent_is_a_power_of_ten(number, exponent):
    assert (
        parse_quantity(f"{number}e{exponent}")
        == parse_quantity(f"{number}E{exponent:+}")
        == number * Fraction(10) ** exponent
    )
