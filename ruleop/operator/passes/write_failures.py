"""Classifies an `ApiError` for the executor: plan again, or report a failure on the CR."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.planning import Failure

if TYPE_CHECKING:
    from ruleop.errors import RuleopError

# A retry of the same object fails again.
_FOR_GOOD = frozenset({Problem.INVALID, Problem.TOO_LARGE, Problem.UNSUPPORTED})


def classify(error: RuleopError) -> tuple[Failure | None, float | None]:
    """The failure to report on the CR, and the server's Retry-After in seconds.

    The failure is None if the plan is outdated or the outcome is unknown: then the object is read live and the CR is
    planned again.
    """
    if not isinstance(error, ApiError):
        return Failure.OTHER, None
    if error.problem is Problem.NOT_FOUND:
        # For a create, the namespace or the kind is missing; neither a live read nor another plan helps.
        return (Failure.OTHER if error.verb == "create" else None), error.retry_after
    if error.held_by_others:
        return Failure.HELD, error.retry_after
    if error.problem in {Problem.CONFLICT, Problem.EXISTS} or error.outcome_unknown:
        return None, error.retry_after
    if error.problem is Problem.FORBIDDEN:
        # A terminating namespace is answered with 403, too, but it is a temporary state and not a missing permission.
        return (Failure.OTHER if error.namespace_terminating else Failure.FORBIDDEN), error.retry_after
    if error.problem in _FOR_GOOD:
        return (Failure.IMMUTABLE if error.immutable else Failure.INVALID), error.retry_after
    return Failure.OTHER, error.retry_after
