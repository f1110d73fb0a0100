"""The operators `+`, `~`, `==`, `in` and so on. They work as in Python, but undefined values raise their faults,
results are bounded, and captured text counts as a string.

`'%05d' % n`, which the filter `format` does too, is bounded because a width may be any number.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

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
    View,
    json_number,
    noun,
    plain,
    plain_and_weight,
    scalar_text,
)
from ruleop.language.templates.values.faults import Fault
from ruleop.language.templates.values.text import Dump, Slot, SlotPlace, Text
from ruleop.language.templates.values.undefined import UndefinedValue

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
