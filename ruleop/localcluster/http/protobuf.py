"""Reads the bodies that clients in Go send: Kubernetes' protobuf, turned into the JSON that they stand for.

Only bodies of requests are read. Responses are JSON, which these clients accept as well. The table of messages is made
from the Go types (tests/controlplane/protobuf_table.py).
"""

from __future__ import annotations

import base64
import functools
import importlib.resources
import struct
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
MAGIC: Final = b"k8s\x00"


class ProtobufError(Exception):
    """A body that cannot be read."""


_PROBLEMS: Final = (LookupError, ValueError, TypeError, ArithmeticError, OSError, struct.error, RecursionError)


class _Field(NamedTuple):
    name: str  # in JSON; empty if the field is inlined
    type: str
    is_list: bool
    is_map: bool
    is_pointer: bool
    omits_empty: bool
    is_wrapped: bool


def read_protobuf(body: bytes) -> dict[str, Any]:
    """The object of a request. Raises ProtobufError."""
    if not body.startswith(MAGIC):
        raise ProtobufError("it does not begin as Kubernetes' protobuf does")
    try:
        envelope = dict(_parts(memoryview(body)[len(MAGIC) :]))
        type_meta = dict(_parts(envelope.get(1, memoryview(b""))))
        api_version, kind = (_string(type_meta.get(number, memoryview(b""))) for number in (1, 2))
        raw = envelope.get(2, memoryview(b""))
        if bytes(envelope.get(4, b"")) == b"application/json":
            found = orjson.loads(raw)
            if not isinstance(found, dict):
                raise ValueError("the JSON in it is not an object")
        else:
            found = _message(_message_name(api_version, kind), raw)
    except _PROBLEMS as error:
        raise ProtobufError(f"it is damaged, or of a newer Kubernetes: {error}") from None
    return {"apiVersion": api_version, "kind": kind, **found}


def _message_name(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    if kind == "DeleteOptions":
        return "meta/v1.DeleteOptions"
    return f"{group.partition('.')[0] or 'core'}/{version}.{kind}"


@functools.cache
def _messages() -> Mapping[str, Mapping[str, str]]:
    found: Mapping[str, Mapping[str, str]] = orjson.loads(
        importlib.resources.files(__package__).joinpath("protobuf_table.json").read_bytes()
    )
    return found


@functools.cache
def _fields(name: str) -> Mapping[int, _Field]:
    return {int(number): _field(text) for number, text in _messages()[name].items()}


def _field(text: str) -> _Field:
    name, _, rest = text.partition(":")
    omits_empty, rest = rest.startswith("~"), rest.removeprefix("~")
    pointer, rest = rest.startswith("*"), rest.removeprefix("*")
    is_list, is_map = rest.startswith("[]"), rest.startswith("{}")
    rest = rest[2:] if is_list or is_map else rest
    if wrapped := rest.startswith("wrapped []"):
        rest = rest.removeprefix("wrapped []")
    return _Field(name, rest.removeprefix("*"), is_list, is_map, pointer, omits_empty, wrapped)


def _message(name: str, data: memoryview) -> dict[str, Any]:
    found: dict[str, Any] = {}
    fields = _fields(name)
    for number, value in _parts(data):
        field = fields.get(number)
        if field is None:
            continue
        if field.is_map:
            entry = dict(_parts(value))
            member = _value(field, entry.get(2, memoryview(b"")))
            found.setdefault(field.name, {})[_string(entry.get(1, memoryview(b"")))] = member
        elif field.is_list:
            found.setdefault(field.name, []).append(_value(field, value))
        elif not field.name:
            found.update(_value(field, value))
        else:
            member = _value(field, value)
            # Go writes every field that is not a pointer, and leaves it out of the JSON if it is empty.
            if member is not None and (member or field.is_pointer or not field.omits_empty):
                found[field.name] = member
    return found


def _value(field: _Field, value: Any) -> Any:
    if field.is_wrapped:
        return [_string(each) for number, each in _parts(value) if number == 1]
    if isinstance(value, int) is not (field.type in _NUMBERS):
        raise ValueError(f"{field.name} is of another type")
    read = _READERS.get(field.type)
    return _message(field.type, value) if read is None else read(value)


def _parts(data: memoryview) -> Iterator[tuple[int, Any]]:
    """The fields of a message: integers and bytes by number."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
        elif wire == 2:
            length, at = _varint(data, at)
            if at + length > end:
                raise ValueError("a field is longer than its message")
            yield number, data[at : at + length]
            at += length
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            yield number, data[at : at + size]
            at += size
        else:
            raise ValueError(f"wire type {wire}")


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def _string(value: Any) -> str:
    if isinstance(value, int):
        raise TypeError("a number where there should be text")
    return bytes(value).decode()


def _integer(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _quantity(value: Any) -> str:
    return _string(dict(_parts(value)).get(1, b""))


def _int_or_string(value: Any) -> int | str:
    found = dict(_parts(value))
    return _string(found.get(3, b"")) if found.get(1) else _integer(found.get(2, 0))


def _raw(value: Any) -> Any:
    raw = _string(dict(_parts(value)).get(1, b""))
    return orjson.loads(raw) if raw else None


def _time(value: Any) -> str | None:
    found = dict(_parts(value))
    if not found:
        return None
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(_integer(found.get(1, 0))))


def _micro_time(value: Any) -> str | None:
    found = dict(_parts(value))
    if not found:
        return None
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(_integer(found.get(1, 0))))
    return f"{whole}.{found.get(2, 0) // 1000:06d}Z"


def _duration(value: Any) -> str:
    return f"{_integer(dict(_parts(value)).get(1, 0)) / 1e9:g}s"


def _double(value: Any) -> float:
    (found,) = struct.unpack("<d", value)
    return float(found)


_NUMBERS: Final = frozenset({"int", "bool"})
_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "string": _string,
    "bytes": lambda value: base64.b64encode(value).decode(),
    "int": _integer,
    "bool": bool,
    "double": _double,
    "quantity": _quantity,
    "int-or-string": _int_or_string,
    "raw": _raw,
    "time": _time,
    "micro-time": _micro_time,
    "duration": _duration,
}
