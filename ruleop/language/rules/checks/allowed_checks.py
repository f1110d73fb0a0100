"""Checks which checks are off."""

from __future__ import annotations

from ruleop.language.rules.check_ids import BY_CODE, BY_ID, FATAL
from ruleop.language.rules.findings import did_you_mean_quoted


def refusal(name: str) -> str | None:
    """The reason that a check of this name cannot be allowed; None if it can."""
    check = BY_ID.get(name)
    if check is None:
        meant = next((each for code, each in BY_CODE.items() if code == name), None)
        guess = f": write its id, {meant.id}" if meant is not None else did_you_mean_quoted(name, BY_ID)
        return f'unknown check "{name}"{guess}'
    if check.code in FATAL:
        return f"{name} ({check.code}) cannot be allowed: the project cannot be used until it is corrected"
    return None
