"""Objects of built-in kinds as the server stores them: with defaults, without empty fields, quantities canonical.

The server decodes an object into Go types, fills in defaults, and writes it again. Which empty fields are written, and
which defaults there are, depends on the types alone."""

from __future__ import annotations

from functools import partial
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.quantity import canonical_quantity
from ruleop.kubernetes.schema import ANYTHING, DERIVED, EMPTY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.schema import Shape


# What servers of other versions fill in, or what is filled in only with defaults, or by strategies.
_NOT_DERIVED: Final = {
    ("io.k8s.api.core.v1.PodTemplateSpec", "hostPort"),
    ("io.k8s.api.apps.v1.StatefulSetUpdateStrategy", "rollingUpdate"),
    *(("io.k8s.api.core.v1.ServiceSpec", name) for name in ("clusterIPs", "ipFamilyPolicy")),
    *(("io.k8s.api.core.v1.PersistentVolumeClaimSpec", name) for name in ("dataSource", "dataSourceRef")),
}
_ZEROS: Final[tuple[Any, ...]] = ("", False, 0)


def complete(obj: Object, shape: Shape, old: Object | None = None) -> dict[str, Any]:
    """The object with its defaults. Its metadata stay as they are. Parts that are those of an earlier version,
    which is complete, are taken as they are."""
    found = {name: value for name, value in obj.items() if name != "metadata"}
    return {**_struct(found, _plan(shape), old or EMPTY), "metadata": obj["metadata"]}


def as_stored(obj: dict[str, Any], shape: Shape) -> dict[str, Any]:
    """The object as the server reads it again after it stored it: etcd does not tell an empty list from none. Fields
    are tracked before."""
    empty = [name for name in ALWAYS_WRITTEN.get(shape.name, EMPTY) if obj.get(name) == []]
    return {**obj, **dict.fromkeys(empty)} if empty else obj


class _Plan:
    """Instructions for the values of one type."""

    __slots__ = ("always", "derived", "dropped", "empties", "fields", "fill", "fills", "texts")

    def __init__(self, shape: Shape) -> None:
        name, defaults = shape.name, shape.defaults
        skipped, kept = NOT_FILLED.get(name, ()), KEPT_EMPTY.get(name, ())
        self.fields = shape.fields
        # Values that are as good as none: the zero of a field without pointer, an empty list or map.
        self.dropped = {
            each: value for each, value in defaults.items() if value in _ZEROS and each not in shape.required
        }
        written = ALWAYS_WRITTEN.get(name, EMPTY)
        self.empties = frozenset(
            each
            for each, child in shape.fields.items()
            if child.drops_empty and each not in shape.required and each not in kept and each not in written
        )
        self.texts = frozenset(
            each for each, value in defaults.items() if isinstance(value, str) and value and each not in kept
        )
        more = TYPE_DEFAULTS.get(name) or {}
        self.fills = {each: value for each, value in defaults.items() if value not in _ZEROS and each not in skipped}
        self.fills.update({each: value for each, value in more.items() if each not in self.fills})
        self.fills = {each: _value(value, shape.fields[each], None) for each, value in self.fills.items()}
        always: dict[str, Any] = dict(ALWAYS_WRITTEN.get(name) or {})
        if name.endswith("Condition"):  # times that are no pointers in Go
            always |= {each: None for each, child in shape.fields.items() if child.format == "date-time"}
        self.fill, self.always, self.derived = FILLED.get(name), always or None, shape.derived


_PLANS: Final[dict[int, tuple[Shape, _Plan]]] = {}


def _plan(shape: Shape) -> _Plan:
    found = _PLANS.get(id(shape))
    if found is None:
        found = _PLANS[id(shape)] = (shape, _Plan(shape))
    return found[1]


def _value(value: Any, shape: Shape, known: Any) -> Any:
    kind = type(value)
    if kind is dict:
        if shape.fields:
            return _struct(value, _plan(shape), known if type(known) is dict else EMPTY)
        if shape.values is not None:
            return {name: _value(each, shape.values, None) for name, each in value.items()}
        return value
    if kind is list:
        if shape.items is None:
            return value
        before = known if type(known) is list else ()
        return [
            each if each is old else _value(each, shape.items, old)
            for each, old in zip(value, chain(before, repeat(None)), strict=False)
        ]
    return canonical_quantity(value) if shape.format == "quantity" else value


