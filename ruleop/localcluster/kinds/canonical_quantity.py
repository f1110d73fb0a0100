"""Quantities as the server writes them: 1024Mi is 1Gi, and 0.5 is 500m."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from ruleop.schema.quantity import parse_quantity

_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_SMALLEST: Final = 10**9  # nano


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
