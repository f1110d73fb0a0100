"""DaemonSets: one pod on the node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.controllers.machinery import OwningController, is_being_deleted
from ruleop.localcluster.controllers.replica_set import active_pods, is_ready, pod_of
from ruleop.localcluster.controllers.stateful_set import REVISION, record_revision
from ruleop.localcluster.kinds.resources import DAEMON_SETS, PODS

if TYPE_CHECKING:
    from ruleop.localcluster.store.store import Name

_COMPONENT: Final = "daemonset-controller"


class DaemonSets(OwningController):
    resource, kind, dependents = DAEMON_SETS, "DaemonSet", PODS

    def sync(self, name: Name) -> None:
        found = self.machinery.store.get(DAEMON_SETS, name)
        if found is None:
            return
        revision = record_revision(self.machinery, found)
        pods = active_pods(self.machinery, found.obj)
        if not is_being_deleted(found.obj):
            if not pods:
                pod = pod_of(found.obj, found.obj["spec"]["template"])
                pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), REVISION: revision}
                made = self.machinery.create(PODS, name.namespace, pod)
                if made is not None:
                    self.machinery.record(found.obj, "SuccessfulCreate", f"Created pod: {made.name.name}", _COMPONENT)
            on_delete = (found.obj["spec"].get("updateStrategy") or {}).get("type") == "OnDelete"
            for each in pods:
                if (each.obj["metadata"].get("labels") or {}).get(REVISION) != revision and not on_delete:
                    self.machinery.delete(PODS, each)
                    self.machinery.record(found.obj, "SuccessfulDelete", f"Deleted pod: {each.name.name}", _COMPONENT)
        pods = active_pods(self.machinery, found.obj)
        ready = sum(is_ready(each.obj) for each in pods)
        updated = sum((each.obj["metadata"].get("labels") or {}).get(REVISION) == revision for each in pods)
        status: dict[str, Any] = {
            "currentNumberScheduled": len(pods),
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 1,
            "numberReady": ready,
            "observedGeneration": found.obj["metadata"]["generation"],
            "updatedNumberScheduled": updated,
            "numberAvailable": ready,
            "numberUnavailable": 1 - min(1, ready),
        }
        kept = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
        self.machinery.update_status(
            DAEMON_SETS, found, {key: value for key, value in status.items() if value or key in kept}
        )
