"""The error of inputs that cannot become a project."""

from __future__ import annotations

from ruleop.errors import RuleopError


class ScaffoldError(RuleopError):
    """The input cannot become a project. The message names what to change."""
