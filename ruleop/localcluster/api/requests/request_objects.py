"""The object in the body of a request, and whether it is of the kind that its address says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from ruleop.kubernetes.builtin.builtin_types import typed_shape
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.validation.field_errors import invalid_value
from ruleop.localcluster.api.requests.request_bodies import APPLY, JSON_PATCH, MERGE, STRATEGIC, read_body
from ruleop.localcluster.objects.decoding import DecodingError, decode, in_body, in_patch, strict_problem, unknown_field
from ruleop.localcluster.objects.go_json import duplicates, may_repeat
from ruleop.localcluster.objects.go_text import go_text
from ruleop.localcluster.objects.patches import json_patch, merge_patch, strategic_merge_patch
from ruleop.localcluster.status_errors import (
    Rejected,
    bad_request,
    invalid_named,
    not_registered,
    unrecognized,
    unsupported_media_type,
)

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.http.message import Request
    from ruleop.localcluster.kinds.served import Served
    from ruleop.localcluster.kinds.served_resources import Registry
    from ruleop.localcluster.objects.decoding import Decoded


def check_name(obj: Object, name: str) -> None:
    """Raises Rejected if an object has another name than its path."""
    given = (obj.get("metadata") or {}).get("name", "")
    if not given:
        raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if given != name:
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")


def check_namespace(obj: Object, namespace: str, served: Served) -> None:
    """Raises Rejected if an object is of another namespace than its path."""
    given = (obj.get("metadata") or {}).get("namespace")
    if served.namespaced and given and given != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def patched(served: Served, obj: Object, media: str, patch: Any) -> Object:
    """Raises Rejected."""
    if media == JSON_PATCH:
        return json_patch(obj, patch)
    if media == MERGE:
        return merge_patch(obj, patch)
    if media == STRATEGIC and not served.is_custom:
        return strategic_merge_patch(obj, patch, served.shape)
    known = [JSON_PATCH, MERGE, *([] if served.is_custom else [STRATEGIC]), APPLY]
    raise unsupported_media_type(", ".join(known))


def refused(media: str, patch: Any, new: Object, error: DecodingError) -> Rejected:
    """The response to a patch whose result cannot be decoded."""
    if media != STRATEGIC:
        return in_patch(orjson.dumps(new, option=orjson.OPT_SORT_KEYS).decode(), str(error))
    return in_patch(go_text(patch), error.conversion)


def configuration(patch: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """The body of a server-side apply. Raises Rejected."""
    version, name = str(patch.get("apiVersion") or ""), str(patch.get("kind") or "")
    if kind.kind != name or kind.api_version != version:
        raise bad_request(f"invalid object type: {version if '/' in version else f'/{version}'}, Kind={name}")
    return patch


def parsed(request: Request, *, served: Served, registry: Registry, warnings: list[str]) -> dict[str, Any]:
    """The object of a request; to the warnings are added those about it. Raises Rejected."""
    kind = served.kind
    obj = read_body(request, kind.kind)
    warnings += _repeated_fields(request, obj, kind)
    if not obj.get("kind") and served.is_custom:
        text = request.body.decode(errors="replace")
        raise unrecognized(kind.kind, f"Object 'Kind' is missing in '{text}'", request.body)
    obj["kind"] = obj.get("kind") or kind.kind
    obj["apiVersion"] = obj.get("apiVersion") or kind.api_version
    _check_type(obj, served, registry)
    return obj


def read_unstored(
    request: Request, kind: Kind, registry: Registry, warnings: list[str], *, also: Container[str] = ()
) -> dict[str, Any]:
    """The object of a request that is answered and not stored, such as a review. `also`: older versions of the same
    fields. Raises Rejected."""
    obj = read_body(request, kind.kind)
    if obj.get("kind") == kind.kind and obj.get("apiVersion") in also:
        obj["apiVersion"] = kind.api_version
    warnings += _repeated_fields(request, obj, kind)
    found = decode_unstored(obj, kind, registry)
    validation = request.query.get("fieldValidation") or "Warn"
    unknown = [] if validation == "Ignore" else list(map(unknown_field, found.unknown))
    if unknown and validation == "Strict":
        raise in_body(kind, strict_problem(unknown))
    warnings += unknown
    return found.obj


def decode_unstored(obj: Mapping[str, Any], kind: Kind, registry: Registry) -> Decoded:
    """An object that may lack its kind and its version. Raises Rejected."""
    whole = {**obj, "kind": obj.get("kind") or kind.kind, "apiVersion": obj.get("apiVersion") or kind.api_version}
    _check_built_in(whole, kind, registry)
    shape = typed_shape(kind)
    assert shape is not None
    try:
        return decode(whole, shape)
    except DecodingError as error:
        raise in_body(kind, error) from None


def _repeated_fields(request: Request, obj: dict[str, Any], kind: Kind) -> list[str]:
    """Warnings of fields that the body has more than once. Raises Rejected."""
    validation = request.query.get("fieldValidation") or "Warn"
    if validation == "Ignore" or request.body[:1] != b"{" or not may_repeat(request.body, obj):
        return []
    problems = [f'duplicate field "{path}"' for path in duplicates(request.body)]
    if problems and validation == "Strict":
        raise bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            f"strict decoding error: {', '.join(problems)}"
        )
    return problems


def _check_type(obj: dict[str, Any], served: Served, registry: Registry) -> None:
    """Raises Rejected if an object is of another kind than its path."""
    kind, version = served.kind, obj["apiVersion"]
    if served.is_custom:
        if version != kind.api_version:
            raise bad_request(
                f"the API version in the data ({version}) does not match the expected API version ({kind.api_version})"
            )
        if obj["kind"] != kind.kind:
            error = invalid_value("kind", obj["kind"], f"must be {kind.kind}")
            metadata = obj.get("metadata")
            name = str(metadata.get("name", "")) if isinstance(metadata, dict) else ""
            raise invalid_named(kind.group, obj["kind"], name, [error])
        return
    _check_built_in(obj, kind, registry)


def _check_built_in(obj: Mapping[str, Any], kind: Kind, registry: Registry) -> None:
    """Raises Rejected if an object is none of a built-in kind."""
    problem = _conversion_problem(obj, kind, registry)
    if problem is not None:
        short = str(obj["apiVersion"]).rpartition("/")[2]
        raise bad_request(f'{obj["kind"]} in version "{short}" cannot be handled as a {kind.kind}: {problem}')


def _conversion_problem(obj: Mapping[str, Any], kind: Kind, registry: Registry) -> str | None:
    """The reason that an object is not of the built-in kind, in the words of the server's decoder."""
    version, name = str(obj.get("apiVersion") or ""), str(obj.get("kind") or "")
    if (version, name) == (kind.api_version, kind.kind):
        return None
    known = (Kind.parse(version, each) for each in (name, name.removesuffix("List")))
    if (version, name) != ("v1", "List") and not any(map(registry.of_kind, known)):
        return not_registered(name, version)
    short, group = version.rpartition("/")[2], kind.group.partition(".")[0] or "core"
    return f"converting ({short}.{name}) to ({group}.{kind.kind}): unknown conversion"


