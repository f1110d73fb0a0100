"""Validation of custom resources against the schema of their CRD, as the API server does it.

A port of kube-openapi's validator, for the keywords in common use. Where JSON Schema and the API server differ, this
follows the server:

- 1.0 and 1e3 are integers: the server decodes them as floats and tests whether they are whole and exact (below 2**53).
  An integer beyond 64 bits is not. True and False are never numbers, for any keyword.
- null needs `nullable`, and never matches an `enum`, even if null is in it.
- for whole numbers, limits are truncated to whole numbers, so `multipleOf: 0.5` becomes `multipleOf: 0`, which no
  number satisfies; and with `type: integer`, a limit that is not whole rejects every value.
- a keyword for another type than the value's does not apply: `minLength` does not restrict numbers.
- required means that the key is present.

Rare formats are not checked. Rules in CEL (x-kubernetes-validations) are the subject of `ruleop.kubernetes.cel`."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import functools
import ipaddress
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ruleop.errors import RuleopError
from ruleop.messages import format_path
from ruleop.nearest import did_you_mean
from ruleop.patterns import InvalidPatternError, compile_re2
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sized

    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.kubernetes.schema.shape import FieldPath, Schema, Shape


@dataclass(frozen=True, slots=True)
class SchemaFinding:
    """One problem in a parsed document. The loader of a file turns the path into a file, a line and a column."""

    path: FieldPath
    message: str

    @property
    def location(self) -> str:
        return format_path(self.path)

    def __str__(self) -> str:
        return f"{self.location}: {self.message}" if self.path else self.message


class SchemaError(RuleopError):
    """A document that cannot be parsed. Holds the finding, so that the loader of the file can add its line."""

    def __init__(self, path: FieldPath, message: str) -> None:
        self.finding = SchemaFinding(path, message)
        super().__init__(str(self.finding))


# -- values that a schema does not allow -----------------------------------------------------------------------------

_LARGEST_EXACT_FLOAT = 2.0**53 - 1
_NEW: Final[Any] = object()  # a value that no earlier version has
_INTEGER_BITS = {"int32": 31, "int64": 63}
_PLAIN: Final[Mapping[Any, type]] = {"string": str, "boolean": bool}
_SILENT: Final = frozenset({"type", "nullable", "default", "description", "title", "example"})
"""Keywords of a schema that allows all values of its type."""


def validate(obj: Object, schema: Schema) -> list[SchemaFinding]:
    """All problems of a custom resource that is pruned and defaulted, in words for authors."""
    return findings(violations(obj, schema))


def violations(obj: Object, schema: Schema, old: Object | None = None) -> Iterator[Violation]:
    """The values that the schema does not allow, in the order in which the server reports them; without those that an
    update leaves as they were."""
    return _value(obj, schema, (), _NEW if old is None else old)


def subschemas(schema: Schema) -> Iterator[tuple[FieldPath, Schema]]:
    """The schemas directly inside a schema, each with the path that leads to it. A keyword of another form has none."""
    properties = schema.get("properties")
    for name, sub in properties.items() if isinstance(properties, Mapping) else ():
        yield ("properties", name), sub
    for keyword in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(keyword), Mapping):
            yield (keyword,), schema[keyword]
    for keyword in ("allOf", "anyOf", "oneOf"):
        branches = schema.get(keyword)
        for index, sub in enumerate(branches if isinstance(branches, (list, tuple)) else ()):
            yield (keyword, index), sub


def _value(value: JSON, schema: Schema, path: FieldPath, old: JSON) -> Iterator[Violation]:
    """`old` is the value before an update, or `_NEW`."""
    if old is not _NEW and _is_unchanged(value, old):
        return
    allowed = types_of(schema)
    is_mistyped = bool(allowed) and (
        not schema.get("nullable")
        if value is None
        else not any(is_type(value, name) for name in allowed) and not _is_list_with_format(value, schema)
    )
    if is_mistyped:
        yield Violation(path, "type", value, schema)
    elif isinstance(value, Mapping):
        yield from _object(value, schema, path, old if isinstance(old, Mapping) else {})
    elif isinstance(value, list):
        yield from _list(value, schema, path, old if isinstance(old, list) else [])
    elif isinstance(value, str):
        yield from _string(value, schema, path)
    elif is_type(value, "number"):
        yield from _number(value, schema, path)
    if schema.get("enum") and (value is None or not any(_equals_member(value, each) for each in schema["enum"])):
        yield Violation(path, "enum", value, schema)
    if not is_mistyped and value is not None:
        yield from _junctions(value, schema, path, old)


def _object(value: Mapping[str, Any], schema: Schema, path: FieldPath, old: Mapping[str, Any]) -> Iterator[Violation]:
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    yield from _sizes(value, schema, path, ("minProperties", "maxProperties"))
    for name in schema.get("required") or ():
        if name not in value:
            yield Violation((*path, name), "required", None, schema)
    for name, member in value.items():
        if name in properties:
            inner = properties[name]
            if not (_PLAIN.get(inner.get("type")) is type(member) and inner.keys() <= _SILENT):
                yield from _value(member, inner, (*path, name), old.get(name, _NEW))
        elif isinstance(others, Mapping):
            yield from _value(member, others, (*path, name), old.get(name, _NEW))
        elif others is False:
            yield Violation((*path, name), "additionalProperties", member, schema)


def _list(value: list[Any], schema: Schema, path: FieldPath, old: list[Any]) -> Iterator[Violation]:
    yield from _sizes(value, schema, path, ("minItems", "maxItems"))
    items, kind, keys = schema.get("items"), schema.get(LIST_TYPE), tuple(schema.get(LIST_KEYS) or ())
    is_map = kind == "map"
    if isinstance(items, Mapping):
        before = {_identity(each, keys): each for each in old} if is_map and old else {}
        for index, item in enumerate(value):
            known = before.get(_identity(item, keys), _NEW) if before else _NEW
            yield from _value(item, items, (*path, index), known)
    for index, item in enumerate(value if is_map else ()):
        if item is not None and not isinstance(item, Mapping):
            yield Violation((*path, index), LIST_TYPE, item, schema)
            return
    if is_map or kind == "set" or schema.get("uniqueItems"):
        keyword = LIST_KEYS if is_map else LIST_TYPE if kind == "set" else "uniqueItems"
        for index, earlier in _repeated_indexes([_identity(item, keys if is_map else ()) for item in value]):
            yield Violation((*path, index), keyword, value[index], schema, earlier)


def _identity(item: JSON, keys: tuple[str, ...]) -> str:
    """The same text for items of a set, or of a list with keys, that the server considers equal."""
    return _canonical({key: item[key] for key in keys if key in item} if keys and isinstance(item, Mapping) else item)


def _repeated_indexes(canonical: list[str]) -> Iterator[tuple[int, int]]:
    """The indexes of the second and the first occurrence of each repeated item. Like the server, this ignores further
    ones."""
    first: dict[str, int] = {}
    reported: set[str] = set()
    for index, item in enumerate(canonical):
        earlier = first.setdefault(item, index)
        if earlier != index and item not in reported:
            reported.add(item)
            yield index, earlier


def _string(value: str, schema: Schema, path: FieldPath) -> Iterator[Violation]:
    yield from _sizes(value, schema, path, ("minLength", "maxLength"))
    if pattern := schema.get("pattern"):
        try:
            if not compile_pattern(pattern)(value):
                yield Violation(path, "pattern", value, schema)
        except InvalidPatternError as error:
            yield Violation(path, "pattern", value, schema, str(error))
    check = FORMATS.get(str(schema.get("format", "")).replace("-", ""))
    if check is not None and schema.get("type", "string") == "string" and not check(value):
        yield Violation(path, "format", value, schema)


def _number(value: float, schema: Schema, path: FieldPath) -> Iterator[Violation]:
    is_integer = schema.get("type") == "integer"
    if is_integer:
        bits = _INTEGER_BITS.get(schema.get("format", ""), 63)
        if not -(2**bits) <= value < 2**bits:
            yield Violation(path, "bits", value, schema, bits + 1)
    for keyword, is_within in _LIMITS.items():
        given = schema.get(keyword)
        if given is None:
            continue
        limit = int(given) if isinstance(value, int) else given
        if is_integer and not float(given).is_integer():
            yield Violation(path, keyword, value, schema)
        elif not is_within(value, limit, schema.get(f"exclusive{keyword.capitalize()}") is True):
            yield Violation(path, keyword, value, schema, limit)


def _sizes(value: Sized, schema: Schema, path: FieldPath, keywords: tuple[str, str]) -> Iterator[Violation]:
    size, (least, most) = len(value), map(schema.get, keywords)
    if least is not None and size < least:
        yield Violation(path, keywords[0], value, schema, size)
    if most is not None and size > most:
        yield Violation(path, keywords[1], value, schema, size)


def _junctions(value: JSON, schema: Schema, path: FieldPath, old: JSON) -> Iterator[Violation]:
    """An update that changes a value leaves some fields of it as they were; only `allOf` excuses these."""
    for sub in schema.get("allOf") or ():
        yield from _value(value, sub, path, old)
    for keyword in ("anyOf", "oneOf"):
        if alternatives := schema.get(keyword):
            tried = [list(_value(value, sub, path, _NEW)) for sub in alternatives]
            fitting = sum(not each for each in tried)
            if fitting != 1 and (keyword == "oneOf" or not fitting):
                yield Violation(path, keyword, value, schema, tried)
    if schema.get("not") is not None and not any(_value(value, schema["not"], path, _NEW)):
        yield Violation(path, "not", value, schema)


def _is_list_with_format(value: JSON, schema: Schema) -> bool:
    """Whether the value is a list where a string format is declared: the server does not check the type of such a
    list."""
    return isinstance(value, list) and str(schema.get("format")).replace("-", "") in FORMATS


def is_type(value: JSON, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if isinstance(value, int):
        return name in ("integer", "number") if -(2**63) <= value < 2**63 else name == "number"
    if isinstance(value, float):
        return name == "number" or (name == "integer" and value.is_integer() and abs(value) <= _LARGEST_EXACT_FLOAT)
    if isinstance(value, str):
        return name == "string"
    if isinstance(value, list):
        return name == "array"
    return isinstance(value, Mapping) and name == "object"


def _equals_member(value: JSON, member: JSON) -> bool:
    """Equality as on the server, which converts the value to the member's type first: 1 and 1.0 are equal, and so are
    1.5 and 1; True and 1 are not. A number equals the character with that code."""
    if isinstance(value, bool) or isinstance(member, bool):
        return value is member
    if isinstance(value, float) and isinstance(member, int):
        return math.isfinite(value) and math.trunc(value) == member
    if isinstance(value, int) and isinstance(member, str):
        return len(member) == 1 and ord(member) == value
    return bool(value == member)


def _is_multiple(value: float, factor: float) -> bool:
    if factor <= 0:
        return False
    if isinstance(value, int):
        return value % factor == 0
    # 0.3 is three times 0.1, but not in floats; the tolerance is the server's.
    times = value / factor
    return math.isclose(times, round(times), rel_tol=1e-9, abs_tol=0.0)


def _canonical(item: JSON) -> str:
    """The same text for values that the server considers equal. It compares numbers with their types, and everything
    else as JSON, in which 1.0 is written 1."""
    return json.dumps(_as_written(item) if isinstance(item, list | Mapping) else item, sort_keys=True)


def _as_written(value: JSON) -> JSON:
    if isinstance(value, Mapping):
        return {name: _as_written(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_as_written(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_unchanged(new: JSON, old: JSON) -> bool:
    return new is old or (new == old and _canonical(new) == _canonical(old))


_LIMITS: Final[Mapping[str, Callable[[float, float, bool], bool]]] = {
    "maximum": lambda value, limit, exclusive: value < limit if exclusive else value <= limit,
    "minimum": lambda value, limit, exclusive: value > limit if exclusive else value >= limit,
    "multipleOf": lambda value, limit, _: _is_multiple(value, limit),
}


# -- unknown fields --------------------------------------------------------------------------------------------------


def unknown_to_shape(obj: Object, shape: Shape) -> list[SchemaFinding]:
    """The fields of an object that its kind does not have, each with the name that was probably meant. The API server
    rejects them under strict field validation, and drops them otherwise."""
    return list(_unknown_fields(obj, shape, ()))


def _unknown_fields(value: JSON, shape: Shape | None, path: FieldPath) -> Iterator[SchemaFinding]:
    if shape is None:
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown_fields(item, shape.items, (*path, index))
    elif isinstance(value, Mapping) and shape.type == "object":
        for name, member in value.items():
            if name in shape.fields:
                yield from _unknown_fields(member, shape.fields[name], (*path, name))
            elif shape.values is not None:
                yield from _unknown_fields(member, shape.values, (*path, name))
            elif not shape.preserve_unknown:
                yield SchemaFinding((*path, name), f"is an unknown field{did_you_mean(name, shape.fields)}")


# -- words for authors of rules and custom resources -----------------------------------------------------------------

LIST_TYPE: Final = "x-kubernetes-list-type"
LIST_KEYS: Final = "x-kubernetes-list-map-keys"
_ARTICLES: Final = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
}
_OF_MISTYPED: Final = ("enum", LIST_TYPE)
"""Keywords that the server checks for a value of the wrong type, too."""


@dataclass(frozen=True, slots=True)
class Violation:
    path: FieldPath
    keyword: str
    value: JSON
    schema: Schema
    detail: Any = None
    """Details that the check found: the earlier one of two equal items, the violations of each alternative."""

    @property
    def expected(self) -> Any:
        return self.schema.get(self.keyword)

    @property
    def types(self) -> tuple[str, ...]:
        return types_of(self.schema)


def types_of(schema: Schema) -> tuple[str, ...]:
    """The types that a schema allows; none if it allows all."""
    if schema.get("x-kubernetes-int-or-string"):
        return "integer", "string"
    return (schema["type"],) if schema.get("type") else ()


def findings(violations: Iterable[Violation]) -> list[SchemaFinding]:
    """The violations in words. One of the type of a value hides others of the same value."""
    found, mistyped = [], set[tuple[str | int, ...]]()
    for each in violations:
        if each.keyword == "type":
            mistyped.add(each.path)
        if each.keyword not in _OF_MISTYPED or each.path not in mistyped:
            found.append(SchemaFinding(each.path, describe(each)))
    return found


def describe(violation: Violation) -> str:
    return _WORDS[violation.keyword](violation)


def format_value(value: JSON) -> str:
    """A value for a message: a short one as it is, otherwise its type."""
    if isinstance(value, list | Mapping):
        return _ARTICLES["array" if isinstance(value, list) else "object"]
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else "a long string"


def _type(found: Violation) -> str:
    return f"must be {' or '.join(_ARTICLES.get(each, each) for each in found.types)}, not {format_value(found.value)}"


def _enum(found: Violation) -> str:
    value, members = found.value, found.expected
    listed = ", ".join(json.dumps(member, ensure_ascii=False) for member in members)
    texts = [member for member in members if isinstance(member, str)]
    hint = did_you_mean(value, texts) if isinstance(value, str) else ""
    return f"must be one of {listed}, not {format_value(value)}{hint}"


def _unknown(found: Violation) -> str:
    return f"is an unknown field{did_you_mean(str(found.path[-1]), found.schema.get('properties') or {})}"


def _size(how: str, unit: str) -> Callable[[Violation], str]:
    return lambda found: f"must have {how} {found.expected:g} {unit}, not {found.detail}"


def _limit(inclusive: str, exclusive: str) -> Callable[[Violation], str]:
    def words(found: Violation) -> str:
        if found.detail is None:
            return _impossible(found)
        how = exclusive if found.schema.get(f"exclusive{found.keyword.capitalize()}") is True else inclusive
        return f"must be {how} {found.detail}, not {found.value}"

    return words


def _multiple(found: Violation) -> str:
    if found.detail is None:
        return _impossible(found)
    return f"must be a multiple of {found.expected}, not {found.value}"


def _impossible(found: Violation) -> str:
    return f"cannot be valid: the schema's {found.keyword} is {found.expected}, which is not an integer"


def _pattern(found: Violation) -> str:
    if found.detail is not None:
        return f"the pattern {found.expected!r} of the schema is invalid: {found.detail}"
    return f"must match {found.expected!r}"


def _repeated(found: Violation) -> str:
    return f"repeats item {found.detail}, but each may occur only once"


def _repeated_key(found: Violation) -> str:
    keys, item = found.expected or (), found.value if isinstance(found.value, Mapping) else {}
    named = (
        ", ".join(f"{key} {format_value(item[key])}" for key in keys if key in item) or f"no {' and no '.join(keys)}"
    )
    return f"has the same key as item {found.detail}: {named}"


def _list_type(found: Violation) -> str:
    return "must be an object: the list has keys" if found.detail is None else _repeated(found)


def _any_of(found: Violation) -> str:
    return f"must match at least one of {len(found.detail)} alternatives; the nearest: {_nearest(found.detail)}"


def _one_of(found: Violation) -> str:
    fitting = sum(not each for each in found.detail)
    text = f"must match exactly one of {len(found.detail)} alternatives"
    return f"{text}, but matches {fitting}" if fitting else f"{text}; the nearest: {_nearest(found.detail)}"


def _nearest(tried: list[list[Violation]]) -> str:
    return str(min(map(findings, tried), key=len)[0])


_WORDS: Final[Mapping[str, Callable[[Violation], str]]] = {
    "type": _type,
    "enum": _enum,
    "required": lambda _: "is required",
    "additionalProperties": _unknown,
    "minProperties": _size("at least", "fields"),
    "maxProperties": _size("at most", "fields"),
    "minItems": _size("at least", "items"),
    "maxItems": _size("at most", "items"),
    "minLength": _size("at least", "characters"),
    "maxLength": _size("at most", "characters"),
    "uniqueItems": _repeated,
    LIST_TYPE: _list_type,
    LIST_KEYS: _repeated_key,
    "pattern": _pattern,
    "format": lambda found: f"must be a {found.expected}, not {format_value(found.value)}",
    "bits": lambda found: f"must fit in int{found.detail}",
    "minimum": _limit("at least", "more than"),
    "maximum": _limit("at most", "less than"),
    "multipleOf": _multiple,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": lambda _: "must not match the schema in `not`",
}


# -- formats and patterns of strings ---------------------------------------------------------------------------------
#
# A `pattern` is a regular expression in RE2 syntax, which the API server's engine (Go's) also has. The time of a match
# is linear in the text, whatever the pattern.


def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Returns a function that tests whether a text contains a match. Raises InvalidPatternError."""
    search = _compiled(pattern).search

    def matches(text: str) -> bool:
        try:
            return search(text) is not None
        except UnicodeEncodeError:  # half of a surrogate pair, which the API server rejects as well
            return False

    return matches


