"""Plays the scheduler and the kubelet: pods run at once, unless an annotation wants something else.

`local.ruleop.dev/pod` of a pod (or of the template that makes it) tells what happens to it:

- `pending`: it is never scheduled
- `fail`: its containers fail (and restart, by its restart policy)
- `not-ready`: it runs, and its readiness probe fails
- `after=SECONDS`: it is ready, or has completed, after this time
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.api.options import DeleteOptions
from ruleop.localcluster.clock import now, seconds_of
from ruleop.localcluster.controllers.machinery import is_being_deleted, with_condition
from ruleop.localcluster.kinds.resources import CLAIMS, PODS
from ruleop.schema.table import builtin_release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kinds import Object
    from ruleop.localcluster.controllers.machinery import Machinery
    from ruleop.localcluster.store.store import Event, Name, Resource

NODE: Final = "local-node"
_UNKNOWN: Final = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeProxyVersion",
)
BEHAVIOUR: Final = "local.ruleop.dev/pod"


class Pods:
    resource = PODS

    def __init__(self, machinery: Machinery) -> None:
        self.machinery = machinery
        self._addresses = 0

    def concerned(self, resource: Resource, event: Event) -> Iterator[Name]:
        if resource == PODS and not event.deleted:
            yield event.new.name
        elif resource == CLAIMS:
            for each in self.machinery.store.all(PODS, event.new.name.namespace):
                if event.new.name.name in claims_of(each.obj):
                    yield each.name

    def sync(self, name: Name) -> None:
        found = self.machinery.store.get(PODS, name)
        if found is None:
            return
        pod = found.obj
        if is_being_deleted(pod):
            if not pod["metadata"].get("finalizers"):
                self.machinery.delete(PODS, found, DeleteOptions(grace=0, uid=found.uid))
            return
        status = pod.get("status") or {}
        if status.get("phase") in ("Succeeded", "Failed"):
            return
        behaviour, delay = _behaviour(pod)
        if behaviour == "pending" or not self._can_schedule(pod):
            self._stay_pending(name)
            return
        if not pod["spec"].get("nodeName"):
            found = self.machinery.store.put(PODS, {**pod, "spec": {**pod["spec"], "nodeName": NODE}})
            pod = found.obj
            self.machinery.record(
                pod,
                "Scheduled",
                f"Successfully assigned {name.namespace}/{name.name} to {NODE}",
                "default-scheduler",
            )
        started = status.get("startTime")
        begun = time.time() - seconds_of(started) if started else 0.0
        ready = begun >= delay
        new = self._status(pod, behaviour, ready=ready)
        if not ready:
            self.machinery.after(delay - begun, self, name)
        self.machinery.update_status(PODS, found, new)

    def _can_schedule(self, pod: Object) -> bool:
        namespace = pod["metadata"]["namespace"]
        for claim in claims_of(pod):
            found = self.machinery.get(CLAIMS, namespace, claim)
            if found is None or (found.obj.get("status") or {}).get("phase") != "Bound":
                return False
        return True

    def _stay_pending(self, name: Name) -> None:
        found = self.machinery.store.get(PODS, name)
        assert found is not None
        status = found.obj.get("status") or {}
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/1 nodes are available",
        }
        conditions = with_condition(status.get("conditions"), condition, now())
        self.machinery.update_status(PODS, found, {**status, "phase": "Pending", "conditions": conditions})

    def _status(self, pod: Object, behaviour: str, *, ready: bool) -> dict[str, Any]:
        old = pod.get("status") or {}
        start = old.get("startTime") or now()
        finishes = pod["spec"].get("restartPolicy") in ("OnFailure", "Never") and _is_of_job(pod)
        failed = behaviour == "fail"
        if failed and pod["spec"].get("restartPolicy") == "Never":
            phase = "Failed"
        elif finishes and ready and not failed:
            phase = "Succeeded"
        else:
            phase = "Running"
        is_ready = phase == "Running" and ready and not failed and behaviour != "not-ready"
        status = {
            "phase": phase,
            "startTime": start,
            "hostIP": "192.0.2.1",
            "hostIPs": [{"ip": "192.0.2.1"}],
            "podIP": old.get("podIP") or self._address(),
            "qosClass": old.get("qosClass") or "BestEffort",
        }
        status["podIPs"] = [{"ip": status["podIP"]}]
        status["containerStatuses"] = [
            _container_status(each, phase, start, ready=is_ready, failed=failed) for each in pod["spec"]["containers"]
        ]
        conditions = old.get("conditions")
        reason = {"reason": "PodCompleted"} if phase == "Succeeded" else {}
        unready = {} if is_ready else reason or {"reason": "ContainersNotReady"}
        for type_, true in (
            ("PodReadyToStartContainers", phase == "Running"),
            ("Initialized", True),
            ("Ready", is_ready),
            ("ContainersReady", is_ready),
            ("PodScheduled", True),
        ):
            extra = unready if type_ in ("Ready", "ContainersReady") else {}
            new = {"type": type_, "status": "True" if true else "False", "lastProbeTime": None, **extra}
            conditions = with_condition(conditions, new, now())
        return {**status, "conditions": conditions}

    def _address(self) -> str:
        self._addresses += 1
        return f"10.244.{self._addresses >> 8 & 255}.{self._addresses & 255}"


def _container_status(container: Object, phase: str, start: str, *, ready: bool, failed: bool) -> dict[str, Any]:
    state: dict[str, Any] = {"running": {"startedAt": start}}
    restarts = 0
    if phase in ("Succeeded", "Failed"):
        code = 1 if phase == "Failed" else 0
        reason = "Error" if code else "Completed"
        state = {"terminated": {"exitCode": code, "reason": reason, "startedAt": start, "finishedAt": now()}}
    elif failed:
        restarts = 1
        state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}
    image = container.get("image", "")
    return {
        "name": container["name"],
        "image": image,
        "imageID": image,
        "containerID": f"local://{container['name']}",
        "ready": ready,
        "started": ready,
        "restartCount": restarts,
        "state": state,
        "lastState": {},
    }


def _behaviour(pod: Object) -> tuple[str, float]:
    text = (pod["metadata"].get("annotations") or {}).get(BEHAVIOUR, "")
    found, _, value = text.partition("=")
    if found == "after":
        try:
            return "", float(value.removesuffix("s"))
        except ValueError:
            return "", 0.0
    return found, 0.0


def _is_of_job(pod: Object) -> bool:
    return any(each["kind"] == "Job" for each in pod["metadata"].get("ownerReferences") or [])


def claims_of(pod: Object) -> list[str]:
    volumes = pod["spec"].get("volumes") or []
    return [each["persistentVolumeClaim"]["claimName"] for each in volumes if "persistentVolumeClaim" in each]


def node() -> dict[str, Any]:
    """The one node of the cluster."""
    stamp = now()
    resources = {"cpu": "64", "memory": "256Gi", "pods": "10000", "ephemeral-storage": "1Ti"}
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": NODE,
            "labels": {
                "kubernetes.io/hostname": NODE,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
            },
        },
        "spec": {},
        "status": {
            "nodeInfo": {
                **dict.fromkeys(_UNKNOWN, ""),
                "kubeletVersion": f"v{builtin_release()}.0+ruleop",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
            "capacity": resources,
            "allocatable": resources,
            "addresses": [
                {"type": "InternalIP", "address": "192.0.2.1"},
                {"type": "Hostname", "address": NODE},
            ],
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "LocalNode",
                    "message": "the node of a local cluster is always ready",
                    "lastHeartbeatTime": stamp,
                    "lastTransitionTime": stamp,
                }
            ],
        },
    }
