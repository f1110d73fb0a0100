"""Errors as the API server answers them: Status objects with a reason, a code, details and causes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.kubernetes.kinds import Kind
    from ruleop.kubernetes.validation import FieldError


class Rejected(Exception):  # noqa: N818 - named for what happened to the request
    """A request that is not carried out."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message
        self.details, self.headers = details, dict(headers or {})

    def document(self) -> dict[str, Any]:
        found = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason or None,
            "details": self.details,
            "code": self.code,
        }
        return {name: value for name, value in found.items() if value is not None}


def _details(group: str, plural: str, name: str) -> dict[str, Any]:
    found = {"name": name, "group": group, "kind": plural}
    return {key: value for key, value in found.items() if value}


def _title(group: str, plural: str) -> str:
    return f"{plural}.{group}" if group else plural


def bad_request(message: str) -> Rejected:
    return Rejected(400, "BadRequest", message)


def unknown_path() -> Rejected:
    return Rejected(404, "NotFound", "the server could not find the requested resource", {})


def not_found(group: str, plural: str, name: str) -> Rejected:
    return Rejected(404, "NotFound", f'{_title(group, plural)} "{name}" not found', _details(group, plural, name))


def already_exists(group: str, plural: str, name: str, *, ends: bool) -> Rejected:
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


def forbidden(group: str, plural: str, name: str, message: str, errors: Iterable[FieldError] = ()) -> Rejected:
    details = _details(group, plural, name)
    found = [each.document() for each in errors]
    return Rejected(
        403,
        "Forbidden",
        f'{_title(group, plural)} "{name}" is forbidden: {message}',
        {**details, "causes": found} if found else details,
    )


def invalid(kind: Kind, name: str, errors: Iterable[FieldError]) -> Rejected:
    return invalid_named(kind.group, kind.kind, name, errors)


def invalid_named(group: str, kind: str, name: str, errors: Iterable[FieldError]) -> Rejected:
    found = list(errors)
    sentences = list(dict.fromkeys(f"{each.field}: {each.message}" if each.field else each.message for each in found))
    text = sentences[0] if len(sentences) == 1 else f"[{', '.join(sentences)}]"
    return Rejected(
        422,
        "Invalid",
        f'{_title(group, kind)} "{name}" is invalid: {text}',
        {**_details(group, kind, name), "causes": [each.document() for each in found]},
    )


def invalid_options(options: str, *errors: FieldError) -> Rejected:
    """The rejection of a request with invalid options, such as ListOptions."""
    return invalid_named("meta.k8s.io", options, "", errors)


def unsupported_media_type(accepted: str) -> Rejected:
    return Rejected(
        415,
        "UnsupportedMediaType",
        f"the body of the request was in an unknown format - accepted media types include: {accepted}",
    )


def method_not_allowed() -> Rejected:
    return Rejected(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def internal(message: str) -> Rejected:
    """The server treats some mistakes of clients as its own."""
    return Rejected(500, "", message)


def expired(message: str) -> Rejected:
    return Rejected(410, "Expired", message)


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
