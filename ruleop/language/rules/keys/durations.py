"""Durations in Kubernetes' notation: 10h, 1h30m, 0s."""

from __future__ import annotations

import re

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|h|m|s)", re.ASCII)
PATTERN = r"^([0-9]{1,9}(\.[0-9]{1,9})?(ms|h|m|s))+$"
DAYS = r"^[0-9]{1,5}d$"


def parse_duration(text: str, *, days: bool = False) -> float:
    """The duration in seconds. Raises ValueError with a message for users; also parses the annotation of a CR.
    `days`: it may be a number of days, which Kubernetes does not have."""
    if days and re.fullmatch(DAYS, text, re.ASCII):
        return int(text[:-1]) * 24 * 3600.0
    if re.fullmatch(PATTERN, text, re.ASCII):
        return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text, re.ASCII):
        raise ValueError(f'the duration "{text}" needs a unit: "{text}s", "{text}m" or "{text}h"')
    raise ValueError(f'"{text}" is not a duration: write it like "10h", "1h30m" or "0s"')
