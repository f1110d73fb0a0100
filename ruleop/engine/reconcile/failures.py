"""What an `ApiError` means to the executor: plan again, or tell the CR; and in which words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ruleop.kube.client.errors import READS, ApiError, Problem
from ruleop.planning import Failure

if TYPE_CHECKING:
    from ruleop.errors import RuleopError
    from ruleop.kube.client.errors import Cause

# Nothing but another object, or another server, will help.
_FOR_GOOD = frozenset({Problem.INVALID, Problem.TOO_LARGE, Problem.UNSUPPORTED})

# What Kubernetes writes before the value that it refuses; the value is what must not be told.
_WORDS = {
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueInvalid": "Invalid value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueRequired": "Required value",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "FieldValueTypeInvalid": "Invalid type",
}
_PATH = re.compile(r"[A-Za-z][\w.\[\]\-/]*")


def classify(error: RuleopError) -> tuple[Failure | None, float | None]:
    """None: the world is other than planned, or nobody knows what became of the request; so it is read live and planned again. A Failure:
    refused, and told on the CR. Beside it, how many seconds the server asks to be left alone."""
    if not isinstance(error, ApiError):
        return Failure.OTHER, None
    if error.problem is Problem.NOT_FOUND:
        # Of a create it is the namespace, or the kind, that is missing. Reading the object would not tell, and planning again not help.
        return (Failure.OTHER if error.verb == "create" else None), error.retry_after
    if error.problem in {Problem.CONFLICT, Problem.EXISTS} or error.outcome_unknown:
        return None, error.retry_after
    if error.problem is Problem.FORBIDDEN:
        # That a namespace is on its way out is no matter of rights, and passes.
        return (Failure.OTHER if error.namespace_terminating else Failure.FORBIDDEN), error.retry_after
    if error.problem in _FOR_GOOD:
        return (Failure.IMMUTABLE if error.immutable else Failure.INVALID), error.retry_after
    return Failure.OTHER, error.retry_after


def told(error: RuleopError) -> str:
    """The error in words that anybody may read. Of a Secret: the reason and the path of the field, for the server's sentences, and those of
    webhooks, quote values. (What else knows them, a child that reads a Secret, only planning can tell; it cuts the message then.)"""
    if not isinstance(error, ApiError) or error.resource.partition(" ")[0] != "secrets" or not error.status or error.verb in READS:
        return str(error)
    complaints = sorted({_complaint(cause) for cause in error.causes if _PATH.fullmatch(cause.field)})
    if error.problem is not Problem.INVALID or not complaints:
        return f"{error.verb} {error.resource}: {error.status} {error.reason}".rstrip()
    text = complaints[0] if len(complaints) == 1 else f"[{', '.join(complaints)}]"
    return f"{error.verb} {error.resource}: the object is invalid: {text}"


def _complaint(cause: Cause) -> str:
    return f"{cause.field}: {_WORDS.get(cause.reason, 'Invalid')}"
