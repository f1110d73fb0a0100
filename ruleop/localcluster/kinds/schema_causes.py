"""Why a custom resource does not match the schema of its CRD, in the words of the API server.

`ruleop.schema.validation` decides the same in words for authors of rules; tests hold the two to the same verdicts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.localcluster.errors import Cause, invalid_value, required, too_long, too_many
from ruleop.merge.equality import same
from ruleop.schema.validation import validate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.kinds import Object
    from ruleop.schema.openapi import Schema
    from ruleop.schema.schema_findings import FieldPath

_NEW: Final = object()
_INVALID, _TYPE, _NOT_SUPPORTED = "FieldValueInvalid", "FieldValueTypeInvalid", "FieldValueNotSupported"


def schema_causes(obj: Object, schema: Schema, old: Object | None = None) -> list[Cause]:
    """All problems of an object that is pruned and defaulted, without those of values that an update leaves as they
    were."""
    findings = list(validate(obj, schema))
    if not findings:
        return []
    causes = list(_causes(obj, schema, "", _NEW if old is None else old))
    if causes:
        return causes
    if old is not None:
        if any(_causes(obj, schema, "", _NEW)):  # of unchanged values
            return []
        findings = [each for each in findings if not _is_unchanged(obj, old, each.path)]
    return [Cause(_INVALID, f"Invalid value: {each.message}", _path_text(each.path)) for each in findings]


def _is_unchanged(new: Any, old: Any, path: FieldPath) -> bool:
    """Whether the value at a path, or one that it is part of, is as before. An item of a list is part of the list."""
    for name in path:
        if same(new, old):
            return True
        if isinstance(name, int) or not (isinstance(new, Mapping) and isinstance(old, Mapping) and name in old):
            return False
        if name not in new:
            return False
        new, old = new[name], old[name]
    return same(new, old)


def _path_text(path: tuple[str | int, ...]) -> str:
    text = ""
    for each in path:
        text = f"{text}[{each}]" if isinstance(each, int) else _below(text, each)
    return text


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _shown(value: Any) -> str:
    return orjson.dumps(value).decode()


def _schema_type(value: Any) -> str:
    """The type as OpenAPI names it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def _causes(value: Any, schema: Schema, path: str, old: Any) -> Iterator[Cause]:
    """`old` is the value before an update, or `_NEW`."""
    if old is not _NEW and same(value, old):
        return
    allowed = ["integer", "string"] if schema.get("x-kubernetes-int-or-string") else [schema.get("type", "")]
    found = _schema_type(value)
    if value is None and (schema.get("nullable") or not allowed[0]):
        return
    if allowed[0] and found not in allowed and not (allowed == ["number"] and found == "integer"):
        yield Cause(
            _TYPE, f'Invalid value: "{found}": {path} in body must be of type {",".join(allowed)}: "{found}"', path
        )
        if allowed == ["integer"] and found == "number":
            yield invalid_value("<nil>", "", f"Checked value must be of type integer (default format) in {path}")
    elif isinstance(value, Mapping):
        yield from _object_causes(value, schema, path, old if isinstance(old, Mapping) else {})
    elif isinstance(value, list):
        yield from _list_causes(value, schema, path, old if isinstance(old, list) else [])
    elif isinstance(value, str):
        yield from _text_causes(value, schema, path)
    elif not isinstance(value, bool):
        yield from _number_causes(value, schema, path)
    members = schema.get("enum")
    if members and value not in members:
        listed = ", ".join(_shown(each) for each in members)
        yield Cause(_NOT_SUPPORTED, f"Unsupported value: {_shown(value)}: supported values: {listed}", path)


def _object_causes(value: Mapping[str, Any], schema: Schema, path: str, old: Mapping[str, Any]) -> Iterator[Cause]:
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    if least is not None and len(value) < least:
        yield invalid_value(path, len(value), f"{path} in body should have at least {least} properties")
    if most is not None and len(value) > most:
        yield too_many(path, len(value), most)
    for name in schema.get("required") or ():
        if name not in value:
            yield required(_below(path, name))
    for name, each in value.items():
        if name in properties:
            yield from _causes(each, properties[name], _below(path, name), old.get(name, _NEW))
        elif isinstance(others, Mapping):
            yield from _causes(each, others, _below(path, name), old.get(name, _NEW))


def _list_causes(value: list[Any], schema: Schema, path: str, old: list[Any]) -> Iterator[Cause]:
    least, most = schema.get("minItems"), schema.get("maxItems")
    if least is not None and len(value) < least:
        yield invalid_value(path, len(value), f"{path} in body should have at least {least} items")
    if most is not None and len(value) > most:
        yield too_many(path, len(value), most)
    items = schema.get("items")
    kind = schema.get("x-kubernetes-list-type")
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    if isinstance(items, Mapping):
        before = {_identity(each, keys): each for each in old} if kind == "map" else {}
        for index, each in enumerate(value):
            yield from _causes(each, items, f"{path}[{index}]", before.get(_identity(each, keys), _NEW))
    if kind not in ("set", "map"):
        return
    for index, each in enumerate(value if kind == "map" else ()):
        if each is not None and not isinstance(each, Mapping):
            yield invalid_value(f"{path}[{index}]", each, "must be an object for an array of list-type map")
            return
    seen: Counter[bytes] = Counter()
    for index, each in enumerate(value):
        identity = _identity(each, keys)
        if seen[identity] == 1:  # a third one is not reported
            yield Cause("FieldValueDuplicate", f"Duplicate value: {identity.decode()}", f"{path}[{index}]")
        seen[identity] += 1


def _identity(item: Any, keys: Sequence[str]) -> bytes:
    """What tells an item of a set, or of a list with keys, from the others."""
    shown = {key: item[key] for key in keys if key in item} if keys and isinstance(item, Mapping) else item
    return orjson.dumps(shown, option=orjson.OPT_SORT_KEYS)


def _text_causes(value: str, schema: Schema, path: str) -> Iterator[Cause]:
    least, most, pattern = schema.get("minLength"), schema.get("maxLength"), schema.get("pattern")
    if most is not None and len(value) > most:
        yield too_long(path, most)
    if least is not None and len(value) < least:
        yield invalid_value(path, value, f"{path} in body should be at least {least} chars long")
    only = {name: schema[name] for name in ("type", "pattern") if name in schema}
    if pattern is not None and validate({"x": value}, {"properties": {"x": only}}):
        yield invalid_value(path, value, f"{path} in body should match '{pattern}'")
    only = {name: schema[name] for name in ("type", "format") if name in schema}
    if "format" in only and validate({"x": value}, {"properties": {"x": only}}):
        yield invalid_value(path, value, f"{path} in body must be of type {only['format']}: {_shown(value)}")


def _number_causes(value: float, schema: Schema, path: str) -> Iterator[Cause]:
    least, most, factor = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if most is not None and (value > most or (schema.get("exclusiveMaximum") and value >= most)):
        text = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        yield invalid_value(path, value, f"{path} in body should be {text} {most}")
    if least is not None and (value < least or (schema.get("exclusiveMinimum") and value <= least)):
        text = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        yield invalid_value(path, value, f"{path} in body should be {text} {least}")
    if factor and not math.isclose(value / factor, round(value / factor), abs_tol=1e-12):
        yield invalid_value(path, value, f"{path} in body should be a multiple of {factor}")
