"""The bodies of requests: objects, patches, options; and whether an object is of the kind that its address says."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

import orjson
import yaml

from ruleop.kubernetes.builtin.builtin_types import typed_shape
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.validation import invalid_value
from ruleop.localcluster.http.protobuf import MEDIA_TYPE, ProtobufError, read_protobuf
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
    from collections.abc import Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.http.message import Request
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
        try:
            return read_protobuf(request.body)
        except ProtobufError as error:
            raise bad_request(
                f"the body of the request is protobuf that cannot be read ({error}); "
                'let the client send JSON (in Go: rest.Config.ContentType = "application/json")'
            ) from None
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
