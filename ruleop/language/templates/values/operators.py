"""The operators `.`, `[]`, `+`, `~`, `==`, `in` and so on, and the methods of data. They work as in Python, but
undefined values raise their faults, results are bounded, and captured text counts as a string.

`'%05d' % n`, which the filter `format` does too, is bounded because a width may be any number.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final, NamedTuple

from jinja2.runtime import LoopContext
from jinja2.utils import Cycler, Namespace

from ruleop.errors import Site
from ruleop.language.templates.values.cost import (
    ITEM_BYTES,
    MAX_BITS,
    MAX_INDENT,
    METER,
    PASS_BYTES,
    Exhausted,
    called,
    check_items,
    check_size,
    check_text,
    read_size,
    width,
)
from ruleop.language.templates.values.data import (
    ListView,
    MapView,
    View,
    json_number,
    noun,
    plain,
    plain_and_weight,
    scalar_text,
)
from ruleop.language.templates.values.faults import Fault
from ruleop.language.templates.values.text import Dump, Slot, SlotPlace, Text
from ruleop.language.templates.values.undefined import Missing, NoField, UndefinedValue

# -- lookup ------------------------------------------------------------------------------------------------------------
#
# Lookup of `a.b`, `a['b']`, `a[x]` and `a[1:2]` in data. Attributes of Python objects are not accessible, except the
# few of Jinja's helpers that are listed here.

_LOOP_FIELDS = frozenset(
    {"index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0", "previtem", "nextitem"}
)


class Group(NamedTuple):
    """A group of `groupby`, which can be unpacked in a loop or read by these names."""

    grouper: Any
    list: Any


class MappingEntry(NamedTuple):
    """An entry of a mapping from `items`, `.items()` or `dictsort`, which can be unpacked in a loop or read by these
    names, as in `forEach`."""

    key: str
    value: Any


def field_of(obj: Any, key: Any) -> Any:
    if type(obj) is MapView and type(key) is str:  # the common case; `MapView.field` inlined
        try:
            value = obj.data[key]
        except KeyError:
            return obj.missing(key)
        kind = type(value)
        return value if kind is str or kind is int else obj.wrap(key, value)
    if isinstance(obj, UndefinedValue):
        return obj.step(key)
    if isinstance(key, UndefinedValue):
        raise key.fault()
    if isinstance(key, (Text, Dump)):
        key = key.as_text()
    if isinstance(obj, (MapView, ListView)):
        return obj.field(key)
    if isinstance(obj, (Text, Dump)):
        obj = obj.as_text()
    if isinstance(obj, (dict, list, tuple, range, str)):
        return _field_of_created(obj, key)
    return _field_of_helper(obj, key)


def field_by_value(obj: Any, key: Any) -> Any:
    """A field whose name was computed."""
    found = field_of(obj, key)
    return found.without_key() if isinstance(found, UndefinedValue) and isinstance(key, (str, Text, Dump)) else found


def _field_of_created(obj: Any, key: Any) -> Any:
    """A field of a mapping, list or text that the template created."""
    if isinstance(obj, (Group, MappingEntry)) and key in obj._fields:
        return getattr(obj, key)
    if isinstance(key, str) and key.isdecimal() and not isinstance(obj, dict):
        key = int(key)
    try:
        return obj[key]
    except (LookupError, TypeError):
        pass
    if isinstance(obj, dict):
        return Missing("this mapping").below(key)
    if isinstance(key, int) and not isinstance(obj, str):
        return Missing("this list").below(key)
    return NoField(noun(obj), key)


def _field_of_helper(obj: Any, key: Any) -> Any:
    """A field of one of Jinja's own objects."""
    kind = type(obj)
    if kind is LoopContext and key in _LOOP_FIELDS:
        return getattr(obj, key)
    if kind is Namespace:
        return obj._Namespace__attrs.get(key, Missing("this namespace").below(key))  # noqa: SLF001 - there is no public way to read it by name
    if kind is Cycler and key == "current":
        return obj.current
    return NoField(noun(obj), key)


def reach(item: Any, attribute: Any) -> Any:
    """`a.b.0.c` of an item, as `map` and `sort` name it."""
    parts = attribute.split(".") if isinstance(attribute, str) else [attribute]
    for part in parts:
        item = field_of(item, part)
    return item


def slice_of(obj: Any, start: Any, stop: Any, step: Any) -> Any:
    if isinstance(obj, UndefinedValue):
        raise obj.fault()
    if isinstance(obj, (Text, Dump)):
        obj = obj.as_text()
    if not isinstance(obj, (str, list, tuple, range, ListView)):
        raise Fault("only text and lists have slices")
    part = slice(*(None if bound is None else int(bound) for bound in (start, stop, step)))
    return called("[:]", operator.getitem, (obj, part), {}, 0)


# -- operators ---------------------------------------------------------------------------------------------------------


# Possessive, because backtracking on a hostile text could take hours. A name in brackets cannot contain brackets.
_DIRECTIVE = re.compile(
    r"%(?:(?:\((?P<name>[^()]*+)\))?[-+ #0]*+(?P<width>[0-9]*+)(?:\.(?P<precision>[0-9]*+))?(?P<kind>[a-zA-Z%]))?+"
)


