"""Plays the scheduler and the kubelet: pods run at once, unless an annotation wants something else.

`local.ruleop.dev/pod` of a pod (or of the template that makes it) tells what happens to it:

- `pending`: it is never scheduled
- `fail`: its containers fail (and restart, by its restart policy)
- `not-ready`: it runs, and its readiness probe fails
- `after=SECONDS`: it is ready, or has completed, after this time

A pod without a node has the message of the scheduler, one without its ConfigMaps or Secrets those of the kubelet. It is
reconciled again when an object that it needs is created or changes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.kinds import is_being_deleted
from ruleop.kubernetes.labels import meets, requirements_of
from ruleop.kubernetes.times import now, seconds_of
from ruleop.localcluster.api.requests import DeleteOptions
from ruleop.localcluster.controllers.machinery import LocalController, is_over, is_ready, share, with_condition
from ruleop.localcluster.object_store import BUDGETS, CLAIMS, CONFIG_MAPS, NODES, PODS, SECRETS, Name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.controllers.machinery import Machinery
    from ruleop.localcluster.object_store import Resource, Stored, StoreEvent


NOT_READY: Final = "node.kubernetes.io/not-ready"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"


class Nodes(LocalController):
    resource = NODES

    def reconcile(self, found: Stored) -> None:
        spec = found.obj["spec"]
        given = spec.get("taints") or []
        needed = {NOT_READY: not is_ready(found.obj), UNSCHEDULABLE: bool(spec.get("unschedulable"))}
        taints = [each for each in given if needed.get(each["key"], True)]
        missing = [key for key, is_needed in needed.items() if is_needed and key not in {each["key"] for each in given}]
        taints += [{"key": key, "effect": "NoSchedule", "timeAdded": now()} for key in missing]
        if taints != given:
            rest = {name: each for name, each in spec.items() if name != "taints"}
            new = {**found.obj, "spec": {**rest, "taints": taints} if taints else rest}
            self.machinery.update(NODES, found, new)


NODE: Final = "local-node"  # the one node, of bootstrap.json
_REPELLING: Final = ("NoSchedule", "NoExecute")
NO_NODE: Final = "0/1 nodes are available"
_PREEMPTION: Final = f"no new claims to deallocate, preemption: {NO_NODE}: 1 Preemption is not helpful for scheduling."


def unschedulable(machinery: Machinery, pod: Object) -> str:
    """The message of the pod's condition; empty if it can run. The pod is reconciled again when that may change."""
    namespace = pod["metadata"]["namespace"]
    for claim in claim_names(pod):
        if problem := _claim_problem(machinery, Name(namespace, claim)):
            machinery.wait_for(CLAIMS, Name(namespace, claim))
            return f"{NO_NODE}: {problem}. not found"  # this is how the real one ends
    problem = _taint_problem(machinery, pod["spec"])
    if not problem and not matches_node(machinery, pod["spec"]):
        problem = "didn't match Pod's node affinity/selector"
    return f"{NO_NODE}: 1 node(s) {problem}. {_PREEMPTION}" if problem else ""


def claim_names(pod: Object) -> list[str]:
    volumes = pod["spec"].get("volumes") or []
    return [each["persistentVolumeClaim"]["claimName"] for each in volumes if "persistentVolumeClaim" in each]


def _claim_problem(machinery: Machinery, claim: Name) -> str:
    found = machinery.store.get(CLAIMS, claim)
    if found is None:
        return f'persistentvolumeclaim "{claim.name}" not found'
    if is_being_deleted(found.obj):
        return f'persistentvolumeclaim "{claim.name}" is being deleted'
    is_bound = (found.obj.get("status") or {}).get("phase") == "Bound"
    return "" if is_bound else "pod has unbound immediate PersistentVolumeClaims"


def _taint_problem(machinery: Machinery, spec: Object) -> str:
    node = machinery.get(NODES, "", NODE)
    given = {} if node is None else node.obj["spec"]
    tolerations = spec.get("tolerations") or []
    cordon = {"key": UNSCHEDULABLE, "effect": "NoSchedule"}
    problem = ""
    if given.get("unschedulable") and not _tolerated(cordon, tolerations):
        problem = "were unschedulable"
    elif any(each["effect"] in _REPELLING and not _tolerated(each, tolerations) for each in given.get("taints") or ()):
        problem = "had untolerated taint(s)"
    if problem:
        machinery.wait_for(NODES, Name("", NODE))
    return problem


