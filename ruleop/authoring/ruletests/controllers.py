"""The work of controllers on children in a test: the status of an object that has become ready."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.authoring.offline.stand_in import EPOCH
from ruleop.core.kinds import GroupKind, Object
from ruleop.core.planning.child.readiness import readiness
from ruleop.core.schema.shape import UNKNOWN, Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def made_ready(obj: Object, shape: Shape = UNKNOWN) -> Object:
    """The object with the status that its controller writes when it is ready; unchanged if it is ready already."""
    if readiness(obj, shape).ready:
        return obj
    status = obj.get("status") or {}
    api_version = str(obj.get("apiVersion", ""))
    kind = GroupKind(api_version.rpartition("/")[0], str(obj.get("kind", "")))
    generation = obj["metadata"].get("generation")
    seen = {} if generation is None else {"observedGeneration": generation}
    made = _STATUSES.get(kind, _by_conditions)(obj.get("spec") or {}, status, seen)
    return {**obj, "status": {**status, **made}}


Status = dict[str, Any]


def _replicas(spec: Mapping[str, Any], _status: Mapping[str, Any], seen: Status) -> Status:
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    return {**seen, **dict.fromkeys(counts, spec.get("replicas", 1))}


def _deployment(spec: Mapping[str, Any], status: Mapping[str, Any], seen: Status) -> Status:
    return {**_replicas(spec, status, seen), "conditions": [_true("Available"), _true("Progressing")]}


def _stateful_set(spec: Mapping[str, Any], status: Mapping[str, Any], seen: Status) -> Status:
    revision = status.get("updateRevision", "revision")
    return {**_replicas(spec, status, seen), "currentRevision": revision, "updateRevision": revision}


def _daemon_set(_spec: Mapping[str, Any], _status: Mapping[str, Any], seen: Status) -> Status:
    counts = ("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberAvailable")
    return {**seen, **dict.fromkeys((*counts, "numberReady"), 1), "numberMisscheduled": 0}


def _job(spec: Mapping[str, Any], _status: Mapping[str, Any], _seen: Status) -> Status:
    times = {"startTime": EPOCH, "completionTime": EPOCH}
    return {**times, "succeeded": spec.get("completions", 1), "conditions": [_true("Complete")]}


def _pod(_spec: Mapping[str, Any], _status: Mapping[str, Any], _seen: Status) -> Status:
    return {"phase": "Running", "conditions": [_true("Ready")]}


def _claim(spec: Mapping[str, Any], _status: Mapping[str, Any], _seen: Status) -> Status:
    requests = (spec.get("resources") or {}).get("requests") or {}
    return {"phase": "Bound", "capacity": dict(requests)}


def _service(_spec: Mapping[str, Any], _status: Mapping[str, Any], _seen: Status) -> Status:
    return {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}


def _namespace(_spec: Mapping[str, Any], _status: Mapping[str, Any], _seen: Status) -> Status:
    return {"phase": "Active"}


def _definition(_spec: Mapping[str, Any], _status: Mapping[str, Any], _seen: Status) -> Status:
    return {"conditions": [_true("NamesAccepted"), _true("Established")]}


def _budget(_spec: Mapping[str, Any], _status: Mapping[str, Any], seen: Status) -> Status:
    return {**seen, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, "disruptionsAllowed": 0}


def _available(_spec: Mapping[str, Any], _status: Mapping[str, Any], _seen: Status) -> Status:
    return {"conditions": [_true("Available")]}


def _by_conditions(_spec: Mapping[str, Any], status: Mapping[str, Any], seen: Status) -> Status:
    """Ready, or Available if that is what the object has."""
    types = {each.get("type") for each in status.get("conditions") or () if isinstance(each, dict)}
    type_ = "Available" if "Available" in types and "Ready" not in types else "Ready"
    others = [each for each in status.get("conditions") or () if each.get("type") != type_]
    generation = {"observedGeneration": seen["observedGeneration"]} if seen else {}
    found: Status = {"conditions": [*others, {**_true(type_), **generation}]}
    return {**found, **seen} if "observedGeneration" in status else found


def _true(type_: str) -> Status:
    return {"type": type_, "status": "True"}


_STATUSES: dict[GroupKind, Callable[[Mapping[str, Any], Mapping[str, Any], Status], Status]] = {
    GroupKind("apps", "Deployment"): _deployment,
    GroupKind("apps", "StatefulSet"): _stateful_set,
    GroupKind("apps", "DaemonSet"): _daemon_set,
    GroupKind("apps", "ReplicaSet"): _replicas,
    GroupKind("batch", "Job"): _job,
    GroupKind("", "Pod"): _pod,
    GroupKind("", "PersistentVolumeClaim"): _claim,
    GroupKind("", "Service"): _service,
    GroupKind("", "Namespace"): _namespace,
    GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    GroupKind("apiregistration.k8s.io", "APIService"): _available,
    GroupKind("policy", "PodDisruptionBudget"): _budget,
}
