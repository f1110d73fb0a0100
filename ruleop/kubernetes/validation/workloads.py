"""Deployments, ReplicaSets, DaemonSets, StatefulSets, Jobs, CronJobs, and the autoscalers of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.immutable_fields import STATEFUL_MUTABLE
from ruleop.kubernetes.cron import is_zone, schedule_problem
from ruleop.kubernetes.names import LONGEST_CRON_JOB
from ruleop.kubernetes.validation.core import CLAIM_SPEC
from ruleop.kubernetes.validation.field_errors import (
    FieldError,
    forbidden_value,
    invalid_value,
    path_segment_problems,
    required,
    unsupported,
)
from ruleop.kubernetes.validation.pods import TEMPLATE, resource_name, selected
from ruleop.kubernetes.validation.rules import (
    FieldRule,
    Rows,
    between,
    forbids,
    frozen,
    holds,
    invalid,
    is_changed,
    is_new,
    missing,
    named,
    needed,
    number_of,
    placed,
    quantity,
    requires,
    selector_errors,
    sub_table,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.validation.rules import At, Errors


def _selector(kind: str) -> FieldRule:
    def check(selector: Any, at: At) -> Iterator[FieldError]:
        if selector is None:
            if kind != "daemonset":
                yield required(at.field)
        elif errors := list(selector_errors(selector, at)):
            yield from errors
            if kind != "daemonset":
                yield invalid_value(at.field, selector, "invalid label selector")
        elif not selector.get("matchLabels") and not selector.get("matchExpressions"):
            yield invalid_value(at.field, selector, f"empty selector is invalid for {kind}")

    return missing(check)


def _lasting(kind: str) -> FieldRule:
    """A template of pods that run until they are deleted."""

    def check(spec: Any, at: At) -> Errors:
        words = f"activeDeadlineSeconds in {kind} is not Supported"
        has_deadline = (spec or {}).get("activeDeadlineSeconds") is not None
        return (forbidden_value(at.child("activeDeadlineSeconds"), words),) if has_deadline else ()

    return FieldRule(check)


def _workload(name: str, kind: str, numbers: str, *, prepare: Any = None) -> Rows:
    return (
        {
            "selector": _selector(name),
            "template!": sub_table(TEMPLATE, when=is_changed, prepare=prepare),
            "template!.spec": ({"restartPolicy": "Always"}, _lasting(kind)),
            numbers: "0..",
        },
        selected,
    )


def _type(*allowed: str) -> FieldRule:
    """The type of a strategy: the server names the strategy itself."""
    return FieldRule(
        lambda strategy, at: (
            ()
            if (type_ := strategy.get("type", "RollingUpdate")) in allowed
            else (unsupported(at.field, type_, allowed),)
        )
    )


def _deployment(strategy: Any, at: At) -> Iterator[FieldError]:
    """Some pods may be missing, or more than the replicas exist, while a Deployment is updated."""
    rolling, type_ = strategy.get("rollingUpdate"), strategy.get("type", "RollingUpdate")
    if rolling is not None and type_ == "Recreate":
        yield forbidden_value(at.child("rollingUpdate"), "may not be specified when strategy `type` is 'Recreate'")
    elif (
        rolling is not None and not number_of(rolling.get("maxUnavailable")) and not number_of(rolling.get("maxSurge"))
    ):
        words, unavailable = "may not be 0 when `maxSurge` is 0", rolling.get("maxUnavailable", 0)
        yield invalid_value(at.child("rollingUpdate.maxUnavailable"), unavailable, words)


def _daemon_set(strategy: Any, at: At) -> Iterator[FieldError]:
    """Either the old pod of a node goes first, or the new one comes first."""
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return
    unavailable, surge = (number_of((rolling or {}).get(each)) for each in ("maxUnavailable", "maxSurge"))
    if rolling is None:
        yield required(at.child("rollingUpdate"))
    elif unavailable and surge:
        words = "may not be set when maxUnavailable is non-zero"
        yield invalid_value(at.child("rollingUpdate.maxSurge"), rolling["maxSurge"], words)
    elif not unavailable and not surge:
        yield required(at.child("rollingUpdate.maxUnavailable"), "cannot be 0 when maxSurge is 0")


def _stateful_set(strategy: Any, at: At) -> Errors:
    if strategy.get("type", "RollingUpdate") != "OnDelete" or (rolling := strategy.get("rollingUpdate")) is None:
        return ()
    return (invalid_value(at.child("rollingUpdate"), rolling, "only allowed for updateStrategy 'RollingUpdate'"),)


def _deadline(spec: Any, at: At) -> Errors:
    deadline, words = spec.get("progressDeadlineSeconds"), "must be greater than minReadySeconds"
    is_valid = deadline is None or deadline > spec.get("minReadySeconds", 0)
    return () if is_valid else (invalid_value(at.child("progressDeadlineSeconds"), deadline, words),)


def _with_claims(template: Any, at: At) -> Object:
    """The template with its claims as volumes, and without the names that the controller gives to its pods."""
    spec = {name: each for name, each in (template.get("spec") or {}).items() if name not in ("hostname", "subdomain")}
    claims = [(each.get("metadata") or {}).get("name") for each in at.root["spec"].get("volumeClaimTemplates") or ()]
    own = [each for each in spec.get("volumes") or () if each.get("name") not in claims]
    return {**template, "spec": {**spec, "volumes": [*own, *({"name": each, "emptyDir": {}} for each in claims)]}}


_COUNTS, _HISTORY = "replicas minReadySeconds", "revisionHistoryLimit"
_MUTABLE: Final = "', '".join(STATEFUL_MUTABLE[:-1]) + f"' and '{STATEFUL_MUTABLE[-1]}'"
DEPLOYMENT: Final[Rows] = {
    "spec": (
        _workload("deployment", "ReplicaSet", f"{_COUNTS} {_HISTORY} progressDeadlineSeconds"),
        _deadline,
        frozen(),
    ),
    "spec.strategy": (_type("Recreate", "RollingUpdate"), _deployment),
    "spec.strategy.rollingUpdate": {"maxUnavailable": "part", "maxSurge": "amount"},
}
REPLICA_SET: Final[Rows] = {"spec": (_workload("deployment", "ReplicaSet", _COUNTS), frozen())}
DAEMON_SET: Final[Rows] = (
    frozen(),
    {
        "spec": _workload("daemonset", "DaemonSet", f"minReadySeconds {_HISTORY}"),
        "spec.updateStrategy": (_type("RollingUpdate", "OnDelete"), _daemon_set),
        "spec.updateStrategy.rollingUpdate": {"maxUnavailable maxSurge": "part"},
    },
)
STATEFUL_SET: Final[Rows] = (
    frozen(f"updates to statefulset spec for fields other than '{_MUTABLE} are forbidden", at="spec", forbidden=True),
    {
        "spec": (
            _workload("statefulset", "StatefulSet", _COUNTS, prepare=_with_claims),
            {
                "ordinals.start updateStrategy.rollingUpdate.partition": "0..",
                "updateStrategy": (_type("RollingUpdate", "OnDelete"), _stateful_set),
                "podManagementPolicy": "OrderedReady|Parallel",
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted whenScaled": "Retain|Delete"},
                "serviceName": sub_table("label", when=is_new),
                "volumeClaimTemplates": sub_table({"[].spec!": CLAIM_SPEC}, when=is_new),
            },
        )
    },
)


# -- Jobs and CronJobs -----------------------------------------------------------------------------------------------


def _ending(policy: Any, at: At) -> Errors:
    """Pods of a Job end."""
    if policy in ("OnFailure", "Never"):
        return ()
    if policy in (None, "", "Always"):
        return (required(at.field, 'valid values: "OnFailure", "Never"'),)
    return (unsupported(at.field, policy, ("OnFailure", "Never")),)


def _mode(mode: str) -> Callable[[Any, At], bool]:
    return lambda spec, _: spec.get("completionMode", "NonIndexed") == mode


_ONLY_INDEXED: Final = holds(lambda _: False, "requires indexed completion mode")
_JOB_SPEC: Final[Rows] = (
    {
        "parallelism completions activeDeadlineSeconds backoffLimit ttlSecondsAfterFinished": "0..",
        "backoffLimitPerIndex maxFailedIndexes": "0..",
        "completionMode": "NonIndexed|Indexed",
        "podReplacementPolicy": "Failed|TerminatingOrFailed",
        "template!": sub_table(TEMPLATE, when=is_changed),
        "template!.spec!.restartPolicy": missing(_ending),
    },
    sub_table({"completions": needed("when completion mode is Indexed")}, when=_mode("Indexed")),
    sub_table({"backoffLimitPerIndex maxFailedIndexes": _ONLY_INDEXED}, when=_mode("NonIndexed")),
)
JOB: Final[Rows] = (frozen(), {"spec": (_JOB_SPEC, selected, {"selector": "given selector"})})


def _schedule(schedule: Any, at: At) -> Errors:
    words = schedule_problem(schedule) if schedule else None
    return (invalid_value(at.field, schedule, words),) if words else ()


def _zone(zone: Any, at: At) -> Errors:
    if is_zone(zone):
        return ()
    words = f"unknown time zone {zone}" if zone else "timeZone must be nil or non-empty string"
    return (invalid_value(at.field, zone, words),)


def _automatic(value: Any, at: At) -> Errors:
    return (unsupported(at.field, True, ("nil", "false")),) if value else ()


_SHORT: Final = holds(lambda name: len(name) <= LONGEST_CRON_JOB, f"must be no more than {LONGEST_CRON_JOB} characters")
CRON_JOB: Final[Rows] = {
    "metadata.name": sub_table(_SHORT, when=is_new),
    "spec!": {
        "schedule": ("needed", _schedule),
        "startingDeadlineSeconds successfulJobsHistoryLimit failedJobsHistoryLimit": "0..",
        "timeZone": sub_table(_zone, when=is_changed),
        "concurrencyPolicy": "Allow|Forbid|Replace",
        "jobTemplate!.spec!": (
            _JOB_SPEC,
            invalid("selector", lambda _: False, "`selector` will be auto-generated"),
            {"manualSelector": _automatic},
        ),
    },
}


# -- HorizontalPodAutoscalers ----------------------------------------------------------------------------------------


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
