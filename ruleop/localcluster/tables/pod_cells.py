"""The status of a pod in one line, from those of its containers.

A port of printPod of Kubernetes (pkg/printers/internalversion), in its order: the pod's phase or reason, an init
container that has not ended well, a container that waits or has ended, a pod that is being deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.localcluster.tables.cell_text import NONE, age, is_being_deleted, is_true, name, since, spec, status
from ruleop.localcluster.tables.printer import printer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.core.kinds import JSON, Object

_CONDITIONS: Mapping[str, str] = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def pod_conditions(pod: Object) -> list[dict[str, Any]]:
    """The conditions of a pod's row: kubectl can leave out the pods that have ended."""
    phase = status(pod).get("phase", "")
    if phase not in _CONDITIONS:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _CONDITIONS[phase]}]


def pod_cells(pod: Object, now: float) -> list[JSON]:
    of_pod, sidecars = status(pod), _sidecars(pod)
    begun, reason = _init_containers(pod, sidecars)
    ready = sum(1 for each in begun if each["name"] in sidecars and _is_started(each) and each.get("ready"))
    counted = begun
    if not reason or is_true(pod, "Initialized"):
        statuses = of_pod.get("containerStatuses") or []
        counted = [*(each for each in begun if each["name"] in sidecars), *statuses]
        ready += sum(1 for each in statuses if _is_running(each))
        reason = _container_reason(pod, reason or _own_reason(pod))
    if is_being_deleted(pod):
        if of_pod.get("reason") == "NodeLost":
            reason = "Unknown"
        elif of_pod.get("phase") not in ("Succeeded", "Failed"):
            reason = "Terminating"
    restarts, latest = _restarts(counted)
    return [
        name(pod),
        f"{ready}/{len(spec(pod).get('containers') or ()) + len(sidecars)}",
        reason,
        f"{restarts} ({since(latest, now)} ago)" if restarts and latest else str(restarts),
        age(pod, now),
        next((each.get("ip") for each in of_pod.get("podIPs") or ()), None) or NONE,
        spec(pod).get("nodeName") or NONE,
        of_pod.get("nominatedNodeName") or NONE,
        _gates(pod),
    ]


def _own_reason(pod: Object) -> str:
    of_pod = status(pod)
    for each in of_pod.get("conditions") or ():
        if each.get("type") == "PodScheduled" and each.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return str(of_pod.get("reason") or of_pod.get("phase", ""))


def _sidecars(pod: Object) -> set[str]:
    """The init containers that keep running."""
    return {each["name"] for each in spec(pod).get("initContainers") or () if each.get("restartPolicy") == "Always"}


def _init_containers(pod: Object, sidecars: set[str]) -> tuple[list[Object], str]:
    """The init containers up to the first that has neither ended well nor is a sidecar that has started, and the reason
    of that one; no reason where all are past that."""
    begun: list[Object] = []
    for index, each in enumerate(status(pod).get("initContainerStatuses") or ()):
        begun.append(each)
        state = each.get("state") or {}
        terminated, waiting = state.get("terminated"), (state.get("waiting") or {}).get("reason")
        if _has_ended_well(each) or (each["name"] in sidecars and each.get("started")):
            continue
        if terminated is not None:
            return begun, f"Init:{_end(terminated)}"
        if waiting and waiting != "PodInitializing":
            return begun, f"Init:{waiting}"
        return begun, f"Init:{index}/{len(spec(pod).get('initContainers') or ())}"
    return begun, ""


def _has_ended_well(container: Object) -> bool:
    terminated = (container.get("state") or {}).get("terminated")
    return terminated is not None and not terminated.get("exitCode")


def _is_started(sidecar: Object) -> bool:
    return bool(sidecar.get("started")) and not _has_ended_well(sidecar)


def _container_reason(pod: Object, reason: str) -> str:
    error, running = "", False
    for each in reversed(status(pod).get("containerStatuses") or ()):
        state = each.get("state") or {}
        waiting, terminated = (state.get("waiting") or {}).get("reason"), state.get("terminated")
        if waiting:
            reason = waiting
        elif terminated is not None:
            reason = _end(terminated)
            error = reason if terminated.get("exitCode") else error
        elif _is_running(each):
            running = True
    if reason != "Completed":
        return reason
    if running and is_true(pod, "Ready"):
        return "Running"
    return error or ("NotReady" if running else reason)


def _is_running(container: Object) -> bool:
    """Ready, and in no other state: a waiting one without a reason may still be listed as ready."""
    state = container.get("state") or {}
    waits = (state.get("waiting") or {}).get("reason")
    return bool(
        container.get("ready") and state.get("running") is not None and not waits and state.get("terminated") is None
    )


def _end(terminated: Object) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _restarts(containers: Iterable[Object]) -> tuple[int, str]:
    """The number of restarts of containers, and the time when the last of them had ended."""
    count, latest = 0, ""
    for each in containers:
        count += each.get("restartCount", 0)
        terminated = (each.get("lastState") or {}).get("terminated") or {}
        latest = max(latest, terminated.get("finishedAt") or "")
    return count, latest


def _gates(pod: Object) -> str:
    gates = spec(pod).get("readinessGates") or ()
    return f"{sum(is_true(pod, each['conditionType']) for each in gates)}/{len(gates)}" if gates else NONE


POD = printer("Name|Ready|Status|Restarts|Age|IP+|Node+|Nominated Node+|Readiness Gates+", pod_cells)
