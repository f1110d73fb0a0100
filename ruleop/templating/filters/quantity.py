"""Kubernetes quantities as exact numbers: `500m` is one half, `1Gi` is 1073741824."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, Self

from ruleop.templating.values.data import float_text, json_number
from ruleop.templating.values.faults import Fault

_FORM = re.compile(r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:([eE])([+-]?[0-9]{1,3})|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?)\Z", re.ASCII)
_UNITS: dict[str, Fraction] = {"": Fraction(1), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000)}
_UNITS |= {unit: Fraction(1000**power) for power, unit in enumerate("kMGTPE", 1)}
_UNITS |= {f"{unit}i": Fraction(1024**power) for power, unit in enumerate("KMGTPE", 1)}
MAX_LENGTH = 64


class Exact(Fraction):
    """A number that arithmetic keeps exact, with floats taken at their written value: `0.1` is one tenth."""

    def __new__(cls, value: Any, denominator: int | None = None) -> Self:
        if isinstance(value, float):
            value = float_text(value)
        return super().__new__(cls, value, denominator)

    def as_json(self) -> int | float:
        return json_number(int(self) if self.denominator == 1 else float(self))

    def as_text(self) -> str:
        return str(self.as_json()) if self.denominator == 1 else float_text(float(self))

    __str__ = as_text
    __hash__ = Fraction.__hash__

    def __eq__(self, other: object) -> bool:
        return Fraction.__eq__(self, Exact(other) if isinstance(other, float) else other)

    def __rpow__(self, other: Any) -> Any:
        return Exact(other) ** self


def _exactly(name: str) -> Any:
    operation = getattr(Fraction, name)

    def operate(self: Exact, *others: Any) -> Any:
        if any(isinstance(other, bool) or not isinstance(other, (int, float, Fraction)) for other in others):
            return NotImplemented
        result = operation(self, *map(Exact, others))
        return Exact(result) if isinstance(result, (int, float, Fraction)) else result

    return operate


_OPERATIONS = "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow neg pos abs"
for _name in _OPERATIONS.split():
    setattr(Exact, f"__{_name}__", _exactly(f"__{_name}__"))


def parse_quantity(value: Any) -> Exact:
    if isinstance(value, bool) or not isinstance(value, (str, int, float, Fraction)):
        raise Fault("not a quantity: it takes a number or text such as 500m, 1.5 or 2Gi")
    if not isinstance(value, str):
        return Exact(value)
    match = _FORM.match(value) if len(value) <= MAX_LENGTH else None
    if match is None:
        raise Fault("not a quantity: it takes text such as 500m, 1.5 or 2Gi")
    sign, digits, _, exponent, unit = match.groups()
    if exponent is not None and abs(int(exponent)) > 30:
        raise Fault("not a quantity: its exponent is out of range")
    number = Fraction(digits) * (Fraction(10) ** int(exponent) if exponent else _UNITS[unit or ""])
    return Exact(-number if sign == "-" else number)


def in_unit(value: Exact, unit: str) -> int:
    """Whole units, rounded down, as a program's limit should be."""
    if unit not in _UNITS:
        raise Fault(f"no such unit of quantities: they are {', '.join(unit for unit in _UNITS if unit)}")
    return int(value / _UNITS[unit] // 1)
