"""The bodies of requests: objects, patches, options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import yaml

from ruleop.kubernetes.builtin.builtin_types import typed_shape
from ruleop.kubernetes.kinds import Kind
from ruleop.localcluster.http.protobuf import MEDIA_TYPE, ProtobufError, read_protobuf
from ruleop.localcluster.objects.decoding import DecodingError, decode
from ruleop.localcluster.objects.go_json import MAX_DEPTH, loads, problem_of
from ruleop.localcluster.objects.go_text import type_name
from ruleop.localcluster.status_errors import (
    READ_TYPES,
    Rejected,
    bad_request,
    not_registered,
    unrecognized,
    unsupported_media_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ruleop.localcluster.http.message import Request

JSON_PATCH, MERGE = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
_YAML: Final = frozenset({"application/yaml", APPLY})
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def media_type(request: Request, default: str = "") -> str:
    return request.headers.get("content-type", default).partition(";")[0].strip()


def read_body(request: Request, kind: str) -> dict[str, Any]:
    """The body of a request, which has to be an object of a kind."""
    return _read(request, lambda problem: unrecognized(kind, problem, request.body))


def _read(request: Request, refuse: Callable[[str], Rejected]) -> dict[str, Any]:
    """The body of a request, an object. Raises what `refuse` makes of the problem."""
    media = media_type(request, "application/json")
    if media == MEDIA_TYPE:
        try:
            return read_protobuf(request.body)
        except ProtobufError as error:
            raise bad_request(
                f"the body of the request is protobuf that cannot be read ({error}); "
                'let the client send JSON (in Go: rest.Config.ContentType = "application/json")'
            ) from None
    if media not in ("application/json", *_YAML):
        raise unsupported_media_type(READ_TYPES)
    try:
        found = _from_yaml(request.body) if media in _YAML else loads(request.body)
    except (ValueError, yaml.YAMLError):
        raise refuse(f"couldn't get version/kind; json parse error: {problem_of(request.body)}") from None
    if not isinstance(found, dict):
        raise refuse(
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {type_name(found)} into Go "
            'value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
            'Kind string "json:\\"kind,omitempty\\"" }'
        )
    return found


def _from_yaml(data: bytes) -> Any:
    """Most clients send JSON, which is YAML and is parsed a hundred times faster."""
    if data[:1] == b"{":
        try:
            return loads(data)
        except ValueError:
            pass
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
            if depth > MAX_DEPTH:
                mark: Any = event.start_mark
                raise yaml.MarkedYAMLError(problem=f"exceeded max depth of {MAX_DEPTH}", problem_mark=mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def read_patch(request: Request, media: str) -> Any:
    if media == APPLY:
        return _read_configuration(request)
    title = "" if media == STRATEGIC else "error decoding patch: "
    try:
        return loads(request.body)
    except ValueError:
        raise bad_request(f"{title}{problem_of(request.body)}") from None


def _read_configuration(request: Request) -> Any:
    try:
        found = _from_yaml(request.body)
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None) or "cannot be read"
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: yaml: {where}{problem}") from None
    if found is not None and not isinstance(found, dict):
        raise bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
            f"{type_name(found)} into Go value of type map[string]interface {{}}"
        )
    return found or {}


def read_delete_options(request: Request) -> Mapping[str, Any]:
    """The DeleteOptions of a request, which may have none. Raises Rejected."""
    if not request.body.strip():
        return {}
    found = _read(request, bad_request)
    version, name = str(found.get("apiVersion") or ""), found.get("kind") or "DeleteOptions"
    if name != "DeleteOptions":
        raise bad_request(not_registered(name, version))
    shape = typed_shape(Kind("", "v1", "DeleteOptions"))
    assert shape is not None
    try:
        return decode(found, shape).obj
    except DecodingError as error:
        raise bad_request(str(error)) from None
