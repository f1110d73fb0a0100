"""Go's durations: 1h30m, 250ms, -1.5s."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from ruleop.core.schema.cel.cel_errors import EvaluationError, NotEvaluatedError

_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_NOT_ONE: Final = "type conversion error from 'string' to 'duration'"
_WHOLE: Final = re.compile(rf"[+-]?(?:0|(?:{_PART.pattern})+)")


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    nanoseconds: int


def parse_duration(text: str) -> Duration:
    """The duration, as time.ParseDuration reads it. Raises EvaluationError."""
    if len(text) > 200:
        raise NotEvaluatedError("a duration has more than 200 characters")
    if not _WHOLE.fullmatch(text):
        raise EvaluationError(_NOT_ONE)
    total = Fraction(0)
    for number, unit in _PART.findall(text):
        part = Fraction(number.rstrip(".")) * _UNITS[unit]
        if part.denominator != 1:  # Go rounds it in floating point
            raise NotEvaluatedError(f"{text!r} has parts of a nanosecond")
        total += part
    amount = -int(total) if text.startswith("-") else int(total)
    if not -(2**63) <= amount < 2**63:
        raise EvaluationError(_NOT_ONE)
    return Duration(amount)
