"""The values of CEL and their operators, as cel-go and the API server implement them.

Python's own values stand for null, booleans, integers, doubles and strings. An integer never equals a boolean here: all
comparisons look at the types first. Lists, maps and objects stay JSON beside their type and are converted when they are
read, as on the server: most rules read a few fields."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from ruleop.kubernetes.cel.parser import RESERVED, EvaluationError, NotEvaluatedError
from ruleop.kubernetes.times import duration_parts
from ruleop.values import dataclass

if TYPE_CHECKING:
    from fractions import Fraction

    from ruleop.kubernetes.schema import Schema


@dataclass(frozen=True, slots=True, order=True)
class CelDuration:
    nanoseconds: int


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    nanoseconds: int  # since 1970

    @property
    def utc(self) -> dt.datetime:
        return _EPOCH + dt.timedelta(seconds=self.nanoseconds // _SECOND)


_SECOND: Final = 10**9
_NO_TIME: Final = "type conversion error from 'string' to 'timestamp'"
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FIRST: Final = int((dt.datetime(1, 1, 1, tzinfo=dt.UTC) - _EPOCH).total_seconds()) * _SECOND
_END: Final = (int((dt.datetime(9999, 12, 31, tzinfo=dt.UTC) - _EPOCH).total_seconds()) + 86_400) * _SECOND
_RFC3339: Final = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:[0-5]\d)(?:\.(\d{1,9}))?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)", re.ASCII
)


def parse_timestamp(text: str) -> Timestamp:
    """The time, as Go reads RFC 3339. Raises EvaluationError."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        if re.match(r"\d{4}-\d\d-\d\d[Tt]", text, re.ASCII):
            raise NotEvaluatedError(f"{text[:50]!r} is a time in a rare form")
        raise EvaluationError(_NO_TIME)
    try:
        seconds = int((dt.datetime.fromisoformat(match[1] + match[3]) - _EPOCH).total_seconds())
    except (ValueError, OverflowError):
        raise EvaluationError(_NO_TIME) from None
    return bounded_time(seconds * _SECOND + int((match[2] or "").ljust(9, "0")))


def parse_duration(text: str) -> CelDuration:
    """The duration, as time.ParseDuration reads it. Raises EvaluationError."""
    if len(text) > 200:
        raise NotEvaluatedError("a duration has more than 200 characters")
    try:
        parts = duration_parts(text)
    except ValueError:
        raise EvaluationError("type conversion error from 'string' to 'duration'") from None
    if any(each.denominator != 1 for each in parts):  # Go rounds it in floating point
        raise NotEvaluatedError(f"{text!r} has parts of a nanosecond")
    return CelDuration(int(sum(parts)))


_NO_OVERLOAD: Final = "no such overload"
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


class Budget:
    """The steps that are left. The server has limits of its own (a million units of cost for a rule), which are far
    above this one: what is decided here has not reached them."""

    def __init__(self, steps: int, whole: Budget | None = None) -> None:
        """`whole` is charged too: the steps of all rules for an object."""
        self._left, self._whole = steps, whole

    def charge(self, steps: int = 1) -> None:
        self._left -= steps
        if self._whole is not None:
            self._whole.charge(steps)
        if self._left < 0:
            raise NotEvaluatedError("it takes too many steps")


@dataclass(frozen=True, slots=True, eq=False)
class ListValue:
    """A list of the object, whose `elements` are JSON of type `items`, or one that the rule made."""

    elements: Sequence[Any]
    type: CelType | None = None

    def __len__(self) -> int:
        return len(self.elements)

    def __iter__(self) -> Iterator[Value]:
        items = self.type.items if self.type is not None else None
        return iter(self.elements) if items is None else (to_value(each, items) for each in self.elements)

    def at(self, index: int) -> Value:
        items = self.type.items if self.type is not None else None
        return self.elements[index] if items is None else to_value(self.elements[index], items)


