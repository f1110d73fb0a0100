"""How API servers change the objects that they receive, and the statuses that controllers write.

Only changes that could confuse a plan: defaults, normalised values, labels and fields that the server adds.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any

from ruleop.schema.quantity import quantity_equal

if TYPE_CHECKING:
    from collections.abc import Callable


def as_kept(obj: dict[str, Any]) -> None:
    """Adds, in place, the server's defaults for an object of this kind."""
    _DEFAULTS.get(obj["kind"], lambda _: None)(obj)


def without_nothing(value: Any) -> Any:
    """Removes nulls, and empty lists and maps that Go omits."""
    if isinstance(value, dict):
        kept = {name: without_nothing(each) for name, each in value.items()}
        drop = {"labels", "annotations", "data", "env", "finalizers", "ownerReferences"}
        return {
            name: each
            for name, each in kept.items()
            if each is not None and each != [] and not (name in drop and not each)
        }
    return [without_nothing(item) for item in value] if isinstance(value, list) else value


def _pod(pod: dict[str, Any]) -> None:
    pod.setdefault("restartPolicy", "Always")
    pod.setdefault("dnsPolicy", "ClusterFirst")
    pod.setdefault("schedulerName", "default-scheduler")
    pod.setdefault("securityContext", {})
    pod.setdefault("terminationGracePeriodSeconds", 30)
    for container in pod["containers"]:
        container.setdefault("imagePullPolicy", "IfNotPresent")
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("resources", {})
        for port in container.get("ports", ()):
            port.setdefault("protocol", "TCP")
        for name in ("livenessProbe", "readinessProbe"):
            if name in container:
                for field, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("failureThreshold", 3)):
                    container[name].setdefault(field, value)
        for kind in ("requests", "limits"):
            for resource, amount in container["resources"].get(kind, {}).items():
                container["resources"][kind][resource] = _quantity(amount)


def _quantity(amount: str) -> str:
    """1000m is 1."""
    whole = (
        f"{int(amount[:-1]) // 1000}"
        if isinstance(amount, str) and re.fullmatch(r"[0-9]+000m", amount)
        else str(amount)
    )
    assert quantity_equal(str(amount), whole)
    return whole


def _workload(obj: dict[str, Any]) -> None:
    spec = obj["spec"]
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    _pod(spec["template"]["spec"])


def _deployment(obj: dict[str, Any]) -> None:
    _workload(obj)
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
    obj["spec"].setdefault("strategy", rolling)
    obj["spec"].setdefault("progressDeadlineSeconds", 600)


def _stateful_set(obj: dict[str, Any]) -> None:
    _workload(obj)
    obj["spec"].setdefault("podManagementPolicy", "OrderedReady")
    obj["spec"].setdefault("updateStrategy", {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
    for claim in obj["spec"].get("volumeClaimTemplates", ()):
        claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}}
        claim["spec"].setdefault("volumeMode", "Filesystem")


def _job(obj: dict[str, Any]) -> None:
    uid = obj["metadata"]["uid"]
    obj["spec"].setdefault("parallelism", 1)
    obj["spec"].setdefault("completions", 1)
    obj["spec"].setdefault("suspend", False)
    obj["spec"].setdefault("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}})
    labels = obj["spec"]["template"].setdefault("metadata", {}).setdefault("labels", {})
    labels |= {"batch.kubernetes.io/controller-uid": uid, "job-name": obj["metadata"]["name"]}
    _pod(obj["spec"]["template"]["spec"])


def _cron_job(obj: dict[str, Any]) -> None:
    obj["spec"].setdefault("suspend", False)
    obj["spec"].setdefault("successfulJobsHistoryLimit", 3)
    _pod(obj["spec"]["jobTemplate"]["spec"]["template"]["spec"])


def _service(obj: dict[str, Any]) -> None:
    spec = obj["spec"]
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("clusterIP", f"10.0.0.{obj['metadata']['uid'].removeprefix('uid-')}")
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    spec.setdefault("sessionAffinity", "None")
    for port in spec.get("ports", ()):
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port["port"])
        if spec["type"] == "LoadBalancer":
            port.setdefault("nodePort", 30000 + port["port"])
        else:
            port.pop("nodePort", None)
    if spec["type"] != "LoadBalancer":
        obj.pop("status", None)


def _secret(obj: dict[str, Any]) -> None:
    plain = obj.pop("stringData", {})
    if plain:
        obj["data"] = {
            **obj.get("data", {}),
            **{name: base64.b64encode(text.encode()).decode() for name, text in plain.items()},
        }
    obj.setdefault("type", "Opaque")


def _claim(obj: dict[str, Any]) -> None:
    obj["spec"].setdefault("volumeMode", "Filesystem")
    obj["spec"].setdefault("storageClassName", "standard")
    obj["metadata"]["finalizers"] = list(dict.fromkeys([*obj["metadata"].get("finalizers", ())]))
    if not obj["metadata"]["finalizers"]:
        del obj["metadata"]["finalizers"]


def _namespace(obj: dict[str, Any]) -> None:
    obj.setdefault("status", {"phase": "Active"})
    obj.setdefault("spec", {"finalizers": ["kubernetes"]})
    obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = obj["metadata"]["name"]


def _binding(obj: dict[str, Any]) -> None:
    for subject in obj.get("subjects", ()):
        subject.setdefault("apiGroup", "rbac.authorization.k8s.io")


def _quota(obj: dict[str, Any]) -> None:
    hard = obj["spec"].get("hard", {})
    obj["spec"]["hard"] = {name: _quantity(amount) for name, amount in hard.items()}


_DEFAULTS: dict[str, Callable[[dict[str, Any]], None]] = {
    "Deployment": _deployment,
    "StatefulSet": _stateful_set,
    "Job": _job,
    "CronJob": _cron_job,
    "Service": _service,
    "Secret": _secret,
    "PersistentVolumeClaim": _claim,
    "Namespace": _namespace,
    "RoleBinding": _binding,
    "ResourceQuota": _quota,
}


# -- statuses of controllers -------------------------------------------------------------------------------------------------------------


def settled(obj: dict[str, Any]) -> dict[str, Any] | None:
    generation = obj["metadata"]["generation"]
    spec, status = obj.get("spec", {}), obj.get("status", {})
    match obj["kind"]:
        case "Deployment":
            counts = dict.fromkeys(
                ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), spec["replicas"]
            )
            return {"observedGeneration": generation, **counts, "conditions": [{"type": "Available", "status": "True"}]}
        case "StatefulSet":
            counts = dict.fromkeys(
                ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), spec["replicas"]
            )
            return {"observedGeneration": generation, **counts, "currentRevision": "r", "updateRevision": "r"}
        case "Job":
            done = [{"type": "Complete", "status": "True"}]
            return status or {"startTime": "2026-01-01T00:00:00Z", "succeeded": spec["completions"], "conditions": done}
        case "PersistentVolumeClaim":
            return {"phase": "Bound"}
        case "Service" if spec["type"] == "LoadBalancer":
            address = obj["metadata"]["uid"].removeprefix("uid-")
            return status or {"loadBalancer": {"ingress": [{"ip": f"192.0.2.{address}"}]}}
        case "PodDisruptionBudget":
            return {
                "observedGeneration": generation,
                "currentHealthy": 1,
                "desiredHealthy": 1,
                "expectedPods": 1,
                "disruptionsAllowed": 0,
            }
        case "Certificate":
            ready = [{"type": "Ready", "status": "True", "observedGeneration": generation}]
            return {"notAfter": "2026-04-01T00:00:00Z", "conditions": ready}
    return None
