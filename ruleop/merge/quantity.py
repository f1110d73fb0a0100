"""Kubernetes quantities as exact numbers: `1000m`, `1` and `1.0` are one amount of CPU, `1024Mi` and `1Gi` one of memory.

The API server rewrites quantities into its own canonical form for built-in kinds and leaves them as they are in custom resources. Either
way a different spelling is not a different amount, and comparing text would send the same write for ever.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ruleop.kinds import JSON

_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "": Fraction(1),
    **{suffix: Fraction(10 ** (3 * power)) for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Fraction(2 ** (10 * power)) for power, suffix in enumerate("KMGTPE", start=1)},
}
# An exponent of four digits is no amount of anything, and the number it stands for would take a while to build.
_QUANTITY = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII)
_LONGEST = 100


def parse_quantity(value: JSON) -> Fraction | None:
    """The exact amount, or None when `value` is no quantity. Numbers are quantities too: `cpu: 1` means `cpu: "1"`."""
    if type(value) is str:
        return _parse(value)
    if type(value) is int or type(value) is float:
        return _parse(repr(value))
    return None


def quantity_equal(a: JSON, b: JSON) -> bool:
    """Whether both are quantities and amount to the same."""
    amount = parse_quantity(a)
    return amount is not None and amount == parse_quantity(b)


@lru_cache(maxsize=4096)
def _parse(text: str) -> Fraction | None:
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        return None
    sign, digits, exponent, suffix = match.groups()
    amount = Fraction(digits if digits[-1] != "." else digits[:-1])
    amount *= Fraction(10) ** int(exponent) if exponent else _SUFFIXES[suffix or ""]
    return -amount if sign == "-" else amount
