"""What the API server would say about a custom resource: its values against the keywords of the CRD's schema.

A port of kube-openapi's validator as far as people use it. Where JSON Schema in general and the API server differ, the server is right:

- 1.0 and 1e3 are integers: the server decodes them as floats and asks whether they are whole and exact (below 2**53). An integer beyond 64
  bits is none. True and False are never numbers, for any keyword.
- null needs `nullable`, and never satisfies an `enum`, not even one that lists it.
- a whole number is compared with limits cut to whole numbers, so `multipleOf: 0.5` is `multipleOf: 0` to it, which nothing fits; and
  beside `type: integer`, a limit that is not whole refuses every value.
- a keyword for another type than the value's does not apply: `minLength` says nothing of a number.
- required means that the key is there.

Rules in CEL (x-kubernetes-validations) and rare formats are not checked here.
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

from ruleop.schema.findings import Finding, Path
from ruleop.schema.nearest import did_you_mean
from ruleop.schema.pattern import InvalidPatternError, compile_pattern

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


def validate(obj: Object, schema: Schema) -> list[Finding]:
    """All that is wrong with a custom resource (pruned and defaulted before, as the server does), in the order of the document."""
    return list(_value(obj, schema, ()))


def subschemas(schema: Schema) -> Iterator[tuple[Path, Schema]]:
    """The schemas directly inside a schema, each with the path that leads to it."""
    for name, sub in (schema.get("properties") or {}).items():
        yield ("properties", name), sub
    for keyword in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(keyword), Mapping):
            yield (keyword,), schema[keyword]
    for keyword in ("allOf", "anyOf", "oneOf"):
        for index, sub in enumerate(schema.get(keyword) or ()):
            yield (keyword, index), sub


def _value(value: JSON, schema: Schema, path: Path) -> Iterator[Finding]:
    allowed = ("integer", "string") if schema.get("x-kubernetes-int-or-string") else tuple(filter(None, [schema.get("type")]))
    if value is None:
        if allowed and not schema.get("nullable"):
            yield Finding(path, f"must be {_either(allowed)}, not null")
        if schema.get("enum"):
            yield Finding(path, f"must be one of {_listed(schema['enum'])}, not null")
        return
    if allowed and not any(_is(value, name) for name in allowed) and not _passes_for_format(value, schema):
        yield Finding(path, f"must be {_either(allowed)}, not {_shown(value)}")
        return
    if schema.get("enum") and not any(_same(value, member) for member in schema["enum"]):
        hint = did_you_mean(value, [member for member in schema["enum"] if isinstance(member, str)]) if isinstance(value, str) else ""
        yield Finding(path, f"must be one of {_listed(schema['enum'])}, not {_shown(value)}{hint}")
    if isinstance(value, Mapping):
        yield from _object(value, schema, path)
    elif isinstance(value, list):
        yield from _list(value, schema, path)
    elif isinstance(value, str):
        yield from _string(value, schema, path)
    elif _is(value, "number"):
        yield from _number(value, schema, path)
    yield from _junctions(value, schema, path)


def _object(value: Mapping[str, Any], schema: Schema, path: Path) -> Iterator[Finding]:
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    for name in schema.get("required") or ():
        if name not in value:
            yield Finding((*path, name), "is required")
    yield from _bounds(len(value), schema, path, keywords=("minProperties", "maxProperties"), unit="fields")
    for name, member in value.items():
        if name in properties:
            yield from _value(member, properties[name], (*path, name))
        elif isinstance(others, Mapping):
            yield from _value(member, others, (*path, name))
        elif others is False:
            yield Finding((*path, name), f"is not a field here{did_you_mean(name, properties)}")


def _list(value: list[Any], schema: Schema, path: Path) -> Iterator[Finding]:
    yield from _bounds(len(value), schema, path, keywords=("minItems", "maxItems"), unit="items")
    items = schema.get("items")
    if isinstance(items, Mapping):
        for index, item in enumerate(value):
            yield from _value(item, items, (*path, index))
    if schema.get("uniqueItems") or schema.get("x-kubernetes-list-type") == "set":
        for index, earlier in _repeated([_canonical(item) for item in value]):
            yield Finding((*path, index), f"repeats item {earlier}; each may occur once")
    if schema.get("x-kubernetes-list-type") == "map":
        yield from _map_keys(value, tuple(schema.get("x-kubernetes-list-map-keys") or ()), path)


def _map_keys(value: list[Any], keys: tuple[str, ...], path: Path) -> Iterator[Finding]:
    wanted: list[dict[str, Any]] = [{key: item[key] for key in keys if key in item} if isinstance(item, Mapping) else {} for item in value]
    for index, earlier in _repeated([_canonical(key) for key in wanted]):
        named = ", ".join(f"{name} {_shown(member)}" for name, member in wanted[index].items()) or f"no {' and no '.join(keys)}"
        yield Finding((*path, index), f"has the same key as item {earlier}: {named}")


def _repeated(canonical: list[str]) -> Iterator[tuple[int, int]]:
    """The second of each, as the server does it, and the first."""
    first: dict[str, int] = {}
    told: set[str] = set()
    for index, item in enumerate(canonical):
        earlier = first.setdefault(item, index)
        if earlier != index and item not in told:
            told.add(item)
            yield index, earlier


def _string(value: str, schema: Schema, path: Path) -> Iterator[Finding]:
    yield from _bounds(len(value), schema, path, keywords=("minLength", "maxLength"), unit="characters")
    pattern = schema.get("pattern")
    if pattern:
        try:
            matches = compile_pattern(pattern)
        except InvalidPatternError as error:
            yield Finding(path, f"cannot match {pattern!r}, because {error}")
        else:
            if not matches(value):
                yield Finding(path, f"must match {pattern!r}")
    check = _FORMATS.get(str(schema.get("format", "")).replace("-", ""))
    if check is not None and schema.get("type", "string") == "string" and not check(value):
        yield Finding(path, f"must be a {schema['format']}, not {_shown(value)}")


def _number(value: float, schema: Schema, path: Path) -> Iterator[Finding]:
    if schema.get("type") == "integer":
        bits = _INTEGER_BITS.get(schema.get("format", ""), 63)
        if not -(2**bits) <= value < 2**bits:
            yield Finding(path, f"must fit into int{bits + 1}")
    limits = {keyword: schema[keyword] for keyword in ("minimum", "maximum", "multipleOf") if schema.get(keyword) is not None}
    for keyword, given in limits.items():
        if schema.get("type") == "integer" and not float(given).is_integer():
            yield Finding(path, f"cannot be valid: the schema's {keyword} is {given}, which is no integer")
            continue
        limit = int(given) if isinstance(value, int) else given
        exclusive = schema.get(f"exclusive{keyword.capitalize()}") is True
        if keyword == "minimum" and (value <= limit if exclusive else value < limit):
            yield Finding(path, f"must be {'more than' if exclusive else 'at least'} {limit}, not {value}")
        elif keyword == "maximum" and (value >= limit if exclusive else value > limit):
            yield Finding(path, f"must be {'less than' if exclusive else 'at most'} {limit}, not {value}")
        elif keyword == "multipleOf" and not _is_multiple(value, limit):
            yield Finding(path, f"must be a multiple of {given}, not {value}")


def _bounds(size: int, schema: Schema, path: Path, *, keywords: tuple[str, str], unit: str) -> Iterator[Finding]:
    least, most = schema.get(keywords[0]), schema.get(keywords[1])
    if least is not None and size < least:
        yield Finding(path, f"must have at least {least:g} {unit}, not {size}")
    if most is not None and size > most:
        yield Finding(path, f"must have at most {most:g} {unit}, not {size}")


def _junctions(value: JSON, schema: Schema, path: Path) -> Iterator[Finding]:
    for sub in schema.get("allOf") or ():
        yield from _value(value, sub, path)
    if schema.get("anyOf"):
        tried = [list(_value(value, sub, path)) for sub in schema["anyOf"]]
        if all(tried):
            yield Finding(path, f"must fit at least one of {len(tried)} alternatives; the nearest one: {_best(tried)}")
    if schema.get("oneOf"):
        tried = [list(_value(value, sub, path)) for sub in schema["oneOf"]]
        fitting = [index for index, findings in enumerate(tried) if not findings]
        if not fitting:
            yield Finding(path, f"must fit exactly one of {len(tried)} alternatives; the nearest one: {_best(tried)}")
        elif len(fitting) > 1:
            yield Finding(path, f"must fit exactly one of {len(tried)} alternatives, and fits {len(fitting)}")
    if schema.get("not") is not None and not any(_value(value, schema["not"], path)):
        yield Finding(path, "must not be what the schema excludes with `not`")


def _best(tried: list[list[Finding]]) -> str:
    return str(min(tried, key=len)[0])


def _passes_for_format(value: JSON, schema: Schema) -> bool:
    """The server asks no list for its type where a format of strings is declared; nobody knows why."""
    return isinstance(value, list) and str(schema.get("format")).replace("-", "") in _FORMATS


def _is(value: JSON, name: str) -> bool:
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


def _same(value: JSON, member: JSON) -> bool:
    """Equal as the server sees it, which gives the value the member's type first: 1 and 1.0 are, and so are 1.5 and 1; True and 1 are
    not. A number is the character of that number, too."""
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
    # 0.3 is three times 0.1 although no float says so; the tolerance is the server's.
    times = value / factor
    return math.isclose(times, round(times), rel_tol=1e-9, abs_tol=0.0)


def _canonical(item: JSON) -> str:
    """The same text for what the server holds for the same. It compares numbers with their types, and all else as the JSON it writes,
    where 1.0 is written 1."""
    return json.dumps(_as_written(item) if isinstance(item, list | Mapping) else item, sort_keys=True)


def _as_written(value: JSON) -> JSON:
    if isinstance(value, Mapping):
        return {name: _as_written(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_as_written(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(_ARTICLES.get(name, name) for name in names)


def _listed(members: list[Any]) -> str:
    return ", ".join(json.dumps(member, ensure_ascii=False) for member in members)


def _shown(value: JSON) -> str:
    """A value in a message: small ones as they are, of all others the type."""
    for name in ("object", "array"):
        if _is(value, name):
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
    return match is not None and _is_date(text[:10]) and match["hour"] <= "23" and match["minute"] <= "59" and match["second"] <= "59"


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


# By the format's name without dashes, as the server compares them. What is not here is not checked.
_FORMATS: Mapping[str, Callable[[str], bool]] = {
    "datetime": _is_date_time,
    "date": _is_date,
    "byte": _is_base64,
    "ipv4": _is_parsed_by(ipaddress.IPv4Address),
    "ipv6": _is_parsed_by(ipaddress.IPv6Address),
    "cidr": _is_parsed_by(_parse_cidr),
    "uuid": lambda text: _UUID.match(text) is not None,
}