def printf(pattern: str, *args: Any, **named: Any) -> str:
    arguments = [_argument(value) for value in args]
    named_arguments = {key: _argument(value) for key, value in named.items()}
    if re.search(r"%[^a-zA-Z%*]*+\*", pattern):
        raise Fault("format: the width * is not allowed")
    length = len(pattern) + sum(len(value) for value in arguments if isinstance(value, str))
    for found in _DIRECTIVE.finditer(pattern):
        if found["kind"] is None:
            raise Fault("format: the values do not match the directives in the text")
        for number in (found["width"], found["precision"]):
            width((number or "0")[:6], "a width or precision")
        value = named_arguments.get(found["name"] or "")
        length += len(value) if isinstance(value, str) else 2 * MAX_INDENT
    check_text(length)
    try:
        return pattern % (named_arguments or tuple(arguments))
    except (TypeError, ValueError, KeyError, OverflowError):
        raise Fault("format: the values do not match the directives in the text") from None


def _argument(value: Any) -> Any:
    if hasattr(value, "as_json"):
        value = value.as_json()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return json_number(value)
    return scalar_text(value)


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "**": operator.pow,
    "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip
_NO_PLACE = SlotPlace(Site(""), "")


def given(value: Any) -> Any:
    """A defined value, with captured text as a string."""
    if isinstance(value, UndefinedValue):
        raise value.fault()
    return value.as_text() if isinstance(value, (Text, Dump)) else value


def operate(symbol: str, left: Any, right: Any) -> Any:
    if symbol == "+" and isinstance(left, (Text, Dump, str)) and isinstance(right, (Text, Dump, str)):
        return joined((left, right))
    left, right = given(left), given(right)
    if symbol == "%" and isinstance(left, str):
        if isinstance(right, Mapping):
            return called("%", printf, (left,), plain(right), 0)
        return called("%", printf, (left, *(right if isinstance(right, tuple) else (right,))), {}, 0)
    if symbol == "+" and isinstance(left, str) != isinstance(right, str):
        raise Fault(f"{noun(left)} + {noun(right)}: only text can be added to text; join anything with ~")
    _check_growth(symbol, left, right)
    try:
        result = called(symbol, _OPERATIONS[symbol], (left, right), {}, 0)
    except TypeError:
        raise Fault(f"{noun(left)} {symbol} {noun(right)} is not possible") from None
    except ZeroDivisionError:
        raise Fault("division by zero") from None
    except (ArithmeticError, ValueError):
        raise Fault(f"the result of {symbol} is too large") from None
    if isinstance(result, complex):
        raise Fault(f"{symbol} is not possible: the root of a negative number")
    check_size(result)
    return result


def _check_growth(symbol: str, left: Any, right: Any) -> None:
    """Checks the size of `left + right`, `left * right` or `left ** right` before it is computed."""
    check_size(left)
    check_size(right)
    if symbol == "+" and hasattr(left, "__len__") and hasattr(right, "__len__"):
        check_items(len(left) + len(right))
        return
    if symbol == "*":
        for one, other in ((left, right), (right, left)):
            if isinstance(one, str) and isinstance(other, int):
                check_text(len(one) * max(0, other))
            elif isinstance(one, (list, tuple)) and isinstance(other, int):
                check_items(len(one) * max(0, other))
    if symbol == "**" and all(isinstance(number, (int, float, Fraction)) for number in (left, right)):
        bits = 64 if isinstance(left, float) else max(left.numerator.bit_length(), left.denominator.bit_length())
        bits = 1 if abs(left) <= 2 else bits
        if abs(right) * bits > MAX_BITS:
            raise Exhausted(f"a power of more than {MAX_BITS} bits")


def joined(values: tuple[Any, ...]) -> Any:
    """`a ~ b`: a string, or captured text if one of the operands is."""
    if any(isinstance(value, Text) for value in values):
        parts: list[Any] = []
        for value in values:
            parts.extend(value.parts if isinstance(value, Text) and not value.indent else [Slot(value, _NO_PLACE)])
        check_items(len(parts))
        METER.charge(ITEM_BYTES * len(parts))
        return Text(parts)
    texts = [scalar_text(value) for value in values]
    check_text(sum(map(len, texts)))
    text = "".join(texts)
    METER.text(text)
    return text


def comparable(value: Any) -> Any:
    """An operand of a comparison, with its size counted: lists of a template can contain one another many times."""
    if isinstance(value, (list, tuple, dict)):
        return plain(value)
    if type(value) is str:
        return value
    if isinstance(value, View):
        plain_and_weight(value)
    return value.as_text() if isinstance(value, (Text, Dump)) else value