def decodable(served: Served, new: dict[str, Any], media: str, patch: Any, registry: Registry) -> dict[str, Any]:
    """The object that a patch makes of one of a built-in kind. Raises Rejected if the server cannot decode it."""
    if media == STRATEGIC:  # is applied to the decoded object, which has no kind
        new = {**new, "kind": served.kind.kind, "apiVersion": served.kind.api_version}
    elif not new.get("kind") and new.get("apiVersion") == served.kind.api_version:
        new = {**new, "kind": served.kind.kind}
    elif (problem := _conversion_problem(new, served.kind, registry)) is not None:
        raise refused(media, patch, new, DecodingError(problem))
    return new


def check_kind(new: Mapping[str, Any], old: Mapping[str, Any], served: Served, subresource: str) -> None:
    """Raises Rejected if a patch changes the kind of a custom resource, or its version. A write of the status ignores
    both."""
    kind, version = str(new.get("kind") or ""), str(new.get("apiVersion") or "")
    if not kind:
        text = orjson.dumps(new, option=orjson.OPT_SORT_KEYS).decode()
        raise in_patch(text, f"Object 'Kind' is missing in '{text}'")
    if not version:
        problem = "Object 'apiVersion' is missing in 'object has no apiVersion field'"
        message = f"Internal error occurred: {problem}"
        raise Rejected(500, "InternalError", message, {"causes": [{"message": problem}]})
    expected = {"kind": (kind, old["kind"]), "apiVersion": (version, served.kind.api_version)}
    errors = [
        invalid_value(field, found, f"must be {right}") for field, (found, right) in expected.items() if found != right
    ]
    if errors and subresource != "status":
        raise invalid_named(version.rpartition("/")[0], kind, old["metadata"]["name"], errors)
