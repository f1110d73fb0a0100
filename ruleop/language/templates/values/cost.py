"""Limits what a plan takes: its account, in bytes. The author of the operator writes the rules, but tenants choose the
values that drive their loops.

The time of a plan is bounded from outside, by the guard (`planning/guard.py`), which ends it after a second of CPU
time. Nothing outside bounds memory. So all that enters a plan or is made in it is charged by its size, at a door: an
object that is read or rendered, a pass of a loop, a printed value, and the input and output of a filter, a test, a
method, an operator or a function (`called`). Nothing charges itself.

The guard cannot interrupt one call into C. So the work of such a call is bounded by sizes too. A filter whose result
could be huge (`'x' * n`, padding, replacing) checks the size of the result before it makes it; the few whose work or
whose intermediate data may be far more than input and output are charged before the call, by the table `BEFORE`.

Within a render nobody knows what Python has freed already, so all that is made counts. After the render it is given
back, apart from what outlives the render, and from a quarter: whatever multiplies renders ends, also without a guard,
as in the commands. An account is filled once for a plan, not for each render. When it is used up, the plan fails.

The account that is charged is that of the thread: a large plan is made in a thread of its own while the event loop
makes others. Outside a plan, each evaluation has a full account, which nested evaluations (a `let` that the template
reads) share.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from fractions import Fraction
from typing import Any, Final, TypeAlias

import orjson

from ruleop.language.templates.values.faults import Fault

MEMORY: Final = 48 * 1024 * 1024
"""Bytes of a plan."""

RESERVED_MEMORY: Final = 4 * 1024 * 1024
"""Bytes for the status if the children have used up everything: it reports that."""

NOT_GIVEN_BACK: Final = 4
"""The part of what a render has made that stays charged: a quarter."""

HINTS: Final = 32
"""Messages of a plan that say which name was probably meant."""

DESCRIPTIONS: Final = 100_000
"""Comparisons for finding out which fields the writes of a pass change: for its log, and for the messages of each plan.
Above that, they name outer fields."""

MAX_TEXT = 3 * 1024 * 1024  # one string, or the whole text: the API server accepts no larger request
MAX_OUTPUT = 16 * 1024 * 1024  # all objects of one render, which may be thousands
MAX_ITEMS = 100_000  # one list
MAX_RANGE = 10_000
MAX_BITS = 512  # of an intermediate integer; JSON allows 64
MAX_INDENT = 200  # columns of padding
MAX_REPEAT = 64  # of a product of lists with themselves
MAX_DEPTH = 128  # of nested data; the JSON encoder fails at 254
MAX_NODES = 400_000  # of measured data
MAX_COMPARED = 1_000_000_000  # characters that one call may compare: half a second
MAX_STEPS = 5_000_000_000  # of RE2, likewise
NODE = 32  # the weight of a mapping, list, number or key in characters

# The sizes of what is made, in bytes.
PASS_BYTES: Final = 64  # a pass of a loop
SLOT_BYTES: Final = 80  # a printed value
CALL_BYTES: Final = 32  # a call of a filter, a test, a method or a function
MACRO_BYTES: Final = 1000  # what a macro gives: a piece of the template with the names that it sees
ITEM_BYTES: Final = 64  # an item of a list or a member of a mapping, that is made or read
ROW_BYTES: Final = 200  # an item that is a short list or mapping
NODE_BYTES: Final = 100  # a value of JSON data
MISSING_BYTES: Final = 300  # a missing value
WRITTEN_BYTES: Final = 250  # a value that is written as YAML, by nodes and events of the writer
PARSED_BYTES: Final = 500  # a value that is parsed from YAML
OBJECT_BYTES: Final = 500  # an object of the cluster that is read, without its values; its labels alone
USUAL_SIZE: Final = 8192  # bytes of JSON of a child, most of which it has by its rule

TEXT_READ: Final = 4  # characters that are read for each byte: reading makes nothing, and this bounds its work


class Exhausted(Fault):
    """A limit was exceeded. Unlike other faults it ends the render at once, even if the value would not be used."""

    kind = "limit"


def exceeded(what: str, number: int, most: int) -> Exhausted:
    """The error for a size above a limit. `what` has `{}` in the place of the number, which may be a Secret's."""
    limit = f"at most {most:,} are allowed"
    return Exhausted(f"{what.format(f'{number:,}')}; {limit}", redacted=f"{what.format('too many')}; {limit}")


def check_text(length: int) -> None:
    """Raises Exhausted for a text that would be too long."""
    if length > MAX_TEXT:
        raise exceeded("text of {} characters", length, MAX_TEXT)


def check_items(count: int) -> None:
    """Raises Exhausted for a list that would be too long."""
    if count > MAX_ITEMS:
        raise exceeded("a list of {} items", count, MAX_ITEMS)


