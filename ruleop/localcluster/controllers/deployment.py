"""Deployments: a ReplicaSet for each template, and a rollout from one to the next."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.kinds import LAST_APPLIED, is_being_deleted
from ruleop.kubernetes.times import now
from ruleop.localcluster.controllers.machinery import OwningController, reference_to, safe_hash, share, with_condition
from ruleop.localcluster.controllers.pod_owners import FAILURE
from ruleop.localcluster.object_store import DEPLOYMENTS, REPLICA_SETS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.object_store import Name, Stored

HASH: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
DESIRED, MAXIMUM = "deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas"
_HISTORY: Final = "deployment.kubernetes.io/revision-history"
_NOT_COPIED: Final = frozenset({LAST_APPLIED, REVISION, _HISTORY, DESIRED, MAXIMUM})


class Deployments(OwningController):
    resource, kind, dependents = DEPLOYMENTS, "Deployment", REPLICA_SETS

    def reconcile(self, found: Stored) -> None:
        if is_being_deleted(found.obj):
            return
        sets = self.machinery.owned(REPLICA_SETS, found.obj)
        current = self._current(found, sets)
        if current is None:
            if found.obj["spec"].get("paused"):
                self._report(found, None)
            else:
                self._create(found, sets)
            return
        current = self._with_annotations(current, _copied(found.obj))
        others = [each for each in sets if each.name != current.name]
        self._scale(found, current, others)
        self._clean_up(found, others)
        self._report(found, current.name)

    # -- ReplicaSets --------------------------------------------------------------------------------------------------

    def _current(self, deployment: Stored, sets: Sequence[Stored]) -> Stored | None:
        """The ReplicaSet of the current template, with the newest revision."""
        desired = _without_hash(deployment.obj["spec"]["template"])
        found = [each for each in sets if _without_hash(each.obj["spec"]["template"]) == desired]
        if not found:
            return None
        newest = max(_revision(each.obj) for each in sets)
        current = max(found, key=lambda each: _revision(each.obj))
        if _revision(current.obj) == newest:
            return current
        annotations = current.obj["metadata"].get("annotations") or {}
        before = [each for each in (annotations.get(_HISTORY), annotations.get(REVISION)) if each]
        return self._with_annotations(current, {REVISION: str(newest + 1), _HISTORY: ",".join(before)})

    def _create(self, deployment: Stored, sets: Sequence[Stored]) -> None:
        obj = deployment.obj
        template = obj["spec"]["template"]
        digest = safe_hash(template)
        labels = {**(template.get("metadata") or {}).get("labels", {}), HASH: digest}
        revision = max((_revision(each.obj) for each in sets), default=0) + 1
        annotations = {**_copied(obj), REVISION: str(revision), **_sizes(obj)}
        replicas = _first_replicas(obj, sets)
        selector = obj["spec"]["selector"]
        replica_set = {
            "kind": "ReplicaSet",
            "apiVersion": "apps/v1",
            "metadata": {
                "name": f"{obj['metadata']['name']}-{digest}",
                "labels": labels,
                "annotations": annotations,
                "ownerReferences": [reference_to(obj)],
            },
            "spec": {
                "replicas": replicas,
                "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH: digest}},
                "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
                **{name: value for name, value in obj["spec"].items() if name == "minReadySeconds"},
            },
        }
        made = self.machinery.create(REPLICA_SETS, deployment.name.namespace, replica_set)
        if replicas:
            self._record_scaling(obj, made.name.name, 0, replicas)

    def _scale(self, deployment: Stored, current: Stored, others: Sequence[Stored]) -> None:
        spec, desired = deployment.obj["spec"], _replicas(deployment.obj)
        strategy = spec.get("strategy") or {}
        old = sum(_replicas(each.obj) for each in others)
        if spec.get("paused"):
            if not old:
                self._set(deployment, current, desired)
            return
        if strategy.get("type") == "Recreate":
            for each in others:
                self._set(deployment, each, 0)
            if not any(_reported(each, "replicas") for each in others):
                self._set(deployment, current, desired)
            return
        surge, unavailable = _limits(strategy.get("rollingUpdate") or {}, desired)
        limit = desired + surge - old
        self._set(deployment, current, min(desired, max(_replicas(current.obj), limit) if old else desired))
        current = self.machinery.store.get(REPLICA_SETS, current.name) or current
        available = sum(_reported(each, "availableReplicas") for each in (current, *others))
        spare = available - (desired - unavailable)
        for each in others:
            replicas = _replicas(each.obj)
            dead = replicas - _reported(each, "availableReplicas")
            fewer = min(replicas, max(0, spare) + dead)
            if fewer > 0:
                self._set(deployment, each, replicas - fewer)
                spare -= fewer - dead

    def _set(self, deployment: Stored, replica_set: Stored, replicas: int) -> None:
        before = _replicas(replica_set.obj)
        if before == replicas:
            return
        metadata, spec = replica_set.obj["metadata"], {**replica_set.obj["spec"], "replicas": replicas}
        metadata = {**metadata, "annotations": {**(metadata.get("annotations") or {}), **_sizes(deployment.obj)}}
        self.machinery.update(REPLICA_SETS, replica_set, {**replica_set.obj, "metadata": metadata, "spec": spec})
        self._record_scaling(deployment.obj, replica_set.name.name, before, replicas)

    def _record_scaling(self, deployment: Object, name: str, before: int, after: int) -> None:
        direction = "up" if after > before else "down"
        message = f"Scaled {direction} replica set {name} from {before} to {after}"
        self.machinery.record(deployment, "ScalingReplicaSet", message, "deployment-controller")

    def _with_annotations(self, found: Stored, more: dict[str, str]) -> Stored:
        metadata = found.obj["metadata"]
        before = metadata.get("annotations") or {}
        annotations = {**before, **more}
        if annotations == before:
            return found
        return self.machinery.update(
            REPLICA_SETS, found, {**found.obj, "metadata": {**metadata, "annotations": annotations}}
        )

    def _clean_up(self, deployment: Stored, others: Sequence[Stored]) -> None:
        limit = deployment.obj["spec"].get("revisionHistoryLimit", 10)
        idle = [each for each in others if not _replicas(each.obj) and not _reported(each, "replicas")]
        for each in sorted(idle, key=lambda each: _revision(each.obj))[: max(0, len(idle) - limit)]:
            if (found := self.machinery.store.get(REPLICA_SETS, each.name)) is not None:
                self.machinery.delete(REPLICA_SETS, found)

    # -- the status ---------------------------------------------------------------------------------------------------

    def _report(self, deployment: Stored, current_name: Name | None) -> None:
        sets = self.machinery.owned(REPLICA_SETS, deployment.obj)
        current = next((each for each in sets if each.name == current_name), None)
        if current is None and current_name is not None:
            return
        obj = deployment.obj
        total, ready, available, terminating = (
            sum(_reported(each, field) for each in sets)
            for field in ("replicas", "readyReplicas", "availableReplicas", "terminatingReplicas")
        )
        updated, desired = _reported(current, "replicas") if current is not None else 0, _replicas(obj)
        status: dict[str, Any] = {
            "observedGeneration": obj["metadata"]["generation"],
            "replicas": total,
            "updatedReplicas": updated,
            "readyReplicas": ready,
            "availableReplicas": available,
            "unavailableReplicas": max(0, sum(_replicas(each.obj) for each in sets) - available),
            "terminatingReplicas": terminating,
        }
        done = updated == desired and total == desired and available >= desired
        conditions = with_condition((obj.get("status") or {}).get("conditions"), _available(obj, available), now())
        conditions = with_condition(conditions, _progressing(obj, current, done=done), now())
        failure = _failure([*([] if current is None else [current]), *sets])
        status["conditions"] = [*(each for each in conditions if each["type"] != FAILURE), *failure]
        metadata = obj["metadata"]
        if current is not None:
            revision = (current.obj["metadata"].get("annotations") or {}).get(REVISION, "")
            metadata = {**metadata, "annotations": {**(metadata.get("annotations") or {}), REVISION: revision}}
        self.machinery.update_status(DEPLOYMENTS, deployment, status, metadata=metadata)


def _available(deployment: Object, available: int) -> dict[str, Any]:
    desired, strategy = _replicas(deployment), deployment["spec"].get("strategy") or {}
    _, most_unavailable = _limits(strategy.get("rollingUpdate") or {}, desired)
    enough = available >= desired - most_unavailable
    verb, reason = ("has", "Available") if enough else ("does not have", "Unavailable")
    return {
        "type": "Available",
        "status": "True" if enough else "False",
        "reason": f"MinimumReplicas{reason}",
        "message": f"Deployment {verb} minimum availability.",
        "lastUpdateTime": now(),
    }


def _failure(sets: Sequence[Stored]) -> list[dict[str, Any]]:
    """The failure condition of a ReplicaSet, the current one first, that cannot create its pods."""
    for each in sets:
        for condition in (each.obj.get("status") or {}).get("conditions") or []:
            if condition["type"] == FAILURE:
                return [{"lastUpdateTime": condition["lastTransitionTime"], **condition}]
    return []


def _progressing(deployment: Object, current: Stored | None, *, done: bool) -> dict[str, Any]:
    status, reason, message = "Unknown", "DeploymentPaused", "Deployment is paused"
    if current is not None and not deployment["spec"].get("paused"):
        title = f'ReplicaSet "{current.name.name}"'
        status, reason = "True", "NewReplicaSetAvailable" if done else "ReplicaSetUpdated"
        message = f"{title} has successfully progressed." if done else f"{title} is progressing."
    return {"type": "Progressing", "status": status, "reason": reason, "message": message, "lastUpdateTime": now()}


def _copied(deployment: Object) -> dict[str, str]:
    """The annotations that a ReplicaSet has from its Deployment."""
    annotations = deployment["metadata"].get("annotations") or {}
    return {key: value for key, value in annotations.items() if key not in _NOT_COPIED}


def _sizes(deployment: Object) -> dict[str, str]:
    desired = _replicas(deployment)
    return {DESIRED: str(desired), MAXIMUM: str(desired + _surge(deployment))}


def _surge(deployment: Object) -> int:
    strategy = deployment["spec"].get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return 0
    return _limits(strategy.get("rollingUpdate") or {}, _replicas(deployment))[0]


def _first_replicas(deployment: Object, others: Sequence[Stored]) -> int:
    """The number of pods that a new ReplicaSet may have beside the others."""
    desired = _replicas(deployment)
    old = sum(_replicas(each.obj) for each in others)
    if (deployment["spec"].get("strategy") or {}).get("type") == "Recreate":
        return 0 if old else desired
    return max(0, min(desired, desired + _surge(deployment) - old))


def _without_hash(template: Object) -> dict[str, Any]:
    metadata = dict(template.get("metadata") or {})
    metadata.pop("creationTimestamp", None)
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _revision(obj: Object) -> int:
    text = (obj["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if text.isdecimal() else 0


def _replicas(obj: Object) -> int:
    found: int = obj["spec"].get("replicas", 1)
    return found


def _reported(replica_set: Stored, field: str) -> int:
    """A number in its status."""
    found: int = (replica_set.obj.get("status") or {}).get(field, 0)
    return found


def _limits(rolling: Object, desired: int) -> tuple[int, int]:
    """The numbers of pods by which a rollout may exceed and fall short of the desired ones."""
    surge = share(rolling.get("maxSurge", "25%"), desired)
    unavailable = share(rolling.get("maxUnavailable", "25%"), desired, math.floor)
    return surge, unavailable if surge or unavailable else 1
