"""PodDisruptionBudgets: why one, or its status, is invalid."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.errors import (
    duplicate,
    invalid_value,
    invalid_values,
    required,
    too_long,
    unsupported,
)
from ruleop.localcluster.kinds.label_selectors import label_selector_causes, shown_selector
from ruleop.localcluster.kinds.numbers import below_zero, share_causes
from ruleop.localcluster.objects.names import key_problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kinds import Object
    from ruleop.localcluster.errors import Cause

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


def budget_causes(new: Object, _old: Object | None) -> list[Cause]:
    return list(_spec_causes(new.get("spec") or {}))


def _spec_causes(spec: Object) -> Iterator[Cause]:
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
            yield from share_causes(value, f"spec.{name}", at_most_all=True)
    yield from label_selector_causes(spec.get("selector"), "spec.selector")
    if policy is not None and policy not in _EVICTIONS:
        yield unsupported("spec.unhealthyPodEvictionPolicy", policy, _EVICTIONS)


def budget_status_causes(new: Object, _old: Object | None) -> list[Cause]:
    status = new.get("status") or {}
    causes, types = [], set[Any]()
    for index, each in enumerate(status.get("conditions") or ()):
        field = f"status.conditions[{index}]"
        if each.get("type", "") in types:
            causes.append(duplicate(f"{field}.type", each.get("type", "")))
        types.add(each.get("type", ""))
        causes += _condition_causes(field, each)
    return [*causes, *below_zero(status, *_COUNTS, field="status")]


def _condition_causes(field: str, condition: Object) -> Iterator[Cause]:
    status, reason = condition.get("status", ""), condition.get("reason", "")
    type_ = condition.get("type", "")
    yield from invalid_values(f"{field}.type", type_, key_problems(type_))
    if status not in _STATUSES:
        yield unsupported(f"{field}.status", status, _STATUSES)
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
