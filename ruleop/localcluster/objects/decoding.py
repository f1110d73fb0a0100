"""Objects as they are decoded from a request: those of built-in kinds by their types, custom resources by their schema.

Types are checked, unknown fields and nulls dropped. A null is the same as a missing field, and in a map the zero of its
type. The first value of a wrong type is reported, with its field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ruleop.errors import RuleopError
from ruleop.kubernetes.builtin.builtin_types import typed_shape
from ruleop.kubernetes.kinds import JSON, Kind
from ruleop.kubernetes.quantity import parse_quantity
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
from ruleop.localcluster.status_errors import Rejected
from ruleop.messages import format_path
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.schema import FieldPath, Schema, Shape, Violation


_BITS: Final = {"int32": 31, "int64": 63}
_TIME: Final = re.compile(
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]\d\d:\d\d)"
)
_BASE64: Final = re.compile(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_ZERO: Final[dict[str, JSON]] = {"string": "", "integer": 0, "number": 0, "boolean": False}
_TYPES: Final = {"string": "a string", "boolean": "true or false", "number": "a number"}


class DecodingError(RuleopError):
    """A value of the wrong type."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """An object with only the fields of its kind, and the fields that it had beside them, in order."""

    obj: dict[str, JSON]
    unknown: tuple[str, ...]  # spec.containers[0].foo


def decode(obj: Object, shape: Shape) -> Decoded:
    """The object as the server reads it. `shape` is that of `ruleop.kubernetes.builtin.builtin_types`. Raises
    DecodingError."""
    unknown: list[_Place] = []
    found = _struct(obj, shape, None, unknown)
    return Decoded(found, tuple(map(_path, unknown)))


def decode_metadata(metadata: JSON) -> Decoded:
    """The metadata of a custom resource, which the server decodes apart from the rest. Raises DecodingError."""
    shape = typed_shape(Kind("", "v1", "ConfigMap"))
    assert shape is not None
    found = decode({"metadata": metadata}, shape)
    return Decoded(found.obj.get("metadata") or {}, found.unknown)


def undecodable(kind: Kind, problem: object, code: int = 400) -> Rejected:
    """The response to an object that cannot be decoded: 400, to what a patch makes 422, to what an apply makes 500."""
    message = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {problem}'
    if code != 422:
        return Rejected(code, "BadRequest" if code == 400 else "", message)
    return Rejected(
        code, "Invalid", message, {"causes": [FieldError("FieldValueInvalid", message, "patch").document()]}
    )


def strict_problem(problems: Iterable[str]) -> str:
    """The problem that strict field validation reports. Each of the problems is a warning otherwise."""
    return f"strict decoding error: {', '.join(problems)}"


def unknown_field(path: str) -> str:
    return f'unknown field "{path}"'


_Place: TypeAlias = "tuple[_Place | None, str | int]"
"""The place of the map or list that holds a value, and its name or index there. It becomes text only for a message."""


def _struct(value: Object, shape: Shape, place: _Place | None, unknown: list[_Place]) -> dict[str, JSON]:
    found: dict[str, JSON] = {}
    fields, others = shape.fields, shape.values
    for name, member in value.items():
        inner = fields.get(name, others)
        if inner is None:
            if shape.preserve_unknown:
                found[name] = member
            else:
                unknown.append((place, name))
        elif member is not None:
            if type(member) is str and inner.scalar == "string" and not inner.format:
                found[name] = member
            else:
                found[name] = _value(member, inner, (place, name), unknown)
    return found


def _value(value: JSON, shape: Shape, place: _Place, unknown: list[_Place]) -> JSON:
    if shape.type == "object":
        if type(value) is not dict:
            raise _mismatch(value, "an object", place)
        if shape.fields:
            return _struct(value, shape, place, unknown)
        return _open_map(value, shape, place, unknown)
    if shape.type == "list":
        if type(value) is not list:
            raise _mismatch(value, "a list", place)
        return _items(value, shape.items, place, unknown)
    return _scalar(value, shape, place) if shape.type == "scalar" else value


def _items(value: list[JSON], inner: Shape | None, place: _Place, unknown: list[_Place]) -> list[JSON]:
    if inner is None:
        return value
    return [
        _null(inner) if item is None else _value(item, inner, (place, index), unknown)
        for index, item in enumerate(value)
    ]


def _open_map(value: dict[str, JSON], shape: Shape, place: _Place, unknown: list[_Place]) -> dict[str, JSON]:
    inner = shape.values
    if inner is None:
        return value
    if inner.scalar == "string" and not inner.format:  # labels, annotations, data
        for member in value.values():
            if type(member) is not str:
                break
        else:
            return value
    return {
        name: _null(inner) if member is None else _value(member, inner, (place, name), unknown)
        for name, member in value.items()
    }


def _scalar(value: JSON, shape: Shape, place: _Place) -> JSON:
    kind, expected = type(value), _TYPES.get(shape.scalar, "")
    fits = {"string": kind is str, "boolean": kind is bool, "number": kind in (int, float)}.get(shape.scalar, True)
    match shape.format:
        case "quantity":
            expected, fits = "a quantity", kind in (str, int, float) and parse_quantity(value) is not None
        case "int-or-string":
            expected, fits = "an integer of 32 bits, or a string", kind is str or _is_integer(value, 31)
        case "date-time" if kind is str:
            expected, fits = "a time such as 2006-01-02T15:04:05Z", _TIME.fullmatch(value) is not None
        case "byte" if kind is str:
            value = value.replace("\n", "").replace("\r", "")
            expected, fits = "base64", _BASE64.fullmatch(value) is not None
        case _ if shape.scalar == "integer":
            bits = _BITS.get(shape.format, 63)
            expected, fits = f"an integer of {bits + 1} bits", _is_integer(value, bits)
    if not fits:
        raise _mismatch(value, expected, place)
    return value


def _is_integer(value: JSON, bits: int) -> bool:
    return type(value) is int and -(1 << bits) <= value < 1 << bits


def _mismatch(value: JSON, expected: str, place: _Place) -> DecodingError:
    return DecodingError(f"{_path(place)}: expected {expected}, got {type_name(value)}")


def type_name(value: JSON) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _null(shape: Shape) -> JSON:
    """The value that a null in a map or a list is read as."""
    if shape.type == "object":
        return {}
    if shape.format == "quantity":
        return "0"
    return _ZERO.get(shape.scalar) if shape.type == "scalar" else None


def _path(place: _Place) -> str:
    steps: list[str | int] = []
    at: _Place | None = place
    while at is not None:
        at, step = at
        steps.append(step)
    return format_path(tuple(reversed(steps)))


# -- custom resources, held to the schema of their CRD ---------------------------------------------------------------


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
