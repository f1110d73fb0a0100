"""An example of a ready object of each kind that `readiness` knows: the status that its controller writes.

Tests of rules give it to children that they call ready, and the tests of readiness hold the examples to its rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ruleop.kubernetes.kinds import GroupKind, Kind, Object
from ruleop.kubernetes.schema.shape import UNKNOWN, Shape
from ruleop.planning.child.readiness import readiness


class Copied(NamedTuple):
    """A value of the object itself. Without a default, the field is left out where the object has no such value."""

    path: tuple[str, ...]
    default: Any = None


def _true(*types: str) -> dict[str, Any]:
    return {"conditions": [{"type": each, "status": "True"} for each in types]}


_SEEN: Final = {"observedGeneration": Copied(("metadata", "generation"))}
_PODS: Final = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
_REPLICAS: Final = {**_SEEN, **dict.fromkeys(_PODS, Copied(("spec", "replicas"), 1))}
_NODES: Final = ("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberAvailable")
_TIME: Final = "1970-01-01T00:00:00Z"

READY_STATUSES: Final[Mapping[GroupKind, Mapping[str, Any]]] = {
    GroupKind("apps", "Deployment"): {**_REPLICAS, **_true("Available", "Progressing")},
    GroupKind("apps", "StatefulSet"): {
        **_REPLICAS,
        **dict.fromkeys(("currentRevision", "updateRevision"), Copied(("status", "updateRevision"), "revision")),
    },
    GroupKind("apps", "DaemonSet"): {**_SEEN, **dict.fromkeys((*_NODES, "numberReady"), 1), "numberMisscheduled": 0},
    GroupKind("apps", "ReplicaSet"): _REPLICAS,
    GroupKind("batch", "Job"): {
        **dict.fromkeys(("startTime", "completionTime"), _TIME),
        "succeeded": Copied(("spec", "completions"), 1),
        **_true("Complete"),
    },
    GroupKind("", "Pod"): {"phase": "Running", **_true("Ready")},
    GroupKind("", "PersistentVolumeClaim"): {"phase": "Bound", "capacity": Copied(("spec", "resources", "requests"))},
    GroupKind("", "Service"): {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
    GroupKind("", "Namespace"): {"phase": "Active"},
    GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"): _true("NamesAccepted", "Established"),
    GroupKind("apiregistration.k8s.io", "APIService"): _true("Available"),
    GroupKind("policy", "PodDisruptionBudget"): {
        **_SEEN,
        **dict.fromkeys(("currentHealthy", "desiredHealthy", "expectedPods"), 1),
        "disruptionsAllowed": 0,
    },
}


def made_ready(obj: Object, shape: Shape = UNKNOWN) -> Object:
    """The object with the status of a ready one; unchanged if it is ready already."""
    if readiness(obj, shape).ready:
        return obj
    status = obj.get("status") or {}
    example = READY_STATUSES.get(Kind.of(obj).versionless) or _by_conditions(status)
    return {**obj, "status": {**status, **_filled(example, obj)}}


def _filled(example: Any, obj: Object) -> Any:
    """The example with the values that are copied from the object. A field without a value is left out."""
    if isinstance(example, Copied):
        value: Any = obj
        for name in example.path:
            value = value.get(name) if isinstance(value, Mapping) else None
        return example.default if value is None else value
    if isinstance(example, Mapping):
        found = {name: _filled(each, obj) for name, each in example.items()}
        return {name: each for name, each in found.items() if each is not None}
    return [_filled(each, obj) for each in example] if isinstance(example, list) else example


def _by_conditions(status: Mapping[str, Any]) -> dict[str, Any]:
    """The status of another kind: Ready, or Available if that is the condition that it has."""
    conditions = [each for each in status.get("conditions") or () if isinstance(each, dict)]
    types = {each.get("type") for each in conditions}
    type_ = "Available" if "Available" in types and "Ready" not in types else "Ready"
    others = [each for each in conditions if each.get("type") != type_]
    found: dict[str, Any] = {"conditions": [*others, {"type": type_, "status": "True", **_SEEN}]}
    return {**found, **_SEEN} if "observedGeneration" in status else found
