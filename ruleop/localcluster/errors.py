"""Errors as the API server answers them: Status objects with a reason, a code, details and causes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.kinds import Kind

SCHEME: Final = "pkg/runtime/scheme.go:111"
"""Where the server's decoder looks kinds up, as its messages name it."""


class Cause(NamedTuple):
    """One reason of an error, with the field that it concerns."""

    reason: str
    message: str
    field: str = ""

    def document(self) -> dict[str, Any]:
        found = {"reason": self.reason, "message": self.message}
        return {**found, "field": self.field} if self.field else found


def unsupported(field: str, value: object, supported: Iterable[str]) -> Cause:
    """A value that is not in an enumeration."""
    listed = ", ".join(f'"{each}"' for each in supported)
    shown = orjson.dumps(value).decode()
    return Cause("FieldValueNotSupported", f"Unsupported value: {shown}: supported values: {listed}", field)


def invalid_value(field: str, value: object, problem: str = "") -> Cause:
    shown = f"Invalid value: {orjson.dumps(value).decode()}"
    return Cause("FieldValueInvalid", f"{shown}: {problem}" if problem else shown, field)


def invalid_values(field: str, value: object, problems: Iterable[str]) -> Iterator[Cause]:
    """One cause for each problem of a value."""
    return (invalid_value(field, value, problem) for problem in problems)


def immutable_value(field: str, value: object) -> Cause:
    return invalid_value(field, value, "field is immutable")


def required(field: str, problem: str = "") -> Cause:
    return Cause("FieldValueRequired", f"Required value: {problem}" if problem else "Required value", field)


def duplicate(field: str, value: object) -> Cause:
    return Cause("FieldValueDuplicate", f"Duplicate value: {orjson.dumps(value).decode()}", field)


def too_long(field: str, limit: int) -> Cause:
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", field)


def too_many(field: str, number: int, limit: int) -> Cause:
    return Cause("FieldValueTooMany", f"Too many: {number}: must have at most {limit} items", field)


def forbidden_value(field: str, problem: str) -> Cause:
    return Cause("FieldValueForbidden", f"Forbidden: {problem}", field)


class Rejected(Exception):  # noqa: N818 - named for what happened to the request
    """A request that is not carried out."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.metadata = code, reason, message, metadata
        self.details, self.headers = details, dict(headers or {})

    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": dict(self.metadata or {}),
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        }
        if self.details is None:
            del found["details"]
        if not self.reason:
            del found["reason"]
        return found


def _details(group: str, plural: str, name: str) -> dict[str, Any]:
    found = {"name": name, "group": group, "kind": plural}
    return {key: value for key, value in found.items() if value}


def _title(group: str, plural: str) -> str:
    return f"{plural}.{group}" if group else plural


def not_registered(kind: str, version: str) -> str:
    """What the server's decoder says of a kind that it does not know, or not here."""
    return f'no kind "{kind}" is registered for version "{version}" in scheme "{SCHEME}"'


def bad_request(message: str) -> Rejected:
    return Rejected(400, "BadRequest", message)


def unknown_path() -> Rejected:
    return Rejected(404, "NotFound", "the server could not find the requested resource", {})


def not_found(group: str, plural: str, name: str) -> Rejected:
    return Rejected(404, "NotFound", f'{_title(group, plural)} "{name}" not found', _details(group, plural, name))


def already_exists(group: str, plural: str, name: str, *, ends: bool = False) -> Rejected:
    """`ends`: the existing object is being deleted."""
    message = f'{_title(group, plural)} "{name}" already exists'
    if ends:
        message = f"object is being deleted: {message}"
    return Rejected(409, "AlreadyExists", message, _details(group, plural, name))


def conflict(group: str, plural: str, name: str, message: str) -> Rejected:
    return Rejected(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {_title(group, plural)} "{name}": {message}',
        _details(group, plural, name),
    )


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def forbidden(group: str, plural: str, name: str, message: str, causes: Iterable[Cause] = ()) -> Rejected:
    details = _details(group, plural, name)
    found = [each.document() for each in causes]
    return Rejected(
        403,
        "Forbidden",
        f'{_title(group, plural)} "{name}" is forbidden: {message}',
        {**details, "causes": found} if found else details,
    )


def invalid(kind: Kind, name: str, causes: Iterable[Cause]) -> Rejected:
    return invalid_named(kind.group, kind.kind, name, causes)


def invalid_named(group: str, kind: str, name: str, causes: Iterable[Cause]) -> Rejected:
    found = list(causes)
    sentences = list(dict.fromkeys(f"{each.field}: {each.message}" if each.field else each.message for each in found))
    text = sentences[0] if len(sentences) == 1 else f"[{', '.join(sentences)}]"
    return Rejected(
        422,
        "Invalid",
        f'{_title(group, kind)} "{name}" is invalid: {text}',
        {**_details(group, kind, name), "causes": [each.document() for each in found]},
    )


def invalid_options(options: str, *causes: Cause) -> Rejected:
    """What is wrong with the options of a request, such as ListOptions."""
    return invalid_named("meta.k8s.io", options, "", causes)


READ_TYPES: Final = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
STREAM_TYPES: Final = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"


def unsupported_media_type(accepted: str) -> Rejected:
    return Rejected(
        415,
        "UnsupportedMediaType",
        f"the body of the request was in an unknown format - accepted media types include: {accepted}",
    )


def unsupported_patch_type() -> Rejected:
    """The answer of the built-in kinds."""
    return Rejected(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def no_representation(available: str) -> Rejected:
    """The built-in kinds' answer where no accepted media type is known."""
    return Rejected(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {available}", {})


def not_acceptable(message: str) -> Rejected:
    return Rejected(406, "NotAcceptable", message)


def method_not_allowed() -> Rejected:
    return Rejected(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def not_supported(group: str, plural: str, verb: str) -> Rejected:
    """A method that a custom resource does not have there."""
    return Rejected(
        405,
        "MethodNotAllowed",
        f'{verb} is not supported on resources of kind "{_title(group, plural)}"',
        _details(group, plural, ""),
    )


def internal(message: str) -> Rejected:
    """The server treats some mistakes of clients as its own."""
    return Rejected(500, "", message)


def expired(message: str) -> Rejected:
    return Rejected(410, "Expired", message)


def gone(message: str) -> Rejected:
    return Rejected(410, "Gone", message)


def too_large_version(asked: int, current: int) -> Rejected:
    return Rejected(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {asked}, current: {current}",
        {
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        },
        {"Retry-After": "1"},
    )
