"""The statuses that controllers write when all is well."""

from __future__ import annotations

from typing import Any
from uuid import UUID


def settled(obj: dict[str, Any]) -> dict[str, Any] | None:
    generation = obj["metadata"].get("generation")
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
            return {"phase": "Bound", "capacity": spec["resources"]["requests"]}
        case "Service" if spec["type"] == "LoadBalancer":
            address = "198.18.{}.{}".format(*UUID(obj["metadata"]["uid"]).bytes)
            return status if status.get("loadBalancer") else {"loadBalancer": {"ingress": [{"ip": address}]}}
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
