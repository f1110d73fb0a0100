"""The columns and cells of the built-in kinds that authors of templates meet. Others show when they were created, as
the kinds do for which Kubernetes has no printer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.tables.cell_text import (
    NONE,
    OF_TEMPLATE,
    UNKNOWN,
    UNSET,
    ColumnDefinition,
    Printer,
    annotation,
    boolean,
    containers,
    first_three,
    human_duration,
    is_being_deleted,
    is_true,
    label_selector,
    labels,
    load_balancer,
    name,
    printer,
    since,
    spec,
    status,
)
from ruleop.localcluster.tables.core import CORE, POD, pod_conditions
from ruleop.localcluster.timestamps import seconds_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.kubernetes.kinds import JSON, Kind, Object


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


def _replication_controller(obj: Object, now: float) -> list[JSON]:
    selector = {"matchLabels": spec(obj).get("selector") or {}}
    return _replica_set({**obj, "spec": {**spec(obj), "selector": selector}}, now)


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
    ("", "ReplicationController"): printer(
        f"Name|Desired:integer|Current:integer|Ready:integer|Age|{OF_TEMPLATE}", _replication_controller
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


def _endpoint_slice(obj: Object, _now: float) -> list[JSON]:
    ports = [str(port.get("port", port.get("name", "*"))) for port in obj.get("ports") or ()]
    addresses = [each for endpoint in obj.get("endpoints") or () for each in endpoint.get("addresses") or ()]
    return [
        obj.get("addressType", ""),
        first_three(ports, UNSET),
        first_three(addresses, UNSET),
    ]


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


def _ingress_class(obj: Object, _now: float) -> list[JSON]:
    parameters, text = spec(obj).get("parameters"), NONE
    if parameters is not None:
        group = f".{parameters['apiGroup']}" if "apiGroup" in parameters else ""
        text = f"{parameters['kind']}{group}/{parameters['name']}"
    return [spec(obj).get("controller", ""), text]


def _title_of_class(obj: Object) -> str:
    """Of a StorageClass or an IngressClass."""
    prefixes = ("storageclass.kubernetes.io", "storageclass.beta.kubernetes.io", "ingressclass.kubernetes.io")
    is_default = any(annotation(obj, f"{prefix}/is-default-class") == "true" for prefix in prefixes)
    return f"{name(obj)} (default)" if is_default else name(obj)


NETWORKING: Final = {
    ("discovery.k8s.io", "EndpointSlice"): printer("Name|AddressType|Ports|Endpoints|Age", _endpoint_slice),
    ("networking.k8s.io", "Ingress"): printer("Name|Class|Hosts|Address|Ports|Age", _ingress),
    ("networking.k8s.io", "IngressClass"): printer("Name|Controller|Parameters|Age", _ingress_class, _title_of_class),
    ("networking.k8s.io", "NetworkPolicy"): printer(
        "Name|Pod-Selector|Age", lambda obj, _: [label_selector(spec(obj).get("podSelector")) or NONE]
    ),
}


_METRICS = ("External", "Pods", "Object", "Resource", "ContainerResource")


def _autoscaler(obj: Object, _now: float) -> list[JSON]:
    desired = spec(obj)
    target = desired.get("scaleTargetRef") or {}
    return [
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(obj),
        str(desired.get("minReplicas", UNSET)),
        desired.get("maxReplicas", 0),
        status(obj).get("currentReplicas", 0),
    ]


def _metrics(obj: Object) -> str:
    metrics, current = spec(obj).get("metrics") or [], status(obj).get("currentMetrics") or []
    texts = [_metric(each, current[index] if index < len(current) else {}) for index, each in enumerate(metrics)]
    return ", ".join(texts[:2]) + (f" + {len(texts) - 2} more..." if len(texts) > 2 else "") or NONE


def _metric(metric: Object, of: Object) -> str:
    member = {kind: f"{kind[:1].lower()}{kind[1:]}" for kind in _METRICS}.get(metric.get("type", ""))
    if member is None:
        return "<unknown type>"
    source, current = metric.get(member) or {}, (of.get(member) or {}).get("current") or {}
    target = source.get("target") or {}
    average = target.get("averageValue")
    if member in ("resource", "containerResource"):
        if average is not None:
            return f"{source.get('name')}: {current.get('averageValue', UNKNOWN)}/{average}"
        return f"{source.get('name')}: {_percent(current, UNKNOWN)}/{_percent(target, '<auto>')}"
    if member == "pods":
        return f"{current.get('averageValue', UNKNOWN)}/{average}"
    if average is not None:
        return f"{current.get('averageValue', UNKNOWN)}/{average} (avg)"
    return f"{current.get('value', UNKNOWN)}/{target.get('value')}"


def _percent(value: Object, missing: str) -> str:
    share = value.get("averageUtilization")
    return missing if share is None else f"{share}%"


AUTOSCALING: Final = {
    ("autoscaling", "HorizontalPodAutoscaler"): printer(
        "Name|Reference|Targets|MinPods|MaxPods|Replicas|Age", _autoscaler
    ),
}


def _binding(obj: Object, _now: float) -> list[JSON]:
    role, subjects = obj.get("roleRef") or {}, obj.get("subjects") or ()
    accounts = [f"{each.get('namespace', '')}/{each['name']}" for each in subjects if each["kind"] == "ServiceAccount"]
    return [
        f"{role.get('kind', '')}/{role.get('name', '')}",
        *(", ".join(each["name"] for each in subjects if each["kind"] == kind) for kind in ("User", "Group")),
        ", ".join(accounts),
    ]


def _storage_class(obj: Object, _now: float) -> list[JSON]:
    return [
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        obj.get("allowVolumeExpansion", False),
    ]


_BINDINGS: Final = printer("Name|Role|Age|Users+|Groups+|ServiceAccounts+", _binding)
_RBAC: Final = "rbac.authorization.k8s.io"
OTHERS: Final = {
    ("coordination.k8s.io", "Lease"): printer(
        "Name|Holder|Age", lambda obj, _: [spec(obj).get("holderIdentity") or ""]
    ),
    ("policy", "PodDisruptionBudget"): printer(
        "Name|Min Available|Max Unavailable|Allowed Disruptions:integer|Age",
        lambda obj, _: [
            *(str(spec(obj).get(limit, "N/A")) for limit in ("minAvailable", "maxUnavailable")),
            status(obj).get("disruptionsAllowed", 0),
        ],
    ),
    (_RBAC, "RoleBinding"): _BINDINGS,
    (_RBAC, "ClusterRoleBinding"): _BINDINGS,
    ("scheduling.k8s.io", "PriorityClass"): printer(
        "Name|Value:integer|Global-Default:boolean|Age|PreemptionPolicy",
        lambda obj, _: [obj.get("value", 0), obj.get("globalDefault", False), obj.get("preemptionPolicy", "")],
    ),
    ("storage.k8s.io", "StorageClass"): printer(
        "Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age", _storage_class, _title_of_class
    ),
}


_PLAIN: Final = printer("Name|Created At:date", lambda obj, _: [obj["metadata"].get("creationTimestamp")])
PRINTERS: Final[Mapping[tuple[str, str], Printer]] = {
    ("", "Pod"): POD,
    **CORE,
    **APPS,
    **AUTOSCALING,
    **BATCH,
    **NETWORKING,
    **OTHERS,
}


def columns(kind: Kind) -> tuple[ColumnDefinition, ...]:
    return PRINTERS.get((kind.group, kind.kind), _PLAIN).columns


def cells(kind: Kind, obj: Object, now: float) -> list[JSON]:
    """One value for each column. `now` is in seconds since 1970."""
    return PRINTERS.get((kind.group, kind.kind), _PLAIN).cells(obj, now)


def conditions(kind: Kind, obj: Object) -> list[dict[str, Any]]:
    """The conditions of the row; only pods that have ended have one."""
    return pod_conditions(obj) if (kind.group, kind.kind) == ("", "Pod") else []
