"""ReplicaSets: as many pods as they want."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.localcluster.controllers.machinery import OwningController, is_being_deleted, reference_to
from ruleop.localcluster.kinds.resources import PODS, REPLICA_SETS

if TYPE_CHECKING:
    from ruleop.kinds import Object
    from ruleop.localcluster.controllers.machinery import Machinery
    from ruleop.localcluster.store.store import Name, Stored


class ReplicaSets(OwningController):
    resource, kind, dependents = REPLICA_SETS, "ReplicaSet", PODS

    def sync(self, name: Name) -> None:
        found = self.machinery.store.get(REPLICA_SETS, name)
        if found is None:
            return
        if not is_being_deleted(found.obj):
            scale_pods(self.machinery, found, "replicaset-controller")
        pods = active_pods(self.machinery, found.obj)
        status: dict[str, Any] = {
            "replicas": len(pods),
            "fullyLabeledReplicas": len(pods),
            "readyReplicas": (ready := sum(is_ready(each.obj) for each in pods)),
            "availableReplicas": ready,
            "observedGeneration": found.obj["metadata"]["generation"],
        }
        status = {key: value for key, value in status.items() if value or key == "replicas"}
        status["terminatingReplicas"] = sum(
            is_being_deleted(each.obj) for each in self.machinery.owned(PODS, found.obj) if not is_over(each.obj)
        )
        self.machinery.update_status(REPLICA_SETS, found, status)


def scale_pods(machinery: Machinery, owner: Stored, component: str) -> None:
    desired = owner.obj["spec"].get("replicas", 1)
    pods = active_pods(machinery, owner.obj)
    for _ in range(desired - len(pods)):
        pod = pod_of(owner.obj, owner.obj["spec"]["template"])
        made = machinery.create(PODS, owner.name.namespace, pod)
        if made is not None:
            machinery.record(owner.obj, "SuccessfulCreate", f"Created pod: {made.name.name}", component)
    surplus = sorted(pods, key=lambda each: is_ready(each.obj))[: max(0, len(pods) - desired)]
    for each in surplus:
        machinery.delete(PODS, each)
        machinery.record(owner.obj, "SuccessfulDelete", f"Deleted pod: {each.name.name}", component)


def active_pods(machinery: Machinery, owner: Object) -> list[Stored]:
    """The owner's pods that run or will run."""
    return [each for each in machinery.owned(PODS, owner) if not is_being_deleted(each.obj) and not is_over(each.obj)]


def is_over(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def pod_of(owner: Object, template: Object, name: str = "") -> dict[str, Any]:
    """A pod as the template describes it, with a generated name if none is given."""
    metadata = dict(template.get("metadata") or {})
    metadata.pop("creationTimestamp", None)
    if name:
        metadata["name"] = name
    else:
        metadata["generateName"] = f"{owner['metadata']['name']}-"
    metadata["ownerReferences"] = [reference_to(owner)]
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": template["spec"]}
