"""What one render may cost. Templates are the operator author's, but tenants choose the values that drive their loops, so every pass of a
loop, every call and every byte that is produced is counted while the template runs.

The counter is checked *before* the work is done where one operation could be huge (`'x' * n`, `10 ** n`, padding, replacing), because
nothing in Python can interrupt it afterwards. A process per render would be the other way; it would cost more than all the rest.

There is one counter, `METER`, because text and data, which know nothing of a template, have to count too. It is filled up when a render
begins; what is evaluated on the way (a `let` that it reads) is on the render's account. Should two threads ever render at once, each fills
it up for both: a budget would be less exact then, and nothing worse.
"""

from __future__ import annotations

from ruleop.templating.values.faults import Fault

FUEL = 2_000_000  # a unit is a loop pass, an item or 64 bytes, and at most about a microsecond
MAX_TEXT = 3 * 1024 * 1024  # one string, or the whole text: the API server takes no larger request
MAX_OUTPUT = 16 * 1024 * 1024  # all objects of one render, for there may be thousands of them
MAX_ITEMS = 100_000  # one list
MAX_RANGE = 10_000
MAX_BITS = 512  # of an integer on its way; JSON holds 64
MAX_INDENT = 200  # columns of padding
MAX_DEPTH = 128  # of nested data; the JSON encoder gives up at 254
MAX_NODES = 400_000  # of data that is weighed
NODE = 32  # what a mapping, list, number or key weighs, in characters


class Exhausted(Fault):
    """A limit was broken. Unlike other faults it ends the whole render at once, even where the value would not have been used."""

    kind = "limit"


class Meter:
    """What is left of the budget of the render at hand."""

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

    def search_back(self, text: str, wanted: str) -> None:
        """About to search from the end, which Python does place by place. (From the beginning its time is linear.)"""
        self.spend(max(0, len(text) - len(wanted)) * len(wanted) >> 12)

    def strip(self, text: str, chars: str | None) -> None:
        """About to look for each character of `text` in `chars`."""
        self.spend(len(text) * len(chars or "") >> 15)

    def items(self, count: int) -> None:
        """About to make or walk a list of this length."""
        if count > MAX_ITEMS:
            raise Exhausted(f"a list of {count:,} items; at most {MAX_ITEMS:,} are allowed")
        self.spend(1 + count)


METER = Meter()


def width(value: object, what: str) -> int:
    """A number of columns, lines or digits that somebody asks to be filled up."""
    number = int(value)  # type: ignore[call-overload]
    if number > MAX_INDENT:
        raise Exhausted(f"{what} of {number:,}; at most {MAX_INDENT} are allowed")
    return int(number)


def weigh(data: object) -> int:
    """How many characters JSON data is, about. It spends for what it walks, and stops where nobody may want more."""
    weight, nodes, todo = 0, 0, [data]
    while todo:
        value = todo.pop()
        nodes += 1
        if isinstance(value, str):
            weight += len(value)
            continue
        weight += NODE
        if isinstance(value, dict):
            weight += NODE * len(value)
            todo.extend(value.values())
        elif isinstance(value, list):
            todo.extend(value)
        if nodes > MAX_NODES:
            raise Exhausted(f"data of more than {MAX_NODES:,} values")
    METER.spend(1 + (nodes >> 2) + (weight >> 8))
    return weight
