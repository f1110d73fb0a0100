"""The controllers that own pods: ReplicaSets make as many as they want, StatefulSets numbered ones with volumes of
their own, one after another, DaemonSets one on the node, and Jobs and CronJobs those that complete."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.cron import next_time
from ruleop.kubernetes.kinds import is_being_deleted, is_true
from ruleop.kubernetes.labels import labels_of
from ruleop.kubernetes.times import now, seconds_of, timestamp
from ruleop.localcluster.controllers.machinery import (
    BATCH,
    OwningController,
    is_over,
    is_ready,
    reference_to,
    safe_hash,
    with_condition,
)
from ruleop.localcluster.controllers.pods import matches_node
from ruleop.localcluster.object_store import (
    CLAIMS,
    CRON_JOBS,
    DAEMON_SETS,
    JOBS,
    PODS,
    REPLICA_SETS,
    REVISIONS,
    SERVICE_ACCOUNTS,
    STATEFUL_SETS,
    Name,
)
from ruleop.localcluster.status_errors import Rejected

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.controllers.machinery import Machinery
    from ruleop.localcluster.object_store import Stored


FAILURE = "ReplicaFailure"
_OF_REPLICA_SETS = "replicaset-controller"


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
            "terminatingReplicas": len(terminating),
        }
        self.machinery.update_status(REPLICA_SETS, found, status)
        if refused is not None:
            raise refused

    def _scale(self, found: Stored) -> None:
        active, _ = self._pods(found)
        missing = found.obj["spec"].get("replicas", 1) - len(active)
        for _ in range(min(BATCH, missing)):
            create_pod(self.machinery, found, pod_of(found.obj, found.obj["spec"]["template"]), _OF_REPLICA_SETS)
        # Those go first that are not ready, and of the others the newest.
        newest_first = sorted(active, key=lambda each: (is_ready(each.obj), -each.version))
        for pod in newest_first[: min(BATCH, max(0, -missing))]:
            self.machinery.delete(PODS, pod)
            self.machinery.record(found.obj, "SuccessfulDelete", f"Deleted pod: {pod.name.name}", _OF_REPLICA_SETS)

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


REVISION: Final = "controller-revision-hash"
_OF_STATEFUL_SETS: Final = "statefulset-controller"


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
                self.machinery.record(found.obj, "FailedCreate", message, _OF_STATEFUL_SETS, type_="Warning")
            raise
        message = f"Create Pod {name} in StatefulSet {found.name.name} successful"
        self.machinery.record(found.obj, "SuccessfulCreate", message, _OF_STATEFUL_SETS)

    def _claim(self, found: Stored, claim: Object, pod: str) -> None:
        """Makes a claim of a pod, if there is none yet. Raises Rejected while one of that name is being deleted."""
        name = Name(found.name.namespace, claim["metadata"]["name"])
        existing = self.machinery.store.get(CLAIMS, name)
        if existing is None:
            self.machinery.create(CLAIMS, name.namespace, claim)
            message = f"Create Claim {name.name} Pod {pod} in StatefulSet {found.name.name} success"
            self.machinery.record(found.obj, "SuccessfulCreate", message, _OF_STATEFUL_SETS)
        elif is_being_deleted(existing.obj):
            self.machinery.wait_for(CLAIMS, name)
            raise Rejected(409, "Conflict", f"pvc {name.name} is being deleted")

    def _delete(self, found: Stored, pod: Stored) -> None:
        self.machinery.delete(PODS, pod)
        message = f"Delete Pod {pod.name.name} in StatefulSet {found.name.name} successful"
        self.machinery.record(found.obj, "SuccessfulDelete", message, _OF_STATEFUL_SETS)

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
        self.machinery.update_status(STATEFUL_SETS, found, status)


def record_revision(machinery: Machinery, owner: Stored) -> str:
    """The revision of the owner's template, kept as a ControllerRevision for `kubectl rollout`."""
    data = {"spec": {"template": {**owner.obj["spec"]["template"], "$patch": "replace"}}}
    digest = safe_hash(data)
    name = f"{owner.name.name}-{digest}"
    found = machinery.get(REVISIONS, owner.name.namespace, name)
    known = machinery.owned(REVISIONS, owner.obj)
    newest = max((each.obj["revision"] for each in known), default=0)
    if found is None:
        labels = {**labels_of(owner.obj["spec"]["template"]), REVISION: digest}
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