@dataclass(frozen=True, slots=True, eq=False)
class MapValue:
    """A map or an object of the custom resource, or one that the rule made: of values."""

    members: Mapping[str, Any]
    type: CelType | None

    def find(self, key: str) -> tuple[bool, Value]:
        """Whether the key is there, and its value. A null counts as missing in an object, not in a map."""
        if self.type is None:
            return key in self.members, self.members.get(key)
        inner = self.type.properties.get(key, self.type.items)
        if key not in self.members or inner is None or (self.members[key] is None and self.type.kind == "object"):
            return False, None
        return True, to_value(self.members[key], inner)


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type, as type() returns it."""

    name: str


@dataclass(frozen=True, slots=True)
class Quantity:
    amount: Fraction


@dataclass(frozen=True, slots=True)
class OptionalValue:
    """A value that may be missing."""

    held: tuple[Value, ...]  # of at most one


class Opaque:
    """A value that only functions of a library read."""

    __slots__ = ()
    kind: ClassVar[str]


@dataclass(frozen=True, slots=True)
class UnreadValue:
    """JSON without a type, and text of a format that is not read: only equality with itself is certain."""

    raw: Any
    kind: str


Value: TypeAlias = (
    bool
    | int
    | float
    | str
    | ListValue
    | MapValue
    | TypeValue
    | Quantity
    | CelDuration
    | Timestamp
    | OptionalValue
    | Opaque
    | UnreadValue
    | None
)


def to_value(raw: Any, type_: CelType) -> Value:
    """JSON as a value of its type. The schema has admitted it: what has another type is not evaluated."""
    kind, found = type_.kind, type(raw)
    if raw is None:
        if not type_.nullable:
            raise NotEvaluatedError("a value is null where the schema does not allow it")
        return None
    if kind in ("string", "dyn") and found is str:
        return _text(raw)
    if kind in ("int", "dyn") and found is int and _SMALLEST <= raw <= _LARGEST:
        return int(raw)
    if kind == "double" and found in (int, float) and abs(raw) < 2**1000:  # so neither infinite nor NaN
        return float(raw)
    if kind == "bool" and found is bool:
        return bool(raw)
    if kind == "list" and found is list:
        return ListValue(raw, type_)
    if kind in ("map", "object") and isinstance(raw, Mapping):
        return MapValue(raw, type_)
    if kind == "duration" and found is str:
        try:
            return parse_duration(raw)
        except EvaluationError as error:  # the server reads more than Go's durations in fields
            raise NotEvaluatedError(str(error)) from error
    if kind == "timestamp" and found is str:
        with contextlib.suppress(EvaluationError, NotEvaluatedError):  # the server reads more than RFC 3339 in fields
            return parse_timestamp(raw if "T" in raw else f"{raw}T00:00:00Z")
    if kind in ("hidden", "bytes", "timestamp"):
        return UnreadValue(raw, kind)
    raise NotEvaluatedError(f"a value is not of type {kind}")


def _text(raw: str) -> str:
    if not raw.isascii() and any(0xD800 <= ord(each) < 0xE000 for each in raw):
        raise NotEvaluatedError("a string has half of a surrogate pair")
    return raw


def type_name(value: Value) -> str:
    if isinstance(value, MapValue):
        return "map"
    if isinstance(value, (UnreadValue, Opaque)):
        return value.kind
    return _NAMES[type(value)]


_NAMES: Final[Mapping[type, str]] = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    float: "double",
    str: "string",
    ListValue: "list",
    TypeValue: "type",
    Quantity: "quantity",
    CelDuration: "duration",
    Timestamp: "timestamp",
    OptionalValue: "optional",
}


# -- equality --------------------------------------------------------------------------------------------------------


def equal(left: Value, right: Value, budget: Budget) -> bool:
    """`left == right`. The left value decides how lists are compared."""
    budget.charge()
    if left is None or right is None:
        return left is right
    if isinstance(left, UnreadValue) or isinstance(right, UnreadValue):
        return _equal_unread(left, right, budget)
    kinds = type_name(left), type_name(right)
    if kinds in (("int", "double"), ("double", "int")):
        return not math.isnan(float(left)) and not math.isnan(float(right)) and compare(left, right) == 0  # type: ignore[arg-type]
    if isinstance(left, ListValue) and isinstance(right, ListValue):
        return _equal_lists(left, right, budget)
    if isinstance(left, MapValue) and isinstance(right, MapValue):
        return _equal_maps(left, right, budget)
    if kinds[0] != kinds[1]:
        # An error for lists of the object, false for those of the rule.
        if kinds[0] in ("list", "map", "quantity") or isinstance(left, Opaque):
            raise NotEvaluatedError(f"it compares values of type {kinds[0]} and {kinds[1]}")
        return False
    if isinstance(left, OptionalValue) and isinstance(right, OptionalValue):
        pairs = zip(left.held, right.held, strict=False)
        return len(left.held) == len(right.held) and all(equal(one, other, budget) for one, other in pairs)
    if isinstance(left, str):
        budget.charge(len(left) // 100)
    return bool(left == right)


def _equal_unread(left: Value, right: Value, budget: Budget) -> bool:
    if not (isinstance(left, UnreadValue) and isinstance(right, UnreadValue) and left.kind == right.kind):
        raise NotEvaluatedError("it compares a value of a type that is not implemented")
    same = same_json(left.raw, right.raw, budget)
    if not same and left.kind != "hidden":
        raise NotEvaluatedError(f"it compares two {left.kind} values with different texts")
    return same


def _equal_lists(left: ListValue, right: ListValue, budget: Budget) -> bool:
    if len(left) != len(right):
        return False
    declared = left.type
    if declared is None or declared.items is None or declared.list_type not in ("set", "map"):
        return all(equal(left.at(index), right.at(index), budget) for index in range(len(left)))
    if right.type is not declared and right.type is not None and right.type.list_type != declared.list_type:
        raise NotEvaluatedError("it compares lists of two types")
    if declared.list_type == "set":
        if declared.items.kind not in ("string", "int", "bool"):
            raise NotEvaluatedError(f"it compares sets of {declared.items.kind}")
        budget.charge(len(left))
        members = {(type(each), each) for each in left}
        return all((type(each), each) in members for each in right)
    if right.type is None or any(not _is_plain(each) for each in declared.map_keys):
        raise NotEvaluatedError("it compares lists by keys without declared keys")
    by_key = {_identity(each, declared.map_keys): each for each in left.elements}
    return all(
        (key := _identity(raw, declared.map_keys)) in by_key
        and equal(to_value(by_key[key], declared.items), to_value(raw, declared.items), budget)
        for raw in right.elements
    )


def _is_plain(name: str) -> bool:
    return name.replace("_", "").isalnum() and "__" not in name


def _identity(item: Any, keys: Sequence[str]) -> tuple[Any, ...]:
    found = [item.get(key) for key in keys] if isinstance(item, Mapping) else [object()]
    if any(isinstance(each, (list, dict)) for each in found):
        raise NotEvaluatedError("the key of a list is not a scalar")
    return tuple((type(each), each) for each in found)


def _equal_maps(left: MapValue, right: MapValue, budget: Budget) -> bool:
    if len(left.members) != len(right.members):
        return False
    for key, raw in left.members.items():
        budget.charge()
        if left.type is None or key in left.type.properties or left.type.items is not None:
            found, value = left.find(key)
            other_found, other = right.find(key)
            if found != other_found or (found and not equal(value, other, budget)):
                return False
        elif key in right.members and not same_json(raw, right.members[key], budget):
            return False  # the server does not compare an undeclared field that the other object lacks
    return True


def same_json(left: Any, right: Any, budget: Budget) -> bool:
    """Deep equality of JSON, in which 1, 1.0 and true differ."""
    budget.charge()
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same_json(each, right[key], budget) for key, each in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same_json, left, right, [budget] * len(left)))
    return bool(left == right)


# -- order and arithmetic --------------------------------------------------------------------------------------------


def compare(left: Any, right: Any) -> int:
    """-1, 0 or 1. Integers and doubles are compared as doubles, with Go's loss of digits."""
    refuse_unread(left, right)
    kinds = type_name(left), type_name(right)
    if set(kinds) <= {"int", "double"}:
        if (isinstance(left, float) and math.isnan(left)) or (isinstance(right, float) and math.isnan(right)):
            raise EvaluationError("NaN values cannot be ordered")
        if kinds[0] != kinds[1]:
            if isinstance(left, int):
                return -compare(right, left)
            if left < _SMALLEST or left > 2.0**63:
                return -1 if left < 0 else 1
            right = float(right)
    elif kinds[0] != kinds[1] or kinds[0] not in ("string", "bool", "duration", "timestamp"):
        raise EvaluationError(_NO_OVERLOAD)
    return int(left > right) - int(left < right)


