"""The results of cases: what was expected, what was found, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ruleop.authoring.ruletests.cases import Case
    from ruleop.authoring.ruletests.matching import Mismatch
    from ruleop.core.errors import Site


class CaseError(Exception):
    """A step that cannot be run."""

    def __init__(self, message: str, site: Site) -> None:
        super().__init__(message)
        self.message, self.site = message, site


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that is not as expected, with the line of the template that it comes from, where that is known."""

    mismatch: Mismatch
    source: Site | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """One expectation that does not hold."""

    what: str  # the expectation, like children.deployment
    message: str
    site: Site  # in the test file
    differences: tuple[Difference, ...] = ()
    source: Site | None = None  # of an error, in the project's files
    step: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a case. Without failures it has passed."""

    case: Case
    failures: tuple[Failure, ...]
    seconds: float
    written: tuple[str, ...] = ()  # snapshots that were written

    @property
    def passed(self) -> bool:
        return not self.failures
