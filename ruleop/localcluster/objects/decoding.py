"""Built-in objects as they are decoded from a request: types are checked, unknown fields and nulls dropped.

The server decodes a body into Go types, and reports what does not fit in the words of Go's decoder. A null is the same
as a missing field, and in a map the zero of its type. Duplicate names are found by who parses the JSON. What is the
same as in the stored object is not decoded again.

A client sends a whole object of which it changed a field. Its other parts become those of the stored version: they need
not be checked, completed and compared again, and a version of the past costs no more memory than what changed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

from ruleop.errors import RuleopError
from ruleop.kubernetes.builtin.builtin_types import typed_shape
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.quantity import parse_quantity
from ruleop.kubernetes.schema.shape import EMPTY
from ruleop.kubernetes.validation.field_errors import FieldError
from ruleop.localcluster.objects.go_text import type_name
from ruleop.localcluster.status_errors import Rejected, bad_request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.kubernetes.schema.shape import Shape


def with_parts_of(old: Object | None, new: dict[str, Any]) -> dict[str, Any]:
    """The new version, with the old one's parts, if there is one, wherever the two are the same."""
    if old is None:
        return new
    return {name: _shared(old.get(name), value) for name, value in new.items()}


def _shared(old: JSON, new: JSON) -> JSON:
    if old is new or type(old) is not type(new):
        return new
    if type(new) is dict:
        return old if _same_text(old, new) else {name: _shared(old.get(name), value) for name, value in new.items()}
    if type(new) is list:
        if len(old) != len(new):  # which items belong together is not worth finding out
            return new
        return old if _same_text(old, new) else [*map(_shared, old, new)]
    return old if old == new else new


def _same_text(old: JSON, new: JSON) -> bool:
    """Equal in values, types and the order of names: the texts are made many times faster than values are compared."""
    try:
        return orjson.dumps(old) == orjson.dumps(new)
    except TypeError:  # an integer of more than 64 bits, which is refused later
        return False


