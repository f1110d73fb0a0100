"""What an `ApiError` means to the executor."""

from __future__ import annotations

from ruleop.errors import RuleopError
from ruleop.kube.errors import ApiError, Problem
from ruleop.planning import Failure


def classify(error: RuleopError) -> tuple[Failure | None, float | None]:
    """None: the world is other than planned, so read it live and plan again. A Failure: refused, and told on the CR."""
    if not isinstance(error, ApiError):
        return Failure.OTHER, None
    if error.problem in {Problem.CONFLICT, Problem.EXISTS, Problem.NOT_FOUND} or error.outcome_unknown:
        return None, error.retry_after
    if error.problem is Problem.FORBIDDEN:
        return Failure.FORBIDDEN, None
    if error.problem is Problem.INVALID:
        return (Failure.IMMUTABLE if error.immutable else Failure.INVALID), None
    return Failure.OTHER, error.retry_after