def contains(needle: Any, haystack: Any) -> bool:
    """`needle in haystack`."""
    needle, haystack = given(needle), given(haystack)
    if isinstance(haystack, str):
        if not isinstance(needle, str):
            raise Fault(f"{noun(needle)} in text: only text can be searched in text")
        return bool(called("in", _contains_text, (needle, haystack), {}, read_size(haystack)))
    if isinstance(haystack, Mapping):
        return isinstance(needle, (str, int, float)) and needle in haystack
    if isinstance(haystack, ListView):
        METER.charge(ITEM_BYTES * len(haystack) >> 3)  # they are compared by C code
        if isinstance(needle, (str, int, float)) or needle is None:
            return needle in haystack.data
    if not isinstance(haystack, (list, tuple, range, ListView)):
        raise Fault(f"`in` needs text, a list or a mapping on the right, not {noun(haystack)}")
    needle = comparable(needle)
    return any(needle == comparable(item) for item in passes(haystack))


def _contains_text(needle: str, haystack: str) -> bool:
    return needle in haystack


def passes(value: Any) -> Any:
    """The iterable of a loop, with its passes charged."""
    if isinstance(value, UndefinedValue):
        raise value.fault()
    if isinstance(value, (Text, Dump)):
        value = value.as_text()
    if isinstance(value, (str, list, tuple, range, Mapping, View)):
        METER.charge(PASS_BYTES * (1 + len(value)))
        return value
    raise Fault(f"a loop needs a list or a mapping, not {noun(value)}")


def collected(items: list[Any]) -> list[Any]:
    """A list that is written out, or the keys of a mapping."""
    METER.charge(ITEM_BYTES * (1 + len(items)))
    return items


# -- methods -----------------------------------------------------------------------------------------------------------
#
# The methods of text, mappings and lists in templates, with bounded results. `spec.items` is always the field, and
# `spec.labels.items()` always the method, even if a label has that name.


class Method(NamedTuple):
    """`gives` is in words of `declared_kinds`."""

    call: Callable[..., Any]
    gives: str


def call_on_data(obj: Any, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Calls `obj.name(...)` of text, a mapping or a list."""
    method = METHODS.get((type_name(obj), name))
    if method is None:
        known = sorted(known for kind, known in METHODS if kind == type_name(obj))
        raise Fault(f"unknown method {name}()" + (f"; use one of {', '.join(known)}" if known else ""))
    try:
        args, kwargs = tuple(map(given, args)), {key: given(value) for key, value in kwargs.items()}
        obj = str(obj) if isinstance(obj, (str, Text, Dump)) else obj
        size = 0 if isinstance(obj, Mapping) else read_size(obj)
        return called(name, method.call, (obj, *args), kwargs, size)
    except (TypeError, ValueError, LookupError):
        raise Fault(f"{name}() cannot take these arguments") from None


def type_name(obj: Any) -> str:
    if isinstance(obj, (str, Text, Dump)):
        return "text"
    if isinstance(obj, Mapping):
        return "mapping"
    return "list" if isinstance(obj, (list, tuple, range, ListView)) else ""


def replaced(text: Any, old: Any, new: Any, count: int | None = None) -> str:
    text, old, new = scalar_text(text), scalar_text(old), scalar_text(new)
    times = text.count(old)
    if count is not None and count >= 0:
        times = min(times, int(count))
    check_text(len(text) + times * max(0, len(new) - len(old)))
    return str(text.replace(old, new, times))


def joined_by(separator: Any, values: Any) -> str:
    between, texts = scalar_text(separator), [scalar_text(value) for value in passes(values)]
    check_text(sum(map(len, texts)) + len(texts) * len(between))
    return between.join(texts)


def _items(mapping: Mapping[str, Any]) -> list[MappingEntry]:
    return list(map(MappingEntry._make, mapping.items()))


def _values(mapping: Mapping[str, Any]) -> list[Any]:
    return list(mapping.values())


def _get(mapping: Mapping[str, Any], key: Any, *default: Any) -> Any:
    """With a default, the default for any missing key. Without, null, except where the value is only not available
    yet."""
    found = mapping.field(key) if isinstance(mapping, MapView) else mapping.get(key, Missing())
    if not isinstance(found, UndefinedValue) or not (default or isinstance(found, Missing)):
        return found
    (fallback,) = default or (None,)
    return fallback


def _index(items: Any, item: Any) -> int:
    return [comparable(each) for each in items].index(comparable(item))


def _count(items: Any, item: Any) -> int:
    return [comparable(each) for each in items].count(comparable(item))


_OF_TEXT: Final = {
    "string": "upper lower title capitalize swapcase strip lstrip rstrip removeprefix removesuffix",
    "list of string": "split rsplit splitlines partition rpartition",
    "integer": "find rfind count",
    "boolean": "startswith endswith isdigit isalpha isalnum islower isupper isspace isnumeric",
}
METHODS: Final[Mapping[tuple[str, str], Method]] = {
    **{
        ("text", name): Method(getattr(str, name), gives) for gives, names in _OF_TEXT.items() for name in names.split()
    },
    ("text", "replace"): Method(replaced, "string"),
    ("text", "join"): Method(joined_by, "string"),
    ("mapping", "items"): Method(_items, "list"),
    ("mapping", "keys"): Method(list, "list of string"),
    ("mapping", "values"): Method(_values, "list"),
    ("mapping", "get"): Method(_get, "any"),
    ("list", "index"): Method(_index, "integer"),
    ("list", "count"): Method(_count, "integer"),
}
