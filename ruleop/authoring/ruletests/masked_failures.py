"""Masks values of Secrets in the failures of tests, as `plan` does: logs of CI jobs are often public. A value that the
test itself expects is shown."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ruleop.core.planning.changes.differences import NOTHING
from ruleop.core.secrets.masks import Masks, without_data
from ruleop.core.secrets.secret_values import is_secret, known_values

if TYPE_CHECKING:
    from collections.abc import Container

    from ruleop.authoring.ruletests.matching import Mismatch
    from ruleop.authoring.ruletests.results import Failure
    from ruleop.authoring.ruletests.running.state import After
    from ruleop.core.kinds import Object


def masks_for(after: After, public: Container[str]) -> Masks:
    """The masks after a step: for the data of Secrets, and for values that templates computed from them. `public`: the
    values that the test expects."""
    secrets = [obj for obj in (*after.objects.values(), *(obj for _, _, obj in after.rendered)) if is_secret(obj)]
    return Masks(values=known_values(secrets, after.masks().values, public))


def masked(failure: Failure, masks: Masks) -> Failure:
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
