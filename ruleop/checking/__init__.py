"""Checks of a project beyond loading, for its authors.

A project that loads may still be wrong: these checks find what would fail, or never happen, in a cluster. The operator
does not run them. Each check is a function of what was loaded that adds findings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.rules import Findings

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.rules import Finding, Loaded

_CHECKS: Final[tuple[Callable[[Loaded, Findings], None], ...]] = ()


def check_project(loaded: Loaded) -> tuple[Finding, ...]:
    """The warnings of loading and the findings of all checks, in the order of their places."""
    findings = Findings(loaded.files)
    for check in _CHECKS:
        check(loaded, findings)
    return tuple(sorted({*loaded.project.warnings, *findings.sorted()}, key=lambda finding: finding.order))
