"""DaemonSets: one pod on the node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.controllers.machinery import OwningController, is_being_deleted, is_over, is_ready
from ruleop.localcluster.controllers.replica_set import create_pod, pod_of
from ruleop.localcluster.controllers.scheduling import matches_node
from ruleop.localcluster.controllers.stateful_set import REVISION, record_revision
from ruleop.localcluster.kinds.resources import DAEMON_SETS, PODS

if TYPE_CHECKING:
    from ruleop.localcluster.object_store import Stored

_COMPONENT: Final = "daemonset-controller"
_TOLERATIONS: Final = tuple(
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
    for effect, keys in (
        ("NoExecute", ("not-ready", "unreachable")),
        ("NoSchedule", ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")),
    )
    for key in keys
)


class DaemonSets(OwningController):
    resource, kind, dependents = DAEMON_SETS, "DaemonSet", PODS

    def reconcile(self, found: Stored) -> None:
        revision, template = record_revision(self.machinery, found), found.obj["spec"]["template"]
        desired = 1 if matches_node(self.machinery, template["spec"]) else 0
        try:
            if not is_being_deleted(found.obj):
                self._scale(found, revision, desired)
        finally:
            self._report(found, revision, desired)

    def _report(self, found: Stored, revision: str, desired: int) -> None:
        pods = self._pods(found)
        ready = sum(is_ready(each.obj) for each in pods)
        updated = sum((each.obj["metadata"].get("labels") or {}).get(REVISION) == revision for each in pods)
        status: dict[str, Any] = {
            "currentNumberScheduled": len(pods),
            "numberMisscheduled": 0,
            "desiredNumberScheduled": desired,
            "numberReady": ready,
            "observedGeneration": found.obj["metadata"]["generation"],
            "updatedNumberScheduled": updated,
            "numberAvailable": ready,
            "numberUnavailable": desired - min(desired, ready),
        }
        kept = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
        self.machinery.update_status(
            DAEMON_SETS, found, {key: value for key, value in status.items() if value or key in kept}
        )

    def _pods(self, found: Stored) -> list[Stored]:
        """The pods that run or will run."""
        pods = self.machinery.owned(PODS, found.obj)
        return [each for each in pods if not is_being_deleted(each.obj) and not is_over(each.obj)]

    def _scale(self, found: Stored, revision: str, desired: int) -> None:
        pods = self._pods(found)
        if len(pods) < desired:
            pod = pod_of(found.obj, found.obj["spec"]["template"])
            pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), REVISION: revision}
            pod["spec"] = {**pod["spec"], "tolerations": [*(pod["spec"].get("tolerations") or ()), *_TOLERATIONS]}
            create_pod(self.machinery, found, pod, _COMPONENT)
        on_delete = (found.obj["spec"].get("updateStrategy") or {}).get("type") == "OnDelete"
        for each in pods:
            outdated = (each.obj["metadata"].get("labels") or {}).get(REVISION) != revision and not on_delete
            if outdated or not desired:
                self.machinery.delete(PODS, each)
                self.machinery.record(found.obj, "SuccessfulDelete", f"Deleted pod: {each.name.name}", _COMPONENT)
