"""Tables of cases as text."""

from __future__ import annotations

from typing import Any

import pytest
import yaml


def cases(text: str, **words: str) -> list[Any]:
    """Each case is a value of YAML in a line, and the lines that are expected of it, after `>>` below. Words stand for
    their meanings in the values."""
    expected: dict[str, list[str]] = {}
    for line in text.strip().split("\n"):
        mark, _, rest = line.partition(" ")
        if mark == ">>":
            expected[list(expected)[-1]].append(rest)
        else:
            expected[line] = []
    return [pytest.param(_value(case, words), lines, id=case) for case, lines in expected.items()]


def _value(text: str, words: dict[str, str]) -> Any:
    for word, meaning in words.items():
        text = text.replace(word, meaning)
    return yaml.load(text, yaml.CSafeLoader)
