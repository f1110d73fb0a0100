"""What the server does to the objects of its built-in kinds: defaults, immutable fields, and what it allocates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.kinds.custom import CLEANUP, accepted, defaulted
from ruleop.localcluster.kinds.definition_causes import definition_causes
from ruleop.localcluster.kinds.served import Strategy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.kinds import Object


def _namespace_created(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = obj["metadata"]
    labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    return {
        **obj,
        "metadata": {**metadata, "labels": labels},
        "spec": {**(obj.get("spec") or {}), "finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _pod_grace(pod: Object) -> int:
    seconds = (pod.get("spec") or {}).get("terminationGracePeriodSeconds")
    return seconds if isinstance(seconds, int) else 30


_SPEC = Strategy(has_generation=True)

STRATEGIES: Final[Mapping[tuple[str, str], Strategy]] = {
    ("", "Namespace"): Strategy(create=_namespace_created),
    ("", "Pod"): Strategy(has_generation=True, grace=_pod_grace),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): Strategy(
        default=defaulted,
        create=accepted,
        update=lambda new, _old: accepted(new),
        validate=definition_causes,
        has_generation=True,
        finalizers=(CLEANUP,),
    ),
    ("apps", "Deployment"): _SPEC,
    ("apps", "ReplicaSet"): _SPEC,
    ("apps", "StatefulSet"): _SPEC,
    ("apps", "DaemonSet"): _SPEC,
    ("batch", "Job"): _SPEC,
    ("batch", "CronJob"): _SPEC,
    ("networking.k8s.io", "Ingress"): _SPEC,
    ("networking.k8s.io", "NetworkPolicy"): _SPEC,
    ("policy", "PodDisruptionBudget"): _SPEC,
}
