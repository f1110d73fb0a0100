"""Whether an object is ready. Built-in kinds have a rule each; other objects are ready by their conditions, and if they
have no conditions, as soon as they exist.

The rules follow kstatus, which Flux and Argo CD use, with one difference: a Job is ready when it is complete, because
dependents of a Job need its result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from ruleop.kubernetes.kinds import GroupKind, Object
from ruleop.kubernetes.schema import UNKNOWN, Shape
from ruleop.messages import shortened
from ruleop.planning.model.conditions import NEGATIVE

MAX_DETAIL: Final = 300


class Readiness(NamedTuple):
    """`message` follows the object's name and a colon. It has no values of fields, except counts."""

    ready: bool
    message: str = ""
    failed: bool = False  # it will not become ready by itself
    detail: str = ""  # what the object's controller says about it, which may quote values of its fields


READY = Readiness(True)
_DIGITS = re.compile(r"[0-9]{1,19}\Z")
Check = Callable[[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]], Readiness]


def readiness(live: Object, shape: Shape = UNKNOWN) -> Readiness:
    """The readiness of an object. `shape` shows whether a custom kind has conditions: if it has, an object without any
    is not ready, because its controller has not reported yet."""
    metadata: Mapping[str, Any] = live.get("metadata") or {}
    if metadata.get("deletionTimestamp"):
        return Readiness(False, "being deleted")
    api_version = str(live.get("apiVersion", ""))
    kind = GroupKind(api_version.rpartition("/")[0], str(live.get("kind", "")))
    spec, status = live.get("spec"), live.get("status")
    status = status if isinstance(status, dict) else {}
    check = CHECKS.get(kind)
    if check is not None:
        return check(metadata, spec if isinstance(spec, dict) else {}, status)
    if (
        "." in kind.group
        and not kind.group.endswith(".k8s.io")
        and not status.get("conditions")
        and _has_conditions(shape)
    ):
        return Readiness(
            False, "its controller has not reported on it yet; if it never does, set `readyWhen` in the child"
        )
    return _by_conditions(metadata, status)


def _has_conditions(shape: Shape) -> bool:
    status = shape.fields.get("status")
    return status is not None and "conditions" in status.fields


