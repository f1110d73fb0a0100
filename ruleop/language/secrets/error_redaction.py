"""Redacts the error of a rejected write whose object contains data of a Secret.

The API server's messages quote the values that it rejects, and a webhook's message can contain anything. So no message
is shown, only words of a known form: the status, its reason, and for each cause the field and the kind of mistake. This
is the only function for that; its result is used in logs, conditions and Events.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.errors import Cause

# The reasons of Kubernetes (apimachinery's StatusReason). A webhook can write anything there.
_REASONS = frozenset(
    {
        "AlreadyExists",
        "BadRequest",
        "Conflict",
        "Expired",
        "Forbidden",
        "Gone",
        "InternalError",
        "Invalid",
        "MethodNotAllowed",
        "NotAcceptable",
        "NotFound",
        "RequestEntityTooLarge",
        "ServerTimeout",
        "ServiceUnavailable",
        "Timeout",
        "TooManyRequests",
        "Unauthorized",
        "UnsupportedMediaType",
    }
)
# The words that Kubernetes puts between a field and the value.
_MISTAKES = {
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueInvalid": "Invalid value",
    "FieldValueNotFound": "Not found",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueRequired": "Required value",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "FieldValueTypeInvalid": "Invalid type",
}
# A path that begins with a top-level field of objects. Any other text in its place could be a value.
_PATH = re.compile(
    r"(?:metadata|spec|status|data|stringData|binaryData|type|immutable)(?:\[[\w.\-/]{1,253}\]|\.[A-Za-z]\w{0,62})*"
)


def holds_secret(resource: str) -> bool:
    """Whether the resource of a request ("secrets prod/web") is a Secret."""
    return resource.partition(" ")[0] == "secrets"


def redacted(status: int, reason: str, causes: Iterable[Cause]) -> str:
    """`rejected by the API server (422 Invalid): data[password]: Invalid value`."""
    status_text = f"{status} {reason}" if reason in _REASONS else str(status)
    mistakes = sorted({_mistake(cause) for cause in causes if _PATH.fullmatch(cause.field)})
    return f"rejected by the API server ({status_text})" + (f": {', '.join(mistakes)}" if mistakes else "")


def _mistake(cause: Cause) -> str:
    words = _MISTAKES.get(cause.reason)
    return f"{cause.field}: {words}" if words else cause.field