_OF_DAEMON_SETS: Final = "daemonset-controller"
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
        self.machinery.update_status(DAEMON_SETS, found, status)

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
            create_pod(self.machinery, found, pod, _OF_DAEMON_SETS)
        on_delete = (found.obj["spec"].get("updateStrategy") or {}).get("type") == "OnDelete"
        for each in pods:
            outdated = (each.obj["metadata"].get("labels") or {}).get(REVISION) != revision and not on_delete
            if outdated or not desired:
                self.machinery.delete(PODS, each)
                self.machinery.record(found.obj, "SuccessfulDelete", f"Deleted pod: {each.name.name}", _OF_DAEMON_SETS)


# -- Jobs and CronJobs -----------------------------------------------------------------------------------------------


NOW: Final = "local.ruleop.dev/run-now"


class Jobs(OwningController):
    resource, kind, dependents = JOBS, "Job", PODS

    def reconcile(self, found: Stored) -> None:
        if is_being_deleted(found.obj):
            return
        old = found.obj.get("status") or {}
        if any(is_true(found.obj, each) for each in ("Complete", "Failed")):
            self._expire(found)
            return
        spec = found.obj["spec"]
        pods = self.machinery.owned(PODS, found.obj)
        succeeded = [each for each in pods if _phase(each.obj) == "Succeeded"]
        failed = [each for each in pods if _phase(each.obj) == "Failed"]
        active = [each for each in pods if not is_over(each.obj) and not is_being_deleted(each.obj)]
        desired, refused = spec.get("completions") or 1, None
        status: dict[str, Any] = {**old, "startTime": old.get("startTime") or now()}
        restarts = [
            each
            for each in active
            if any(one["restartCount"] for one in (each.obj.get("status") or {}).get("containerStatuses") or [])
        ]
        if len(succeeded) >= desired:
            status = _finished(status, "Complete", "CompletionsReached", "Reached expected number of succeeded pods")
            self.machinery.record(found.obj, "Completed", "Job completed", "job-controller")
        elif len(failed) + len(restarts) > spec.get("backoffLimit", 6):
            message = "Job has reached the specified backoff limit"
            status = _finished(status, "Failed", "BackoffLimitExceeded", message)
            self.machinery.record(found.obj, "BackoffLimitExceeded", message, "job-controller", type_="Warning")
            for each in active:
                self.machinery.delete(PODS, each)
            active = []
        elif not spec.get("suspend"):
            missing = min(spec.get("parallelism", 1), desired - len(succeeded)) - len(active)
            try:
                for _ in range(min(BATCH, missing)):
                    pod = pod_of(found.obj, spec["template"])
                    active.append(create_pod(self.machinery, found, pod, "job-controller"))
            except Rejected as error:
                refused = error
        status |= {
            "active": len(active),
            "ready": sum(is_ready(each.obj) for each in active),
            "succeeded": len(succeeded),
            "failed": len(failed),
            "terminating": sum(is_being_deleted(each.obj) and not is_over(each.obj) for each in pods),
            "uncountedTerminatedPods": {},
        }
        self.machinery.update_status(JOBS, found, status)
        if refused is not None:
            raise refused

    def _expire(self, found: Stored) -> None:
        seconds = found.obj["spec"].get("ttlSecondsAfterFinished")
        if seconds is None:
            return
        ended = max(seconds_of(each["lastTransitionTime"]) for each in found.obj["status"]["conditions"])
        left = ended + seconds - time.time()
        if left > 0:
            self.machinery.after(left, self, found.name)
        else:
            self.machinery.delete(JOBS, found)


