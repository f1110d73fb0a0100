"""Durations as Kubernetes writes them."""

from __future__ import annotations

import pytest

from ruleop.language.rules import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10h", 36000), ("0s", 0), ("1h30m", 5400), ("1.5h", 5400), ("90s", 90), ("250ms", 0.25), ("2m3s", 123)],
)
def test_a_duration_is_a_sequence_of_numbers_with_units(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "-1s", "1 h", "1d", "1h ", "1h30", "\u0661s", "1hm", "1_0s"])
def test_an_invalid_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match='write it like "10h"'):
        parse_duration(text)


def test_a_duration_without_unit_is_refused_with_suggestions() -> None:
    with pytest.raises(ValueError, match='"30s", "30m" or "30h"'):
        parse_duration("30")
