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

Rare formats are not checked. Rules in CEL (x-kubernetes-validations) are the subject of `ruleop.schema.cel`.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import ipaddress
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ruleop.schema.nearest import did_you_mean
from ruleop.schema.pattern import InvalidPatternError, compile_pattern
from ruleop.schema.schema_findings import FieldPath, SchemaFinding

if TYPE_CHECKING:
    from ruleop.kinds import JSON, Object
    from ruleop.schema.openapi import Schema

_LARGEST_EXACT_FLOAT = 2.0**53 - 1
_INTEGER_BITS = {"int32": 31, "int64": 63}
_ARTICLES = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
}


def validate(obj: Object, schema: Schema) -> list[SchemaFinding]:
    """All problems of a custom resource that is pruned and defaulted, in the order of the document."""
    return list(_value_findings(obj, schema, ()))


def subschemas(schema: Schema) -> Iterator[tuple[FieldPath, Schema]]:
    """The schemas directly inside a schema, each with the path that leads to it."""
    for name, sub in (schema.get("properties") or {}).items():
        yield ("properties", name), sub
    for keyword in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(keyword), Mapping):
            yield (keyword,), schema[keyword]
    for keyword in ("allOf", "anyOf", "oneOf"):
        for index, sub in enumerate(schema.get(keyword) or ()):
            yield (keyword, index), sub


def _value_findings(value: JSON, schema: Schema, path: FieldPath) -> Iterator[SchemaFinding]:
    allowed = (
        ("integer", "string") if schema.get("x-kubernetes-int-or-string") else tuple(filter(None, [schema.get("type")]))
    )
    if value is None:
        if allowed and not schema.get("nullable"):
            yield SchemaFinding(path, f"must be {_format_types(allowed)}, not null")
        if schema.get("enum"):
            yield SchemaFinding(path, f"must be one of {_format_members(schema['enum'])}, not null")
        return
    if allowed and not any(_is_type(value, name) for name in allowed) and not _is_list_with_format(value, schema):
        yield SchemaFinding(path, f"must be {_format_types(allowed)}, not {format_value(value)}")
        return
    if schema.get("enum") and not any(_equals_member(value, member) for member in schema["enum"]):
        hint = (
            did_you_mean(value, [member for member in schema["enum"] if isinstance(member, str)])
            if isinstance(value, str)
            else ""
        )
        yield SchemaFinding(path, f"must be one of {_format_members(schema['enum'])}, not {format_value(value)}{hint}")
    if isinstance(value, Mapping):
        yield from _object_findings(value, schema, path)
    elif isinstance(value, list):
        yield from _list_findings(value, schema, path)
    elif isinstance(value, str):
        yield from _string_findings(value, schema, path)
    elif _is_type(value, "number"):
        yield from _number_findings(value, schema, path)
    yield from _junction_findings(value, schema, path)


def _object_findings(value: Mapping[str, Any], schema: Schema, path: FieldPath) -> Iterator[SchemaFinding]:
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    for name in schema.get("required") or ():
        if name not in value:
            yield SchemaFinding((*path, name), "is required")
    yield from _size_findings(len(value), schema, path, keywords=("minProperties", "maxProperties"), unit="fields")
    for name, member in value.items():
        if name in properties:
            yield from _value_findings(member, properties[name], (*path, name))
        elif isinstance(others, Mapping):
            yield from _value_findings(member, others, (*path, name))
        elif others is False:
            yield SchemaFinding((*path, name), f"is an unknown field{did_you_mean(name, properties)}")


def _list_findings(value: list[Any], schema: Schema, path: FieldPath) -> Iterator[SchemaFinding]:
    yield from _size_findings(len(value), schema, path, keywords=("minItems", "maxItems"), unit="items")
    items = schema.get("items")
    if isinstance(items, Mapping):
        for index, item in enumerate(value):
            yield from _value_findings(item, items, (*path, index))
    if schema.get("uniqueItems") or schema.get("x-kubernetes-list-type") == "set":
        for index, earlier in _repeated_indexes([_canonical(item) for item in value]):
            yield SchemaFinding((*path, index), f"repeats item {earlier}, but each may occur only once")
    if schema.get("x-kubernetes-list-type") == "map":
        yield from _map_key_findings(value, tuple(schema.get("x-kubernetes-list-map-keys") or ()), path)


def _map_key_findings(value: list[Any], keys: tuple[str, ...], path: FieldPath) -> Iterator[SchemaFinding]:
    item_keys: list[dict[str, Any]] = [
        {key: item[key] for key in keys if key in item} if isinstance(item, Mapping) else {} for item in value
    ]
    for index, earlier in _repeated_indexes([_canonical(key) for key in item_keys]):
        named = (
            ", ".join(f"{name} {format_value(member)}" for name, member in item_keys[index].items())
            or f"no {' and no '.join(keys)}"
        )
        yield SchemaFinding((*path, index), f"has the same key as item {earlier}: {named}")


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


