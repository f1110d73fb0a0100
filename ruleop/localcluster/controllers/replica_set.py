"""ReplicaSets: as many pods as they want."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.localcluster.controllers.machinery import (
    BATCH,
    OwningController,
    is_being_deleted,
    is_over,
    is_ready,
    reference_to,
    with_condition,
)
from ruleop.localcluster.kinds.resources import PODS, REPLICA_SETS, SERVICE_ACCOUNTS
from ruleop.localcluster.object_store import Name
from ruleop.localcluster.status_errors import Rejected
from ruleop.localcluster.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.controllers.machinery import Machinery
    from ruleop.localcluster.object_store import Stored

FAILURE = "ReplicaFailure"
_COMPONENT = "replicaset-controller"


class ReplicaSets(OwningController):
    resource, kind, dependents = REPLICA_SETS, "ReplicaSet", PODS

    def reconcile(self, found: Stored) -> None:
        refused: Rejected | None = None
        try:
            if not is_being_deleted(found.obj):
                self._scale(found)
        except Rejected as error:
            refused = error
        active, terminating = self._pods(found)
        ready = sum(is_ready(each.obj) for each in active)
        status: dict[str, Any] = {
            "replicas": len(active),
            "fullyLabeledReplicas": len(active),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "observedGeneration": found.obj["metadata"]["generation"],
            "conditions": _conditions(found.obj, refused),
        }
        status = {key: value for key, value in status.items() if value or key == "replicas"}
        status["terminatingReplicas"] = len(terminating)
        self.machinery.update_status(REPLICA_SETS, found, status)
        if refused is not None:
            raise refused

    def _scale(self, found: Stored) -> None:
        active, _ = self._pods(found)
        missing = found.obj["spec"].get("replicas", 1) - len(active)
        for _ in range(min(BATCH, missing)):
            create_pod(self.machinery, found, pod_of(found.obj, found.obj["spec"]["template"]), _COMPONENT)
        # Those go first that are not ready, and of the others the newest.
        newest_first = sorted(active, key=lambda each: (is_ready(each.obj), -each.version))
        for pod in newest_first[: min(BATCH, max(0, -missing))]:
            self.machinery.delete(PODS, pod)
            self.machinery.record(found.obj, "SuccessfulDelete", f"Deleted pod: {pod.name.name}", _COMPONENT)

    def _pods(self, found: Stored) -> tuple[list[Stored], list[Stored]]:
        """The pods that have not ended: those that stay, and those that are being deleted."""
        pods = [each for each in self.machinery.owned(PODS, found.obj) if not is_over(each.obj)]
        return [each for each in pods if not is_being_deleted(each.obj)], [
            each for each in pods if is_being_deleted(each.obj)
        ]


def _conditions(obj: Object, refused: Rejected | None) -> list[Mapping[str, Any]]:
    conditions = (obj.get("status") or {}).get("conditions") or []
    if refused is None:
        return [each for each in conditions if each["type"] != FAILURE]
    failure = {"type": FAILURE, "status": "True", "reason": "FailedCreate", "message": refused.message}
    return [*with_condition(conditions, failure, now())]


def create_pod(machinery: Machinery, owner: Stored, pod: Object, component: str) -> Stored:
    """Creates a pod of an owner, whose Events tell what became of it. Raises Rejected."""
    try:
        made = machinery.create(PODS, owner.name.namespace, pod)
    except Rejected as error:
        wait_for_account(machinery, owner.name.namespace, pod)
        machinery.record(owner.obj, "FailedCreate", f"Error creating: {error.message}", component, type_="Warning")
        raise
    machinery.record(owner.obj, "SuccessfulCreate", f"Created pod: {made.name.name}", component)
    return made


def wait_for_account(machinery: Machinery, namespace: str, pod: Object) -> None:
    """Retries a pod that was refused as soon as its service account exists, not only when its turn comes."""
    machinery.wait_for(SERVICE_ACCOUNTS, Name(namespace, pod["spec"].get("serviceAccountName", "default")))


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
