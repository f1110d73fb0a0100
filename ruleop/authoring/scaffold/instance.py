"""A small custom resource that satisfies a schema: its required fields, with defaults, first members of enums, and the
least that limits and patterns allow.

It is a proposal that callers validate: no such value satisfies some schemas.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.schema import compile_pattern, validate
from ruleop.patterns import InvalidPatternError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ruleop.kubernetes.kinds import JSON
    from ruleop.kubernetes.schema import Schema

_FORMATS: Final = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "datetime": "2026-01-01T00:00:00Z",
    "duration": "1h",
    "email": "joe@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "cidr": "192.0.2.0/24",
    "mac": "00:00:5e:00:53:01",
    "uri": "https://example.com",
    "byte": "ZXhhbXBsZQ==",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "uuid4": "00000000-0000-4000-8000-000000000000",
    "bsonobjectid": "000000000000000000000000",
}
_NAMED: Final = {
    "image": "nginx:1.29",
    "schedule": "0 3 * * *",
    "host": "example.com",
    "url": "https://example.com",
    "storage": "1Gi",
    "memory": "64Mi",
    "cpu": "100m",
}
"""Texts for fields of these names."""
LIKELY: Final = (
    *("example", "example.com", "https://example.com", "Example", "EXAMPLE", "1", "1Gi", "100m", "1h", "v1.0.0", "1.0"),
    *("nginx:1.29", "0 3 * * *", "/", "192.0.2.1", "192.0.2.0/24", "joe@example.com", "latest", "true"),
)
"""Texts that many patterns mean."""
_LONGEST_TRIED: Final = 64


def instance(schema: Schema, name: str = "") -> JSON:
    """A value for a field of this name."""
    value = _plain(schema, name)
    for keyword in ("allOf", "anyOf", "oneOf"):
        branches = [each for each in schema.get(keyword) or () if isinstance(each, Mapping)]
        if keyword == "allOf":
            for branch in branches:
                value = instance(_merged(schema, branch), name)
        elif branches and validate_value(value, schema):
            tried = (instance(_merged(schema, branch), name) for branch in branches)
            value = next((each for each in tried if not validate_value(each, schema)), value)
    return value


def validate_value(value: JSON, schema: Schema) -> bool:
    """Whether the schema refuses the value."""
    return any(validate({"value": value}, {"type": "object", "properties": {"value": schema}}))


def _merged(schema: Schema, branch: Schema) -> Schema:
    """The schema with what one of its branches adds."""
    rest = {key: each for key, each in schema.items() if key not in ("allOf", "anyOf", "oneOf")}
    properties = dict(rest.get("properties") or {})
    for name, inner in (branch.get("properties") or {}).items():
        properties[name] = {**properties.get(name, {}), **inner}
    required = [*(rest.get("required") or ()), *(branch.get("required") or ())]
    return {**rest, **branch, **({"properties": properties} if properties else {}), "required": required}


def _plain(schema: Schema, name: str) -> JSON:
    if "default" in schema:
        found: JSON = schema["default"]
        return found
    members = [each for each in schema.get("enum") or () if each is not None]
    if members:
        return members[0]
    if schema.get("x-kubernetes-int-or-string"):
        return _text(schema, name) if "pattern" in schema or name in _NAMED else _number(schema)
    match schema.get("type"):
        case "string":
            return _text(schema, name)
        case "integer" | "number":
            return _number(schema)
        case "boolean":
            return False
        case "array":
            return _list(schema, name)
        case _:
            return _mapping(schema)


def _mapping(schema: Schema) -> dict[str, JSON]:
    properties = schema.get("properties") or {}
    found = {each: instance(properties.get(each) or {}, each) for each in schema.get("required") or ()}
    others = schema.get("additionalProperties")
    for number in range(int(schema.get("minProperties") or 0) - len(found)):
        missing = next((each for each in properties if each not in found), "")
        inner = properties.get(missing) if missing else others if isinstance(others, Mapping) else {}
        found[missing or f"key{number + 1}"] = instance(inner or {}, missing)
    return found


def _list(schema: Schema, name: str) -> list[JSON]:
    items = schema.get("items") or {}
    found: list[JSON] = []
    for number in range(int(schema.get("minItems") or 0)):
        item = instance(items, name.removesuffix("s"))
        keys = schema.get("x-kubernetes-list-map-keys") or []
        if number and isinstance(item, dict) and keys:
            item[keys[0]] = _other(item.get(keys[0]), number)
        elif number and (schema.get("uniqueItems") or schema.get("x-kubernetes-list-type") == "set"):
            members = items.get("enum") or ()
            item = members[number] if number < len(members) else _other(item, number)
        found.append(item)
    return found


def _other(value: JSON, number: int) -> JSON:
    return value + number if isinstance(value, int) else f"{value}{number + 1}"


def _number(schema: Schema) -> JSON:
    low, high = schema.get("minimum"), schema.get("maximum")
    value = 1 if low is None else low + (1 if schema.get("exclusiveMinimum") else 0)
    if low is None and high is not None and high < 1:
        value = high - (1 if schema.get("exclusiveMaximum") else 0)
    step = schema.get("multipleOf")
    value = value if not step else -(-value // step) * step
    return int(value) if schema.get("type") != "number" and value == int(value) else value


# -- text --------------------------------------------------------------------------------------------------------------


def _text(schema: Schema, name: str) -> str:
    low, high = int(schema.get("minLength") or 0), schema.get("maxLength")
    try:
        matches: Callable[[str], bool] = compile_pattern(schema.get("pattern") or "")
    except InvalidPatternError:
        matches = bool
    wished = [_FORMATS.get(str(schema.get("format")), ""), _NAMED.get(name, ""), *LIKELY]
    tried = (
        *filter(None, wished),
        *matching_texts(schema.get("pattern") or "x", low),
        "example-" * (low // 8 + 1),
        "x" * low,
    )
    fitting = (each for each in tried if low <= len(each) <= (len(each) if high is None else high) and matches(each))
    padded = "example-" * (low // 8 + 1)
    return next(fitting, padded[:low] or "example")


def matching_texts(pattern: str, low: int) -> Iterator[str]:
    """Texts that match the pattern, from short to long."""
    from re import _parser  # type: ignore[attr-defined]  # noqa: PLC0415 - no other parser of expressions is at hand

    try:
        parsed = _parser.parse(pattern)
    except (re.error, OverflowError, RecursionError):
        return
    for extra in range(min(low, _LONGEST_TRIED) + 2):
        yield "".join(_pieces(parsed, extra))


def _pieces(parsed: Any, extra: int) -> Iterator[str]:
    """The least that each part of an expression matches, with `extra` repetitions."""
    for operation, argument in parsed:
        match str(operation):
            case "LITERAL":
                yield chr(argument)
            case "NOT_LITERAL":
                yield "a" if argument != ord("a") else "b"
            case "ANY":
                yield "a"
            case "IN":
                yield _member(argument)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, most, inner = argument
                for _ in range(min(int(most), least + extra, _LONGEST_TRIED)):
                    yield from _pieces(inner, 0)
            case "SUBPATTERN":
                yield from _pieces(argument[-1], extra)
            case "ATOMIC_GROUP":
                yield from _pieces(argument, extra)
            case "BRANCH":
                yield from _pieces(argument[1][0], extra)


def _member(members: list[Any]) -> str:
    """A character of a class: a plain one if it has one."""
    test = re.compile("x")
    ranges: list[tuple[int, int]] = []
    negated = False
    for operation, argument in members:
        match str(operation):
            case "NEGATE":
                negated = True
            case "LITERAL":
                ranges.append((argument, argument))
            case "RANGE":
                ranges.append(argument)
            case "CATEGORY":
                test = {"CATEGORY_DIGIT": re.compile(r"\d"), "CATEGORY_SPACE": re.compile(r"\s")}.get(
                    str(argument), re.compile(r"\w")
                )
                ranges += [(ord(each), ord(each)) for each in "a0 " if test.match(each)]
    for each in "ax1A0-_.:/ ":
        if any(low <= ord(each) <= high for low, high in ranges) is not negated:
            return each
    return chr(ranges[0][0]) if ranges and not negated else "~"
