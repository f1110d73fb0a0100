"""The columns and cells of the built-in kinds that authors of templates meet. Others show their names and ages.

The status of a pod is one line: that it is being deleted, an init container that has not completed, a container that
waits or has ended, the pod's own reason or phase.
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


def pod_cells(pod: Object, now: float) -> list[JSON]:
    of_pod, init = status(pod), spec(pod).get("initContainers") or ()
    begun, sidecars = of_pod.get("initContainerStatuses") or [], [each["name"] for each in init if _is_sidecar(each)]
    statuses = of_pod.get("containerStatuses") or []
    counted = [*(each for each in begun if each["name"] in sidecars), *statuses]
    reason = _init_reason(begun, sidecars, len(init))
    if reason:
        counted = begun
    if is_being_deleted(pod) and of_pod.get("phase") not in _CONDITIONS:
        reason = "Terminating"
    restarts, latest = _restarts(counted)
    return [
        f"{sum(bool(each.get('ready')) for each in counted)}/{len(spec(pod).get('containers') or ()) + len(sidecars)}",
        reason or _reason(pod, statuses),
        f"{restarts} ({since(latest, now)} ago)" if restarts and latest else str(restarts),
        next((each.get("ip") for each in of_pod.get("podIPs") or ()), None) or NONE,
        spec(pod).get("nodeName") or NONE,
        of_pod.get("nominatedNodeName") or NONE,
        _gates(pod),
    ]


def _is_sidecar(container: Object) -> bool:
    """Whether an init container keeps running."""
    return container.get("restartPolicy") == "Always"


def _init_reason(begun: list[Object], sidecars: list[str], total: int) -> str:
    """The state of the first init container that has neither completed nor is a sidecar that has started."""
    for index, each in enumerate(begun):
        found = _ending(each)
        if found != "Completed" and not (each["name"] in sidecars and each.get("started")):
            return f"Init:{found}" if found and found != "PodInitializing" else f"Init:{index}/{total}"
    return ""


def _reason(pod: Object, statuses: list[Object]) -> str:
    reasons = [_ending(each) for each in statuses]
    found = next((each for each in reasons if each and each != "Completed"), None)
    if found is not None or "Completed" not in reasons:
        return str(found or status(pod).get("reason") or status(pod).get("phase", ""))
    if all(reasons):
        return "Completed"
    return "Running" if is_true(pod, "Ready") else "NotReady"


def _ending(container: Object) -> str:
    """The reason that a container waits or has ended; empty if it runs."""
    state = container.get("state") or {}
    if (ended := state.get("terminated")) is not None:
        code = ended.get("exitCode", 0)
        return str(ended.get("reason") or (f"ExitCode:{code}" if code else "Completed"))
    return str((state.get("waiting") or {}).get("reason", ""))


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

_ROLE_LABEL = "node-role.kubernetes.io/"


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
    return ",".join(sorted(key.removeprefix(_ROLE_LABEL) for key in labels if key.startswith(_ROLE_LABEL)))


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
    """The conditions of the row: kubectl can leave out the pods that have ended."""
    phase = status(obj).get("phase", "")
    if (kind.group, kind.kind) != ("", "Pod") or phase not in _CONDITIONS:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _CONDITIONS[phase]}]
