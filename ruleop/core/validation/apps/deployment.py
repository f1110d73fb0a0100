"""Validation of Deployments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.core.validation.apps.workloads import (
    amount_of,
    validate_fixed_selector,
    validate_pod_counts,
    validate_selector_and_template,
)
from ruleop.core.validation.field_errors import (
    forbidden_value,
    invalid_value,
    unsupported,
)
from ruleop.core.validation.fields.numbers import validate_at_most_all, validate_int_or_percent, validate_nonnegative

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError

_STRATEGIES: Final = ("Recreate", "RollingUpdate")


def validate_deployment(new: Object, old: Object | None) -> Iterator[FieldError]:
    spec = new["spec"]
    yield from validate_nonnegative(spec, "replicas")
    yield from validate_selector_and_template(spec, old)
    yield from _validate_strategy(spec.get("strategy") or {}, "spec.strategy")
    yield from validate_nonnegative(spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        yield invalid_value("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")
    yield from validate_fixed_selector(new, old)


def validate_deployment_status(new: Object, _old: Object | None) -> Iterator[FieldError]:
    return validate_pod_counts(new, ("updatedReplicas", "readyReplicas", "availableReplicas"), "readyReplicas")


def _validate_strategy(strategy: Object, field: str) -> Iterator[FieldError]:
    type_, rolling = strategy.get("type", "RollingUpdate"), strategy.get("rollingUpdate")
    if type_ == "Recreate":
        if rolling is not None:
            yield forbidden_value(f"{field}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")
    elif type_ != "RollingUpdate":
        yield unsupported(field, {"Type": type_, "RollingUpdate": rolling}, _STRATEGIES)
    elif rolling is not None:
        unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
        at = f"{field}.rollingUpdate"
        yield from validate_int_or_percent(unavailable, f"{at}.maxUnavailable")
        yield from validate_int_or_percent(surge, f"{at}.maxSurge")
        if amount_of(unavailable) == 0 == amount_of(surge):
            yield invalid_value(f"{at}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
        yield from validate_at_most_all(unavailable, f"{at}.maxUnavailable")
