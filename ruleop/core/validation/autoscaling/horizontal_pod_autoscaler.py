"""Validation of HorizontalPodAutoscalers and their status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.core.schema.quantity import parse_quantity
from ruleop.core.validation.core.containers import validate_resource_name
from ruleop.core.validation.field_errors import (
    forbidden_value,
    invalid_value,
    invalid_values,
    required,
    unsupported,
    validate_one_of,
    validate_required,
)
from ruleop.core.validation.fields.field_names import (
    key_problems,
    label_problems,
    path_segment_problems,
    validate_path_segment,
)
from ruleop.core.validation.fields.numbers import validate_nonnegative

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError

_LONGEST_PERIOD: Final = 1800
_LONGEST_WINDOW: Final = 3600
_SELECT_POLICIES: Final = ("Disabled", "Max", "Min")
_POLICY_TYPES: Final = ("Percent", "Pods")
_SOURCES: Final = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
"""The types of metrics in the order in which they are checked, and the field of each."""
_EITHER: Final = "must set either a target raw value or a target utilization"
_BOTH: Final = "may not set both a target raw value and a target utilization"


def validate_horizontal_pod_autoscaler_status(new: Object, _old: Object | None) -> Iterator[FieldError]:
    return validate_nonnegative(new.get("status") or {}, "currentReplicas", "desiredReplicas", field="status")


def validate_horizontal_pod_autoscaler(new: Object, old: Object | None) -> Iterator[FieldError]:
    spec, before = new.get("spec") or {}, (old or {}).get("spec") or {}
    least, most = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    lowest = 0 if before.get("minReplicas") == 0 else 1
    if least < lowest:
        yield invalid_value("spec.minReplicas", least, f"must be greater than or equal to {lowest}")
    if not most:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    elif most < 0:
        yield invalid_value("spec.maxReplicas", most, "must be greater than or equal to 1")
    if most < least:
        yield invalid_value("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    yield from _validate_target(spec.get("scaleTargetRef") or {}, before.get("scaleTargetRef") or {})
    metrics = spec.get("metrics") or []
    for index, each in enumerate(metrics):
        yield from _validate_metric(f"spec.metrics[{index}]", each)
    if least == 0 and not any(each.get("type") in ("Object", "External") for each in metrics):
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden_value("spec.metrics", detail)
    for direction in ("scaleUp", "scaleDown"):
        if (rules := (spec.get("behavior") or {}).get(direction)) is not None:
            yield from _validate_rules(f"spec.behavior.{direction}", rules)


def _validate_target(target: Object, old: Object) -> Iterator[FieldError]:
    """A target of an earlier version may stay what it is."""
    known = bool(old) and all(target.get(name) == old.get(name) for name in ("apiVersion", "kind"))
    grouped = target.get("kind") != "ReplicationController" or (bool(old) and known)
    yield from _validate_reference("spec.scaleTargetRef", target, checked=not known, grouped=grouped)


def _validate_reference(
    field: str, reference: Object, *, checked: bool = True, grouped: bool = False
) -> Iterator[FieldError]:
    """`checked`: the apiVersion is, and `grouped`: it names a group."""
    for name in ("kind", "name"):
        yield from validate_path_segment(f"{field}.{name}", reference.get(name, ""))
    version = reference.get("apiVersion", "")
    if not checked:
        return
    if version.count("/") > 1:
        yield invalid_value(f"{field}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    elif grouped and "/" not in version:
        yield invalid_value(f"{field}.apiVersion", version, "apiVersion must specify API group")


def _validate_metric(field: str, metric: Object) -> Iterator[FieldError]:
    type_ = metric.get("type", "")
    if not type_:
        yield required(f"{field}.type", "must specify a metric source type")
    if type_ not in _SOURCES:
        yield unsupported(f"{field}.type", type_, sorted(_SOURCES))
    given = [name for name in _SOURCES.values() if metric.get(name) is not None]
    if given:
        yield from _SOURCE_CAUSES[given[0]](f"{field}.{given[0]}", metric[given[0]])
    expected = _SOURCES.get(type_)
    if expected is None:
        yield unsupported(f"{field}.type", type_, sorted(_SOURCES))
    elif expected not in given:
        yield required(f"{field}.{expected}", "must populate information for the given metric source")
    if len(given) != 1:
        for name in given:
            if name != expected:
                yield forbidden_value(f"{field}.{name}", "must populate the given metric source only")


def _validate_object(field: str, source: Object) -> Iterator[FieldError]:
    yield from _validate_reference(f"{field}.describedObject", source.get("describedObject") or {})
    target = source.get("target") or {}
    yield from _validate_identified(field, source)
    if target.get("value") is None and target.get("averageValue") is None:
        yield required(f"{field}.target.averageValue", "must set either a target value or averageValue")


def _validate_external(field: str, source: Object) -> Iterator[FieldError]:
    target = source.get("target") or {}
    yield from _validate_identified(field, source)
    given = [target[name] for name in ("value", "averageValue") if target.get(name) is not None]
    if not given:
        yield required(f"{field}.target.averageValue", "must set either a target value for metric or a per-pod target")
    elif len(given) == 2:
        detail = "may not set both a target value for metric and a per-pod target"
        yield forbidden_value(f"{field}.target.value", detail)


def _validate_pods(field: str, source: Object) -> Iterator[FieldError]:
    yield from _validate_identified(field, source)
    if (source.get("target") or {}).get("averageValue") is None:
        yield required(f"{field}.target.averageValue", "must specify a positive target averageValue")


def _validate_resource(field: str, source: Object) -> Iterator[FieldError]:
    if not source.get("name"):
        yield required(f"{field}.name", "must specify a resource name")
    yield from _validate_utilization(f"{field}.target", source.get("target") or {})


def _validate_container(field: str, source: Object) -> Iterator[FieldError]:
    if name := source.get("name"):
        yield from invalid_values(f"{field}.name", name, key_problems(name))
        yield from validate_resource_name(name, f"{field}.name")
    else:
        yield required(f"{field}.name", "must specify a resource name")
    yield from validate_required(
        f"{field}.container", source.get("container"), label_problems, "must specify a container"
    )
    yield from _validate_utilization(f"{field}.target", source.get("target") or {})


_SOURCE_CAUSES: Final = {
    "object": _validate_object,
    "external": _validate_external,
    "pods": _validate_pods,
    "resource": _validate_resource,
    "containerResource": _validate_container,
}


def _validate_identified(field: str, source: Object) -> Iterator[FieldError]:
    """Validates the metric's name and its target."""
    name = (source.get("metric") or {}).get("name")
    yield from validate_required(f"{field}.metric.name", name, path_segment_problems, "must specify a metric name")
    yield from _validate_value(f"{field}.target", source.get("target") or {})


