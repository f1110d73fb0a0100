"""Limits the cost of a render. The author of the operator writes the templates, but tenants choose the values that
drive their loops, so every pass of a loop, every call and every byte of output is counted.

For operations that could be huge (`'x' * n`, `10 ** n`, padding, replacing) the cost is checked *before* the work,
because Python cannot interrupt it. The alternative, a process per render, would cost more than everything else.

There is one counter, `METER`, because text and data, which do not know the template, count as well. It is reset when a
render starts, and nested evaluations (a `let` that the template reads) share it. If two threads rendered at once, each
would reset the counter of both: the limit would be less exact, nothing worse.
"""

from __future__ import annotations

from ruleop.templating.values.faults import Fault

FUEL = 2_000_000  # one unit is a loop pass, an item or 64 bytes, at most about a microsecond
MAX_TEXT = 3 * 1024 * 1024  # one string, or the whole text: the API server accepts no larger request
MAX_OUTPUT = 16 * 1024 * 1024  # all objects of one render, which may be thousands
MAX_ITEMS = 100_000  # one list
MAX_RANGE = 10_000
MAX_BITS = 512  # of an intermediate integer; JSON allows 64
MAX_INDENT = 200  # columns of padding
MAX_DEPTH = 128  # of nested data; the JSON encoder fails at 254
MAX_NODES = 400_000  # of measured data
NODE = 32  # the weight of a mapping, list, number or key in characters


class Exhausted(Fault):
    """A limit was exceeded. Unlike other faults it ends the render at once, even if the value would not be used."""

    kind = "limit"


class Meter:
    """The remaining budget of the current render."""

    __slots__ = ("fuel",)

    def __init__(self) -> None:
        self.fuel = FUEL

    def refill(self) -> None:
        self.fuel = FUEL

    def spend(self, amount: int) -> None:
        self.fuel -= amount
        if self.fuel < 0:
            raise Exhausted(
                "the template does too much work for one object (loops, calls and text together); "
                "limit the values that drive its loops, for example with `maximum` or `maxItems` in the CRD's schema"
            )

    def text(self, length: int) -> None:
        """Charges for making or reading text of this length."""
        if length > MAX_TEXT:
            raise Exhausted(f"text of {length:,} characters; at most {MAX_TEXT:,} are allowed")
        self.spend(1 + (length >> 6))

    def search_back(self, text: str, sought: str) -> None:
        """Charges for a search from the end, which is quadratic in Python. (From the start it is linear.)"""
        self.spend(max(0, len(text) - len(sought)) * len(sought) >> 12)

    def strip(self, text: str, chars: str | None) -> None:
        """Charges for stripping `chars` from `text`."""
        self.spend(len(text) * len(chars or "") >> 15)

    def items(self, count: int) -> None:
        """Charges for making or walking a list of this length."""
        if count > MAX_ITEMS:
            raise Exhausted(f"a list of {count:,} items; at most {MAX_ITEMS:,} are allowed")
        self.spend(1 + count)


METER = Meter()


def width(value: object, what: str) -> int:
    """A number of columns, lines or digits for padding. Raises Exhausted if it is too large."""
    number = int(value)  # type: ignore[call-overload]
    if number > MAX_INDENT:
        raise Exhausted(f"{what} of {number:,}; at most {MAX_INDENT} are allowed")
    return int(number)


def weigh(data: object) -> int:
    """The approximate number of characters of JSON data. Charges for the walk, and raises Exhausted for too many
    values."""
    weight, nodes, stack = 0, 0, [data]
    while stack:
        value = stack.pop()
        nodes += 1
        if isinstance(value, str):
            weight += len(value)
            continue
        weight += NODE
        if isinstance(value, dict):
            weight += NODE * len(value)
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
        if nodes > MAX_NODES:
            raise Exhausted(f"data of more than {MAX_NODES:,} values")
    METER.spend(1 + (nodes >> 2) + (weight >> 8))
    return weight
