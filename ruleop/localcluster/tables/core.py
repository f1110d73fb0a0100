"""Rows of Services, volumes, configuration, events, nodes and namespaces. `pods` has those of pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.localcluster.tables.cell_text import (
    NONE,
    UNKNOWN,
    UNSET,
    age,
    annotation,
    condition,
    count,
    field,
    first_three,
    is_being_deleted,
    labels,
    load_balancer,
    name,
    since,
    spec,
    status,
    with_age,
)
from ruleop.localcluster.tables.printer import printer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.core.kinds import JSON, Object

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}

_ROLE_LABEL, _OLD_ROLE_LABEL = "node-role.kubernetes.io/", "kubernetes.io/role"


def _node(obj: Object, now: float) -> list[JSON]:
    info = status(obj).get("nodeInfo") or {}
    ready = condition(obj, "Ready")
    states = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if spec(obj).get("unschedulable"):
        states.append("SchedulingDisabled")
    kernel = info.get("kernelVersion") or UNKNOWN
    return [
        name(obj),
        ",".join(states),
        _roles(obj) or NONE,
        age(obj, now),
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
        name(obj),
    ]


def _quota(obj: Object, now: float) -> list[JSON]:
    hard, used = status(obj).get("hard") or {}, status(obj).get("used") or {}
    texts = {resource: f"{resource}: {used.get(resource, '0')}/{hard[resource]}" for resource in sorted(hard)}
    limits = ", ".join(text for resource, text in texts.items() if resource.startswith("limits."))
    requests = ", ".join(text for resource, text in texts.items() if not resource.startswith("limits."))
    return [name(obj), requests, limits, age(obj, now)]


def _config_map(obj: Object, now: float) -> list[JSON]:
    return [name(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age(obj, now)]


def _service(obj: Object, now: float) -> list[JSON]:
    desired = spec(obj)
    return [
        name(obj),
        desired.get("type", "ClusterIP"),
        next(iter(desired.get("clusterIPs") or ()), NONE),
        _external_address(obj),
        ",".join(_service_port(port) for port in desired.get("ports") or ()) or NONE,
        age(obj, now),
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


def _endpoints(obj: Object, now: float) -> list[JSON]:
    found: list[str] = []
    for subset in obj.get("subsets") or ():
        addresses = [each["ip"] for each in subset.get("addresses") or ()]
        ports = subset.get("ports")
        found += [_joined(each, port["port"]) for port in ports for each in addresses] if ports else addresses
    return [name(obj), first_three(found, "" if obj.get("subsets") else NONE), age(obj, now)]


def _joined(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _volume(obj: Object, now: float) -> list[JSON]:
    desired = spec(obj)
    claim = desired.get("claimRef")
    return [
        name(obj),
        _size(desired.get("capacity")),
        _access_modes(desired.get("accessModes") or ()),
        desired.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim is not None else "",
        _class(obj),
        desired.get("volumeAttributesClassName", UNSET),
        status(obj).get("reason", ""),
        age(obj, now),
        desired.get("volumeMode", UNSET),
    ]


def _claim(obj: Object, now: float) -> list[JSON]:
    desired, of = spec(obj), status(obj)
    is_bound = bool(desired.get("volumeName"))
    return [
        name(obj),
        _phase(obj),
        desired.get("volumeName", ""),
        _size(of.get("capacity")) if is_bound else "",
        _access_modes(of.get("accessModes") or ()) if is_bound else "",
        _class(obj),
        desired.get("volumeAttributesClassName", UNSET),
        age(obj, now),
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
    ("", "Endpoints"): printer("Name|Endpoints|Age", _endpoints),
    ("", "Event"): _EVENTS,
    ("events.k8s.io", "Event"): _EVENTS,
    ("", "Namespace"): printer("Name|Status|Age", with_age(field("status", "phase"))),
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
    ("", "ResourceQuota"): printer("Name|Request|Limit|Age", _quota),
    ("", "Secret"): printer("Name|Type|Data|Age", with_age(field("type"), count("data"))),
    ("", "Service"): printer("Name|Type|Cluster-IP|External-IP|Port(s)|Age|Selector+", _service),
    ("", "ServiceAccount"): printer("Name|Age", with_age()),
}
