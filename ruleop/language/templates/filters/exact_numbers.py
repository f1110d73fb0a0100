"""Numbers on which the arithmetic of a template is exact: what the filter `quantity` returns.

`'500m' | quantity` is one half and `'1Gi' | quantity` is 1073741824.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self

from ruleop.kubernetes.quantity import SUFFIXES, parse_quantity
from ruleop.language.templates.values.data import float_text, json_number
from ruleop.language.templates.values.faults import Fault


class Exact(Fraction):
    """A fraction that stays exact in arithmetic. A float counts as it is written: `0.1` is one tenth."""

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


def _exact_operator(name: str) -> Any:
    operation = getattr(Fraction, name)

    def operate(self: Exact, *others: Any) -> Any:
        if any(isinstance(other, bool) or not isinstance(other, (int, float, Fraction)) for other in others):
            return NotImplemented
        result = operation(self, *map(Exact, others))
        return Exact(result) if isinstance(result, (int, float, Fraction)) else result

    return operate


_OPERATORS = "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow neg pos abs"
for _name in _OPERATORS.split():
    setattr(Exact, f"__{_name}__", _exact_operator(f"__{_name}__"))


def exact_quantity(value: Any) -> Exact:
    if isinstance(value, str):
        amount = parse_quantity(value)
        if amount is not None:
            return Exact(amount)
    elif isinstance(value, (int, float, Fraction)) and not isinstance(value, bool):
        return Exact(value)
    raise Fault("not a quantity: use a number or text such as 500m, 1.5 or 2Gi")


def in_unit(amount: Exact, unit: str) -> int:
    """The amount in whole units, rounded down, as the limit of a program should be."""
    if unit not in SUFFIXES:
        raise Fault(f"unknown unit of a quantity; use one of {', '.join(filter(None, SUFFIXES))}")
    return int(amount / SUFFIXES[unit] // 1)
