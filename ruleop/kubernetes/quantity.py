"""Kubernetes quantities as exact numbers: `1000m`, `1` and `1.0` are one amount of CPU, `1024Mi` and `1Gi` one of
memory.

The API server rewrites quantities into a canonical form for built-in kinds and leaves them as they are in custom
resources. Either way a different spelling is not a different amount: a merge that compared text would send the same
write on every pass. Templates calculate with the same numbers.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.kubernetes.kinds import JSON

SUFFIXES: Final[Mapping[str, Fraction]] = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "": Fraction(1),
    **{suffix: Fraction(1000**power) for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Fraction(1024**power) for power, suffix in enumerate("KMGTPE", start=1)},
}
"""The suffixes of Kubernetes' grammar and their factors."""

_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_SMALLEST: Final = 10**9  # nano

# <sign><digits> and then a suffix or an exponent, as in resource.ParseQuantity of Kubernetes' apimachinery.
_QUANTITY = re.compile(r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]{1,3})|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII)
# Kubernetes caps amounts at 2^63-1 and rounds them up to whole nanos. Values outside these bounds do not occur,
# and a large exponent would make a number that takes long to compute.
_MAX_LENGTH = 64
_MAX_EXPONENT = 30


def parse_quantity(value: JSON) -> Fraction | None:
    """The exact amount, or None when `value` is not a quantity. Numbers are quantities: `cpu: 1` means `cpu: "1"`."""
    if type(value) is str:
        return _parse(value) if len(value) <= _MAX_LENGTH else None
    if type(value) is int or type(value) is float:
        return _parse(repr(value))
    return None


def quantity_equal(a: JSON, b: JSON) -> bool:
    """Whether both are quantities of the same amount."""
    amount = parse_quantity(a)
    return amount is not None and amount == parse_quantity(b)


@lru_cache(maxsize=4096)
def _parse(text: str) -> Fraction | None:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    sign, digits, exponent, suffix = match.groups()
    if exponent and abs(int(exponent)) > _MAX_EXPONENT:
        return None
    amount = Fraction(digits) * (Fraction(10) ** int(exponent) if exponent else SUFFIXES[suffix or ""])
    return -amount if sign == "-" else amount


def canonical_quantity(value: Any) -> Any:
    """The quantity in its canonical form; a value that is none as it is."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    return _canonical(str(value))


@lru_cache(4096)
def _canonical(text: str) -> str:
    number = parse_quantity(text)
    if number is None:
        return text
    if text.endswith("i") and number.denominator == 1 and abs(number) >= 1024:
        return _scaled(int(number), 1024, _BINARY)
    nano = -(-number * _SMALLEST // 1)  # rounded up
    if "e" in text.lower() and text[-1].isdigit():
        return _with_exponent(int(nano))
    return _scaled(int(nano), 1000, _DECIMAL) if nano else "0"


def _scaled(number: int, base: int, suffixes: tuple[str, ...]) -> str:
    index = 0
    while index + 1 < len(suffixes) and number % base == 0:
        number, index = number // base, index + 1
    return f"{number}{suffixes[index]}"


def _with_exponent(nano: int) -> str:
    exponent = -9
    while nano and nano % 1000 == 0:
        nano, exponent = nano // 1000, exponent + 3
    return f"{nano}e{exponent}" if nano and exponent else str(nano)
