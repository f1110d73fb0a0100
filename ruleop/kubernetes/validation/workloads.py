"""Deployments, ReplicaSets, DaemonSets, StatefulSets, Jobs, CronJobs, and the autoscalers of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.immutable_fields import STATEFUL_MUTABLE
from ruleop.kubernetes.cron import is_zone, schedule_problem
from ruleop.kubernetes.names import LONGEST_CRON_JOB
from ruleop.kubernetes.validation import rules
from ruleop.kubernetes.validation.core import CLAIM_SPEC
from ruleop.kubernetes.validation.field_errors import FieldError, refusal, unsupported
from ruleop.kubernetes.validation.pods import RESOURCE_NAME, TEMPLATE, selected

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.validation.rules import Errors, Rows


def _is_empty(selector: Any) -> bool:
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def _selector(kind: str) -> Rows:
    """Only that of a DaemonSet may be missing."""
    needed = () if kind == "daemonset" else ("given", {rules.is_invalid: "Invalid value: {}: invalid label selector"})
    return ("selector", {_is_empty: f"Invalid value: {{}}: empty selector is invalid for {kind}"}, needed)


def _workload(name: str, kind: str, numbers: str, template: Rows = TEMPLATE) -> Rows:
    return (
        {
            "selector": _selector(name),
            "template!": rules.changed(template),
            "template!.spec.restartPolicy": "Always",
            "template!.spec.activeDeadlineSeconds": f"Forbidden: activeDeadlineSeconds in {kind} is not Supported",
            numbers: "0..",
        },
        selected,
    )


def _is_stuck(rolling: Any) -> bool:
    return not any(rules.number_of(rolling.get(name)) for name in ("maxUnavailable", "maxSurge"))


def _strategy(*types: str) -> dict[Any, Any]:
    """The type of a strategy: the server names the strategy itself."""
    supported = ", ".join(f'"{each}"' for each in types)
    return {rules.differs("type", None, *types): f"Unsupported value: {{type}}: supported values: {supported}"}


_NO_PODS: Final = "Invalid value: {maxUnavailable}: may not be 0 when `maxSurge` is 0"
_DEPLOYMENT_STRATEGY: Final[Rows] = {
    **_strategy("Recreate", "RollingUpdate"),
    "rollingUpdate": {"maxUnavailable": "part", "maxSurge": "amount"},
    rules.equals("type", "Recreate"): {
        "rollingUpdate": "Forbidden: may not be specified when strategy `type` is 'Recreate'"
    },
    rules.differs("type", "Recreate"): {
        "rollingUpdate": {
            _is_stuck: rules.always(
                "Invalid value: {maxUnavailable}: may not be 0 when `maxSurge` is 0", "maxUnavailable"
            )
        }
    },
}
_NO_SURGE: Final[Rows] = {rules.number_of: "Invalid value: {}: may not be set when maxUnavailable is non-zero"}
_ROLLING: Final[Rows] = {
    _is_stuck: rules.always("Required value: cannot be 0 when maxSurge is 0", "maxUnavailable"),
    lambda rolling: rules.number_of(rolling.get("maxUnavailable")): {"maxSurge": _NO_SURGE},
}
_DAEMON_SET_STRATEGY: Final[Rows] = {
    **_strategy("RollingUpdate", "OnDelete"),
    "rollingUpdate": {"maxUnavailable maxSurge": "part"},
    rules.equals("type", None, "RollingUpdate"): {"rollingUpdate": ("given", _ROLLING)},
}
_STATEFUL_SET_STRATEGY: Final[Rows] = {
    **_strategy("RollingUpdate", "OnDelete"),
    "rollingUpdate.partition": "0..",
    rules.equals("type", "OnDelete"): {
        "rollingUpdate": "Invalid value: {}: only allowed for updateStrategy 'RollingUpdate'"
    },
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
_MUTABLE: Final = "', '".join(STATEFUL_MUTABLE[:-1]) + f"' and '{STATEFUL_MUTABLE[-1]}'"
_IN_TIME: Final[Rows] = {
    lambda spec: spec.get("progressDeadlineSeconds", 2**31) <= spec.get("minReadySeconds", 0): {
        "progressDeadlineSeconds": "Invalid value: {}: must be greater than minReadySeconds"
    }
}
DEPLOYMENT_FIELDS: Final[Rows] = {
    "spec": (_workload("deployment", "ReplicaSet", f"{_COUNTS} {_HISTORY} progressDeadlineSeconds"), _IN_TIME),
    "spec.strategy": _DEPLOYMENT_STRATEGY,
}
REPLICA_SET_FIELDS: Final[Rows] = {"spec": _workload("deployment", "ReplicaSet", _COUNTS)}
# Rules of a value come before those of its parts: of these, the server has the immutable fields last.
DEPLOYMENT: Final[Rows] = (rules.table(DEPLOYMENT_FIELDS), rules.frozen())
REPLICA_SET: Final[Rows] = (rules.table(REPLICA_SET_FIELDS), rules.frozen())
DAEMON_SET: Final[Rows] = (
    rules.frozen(),
    {
        "spec": _workload("daemonset", "DaemonSet", f"minReadySeconds {_HISTORY}"),
        "spec.updateStrategy": _DAEMON_SET_STRATEGY,
    },
)
STATEFUL_SET: Final[Rows] = (
    rules.frozen(f"Forbidden: updates to statefulset spec for fields other than '{_MUTABLE} are forbidden", at="spec"),
    {
        "spec": (_workload("statefulset", "StatefulSet", _COUNTS, ()), _with_claims),
        "spec.ordinals.start": "0..",
        "spec.updateStrategy": _STATEFUL_SET_STRATEGY,
        "spec.podManagementPolicy": "OrderedReady|Parallel",
        "spec.persistentVolumeClaimRetentionPolicy": {"whenDeleted whenScaled": "Retain|Delete"},
    },
    rules.new({"spec.serviceName": "label", "spec.volumeClaimTemplates[].spec!": CLAIM_SPEC}),
)


# -- Jobs and CronJobs -----------------------------------------------------------------------------------------------


_ENDING: Final[Rows] = {
    rules.equals("restartPolicy", None, "", "Always"): rules.always(
        'Required value: valid values: "OnFailure", "Never"', "restartPolicy"
    ),
    rules.differs("restartPolicy", None, "", "Always"): {"restartPolicy": "OnFailure|Never"},
}
_JOB_SPEC: Final[Rows] = {
    "parallelism completions activeDeadlineSeconds backoffLimit ttlSecondsAfterFinished": "0..",
    "backoffLimitPerIndex maxFailedIndexes": "0..",
    "completionMode": "NonIndexed|Indexed",
    "podReplacementPolicy": "Failed|TerminatingOrFailed",
    "template!": rules.changed(TEMPLATE),
    "template!.spec!": _ENDING,
    rules.equals("completionMode", "Indexed"): {"completions": "Required value: when completion mode is Indexed"},
    rules.equals("completionMode", None, "NonIndexed"): {
        "backoffLimitPerIndex maxFailedIndexes": "Invalid value: {}: requires indexed completion mode"
    },
}
JOB: Final[Rows] = (rules.frozen(), {"spec": (_JOB_SPEC, selected, {"selector": "given selector"})})


def _schedule_problems(schedule: str) -> Iterator[str]:
    if problem := schedule_problem(schedule):
        yield problem


def _zone_problems(zone: str) -> Iterator[str]:
    if not is_zone(zone):
        yield f"unknown time zone {zone}" if zone else "timeZone must be nil or non-empty string"


_TOO_LONG: Final = f"Invalid value: {{}}: must be no more than {LONGEST_CRON_JOB} characters"
CRON_JOB: Final[Rows] = (
    rules.new({"metadata.name": {lambda name: len(name) > LONGEST_CRON_JOB: _TOO_LONG}}),
    {
        "spec!": {
            "schedule": ("needed", rules.named(_schedule_problems)),
            "startingDeadlineSeconds successfulJobsHistoryLimit failedJobsHistoryLimit": "0..",
            "timeZone": rules.changed(rules.named(_zone_problems, empty=False)),
            "concurrencyPolicy": "Allow|Forbid|Replace",
            "jobTemplate!.spec!": _JOB_SPEC,
            "jobTemplate!.spec!.selector": "Invalid value: {}: `selector` will be auto-generated",
            "jobTemplate!.spec!.manualSelector": {bool: 'Unsupported value: {}: supported values: "nil", "false"'},
        },
    },
)


# -- HorizontalPodAutoscalers ----------------------------------------------------------------------------------------


def _replicas(spec: Any, old: Any) -> Iterator[FieldError]:
    least, most = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    lowest = 0 if (old or {}).get("minReplicas") == 0 else 1
    if least < lowest:
        yield refusal(f"Invalid value: {{}}: must be greater than or equal to {lowest}", least, "minReplicas")
    if not most:
        yield refusal("Required value: must be set and greater than 0", most, "maxReplicas")
    elif most < 0:
        yield refusal("Invalid value: {}: must be greater than or equal to 1", most, "maxReplicas")
    if most < least:
        yield refusal("Invalid value: {}: must be greater than or equal to `minReplicas`", most, "maxReplicas")
    if least == 0 and not any(each.get("type") in ("Object", "External") for each in spec.get("metrics") or ()):
        words = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield refusal(f"Forbidden: {words}", spec, "metrics")


def _version(reference: Any, old: Any, *, names_group: bool = False) -> Iterator[FieldError]:
    """The version of what is scaled names a group, except where an earlier version did not."""
    version = reference.get("apiVersion", "")
    if old and all(reference.get(name) == old.get(name) for name in ("apiVersion", "kind")):
        return
    if version.count("/") > 1:
        yield refusal(f"Invalid value: {{}}: unexpected GroupVersion string: {version}", version, "apiVersion")
    elif names_group and "/" not in version and reference.get("kind") != "ReplicationController":
        yield refusal("Invalid value: {}: apiVersion must specify API group", version, "apiVersion")


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
    type_ = metric.get("type", "")
    if not type_:
        yield refusal("Required value: must specify a metric source type", type_, "type")
    if type_ not in _SOURCES:
        yield from [unsupported("type", type_, sorted(_SOURCES))] * 2  # the server looks twice
    given, expected = [name for name in _SOURCES.values() if metric.get(name) is not None], _SOURCES.get(type_)
    if expected is not None and expected not in given:
        yield refusal("Required value: must populate information for the given metric source", metric, expected)
    for name in given if len(given) != 1 else ():
        if name != expected:
            yield refusal("Forbidden: must populate the given metric source only", metric, name)


_REFERRED: Final[Rows] = {"kind name": "needed segment"}
_TARGET: Final[Rows] = {
    "type": "Required value: must specify a metric target type",
    rules.differs("type", "Utilization", "Value", "AverageValue"): rules.always(
        "Invalid value: {type}: must be either Utilization, Value, or AverageValue", "type"
    ),
    "value averageValue": rules.quantity("must be positive"),
    "averageUtilization": "1..",
}
_SHARE: Final[Rows] = {
    rules.lacks("averageValue"): {
        "averageUtilization": "Required value: must set either a target raw value or a target utilization"
    },
    rules.has("averageUtilization"): {
        "averageValue": "Forbidden: may not set both a target raw value and a target utilization"
    },
}
_METRIC: Final[Rows] = (
    _source,
    {
        "object.target! external.target! pods.target! resource.target! containerResource.target!": _TARGET,
        "object external pods": {"metric!.name": ("Required value: must specify a metric name", "segment")},
        "object.describedObject!": (_REFERRED, _version),
        "object.target!": {
            rules.lacks("value"): {"averageValue": "Required value: must set either a target value or averageValue"}
        },
        "external.target!": {
            rules.lacks("value"): {
                "averageValue": "Required value: must set either a target value for metric or a per-pod target"
            },
            rules.has("averageValue"): {
                "value": "Forbidden: may not set both a target value for metric and a per-pod target"
            },
        },
        "pods.target!.averageValue": "Required value: must specify a positive target averageValue",
        "resource.target! containerResource.target!": _SHARE,
        "resource.name containerResource.name": "Required value: must specify a resource name",
        "containerResource.name": ("key", RESOURCE_NAME),
        "containerResource.container": ("Required value: must specify a container", "label"),
    },
)
_BEHAVIOR: Final[Rows] = {
    "stabilizationWindowSeconds": (
        rules.between(0, None, "must be greater than or equal to zero"),
        rules.between(-(2**63), 3600, "must be less than or equal to 3600"),
    ),
    "selectPolicy": "Disabled|Max|Min",
    "policies": "Required value: must specify at least one Policy",
    "policies[]": {
        "type": "Percent|Pods!",
        "value periodSeconds": rules.between(1, None, "must be greater than zero", given=True),
        "periodSeconds": rules.between(-(2**63), 1800, "must be less than or equal to 1800"),
    },
    "tolerance": rules.quantity("must be greater than or equal to 0", least=0),
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