def _tolerated(taint: Object, tolerations: Iterable[Object]) -> bool:
    return any(
        each.get("effect") in (None, "", taint["effect"])
        and (each.get("key") or taint["key"]) == taint["key"]
        and (each.get("operator") == "Exists" or (each.get("value") or "") == (taint.get("value") or ""))
        for each in tolerations
    )


def matches_node(machinery: Machinery, spec: Object) -> bool:
    """Whether a pod selects the node. If not, the current object is reconciled again when the node changes."""
    selector = spec.get("nodeSelector") or {}
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not selector and required is None:
        return True
    node = machinery.get(NODES, "", NODE)
    labels = {} if node is None else node.obj["metadata"].get("labels") or {}
    terms = [{}] if required is None else required.get("nodeSelectorTerms") or []
    found = selector.items() <= labels.items() and any(
        meets(labels, requirements_of(each))
        and meets({"metadata.name": NODE}, requirements_of({"matchExpressions": each.get("matchFields")}))
        for each in terms
        if each or required is None
    )
    if not found:
        machinery.wait_for(NODES, Name("", NODE))
    return found


_KINDS: Final = {"configMap": (CONFIG_MAPS, ("data", "binaryData")), "secret": (SECRETS, ("data",))}
_SECRET, _CONFIG_MAP = "secret", "configMap"


class PodConfiguration:
    """The ConfigMaps and Secrets beside a pod."""

    def __init__(self, machinery: Machinery, pod: Object) -> None:
        self._machinery, self._pod = machinery, pod

    def container_problem(self, container: Object) -> str:
        """The reason that a container cannot be created; empty if it can."""
        needed = [
            (kind, each[f"{kind}Ref"], None)
            for each in container.get("envFrom") or ()
            for kind in _KINDS
            if f"{kind}Ref" in each
        ]
        needed += [
            (kind, source[f"{kind}KeyRef"], source[f"{kind}KeyRef"]["key"])
            for each in container.get("env") or ()
            for kind in _KINDS
            if f"{kind}KeyRef" in (source := each.get("valueFrom") or {})
        ]
        return next((problem for each in needed if (problem := self._problem(*each))), "")

    def volume_problems(self) -> Iterator[str]:
        """The reasons that the volumes of the pod cannot be mounted."""
        for volume in self._pod["spec"].get("volumes") or ():
            problems = [
                problem
                for kind, reference in _sources(volume)
                for key in [each["key"] for each in reference.get("items") or ()] or [None]
                if (problem := self._problem(kind, reference, key))
            ]
            if problems:
                text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
                yield f'MountVolume.SetUp failed for volume "{volume["name"]}" : {text}'

    def _problem(self, kind: str, reference: Object, key: str | None) -> str:
        """The problem with an object, or a key of it, that is not optional. When it changes, the pod is reconciled."""
        resource, fields = _KINDS[kind]
        name, namespace = reference.get("name", ""), self._pod["metadata"]["namespace"]
        found = self._machinery.get(resource, namespace, name)
        if reference.get("optional") or (
            found is not None and (key is None or any(key in (found.obj.get(each) or {}) for each in fields))
        ):
            return ""
        self._machinery.wait_for(resource, Name(namespace, name))
        if found is None:
            return f'{kind.lower()} "{name}" not found'
        return f"couldn't find key {key} in {kind[0].upper()}{kind[1:]} {namespace}/{name}"


def _sources(volume: Object) -> Iterator[tuple[str, dict[str, Any]]]:
    for each in (volume, *((volume.get("projected") or {}).get("sources") or ())):
        if _CONFIG_MAP in each:
            yield _CONFIG_MAP, each[_CONFIG_MAP]
        if _SECRET in each:
            # A volume has secretName, a source of a projected volume has name.
            yield _SECRET, {"name": each[_SECRET].get("secretName", ""), **each[_SECRET]}


BEHAVIOUR: Final = "local.ruleop.dev/pod"


