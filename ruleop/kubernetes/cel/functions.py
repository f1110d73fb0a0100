"""The functions and methods of rules: those of CEL's standard library and of Kubernetes' that rules use often.

A function that is not listed is not evaluated. Of those listed, every overload for strings, numbers and booleans is
here, so that a call that fits none is a mistake of the rule.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final, TypeAlias

from ruleop.kubernetes.cel import libraries
from ruleop.kubernetes.cel.parser import EvaluationError, NotEvaluatedError
from ruleop.kubernetes.cel.values import (
    BOOL,
    CIDR,
    DOUBLE,
    DURATION,
    DYN,
    FORMAT,
    INT,
    IP,
    QUANTITY,
    SEMVER,
    STRING,
    TIMESTAMP,
    TYPE,
    URL,
    Budget,
    CelDuration,
    CelType,
    ListValue,
    MapValue,
    OptionalValue,
    Quantity,
    Timestamp,
    TypeValue,
    UnreadValue,
    Value,
    add,
    bounded_time,
    compare,
    equal,
    list_of,
    map_of,
    optional_of,
    parse_duration,
    parse_timestamp,
    type_name,
)
from ruleop.kubernetes.quantity import SUFFIXES
from ruleop.kubernetes.schema import compile_pattern
from ruleop.patterns import InvalidPatternError
from ruleop.values import dataclass

Result: TypeAlias = CelType | Callable[[CelType], CelType]
"""The type of a function's result, which may depend on that of its first argument."""


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature. `parameters` are kinds of types; any is every kind. A method's target is its first parameter."""

    is_method: bool
    parameters: tuple[str, ...]
    result: Result
    call: Callable[..., Value]  # with the budget first


_SPACES: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)  # fewer than Python strips
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_LOWER: Final = {code: code + 32 for code in range(65, 91)}
_UPPER: Final = {code: code - 32 for code in range(97, 123)}
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_RARE_DOUBLE: Final = re.compile(r"[+-]?(?:inf|infinity|nan|0x.*)", re.ASCII | re.IGNORECASE)
_QUANTITY: Final = re.compile(r"([+-]?[0-9]{1,15}(?:\.[0-9]{1,3})?)([A-Za-z]*)", re.ASCII)


# -- strings ---------------------------------------------------------------------------------------------------------