def add(left: Value, right: Value, budget: Budget) -> Value:
    if isinstance(left, str) and isinstance(right, str):
        budget.charge((len(left) + len(right)) // 10)
        return left + right
    if isinstance(left, ListValue) and isinstance(right, ListValue):
        budget.charge(len(left) + len(right))
        return ListValue([*left, *right])
    if isinstance(left, CelDuration) and isinstance(right, CelDuration):
        return CelDuration(_bounded(left.nanoseconds + right.nanoseconds, "duration overflow"))
    for time, delay in ((left, right), (right, left)):
        if isinstance(time, Timestamp) and isinstance(delay, CelDuration):
            return bounded_time(time.nanoseconds + delay.nanoseconds)
    return _number(left, right, operator.add)


def subtract(left: Value, right: Value) -> Value:
    if isinstance(left, CelDuration) and isinstance(right, CelDuration):
        return CelDuration(_bounded(left.nanoseconds - right.nanoseconds, "duration overflow"))
    if isinstance(left, Timestamp) and isinstance(right, Timestamp):
        return CelDuration(_bounded(left.nanoseconds - right.nanoseconds, "duration overflow"))
    if isinstance(left, Timestamp) and isinstance(right, CelDuration):
        return bounded_time(left.nanoseconds - right.nanoseconds)
    return _number(left, right, operator.sub)


def bounded_time(nanoseconds: int) -> Timestamp:
    if not _FIRST <= nanoseconds < _END:
        raise EvaluationError("timestamp overflow")
    return Timestamp(nanoseconds)


def multiply(left: Value, right: Value) -> Value:
    return _number(left, right, operator.mul)


def divide(left: Any, right: Any) -> Value:
    if isinstance(left, float) and right == 0.0:
        if left == 0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1.0, right)
    if _are_integers(left, right) and right == 0:
        raise EvaluationError("division by zero")
    return _number(left, right, _quotient)