class Pods(LocalController):
    resource = PODS

    def __init__(self, machinery: Machinery) -> None:
        super().__init__(machinery)
        self._addresses = 0

    def reconcile(self, found: Stored) -> None:
        pod, name = found.obj, found.name
        if is_being_deleted(pod):
            if not pod["metadata"].get("finalizers"):
                self.machinery.delete(PODS, found, DeleteOptions(grace=0, uid=found.uid))
            return
        status = pod.get("status") or {}
        if is_over(pod):
            return
        behaviour, delay = _behaviour(pod)
        is_scheduled = bool(pod["spec"].get("nodeName"))
        if behaviour == "pending":
            self._stay_pending(found, NO_NODE)
            return
        if not is_scheduled and pod["spec"]["schedulerName"] != "default-scheduler":
            return  # it waits for its own scheduler
        if not is_scheduled and (problem := unschedulable(self.machinery, pod)):
            self._stay_pending(found, problem)
            return
        if not is_scheduled:
            found = self.machinery.store.put(PODS, {**pod, "spec": {**pod["spec"], "nodeName": NODE}})
            pod = found.obj
            message = f"Successfully assigned {name.namespace}/{name.name} to {NODE}"
            self.machinery.record(pod, "Scheduled", message, "default-scheduler")
        started = status.get("startTime")
        begun = time.time() - seconds_of(started) if started else 0.0
        ready = begun >= delay
        new = self._status(pod, behaviour, ready=ready)
        if not ready:
            self.machinery.after(delay - begun, self, name)
        self.machinery.update_status(PODS, found, new)

    def _stay_pending(self, found: Stored, message: str) -> None:
        status = found.obj.get("status") or {}
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        conditions = with_condition(status.get("conditions"), condition, now())
        new = {**status, "phase": "Pending", "conditions": conditions}
        if new != status:
            self.machinery.record(found.obj, "FailedScheduling", message, "default-scheduler", type_="Warning")
            self.machinery.update_status(PODS, found, new)

    def _status(self, pod: Object, behaviour: str, *, ready: bool) -> dict[str, Any]:
        old, spec = pod.get("status") or {}, pod["spec"]
        start = old.get("startTime") or now()
        has_sandbox, waiting = (True, {}) if old.get("phase") == "Running" else self._waiting(pod)
        finishes = spec.get("restartPolicy") in ("OnFailure", "Never") and _is_of_job(pod)
        failed = behaviour == "fail" and not waiting
        if waiting:
            phase = "Pending"
        elif failed and spec.get("restartPolicy") == "Never":
            phase = "Failed"
        elif finishes and ready and not failed:
            phase = "Succeeded"
        else:
            phase = "Running"
        is_ready = phase == "Running" and ready and not failed and behaviour != "not-ready"
        status: dict[str, Any] = {
            "phase": phase,
            "startTime": start,
            "hostIP": "192.0.2.1",
            "hostIPs": [{"ip": "192.0.2.1"}],
            "qosClass": old.get("qosClass") or "BestEffort",
        }
        if has_sandbox:
            status["podIP"] = old.get("podIP") or self._address()
            status["podIPs"] = [{"ip": status["podIP"]}]
        status["containerStatuses"] = [
            _container_status(each, waiting.get(each["name"]), phase, start, ready=is_ready, failed=failed)
            for each in spec["containers"]
        ]
        inits = spec.get("initContainers") or ()
        if inits:
            statuses = [_init_status(each, waiting.get(each["name"]), phase, start) for each in inits]
            status["initContainerStatuses"] = statuses
        uninitialized = [each["name"] for each in inits if each["name"] in waiting]
        unready: dict[str, str] = {} if is_ready else {"reason": "PodCompleted"}
        if not is_ready and phase != "Succeeded":
            names = [each["name"] for each in status["containerStatuses"] if not each["ready"]]
            unready = {
                "reason": "ContainersNotReady",
                "message": f"containers with unready status: [{' '.join(names)}]",
            }
        pending: dict[str, str] = {}
        if uninitialized:
            text = f"containers with incomplete status: [{' '.join(uninitialized)}]"
            pending = {"reason": "ContainersNotInitialized", "message": text}
        conditions = old.get("conditions")
        for type_, true, extra in (
            ("PodReadyToStartContainers", has_sandbox and phase in ("Pending", "Running"), {}),
            ("Initialized", not uninitialized, pending),
            ("Ready", is_ready, unready),
            ("ContainersReady", is_ready, unready),
            ("PodScheduled", True, {}),
        ):
            new = {"type": type_, "status": "True" if true else "False", "lastProbeTime": None, **extra}
            conditions = with_condition(conditions, new, now())
        return {**status, "conditions": conditions}

    def _waiting(self, pod: Object) -> tuple[bool, dict[str, dict[str, str]]]:
        """Whether the volumes can be mounted, and which containers cannot start, with the reason. Containers that have
        started keep running without it."""
        configuration, spec = PodConfiguration(self.machinery, pod), pod["spec"]
        inits, containers = spec.get("initContainers") or [], spec["containers"]
        later = {"reason": "PodInitializing" if inits else "ContainerCreating"}
        if problems := list(configuration.volume_problems()):
            for each in problems:
                self.machinery.record(pod, "FailedMount", each, "kubelet", type_="Warning")
            return False, {each["name"]: later for each in (*inits, *containers)}
        old = pod.get("status") or {}
        before = {
            each["name"]: each["state"]
            for each in (*(old.get("initContainerStatuses") or ()), *(old.get("containerStatuses") or ()))
        }
        waiting: dict[str, dict[str, str]] = {}
        stopped = False
        for each in (*inits, *containers):
            name, state = each["name"], before.get(each["name"]) or {}
            if stopped:
                waiting[name] = later
            elif "running" not in state and (problem := configuration.container_problem(each)):
                waiting[name] = {"reason": "CreateContainerConfigError", "message": problem}
                if state.get("waiting") != waiting[name]:
                    self.machinery.record(pod, "Failed", f"Error: {problem}", "kubelet", type_="Warning")
                stopped = each in inits
        return True, waiting

    def _address(self) -> str:
        self._addresses += 1
        return f"10.244.{self._addresses >> 8 & 255}.{self._addresses & 255}"