def _struct(value: dict[str, Any], plan: _Plan, known: Object) -> dict[str, Any]:
    fields, dropped, empties = plan.fields, plan.dropped, plan.empties
    found: dict[str, Any] = {}
    for name, each in value.items():
        child = fields.get(name)
        before = known.get(name)
        if child is None or (each is before and each is not None):
            found[name] = each
            continue
        if each is None or (each == "" and name in plan.texts):
            continue
        new = each if type(each) is str and not child.format else _value(each, child, before)
        if (not new and name in empties) or (name in dropped and new == dropped[name]):
            continue
        found[name] = new
    for name, default in plan.fills.items():
        if name not in found:
            found[name] = default
    if plan.fill is not None:
        plan.fill(found)
    if plan.always is not None:
        for name, default in plan.always.items():
            found.setdefault(name, default)
    if plan.derived:
        _derive(found, plan.derived)
    return found


def _derive(found: dict[str, Any], type_name: str) -> None:
    """Fills in fields that follow from others. The lists on the way are new, so their items may be changed; items of an
    earlier version have the fields already."""
    for each in DERIVED[type_name]:
        if (type_name, each.field) in _NOT_DERIVED:
            continue
        for holder in _holders(found, each.within):
            if each.field not in holder and (value := each.value(holder, found)) not in (None, ANYTHING):
                holder[each.field] = value


def _holders(value: Any, path: tuple[str, ...]) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [holder for each in value for holder in _holders(each, path)]
    if not isinstance(value, dict):
        return []
    return _holders(value.get(path[0]), path[1:]) if path else [value]


# -- defaults that the API does not declare, by the names of the types -----------------------------------------------
#
# From the SetDefaults functions of k8s.io/kubernetes/pkg/apis; a test compares what is stored with the real server.
# Defaults that matter to a merge are in `ruleop.kubernetes.schema.shape`.


_CORE, _APPS, _BATCH, _SCALING = (f"io.k8s.api.{each}" for each in ("core.v1", "apps.v1", "batch.v1", "autoscaling.v2"))
_NETWORKING, _STORAGE, _POLICY = (f"io.k8s.api.{each}.v1" for each in ("networking", "storage", "policy"))
_ADMISSION, _FLOW = "io.k8s.api.admissionregistration.v1", "io.k8s.api.flowcontrol.v1"
_MODE: Final = {"defaultMode": 420}
_ROLLING: Final = "RollingUpdate"
_WEBHOOK: Final = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
}