class Allowance:
    """A number of operations for work that is done more roughly when they are used up. Without a number, there is no
    limit."""

    __slots__ = ("units",)

    def __init__(self, units: int = sys.maxsize) -> None:
        self.units = units

    def takes(self, amount: int) -> bool:
        """Takes this number, if there are as many left."""
        if amount > self.units:
            return False
        self.units -= amount
        return True


def for_descriptions() -> Allowance:
    return Allowance(DESCRIPTIONS)


class Account:
    """The remaining bytes of one plan."""

    __slots__ = ("descriptions", "hints", "memory", "retained")

    def __init__(self) -> None:
        self.refill()

    def refill(self) -> None:
        self.memory = MEMORY
        self.retained = 0  # bytes that outlive the renders
        self.hints = Allowance(HINTS)
        self.descriptions = for_descriptions()

    @property
    def bytes(self) -> int:
        """The bytes that were used."""
        return MEMORY - self.memory

    @property
    def share(self) -> float:
        """The part that was used."""
        return self.bytes / MEMORY


_OWN: Final = Account()
"""The account of evaluations outside a plan."""

_CURRENT: Final = ContextVar("account", default=_OWN)
_current: Final = _CURRENT.get
"""The account that is charged. A thread has its own, because it has a context of its own."""


def hints() -> Allowance:
    """Messages that may have a hint, which is costly to find. Only few messages of a pass are ever shown."""
    return _current().hints


def descriptions() -> Allowance:
    """Operations for finding out which fields writes change."""
    return _current().descriptions


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

    def begin(self, *, outermost: bool) -> int:
        """Begins an evaluation. Outside a plan the outermost one has a full account. Returns a mark for its end."""
        account = _current()
        if outermost and account is _OWN:
            account.refill()
        return account.memory + account.retained

    def give_back(self, mark: int) -> None:
        """Gives back the bytes that were charged since, apart from those that were retained, and from a quarter."""
        account = _current()
        if account is not _OWN:
            before = mark - account.retained
            account.memory = before - (before - account.memory) // NOT_GIVEN_BACK

    def retain(self, mark: int) -> None:
        """The bytes that were charged since outlive the render."""
        account = _current()
        account.retained = mark - account.memory

    def ensure_reserve(self) -> None:
        """Gives the plan what the report about it takes, if it has less left."""
        account = _current()
        account.memory = max(account.memory, RESERVED_MEMORY)

    def charge(self, size: int) -> None:
        account = _current()
        account.memory -= size
        if account.memory < 0:
            account.memory = 0  # what would take it is not made
            raise Exhausted(
                f"the templates do too much work for one resource (at most {MEMORY >> 20} MiB of loops, calls, texts "
                "and objects together); limit the values that drive them, for example with `maximum`, `maxLength` or "
                "`maxItems` in the CRD's schema"
            )

    def text(self, text: str) -> None:
        """Charges for a text that was made."""
        check_text(len(text))
        self.charge(len(text) if text.isascii() else sys.getsizeof(text))

    def enter(self, size: int) -> None:
        """Charges for what outlives the current render."""
        self.charge(size)
        _current().retained += size


METER = Meter()

# -- calls -------------------------------------------------------------------------------------------------------------

Size: TypeAlias = Callable[..., int]
"""The bytes of a call, by its arguments, whatever they are."""

QUADRATIC_LENGTH: Final = 2500
"""Characters below which CPython searches text by its quadratic way."""


def _searched(text: Any, sought: Any = None, *_: Any, backward: bool = False, **__: Any) -> int:
    """A search of text in text: CPython compares up to `letters` at each of `places`. From the end it always does; from
    the start only in short text, or near the end of long text for which much is sought. Elsewhere its search is linear,
    or `sought` has at most a hundred letters."""
    if not isinstance(text, str) or not isinstance(sought, str) or len(sought) < 2:
        return 0
    length, letters = len(text), len(sought)
    places = max(0, length - letters)
    if not backward and length >= QUADRATIC_LENGTH:
        if 3 * letters > length:
            places = min(places, QUADRATIC_LENGTH)
        else:
            letters = min(letters, 128)
    return places * letters >> 4


def _searched_backward(text: Any, sought: Any = None, *_: Any, **__: Any) -> int:
    return _searched(text, sought, backward=True)


def _contained(sought: Any, text: Any, *_: Any) -> int:
    return _searched(text, sought)


def _replaced(text: Any, old: Any = "", *_: Any, **__: Any) -> int:
    return 2 * _searched(text, old)  # to count and to replace


def _split(text: Any, separator: Any = None, *_: Any, **__: Any) -> int:
    """The parts, and the search for the separators."""
    if not isinstance(text, str) or not isinstance(separator, str | None):
        return 0
    METER.charge(_searched(text, separator))  # to count the separators
    return _searched(text, separator) + ITEM_BYTES * (
        text.count(separator) if separator else sum(map(text.count, " \t\n"))
    )


