"""Times and durations as Kubernetes and Go write them: 2026-11-30T12:00:00Z, 1h30m, 250ms, -1.5s."""

from __future__ import annotations

import re
import time
from datetime import datetime
from fractions import Fraction
from typing import Final

import orjson

# -- durations --------------------------------------------------------------------------------------------------------


_PART: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)([^0-9.]*)")
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # the micro sign
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}


def duration_parts(text: str) -> list[Fraction]:
    """The nanoseconds of each part, of 64 bits together. Raises ValueError with the message of `time.ParseDuration`."""
    shown = orjson.dumps(text).decode()
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return []
    found: list[Fraction] = []
    left, position = Fraction(2**63 - (sign > 0)), 0
    while position < len(rest) or not rest:
        part = _PART.match(rest, position)
        if part is None:
            raise ValueError(f"time: invalid duration {shown}")
        number, unit = part.groups()
        if not unit:
            raise ValueError(f"time: missing unit in duration {shown}")
        if unit not in _UNITS:
            raise ValueError(f"time: unknown unit {orjson.dumps(unit).decode()} in duration {shown}")
        amount = Fraction(number.rstrip(".")) * _UNITS[unit]
        left, position = left - amount, part.end()
        if left < 0:
            raise ValueError(f"time: invalid duration {shown}")
        found.append(sign * amount)
    return found


# -- times -----------------------------------------------------------------------------------------------------------


def now() -> str:
    return timestamp(time.time())


def timestamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def as_duration(seconds: int) -> float:
    """The seconds as a duration of Go: nanoseconds of 64 bits, which overflow after 292 years."""
    return ((seconds * 10**9 + (1 << 63)) % (1 << 64) - (1 << 63)) / 1e9


def seconds_of(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()