TYPE_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    f"{_CORE}.PodSpec": {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
    },
    f"{_CORE}.Container": {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    },
    f"{_CORE}.Probe": {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
    f"{_CORE}.HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    f"{_CORE}.GRPCAction": {"service": ""},
    f"{_CORE}.SecretVolumeSource": _MODE,
    f"{_CORE}.ConfigMapVolumeSource": _MODE,
    f"{_CORE}.DownwardAPIVolumeSource": _MODE,
    f"{_CORE}.ProjectedVolumeSource": _MODE,
    f"{_CORE}.HostPathVolumeSource": {"type": ""},
    f"{_CORE}.PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    f"{_CORE}.PersistentVolumeStatus": {"phase": "Pending"},
    f"{_CORE}.PersistentVolumeClaimStatus": {"phase": "Pending"},
    f"{_CORE}.Secret": {"type": "Opaque"},
    f"{_APPS}.DeploymentSpec": {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600},
    f"{_APPS}.DeploymentStrategy": {"type": _ROLLING},
    f"{_APPS}.ReplicaSetSpec": {"replicas": 1},
    f"{_APPS}.StatefulSetSpec": {
        "replicas": 1,
        "podManagementPolicy": "OrderedReady",
        "revisionHistoryLimit": 10,
        "persistentVolumeClaimRetentionPolicy": {},
    },
    f"{_APPS}.StatefulSetPersistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    f"{_APPS}.DaemonSetSpec": {"revisionHistoryLimit": 10},
    f"{_APPS}.DaemonSetUpdateStrategy": {"type": _ROLLING},
    f"{_BATCH}.CronJobSpec": {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    },
    f"{_SCALING}.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    f"{_NETWORKING}.IngressClassParametersReference": {"scope": "Cluster"},
    f"{_STORAGE}.StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    "io.k8s.api.scheduling.v1.PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    f"{_ADMISSION}.ValidatingWebhook": _WEBHOOK,
    f"{_ADMISSION}.MutatingWebhook": {**_WEBHOOK, "reinvocationPolicy": "Never"},
    f"{_ADMISSION}.ServiceReference": {"port": 443},
    f"{_ADMISSION}.ValidatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    f"{_ADMISSION}.MutatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    f"{_CORE}.ReplicationControllerSpec": {"replicas": 1},
    f"{_STORAGE}.CSIDriverSpec": {
        "attachRequired": True,
        "podInfoOnMount": False,
        "seLinuxMount": False,
        "storageCapacity": False,
    },
    f"{_FLOW}.FlowSchemaSpec": {"matchingPrecedence": 1000},
    f"{_FLOW}.LimitedPriorityLevelConfiguration": {"nominalConcurrencyShares": 30, "lendablePercent": 0},
    f"{_FLOW}.QueuingConfiguration": {"handSize": 8, "queueLengthLimit": 50, "queues": 64},
    "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.ServiceReference": {"port": 443},
}

NOT_FILLED: Final[Mapping[str, tuple[str, ...]]] = {
    # The group is that of users and groups, not of service accounts.
    "io.k8s.api.rbac.v1.Subject": ("apiGroup",),
}

KEPT_EMPTY: Final[Mapping[str, tuple[str, ...]]] = {
    # Empty, they are refused; missing, they have a default, or are shown otherwise in messages.
    f"{_SCALING}.HPAScalingRules": ("policies",),
    f"{_CORE}.PersistentVolumeClaimSpec": ("accessModes", "volumeMode"),
    f"{_CORE}.VolumeResourceRequirements": ("requests",),
    f"{_NETWORKING}.IngressSpec": ("rules",),
}

ALWAYS_WRITTEN: Final[Mapping[str, Mapping[str, Any]]] = {
    "io.k8s.api.rbac.v1.Role": {"rules": None},
    "io.k8s.api.rbac.v1.ClusterRole": {"rules": None},
    "io.k8s.api.discovery.v1.EndpointSlice": {"endpoints": None, "ports": None},
    f"{_CORE}.Event": {
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    },
    "io.k8s.api.events.v1.Event": {
        "eventTime": None,
        "deprecatedSource": {},
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
    },
    f"{_CORE}.TypedLocalObjectReference": {"apiGroup": None},
    f"{_CORE}.TypedObjectReference": {"apiGroup": None},
    f"{_CORE}.LimitRangeSpec": {"limits": None},
    "io.k8s.api.discovery.v1.EndpointPort": {"name": ""},
    f"{_APPS}.StatefulSetSpec": {"serviceName": ""},
    "io.k8s.apimachinery.pkg.apis.meta.v1.Condition": {"reason": "", "message": ""},
    f"{_APPS}.ReplicaSetStatus": {"replicas": 0},
    f"{_CORE}.ReplicationControllerStatus": {"replicas": 0},
    f"{_APPS}.StatefulSetStatus": {"replicas": 0, "availableReplicas": 0},
    f"{_APPS}.DaemonSetStatus": {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    },
    f"{_POLICY}.PodDisruptionBudgetStatus": {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    },
    f"{_SCALING}.HorizontalPodAutoscalerStatus": {"desiredReplicas": 0, "currentMetrics": None},
    f"{_CORE}.DaemonEndpoint": {"Port": 0},
    f"{_CORE}.NodeSystemInfo": dict.fromkeys(
        (
            "machineID",
            "systemUUID",
            "bootID",
            "kernelVersion",
            "osImage",
            "containerRuntimeVersion",
            "kubeletVersion",
            "kubeProxyVersion",
            "operatingSystem",
            "architecture",
        ),
        "",
    ),
}
"""Fields that the server writes although they are empty. The times of conditions are written, too."""