class CronJobs(OwningController):
    resource, kind, dependents = CRON_JOBS, "CronJob", JOBS

    def reconcile(self, found: Stored) -> None:
        if is_being_deleted(found.obj):
            return
        spec, status = found.obj["spec"], dict(found.obj.get("status") or {})
        jobs = self.machinery.owned(JOBS, found.obj)
        zone = spec.get("timeZone") or "UTC"
        last = status.get("lastScheduleTime") or found.obj["metadata"]["creationTimestamp"]
        at_once = NOW in (found.obj["metadata"].get("annotations") or {}) and not jobs
        due = next_time(spec["schedule"], seconds_of(last), zone)
        if due is None and not spec.get("suspend"):
            problem = "time difference between two schedules is less than 1 second"
            message = f"invalid schedule: {spec['schedule']} : {problem}"
            self.machinery.record(found.obj, "InvalidSchedule", message, "cronjob-controller", type_="Warning")
        if not spec.get("suspend") and (at_once or (due is not None and due <= time.time())):
            when = time.time() if at_once else due or 0.0
            self._start(found, when)
            status["lastScheduleTime"] = timestamp(when)
            due = next_time(spec["schedule"], time.time(), zone)
        jobs = self.machinery.owned(JOBS, found.obj)
        active = [each for each in jobs if not any(is_true(each.obj, type_) for type_ in ("Complete", "Failed"))]
        status["active"] = [
            {
                "kind": "Job",
                "namespace": found.name.namespace,
                "name": each.name.name,
                "uid": each.uid,
                "apiVersion": "batch/v1",
            }
            for each in active
        ]
        completed = [(each.obj.get("status") or {}).get("completionTime") for each in jobs]
        if latest := max((each for each in completed if each), default=None):
            status["lastSuccessfulTime"] = latest
        self._clean_up(spec, jobs)
        self.machinery.update_status(CRON_JOBS, found, status)
        if due is not None:
            self.machinery.after(due - time.time(), self, found.name)

    def _start(self, found: Stored, when: float) -> None:
        template = found.obj["spec"]["jobTemplate"]
        metadata = dict(template.get("metadata") or {})
        metadata.pop("creationTimestamp", None)
        metadata |= {
            "name": f"{found.name.name}-{int(when) // 60}",
            "ownerReferences": [reference_to(found.obj)],
        }
        job = {"kind": "Job", "apiVersion": "batch/v1", "metadata": metadata, "spec": template["spec"]}
        if self.machinery.get(JOBS, found.name.namespace, metadata["name"]) is None:
            made = self.machinery.create(JOBS, found.name.namespace, job)
            self.machinery.record(found.obj, "SuccessfulCreate", f"Created job {made.name.name}", "cronjob-controller")

    def _clean_up(self, spec: Object, jobs: list[Stored]) -> None:
        for type_, limit in (
            ("Complete", spec.get("successfulJobsHistoryLimit", 3)),
            ("Failed", spec.get("failedJobsHistoryLimit", 1)),
        ):
            over = [each for each in jobs if is_true(each.obj, type_)]
            for each in sorted(over, key=lambda each: each.obj["metadata"]["creationTimestamp"])[
                : max(0, len(over) - limit)
            ]:
                self.machinery.delete(JOBS, each)


def _finished(status: dict[str, Any], type_: str, reason: str, message: str) -> dict[str, Any]:
    conditions = [
        {
            "type": each,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastProbeTime": now(),
            "lastTransitionTime": now(),
        }
        for each in ({"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[type_], type_)
    ]
    done = {"completionTime": now()} if type_ == "Complete" else {}
    return {**status, **done, "conditions": conditions}


def _phase(pod: Object) -> str:
    found: str = (pod.get("status") or {}).get("phase", "")
    return found