def _conditions(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    conditions = status.get("conditions")
    if not isinstance(conditions, list):
        return {}
    return {str(each.get("type")): each for each in conditions if isinstance(each, dict)}


def _condition_words(condition: Mapping[str, Any]) -> str:
    """The message of a condition on one line, or else its reason."""
    text = " ".join(str(condition.get("message") or condition.get("reason") or "").split())
    return shortened(text.replace(";", ",").removesuffix("."), MAX_DETAIL)


def _current(metadata: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    """Whether the status is of the latest generation."""
    return _number(status.get("observedGeneration")) >= _number(metadata.get("generation"))


def _number(value: Any, default: int = 0) -> int:
    if isinstance(value, str) and _DIGITS.match(value):  # some kinds of Istio have a string instead of an integer
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


NOT_CURRENT = Readiness(False, "its controller has not seen the latest change")


def _deployment(metadata: Mapping[str, Any], spec: Mapping[str, Any], status: Mapping[str, Any]) -> Readiness:
    if not _current(metadata, status):
        return NOT_CURRENT
    conditions = _conditions(status)
    progressing = conditions.get("Progressing", {})
    rejected = conditions.get("ReplicaFailure", {})
    detail = _condition_words(rejected) if rejected.get("status") == "True" else ""
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        return Readiness(False, "rollout exceeded its progress deadline", True, detail)
    if progressing.get("status") == "False":
        detail = detail or _condition_words(progressing)
    desired = _number(spec.get("replicas"), 1)
    updated, available, total = (
        _number(status.get(name)) for name in ("updatedReplicas", "availableReplicas", "replicas")
    )
    if updated < desired:
        return Readiness(False, f"{updated} of {desired} pods updated", detail=detail)
    if total > updated:
        return Readiness(False, "old pods still exist", detail=detail)
    return (
        READY if available >= desired else Readiness(False, f"{available} of {desired} pods available", False, detail)
    )


def _stateful_set(metadata: Mapping[str, Any], spec: Mapping[str, Any], status: Mapping[str, Any]) -> Readiness:
    if not _current(metadata, status):
        return NOT_CURRENT
    strategy = spec.get("updateStrategy")
    strategy = strategy if isinstance(strategy, dict) else {}
    desired = _number(spec.get("replicas"), 1)
    ready = _number(status.get("readyReplicas"))
    if ready < desired:
        return Readiness(False, f"{ready} of {desired} pods ready")
    if _number(status.get("replicas")) > desired:
        return Readiness(False, "surplus pods still exist")
    if strategy.get("type") == "OnDelete":
        return READY
    rolling = strategy.get("rollingUpdate")
    partition = _number(rolling.get("partition")) if isinstance(rolling, dict) else 0
    updated = _number(status.get("updatedReplicas"))
    if partition:
        return (
            READY
            if updated >= desired - partition
            else Readiness(False, f"{updated} of {desired - partition} pods updated")
        )
    if status.get("currentRevision") != status.get("updateRevision"):
        return Readiness(False, "rollout not complete")
    return READY


def _daemon_set(metadata: Mapping[str, Any], _spec: Mapping[str, Any], status: Mapping[str, Any]) -> Readiness:
    if not _current(metadata, status):
        return NOT_CURRENT
    desired = _number(status.get("desiredNumberScheduled"))
    for name, word in (("updatedNumberScheduled", "updated"), ("numberAvailable", "available")):
        found = _number(status.get(name))
        if found < desired:
            return Readiness(False, f"{found} of {desired} pods {word}")
    return READY


def _replica_set(metadata: Mapping[str, Any], spec: Mapping[str, Any], status: Mapping[str, Any]) -> Readiness:
    if not _current(metadata, status):
        return NOT_CURRENT
    desired, available = _number(spec.get("replicas"), 1), _number(status.get("availableReplicas"))
    if available >= desired:
        return READY
    rejected = _conditions(status).get("ReplicaFailure", {})
    detail = _condition_words(rejected) if rejected.get("status") == "True" else ""
    return Readiness(False, f"{available} of {desired} pods available", detail=detail)


def _job(_metadata: Mapping[str, Any], spec: Mapping[str, Any], status: Mapping[str, Any]) -> Readiness:
    conditions = _conditions(status)
    if conditions.get("Complete", {}).get("status") == "True":
        return READY
    if conditions.get("Failed", {}).get("status") == "True":
        return Readiness(False, "failed", True, _condition_words(conditions["Failed"]))
    if spec.get("suspend") is True:
        return Readiness(False, "suspended")
    return Readiness(False, "running")


def _pod(_metadata: Mapping[str, Any], _spec: Mapping[str, Any], status: Mapping[str, Any]) -> Readiness:
    phase = status.get("phase")
    if phase == "Succeeded" or _conditions(status).get("Ready", {}).get("status") == "True":
        return READY
    return Readiness(False, "failed" if phase == "Failed" else "not ready", failed=phase == "Failed")


def _claim(_metadata: Mapping[str, Any], spec: Mapping[str, Any], status: Mapping[str, Any]) -> Readiness:
    """A claim has no message of its own: why it is Pending is in Events, which are not watched. Most often its class
    does not exist, or no pod uses it yet."""
    phase = status.get("phase")
    if phase == "Bound":
        return READY
    class_ = spec.get("storageClassName")
    detail = f"{phase or 'Pending'}, {f'StorageClass {class_}' if class_ else 'default StorageClass'}"
    return Readiness(False, "not bound", detail=detail)


def _service(_metadata: Mapping[str, Any], spec: Mapping[str, Any], status: Mapping[str, Any]) -> Readiness:
    if spec.get("type") != "LoadBalancer":
        return READY
    balancer = status.get("loadBalancer")
    return (
        READY
        if isinstance(balancer, dict) and balancer.get("ingress")
        else Readiness(False, "no load balancer address yet")
    )


def _namespace(_metadata: Mapping[str, Any], _spec: Mapping[str, Any], status: Mapping[str, Any]) -> Readiness:
    return READY if status.get("phase") == "Active" else Readiness(False, "not active")


def _definition(_metadata: Mapping[str, Any], _spec: Mapping[str, Any], status: Mapping[str, Any]) -> Readiness:
    conditions = _conditions(status)
    if conditions.get("NamesAccepted", {}).get("status") == "False":
        return Readiness(False, "names conflict with another CRD", True, _condition_words(conditions["NamesAccepted"]))
    return READY if conditions.get("Established", {}).get("status") == "True" else Readiness(False, "not established")


def _api_service(_metadata: Mapping[str, Any], _spec: Mapping[str, Any], status: Mapping[str, Any]) -> Readiness:
    available = _conditions(status).get("Available", {})
    if available.get("status") == "True":
        return READY
    return Readiness(False, "not available", detail=_condition_words(available))


def _disruption_budget(metadata: Mapping[str, Any], _spec: Mapping[str, Any], status: Mapping[str, Any]) -> Readiness:
    if not _current(metadata, status):
        return NOT_CURRENT
    if _number(status.get("currentHealthy")) >= _number(status.get("desiredHealthy")):
        return READY
    return Readiness(False, "too few healthy pods")


def _by_conditions(metadata: Mapping[str, Any], status: Mapping[str, Any]) -> Readiness:
    if "observedGeneration" in status and not _current(metadata, status):
        return NOT_CURRENT
    conditions = _conditions(status)
    decisive = next((type_ for type_ in ("Ready", "Available") if type_ in conditions), "")
    for type_, good in ((decisive, "True"), ("Stalled", "False"), ("Reconciling", "False")):
        found = conditions.get(type_, {})
        value = found.get("status")
        if type_ not in conditions or (type_ in NEGATIVE and value != "True"):
            continue
        generation = found.get("observedGeneration")
        if generation is not None and _number(generation) < _number(metadata.get("generation")):
            return NOT_CURRENT
        if value != good:
            shown = value if value in ("True", "False") else "Unknown"
            failed = conditions.get("Stalled", {}).get("status") == "True"
            return Readiness(False, f"condition {type_} is {shown}", failed, _condition_words(found))
    return READY


CHECKS: Final[Mapping[GroupKind, Check]] = {
    GroupKind("apps", "Deployment"): _deployment,
    GroupKind("apps", "StatefulSet"): _stateful_set,
    GroupKind("apps", "DaemonSet"): _daemon_set,
    GroupKind("apps", "ReplicaSet"): _replica_set,
    GroupKind("batch", "Job"): _job,
    GroupKind("", "Pod"): _pod,
    GroupKind("", "PersistentVolumeClaim"): _claim,
    GroupKind("", "Service"): _service,
    GroupKind("", "Namespace"): _namespace,
    GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    GroupKind("apiregistration.k8s.io", "APIService"): _api_service,
    GroupKind("policy", "PodDisruptionBudget"): _disruption_budget,
}
