"""Validation of PodDisruptionBudgets and their status."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ruleop.core.validation.field_errors import (
    duplicate,
    invalid_value,
    invalid_values,
    required,
    too_long,
    validate_one_of,
)
from ruleop.core.validation.fields.field_names import key_problems
from ruleop.core.validation.fields.label_selectors import shown_selector, validate_label_selector
from ruleop.core.validation.fields.numbers import validate_int_or_percent, validate_nonnegative

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError

_EVICTIONS: Final = ("AlwaysAllow", "IfHealthyBudget")
_STATUSES: Final = ("False", "True", "Unknown")
_COUNTS: Final = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_NOT_REASON: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
    "'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
    "'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"
)


def validate_pod_disruption_budget(new: Object, _old: Object | None) -> Iterator[FieldError]:
    spec = new.get("spec") or {}
    least, most = (spec.get(name) for name in ("minAvailable", "maxUnavailable"))
    policy = spec.get("unhealthyPodEvictionPolicy")
    if least is not None and most is not None:
        shown = {
            "MinAvailable": least,
            "Selector": shown_selector(spec.get("selector")),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": policy,
        }
        yield invalid_value("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    for name, value in (("minAvailable", least), ("maxUnavailable", most)):
        if value is not None:
            yield from validate_int_or_percent(value, f"spec.{name}", at_most_all=True)
    yield from validate_label_selector(spec.get("selector"), "spec.selector")
    yield from validate_one_of("spec.unhealthyPodEvictionPolicy", policy, _EVICTIONS, optional=True)


def validate_pod_disruption_budget_status(new: Object, _old: Object | None) -> list[FieldError]:
    status = new.get("status") or {}
    errors, types = [], set[Any]()
    for index, each in enumerate(status.get("conditions") or ()):
        field = f"status.conditions[{index}]"
        if each.get("type", "") in types:
            errors.append(duplicate(f"{field}.type", each.get("type", "")))
        types.add(each.get("type", ""))
        errors += _validate_condition(field, each)
    return [*errors, *validate_nonnegative(status, *_COUNTS, field="status")]


def _validate_condition(field: str, condition: Object) -> Iterator[FieldError]:
    type_, reason = condition.get("type", ""), condition.get("reason", "")
    yield from invalid_values(f"{field}.type", type_, key_problems(type_))
    yield from validate_one_of(f"{field}.status", condition.get("status", ""), _STATUSES)
    generation = condition.get("observedGeneration", 0)
    if generation < 0:
        yield invalid_value(f"{field}.observedGeneration", generation, "must be greater than or equal to zero")
    if not condition.get("lastTransitionTime"):
        yield required(f"{field}.lastTransitionTime")
    if not reason:
        yield required(f"{field}.reason")
    elif not _REASON.fullmatch(reason):
        yield invalid_value(f"{field}.reason", reason, _NOT_REASON)
    for name, limit in (("reason", 1024), ("message", 32768)):
        if len(condition.get(name, "").encode()) > limit:
            yield too_long(f"{field}.{name}", limit)
