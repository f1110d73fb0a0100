"""Jobs and CronJobs: pods that complete."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.cron import next_time
from ruleop.localcluster.controllers.machinery import (
    BATCH,
    OwningController,
    is_being_deleted,
    is_over,
    is_ready,
    reference_to,
)
from ruleop.localcluster.controllers.pod_owners import create_pod, pod_of
from ruleop.localcluster.kinds import CRON_JOBS, JOBS, PODS
from ruleop.localcluster.status_errors import Rejected
from ruleop.localcluster.timestamps import now, seconds_of, timestamp

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.object_store import Stored

NOW: Final = "local.ruleop.dev/run-now"


class Jobs(OwningController):
    resource, kind, dependents = JOBS, "Job", PODS

    def reconcile(self, found: Stored) -> None:
        if is_being_deleted(found.obj):
            return
        old = found.obj.get("status") or {}
        if any(each["type"] in ("Complete", "Failed") for each in old.get("conditions") or []):
            self._expire(found)
            return
        spec = found.obj["spec"]
        pods = self.machinery.owned(PODS, found.obj)
        succeeded = [each for each in pods if _phase(each.obj) == "Succeeded"]
        failed = [each for each in pods if _phase(each.obj) == "Failed"]
        active = [each for each in pods if not is_over(each.obj) and not is_being_deleted(each.obj)]
        desired, refused = spec.get("completions") or 1, None
        status: dict[str, Any] = {**old, "startTime": old.get("startTime") or now()}
        restarts = [each for each in active if any(one["restartCount"] for one in _containers(each.obj))]
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
        counts = {
            "active": len(active),
            "ready": sum(is_ready(each.obj) for each in active),
            "succeeded": len(succeeded),
            "failed": len(failed),
        }
        for key, value in counts.items():
            status.pop(key, None)
            if value or key == "ready":
                status[key] = value
        status["terminating"] = sum(is_being_deleted(each.obj) and not is_over(each.obj) for each in pods)
        status["uncountedTerminatedPods"] = {}
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
        active = [each for each in jobs if not _is_finished(each.obj)]
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
        if not active:
            del status["active"]
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
            over = [each for each in jobs if _has_condition(each.obj, type_)]
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


def _containers(pod: Object) -> list[Object]:
    return (pod.get("status") or {}).get("containerStatuses") or []


def _has_condition(job: Object, type_: str) -> bool:
    return any(each["type"] == type_ for each in (job.get("status") or {}).get("conditions") or [])


def _is_finished(job: Object) -> bool:
    return _has_condition(job, "Complete") or _has_condition(job, "Failed")