def _on_text(function: Callable[..., Value]) -> Callable[..., Value]:
    """A function of strings whose cost is that of reading them."""

    def call(budget: Budget, *arguments: Any) -> Value:
        budget.charge(sum(len(each) for each in arguments if isinstance(each, str)) // 10)
        return function(*arguments)

    return call


def _matches(budget: Budget, text: str, pattern: str) -> Value:
    budget.charge((len(text) // 10 + 1) * (len(pattern) // 4 + 1))
    try:
        return compile_pattern(pattern)(text)
    except InvalidPatternError as error:  # RE2 is a little stricter than Go, which has no limit of memory
        raise NotEvaluatedError(f"{pattern[:50]!r} is not a regular expression of RE2") from error


def _char_at(text: str, index: int) -> Value:
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index out of range: {index}")
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> Value:
    if not part:
        return start
    if start < 0:
        raise EvaluationError(f"index out of range: {start}")
    return text.find(part, start)


def _last_index_of(text: str, part: str, start: int | None = None) -> Value:
    if not part:
        return len(text) if start is None else start
    if start is None:
        return text.rfind(part)
    if start < 0:
        raise EvaluationError(f"index out of range: {start}")
    return -1 if start >= len(text) else text.rfind(part, 0, start + len(part))


def _substring(text: str, start: int, end: int | None = None) -> Value:
    if end is not None and start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for each in (start, len(text) if end is None else end):
        if not 0 <= each <= len(text):
            raise EvaluationError(f"index out of range: {each}")
    return text[start:end]


def _replace(budget: Budget, text: str, old: str, new: str, count: int = -1) -> Value:
    found = text.count(old)
    budget.charge((len(text) + (found if count < 0 else min(found, count)) * len(new)) // 10)
    return text.replace(old, new, max(count, -1))


def _split(budget: Budget, text: str, separator: str, count: int = -1) -> Value:
    budget.charge(len(text))
    if count == 0:
        return ListValue(())
    if separator:
        return ListValue(text.split(separator, count - 1 if count > 0 else -1))
    if count > 0:
        raise NotEvaluatedError("split() by an empty separator with a limit is not implemented")
    return ListValue(list(text))


def _join(budget: Budget, parts: ListValue, separator: str = "") -> Value:
    texts = list(parts)
    if not all(isinstance(each, str) for each in texts):
        raise EvaluationError("join: invalid input")
    budget.charge(sum(len(str(each)) + len(separator) for each in texts) // 10 + len(texts))
    return separator.join(map(str, texts))


# -- conversions -----------------------------------------------------------------------------------------------------


def _failed(found: str, target: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{found}' to '{target}'")


def _int_of_text(text: str) -> Value:
    if len(text) > 40:
        raise NotEvaluatedError("it converts a long string to an integer")
    if not re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII) or not -(2**63) <= int(text) < 2**63:
        raise _failed("string", "int")
    return int(text)


def _int_of_double(number: float) -> Value:
    if not (math.isfinite(number) and -(2.0**63) < number < 2.0**63):
        raise EvaluationError("integer overflow")
    return int(number)


def _double_of_text(text: str) -> Value:
    if len(text) > 40:
        raise NotEvaluatedError("it converts a long string to a double")
    if _DECIMAL.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    if _RARE_DOUBLE.fullmatch(text):
        raise NotEvaluatedError(f"it converts {text!r} to a double")
    raise _failed("string", "double")


def _bool_of_text(text: str) -> Value:
    if text not in _TRUE | _FALSE:
        raise _failed("string", "bool")
    return text in _TRUE


def _text_of_double(number: float) -> Value:
    if number == 0 or not 1e-4 <= abs(number) < 1e6:
        raise NotEvaluatedError("it converts a double to a string that may have an exponent")
    return repr(number).removesuffix(".0")


def _quantity(text: str) -> Value:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        if re.search(r"[0-9]", text) and re.fullmatch(r"[-+.0-9A-Za-z]+", text, re.ASCII):
            raise NotEvaluatedError(f"{text[:50]!r} is a quantity in a rare form")
        raise EvaluationError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    if match[2] not in SUFFIXES:
        raise EvaluationError("unable to parse quantity's suffix")
    amount = Fraction(match[1]) * SUFFIXES[match[2]]
    if abs(amount) >= 2**63 or (amount * 10**9).denominator != 1:
        raise NotEvaluatedError(f"the server rounds the quantity {text}")
    return Quantity(amount)


# -- optional values -------------------------------------------------------------------------------------------------


def _held(value: OptionalValue) -> Value:
    if not value.held:
        raise EvaluationError("optional.none() dereference")
    return _readable(value.held[0])


def _readable(value: Value) -> Value:
    if isinstance(value, UnreadValue):
        raise NotEvaluatedError("the words of reasons are the server's own")
    return value


# -- times -----------------------------------------------------------------------------------------------------------


def _part(part: Callable[[Timestamp], int]) -> tuple[Overload, ...]:
    return _method("timestamp", INT, part)


# -- lists -----------------------------------------------------------------------------------------------------------


def _sum(zero: Value) -> Callable[..., Value]:
    def call(budget: Budget, items: ListValue) -> Value:
        total = zero
        for each in items:
            budget.charge()
            total = add(total, each, budget)
        return total

    return call


def _extreme(name: str, sign: int) -> Callable[..., Value]:
    def call(budget: Budget, items: ListValue) -> Value:
        found: list[Value] = []
        for each in items:
            budget.charge()
            if not found or compare(found[0], each) == sign:
                found = [each]
        if not found:
            raise EvaluationError(f"{name} called on empty list")
        return found[0]

    return call


def _is_sorted(budget: Budget, items: ListValue) -> Value:
    values = list(items)
    budget.charge(len(values))
    return all(compare(one, other) != 1 for one, other in itertools.pairwise(values))


def _position(*, last: bool) -> Callable[..., Value]:
    def call(budget: Budget, items: ListValue, sought: Value) -> Value:
        found = -1
        for index, each in enumerate(items):
            if equal(each, sought, budget):
                found = index
                if not last:
                    break
        return found

    return call


def _items(of: CelType) -> CelType:
    return of.items or DYN


# -- the table -------------------------------------------------------------------------------------------------------


def _overloads(
    signatures: str, result: Result, call: Callable[..., Value], *, is_method: bool = True
) -> tuple[Overload, ...]:
    """Signatures such as `string int|string int int` of one function, which charges its own cost."""
    return tuple(Overload(is_method, tuple(each.split()), result, call) for each in signatures.split("|"))


def _method(signatures: str, result: Result, call: Callable[..., Value]) -> tuple[Overload, ...]:
    return _overloads(signatures, result, _on_text(call))


def _function(signatures: str, result: Result, call: Callable[..., Value]) -> tuple[Overload, ...]:
    return _overloads(signatures, result, _on_text(call), is_method=False)


def _of_lists(kinds: str, call: Callable[[str], Callable[..., Value]], result: Result) -> tuple[Overload, ...]:
    return tuple(Overload(True, (f"list({kind})",), result, call(kind)) for kind in kinds.split())


def _converted(
    name: str, result: CelType, parse: Callable[..., Value], signatures: str = "string"
) -> dict[str, tuple[Overload, ...]]:
    """A type of Kubernetes that is made of a text, and the test whether it can be."""
    test = _function(signatures, BOOL, libraries.reads(parse))
    return {result.kind: _function(signatures, result, parse), f"is{name}": test}


_ZEROS: Final[Mapping[str, Value]] = {"int": 0, "double": 0.0, "duration": CelDuration(0)}
_ORDERED: Final = "int double bool string duration timestamp"

FUNCTIONS: Final[Mapping[str, tuple[Overload, ...]]] = {
    "size": tuple(
        Overload(is_method, (kind,), INT, lambda _, value: len(value.members if isinstance(value, MapValue) else value))
        for kind in ("string", "list", "map")
        for is_method in (False, True)
    ),
    "type": _overloads("any", TYPE, lambda _, value: TypeValue(type_name(value)), is_method=False),
    "dyn": _overloads("any", DYN, lambda _, value: value, is_method=False),
    # strings
    "startsWith": _method("string string", BOOL, str.startswith),
    "endsWith": _method("string string", BOOL, str.endswith),
    "contains": _method("string string", BOOL, str.__contains__),
    "matches": (
        *_overloads("string string", BOOL, _matches),
        *_overloads("string string", BOOL, _matches, is_method=False),
    ),
    "lowerAscii": _method("string", STRING, lambda text: text.translate(_LOWER)),
    "upperAscii": _method("string", STRING, lambda text: text.translate(_UPPER)),
    "trim": _method("string", STRING, lambda text: text.strip(_SPACES)),
    "charAt": _method("string int", STRING, _char_at),
    "substring": _method("string int|string int int", STRING, _substring),
    "replace": _overloads("string string string|string string string int", STRING, _replace),
    "split": _overloads("string string|string string int", list_of(STRING), _split),
    "join": _overloads("list(string)|list(string) string", STRING, _join),
    "indexOf": (
        *_method("string string|string string int", INT, _index_of),
        *_overloads("list any", INT, _position(last=False)),
    ),
    "lastIndexOf": (
        *_method("string string|string string int", INT, _last_index_of),
        *_overloads("list any", INT, _position(last=True)),
    ),
    # conversions
    "int": (
        *_function("int", INT, lambda value: value),
        *_function("double", INT, _int_of_double),
        *_function("string", INT, _int_of_text),
        *_function("duration", INT, lambda value: value.nanoseconds),
        *_function("timestamp", INT, lambda value: value.nanoseconds // 10**9),
    ),
    "double": (
        *_function("double", DOUBLE, lambda value: value),
        *_function("int", DOUBLE, float),
        *_function("string", DOUBLE, _double_of_text),
    ),
    "string": (
        *_function("string", STRING, lambda value: value),
        *_function("int", STRING, str),
        *_function("bool", STRING, lambda value: "true" if value else "false"),
        *_function("double", STRING, _text_of_double),
        *_function("ip", STRING, str),
        *_function("cidr", STRING, str),
    ),
    "bool": (*_function("bool", BOOL, lambda value: value), *_function("string", BOOL, _bool_of_text)),
    "duration": (
        *_function("duration", DURATION, lambda value: value),
        *_function("string", DURATION, parse_duration),
    ),
    # times
    "timestamp": (
        *_function("timestamp", TIMESTAMP, lambda value: value),
        *_function("string", TIMESTAMP, parse_timestamp),
        *_function("int", TIMESTAMP, lambda seconds: bounded_time(seconds * 10**9)),
    ),
    "getFullYear": _part(lambda time: time.utc.year),
    "getMonth": _part(lambda time: time.utc.month - 1),
    "getDate": _part(lambda time: time.utc.day),
    "getDayOfMonth": _part(lambda time: time.utc.day - 1),
    "getDayOfWeek": _part(lambda time: time.utc.isoweekday() % 7),
    "getDayOfYear": _part(lambda time: time.utc.timetuple().tm_yday - 1),
    "getHours": _part(lambda time: time.utc.hour),
    "getMinutes": _part(lambda time: time.utc.minute),
    "getSeconds": _part(lambda time: time.utc.second),
    "getMilliseconds": _part(lambda time: time.nanoseconds // 10**6 % 1000),
    # quantities and versions
    **_converted("Quantity", QUANTITY, _quantity),
    **_converted("Semver", SEMVER, libraries.parse_semver, "string|string bool"),
    "compareTo": (
        *_method("quantity quantity", INT, lambda a, b: (a.amount > b.amount) - (a.amount < b.amount)),
        *_method("semver semver", INT, libraries.compare_semver),
    ),
    "isGreaterThan": (
        *_method("quantity quantity", BOOL, lambda a, b: a.amount > b.amount),
        *_method("semver semver", BOOL, lambda a, b: libraries.compare_semver(a, b) > 0),
    ),
    "isLessThan": (
        *_method("quantity quantity", BOOL, lambda a, b: a.amount < b.amount),
        *_method("semver semver", BOOL, lambda a, b: libraries.compare_semver(a, b) < 0),
    ),
    "major": _method("semver", INT, lambda value: value.numbers[0]),
    "minor": _method("semver", INT, lambda value: value.numbers[1]),
    "patch": _method("semver", INT, lambda value: value.numbers[2]),
    # patterns and sets
    "find": _overloads("string string", STRING, libraries.find),
    "findAll": _overloads("string string|string string int", list_of(STRING), libraries.find_all),
    "sets.contains": _overloads("list list", BOOL, libraries.contains_all, is_method=False),
    "sets.equivalent": _overloads("list list", BOOL, libraries.is_equivalent, is_method=False),
    "sets.intersects": _overloads("list list", BOOL, libraries.intersects, is_method=False),
    # addresses
    "ip": (
        *_function("string", IP, libraries.parse_ip),
        *_method("cidr", IP, lambda value: libraries.Ip(value.address)),
    ),
    "isIP": _function("string", BOOL, libraries.reads(libraries.parse_ip)),
    "ip.isCanonical": _function("string", BOOL, lambda text: str(libraries.parse_ip(text)) == text),
    "family": _method("ip", INT, lambda ip: ip.address.version),
    "isUnspecified": _method("ip", BOOL, lambda ip: ip.address.is_unspecified),
    "isLoopback": _method("ip", BOOL, lambda ip: ip.address.is_loopback),
    "isLinkLocalMulticast": _method("ip", BOOL, libraries.is_link_local_multicast),
    "isLinkLocalUnicast": _method("ip", BOOL, lambda ip: ip.address.is_link_local),
    "isGlobalUnicast": _method("ip", BOOL, libraries.is_global_unicast),
    **_converted("CIDR", CIDR, libraries.parse_cidr),
    "containsIP": _method("cidr ip|cidr string", BOOL, libraries.contains_ip),
    "containsCIDR": _method("cidr cidr|cidr string", BOOL, libraries.contains_cidr),
    "masked": _method("cidr", CIDR, lambda value: value.masked),
    "prefixLength": _method("cidr", INT, lambda value: value.bits),
    # URLs
    **_converted("URL", URL, libraries.parse_url),
    "getScheme": _method("url", STRING, lambda url: url.scheme),
    "getHost": _method("url", STRING, lambda url: url.host),
    "getHostname": _method("url", STRING, lambda url: url.hostname),
    "getPort": _method("url", STRING, lambda url: url.port),
    "getEscapedPath": _method("url", STRING, lambda url: url.path),
    "getQuery": _method("url", map_of(list_of(STRING)), lambda url: url.parameters),
    # formats and optional values
    **{
        f"format.{name}": _overloads("", FORMAT, lambda _, name=name: libraries.Format(name), is_method=False)
        for name in libraries.NAMED_FORMATS
    },
    "format.named": _function("string", optional_of(FORMAT), libraries.named_format),
    "validate": _method("format string", optional_of(list_of(STRING)), libraries.validate),
    "optional.of": _overloads("any", optional_of, lambda _, value: OptionalValue((value,)), is_method=False),
    "optional.none": _overloads("", optional_of(DYN), lambda _: OptionalValue(()), is_method=False),
    "hasValue": _method("optional", BOOL, lambda value: bool(value.held)),
    "value": _method("optional", _items, _held),
    "orValue": _method("optional any", _items, lambda value, other: _readable(value.held[0]) if value.held else other),
    "or": _method("optional optional", lambda type_: type_, lambda value, other: value if value.held else other),
    # lists
    "isSorted": _of_lists(_ORDERED, lambda _: _is_sorted, BOOL),
    "sum": _of_lists("int double duration", lambda kind: _sum(_ZEROS[kind]), _items),
    "min": _of_lists(_ORDERED, lambda _: _extreme("min", 1), _items),
    "max": _of_lists(_ORDERED, lambda _: _extreme("max", -1), _items),
}