def _fill_volume(volume: dict[str, Any]) -> None:
    if not volume or volume.keys() == {"name"}:
        volume["emptyDir"] = {}


def _fill_rolling_update(strategy: dict[str, Any], *, unavailable: str | int, surge: str | int) -> None:
    if strategy["type"] == _ROLLING:
        given = strategy.get("rollingUpdate") or {}
        strategy["rollingUpdate"] = {"maxUnavailable": unavailable, "maxSurge": surge, **given}


def _fill_stateful_strategy(strategy: dict[str, Any]) -> None:
    if not strategy.get("type"):
        strategy["type"] = _ROLLING
        strategy.setdefault("rollingUpdate", {})
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == _ROLLING and rolling is not None:
        strategy["rollingUpdate"] = {"partition": 0, **rolling}


def _fill_subject(subject: dict[str, Any]) -> None:
    if subject.get("kind") in ("User", "Group"):
        subject.setdefault("apiGroup", "rbac.authorization.k8s.io")


def _fill_port(port: dict[str, Any]) -> None:
    port.setdefault("protocol", "TCP")
    if not port.get("targetPort"):
        port["targetPort"] = port.get("port", 0)


def _fill_role(binding: dict[str, Any]) -> None:
    reference = binding.get("roleRef") or {"kind": "", "name": ""}
    binding["roleRef"] = {"apiGroup": "rbac.authorization.k8s.io", **reference}


def _fill_ingress(spec: dict[str, Any]) -> None:
    if spec.get("rules") == [] and spec.get("defaultBackend") is not None:
        del spec["rules"]


def _drop_zeros(found: dict[str, Any], *names: str) -> None:
    for name in names:
        if name in found and not found[name]:
            del found[name]


def _fill_backend_port(port: dict[str, Any]) -> None:
    _drop_zeros(port, "name", "number")


def _fill_service(spec: dict[str, Any]) -> None:
    _drop_zeros(spec, "clusterIP", "externalTrafficPolicy", "healthCheckNodePort")
    spec.setdefault("sessionAffinity", "None")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        config = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if config.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    spec.setdefault("type", "ClusterIP")


def _fill_limit(item: dict[str, Any]) -> None:
    if item.get("type") != "Container":
        return
    default = {**(item.get("max") or {}), **(item.get("default") or {})}
    request = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
    found = {"default": default, "defaultRequest": request}
    item.update({name: value for name, value in found.items() if value})


def _fill_autoscaler(spec: dict[str, Any]) -> None:
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior is None:
        return
    up = {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [
            {"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15},
        ],
    }
    down = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}
    spec["behavior"] = {
        "scaleUp": {**up, **(behavior.get("scaleUp") or {})},
        "scaleDown": {**down, **(behavior.get("scaleDown") or {})},
    }


FILLED: Final[Mapping[str, Callable[[dict[str, Any]], None]]] = {
    f"{_CORE}.Volume": _fill_volume,
    f"{_CORE}.ServicePort": _fill_port,
    f"{_CORE}.ServiceSpec": _fill_service,
    f"{_CORE}.LimitRangeItem": _fill_limit,
    f"{_APPS}.DeploymentStrategy": partial(_fill_rolling_update, unavailable="25%", surge="25%"),
    f"{_APPS}.StatefulSetUpdateStrategy": _fill_stateful_strategy,
    f"{_APPS}.DaemonSetUpdateStrategy": partial(_fill_rolling_update, unavailable=1, surge=0),
    f"{_NETWORKING}.IngressSpec": _fill_ingress,
    f"{_NETWORKING}.ServiceBackendPort": _fill_backend_port,
    "io.k8s.api.rbac.v1.RoleBinding": _fill_role,
    "io.k8s.api.rbac.v1.ClusterRoleBinding": _fill_role,
    "io.k8s.api.rbac.v1.Subject": _fill_subject,
    f"{_SCALING}.HorizontalPodAutoscalerSpec": _fill_autoscaler,
}
"""Defaults that depend on other fields of the same type. They change the new object that they are given."""
