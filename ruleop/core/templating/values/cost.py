"""Limits the cost of a plan: the units and bytes of everything that enters it. The author of the operator writes the
rules, but tenants choose the values that drive their loops.

There are two quantities. Units are time: one is at most about half a microsecond. They are charged at the doors: for a
CR's values in a loop, an object that was read, a rendered text, an iteration, the input and output of a filter, an
operator or a method. They give the same answer on every machine. What an operation costs beyond that is bounded by the
guard of the plan (`planning/guard.py`), which interrupts it after a second of CPU time.

Bytes are memory, which no guard bounds: texts and data that a render makes, whether they are still used or not, because
nobody knows when Python frees them; after the render, those that are retained. An account is filled once for a plan,
not for each render, so whatever multiplies renders does not multiply the account. When it is used up, the plan fails.

For operations that could be huge (`'x' * n`, `10 ** n`, padding, replacing) the cost is checked *before* the work,
because Python cannot interrupt it. The alternative, a process per render, would cost more than everything else.

There is one meter, `METER`, because text and data, which do not know the template, count as well. It charges the
current account of its thread: a large plan is made in a thread of its own while the event loop makes others. Outside a
plan, each evaluation has a full account, which nested evaluations (a `let` that the template reads) share.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from fractions import Fraction
from typing import Final

import orjson

from ruleop.core.templating.values.faults import Fault

FUEL: Final = 1_000_000
"""Units of a plan."""

MEMORY: Final = 48 * 1024 * 1024
"""Bytes of a plan."""

RESERVE: Final = 100_000
RESERVED_MEMORY: Final = 4 * 1024 * 1024
"""Memory for the status if the children have used up everything: it reports that."""

HINTS: Final = 32
"""Messages of a plan that say which name was probably meant."""

DESCRIPTIONS: Final = 100_000
"""Units for finding out which fields the writes of a pass change: for its log, and for the messages of each plan. Above
that, they name outer fields."""

QUADRATIC_LENGTH: Final = 2500
"""Characters below which CPython searches text by its quadratic way."""

MAX_TEXT = 3 * 1024 * 1024  # one string, or the whole text: the API server accepts no larger request
MAX_OUTPUT = 16 * 1024 * 1024  # all objects of one render, which may be thousands
MAX_ITEMS = 100_000  # one list
MAX_RANGE = 10_000
MAX_BITS = 512  # of an intermediate integer; JSON allows 64
MAX_INDENT = 200  # columns of padding
MAX_DEPTH = 128  # of nested data; the JSON encoder fails at 254
MAX_NODES = 400_000  # of measured data
NODE = 32  # the weight of a mapping, list, number or key in characters

# The units of what enters a plan. Beside each are the microseconds a unit that `make bench` measures for the pass that
# has most of it; the guard of the pass bounds what these miss.
EXISTING_UNITS = 15  # a live object, and one more for each 16 bytes beyond the usual size: 0.3; others fill them: 3
USUAL_SIZE = 4096  # bytes of a live object
ITEM_UNITS = 20  # an item of `forEach`, without its templates: 0.5
DOCUMENT_UNITS = 20  # the checks of a rendered object: 0.4
OBJECT_UNITS, VALUE_UNITS = 60, 3  # the comparison of an object, and of each value in it: 0.5
CHANGE_UNITS = 8  # each value in an object that differs: 0.5
SELECTED_UNITS = 20  # the labels of an object of others, whether a selector matches or not: 0.1; with its values: 0.3
STATUS_UNITS = 8  # each value of the status, which is pruned by its server's schema in Python: 0.2
UNDEFINED_UNITS, FAULT_UNITS = 4, 12  # a missing value, and one that could not be computed: 0.7
FRACTION_UNITS = 12  # an operation on exact numbers: 0.3
MATCH_UNITS = 20  # a match of a regular expression: 0.3; if it reads the rest of the text in vain: 4

# Bytes in memory, approximately.
NODE_BYTES = 100  # an item, a member or a number
ENTRY_BYTES = 64  # a tuple of a key and a value, or a short text
LIST_BYTES = 80  # a short list
PAIR_BYTES = 200  # a mapping of two members
SLOT_BYTES = 80  # a printed value
CONTAINER_BYTES = 100  # a short list or mapping that an expression makes
SELECTED_NODE_BYTES = 16  # a value in an object of others, which stores have too
STATUS_BYTES = 300  # the copies of a value of the status
UNDEFINED_BYTES, FAULT_BYTES = 400, 1500  # a missing value, and one that could not be computed

_SIGNS_OF_VALUES: Final = (",", ":", "-", "[", "{", "?", "...")


class Exhausted(Fault):
    """A limit was exceeded. Unlike other faults it ends the render at once, even if the value would not be used."""

    kind = "limit"


def exceeded(what: str, number: int, most: int) -> Exhausted:
    """The error for a size above a limit. `what` has `{}` in the place of the number, which may be a Secret's."""
    limit = f"at most {most:,} are allowed"
    return Exhausted(f"{what.format(f'{number:,}')}; {limit}", redacted=f"{what.format('too many')}; {limit}")


