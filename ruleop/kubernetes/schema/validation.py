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

Rare formats are not checked. Rules in CEL (x-kubernetes-validations) are the subject of `ruleop.kubernetes.cel`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.schema.formats import FORMATS, InvalidPatternError, compile_pattern
from ruleop.kubernetes.schema.violations import LIST_KEYS, LIST_TYPE, Violation, findings, types_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sized

    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.kubernetes.schema.openapi import Schema
    from ruleop.kubernetes.schema.schema_findings import FieldPath, SchemaFinding

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