def _validate_utilization(field: str, target: Object) -> Iterator[FieldError]:
    yield from _validate_value(field, target)
    given = [name for name in ("averageUtilization", "averageValue") if target.get(name) is not None]
    if not given:
        yield required(f"{field}.averageUtilization", _EITHER)
    elif len(given) == 2:
        yield forbidden_value(f"{field}.averageValue", _BOTH)


def _validate_value(field: str, target: Object) -> Iterator[FieldError]:
    type_ = target.get("type", "")
    if not type_:
        yield required(f"{field}.type", "must specify a metric target type")
    if type_ not in ("Utilization", "Value", "AverageValue"):
        yield invalid_value(f"{field}.type", type_, "must be either Utilization, Value, or AverageValue")
    for name in ("value", "averageValue"):
        amount: Any = parse_quantity(target.get(name))
        if amount is not None and amount <= 0:
            yield invalid_value(f"{field}.{name}", target[name], "must be positive")
    percent = target.get("averageUtilization")
    if percent is not None and percent < 1:
        yield invalid_value(f"{field}.averageUtilization", percent, "must be greater than 0")


def _validate_rules(field: str, rules: Object) -> Iterator[FieldError]:
    window, select = rules.get("stabilizationWindowSeconds"), rules.get("selectPolicy")
    if window is not None:
        yield from _validate_range(f"{field}.stabilizationWindowSeconds", window, _LONGEST_WINDOW, least=0)
    yield from validate_one_of(f"{field}.selectPolicy", select, _SELECT_POLICIES, optional=True)
    policies = rules.get("policies") or []
    if not policies:
        yield required(f"{field}.policies", "must specify at least one Policy")
    for index, each in enumerate(policies):
        yield from _validate_policy(f"{field}.policies[{index}]", each)
    tolerance: Any = parse_quantity(rules.get("tolerance"))
    if tolerance is not None and tolerance < 0:
        yield invalid_value(f"{field}.tolerance", rules["tolerance"], "must be greater than or equal to 0")


def _validate_policy(field: str, policy: Object) -> Iterator[FieldError]:
    yield from validate_one_of(f"{field}.type", policy.get("type", ""), _POLICY_TYPES)
    if (value := policy.get("value", 0)) <= 0:
        yield invalid_value(f"{field}.value", value, "must be greater than zero")
    yield from _validate_range(f"{field}.periodSeconds", policy.get("periodSeconds", 0), _LONGEST_PERIOD, least=1)


def _validate_range(field: str, value: int, most: int, *, least: int) -> Iterator[FieldError]:
    if value < least:
        yield invalid_value(field, value, f"must be greater than {'' if least else 'or equal to '}zero")
    if value > most:
        yield invalid_value(field, value, f"must be less than or equal to {most}")
