"""What an `ApiError` means to the executor: plan again, or report it on the CR."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.kube.client.errors import ApiError, Problem
from ruleop.planning import Failure

if TYPE_CHECKING:
    from ruleop.errors import RuleopError

# Only another object, or another server, will help.
_FOR_GOOD = frozenset({Problem.INVALID, Problem.TOO_LARGE, Problem.UNSUPPORTED})


def classify(error: RuleopError) -> tuple[Failure | None, float | None]:
    """The failure to report on the CR, and how many seconds the server asks to be left alone.

    None where the cluster is other than planned, or the outcome is unknown: the object is read live and the CR is
    planned again.
    """
    if not isinstance(error, ApiError):
        return Failure.OTHER, None
    if error.problem is Problem.NOT_FOUND:
        # Of a create it is the namespace, or the kind, that is missing; neither a live read nor another plan helps.
        return (Failure.OTHER if error.verb == "create" else None), error.retry_after
    if error.problem in {Problem.CONFLICT, Problem.EXISTS} or error.outcome_unknown:
        return None, error.retry_after
    if error.problem is Problem.FORBIDDEN:
        # That a namespace is being deleted is not about permissions, and passes.
        return (Failure.OTHER if error.namespace_terminating else Failure.FORBIDDEN), error.retry_after
    if error.problem in _FOR_GOOD:
        return (Failure.IMMUTABLE if error.immutable else Failure.INVALID), error.retry_after
    return Failure.OTHER, error.retry_after
