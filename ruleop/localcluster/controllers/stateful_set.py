"""StatefulSets: numbered pods with volumes of their own, one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.controllers.machinery import (
    BATCH,
    OwningController,
    is_being_deleted,
    is_over,
    is_ready,
    reference_to,
    safe_hash,
)
from ruleop.localcluster.controllers.replica_set import pod_of, wait_for_account
from ruleop.localcluster.kinds.resources import CLAIMS, PODS, REVISIONS, STATEFUL_SETS
from ruleop.localcluster.object_store import Name
from ruleop.localcluster.status_errors import Rejected

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.controllers.machinery import Machinery
    from ruleop.localcluster.object_store import Stored

REVISION: Final = "controller-revision-hash"
_COMPONENT: Final = "statefulset-controller"


class StatefulSets(OwningController):
    resource, kind, dependents = STATEFUL_SETS, "StatefulSet", PODS

    def reconcile(self, found: Stored) -> None:
        revision = record_revision(self.machinery, found)
        try:
            if not is_being_deleted(found.obj):
                self._write(found, revision)
        finally:
            self._report(found, revision)

    def _pods(self, found: Stored) -> dict[int, Stored]:
        """The pods by their numbers."""
        pods: dict[int, Stored] = {}
        for each in self.machinery.owned(PODS, found.obj):
            number = each.name.name.rpartition("-")[2]
            if number.isdecimal():
                pods[int(number)] = each
        return pods

    def _write(self, found: Stored, revision: str) -> None:
        """The next step: create, replace or remove a pod, as soon as those before it are ready."""
        spec = found.obj["spec"]
        desired, pods = spec.get("replicas", 1), self._pods(found)
        parallel = spec.get("podManagementPolicy") == "Parallel"
        first = (spec.get("ordinals") or {}).get("start", 0)
        numbers, left = range(first, first + desired), BATCH if parallel else 1
        for number in numbers:
            pod = pods.get(number)
            if pod is None:
                self._create(found, number, revision)
                left -= 1
                if not left:
                    return
            elif is_over(pod.obj):
                self.machinery.delete(PODS, pod)
                if not parallel:
                    return
            elif not parallel and (is_being_deleted(pod.obj) or not is_ready(pod.obj)):
                if self._is_outdated(found, pod, number, revision):
                    self._delete(found, pod)
                return
        surplus = sorted((number for number in pods if number not in numbers), reverse=True)
        for number in surplus:
            if not is_being_deleted(pods[number].obj):
                self._delete(found, pods[number])
            if not parallel:
                return
        for number in reversed(numbers):
            if number in pods and self._is_outdated(found, pods[number], number, revision):
                self._delete(found, pods[number])
                return

    def _is_outdated(self, found: Stored, pod: Stored, number: int, revision: str) -> bool:
        strategy = found.obj["spec"].get("updateStrategy") or {}
        partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
        return (
            strategy.get("type") != "OnDelete"
            and number >= partition
            and not is_being_deleted(pod.obj)
            and (pod.obj["metadata"].get("labels") or {}).get(REVISION) != revision
        )

    def _create(self, found: Stored, number: int, revision: str) -> None:
        spec, namespace = found.obj["spec"], found.name.namespace
        name = f"{found.name.name}-{number}"
        pod = pod_of(found.obj, spec["template"], name)
        labels = {
            **(pod["metadata"].get("labels") or {}),
            REVISION: revision,
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(number),
        }
        pod["metadata"]["labels"] = labels
        own, claims = [], []
        for claim in spec.get("volumeClaimTemplates") or []:
            title = f"{claim['metadata']['name']}-{name}"
            own.append({"name": claim["metadata"]["name"], "persistentVolumeClaim": {"claimName": title}})
            metadata = {**claim["metadata"], "name": title, "labels": spec["selector"].get("matchLabels") or {}}
            metadata.pop("creationTimestamp", None)
            kind = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
            claims.append({**kind, "metadata": metadata, "spec": claim["spec"]})
        given = [each for each in pod["spec"].get("volumes") or [] if each["name"] not in {one["name"] for one in own}]
        volumes = {"volumes": [*own, *given]} if own or given else {}
        pod["spec"] = {**pod["spec"], **volumes, "hostname": name, "subdomain": spec.get("serviceName", "")}
        try:
            for claim in claims:
                self._claim(found, claim, name)
            self.machinery.create(PODS, namespace, pod)
        except Rejected as error:
            wait_for_account(self.machinery, namespace, pod)
            if error.reason != "AlreadyExists":
                message = f"Create Pod {name} in StatefulSet {found.name.name} failed error: {error.message}"
                self.machinery.record(found.obj, "FailedCreate", message, _COMPONENT, type_="Warning")
            raise
        message = f"Create Pod {name} in StatefulSet {found.name.name} successful"
        self.machinery.record(found.obj, "SuccessfulCreate", message, _COMPONENT)

    def _claim(self, found: Stored, claim: Object, pod: str) -> None:
        """Makes a claim of a pod, if there is none yet. Raises Rejected while one of that name is being deleted."""
        name = Name(found.name.namespace, claim["metadata"]["name"])
        existing = self.machinery.store.get(CLAIMS, name)
        if existing is None:
            self.machinery.create(CLAIMS, name.namespace, claim)
            message = f"Create Claim {name.name} Pod {pod} in StatefulSet {found.name.name} success"
            self.machinery.record(found.obj, "SuccessfulCreate", message, _COMPONENT)
        elif is_being_deleted(existing.obj):
            self.machinery.wait_for(CLAIMS, name)
            raise Rejected(409, "Conflict", f"pvc {name.name} is being deleted")

    def _delete(self, found: Stored, pod: Stored) -> None:
        self.machinery.delete(PODS, pod)
        message = f"Delete Pod {pod.name.name} in StatefulSet {found.name.name} successful"
        self.machinery.record(found.obj, "SuccessfulDelete", message, _COMPONENT)

    def _report(self, found: Stored, revision: str) -> None:
        pods = [each.obj for each in self._pods(found).values() if not is_being_deleted(each.obj)]
        updated = [each for each in pods if (each["metadata"].get("labels") or {}).get(REVISION) == revision]
        old = found.obj.get("status") or {}
        desired = found.obj["spec"].get("replicas", 1)
        current = revision if len(updated) == desired else old.get("currentRevision") or revision
        ready = sum(is_ready(each) for each in pods)
        status: dict[str, Any] = {
            "observedGeneration": found.obj["metadata"]["generation"],
            "replicas": len(pods),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "currentReplicas": sum((each["metadata"].get("labels") or {}).get(REVISION) == current for each in pods),
            "updatedReplicas": len(updated),
            "currentRevision": current,
            "updateRevision": revision,
            "collisionCount": 0,
        }
        kept = ("replicas", "availableReplicas", "collisionCount")
        self.machinery.update_status(
            STATEFUL_SETS, found, {key: value for key, value in status.items() if value or key in kept}
        )


def record_revision(machinery: Machinery, owner: Stored) -> str:
    """The revision of the owner's template, kept as a ControllerRevision for `kubectl rollout`."""
    data = {"spec": {"template": {**owner.obj["spec"]["template"], "$patch": "replace"}}}
    digest = safe_hash(data)
    name = f"{owner.name.name}-{digest}"
    found = machinery.get(REVISIONS, owner.name.namespace, name)
    known = machinery.owned(REVISIONS, owner.obj)
    newest = max((each.obj["revision"] for each in known), default=0)
    if found is None:
        labels = {**_labels(owner.obj), REVISION: digest}
        revision = {
            "kind": "ControllerRevision",
            "apiVersion": "apps/v1",
            "metadata": {
                "name": name,
                "labels": labels,
                "annotations": owner.obj["metadata"].get("annotations") or {},
                "ownerReferences": [reference_to(owner.obj)],
            },
            "data": data,
            "revision": newest + 1,
        }
        machinery.create(REVISIONS, owner.name.namespace, revision)
    elif found.obj["revision"] < newest:
        machinery.update(REVISIONS, found, {**found.obj, "revision": newest + 1})
    return name if owner.obj["kind"] == "StatefulSet" else digest


def _labels(obj: Object) -> dict[str, str]:
    return dict((obj["spec"]["template"].get("metadata") or {}).get("labels") or {})
