"""What one render may cost. Templates are the operator author's, but tenants choose the values that drive their loops, so every pass of a
loop, every call and every byte that is produced is counted while the template runs.

The counter is checked *before* the work is done where one operation could be huge (`'x' * n`, `10 ** n`, padding, replacing), because nothing in
Python can interrupt it afterwards. A process per render would be the other way; it would cost more than all the rest.
"""

from __future__ import annotations

from ruleop.templating.values import Fault

FUEL = 2_000_000  # loop passes, calls, and bytes / 64: about a second of work
MAX_TEXT = 3 * 1024 * 1024  # one string, or the whole output: the API server takes no larger request
MAX_ITEMS = 100_000  # one list
MAX_RANGE = 10_000
MAX_BITS = 512  # of an integer; JSON holds 64
MAX_INDENT = 200  # columns of padding


class Exhausted(Fault):
    """A limit was broken. Unlike other faults it ends the whole render at once, even where the value would not have been used."""


class Budget:
    __slots__ = ("fuel",)

    def __init__(self) -> None:
        self.fuel = FUEL

    def refill(self) -> None:
        self.fuel = FUEL

    def spend(self, amount: int) -> None:
        self.fuel -= amount
        if self.fuel < 0:
            raise Exhausted(
                "the template does too much work for one object (loops, calls and text together); bound what drives its loops, "
                "for example by `maximum` or `maxItems` in the CRD's schema"
            )

    def text(self, length: int) -> None:
        """About to make or read this much text."""
        if length > MAX_TEXT:
            raise Exhausted(f"text of {length:,} characters; at most {MAX_TEXT:,} are allowed")
        self.spend(1 + (length >> 6))

    def items(self, count: int) -> None:
        """About to make or walk a list of this length."""
        if count > MAX_ITEMS:
            raise Exhausted(f"a list of {count:,} items; at most {MAX_ITEMS:,} are allowed")
        self.spend(1 + count)


def width(value: object, what: str) -> int:
    """A number of columns, lines or digits that somebody asks to be filled up."""
    number = int(value)  # type: ignore[call-overload]
    if number > MAX_INDENT:
        raise Exhausted(f"{what} of {number:,}; at most {MAX_INDENT} are allowed")
    return int(number)