def _init_status(container: Object, waiting: Mapping[str, str] | None, phase: str, start: str) -> dict[str, Any]:
    """Of an init container that waits or has completed, or of a sidecar that runs."""
    if container.get("restartPolicy") == "Always":
        return _container_status(container, waiting, phase, start, ready=True, failed=False)
    return {**_container_status(container, waiting, "Succeeded", start, ready=True, failed=False), "started": False}


def _container_status(
    container: Object, waiting: Mapping[str, str] | None, phase: str, start: str, *, ready: bool, failed: bool
) -> dict[str, Any]:
    """`waiting`: why the container cannot start."""
    name, image, runs = container["name"], container.get("image", ""), waiting is None
    is_over, code = phase in ("Succeeded", "Failed"), int(phase == "Failed")
    state: dict[str, Any] = {"running": {"startedAt": start}}
    if not runs:
        state = {"waiting": waiting}
    elif is_over:
        reason = "Error" if code else "Completed"
        state = {"terminated": {"exitCode": code, "reason": reason, "startedAt": start, "finishedAt": now()}}
    elif failed:
        state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}
    return {
        "name": name,
        "image": image,
        "imageID": image if runs else "",
        **({"containerID": f"local://{name}"} if runs else {}),
        "ready": ready and runs,
        "started": ready and runs,
        "restartCount": int(failed and runs and not is_over),
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


# -- PodDisruptionBudgets: how many of their pods may be evicted now -------------------------------------------------


class DisruptionBudgets(LocalController):
    resource = BUDGETS

    def concerned(self, resource: Resource, event: StoreEvent) -> Iterator[Name]:
        yield from super().concerned(resource, event)
        if resource == PODS:
            for each in self.machinery.store.all(BUDGETS, event.new.name.namespace):
                yield each.name

    def reconcile(self, found: Stored) -> None:
        if is_being_deleted(found.obj):
            return
        spec, namespace = found.obj["spec"], found.name.namespace
        requirements = requirements_of(spec.get("selector") or {})
        pods = [
            each.obj
            for each in self.machinery.store.all(PODS, namespace)
            if meets(each.obj["metadata"].get("labels") or {}, requirements) and not is_over(each.obj)
        ]
        if not pods:
            self.machinery.record(found.obj, "NoPods", "No matching pods found", "controllermanager")
        expected, least, most = len(pods), spec.get("minAvailable"), spec.get("maxUnavailable")
        desired = max(0, expected - share(most, expected)) if most is not None else share(least or 1, expected)
        healthy = sum(is_ready(each) and not is_being_deleted(each) for each in pods)
        allowed = max(0, healthy - desired) if expected else 0
        generation = found.obj["metadata"]["generation"]
        condition = {
            "type": "DisruptionAllowed",
            "status": "True" if allowed else "False",
            "reason": "SufficientPods" if allowed else "InsufficientPods",
            "message": "",
            "observedGeneration": generation,
        }
        status: dict[str, Any] = {
            "conditions": with_condition((found.obj.get("status") or {}).get("conditions"), condition, now()),
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "disruptionsAllowed": allowed,
            "expectedPods": expected,
            "observedGeneration": generation,
        }
        self.machinery.update_status(BUDGETS, found, status)
