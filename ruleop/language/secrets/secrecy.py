"""The data of Secrets that the objects of a child may hold, and so what messages about them may quote. Only this module
decides that."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Protocol

from ruleop.errors import NAMED
from ruleop.language.secrets.secret_values import MASK
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from ruleop.errors import Cause
    from ruleop.language.templates import SlotPlace

_STEP = re.compile(r"\[(?:'((?:[^'\\]|\\.)*)'|([^\]]*))\]|([^.\[]+)", re.DOTALL)
_POSITION = re.compile(r"[0-9]{1,4}")
_WORD = re.compile(r"[^\s.,:=|'\"\[\]{}()]+")
_OF_EVERY_OBJECT: Final = frozenset(
    {"metadata", "labels", "annotations", "ownerReferences", "finalizers", "spec", "data"}
)


class _Error(Protocol):
    message: str
    redacted: str


@dataclass(frozen=True, slots=True)
class Secrecy:
    """Of a child, or of the expressions of a rule."""

    holds: bool = False  # the objects may contain data of a Secret: the API server may quote it
    reads: bool = False  # the templates and expressions read such data or generate it: their errors may quote it
    loops: bool = False  # the items of `forEach` may contain such data, and so their names
    slots: frozenset[SlotPlace] = frozenset()  # those of the body whose values come from Secrets
    words: frozenset[str] = frozenset()  # of the text of a child that reads a Secret: any other may be a Secret's

    def error(self, error: _Error) -> str:
        """The message of an expression or object that cannot be rendered or merged."""
        return error.redacted if self.reads else error.message

    def rejection(self, message: str, redacted: str, causes: Iterable[Cause] = ()) -> str:
        """The message of the API server about an object. It quotes rejected values."""
        if not self.holds:
            return message
        text = redacted or "rejected by the API server"
        if self.reads:
            for field in {cause.field for cause in causes if cause.field and cause.reason != NAMED}:
                text = text.replace(field, public_path(field, self.words))
        return text

    def path(self, path: str) -> str:
        """The path of a field. Names and keys in it may come from a Secret."""
        return public_path(path, self.words) if self.reads else path


PUBLIC: Final = Secrecy()
UNKNOWN: Final = Secrecy(holds=True)
"""Of objects whose child is unknown."""


def words_of(text: str) -> list[str]:
    """The words of the text of a child, or of one step of a path."""
    return _WORD.findall(text)


def public_path(path: str, words: Container[str]) -> str:
    """A field path in which only these words are shown, the fields of every object, and positions in lists. Other names
    and the keys of items may be values of a Secret."""

    def shown(name: str) -> str:
        return name if name in _OF_EVERY_OBJECT or all(word in words for word in words_of(name)) else MASK

    def step(match: re.Match[str]) -> str:
        quoted, keys, name = match.groups()
        if quoted is not None:
            return f"['{shown(quoted)}']"
        if keys is None:
            return shown(name)
        if _POSITION.fullmatch(keys):
            return f"[{keys}]"
        pairs = (pair.partition("=") for pair in keys.split(","))
        return "[" + ",".join(f"{shown(name)}{sign}{shown(value)}" for name, sign, value in pairs) + "]"

    return _STEP.sub(step, path)


# -- rejected writes ---------------------------------------------------------------------------------------------------
#
# Redacts the error of a rejected write whose object contains data of a Secret.
#
# The API server's messages quote the values that it rejects, and a webhook's message can contain anything. So no
# message is shown, only words of a known form: the status, its reason, and for each cause the field and the kind of
# mistake. This is the only function for that; its result is used in logs, conditions and Events.


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
