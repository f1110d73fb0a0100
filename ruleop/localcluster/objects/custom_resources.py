"""Validation of custom resources by the schema of their CRD: the API server's reasons, in the words of `check`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.schema import LIST_KEYS, LIST_TYPE, describe, violations
from ruleop.kubernetes.validation import (
    FieldError,
    invalid_value,
    invalid_values,
    kind_problems,
    required,
    validate_annotations,
    validate_labels,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.schema import FieldPath, Schema, Violation


def validate_custom_resource(obj: Object, schema: Schema, old: Object | None = None) -> list[FieldError]:
    """All problems of an object that is pruned and defaulted, without those of values that an update leaves as they
    were."""
    return [*map(_error, violations(obj, schema, old)), *_validate_embedded(obj, schema, ())]


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


def _error(found: Violation) -> FieldError:
    path = _path_text(found.path)
    if found.keyword == "required":
        return required(path)
    return FieldError(_REASONS.get(found.keyword, "FieldValueInvalid"), f"Invalid value: {describe(found)}", path)


def _path_text(path: FieldPath) -> str:
    return "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path).removeprefix(".")


_REASONS: Final[Mapping[str, str]] = {
    "type": "FieldValueTypeInvalid",
    "enum": "FieldValueNotSupported",
    "maxProperties": "FieldValueTooMany",
    "maxItems": "FieldValueTooMany",
    "maxLength": "FieldValueTooLong",
    LIST_TYPE: "FieldValueDuplicate",
    LIST_KEYS: "FieldValueDuplicate",
}
