"""The reasons that an object is not ready, by its own status: conditions, and of a pod its containers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object

BAD_IF_TRUE: Final = frozenset({"Stalled", "Failed", "ReplicaFailure"})
BAD_IF_FALSE: Final = frozenset(
    {"Ready", "Available", "Progressing", "Healthy", "Synced", "PodScheduled", "Established"}
)
_NORMAL: Final = frozenset({"ContainerCreating", "PodInitializing", "Completed"})


def object_problems(obj: Object) -> tuple[str, ...]:
    """Its bad conditions, each with reason and message; of a pod, what is wrong with its containers first."""
    status = obj.get("status")
    if not isinstance(status, Mapping):
        return ()
    found = list(_of_containers(status)) if obj.get("kind") == "Pod" else []
    found += _of_conditions(status, scheduling_only=obj.get("kind") == "Pod" and bool(found))
    return tuple(dict.fromkeys(found))


def pod_reason(pod: Object) -> str:
    """One word for the state of a pod, as `kubectl get pods` shows it."""
    status: Mapping[str, Any] = pod.get("status") or {}
    for which in ("initContainerStatuses", "containerStatuses"):
        for each in status.get(which) or ():
            state: Mapping[str, Any] = each.get("state") or {}
            for name in ("waiting", "terminated"):
                if (reason := (state.get(name) or {}).get("reason")) not in {None, *_NORMAL}:
                    return str(reason)
    for each in status.get("conditions") or ():
        if each.get("type") == "PodScheduled" and each.get("status") == "False":
            return str(each.get("reason") or "Unscheduled")
    return str(status.get("phase", ""))


def _of_conditions(status: Mapping[str, Any], *, scheduling_only: bool) -> Iterator[str]:
    """`scheduling_only`: the containers already tell why a pod is not ready."""
    conditions = status.get("conditions")
    for each in conditions if isinstance(conditions, list) else ():
        if not isinstance(each, Mapping) or (scheduling_only and each.get("type") != "PodScheduled"):
            continue
        type_, value = str(each.get("type")), each.get("status")
        if (type_ in BAD_IF_TRUE and value == "True") or (type_ in BAD_IF_FALSE and value in {"False", "Unknown"}):
            yield _joined(f"{type_} is {value}", each.get("reason"), each.get("message"))


def _of_containers(status: Mapping[str, Any]) -> Iterator[str]:
    for which in ("initContainerStatuses", "containerStatuses"):
        statuses = status.get(which)
        for each in statuses if isinstance(statuses, list) else ():
            if isinstance(each, Mapping):
                yield from _of_container(each, is_init=which == "initContainerStatuses")


def _of_container(status: Mapping[str, Any], *, is_init: bool) -> Iterator[str]:
    title = f"{'init container' if is_init else 'container'} {status.get('name')}"
    state: Mapping[str, Any] = status.get("state") or {}
    last: Mapping[str, Any] = (status.get("lastState") or {}).get("terminated") or {}
    waiting, ended = state.get("waiting"), state.get("terminated")
    if waiting and waiting.get("reason") not in _NORMAL:
        yield _joined(title, waiting.get("reason"), waiting.get("message"))
    elif ended and ended.get("exitCode"):
        yield _joined(title, _ended(ended), ended.get("message"))
    elif "running" in state and not is_init and not status.get("ready"):
        yield f"{title}: runs, and its readiness probe does not succeed"
    if last:
        restarts = status.get("restartCount") or 0
        yield _joined(f"{title} has restarted {restarts} times", f"the last one {_ended(last)}", last.get("message"))


def _ended(state: Mapping[str, Any]) -> str:
    reason = state.get("reason")
    named = f" ({reason})" if reason not in {None, "Error"} else ""
    return f"ended with exit code {state.get('exitCode')}{named}"


def _joined(title: str, reason: Any, message: Any) -> str:
    return ": ".join(str(part) for part in (title, reason, message) if part)