class Allowance:
    """Units for work that is done more roughly when they are used up. Without a number, there is no limit."""

    __slots__ = ("units",)

    def __init__(self, units: int = sys.maxsize) -> None:
        self.units = units

    def takes(self, amount: int) -> bool:
        """Takes the units, if there are as many left."""
        if amount > self.units:
            return False
        self.units -= amount
        return True


def for_descriptions() -> Allowance:
    return Allowance(DESCRIPTIONS)


class Account:
    """The remaining units and bytes of one plan."""

    __slots__ = ("descriptions", "fuel", "hints", "memory", "retained")

    def __init__(self) -> None:
        self.refill()

    def refill(self) -> None:
        self.fuel = FUEL
        self.memory = MEMORY
        self.retained = 0  # bytes that outlive the renders
        self.hints = HINTS
        self.descriptions = for_descriptions()

    @property
    def units(self) -> int:
        """The units that were used."""
        return FUEL - self.fuel

    @property
    def bytes(self) -> int:
        """The bytes that were used."""
        return MEMORY - self.memory

    @property
    def share(self) -> float:
        """The part that was used, of its units or of its bytes."""
        return max(1 - self.fuel / FUEL, 1 - self.memory / MEMORY)


_OWN: Final = Account()
"""The account of evaluations outside a plan."""

_CURRENT: Final = ContextVar("account", default=_OWN)
_current: Final = _CURRENT.get
"""The account that is charged. A thread has its own, because it has a context of its own."""


class Meter:
    """Charges the current account of the thread."""

    __slots__ = ()

    def switch(self, account: Account | None) -> Account | None:
        """Charges this account from now on; None: that of evaluations outside a plan. Returns the one before."""
        before = _current()
        _CURRENT.set(account or _OWN)
        return None if before is _OWN else before

    @property
    def account(self) -> Account:
        return _current()

    @property
    def is_in_plan(self) -> bool:
        return _current() is not _OWN

    def refill(self) -> None:
        _current().refill()

    @property
    def descriptions(self) -> Allowance:
        return _current().descriptions

    def takes_hint(self) -> bool:
        """Whether a message may have a hint, which is costly to find. Only few messages of a pass are ever shown."""
        account = _current()
        account.hints -= 1
        return account.hints >= 0

    def begin_render(self) -> int:
        """Begins an evaluation that is in no other. Outside a plan it has a full account. Returns the mark that
        `end_render` needs."""
        account = _current()
        if account is _OWN:
            account.refill()
        return account.memory + account.retained

    def end_render(self, before: int) -> None:
        """Gives back the bytes that were made since, apart from those that were retained."""
        account = _current()
        if account is not _OWN:
            account.memory = before - account.retained

    def retain(self, size: int) -> None:
        """Charges for bytes that outlive the current render."""
        _current().retained += size
        self.keep(size)

    def ensure_reserve(self) -> None:
        """Gives the plan what the report about it takes, if it has less left."""
        account = _current()
        account.fuel = max(account.fuel, RESERVE)
        account.memory = max(account.memory, RESERVED_MEMORY)

    def charge(self, amount: int) -> None:
        """Charges for work that is done in any case. What comes after it fails if nothing is left."""
        _current().fuel -= amount

    def spend(self, amount: int) -> None:
        account = _current()
        account.fuel -= amount
        if account.fuel < 0:
            account.fuel = 0  # the work is not done
            raise Exhausted(
                f"the templates do too much work for one resource (at most {FUEL:,} units for loops, calls, text and "
                "objects together); limit the values that drive them, for example with `maximum` or `maxItems` in the "
                "CRD's schema"
            )

    def keep(self, size: int) -> None:
        """Charges for bytes of memory."""
        account = _current()
        account.memory -= size
        if account.memory < 0:
            account.memory = 0
            raise Exhausted(
                f"the templates make too much data for one resource (at most {MEMORY >> 20} MiB of texts and objects "
                "together); limit the values that they repeat, for example with `maxLength` or `maxItems` in the CRD's "
                "schema"
            )

    def read(self, length: int) -> None:
        """Charges for reading text of this length."""
        self.spend(1 + (length >> 6))

    def text(self, length: int) -> None:
        """Charges for making text of this length."""
        if length > MAX_TEXT:
            raise exceeded("text of {} characters", length, MAX_TEXT)
        account = _current()
        account.fuel -= 1 + (length >> 6)
        account.memory -= length
        if account.fuel < 0 or account.memory < 0:
            self.spend(0)
            self.keep(0)

    def parse(self, text: str) -> None:
        """Charges for parsing text as YAML. Each value in it needs one of these signs, and most of the time and memory
        goes into values."""
        values = sum(map(text.count, _SIGNS_OF_VALUES))
        self.keep(len(text) + 500 * values)
        self.spend(1 + (len(text) >> 6) + 14 * values)

    def search(self, text: str, sought: str, *, backward: bool = False) -> None:
        """Charges for a search of text in text: CPython compares up to `letters` at each of `places`. From the end it
        always does; from the start only in short text, or near the end of long text for which much is sought.
        Elsewhere its search is linear, or `sought` has at most a hundred letters."""
        length, letters = len(text), len(sought)
        places = max(0, length - letters)
        if not backward and length >= QUADRATIC_LENGTH:
            if 3 * letters > length:
                places = min(places, QUADRATIC_LENGTH)
            else:
                letters = min(letters, 128)
        self.spend(1 + (length >> 6) + (places * letters >> 10 if letters > 1 else 0))

    def strip(self, text: str, chars: str | None) -> None:
        """Charges for stripping `chars` from `text`."""
        self.spend(len(text) * len(chars or "") >> 15)

    def made(self, text: str) -> None:
        """Charges for a text that was made, by the bytes that it takes."""
        length = len(text)
        if length > MAX_TEXT:
            raise exceeded("text of {} characters", length, MAX_TEXT)
        self.keep(length if text.isascii() else sys.getsizeof(text))
        self.spend(length >> 6)

    def items(self, count: int) -> None:
        """Charges for making or walking a list of this length."""
        if count > MAX_ITEMS:
            raise exceeded("a list of {} items", count, MAX_ITEMS)
        self.keep(count << 4)
        self.spend(1 + count)

    def entries(self, count: int, size: int = ENTRY_BYTES) -> None:
        """Charges for items that are made for a list, in addition to the list."""
        self.keep(count * size)
        self.spend(count)