def _split_backward(text: Any, separator: Any = None, *_: Any, **__: Any) -> int:
    return _searched_backward(text, separator) + _split(text, separator)


def _split_lines(text: Any, *_: Any, **__: Any) -> int:
    return ITEM_BYTES * (1 + text.count("\n") + text.count("\r")) if isinstance(text, str) else 0


def _stripped(text: Any, chars: Any = None, *_: Any, **__: Any) -> int:
    return len(text) * len(chars) >> 9 if isinstance(text, str) and isinstance(chars, str) else 0


def _in_pieces(text: Any, *_: Any, **__: Any) -> int:
    return 32 * len(text) if isinstance(text, str) else 0  # each character may become a word


def _length(value: Any) -> int:
    return len(value) if hasattr(value, "__len__") else 0


def _zipped(*lists: Any, fillvalue: Any = None) -> int:  # noqa: ARG001 - a parameter of the filter
    return (ROW_BYTES + 8 * len(lists)) * max(map(_length, lists))


def _multiplied(*lists: Any, repeat: Any = 1) -> int:
    times = int(repeat)
    if times > MAX_REPEAT:
        return 0  # the filter reports it
    rows: int = math.prod(map(_length, lists)) ** times
    check_items(rows)
    return (ROW_BYTES + 8 * len(lists) * times) * rows


def parsed(text: Any, *_: Any) -> int:
    """The bytes of parsing text. Each value in it needs one of these signs, and most of the memory goes into values."""
    return len(text) + PARSED_BYTES * sum(map(text.count, _SIGNS_OF_VALUES)) if isinstance(text, str) else 0


_SIGNS_OF_VALUES: Final = (",", ":", "-", "[", "{", "?", "...")

BEFORE: Final[Mapping[str, Size]] = {
    **dict.fromkeys(("find", "count", "partition"), _searched),
    **dict.fromkeys(("rfind", "rpartition"), _searched_backward),
    "in": _contained,
    **dict.fromkeys(("strip", "lstrip", "rstrip", "trim"), _stripped),
    "replace": _replaced,
    "split": _split,
    "rsplit": _split_backward,
    "splitlines": _split_lines,
    **dict.fromkeys(("urlencode", "wordcount", "wordwrap"), _in_pieces),
    **dict.fromkeys(("zip", "zip_longest"), _zipped),
    "product": _multiplied,
    "from_json": parsed,
}
"""The bytes that are charged before a call, by the names of filters, tests, methods and operators. After it, the result
is charged as well."""

ROWS: Final = frozenset(
    {"batch", "dict2items", "dictsort", "groupby", "items", "keep_keys", "pick", "remove_keys", "slice", "subelements"}
)
"""Of these, each item of the result is a list or a mapping that they make."""

DEEP: Final = frozenset({"combine"})
"""Of these, the result has others inside that they make."""


def called(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], size: int) -> Any:
    """The result of a filter, a test, a method, an operator or a function, which is charged here. `size`: of its
    input."""
    before = BEFORE.get(name)
    METER.charge(CALL_BYTES + size + (0 if before is None else before(*args, **kwargs)))
    result = function(*args, **kwargs)
    kind = type(result)
    if kind is str:
        METER.text(result)
    elif kind is list or kind is tuple:
        check_items(len(result))
        METER.charge((ROW_BYTES if name in ROWS else ITEM_BYTES) * len(result))
    elif kind is dict:
        METER.charge(ITEM_BYTES * (size_of(result)[1] if name in DEEP else len(result)))
    elif kind is not bool:
        check_size(result)
    return result


def read_size(value: Any, *, by_character: bool = False) -> int:
    """The size of the input of a call. `by_character`: text is read as a list of its characters."""
    if isinstance(value, str):
        check_text(len(value))
        if not by_character:
            return len(value) // TEXT_READ
        check_items(len(value))
        return 2 * ITEM_BYTES * len(value)
    if hasattr(value, "__len__"):
        check_items(len(value))
        return ITEM_BYTES * len(value)
    check_size(value)
    return 0


# -- sizes of data -----------------------------------------------------------------------------------------------------


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


def bytes_of(data: object) -> int:
    """The bytes of JSON data in memory, approximately."""
    size, values = size_of(data)
    return 2 * size + NODE_BYTES * values


def object_bytes(obj: object, usual: int) -> int:
    """The bytes of an object of the cluster, approximately: twice its JSON beyond the usual size, and more if it has
    many short values."""
    try:
        text = orjson.dumps(obj)
    except TypeError:
        return bytes_of(obj)
    values = len(text) - len(text.translate(None, b",[{"))
    return OBJECT_BYTES + 2 * max(0, len(text) - usual) + ITEM_BYTES * max(0, values - len(text) // 4)


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


def measure(data: object) -> tuple[int, int]:
    """The number of values in JSON data and the approximate number of its characters. Raises Exhausted for too many
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
    return nodes, weight