def modulo(left: Any, right: Any) -> Value:
    if not _are_integers(left, right):
        raise EvaluationError(_NO_OVERLOAD)
    if right == 0:
        raise EvaluationError("modulus by zero")
    if left == _SMALLEST and right == -1:
        raise EvaluationError("integer overflow")
    return _bounded(left - right * _quotient(left, right))


def negate(value: Any) -> Value:
    if _are_integers(value, value):
        return _bounded(-value)
    if isinstance(value, float):
        return -value
    raise EvaluationError(_NO_OVERLOAD)


def _are_integers(left: Value, right: Value) -> bool:
    return type(left) is int and type(right) is int


def _quotient(left: Any, right: Any) -> Any:
    """Truncated towards zero, as in Go."""
    if isinstance(left, float):
        return left / right
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


def refuse_unread(*values: Value) -> None:
    if any(isinstance(each, UnreadValue) for each in values):
        raise NotEvaluatedError("it reads a value in a form that is not implemented")


def _number(left: Any, right: Any, operation: Any) -> Value:
    refuse_unread(left, right)
    if _are_integers(left, right):
        return _bounded(operation(left, right))
    if isinstance(left, float) and isinstance(right, float):
        try:
            return float(operation(left, right))
        except OverflowError:
            raise NotEvaluatedError("a double is too large") from None
    raise EvaluationError(_NO_OVERLOAD)


def _bounded(value: int, message: str = "integer overflow") -> int:
    if not _SMALLEST <= value <= _LARGEST:
        raise EvaluationError(message)
    return value


# -- types -----------------------------------------------------------------------------------------------------------
#
# The types of expressions, and those of values by their schema (apiserver/pkg/cel/common/schemas.go).
#
# A field whose schema declares no type (x-kubernetes-preserve-unknown-fields) is not exposed to rules, and neither are
# lists and maps of such. It still counts in comparisons of the object that it is in.


_SCALARS: Final = {"integer": "int", "number": "double", "boolean": "bool", "string": "string"}
_FORMATS: Final = {"byte": "bytes", "duration": "duration", "date": "timestamp", "date-time": "timestamp"}
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPABLE: Final = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*", re.ASCII)


@dataclass(frozen=True, slots=True, eq=False)
class CelType:
    """`kind` is what type() of a value would be, or: object, dyn (of an int-or-string field), hidden (not exposed).

    `fields` are the exposed properties of an object by their escaped names, `properties` all of them by their own.
    """

    kind: str
    items: CelType | None = None  # of a list, or the values of a map
    properties: Mapping[str, CelType] = field(default_factory=dict)
    fields: Mapping[str, tuple[str, CelType]] = field(default_factory=dict)
    nullable: bool = False
    list_type: str = ""
    map_keys: tuple[str, ...] = ()
    is_resource: bool = False

    def __str__(self) -> str:
        return f"{self.kind}({self.items})" if self.items is not None else self.kind