def _string_findings(value: str, schema: Schema, path: FieldPath) -> Iterator[SchemaFinding]:
    yield from _size_findings(len(value), schema, path, keywords=("minLength", "maxLength"), unit="characters")
    pattern = schema.get("pattern")
    if pattern:
        try:
            matches = compile_pattern(pattern)
        except InvalidPatternError as error:
            yield SchemaFinding(path, f"the pattern {pattern!r} of the schema is invalid: {error}")
        else:
            if not matches(value):
                yield SchemaFinding(path, f"must match {pattern!r}")
    check = _FORMATS.get(str(schema.get("format", "")).replace("-", ""))
    if check is not None and schema.get("type", "string") == "string" and not check(value):
        yield SchemaFinding(path, f"must be a {schema['format']}, not {format_value(value)}")


def _number_findings(value: float, schema: Schema, path: FieldPath) -> Iterator[SchemaFinding]:
    if schema.get("type") == "integer":
        bits = _INTEGER_BITS.get(schema.get("format", ""), 63)
        if not -(2**bits) <= value < 2**bits:
            yield SchemaFinding(path, f"must fit in int{bits + 1}")
    limits = {
        keyword: schema[keyword] for keyword in ("minimum", "maximum", "multipleOf") if schema.get(keyword) is not None
    }
    for keyword, given in limits.items():
        if schema.get("type") == "integer" and not float(given).is_integer():
            yield SchemaFinding(path, f"cannot be valid: the schema's {keyword} is {given}, which is not an integer")
            continue
        limit = int(given) if isinstance(value, int) else given
        exclusive = schema.get(f"exclusive{keyword.capitalize()}") is True
        if keyword == "minimum" and (value <= limit if exclusive else value < limit):
            yield SchemaFinding(path, f"must be {'more than' if exclusive else 'at least'} {limit}, not {value}")
        elif keyword == "maximum" and (value >= limit if exclusive else value > limit):
            yield SchemaFinding(path, f"must be {'less than' if exclusive else 'at most'} {limit}, not {value}")
        elif keyword == "multipleOf" and not _is_multiple(value, limit):
            yield SchemaFinding(path, f"must be a multiple of {given}, not {value}")


def _size_findings(
    size: int, schema: Schema, path: FieldPath, *, keywords: tuple[str, str], unit: str
) -> Iterator[SchemaFinding]:
    minimum, maximum = schema.get(keywords[0]), schema.get(keywords[1])
    if minimum is not None and size < minimum:
        yield SchemaFinding(path, f"must have at least {minimum:g} {unit}, not {size}")
    if maximum is not None and size > maximum:
        yield SchemaFinding(path, f"must have at most {maximum:g} {unit}, not {size}")


def _junction_findings(value: JSON, schema: Schema, path: FieldPath) -> Iterator[SchemaFinding]:
    for sub in schema.get("allOf") or ():
        yield from _value_findings(value, sub, path)
    if schema.get("anyOf"):
        tried = [list(_value_findings(value, sub, path)) for sub in schema["anyOf"]]
        if all(tried):
            yield SchemaFinding(
                path,
                f"must match at least one of {len(tried)} alternatives; the nearest: {_nearest_alternative(tried)}",
            )
    if schema.get("oneOf"):
        tried = [list(_value_findings(value, sub, path)) for sub in schema["oneOf"]]
        fitting = [index for index, findings in enumerate(tried) if not findings]
        if not fitting:
            yield SchemaFinding(
                path, f"must match exactly one of {len(tried)} alternatives; the nearest: {_nearest_alternative(tried)}"
            )
        elif len(fitting) > 1:
            yield SchemaFinding(
                path, f"must match exactly one of {len(tried)} alternatives, but matches {len(fitting)}"
            )
    if schema.get("not") is not None and not any(_value_findings(value, schema["not"], path)):
        yield SchemaFinding(path, "must not match the schema in `not`")


def _nearest_alternative(tried: list[list[SchemaFinding]]) -> str:
    return str(min(tried, key=len)[0])


def _is_list_with_format(value: JSON, schema: Schema) -> bool:
    """Whether the value is a list where a string format is declared: the server does not check the type of such a
    list."""
    return isinstance(value, list) and str(schema.get("format")).replace("-", "") in _FORMATS


def _is_type(value: JSON, name: str) -> bool:
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


def _format_types(names: tuple[str, ...]) -> str:
    return " or ".join(_ARTICLES.get(name, name) for name in names)


def _format_members(members: list[Any]) -> str:
    return ", ".join(json.dumps(member, ensure_ascii=False) for member in members)


def format_value(value: JSON) -> str:
    """A value for a message: a short one as it is, otherwise its type."""
    for name in ("object", "array"):
        if _is_type(value, name):
            return _ARTICLES[name]
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else "a long string"


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


# By the format's name without dashes, as the server compares them. Other formats are not checked.
_FORMATS: Mapping[str, Callable[[str], bool]] = {
    "datetime": _is_date_time,
    "date": _is_date,
    "byte": _is_base64,
    "ipv4": _is_parsed_by(ipaddress.IPv4Address),
    "ipv6": _is_parsed_by(ipaddress.IPv6Address),
    "cidr": _is_parsed_by(_parse_cidr),
    "uuid": lambda text: _UUID.match(text) is not None,
}
