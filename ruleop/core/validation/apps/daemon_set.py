"""DaemonSets: the number of their template, and validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.core.validation.apps.workloads import (
    TEMPLATE,
    amount_of,
    is_selecting,
    validate_changed_template,
    validate_fixed_selector,
    validate_lasting_pods,
)
from ruleop.core.validation.core.pod_spec import validate_template_labels
from ruleop.core.validation.field_errors import (
    invalid_value,
    required,
    unsupported,
)
from ruleop.core.validation.fields.label_selectors import validate_label_selector
from ruleop.core.validation.fields.numbers import validate_at_most_all, validate_int_or_percent, validate_nonnegative

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError

_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
_DAEMON_STRATEGIES: Final = ("RollingUpdate", "OnDelete")


def with_template_number(daemon_set: dict[str, Any]) -> dict[str, Any]:
    """The server counts the template's versions in an annotation, which each object has."""
    annotations = daemon_set["metadata"].get("annotations") or {}
    return daemon_set if _TEMPLATE_GENERATION in annotations else numbered(daemon_set, 0)


def template_number(daemon_set: Object) -> int:
    return int((daemon_set["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, "1"))


def numbered(daemon_set: dict[str, Any], number: int) -> dict[str, Any]:
    metadata = daemon_set["metadata"]
    annotations = {**(metadata.get("annotations") or {}), _TEMPLATE_GENERATION: str(number)}
    return {**daemon_set, "metadata": {**metadata, "annotations": annotations}}


def validate_daemon_set(new: Object, old: Object | None) -> Iterator[FieldError]:
    spec = new["spec"]
    yield from validate_fixed_selector(new, old)
    selector, template = spec.get("selector"), spec.get("template") or {}
    yield from validate_label_selector(selector, "spec.selector")
    yield from validate_template_labels(selector, template, TEMPLATE)
    if selector is not None and not is_selecting(selector):
        yield invalid_value("spec.selector", selector, "empty selector is invalid for daemonset")
    yield from validate_changed_template(template, old)
    yield from validate_lasting_pods(template, "DaemonSet")
    yield from validate_nonnegative(spec, "minReadySeconds")
    yield from _validate_daemon_strategy(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    yield from validate_nonnegative(spec, "revisionHistoryLimit")


def _validate_daemon_strategy(strategy: Object, field: str) -> Iterator[FieldError]:
    type_, rolling = strategy.get("type", "RollingUpdate"), strategy.get("rollingUpdate")
    if type_ not in _DAEMON_STRATEGIES:
        yield unsupported(field, {"Type": type_, "RollingUpdate": rolling}, _DAEMON_STRATEGIES)
        return
    if type_ == "OnDelete":
        return
    if rolling is None:
        yield required(f"{field}.rollingUpdate")
        return
    at, values = f"{field}.rollingUpdate", {each: rolling.get(each, 0) for each in ("maxUnavailable", "maxSurge")}
    for check in (validate_int_or_percent, validate_at_most_all):
        for name, value in values.items():
            yield from check(value, f"{at}.{name}")
    unavailable, surge = (amount_of(each) for each in values.values())
    if unavailable and surge:
        yield invalid_value(f"{at}.maxSurge", values["maxSurge"], "may not be set when maxUnavailable is non-zero")
    elif not unavailable and not surge:
        yield required(f"{at}.maxUnavailable", "cannot be 0 when maxSurge is 0")
