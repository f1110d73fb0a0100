"""The columns and cells of the built-in kinds that authors of templates meet. Others show their names and ages.

The status of a pod is one line, from those of its containers: a port of printPod of Kubernetes
(pkg/printers/internalversion), in its order: the pod's phase or reason, an init container that has not ended well, a
container that waits or has ended, a pod that is being deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.tables.cells import (
    NONE,
    OF_TEMPLATE,
    UNKNOWN,
    UNSET,
    ColumnDefinition,
    Printer,
    annotation,
    boolean,
    condition,
    containers,
    human_duration,
    is_being_deleted,
    is_true,
    label_selector,
    labels,
    load_balancer,
    printer,
    since,
    spec,
    status,
)
from ruleop.localcluster.timestamps import seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.kubernetes.kinds import JSON, Kind, Object

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
        f"{ready}/{len(spec(pod).get('containers') or ()) + len(sidecars)}",
        reason,
        f"{restarts} ({since(latest, now)} ago)" if restarts and latest else str(restarts),
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


_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}

_ROLE_LABEL, _OLD_ROLE_LABEL = "node-role.kubernetes.io/", "kubernetes.io/role"


def _node(obj: Object, _now: float) -> list[JSON]:
    info = status(obj).get("nodeInfo") or {}
    ready = condition(obj, "Ready")
    states = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if spec(obj).get("unschedulable"):
        states.append("SchedulingDisabled")
    kernel = info.get("kernelVersion") or UNKNOWN
    return [
        ",".join(states),
        _roles(obj) or NONE,
        info.get("kubeletVersion", ""),
        _address(obj, "InternalIP"),
        _address(obj, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        f"{kernel} ({info['architecture']})" if info.get("architecture") else kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _roles(obj: Object) -> str:
    labels = obj["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE_LABEL) for key in labels if key.startswith(_ROLE_LABEL)}
    return ",".join(sorted((roles | {labels.get(_OLD_ROLE_LABEL, "")}) - {""}))


def _address(obj: Object, of_type: str) -> str:
    addresses = status(obj).get("addresses") or ()
    return next((str(each["address"]) for each in addresses if each["type"] == of_type), NONE)


def _event(obj: Object, now: float) -> list[JSON]:
    """An event of either group: events.k8s.io has other names for some fields."""

    def field(newer: str, older: str) -> JSON:
        return obj.get(newer) or obj.get(older)

    first = since(field("deprecatedFirstTimestamp", "firstTimestamp") or obj.get("eventTime"), now)
    last_timestamp = field("deprecatedLastTimestamp", "lastTimestamp")
    last = since(last_timestamp, now) if last_timestamp else first
    count = field("deprecatedCount", "count") or 1
    if (series := obj.get("series")) is not None:
        last, count = since(series.get("lastObservedTime"), now), series.get("count", 0)
    target = field("regarding", "involvedObject") or {}
    source = field("deprecatedSource", "source") or {}
    reporter = source.get("component") or field("reportingController", "reportingComponent") or ""
    instance = source.get("host") or obj.get("reportingInstance")
    kind = target.get("kind", "").lower()
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{target['name']}" if target.get("name") else kind,
        target.get("fieldPath", ""),
        f"{reporter}, {instance}" if instance else reporter,
        (field("note", "message") or "").strip(),
        first,
        count,
    ]


def _config_map(obj: Object, _now: float) -> list[JSON]:
    return [len(obj.get("data") or ()) + len(obj.get("binaryData") or ())]


def _service(obj: Object, _now: float) -> list[JSON]:
    desired = spec(obj)
    return [
        desired.get("type", "ClusterIP"),
        next(iter(desired.get("clusterIPs") or ()), NONE),
        _external_address(obj),
        ",".join(_service_port(port) for port in desired.get("ports") or ()) or NONE,
        labels(desired.get("selector")),
    ]


def _service_port(port: Object) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node_port}/{port.get('protocol', 'TCP')}"


def _external_address(obj: Object) -> str:
    desired = spec(obj)
    addresses = desired.get("externalIPs") or []
    match desired.get("type", "ClusterIP"):
        case "ClusterIP" | "NodePort":
            return ",".join(addresses) or NONE
        case "LoadBalancer":
            return ",".join(each for each in (load_balancer(obj), *addresses) if each) or "<pending>"
        case "ExternalName":
            return str(desired.get("externalName", ""))
        case _:
            return UNKNOWN


def _volume(obj: Object, _now: float) -> list[JSON]:
    desired = spec(obj)
    claim = desired.get("claimRef")
    return [
        _size(desired.get("capacity")),
        _access_modes(desired.get("accessModes") or ()),
        desired.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim is not None else "",
        _class(obj),
        desired.get("volumeAttributesClassName", UNSET),
        status(obj).get("reason", ""),
        desired.get("volumeMode", UNSET),
    ]


def _claim(obj: Object, _now: float) -> list[JSON]:
    desired, of = spec(obj), status(obj)
    is_bound = bool(desired.get("volumeName"))
    return [
        _phase(obj),
        desired.get("volumeName", ""),
        _size(of.get("capacity")) if is_bound else "",
        _access_modes(of.get("accessModes") or ()) if is_bound else "",
        _class(obj),
        desired.get("volumeAttributesClassName", UNSET),
        desired.get("volumeMode", UNSET),
    ]


def _phase(obj: Object) -> str:
    return "Terminating" if is_being_deleted(obj) else status(obj).get("phase", "")


def _size(amounts: Object | None) -> str:
    return str((amounts or {}).get("storage", "0"))


def _access_modes(modes: Iterable[str]) -> str:
    found = set(modes)
    return ",".join(short for mode, short in _MODES.items() if mode in found)


def _class(obj: Object) -> str:
    return annotation(obj, "volume.beta.kubernetes.io/storage-class") or spec(obj).get("storageClassName", "")


_EVENTS: Final = printer(
    "Last Seen|Type|Reason|Object|Subobject+|Source+|Message|First Seen+|Count+|Name+",
    _event,
)
CORE: Final = {
    ("", "ConfigMap"): printer("Name|Data|Age", _config_map),
    ("", "Event"): _EVENTS,
    ("events.k8s.io", "Event"): _EVENTS,
    ("", "Namespace"): printer("Name|Status|Age", lambda obj, _: [status(obj).get("phase", "")]),
    ("", "Node"): printer(
        "Name|Status|Roles|Age|Version|Internal-IP+|External-IP+|OS-Image+|Kernel-Version+|Container-Runtime+", _node
    ),
    ("", "PersistentVolume"): printer(
        "Name|Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass|Reason|Age|"
        "VolumeMode+",
        _volume,
    ),
    ("", "PersistentVolumeClaim"): printer(
        "Name|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age|VolumeMode+", _claim
    ),
    ("", "Secret"): printer("Name|Type|Data|Age", lambda obj, _: [obj.get("type", ""), len(obj.get("data") or ())]),
    ("", "Service"): printer("Name|Type|Cluster-IP|External-IP|Port(s)|Age|Selector+", _service),
}


def _deployment(obj: Object, _now: float) -> list[JSON]:
    of, desired = status(obj), spec(obj)
    return [
        f"{of.get('readyReplicas', 0)}/{desired.get('replicas', 1)}",
        of.get("updatedReplicas", 0),
        of.get("availableReplicas", 0),
        *containers(desired.get("template")),
        label_selector(desired.get("selector")),
    ]


def _replica_set(obj: Object, _now: float) -> list[JSON]:
    of, desired = status(obj), spec(obj)
    return [
        desired.get("replicas", 1),
        of.get("replicas", 0),
        of.get("readyReplicas", 0),
        *containers(desired.get("template")),
        label_selector(desired.get("selector")) or NONE,
    ]


def _daemon_set(obj: Object, _now: float) -> list[JSON]:
    of, desired = status(obj), spec(obj)
    numbers = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        *(of.get(number, 0) for number in numbers),
        labels(spec(desired.get("template") or {}).get("nodeSelector")),
        *containers(desired.get("template")),
        label_selector(desired.get("selector")) or NONE,
    ]


APPS: Final = {
    ("apps", "Deployment"): printer(f"Name|Ready|Up-to-date|Available|Age|{OF_TEMPLATE}", _deployment),
    ("apps", "ReplicaSet"): printer(
        f"Name|Desired:integer|Current:integer|Ready:integer|Age|{OF_TEMPLATE}", _replica_set
    ),
    ("apps", "StatefulSet"): printer(
        "Name|Ready|Age|Containers+|Images+",
        lambda obj, _: [
            f"{status(obj).get('readyReplicas', 0)}/{spec(obj).get('replicas', 1)}",
            *containers(spec(obj).get("template")),
        ],
    ),
    ("apps", "DaemonSet"): printer(
        "Name|Desired:integer|Current:integer|Ready:integer|Up-to-date:integer|Available:integer|Node Selector|Age|"
        + OF_TEMPLATE,
        _daemon_set,
    ),
}


def _job(obj: Object, now: float) -> list[JSON]:
    of, desired = status(obj), spec(obj)
    succeeded, parallelism = of.get("succeeded", 0), desired.get("parallelism") or 0
    if desired.get("completions") is not None:
        completions = f"{succeeded}/{desired['completions']}"
    else:
        completions = f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"
    duration = ""
    if of.get("startTime"):
        end = seconds_of(of["completionTime"]) if of.get("completionTime") else now
        duration = human_duration(end - seconds_of(of["startTime"]))
    return [
        _job_status(obj),
        completions,
        duration,
        *containers(desired.get("template")),
        label_selector(desired.get("selector")) or NONE,
    ]


def _job_status(obj: Object) -> str:
    for of_type in ("Complete", "Failed"):
        if is_true(obj, of_type):
            return of_type
    if is_being_deleted(obj):
        return "Terminating"
    kept = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((of_type for of_type in kept if is_true(obj, of_type)), "Running")


def _cron_job(obj: Object, now: float) -> list[JSON]:
    of, desired = status(obj), spec(obj)
    job = spec(desired.get("jobTemplate") or {})
    return [
        desired.get("schedule", ""),
        desired.get("timeZone", NONE),
        boolean(desired.get("suspend")),
        len(of.get("active") or ()),
        since(of["lastScheduleTime"], now) if of.get("lastScheduleTime") else NONE,
        *containers(job.get("template")),
        label_selector(job.get("selector")) or NONE,
    ]


BATCH: Final = {
    ("batch", "Job"): printer(f"Name|Status|Completions|Duration|Age|{OF_TEMPLATE}", _job),
    ("batch", "CronJob"): printer(
        f"Name|Schedule|Timezone|Suspend:boolean|Active:integer|Last Schedule|Age|{OF_TEMPLATE}", _cron_job
    ),
}


def _ingress(obj: Object, _now: float) -> list[JSON]:
    desired = spec(obj)
    return [
        desired.get("ingressClassName", NONE),
        _hosts(desired.get("rules") or ()),
        load_balancer(obj),
        "80, 443" if desired.get("tls") else "80",
    ]


def _hosts(rules: tuple[Object, ...] | list[Object]) -> str:
    """The first three hosts. Rules without a host count among the others."""
    hosts: list[str] = []
    more = False
    for rule in rules:
        more = more or len(hosts) == 3
        if not more and rule.get("host"):
            hosts.append(rule["host"])
    return ",".join(hosts) + (f" + {len(rules) - 3} more..." if more else "") or "*"


_PLAIN: Final = printer("Name|Age", lambda _obj, _now: [])
PRINTERS: Final[Mapping[tuple[str, str], Printer]] = {
    ("", "Pod"): POD,
    **CORE,
    **APPS,
    **BATCH,
    ("networking.k8s.io", "Ingress"): printer("Name|Class|Hosts|Address|Ports|Age", _ingress),
}


def columns(kind: Kind) -> tuple[ColumnDefinition, ...]:
    return PRINTERS.get((kind.group, kind.kind), _PLAIN).columns


def cells(kind: Kind, obj: Object, now: float) -> list[JSON]:
    """One value for each column. `now` is in seconds since 1970."""
    return PRINTERS.get((kind.group, kind.kind), _PLAIN).cells(obj, now)


def conditions(kind: Kind, obj: Object) -> list[dict[str, Any]]:
    """The conditions of the row; only pods that have ended have one."""
    return pod_conditions(obj) if (kind.group, kind.kind) == ("", "Pod") else []
