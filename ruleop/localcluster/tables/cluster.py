"""The cells of configuration, permissions, events, nodes and the other kinds that belong to no larger group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.localcluster.tables.printer import printer
from ruleop.localcluster.tables.text import (
    NONE,
    UNKNOWN,
    UNSET,
    age,
    condition,
    human_duration,
    is_being_deleted,
    name,
    since,
    spec,
    status,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.kinds import JSON, Object
    from ruleop.localcluster.tables.printer import Cells

_ROLE_LABEL, _OLD_ROLE_LABEL = "node-role.kubernetes.io/", "kubernetes.io/role"


def _with_age(*values: Callable[[Object], JSON]) -> Cells:
    """Name, these values and age."""
    return lambda obj, now: [name(obj), *(value(obj) for value in values), age(obj, now)]


def _field(*path: str, missing: JSON = "") -> Callable[[Object], JSON]:
    def value(obj: Object) -> JSON:
        found: JSON = obj
        for part in path:
            found = (found or {}).get(part)
        return missing if found is None else found

    return value


def _count(*path: str) -> Callable[[Object], JSON]:
    found = _field(*path, missing=())
    return lambda obj: len(found(obj))


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


def _binding(obj: Object, now: float) -> list[JSON]:
    role, subjects = obj.get("roleRef") or {}, obj.get("subjects") or ()
    accounts = [f"{each.get('namespace', '')}/{each['name']}" for each in subjects if each["kind"] == "ServiceAccount"]
    return [
        name(obj),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        age(obj, now),
        *(", ".join(each["name"] for each in subjects if each["kind"] == kind) for kind in ("User", "Group")),
        ", ".join(accounts),
    ]


def _quota(obj: Object, now: float) -> list[JSON]:
    hard, used = status(obj).get("hard") or {}, status(obj).get("used") or {}
    texts = {resource: f"{resource}: {used.get(resource, '0')}/{hard[resource]}" for resource in sorted(hard)}
    limits = ", ".join(text for resource, text in texts.items() if resource.startswith("limits."))
    requests = ", ".join(text for resource, text in texts.items() if not resource.startswith("limits."))
    return [name(obj), requests, limits, age(obj, now)]


def _config_map(obj: Object, now: float) -> list[JSON]:
    return [name(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age(obj, now)]


def _priority_class(obj: Object, now: float) -> list[JSON]:
    values = (obj.get("value", 0), obj.get("globalDefault", False))
    return [name(obj), *values, age(obj, now), obj.get("preemptionPolicy", "")]


def _parameter_kind(obj: Object) -> str:
    kind = spec(obj).get("paramKind")
    return UNSET if kind is None else f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"


def _parameter(obj: Object) -> str:
    reference = spec(obj).get("paramRef") or {}
    return f"{reference.get('namespace') or '*'}/{reference['name']}" if reference.get("name") else UNSET


def _api_service(obj: Object) -> str:
    service = spec(obj).get("service")
    return "Local" if service is None else f"{service.get('namespace', '')}/{service.get('name', '')}"


def _available(obj: Object) -> str:
    found = condition(obj, "Available")
    if found is None:
        return "Unknown"
    is_plain = found["status"] == "True" or not found.get("reason")
    return str(found["status"]) if is_plain else f"{found['status']} ({found['reason']})"


def _signing_request(obj: Object, now: float) -> list[JSON]:
    desired, types = spec(obj), {each.get("type") for each in status(obj).get("conditions") or ()}
    state = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    state += ",Failed" if "Failed" in types else ""
    state += ",Issued" if status(obj).get("certificate") else ""
    seconds = desired.get("expirationSeconds")
    duration = NONE if seconds is None else human_duration(seconds)
    return [name(obj), age(obj, now), desired.get("signerName") or NONE, desired.get("username", ""), duration, state]


def _claim_state(obj: Object) -> str:
    states = ["deleted"] if is_being_deleted(obj) else []
    if status(obj).get("allocation") is None:
        return ",".join(states or ["pending"])
    return ",".join([*states, "allocated", *(["reserved"] if status(obj).get("reservedFor") else [])])


def _flow_schema(obj: Object, now: float) -> list[JSON]:
    desired, dangling = spec(obj), condition(obj, "Dangling")
    return [
        name(obj),
        desired["priorityLevelConfiguration"]["name"],
        desired.get("matchingPrecedence", 0),
        (desired.get("distinguisherMethod") or {}).get("type", NONE),
        age(obj, now),
        "?" if dangling is None else dangling.get("status", ""),
    ]


def _priority_level(obj: Object, now: float) -> list[JSON]:
    limited = spec(obj).get("limited") or {}
    queuing = (limited.get("limitResponse") or {}).get("queuing") or {}
    queues = (queuing.get(key, NONE) for key in ("queues", "handSize", "queueLengthLimit"))
    shares = limited.get("nominalConcurrencyShares", NONE)
    return [name(obj), spec(obj).get("type", ""), shares, *queues, age(obj, now)]


_EVENTS = printer(
    "Last Seen|Type|Reason|Object|Subobject+|Source+|Message|First Seen+|Count+|Name+",
    _event,
)
_WEBHOOKS = printer("Name|Webhooks:integer|Age", _with_age(_count("webhooks")))
_BINDINGS = printer("Name|Role|Age|Users+|Groups+|ServiceAccounts+", _binding)
_POLICY_BINDINGS = printer("Name|PolicyName|ParamRef|Age", _with_age(_field("spec", "policyName"), _parameter))
_NAMES = printer("Name|Age", _with_age())
_ADMISSION, _RBAC, _DEVICES = "admissionregistration.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io"
_FLOW = "flowcontrol.apiserver.k8s.io"

CLUSTER = {
    ("", "ConfigMap"): printer("Name|Data|Age", _config_map),
    ("", "Event"): _EVENTS,
    ("events.k8s.io", "Event"): _EVENTS,
    ("", "Namespace"): printer("Name|Status|Age", _with_age(_field("status", "phase"))),
    ("", "Node"): printer(
        "Name|Status|Roles|Age|Version|Internal-IP+|External-IP+|OS-Image+|Kernel-Version+|Container-Runtime+", _node
    ),
    ("", "ResourceQuota"): printer("Name|Request|Limit|Age", _quota),
    ("", "Secret"): printer("Name|Type|Data|Age", _with_age(_field("type"), _count("data"))),
    ("", "ServiceAccount"): _NAMES,
    ("apiregistration.k8s.io", "APIService"): printer(
        "Name|Service|Available|Age", _with_age(_api_service, _available)
    ),
    ("certificates.k8s.io", "CertificateSigningRequest"): printer(
        "Name|Age|SignerName|Requestor|RequestedDuration|Condition", _signing_request
    ),
    ("coordination.k8s.io", "Lease"): printer("Name|Holder|Age", _with_age(_field("spec", "holderIdentity"))),
    ("node.k8s.io", "RuntimeClass"): printer("Name|Handler|Age", _with_age(_field("handler"))),
    ("scheduling.k8s.io", "PriorityClass"): printer(
        "Name|Value:integer|Global-Default:boolean|Age|PreemptionPolicy", _priority_class
    ),
    (_RBAC, "RoleBinding"): _BINDINGS,
    (_RBAC, "ClusterRoleBinding"): _BINDINGS,
    (_ADMISSION, "MutatingWebhookConfiguration"): _WEBHOOKS,
    (_ADMISSION, "ValidatingWebhookConfiguration"): _WEBHOOKS,
    (_ADMISSION, "ValidatingAdmissionPolicy"): printer(
        "Name|Validations:integer|ParamKind|Age", _with_age(_count("spec", "validations"), _parameter_kind)
    ),
    (_ADMISSION, "MutatingAdmissionPolicy"): printer(
        "Name|Mutations:integer|ParamKind|Age", _with_age(_count("spec", "mutations"), _parameter_kind)
    ),
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): _POLICY_BINDINGS,
    (_ADMISSION, "MutatingAdmissionPolicyBinding"): _POLICY_BINDINGS,
    (_DEVICES, "DeviceClass"): _NAMES,
    (_DEVICES, "ResourceClaim"): printer("Name|State|Age", _with_age(_claim_state)),
    (_DEVICES, "ResourceClaimTemplate"): _NAMES,
    (_DEVICES, "ResourceSlice"): printer(
        "Name|Node|Driver|Pool|Age",
        _with_age(_field("spec", "nodeName"), _field("spec", "driver"), _field("spec", "pool", "name")),
    ),
    (_FLOW, "FlowSchema"): printer(
        "Name|PriorityLevel|MatchingPrecedence|DistinguisherMethod|Age|MissingPL", _flow_schema
    ),
    (_FLOW, "PriorityLevelConfiguration"): printer(
        "Name|Type|NominalConcurrencyShares|Queues|HandSize|QueueLengthLimit|Age", _priority_level
    ),
}
