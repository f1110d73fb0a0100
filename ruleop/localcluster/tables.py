"""The rows of `kubectl get`: columns and cells of built-in kinds, as Kubernetes prints them, and of custom kinds, by
their printer columns. Pure functions of an object and a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.kubernetes.crd import PrinterColumn
from ruleop.kubernetes.kinds import JSON, Object, is_being_deleted, is_true
from ruleop.kubernetes.times import seconds_of
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ruleop.kubernetes.kinds import Kind


# -- printers, and the parts of cells --------------------------------------------------------------------------------


Cells = Callable[[Object, float], list[JSON]]
"""The cells of an object at a time, in seconds since 1970."""


NAME: Final = PrinterColumn("Name", "string", "", format="name")


@dataclass(frozen=True, slots=True)
class Printer:
    columns: tuple[PrinterColumn, ...]  # those with a priority are only in `kubectl get -o wide`
    cells: Cells  # one value for each column

    def definitions(self) -> list[dict[str, Any]]:
        names = ("name", "type", "format", "description", "priority")
        return [{name: getattr(each, name) for name in names} for each in self.columns]


def printer(columns: str, others: Cells = lambda _obj, _now: []) -> Printer:
    """A printer with columns such as `Name|Ready:integer|IP+|Node=spec.nodeName?<none>`: names, types other than
    string, a plus for those that are only in `-o wide`, and perhaps the path of the value with what is shown without
    one. `others`: the cells of an object beside these and those that many kinds have."""
    texts = [each.partition("=") for each in columns.split("|")]
    paths = [path.partition("?")[::2] for _, _, path in texts]
    shown = tuple(_column(each) for each, _, _ in texts)

    def cells(obj: Object, now: float) -> list[JSON]:
        values, own = iter(others(obj, now)), {"Name": name(obj), "Age": age(obj, now)}
        if "Images+" in columns:
            own |= _of_template(spec(spec(obj).get("jobTemplate") or obj))
        return [
            own[each.name] if each.name in own else _value(obj, path, default) if path else next(values)
            for each, (path, default) in zip(shown, paths, strict=True)
        ]

    return Printer(shown, cells)


def _of_template(desired: Object) -> dict[str, str]:
    found = spec(desired.get("template") or {}).get("containers") or ()
    return {
        "Containers": ",".join(each["name"] for each in found),
        "Images": ",".join(each.get("image", "") for each in found),
        "Selector": label_selector(desired.get("selector")) or NONE,
    }


def _value(obj: JSON, path: str, default: str) -> JSON:
    for step in path.split("."):
        obj = (obj or {}).get(step)
    return (int(default) if default.isdecimal() else default) if obj in (None, "") else obj


def _column(text: str) -> PrinterColumn:
    name, _, of_type = text.rstrip("+").partition(":")
    form = "name" if name == "Name" else ""
    return PrinterColumn(name, of_type or "string", "", format=form, priority=int(text.endswith("+")))


OF_TEMPLATE: Final = "Containers+|Images+|Selector+"
"""The columns of what makes pods."""


NONE: Final = "<none>"
UNSET: Final = "<unset>"
UNKNOWN: Final = "<unknown>"
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def human_duration(seconds: float) -> str:
    """Two or three significant figures: 5s, 3m20s, 12m, 5h3m, 30h, 5d2h, 100d, 3y40d."""
    whole = int(seconds)
    if whole < -1:  # a second's difference between clocks is not an error
        return "<invalid>"
    minutes, hours, days = whole // _MINUTE, whole // _HOUR, whole // _DAY
    years = days // 365
    if whole < 2 * _MINUTE:
        return f"{max(whole, 0)}s"
    if minutes < 10:
        return _pair(minutes, "m", whole % _MINUTE, "s")
    if minutes < 3 * 60:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _pair(days, "d", hours % 24, "h")
    if years < 2:
        return f"{days}d"
    return _pair(years, "y", days % 365, "d") if years < 8 else f"{years}y"


def _pair(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"


def since(timestamp: JSON, now: float) -> str:
    return human_duration(now - seconds_of(timestamp)) if timestamp else UNKNOWN


def name(obj: Object) -> str:
    found: str = obj["metadata"].get("name", "")
    return found


def age(obj: Object, now: float) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)


def annotation(obj: Object, key: str) -> str:
    found: str = (obj["metadata"].get("annotations") or {}).get(key, "")
    return found


def spec(obj: Object) -> Object:
    found: Object = obj.get("spec") or {}
    return found


def status(obj: Object) -> Object:
    found: Object = obj.get("status") or {}
    return found


def labels(found: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((found or {}).items())) or NONE


def label_selector(selector: Object | None) -> str:
    """A LabelSelector as `kubectl -l` takes it; empty if it selects everything or nothing."""
    selector = selector or {}
    parts = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for each in selector.get("matchExpressions") or ():
        key, values = each["key"], ",".join(sorted(each.get("values") or ()))
        match each["operator"]:
            case "In":
                parts.append((key, f"{key} in ({values})"))
            case "NotIn":
                parts.append((key, f"{key} notin ({values})"))
            case "Exists":
                parts.append((key, key))
            case _:
                parts.append((key, f"!{key}"))
    return ",".join(text for _, text in sorted(parts, key=lambda part: part[0]))


def boolean(value: JSON) -> str:
    return UNSET if value is None else "True" if value else "False"


def condition(obj: Object, of_type: str) -> Object | None:
    conditions: Iterable[Object] = status(obj).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == of_type), None)


def load_balancer(obj: Object) -> str:
    ingress = (status(obj).get("loadBalancer") or {}).get("ingress") or ()
    return ",".join(sorted({found for each in ingress if (found := each.get("ip") or each.get("hostname"))}))


# -- custom kinds ----------------------------------------------------------------------------------------------------
#
# Of the JSONPath of printer columns, the common form: `.spec.size`, `.metadata.labels.app\.kubernetes\.io/name`,
# `.items[0].name`, `.items[*].name`, `.conditions[?(@.type=="Ready")].status`. A column with another path is empty.


_STEP: Final = re.compile(
    r"""\.(?P<field>(?:\\.|[^.\[\\])+)
    |\[(?P<index>\d+|\*)\]
    |\[\?\(\s*@\.(?P<key>\w+)\s*==\s*(?P<quote>['"])(?P<value>[^'"]*)(?P=quote)\s*\)\]""",
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\(.)")


def values_at(path: str, value: JSON) -> list[JSON]:
    """The values at a path; none if it leads nowhere."""
    found, position = [value], 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            return []
        found, position = [each for one in found for each in _members(match, one)], match.end()
    return found


def _members(step: re.Match[str], value: JSON) -> list[JSON]:
    if isinstance(value, dict):
        name = _ESCAPE.sub(r"\1", step["field"] or "")
        return [value[name]] if name in value else []
    if not isinstance(value, list) or step["field"]:
        return []
    if step["key"]:
        return [each for each in value if isinstance(each, dict) and each.get(step["key"]) == step["value"]]
    return value if step["index"] == "*" else value[int(step["index"]) :][:1]


_AGE: Final = (PrinterColumn("Age", "date", ".metadata.creationTimestamp"),)


def custom_printer(declared: Sequence[PrinterColumn]) -> Printer:
    """The name, and the declared columns; without any, the age."""
    others = declared or _AGE
    described = (
        replace(each, description=f"Custom resource definition column (in JSONPath format): {each.json_path}")
        if not each.description
        else each
        for each in others
    )
    return Printer((NAME, *described), lambda obj, now: [name(obj), *(_cell(each, obj, now) for each in others)])


def _cell(column: PrinterColumn, obj: Object, now: float) -> JSON:
    found = values_at(column.json_path, obj)
    if not found:
        return None
    value = found[0]
    if column.type == "string":
        return _text(value)
    return None if value is None else _typed(column.type, value, now)


def _typed(of_type: str, value: JSON, now: float) -> JSON:
    """The value, if it is of the column's type."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match of_type:
        case "integer":
            return int(value) if is_number else None
        case "number":
            return value if is_number else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date" if isinstance(value, str):
            try:
                return since(value, now)
            except ValueError:
                return "<invalid>"
        case _:
            return None


def _text(value: JSON) -> str:
    """The value as JSON, without quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list | float):
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    return "<no value>" if value is None else str(value)


# -- built-in kinds --------------------------------------------------------------------------------------------------


_CONDITIONS: Mapping[str, str] = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def pod_cells(pod: Object, now: float) -> list[JSON]:
    of_pod, init = status(pod), spec(pod).get("initContainers") or ()
    begun, sidecars = of_pod.get("initContainerStatuses") or [], [each["name"] for each in init if _is_sidecar(each)]
    statuses = of_pod.get("containerStatuses") or []
    counted = [*(each for each in begun if each["name"] in sidecars), *statuses]
    number, reason = _init_reason(begun, sidecars, len(init))
    if reason:
        counted = begun[:number]
    if is_being_deleted(pod) and of_pod.get("phase") not in _CONDITIONS:
        reason = "Terminating"
    restarts, latest = _restarts(counted)
    ready = sum(bool(each.get("ready")) and not _ending(each) for each in counted)
    return [
        f"{ready}/{len(spec(pod).get('containers') or ()) + len(sidecars)}",
        reason or _reason(pod, statuses),
        f"{restarts} ({since(latest, now)} ago)" if restarts and latest else str(restarts),
        next((each.get("ip") for each in of_pod.get("podIPs") or ()), None) or NONE,
        _gates(pod),
    ]


def _is_sidecar(container: Object) -> bool:
    """Whether an init container keeps running."""
    return container.get("restartPolicy") == "Always"


def _init_reason(begun: list[Object], sidecars: list[str], total: int) -> tuple[int, str]:
    """The state of the first init container that has neither completed nor is a sidecar that has started, and how many
    there are up to it."""
    for index, each in enumerate(begun):
        found = _ending(each)
        if found != "Completed" and not (each["name"] in sidecars and each.get("started")):
            return index + 1, f"Init:{found}" if found and found != "PodInitializing" else f"Init:{index}/{total}"
    return 0, ""


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


POD = printer(
    "Name|Ready|Status|Restarts|Age|IP+|Node+=spec.nodeName?<none>|Nominated Node+=status.nominatedNodeName?<none>|"
    "Readiness Gates+",
    pod_cells,
)


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
        _address(obj, "InternalIP"),
        _address(obj, "ExternalIP"),
        f"{kernel} ({info['architecture']})" if info.get("architecture") else kernel,
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
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim is not None else "",
        _class(obj),
    ]


def _claim(obj: Object, _now: float) -> list[JSON]:
    of, is_bound = status(obj), bool(spec(obj).get("volumeName"))
    return [
        _phase(obj),
        _size(of.get("capacity")) if is_bound else "",
        _access_modes(of.get("accessModes") or ()) if is_bound else "",
        _class(obj),
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
    ("", "Namespace"): printer("Name|Status=status.phase|Age"),
    ("", "Node"): printer(
        "Name|Status|Roles|Age|Version=status.nodeInfo.kubeletVersion|Internal-IP+|External-IP+|"
        "OS-Image+=status.nodeInfo.osImage?<unknown>|Kernel-Version+|"
        "Container-Runtime+=status.nodeInfo.containerRuntimeVersion?<unknown>",
        _node,
    ),
    ("", "PersistentVolume"): printer(
        "Name|Capacity|Access Modes|Reclaim Policy=spec.persistentVolumeReclaimPolicy|Status|Claim|StorageClass|"
        "VolumeAttributesClass=spec.volumeAttributesClassName?<unset>|Reason=status.reason|Age|"
        "VolumeMode+=spec.volumeMode?<unset>",
        _volume,
    ),
    ("", "PersistentVolumeClaim"): printer(
        "Name|Status|Volume=spec.volumeName|Capacity|Access Modes|StorageClass|"
        "VolumeAttributesClass=spec.volumeAttributesClassName?<unset>|Age|VolumeMode+=spec.volumeMode?<unset>",
        _claim,
    ),
    ("", "Secret"): printer("Name|Type=type|Data|Age", lambda obj, _: [len(obj.get("data") or ())]),
    ("", "Service"): printer("Name|Type=spec.type?ClusterIP|Cluster-IP|External-IP|Port(s)|Age|Selector+", _service),
}


def _ready(obj: Object, _now: float) -> list[JSON]:
    return [f"{status(obj).get('readyReplicas', 0)}/{spec(obj).get('replicas', 1)}"]


def _node_selector(obj: Object, _now: float) -> list[JSON]:
    return [labels(spec(spec(obj).get("template") or {}).get("nodeSelector"))]


APPS: Final = {
    ("apps", "Deployment"): printer(
        f"Name|Ready|Up-to-date=status.updatedReplicas?0|Available=status.availableReplicas?0|Age|{OF_TEMPLATE}", _ready
    ),
    ("apps", "ReplicaSet"): printer(
        "Name|Desired:integer=spec.replicas?1|Current:integer=status.replicas?0|Ready:integer=status.readyReplicas?0|"
        f"Age|{OF_TEMPLATE}"
    ),
    ("apps", "StatefulSet"): printer("Name|Ready|Age|Containers+|Images+", _ready),
    ("apps", "DaemonSet"): printer(
        "Name|Desired:integer=status.desiredNumberScheduled?0|Current:integer=status.currentNumberScheduled?0|"
        "Ready:integer=status.numberReady?0|Up-to-date:integer=status.updatedNumberScheduled?0|"
        f"Available:integer=status.numberAvailable?0|Node Selector|Age|{OF_TEMPLATE}",
        _node_selector,
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
    return [_job_status(obj), completions, duration]


def _job_status(obj: Object) -> str:
    for of_type in ("Complete", "Failed"):
        if is_true(obj, of_type):
            return of_type
    if is_being_deleted(obj):
        return "Terminating"
    kept = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((of_type for of_type in kept if is_true(obj, of_type)), "Running")


def _cron_job(obj: Object, now: float) -> list[JSON]:
    of = status(obj)
    last = since(of["lastScheduleTime"], now) if of.get("lastScheduleTime") else NONE
    return [boolean(spec(obj).get("suspend")), len(of.get("active") or ()), last]


BATCH: Final = {
    ("batch", "Job"): printer(f"Name|Status|Completions|Duration|Age|{OF_TEMPLATE}", _job),
    ("batch", "CronJob"): printer(
        "Name|Schedule=spec.schedule|Timezone=spec.timeZone?<none>|Suspend:boolean|Active:integer|Last Schedule|Age|"
        + OF_TEMPLATE,
        _cron_job,
    ),
}


def _ingress(obj: Object, _now: float) -> list[JSON]:
    desired = spec(obj)
    return [_hosts(desired.get("rules") or ()), load_balancer(obj), "80, 443" if desired.get("tls") else "80"]


def _hosts(rules: tuple[Object, ...] | list[Object]) -> str:
    """The first three hosts. Rules without a host count among the others."""
    hosts: list[str] = []
    more = False
    for rule in rules:
        more = more or len(hosts) == 3
        if not more and rule.get("host"):
            hosts.append(rule["host"])
    return ",".join(hosts) + (f" + {len(rules) - 3} more..." if more else "") or "*"


PLAIN: Final = printer("Name|Age")
PRINTERS: Final[Mapping[tuple[str, str], Printer]] = {
    ("", "Pod"): POD,
    **CORE,
    **APPS,
    **BATCH,
    ("networking.k8s.io", "Ingress"): printer(
        "Name|Class=spec.ingressClassName?<none>|Hosts|Address|Ports|Age", _ingress
    ),
}


def printer_of(kind: Kind) -> Printer:
    return PRINTERS.get((kind.group, kind.kind), PLAIN)


def conditions(kind: Kind, obj: Object) -> list[dict[str, Any]]:
    """The conditions of the row: kubectl can leave out the pods that have ended."""
    phase = status(obj).get("phase", "")
    if (kind.group, kind.kind) != ("", "Pod") or phase not in _CONDITIONS:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _CONDITIONS[phase]}]
