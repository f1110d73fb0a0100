"""The results of cases: what was expected, what was found, and where.

Values of Secrets are masked in the failures, as by `plan`: logs of CI jobs are often public. A value that the test
itself expects is shown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ruleop.language.secrets.masks import Masks, without_data
from ruleop.language.secrets.secret_values import is_secret, known_values
from ruleop.planning.changes import NOTHING

if TYPE_CHECKING:
    from collections.abc import Container

    from ruleop.authoring.ruletests.cases import Case
    from ruleop.authoring.ruletests.matching import Mismatch
    from ruleop.authoring.ruletests.running.state import After
    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import Object


class CaseError(Exception):
    """A step that cannot be run."""

    def __init__(self, message: str, site: Site) -> None:
        super().__init__(message)
        self.message, self.site = message, site


@dataclass(frozen=True, slots=True)
class CaseDifference:
    """A field that is not as expected, with the line of the template that it comes from, where that is known."""

    mismatch: Mismatch
    source: Site | None = None


@dataclass(frozen=True, slots=True)
class CaseFailure:
    """One expectation that does not hold."""

    what: str  # the expectation, like children.deployment
    message: str
    site: Site  # in the test file
    differences: tuple[CaseDifference, ...] = ()
    source: Site | None = None  # of an error, in the project's files
    step: str = ""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of a case. Without failures it has passed."""

    case: Case
    failures: tuple[CaseFailure, ...]
    written: tuple[str, ...] = ()  # snapshots that were written

    @property
    def passed(self) -> bool:
        return not self.failures


def masks_for(after: After, public: Container[str]) -> Masks:
    """The masks after a step: for the data of Secrets, and for values that templates computed from them. `public`: the
    values that the test expects."""
    secrets = [obj for obj in (*after.objects.values(), *(obj for _, _, obj in after.rendered)) if is_secret(obj)]
    return Masks(values=known_values(secrets, after.masks().values, public))


def masked(failure: CaseFailure, masks: Masks) -> CaseFailure:
    """The failure without values of Secrets in what was found."""
    differences = tuple(
        replace(each, mismatch=replace(each.mismatch, actual=masks.all(each.mismatch.actual)))
        for each in failure.differences
    )
    return replace(failure, message=masks.text(failure.message), differences=differences)


def without_secret_data(mismatch: Mismatch, obj: Object) -> Mismatch:
    """The difference of an object, without the data of a Secret that was found."""
    if mismatch.actual is NOTHING or not is_secret(obj):
        return mismatch
    return replace(mismatch, actual=without_data(mismatch.actual, mismatch.path))


def without_rendered_data(after: After, public: Container[str]) -> After:
    """The state without the data of rendered Secrets."""
    rendered = (
        (child, template, without_data(obj, (), public) if is_secret(obj) else obj)
        for child, template, obj in after.rendered
    )
    return replace(after, rendered=tuple(rendered))
