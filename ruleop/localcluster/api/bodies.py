"""The bodies of requests: objects, patches, options; and whether an object is of the kind that its address says."""

from __future__ import annotations

import base64
import contextlib
import struct
import time
from typing import TYPE_CHECKING, Any, Final

import orjson
import yaml

from ruleop.kubernetes.builtin.builtin_types import protobuf_fields, typed_shape
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.validation import invalid_value
from ruleop.localcluster.objects import (
    DecodingError,
    decode,
    json_patch,
    merge_patch,
    strategic_merge_patch,
    strict_problem,
    type_name,
    undecodable,
    unknown_field,
)
from ruleop.localcluster.status_errors import bad_request, invalid_named, unsupported_media_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.schema import Shape
    from ruleop.localcluster.http import Request
    from ruleop.localcluster.kinds import ServedKind


_MAX_DEPTH: Final = 200  # levels of YAML
JSON_PATCH, MERGE = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
_YAML: Final = frozenset({"application/yaml", APPLY})
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DELETE_OPTIONS: Final = Kind("", "v1", "DeleteOptions")


def _media_type(request: Request, default: str = "") -> str:
    return request.headers.get("content-type", default).partition(";")[0].strip()


def patch_type(request: Request, served: ServedKind) -> str:
    """Raises Rejected."""
    media, known = _media_type(request), [JSON_PATCH, MERGE, *([] if served.is_custom else [STRATEGIC]), APPLY]
    if media not in known:
        raise unsupported_media_type(", ".join(known))
    return media


def read_body(request: Request) -> dict[str, Any]:
    """The body of a request, which has to be an object. Raises Rejected."""
    media = _media_type(request, "application/json")
    if media == MEDIA_TYPE:
        return read_protobuf(request.body)
    if media not in ("application/json", *_YAML):
        raise unsupported_media_type(f"application/json, application/yaml, {MEDIA_TYPE}")
    return _object(request, is_yaml=media in _YAML)