BOOL: Final = CelType("bool")
INT: Final = CelType("int")
DOUBLE: Final = CelType("double")
STRING: Final = CelType("string")
DURATION: Final = CelType("duration")
TIMESTAMP: Final = CelType("timestamp")
QUANTITY: Final = CelType("quantity")
IP: Final = CelType("ip")
CIDR: Final = CelType("cidr")
URL: Final = CelType("url")
SEMVER: Final = CelType("semver")
FORMAT: Final = CelType("format")
NULL: Final = CelType("null_type")
TYPE: Final = CelType("type")
DYN: Final = CelType("dyn")
HIDDEN: Final = CelType("hidden")

_META: Final = {"name": STRING, "generateName": STRING}


def list_of(items: CelType) -> CelType:
    return CelType("list", items)


def map_of(values: CelType) -> CelType:
    return CelType("map", values)


def optional_of(held: CelType) -> CelType:
    return CelType("optional", held)


def type_of_schema(schema: Schema, *, is_resource: bool = False) -> CelType:
    """The type of the values that a schema describes. `is_resource` is the root of a custom resource."""
    is_resource = is_resource or bool(schema.get("x-kubernetes-embedded-resource"))
    nullable = bool(schema.get("nullable"))
    kind = schema.get("type")
    others, items = schema.get("additionalProperties"), schema.get("items")
    if schema.get("x-kubernetes-int-or-string"):
        return CelType("dyn", nullable=nullable)
    if kind == "array" and isinstance(items, Mapping):
        item = type_of_schema(items)
        return CelType(
            "hidden" if item.kind == "hidden" else "list",
            item,
            nullable=nullable,
            list_type=schema.get("x-kubernetes-list-type") or "",
            map_keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
        )
    if kind == "object" and isinstance(others, Mapping) and not is_resource:
        value = type_of_schema(others)
        return CelType("hidden" if value.kind == "hidden" else "map", value, nullable=nullable)
    if kind == "object":
        properties = {name: type_of_schema(each) for name, each in (schema.get("properties") or {}).items()}
        if is_resource:
            properties = _with_meta(properties)
        fields = {
            escaped: (name, each)
            for name, each in properties.items()
            if each.kind != "hidden" and (escaped := escape(name)) is not None
        }
        return CelType("object", properties=properties, fields=fields, nullable=nullable, is_resource=is_resource)
    if kind == "string":
        return CelType(_FORMATS.get(schema.get("format") or "", "string"), nullable=nullable)
    return CelType(_SCALARS.get(kind or "", "hidden"), nullable=nullable)


def _with_meta(properties: Mapping[str, CelType]) -> dict[str, CelType]:
    """The properties of a resource. What its schema declares of its metadata counts only with both names."""
    meta = properties.get("metadata", HIDDEN)
    declared = {name: properties.get(name, HIDDEN).kind for name in ("kind", "apiVersion")}
    names = {name: meta.properties.get(name, HIDDEN).kind for name in _META}
    if meta.kind == "object" and {*declared.values(), *names.values()} == {"string"}:
        return dict(properties)
    return {**properties, "kind": STRING, "apiVersion": STRING, "metadata": _METADATA}


_METADATA: Final = CelType("object", properties=_META, fields={name: (name, each) for name, each in _META.items()})


def escape(name: str) -> str | None:
    """The name of a property in rules (apiserver/pkg/cel/escaping.go), or None if rules cannot name it."""
    if name in RESERVED:
        return f"__{name}__"
    if not _ESCAPABLE.fullmatch(name):
        return None
    return re.sub(r"__|[-./]", lambda match: _ESCAPES[match[0]], name)


def has_resource(type_: CelType) -> bool:
    """Whether a value of the type may contain the metadata of a resource."""
    inner: tuple[CelType, ...] = (*type_.properties.values(), *((type_.items,) if type_.items is not None else ()))
    return type_.is_resource or any(has_resource(each) for each in inner)


def mismatch(first: CelType, second: CelType) -> bool | None:
    """Whether the server would say that two types differ; None if that is not known."""
    kinds = {first.kind, second.kind}
    if first is second or "dyn" in kinds:
        return False
    if kinds == {"null_type"} or ("null_type" in kinds and kinds & {"object", "duration", "timestamp", "quantity"}):
        return False
    if kinds == {"object"}:
        return None  # types of two places in a schema
    if len(kinds) == 1:
        if first.items is None or second.items is None:
            return False
        return mismatch(first.items, second.items)
    return None if "hidden" in kinds else True
