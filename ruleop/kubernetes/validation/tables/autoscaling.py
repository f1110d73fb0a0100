"""HorizontalPodAutoscalers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.validation.field_errors import FieldError, forbidden_value, invalid_value, required, unsupported
from ruleop.kubernetes.validation.field_names import path_segment_problems
from ruleop.kubernetes.validation.rules import FieldRule, between, forbids, named, needed, placed, quantity, requires
from ruleop.kubernetes.validation.tables.pods import resource_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ruleop.kubernetes.validation.rows import Rows
    from ruleop.kubernetes.validation.rules import At, Errors


def _replicas(spec: Any, at: At) -> Iterator[FieldError]:
    least, most = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    lowest = 0 if (at.old or {}).get("minReplicas") == 0 else 1
    if least < lowest:
        yield invalid_value("spec.minReplicas", least, f"must be greater than or equal to {lowest}")
    if not most:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    elif most < 0:
        yield invalid_value("spec.maxReplicas", most, "must be greater than or equal to 1")
    if most < least:
        yield invalid_value("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    if least == 0 and not any(each.get("type") in ("Object", "External") for each in spec.get("metrics") or ()):
        words = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden_value("spec.metrics", words)


def _version(reference: Any, at: At) -> Errors:
    """The version of what is scaled names a group, except where an earlier version did not."""
    version, old, field = reference.get("apiVersion", ""), at.old or {}, at.child("apiVersion")
    if old and all(reference.get(name) == old.get(name) for name in ("apiVersion", "kind")):
        return ()
    if version.count("/") > 1:
        return (invalid_value(field, version, f"unexpected GroupVersion string: {version}"),)
    if "/" in version or at.field != "spec.scaleTargetRef" or reference.get("kind") == "ReplicationController":
        return ()
    return (invalid_value(field, version, "apiVersion must specify API group"),)


_SOURCES: Final = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
"""The types of metrics, and the field of each."""


def _source(metric: Any, at: At) -> Iterator[FieldError]:
    """A metric has the source of its type, and no other one."""
    type_ = metric.get("type", "")
    if not type_:
        yield required(at.child("type"), "must specify a metric source type")
    if type_ not in _SOURCES:
        yield from [unsupported(at.child("type"), type_, sorted(_SOURCES))] * 2  # the server looks twice
    given, expected = [name for name in _SOURCES.values() if metric.get(name) is not None], _SOURCES.get(type_)
    if expected is not None and expected not in given:
        yield required(at.child(expected), "must populate information for the given metric source")
    for name in given if len(given) != 1 else ():
        if name != expected:
            yield forbidden_value(at.child(name), "must populate the given metric source only")


def _target_type(value: Any, at: At) -> Errors:
    words = "must be either Utilization, Value, or AverageValue"
    is_known = value in ("Utilization", "Value", "AverageValue")
    missing = () if value else (required(at.field, "must specify a metric target type"),)
    return () if is_known else (*missing, invalid_value(at.field, value or "", words))


_REFERENCE: Final[Rows] = ({"kind name": "segment"}, placed(_version))
_TARGET: Final[Rows] = {
    "type": FieldRule(_target_type, missing=True),
    "value averageValue": quantity("must be positive"),
    "averageUtilization": "1..",
}
_BY_NAME: Final[Rows] = {
    "metric!.name": (needed("must specify a metric name"), named(path_segment_problems)),
    "target!": _TARGET,
}


def _lacks(name: str) -> Callable[[Any], bool]:
    return lambda target: target.get(name) is None


_RAW, _VALUE = "a target raw value {} a target utilization", "a target value for metric {} a per-pod target"
_SHARE: Final[Rows] = {
    "target!": (
        _TARGET,
        requires("averageUtilization", _lacks("averageValue"), f"must set either {_RAW.format('or')}"),
        forbids("averageValue", _lacks("averageUtilization"), f"may not set both {_RAW.format('and')}"),
    )
}
_METRIC: Final[Rows] = (
    _source,
    {
        "object external pods": _BY_NAME,
        "object.describedObject!": _REFERENCE,
        "object.target!": requires("averageValue", _lacks("value"), "must set either a target value or averageValue"),
        "external.target!": (
            requires("averageValue", _lacks("value"), f"must set either {_VALUE.format('or')}"),
            forbids("value", _lacks("averageValue"), f"may not set both {_VALUE.format('and')}"),
        ),
        "pods.target!.averageValue": needed("must specify a positive target averageValue"),
        "resource containerResource": ({"name": needed("must specify a resource name")}, _SHARE),
        "containerResource.name": ("key", lambda value, at: resource_name(value, at.field) if value else ()),
        "containerResource.container": (needed("must specify a container"), "label"),
    },
)
_POLICY: Final[Rows] = {
    "type": "Percent|Pods!",
    "value periodSeconds": between(1, None, "must be greater than zero", given=True),
    "periodSeconds": between(-(2**63), 1800, "must be less than or equal to 1800"),
}
AUTOSCALER: Final[Rows] = {
    "spec!": (
        placed(_replicas),
        {
            "scaleTargetRef!": _REFERENCE,
            "metrics[]": _METRIC,
            "behavior.scaleUp behavior.scaleDown": {
                "stabilizationWindowSeconds": (
                    between(0, None, "must be greater than or equal to zero"),
                    between(-(2**63), 3600, "must be less than or equal to 3600"),
                ),
                "selectPolicy": "Disabled|Max|Min",
                "policies": needed("must specify at least one Policy"),
                "policies[]": _POLICY,
                "tolerance": quantity("must be greater than or equal to 0", least=0),
            },
        },
    )
}