def _object(request: Request, *, is_yaml: bool) -> dict[str, Any]:
    try:
        found = _from_yaml(request.body) if is_yaml else orjson.loads(request.body)
    except (ValueError, yaml.YAMLError) as error:
        raise bad_request(f"the body of the request cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise bad_request(f"the body of the request must be an object, not {type_name(found)}")
    return found


def _from_yaml(data: bytes) -> Any:
    """Most clients send JSON, which is YAML and is parsed a hundred times faster."""
    if data[:1] == b"{":
        with contextlib.suppress(ValueError):
            return orjson.loads(data)
    _check_depth(data)
    loader = _LOADER(data)
    try:  # only the first document is read
        return loader.get_data() if loader.check_data() else None
    finally:
        loader.dispose()


def _check_depth(data: bytes) -> None:
    """The C loader of PyYAML calls itself for each level, until the process dies. Raises YAMLError."""
    depth = 0
    for event in yaml.parse(data, _LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                mark: Any = event.start_mark
                raise yaml.MarkedYAMLError(problem=f"exceeded max depth of {_MAX_DEPTH}", problem_mark=mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def read_patch(request: Request) -> Any:
    try:
        return orjson.loads(request.body)
    except ValueError as error:
        raise bad_request(f"the patch cannot be read: {error}") from None


def read_configuration(request: Request, kind: Kind) -> dict[str, Any]:
    """The body of a server-side apply. Raises Rejected."""
    config = _object(request, is_yaml=True)
    if (config.get("apiVersion"), config.get("kind")) != (kind.api_version, kind.kind):
        group, _, version = str(config.get("apiVersion") or "").rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={config.get('kind') or ''}")
    return config


def read_delete_options(request: Request) -> Mapping[str, Any]:
    """The DeleteOptions of a request, which may have none. Raises Rejected."""
    if not request.body.strip():
        return {}
    found = {**read_body(request), "apiVersion": "v1"}  # each group has its own
    return _decoded(found, _DELETE_OPTIONS, [], "Ignore")


def read_object(request: Request, served: ServedKind) -> dict[str, Any]:
    """The object of a request. Raises Rejected."""
    obj = read_body(request)
    if not served.is_custom:
        return of_kind(obj, served.kind)
    obj["apiVersion"] = obj.get("apiVersion") or served.kind.api_version
    check_kind(obj, served)
    return obj


def read_unstored(request: Request, kind: Kind, warnings: list[str]) -> dict[str, Any]:
    """The object of a request that is answered and not stored, such as a review. Raises Rejected."""
    return _decoded(read_body(request), kind, warnings, request.query.get("fieldValidation") or "Warn")


def decode_unstored(obj: Mapping[str, Any], kind: Kind) -> dict[str, Any]:
    return _decoded(obj, kind, [], "Ignore")


def _decoded(obj: Mapping[str, Any], kind: Kind, warnings: list[str], validation: str) -> dict[str, Any]:
    shape = typed_shape(kind)
    assert shape is not None
    try:
        found = decode(of_kind(obj, kind), shape)
    except DecodingError as error:
        raise undecodable(kind, error) from None
    unknown = [] if validation == "Ignore" else list(map(unknown_field, found.unknown))
    if unknown and validation == "Strict":
        raise undecodable(kind, strict_problem(unknown))
    warnings += unknown
    return found.obj


def of_kind(obj: Mapping[str, Any], kind: Kind, code: int = 400) -> dict[str, Any]:
    """An object of a built-in kind, which may lack its kind and its version. Raises Rejected."""
    found = {**obj, "kind": obj.get("kind") or kind.kind, "apiVersion": obj.get("apiVersion") or kind.api_version}
    if (found["apiVersion"], found["kind"]) != (kind.api_version, kind.kind):
        raise undecodable(kind, f"it is of {_title(found)}", code)
    return found


def check_kind(obj: Mapping[str, Any], served: ServedKind, code: int = 400) -> None:
    """Raises Rejected if an object is not of the custom kind, or not of its version."""
    kind, name, version = served.kind, obj.get("kind"), obj.get("apiVersion")
    if not name or not version:
        raise undecodable(kind, "Object 'Kind' is missing" if not name else "Object 'apiVersion' is missing", code)
    if version != kind.api_version and code == 400:
        expected = f"the expected API version ({kind.api_version})"
        raise bad_request(f"the API version in the data ({version}) does not match {expected}")
    pairs = (("kind", name, kind.kind), ("apiVersion", version, kind.api_version))
    if errors := [invalid_value(field, given, f"must be {right}") for field, given, right in pairs if given != right]:
        metadata = obj.get("metadata")
        title = str(metadata.get("name", "")) if isinstance(metadata, dict) else ""
        raise invalid_named(str(version).rpartition("/")[0], str(name), title, errors)


def _title(obj: Mapping[str, Any]) -> str:
    return f"{obj.get('apiVersion') or ''}, Kind={obj.get('kind') or ''}"


def check_name(obj: Object, name: str) -> None:
    """Raises Rejected if an object has another name than its path."""
    given = (obj.get("metadata") or {}).get("name", "")
    if not given:
        raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if given != name:
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")


def check_namespace(obj: Object, namespace: str, served: ServedKind) -> None:
    """Raises Rejected if an object is of another namespace than its path."""
    given = (obj.get("metadata") or {}).get("namespace")
    if served.namespaced and given and given != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def patched(served: ServedKind, obj: Object, media: str, patch: Any) -> Object:
    """The object after a JSON, merge or strategic merge patch. Raises Rejected."""
    if media == JSON_PATCH:
        return json_patch(obj, patch)
    if media == MERGE:
        return merge_patch(obj, patch)
    return strategic_merge_patch(obj, patch, served.shape)


# -- protobuf --------------------------------------------------------------------------------------------------------
#
# What controller-runtime sends of built-in kinds, without asking whether a server reads it, turned into JSON. Responses
# are JSON, which these clients accept as well.


MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
MAGIC: Final = b"k8s\x00"
_NOTHING: Final = memoryview(b"")


_PROBLEMS: Final = (LookupError, ValueError, TypeError, ArithmeticError, OSError, struct.error, RecursionError)


def read_protobuf(body: bytes) -> dict[str, Any]:
    """The object of a request. Raises Rejected."""
    try:
        if not body.startswith(MAGIC):
            raise ValueError("it does not begin as Kubernetes' protobuf does")
        envelope = dict(_parts(memoryview(body)[len(MAGIC) :]))
        type_meta = dict(_parts(envelope.get(1, _NOTHING)))
        api_version, name = (_string(type_meta.get(number, _NOTHING)) for number in (1, 2))
        raw = envelope.get(2, _NOTHING)
        if bytes(envelope.get(4, b"")) == b"application/json":
            found = orjson.loads(raw)
            if not isinstance(found, dict):
                raise ValueError("the JSON in it is not an object")
        else:
            kind = _DELETE_OPTIONS if name == _DELETE_OPTIONS.kind else Kind.parse(api_version, name)
            shape = typed_shape(kind)
            if shape is None or not protobuf_fields(shape.name):
                raise LookupError(f"{api_version}, Kind={name} is unknown")
            found = _message(shape, protobuf_fields(shape.name), raw)
    except _PROBLEMS as error:
        raise bad_request(
            f"the body of the request is protobuf that is damaged, or of a newer Kubernetes ({error}); "
            'let the client send JSON (in Go: rest.Config.ContentType = "application/json")'
        ) from None
    return {"apiVersion": api_version, "kind": name, **found}


def _message(shape: Shape, fields: Object, data: memoryview) -> dict[str, Any]:
    """`fields`: those of `protobuf_fields`."""
    found: dict[str, Any] = {}
    for number, value in _parts(data):
        field = fields.get(str(number))
        if field is None:
            continue
        if isinstance(field, dict):
            found.update(_message(shape, field, value))
            continue
        name = field.removeprefix("*")
        inner = shape.fields[name]
        if inner.type == "list":
            found.setdefault(name, []).append(_value(inner.items, value))
        elif inner.values is not None:
            entry = dict(_parts(value))
            found.setdefault(name, {})[_string(entry.get(1, _NOTHING))] = _value(inner.values, entry.get(2, _NOTHING))
        elif ((member := _value(inner, value)) or name != field) and member is not None:
            found[name] = member  # Go writes all that are not pointers, and leaves empty ones out of the JSON
    return found


def _value(shape: Shape | None, value: Any) -> Any:
    assert shape is not None
    if isinstance(value, int) is not (shape.scalar in _NUMBERS):
        raise ValueError("a field is of another type")
    if shape.type == "object":
        fields = protobuf_fields(shape.name)
        return _message(shape, fields, value) if fields else _raw(value)
    if shape.type == "list":  # the value of a map
        return [_value(shape.items, each) for number, each in _parts(value) if number == 1]
    return _SCALARS[shape.format or shape.scalar](value, shape)


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


def _text_of(value: Any) -> str:
    """The text that is the first field of a message."""
    return _string(dict(_parts(value)).get(1, b""))


def _int_or_string(value: Any) -> int | str:
    found = dict(_parts(value))
    return _string(found.get(3, b"")) if found.get(1) else _integer(found.get(2, 0))


def _raw(value: Any) -> Any:
    raw = _text_of(value)
    return orjson.loads(raw) if raw else None


def _time(value: Any, shape: Shape) -> str | None:
    found = dict(_parts(value))
    if not found:
        return None
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(_integer(found.get(1, 0))))
    return f"{whole}.{found.get(2, 0) // 1000:06d}Z" if shape.name.endswith(".MicroTime") else f"{whole}Z"


_NUMBERS: Final = frozenset({"integer", "boolean"})
_SCALARS: Final[Mapping[str, Callable[[Any, Shape], Any]]] = {
    "string": lambda value, _: _string(value),
    "byte": lambda value, _: base64.b64encode(value).decode(),
    "int32": lambda value, _: _integer(value),
    "int64": lambda value, _: _integer(value),
    "boolean": lambda value, _: bool(value),
    "quantity": lambda value, _: _text_of(value),
    "int-or-string": lambda value, _: _int_or_string(value),
    "date-time": _time,
}
