"""Deployments, ReplicaSets, DaemonSets, StatefulSets, Jobs, CronJobs, and the autoscalers of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.immutable_fields import STATEFUL_MUTABLE
from ruleop.kubernetes.cron import is_zone, schedule_problem
from ruleop.kubernetes.names import LONGEST_CRON_JOB
from ruleop.kubernetes.validation import rules
from ruleop.kubernetes.validation.core import CLAIM_SPEC
from ruleop.kubernetes.validation.field_errors import FieldError, forbidden_value, invalid_value, required, unsupported
from ruleop.kubernetes.validation.pods import RESOURCE_NAME, TEMPLATE, selected

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.validation.rules import Errors, Rows


def _is_empty(selector: Any) -> bool:
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


_SELECTOR: Final[Rows] = ("selector", {_is_empty: rules.invalid("empty selector is invalid")})
_NEEDED_SELECTOR: Final[Rows] = ("given", _SELECTOR, {rules.is_invalid: rules.invalid("invalid label selector")})


def _workload(numbers: str, template: Rows = TEMPLATE, selector: Rows = _NEEDED_SELECTOR) -> Rows:
    return (
        {
            "selector": selector,
            "template!": rules.changed(template),
            "template!.spec.restartPolicy": "Always",
            "template!.spec.activeDeadlineSeconds": "unset",
            numbers: "0..",
        },
        selected,
    )


def _is_stuck(rolling: Any) -> bool:
    return not any(rules.number_of(rolling.get(name)) for name in ("maxUnavailable", "maxSurge"))


def _strategy(*types: str) -> dict[Any, Any]:
    """The type of a strategy: the server names the strategy itself."""
    return {f"if type!=|{'|'.join(types)}": lambda value, _: (unsupported("", value["type"], types),)}


_STUCK: Final[Rows] = {_is_stuck: rules.invalid("may not be 0 when `maxSurge` is 0", "maxUnavailable")}
_DEPLOYMENT_STRATEGY: Final[Rows] = {
    **_strategy("Recreate", "RollingUpdate"),
    "rollingUpdate": {"maxUnavailable": "part", "maxSurge": "amount"},
    "rollingUpdate if type=Recreate": "unset",
    "rollingUpdate if type!=Recreate": _STUCK,
}
_ROLLING: Final[Rows] = {
    _is_stuck: rules.lacking("may not be 0 when `maxSurge` is 0", "maxUnavailable"),
    lambda rolling: rules.number_of(rolling.get("maxUnavailable")): {
        "maxSurge": {rules.number_of: rules.invalid("may not be set when `maxUnavailable` is not 0")}
    },
}
_DAEMON_SET_STRATEGY: Final[Rows] = {
    **_strategy("RollingUpdate", "OnDelete"),
    "rollingUpdate": {"maxUnavailable maxSurge": "part"},
    "rollingUpdate if type=|RollingUpdate": ("given", _ROLLING),
}
_STATEFUL_SET_STRATEGY: Final[Rows] = {
    **_strategy("RollingUpdate", "OnDelete"),
    "rollingUpdate.partition": "0..",
    "rollingUpdate if type=OnDelete": "unset",
}


def _with_claims(spec: Any, old: Any) -> Errors:
    """The errors of a template with its claims as volumes, and without the names that the controller gives to its
    pods."""
    template = spec.get("template") or {}
    if old is not None and template == old.get("template"):
        return ()
    pod = {name: each for name, each in (template.get("spec") or {}).items() if name not in ("hostname", "subdomain")}
    claims = [(each.get("metadata") or {}).get("name") for each in spec.get("volumeClaimTemplates") or ()]
    own = [each for each in pod.get("volumes") or () if each.get("name") not in claims]
    volumes = [*own, *({"name": each, "emptyDir": {}} for each in claims)]
    errors = _TEMPLATE({**template, "spec": {**pod, "volumes": volumes}}, None)
    return [each.below("template") for each in errors]


_TEMPLATE: Final = rules.table(TEMPLATE)
_COUNTS, _HISTORY = "replicas minReadySeconds", "revisionHistoryLimit"
_IN_TIME: Final[Rows] = {
    lambda spec: spec.get("progressDeadlineSeconds", 2**31) <= spec.get("minReadySeconds", 0): {
        "progressDeadlineSeconds": rules.invalid("must be greater than minReadySeconds")
    }
}
DEPLOYMENT_FIELDS: Final[Rows] = {
    "spec": (_workload(f"{_COUNTS} {_HISTORY} progressDeadlineSeconds"), _IN_TIME),
    "spec.strategy": _DEPLOYMENT_STRATEGY,
}
REPLICA_SET_FIELDS: Final[Rows] = {"spec": _workload(_COUNTS)}
# Rules of a value come before those of its parts: of these, the server has the immutable fields last.
DEPLOYMENT: Final[Rows] = (rules.table(DEPLOYMENT_FIELDS), rules.frozen())
REPLICA_SET: Final[Rows] = (rules.table(REPLICA_SET_FIELDS), rules.frozen())
DAEMON_SET: Final[Rows] = (
    rules.frozen(),
    {
        "spec": _workload(f"minReadySeconds {_HISTORY}", selector=_SELECTOR),
        "spec.updateStrategy": _DAEMON_SET_STRATEGY,
    },
)
_MUTABLE: Final = "', '".join(STATEFUL_MUTABLE[:-1]) + f"' and '{STATEFUL_MUTABLE[-1]}'"
STATEFUL_SET: Final[Rows] = (
    rules.frozen("spec", f"updates to statefulset spec for fields other than '{_MUTABLE} are forbidden"),
    {
        "spec": (_workload(_COUNTS, ()), _with_claims),
        "spec.ordinals.start": "0..",
        "spec.updateStrategy": _STATEFUL_SET_STRATEGY,
        "spec.podManagementPolicy": "OrderedReady|Parallel",
        "spec.persistentVolumeClaimRetentionPolicy": {"whenDeleted whenScaled": "Retain|Delete"},
    },
    rules.new({"spec.serviceName": "label", "spec.volumeClaimTemplates[].spec!": CLAIM_SPEC}),
)


# -- Jobs and CronJobs -----------------------------------------------------------------------------------------------


_JOB_SPEC: Final[Rows] = {
    "parallelism completions activeDeadlineSeconds backoffLimit ttlSecondsAfterFinished": "0..",
    "backoffLimitPerIndex maxFailedIndexes": "0..",
    "completionMode": "NonIndexed|Indexed",
    "podReplacementPolicy": "Failed|TerminatingOrFailed",
    "template!": rules.changed(TEMPLATE),
    "template!.spec!": {
        "if restartPolicy=|Always": rules.lacking("valid values: OnFailure, Never", "restartPolicy"),
        "restartPolicy if restartPolicy!=|Always": "OnFailure|Never",
    },
    "completions if completionMode=Indexed": "needed",
    "backoffLimitPerIndex maxFailedIndexes if completionMode=|NonIndexed": "unset",
}
JOB: Final[Rows] = (rules.frozen(), {"spec": (_JOB_SPEC, selected, {"selector": "given selector"})})


def _schedule_problems(schedule: str) -> Iterator[str]:
    if problem := schedule_problem(schedule):
        yield problem


def _zone_problems(zone: str) -> Iterator[str]:
    if not is_zone(zone):
        yield f"unknown time zone {zone}" if zone else "timeZone must be nil or non-empty string"


_SHORT: Final = rules.text((f".{{,{LONGEST_CRON_JOB}}}", f"must be no more than {LONGEST_CRON_JOB} characters"))
CRON_JOB: Final[Rows] = (
    rules.new({"metadata.name": _SHORT}),
    {
        "spec!": {
            "schedule": ("needed", rules.named(_schedule_problems)),
            "startingDeadlineSeconds successfulJobsHistoryLimit failedJobsHistoryLimit": "0..",
            "timeZone": rules.changed(rules.named(_zone_problems, empty=False)),
            "concurrencyPolicy": "Allow|Forbid|Replace",
            "jobTemplate!.spec!": (_JOB_SPEC, {"selector": "unset", "manualSelector": "empty"}),
        },
    },
)


# -- HorizontalPodAutoscalers ----------------------------------------------------------------------------------------


def _replicas(spec: Any, old: Any) -> Iterator[FieldError]:
    least, most = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    lowest = 0 if (old or {}).get("minReplicas") == 0 else 1
    if least < lowest:
        yield invalid_value("minReplicas", least, f"must be greater than or equal to {lowest}")
    if not most:
        yield required("maxReplicas", "must be set and greater than 0")
    if most < max(least, lowest):
        yield invalid_value("maxReplicas", most, "must be greater than or equal to `minReplicas`")
    if least == 0 and not any(each.get("type") in ("Object", "External") for each in spec.get("metrics") or ()):
        yield forbidden_value("metrics", "must specify an Object or External metric to support scaling to zero")


def _version(reference: Any, old: Any, *, names_group: bool = False) -> Iterator[FieldError]:
    """The version of what is scaled names a group, except where an earlier version did not."""
    version = reference.get("apiVersion", "")
    if old and all(reference.get(name) == old.get(name) for name in ("apiVersion", "kind")):
        return
    if version.count("/") > 1 or (
        names_group and "/" not in version and reference.get("kind") != "ReplicationController"
    ):
        yield invalid_value("apiVersion", version, "must be a group and a version")


_SOURCES: Final = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
"""The types of metrics, and the field of each."""


def _source(metric: Any, _: Any) -> Iterator[FieldError]:
    """A metric has the source of its type, and no other one."""
    expected = _SOURCES.get(metric.get("type", ""))
    given = [each for each in _SOURCES.values() if metric.get(each) is not None]
    if expected is not None and expected not in given:
        yield required(expected, "must populate information for the given metric source")
    for name in given if len(given) != 1 else ():
        if name != expected:
            yield forbidden_value(name, "must populate the given metric source only")


_REFERRED: Final[Rows] = {"kind name": "needed segment"}
_TARGETS: Final = "object.target! external.target! pods.target! resource.target! containerResource.target!"
_METRIC: Final[Rows] = (
    _source,
    {
        "type": f"needed {'|'.join(sorted(_SOURCES))}",
        _TARGETS: {
            "type": "needed AverageValue|Utilization|Value",
            "value averageValue": "positive-quantity",
            "averageUtilization": "1..",
        },
        "object external pods": {"metric!.name": "needed segment"},
        "object.describedObject!": (_REFERRED, _version),
        "object.target! external.target!": {"averageValue if !value": "needed"},
        "external.target!": {"value if averageValue": "unset"},
        "pods.target!.averageValue": "needed",
        "resource.target! containerResource.target!": {
            "averageUtilization if !averageValue": "needed",
            "averageValue if averageUtilization": "unset",
        },
        "resource.name containerResource.name": "needed",
        "containerResource.name": ("key", RESOURCE_NAME),
        "containerResource.container": "needed label",
    },
)
_BEHAVIOR: Final[Rows] = {
    "stabilizationWindowSeconds": "0..3600",
    "selectPolicy": "Disabled|Max|Min",
    "policies": "needed",
    "policies[]": {"type": "Percent|Pods!", "value": "1..!", "periodSeconds": "1..1800!"},
    "tolerance": "quantity",
}
AUTOSCALER: Final[Rows] = {
    "spec!": (
        _replicas,
        {
            "scaleTargetRef!": (_REFERRED, partial(_version, names_group=True)),
            "metrics[]": _METRIC,
            "behavior.scaleUp behavior.scaleDown": _BEHAVIOR,
        },
    )
}
