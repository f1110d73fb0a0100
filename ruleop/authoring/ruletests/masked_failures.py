"""Masks values of Secrets in the failures of tests, as `plan` does: logs of CI jobs are often public. A value that the
test itself expects is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ruleop.core.planning.changes.differences import NOTHING
from ruleop.core.secrets.masks import Masks, known_values
from ruleop.core.secrets.secret_values import MASK, is_secret

if TYPE_CHECKING:
    from collections.abc import Container

    from ruleop.authoring.ruletests.matching import Mismatch
    from ruleop.authoring.ruletests.results import Difference, Failure
    from ruleop.authoring.ruletests.state import After
    from ruleop.core.kinds import Object
    from ruleop.core.templating.field_sites import FieldPath

_FIELDS = ("data", "stringData")


def masks_for(after: After, public: Container[str]) -> Masks:
    """The masks after a step: for the data of Secrets, and for values that templates computed from them. `public`: the
    values that the test expects."""
    secrets = [obj for obj in (*after.objects.values(), *(obj for _, _, obj in after.rendered)) if is_secret(obj)]
    return Masks(values=known_values(secrets, after.masks().values, public))


def masked(failure: Failure, masks: Masks) -> Failure:
    """The failure without values of Secrets in what was found."""
    differences = tuple(_masked(each, masks) for each in failure.differences)
    return replace(failure, message=masks.text(failure.message), differences=differences)


def _masked(difference: Difference, masks: Masks) -> Difference:
    mismatch = difference.mismatch
    actual = mismatch.actual if mismatch.actual is NOTHING else masks.all(mismatch.actual)
    return replace(difference, mismatch=replace(mismatch, actual=actual))


def without_data(mismatch: Mismatch, obj: Object) -> Mismatch:
    """The difference of an object, without the data of a Secret that was found."""
    if mismatch.actual is NOTHING or not is_secret(obj):
        return mismatch
    return replace(mismatch, actual=_hidden(mismatch.actual, mismatch.path, ()))


def without_secret_data(after: After, public: Container[str]) -> After:
    """The state without the data of rendered Secrets."""
    return replace(
        after,
        rendered=tuple(
            (child, template, _hidden(obj, (), public) if is_secret(obj) else obj)
            for child, template, obj in after.rendered
        ),
    )


def _hidden(value: Any, path: FieldPath, public: Container[str]) -> Any:
    if path and path[0] not in _FIELDS:
        return value
    if isinstance(value, Mapping):
        return {name: _hidden(member, (*path, name), public) for name, member in value.items()}
    return value if not path or str(value) in public else MASK