METER = Meter()


def size_of(data: object) -> tuple[int, int]:
    """The bytes of JSON data and the number of its values, approximately: the encoder finds them much faster than
    Python code could. In a string with one wide character, Python needs four bytes for each. Mappings in mappings of
    one member, and lists in lists, count seven times: they cost far more than what they hold."""
    try:
        text = orjson.dumps(data)
    except TypeError:  # half of a surrogate pair, or a number of more than 64 bits
        values, weight = measure(data)
        return 4 * weight, values
    commas, values = text.count(b","), len(text) - len(text.translate(None, b",[{"))
    values += 6 * max(0, values - 3 * commas)
    return len(text) if text.isascii() else 4 * len(text), values


def bytes_of(obj: object) -> int:
    """The bytes of JSON data."""
    try:
        return len(orjson.dumps(obj))
    except TypeError:
        return weigh(obj)


def check_size(number: object) -> None:
    """Raises Exhausted for a number of too many bits."""
    if (
        isinstance(number, (int, Fraction))
        and max(number.numerator.bit_length(), number.denominator.bit_length()) > MAX_BITS
    ):
        raise Exhausted(f"a number of more than {MAX_BITS} bits")


def width(value: object, what: str) -> int:
    """A number of columns, lines or digits for padding. Raises Exhausted if it is too large."""
    number = int(value)  # type: ignore[call-overload]
    if number > MAX_INDENT:
        raise exceeded(f"{what} of {{}} characters", number, MAX_INDENT)
    return int(number)


def weigh(data: object) -> int:
    """The approximate number of characters of JSON data. Charges for the walk, and raises Exhausted for too many
    values."""
    return measure(data)[1]


def measure(data: object) -> tuple[int, int]:
    """The number of values in JSON data and the approximate number of its characters. Charges for the walk, and raises
    Exhausted for too many values."""
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
            METER.charge(nodes >> 1)
            raise Exhausted(f"data of more than {MAX_NODES:,} values")
    METER.spend(1 + (nodes >> 1) + (weight >> 8))
    return nodes, weight