_BITS: Final = {"int32": 31, "int64": 63}
_TIME: Final = re.compile(
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]\d\d:\d\d)"
)
_BASE64: Final = re.compile(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_NOT_QUANTITY: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
# Structs that Go embeds: the decoder's path to a field goes through them.
_EMBEDDED: Final = {
    "Probe": ("ProbeHandler", frozenset({"exec", "grpc", "httpGet", "tcpSocket"})),
    "Volume": ("VolumeSource", frozenset()),
}
_GO_KINDS: Final = {dict: "map", list: "slice", str: "string", bool: "bool", int: "int64", float: "float64"}
_OWN_DECODERS: Final = {"date-time": "string", "int-or-string": "int32"}
_GO_NUMBERS: Final = ("int32", "int64", "float64")
_ZERO: Final[dict[str, JSON]] = {"string": "", "integer": 0, "number": 0, "boolean": False}


class DecodingError(RuleopError):
    """A value of the wrong type, in the words of the server's decoder of JSON. What it makes of a strategic merge patch
    and of an applied configuration is not decoded from JSON but converted, which has other words: `conversion`."""

    def __init__(self, message: str, conversion: str = "") -> None:
        super().__init__(message)
        self.conversion = conversion or message


@dataclass(frozen=True, slots=True)
class Decoded:
    """An object with only the fields of its kind, and the fields that it had beside them, in order."""

    obj: dict[str, JSON]
    unknown: tuple[str, ...]  # spec.containers[0].foo


def decode(obj: Object, shape: Shape, old: Object | None = None) -> Decoded:
    """The object as the server reads it. `shape` is that of `ruleop.kubernetes.builtin.builtin_types`. Parts that are
    those of an earlier version, which was decoded, are taken as they are. Raises DecodingError."""
    return _Decoder(_simple_name(shape) or str(obj.get("kind", ""))).decode(obj, shape, old or EMPTY)


def decode_metadata(metadata: JSON, old: Object | None) -> Decoded:
    """The metadata of a custom resource, which the server decodes apart from the rest. Raises DecodingError."""
    if metadata is None:
        return Decoded({}, ())
    if type(metadata) is not dict:
        raise DecodingError(f"json: cannot unmarshal {type_name(metadata)} into Go value of type v1.ObjectMeta")
    shape = typed_shape(Kind("", "v1", "ConfigMap"))
    assert shape is not None
    return _Decoder("ObjectMeta").decode(with_parts_of(old, metadata), shape.fields["metadata"], old or EMPTY)


def in_body(kind: Kind, problem: str | DecodingError) -> Rejected:
    """The response to a body that cannot be decoded."""
    return bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {problem}')


def in_patch(patched: str, problem: str) -> Rejected:
    """The response to a patch whose result cannot be decoded. `patched` is that result, as JSON or as Go prints it."""
    message = f'Invalid value: "{_quoted(patched)}": {problem}'
    error = FieldError("FieldValueInvalid", message, "patch")
    return Rejected(422, "Invalid", f' "" is invalid: patch: {message}', {"causes": [error.document()]})


def strict_problem(problems: Sequence[str]) -> str:
    """The problem that strict field validation reports. Each of the problems is a warning otherwise."""
    return f"strict decoding error: {', '.join(problems)}"


def unknown_field(path: str) -> str:
    return f'unknown field "{path}"'


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")


_Place: TypeAlias = "tuple[_Place | None, str | int, Shape | None]"
"""Where a value is: the place of the map or list that holds it, its name or index there, and the shape of the struct
that has it as a field. It becomes text only for a message."""


class _Decoder:
    def __init__(self, struct: str) -> None:
        self.whole = struct  # the Go type of the object
        self.unknown: list[str] = []
        self.problem: DecodingError | None = None

    def decode(self, obj: Object, shape: Shape, known: Object) -> Decoded:
        found = self.struct(obj, shape, None, known)
        if self.problem is not None:
            raise self.problem
        return Decoded(found, tuple(self.unknown))

    def struct(self, value: Object, shape: Shape, place: _Place | None, known: Object) -> dict[str, JSON]:
        found: dict[str, JSON] = {}
        fields, others = shape.fields, shape.values
        for name, member in value.items():
            inner = fields.get(name, others)
            if inner is None:
                if shape.preserve_unknown:
                    found[name] = member
                else:
                    self.unknown.append(_path((place, name, shape)))
            elif member is not None:
                before = known.get(name)
                if member is before or (type(member) is str and inner.scalar == "string" and not inner.format):
                    found[name] = member
                else:
                    found[name] = self.value(member, inner, (place, name, shape), before)
        return found

    def value(self, value: JSON, shape: Shape, place: _Place, known: JSON) -> JSON:
        kind = shape.type
        if kind == "object":
            if type(value) is not dict:
                self.report(value, shape, place)
                return value
            if shape.fields:
                return self.struct(value, shape, place, known if type(known) is dict else EMPTY)
            return self.open_map(value, shape, place)
        if kind == "list":
            if type(value) is not list:
                self.report(value, shape, place)
                return value
            return self.items(value, shape, place, known if type(known) is list else [])
        return self.scalar(value, shape, place) if kind == "scalar" else value

    def items(self, value: list[JSON], shape: Shape, place: _Place, known: list[JSON]) -> list[JSON]:
        inner = shape.items
        if inner is None:
            return value
        return [
            _null(inner)
            if item is None
            else item
            if item is before
            else self.value(item, inner, (place, index, None), before)
            for index, (item, before) in enumerate(zip(value, chain(known, repeat(None)), strict=False))
        ]

    def open_map(self, value: dict[str, JSON], shape: Shape, place: _Place) -> dict[str, JSON]:
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
            name: _null(inner) if member is None else self.value(member, inner, (place, name, None), None)
            for name, member in value.items()
        }

    def scalar(self, value: JSON, shape: Shape, place: _Place) -> JSON:
        kind = type(value)
        match shape.format:
            case "":
                pass
            case "quantity":
                if kind not in (str, int, float) or parse_quantity(value) is None:
                    raise DecodingError(_NOT_QUANTITY)
                return value
            case "int-or-string":
                if kind is not str:
                    self.check_integer(value, "int32", shape, place)
                return value
            case "date-time" if kind is str and not _TIME.fullmatch(value):
                layout = "2006-01-02T15:04:05Z07:00"
                expected = "2006" if not value[:4].isdecimal() else layout
                raise DecodingError(f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "{expected}"')
            case "byte" if kind is str:
                unbroken = value.replace("\n", "").replace("\r", "")
                if not _BASE64.fullmatch(unbroken):
                    problem = f"illegal base64 data at input byte {_illegal_byte(value)}"
                    self.problem = self.problem or DecodingError(problem, f"error decoding from json: {problem}")
                return unbroken
        match shape.scalar:
            case "string" if kind is not str:
                self.report(value, shape, place)
            case "boolean" if kind is not bool:
                self.report(value, shape, place)
            case "integer":
                self.check_integer(value, shape.format or "int64", shape, place)
            case "number" if kind not in (int, float):
                self.report(value, shape, place)
        return value

    def check_integer(self, value: JSON, format_: str, shape: Shape, place: _Place) -> None:
        bits = _BITS.get(format_, 63)
        if type(value) is not int or not -(1 << bits) <= value < 1 << bits:
            self.report(value, shape, place)

    def report(self, value: JSON, shape: Shape, place: _Place) -> None:
        """Keeps the first value of a wrong type. The decoders that some types have of their own report theirs at
        once."""
        error = self.mismatch(value, shape, place)
        if shape.format in _OWN_DECODERS:
            raise error
        self.problem = self.problem or error

    def mismatch(self, value: JSON, shape: Shape, place: _Place) -> DecodingError:
        word = type_name(value)
        if word == "number" and (shape.scalar == "integer" or shape.format == "int-or-string"):
            is_large = type(value) is float and value.is_integer()  # an integer of more than 64 bits
            word = f"number {int(value) if is_large else value}"
        struct, path = self.whole, tuple[str, ...]()
        for name, holder in _steps(place):
            if holder is not None:
                struct = _simple_name(holder) or struct
                path = _go_path(path, struct, str(name))
        desired = "types.UID" if path[-1] == "uid" else _go_type(shape)
        where = f"{struct}.{'.'.join(path)}"
        problem = f"json: cannot unmarshal {word} into Go struct field {where} of type {desired}"
        if shape.format in _OWN_DECODERS:
            own = _OWN_DECODERS[shape.format]
            return DecodingError(problem, f"json: cannot unmarshal {type_name(value)} into Go value of type {own}")
        return DecodingError(problem, _conversion_problem(value, desired))


def _conversion_problem(value: JSON, desired: str) -> str:
    source = _GO_KINDS.get(type(value), "invalid")
    if desired.startswith("[]"):
        return f"cannot restore slice from {source}"
    if desired.startswith("map[") or desired == "v1.ResourceList":
        return f"cannot restore map from {source}"
    if desired.startswith("v1."):
        return f"cannot restore struct from: {source}"
    # Go would convert integers to text, which the server does not want. It has no words for most other types.
    is_text, is_number = desired in ("string", "types.UID"), desired in _GO_NUMBERS
    if (source == "int64" and is_text) or (source == "float64" and is_number):
        return f"cannot convert {source} to {desired}"
    return f"unrecognized type: {'string' if is_text else desired}"


def _null(shape: Shape) -> JSON:
    """The value that a null in a map or a list is read as."""
    if shape.type == "object":
        return {}
    if shape.format == "quantity":
        return "0"
    return _ZERO.get(shape.scalar) if shape.type == "scalar" else None


def _steps(place: _Place | None) -> list[tuple[str | int, Shape | None]]:
    """The way to a place from the root."""
    found = []
    while place is not None:
        place, name, holder = place
        found.append((name, holder))
    found.reverse()
    return found


def _path(place: _Place) -> str:
    path = ""
    for name, _ in _steps(place):
        path = f"{path}[{name}]" if type(name) is int else f"{path}.{name}" if path else str(name)
    return path


def _go_type(shape: Shape) -> str:
    if shape.type == "list":
        return f"[]{_go_type(shape.items)}" if shape.items is not None else "[]interface {}"
    if shape.type == "object":
        if shape.values is None:
            *_, version, name = ("", *shape.name.rsplit(".", 2)[-2:]) if shape.name else ("", "", "interface {}")
            return f"{version}.{name}" if version else name
        return "v1.ResourceList" if shape.values.format == "quantity" else f"map[string]{_go_type(shape.values)}"
    if shape.format == "byte":
        return "[]uint8"
    if shape.format == "int-or-string":
        return "int32"
    if shape.scalar == "integer":
        return shape.format or "int64"
    return {"boolean": "bool", "number": "float64"}.get(shape.scalar, "string")


def _go_path(path: tuple[str, ...], struct: str, name: str) -> tuple[str, ...]:
    embedded = _EMBEDDED.get(struct)
    if embedded is not None and (name in embedded[1] or (not embedded[1] and name != "name")):
        return (*path, embedded[0], name)
    return (*path, name)


def _simple_name(shape: Shape) -> str:
    return shape.name.rpartition(".")[2]


def _illegal_byte(text: str) -> int:
    """Where Go's decoder stops: at the first character of another alphabet, or at a padding that is out of place. It
    skips line breaks."""
    for index, character in enumerate(text):
        if not re.match(r"[A-Za-z0-9+/\r\n]", character) and not (character == "=" and index >= len(text) - 2):
            return index
    return len(text) - len(re.sub(r"[\r\n]", "", text)) % 4 if "=" not in text else text.index("=")