def find_spans(pattern: str, text: str) -> Iterator[tuple[int, int]]:
    """Where the matches begin and end, empty ones too. Raises InvalidPatternError."""
    return (match.span() for match in _compiled(pattern).finditer(text))


_compiled: Final = functools.lru_cache(maxsize=256)(compile_re2)


# Python's own parser also takes 20260228 and 2026-W01-1.
_DATE = re.compile(r"\d{4}-\d\d-\d\d\Z", re.ASCII)
_DATE_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[Tt](?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)\Z",
    re.ASCII,
)
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\Z", re.IGNORECASE | re.ASCII)


def _is_date(text: str) -> bool:
    try:
        return _DATE.match(text) is not None and bool(dt.date.fromisoformat(text))
    except ValueError:
        return False


def _is_date_time(text: str) -> bool:
    match = _DATE_TIME.match(text)
    return (
        match is not None
        and _is_date(text[:10])
        and match["hour"] <= "23"
        and match["minute"] <= "59"
        and match["second"] <= "59"
    )


def _is_base64(text: str) -> bool:
    try:
        return bool(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        return False


def _is_parsed_by(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


def _parse_cidr(text: str) -> object:
    if "/" not in text:
        raise ValueError(text)
    return ipaddress.ip_interface(text)


FORMATS: Mapping[str, Callable[[str], bool]] = {
    "datetime": _is_date_time,
    "date": _is_date,
    "byte": _is_base64,
    "ipv4": _is_parsed_by(ipaddress.IPv4Address),
    "ipv6": _is_parsed_by(ipaddress.IPv6Address),
    "cidr": _is_parsed_by(_parse_cidr),
    "uuid": lambda text: _UUID.match(text) is not None,
}
"""The checks of formats by their names without dashes, as the server compares them. Other formats are not checked."""
