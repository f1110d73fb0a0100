"""Validation of custom resources by the schema of their CRD, in the words of the API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.kubernetes.schema.validation import is_type, violations
from ruleop.kubernetes.schema.violations import LIST_KEYS, LIST_TYPE, describe
from ruleop.kubernetes.validation.field_errors import (
    FieldError,
    invalid_value,
    invalid_values,
    required,
    too_long,
    too_many,
)
from ruleop.kubernetes.validation.field_names import kind_problems, validate_annotations, validate_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.schema.openapi import Schema
    from ruleop.kubernetes.schema.schema_findings import FieldPath
    from ruleop.kubernetes.schema.violations import Violation


def validate_custom_resource(obj: Object, schema: Schema, old: Object | None = None) -> list[FieldError]:
    """All problems of an object that is pruned and defaulted, without those of values that an update leaves as they
    were."""
    return [
        *(error for each in violations(obj, schema, old) for error in _errors(each)),
        *_validate_embedded(obj, schema, ()),
    ]


def _validate_embedded(value: Any, schema: Schema, path: FieldPath) -> Iterator[FieldError]:
    """Validates the kinds and metadata of the resources inside of a value."""
    is_list = isinstance(value, list)
    others, named = schema.get("items" if is_list else "additionalProperties"), schema.get("properties") or {}
    if path and not is_list and schema.get("x-kubernetes-embedded-resource"):
        yield from _validate_resource(value, _path_text(path))
    for name, member in enumerate(value) if is_list else value.items():
        inner = named.get(name, others)
        if isinstance(member, dict | list) and isinstance(inner, Mapping):
            yield from _validate_embedded(member, inner, (*path, name))


def _validate_resource(value: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    version, kind, metadata = value.get("apiVersion"), value.get("kind"), value.get("metadata")
    for name in ("apiVersion", "kind"):
        if name not in value:
            yield required(f"{field}.{name}")
        elif value[name] == "":
            yield invalid_value(f"{field}.{name}", "", "must not be empty")
    if isinstance(version, str) and version.count("/") > 1:
        yield invalid_value(f"{field}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    if isinstance(kind, str) and kind:
        yield from invalid_values(f"{field}.kind", kind, kind_problems(kind))
    for name, validate in (("labels", validate_labels), ("annotations", validate_annotations)):
        given = metadata.get(name) if isinstance(metadata, Mapping) else None
        if isinstance(given, Mapping) and all(isinstance(each, str) for each in given.values()):
            yield from validate(given, f"{field}.metadata.{name}")


def _errors(found: Violation) -> Iterator[FieldError]:
    path, words = _path_text(found.path), _WORDS.get(found.keyword)
    if words is None or (found.keyword in _LIMITS and found.detail is None):
        yield FieldError("FieldValueInvalid", f"Invalid value: {describe(found)}", path)
        return
    yield words(path, found)
    if found.keyword == "type" and found.types == ("integer",) and _type_name(found.value) == "number":
        yield invalid_value("<nil>", "", f"Checked value must be of type integer (default format) in {path}")


def _path_text(path: FieldPath) -> str:
    return "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path).removeprefix(".")


def _shown(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _type_name(value: Any) -> str:
    """The type as OpenAPI names it."""
    names = ("boolean", "integer", "number", "string", "array", "object")
    return next((name for name in names if is_type(value, name)), "null")


def _type(path: str, found: Violation) -> FieldError:
    name = _type_name(found.value)
    problem = f'{path} in body must be of type {",".join(found.types)}: "{name}"'
    return FieldError("FieldValueTypeInvalid", f'Invalid value: "{name}": {problem}', path)


def _enum(path: str, found: Violation) -> FieldError:
    value = orjson.dumps(found.value).decode()
    listed = ", ".join(orjson.dumps(each).decode() for each in found.expected)
    return FieldError("FieldValueNotSupported", f"Unsupported value: {value}: supported values: {listed}", path)


def _duplicate(path: str, found: Violation) -> FieldError:
    keys = found.schema.get(LIST_KEYS) or () if found.keyword == LIST_KEYS else ()
    item: Any = found.value
    shown = {key: item[key] for key in keys if key in item} if keys and isinstance(item, Mapping) else item
    return FieldError("FieldValueDuplicate", f"Duplicate value: {_shown(shown)}", path)


def _list_type(path: str, found: Violation) -> FieldError:
    if found.detail is not None:
        return _duplicate(path, found)
    return invalid_value(path, found.value, "must be an object for an array of list-type map")


def _too_few(unit: str) -> Callable[[str, Violation], FieldError]:
    return lambda path, found: invalid_value(
        path, found.detail, f"{path} in body should have at least {found.expected} {unit}"
    )


def _limit(words: str) -> Callable[[str, Violation], FieldError]:
    def error(path: str, found: Violation) -> FieldError:
        how = words if found.schema.get(f"exclusive{found.keyword.capitalize()}") else f"{words} or equal to"
        return invalid_value(path, found.value, f"{path} in body should be {how} {found.expected}")

    return error


def _problem(words: str) -> Callable[[str, Violation], FieldError]:
    return lambda path, found: invalid_value(
        path, found.value, f"{path} in body {words.format(expected=found.expected, value=_shown(found.value))}"
    )


_LIMITS: Final = ("minimum", "maximum", "multipleOf")
_WORDS: Final[Mapping[str, Callable[[str, Violation], FieldError]]] = {
    "type": _type,
    "enum": _enum,
    "required": lambda path, _: required(path),
    "minProperties": _too_few("properties"),
    "maxProperties": lambda path, found: too_many(path, found.detail, found.expected),
    "minItems": _too_few("items"),
    "maxItems": lambda path, found: too_many(path, found.detail, found.expected),
    "minLength": _problem("should be at least {expected} chars long"),
    "maxLength": lambda path, found: too_long(path, found.expected),
    LIST_TYPE: _list_type,
    LIST_KEYS: _duplicate,
    "pattern": _problem("should match '{expected}'"),
    "format": _problem("must be of type {expected}: {value}"),
    "minimum": _limit("greater than"),
    "maximum": _limit("less than"),
    "multipleOf": _problem("should be a multiple of {expected}"),
}
"""The server words other keywords otherwise than this does."""
