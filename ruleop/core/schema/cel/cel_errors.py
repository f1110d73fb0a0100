"""The three ways in which a CEL expression has no value."""

from __future__ import annotations

from ruleop.core.errors import RuleopError


class InvalidRuleError(RuleopError):
    """An expression that the API server would reject with its CRD: bad syntax, an unknown field, mismatched types."""


class NotEvaluatedError(RuleopError):
    """An expression, or a value in one, of which the server's result is not known for certain. The message is the
    reason."""


class EvaluationError(RuleopError):
    """An error of CEL itself, such as a missing key. The server rejects the object with it, unless `&&`, `||` or a
    macro absorbs it."""
