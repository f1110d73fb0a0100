"""The statuses that controllers write when all is well."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from ruleop.authoring.ruletests.plan_mode import READY_STATUSES, made_ready
from ruleop.kubernetes.kinds import Kind


def settled(obj: dict[str, Any]) -> dict[str, Any] | None:
    match obj["kind"]:
        case "Service" if not obj.get("status", {}).get("loadBalancer") and obj["spec"]["type"] == "LoadBalancer":
            address = "198.18.{}.{}".format(*UUID(obj["metadata"]["uid"]).bytes)
            return {"loadBalancer": {"ingress": [{"ip": address}]}}
        case "Certificate":
            generation = obj["metadata"].get("generation")
            ready = [{"type": "Ready", "status": "True", "observedGeneration": generation}]
            return {"notAfter": "2026-04-01T00:00:00Z", "conditions": ready}
        case "Job" if obj.get("status"):  # it may have failed
            return None
    known = Kind.of(obj).versionless in READY_STATUSES
    return made_ready(obj).get("status") if known else None
