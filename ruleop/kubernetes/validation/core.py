"""Services, ConfigMaps, Secrets, Events, and the volumes of storage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.immutable_fields import immutable_changes, needs_health_check, value_at
from ruleop.kubernetes.quantity import parse_quantity
from ruleop.kubernetes.validation import rules
from ruleop.kubernetes.validation.field_errors import FieldError, refusal, subdomain_problems, too_long, unsupported
from ruleop.kubernetes.validation.pods import SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.validation.rules import Check, Errors, Rows


# -- Services --------------------------------------------------------------------------------------------------------


HEADLESS: Final = "None"
WITH_NODE_PORTS: Final = ("NodePort", "LoadBalancer")
INTERNAL_POLICIES: Final = ("Cluster", "Local")
_NOT_BALANCER: Final = "Forbidden: may only be used when `type` is 'LoadBalancer'"


def is_exposed(spec: Object) -> bool:
    """Whether a Service can be reached from outside the cluster."""
    return spec.get("type") in WITH_NODE_PORTS or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


def _is_headless(spec: Object) -> bool:
    return spec.get("clusterIPs") == [HEADLESS]


def _node_port(port: Any) -> Any:
    return (port.get("protocol"), port["nodePort"]) if port.get("nodePort") else None


_SAME_PORT: Final = (
    'Duplicate value: {"Name":"","Protocol":{protocol},"AppProtocol":null,"Port":{port},"TargetPort":0,"NodePort":0}'
)


def _addresses(spec: Any, _: Any) -> Iterator[FieldError]:
    """The first cluster IP is that of the older field, and all are of the families."""
    address, addresses, families = spec.get("clusterIP"), spec.get("clusterIPs") or [], spec.get("ipFamilies") or ()
    if address and not addresses:
        yield refusal("Required value", spec, "clusterIPs")
    elif addresses and address != addresses[0]:
        words = "first value must match `clusterIP`" if address else "must be empty when `clusterIP` is not specified"
        yield refusal(f"Invalid value: {{}}: {words}", addresses, "clusterIPs")
    actual = ["IPv6" if ":" in each else "IPv4" for each in addresses]
    if HEADLESS in addresses[:1]:
        if len(addresses) > 1:
            yield refusal("Invalid value: {}: 'None' must be the first and only value", addresses, "clusterIPs")
        return
    malformed = [each.below("clusterIPs") for each in _EACH_ADDRESS(addresses, None)]
    yield from malformed
    if len(addresses) > 2:
        yield refusal("Invalid value: {}: may only hold up to 2 values", addresses, "clusterIPs")
    if malformed:
        return
    if len(actual) != len(set(actual)):
        message = "Invalid value: {}: may specify no more than one IP for each IP family"
        yield refusal(message, addresses, "clusterIPs")
    for index, (each, one, family) in enumerate(zip(addresses, actual, families, strict=False)):
        if family in ("IPv4", "IPv6") and family != one:
            message = f"Invalid value: {{}}: expected an {family} value as indicated by `ipFamilies[{index}]`"
            yield refusal(message, each, f"clusterIPs[{index}]")


_EACH_ADDRESS: Final = rules.table({"[]": "full-address"})
cluster_ip_errors: Final = rules.table(
    (
        {
            "ipFamilies": rules.unique(empty=True),
            "ipFamilies[]": "IPv4|IPv6",
            "ipFamilyPolicy": "PreferDualStack|RequireDualStack|SingleStack",
        },
        _addresses,
    )
)
"""The errors of the cluster IPs and their families in the spec of a Service."""


def _ranges(spec: Any, _: Any) -> Iterator[FieldError]:
    """The server writes the field as Go does."""
    ranges, field = spec.get("loadBalancerSourceRanges") or (), "LoadBalancerSourceRanges"
    if ranges and spec.get("type") != "LoadBalancer":
        yield refusal(_NOT_BALANCER, ranges, field)
    yield from (each.below(field) for each in _EACH_RANGE([each.strip() for each in ranges], None))


_EACH_RANGE: Final = rules.table({"[]": "full-network"})
_PORTS: Final[Rows] = (
    rules.unique("name"),
    rules.unique("nodePort", by=_node_port),
    rules.unique(by=lambda port: (port.get("protocol"), port.get("port", 0)), message=_SAME_PORT),
    {lambda ports: len(ports) > 1: {"[].name": "needed"}},
)
_SERVICE: Final[Rows] = {
    "ports": _PORTS,
    "ports[]": {"name": "label", "port targetPort": "port-or-name", "protocol": "PROTOCOL"},
    "ports[].appProtocol loadBalancerClass": "full-key",
    "selector": "labels",
    "sessionAffinity": "ClientIP|None",
    "externalIPs[]": "full-external-address",
    "type": "ClusterIP|ExternalName|LoadBalancer|NodePort",
    "internalTrafficPolicy": "Cluster|Local",
    "trafficDistribution": "PreferClose|PreferSameZone|PreferSameNode",
    rules.equals("sessionAffinity", "ClientIP"): {
        "sessionAffinityConfig.clientIP.timeoutSeconds": rules.between(
            1, 86400, "must be greater than 0 and less than 86400"
        )
    },
    rules.equals("type", "ClusterIP"): {"ports[].nodePort": "Forbidden: may not be used when `type` is 'ClusterIP'"},
    rules.differs("type", "LoadBalancer"): {"allocateLoadBalancerNodePorts loadBalancerClass": _NOT_BALANCER},
    rules.equals("type", "ExternalName"): {
        "clusterIPs ipFamilies ipFamilyPolicy": "Forbidden: may not be set for ExternalName services",
        "externalName": ("needed", rules.named(lambda name: subdomain_problems(name.removesuffix(".")))),
    },
    rules.differs("type", "ExternalName"): (cluster_ip_errors, {rules.fails(_is_headless): {"ports": "needed"}}),
    _is_headless: {
        rules.equals("type", each): {
            "clusterIPs[]": f"Invalid value: {{}}: may not be set to 'None' for {each} services"
        }
        for each in WITH_NODE_PORTS
    },
    is_exposed: {"externalTrafficPolicy": "Cluster|Local!"},
    rules.fails(is_exposed): {
        "externalTrafficPolicy": "Invalid value: {}: may only be set for externally-accessible services"
    },
    needs_health_check: {"healthCheckNodePort": "needed"},
    rules.fails(needs_health_check): {
        "healthCheckNodePort": "Invalid value: {}: may only be set when `type` is 'LoadBalancer' and "
        "`externalTrafficPolicy` is 'Local'"
    },
}
SERVICE: Final[Rows] = (
    rules.frozen(
        "Invalid value: {}: may not change once set", {"spec.healthCheckNodePort": "Forbidden: field is immutable"}
    ),
    {"spec": (_SERVICE, _ranges)},
)

# -- configuration and Events ----------------------------------------------------------------------------------------

_MAX_DATA: Final = 1024 * 1024
_IMMUTABLE: Final = rules.frozen(
    "Forbidden: field is immutable when `immutable` is set", {"type": "Invalid value: {}: field is immutable"}
)


def _size(obj: Any, _: Any) -> Errors:
    """The limit of the contents: of a Secret, in bytes that are encoded."""
    is_secret, binaries = obj.get("kind") == "Secret", obj.get("binaryData") or {}
    texts = (obj.get("data") or {}).values()
    encoded = [*binaries.values(), *(texts if is_secret else ())]
    size = sum(len(each) * 3 // 4 - each[-2:].count("=") for each in encoded)
    size += 0 if is_secret else sum(len(each.encode()) for each in texts)
    return (too_long("data" if is_secret else "[]", _MAX_DATA),) if size > _MAX_DATA else ()


def _in_both(obj: Any, _: Any) -> Iterator[FieldError]:
    for key in (obj.get("data") or {}).keys() & (obj.get("binaryData") or {}).keys():
        yield refusal("Invalid value: {}: duplicate of key present in binaryData", key, f"data[{key}]")


CONFIG_MAP: Final[Rows] = (_IMMUTABLE, _size, _in_both, {"data binaryData": "config-keys"})


def _keys(*names: str, filled: bool = False) -> Check:
    """A mapping has these keys. `filled`: with values that are not empty."""

    def check(value: Any, _: Any) -> Iterator[FieldError]:
        for name in names:
            if not (value.get(name) if filled else name in value):
                yield refusal("Required value", value, f"[{name}]")

    return check


_LOGIN: Final = ("username", "password")
SECRET: Final[Rows] = (
    _IMMUTABLE,
    _size,
    {
        "data": "config-keys",
        rules.equals("type", "kubernetes.io/basic-auth"): {
            "data!": {lambda data: not data.keys() & {*_LOGIN}: _keys(*_LOGIN)}
        },
        rules.equals("type", "kubernetes.io/dockercfg"): {"data!": _keys(".dockercfg")},
        rules.equals("type", "kubernetes.io/dockerconfigjson"): {"data!": _keys(".dockerconfigjson")},
        rules.equals("type", "kubernetes.io/ssh-auth"): {"data!": _keys("ssh-privatekey", filled=True)},
        rules.equals("type", "kubernetes.io/tls"): {"data!": _keys("tls.crt", "tls.key")},
        rules.equals("type", "kubernetes.io/service-account-token"): {
            "metadata.annotations!": _keys("kubernetes.io/service-account.name", filled=True)
        },
    },
)


def _namespace(event: Any, _: Any) -> Errors:
    concerned = event.get("involvedObject") or event.get("regarding") or {}
    if (concerned.get("namespace") or "default") == event["metadata"].get("namespace", ""):
        return ()
    message = "Invalid value: {namespace}: does not match event.namespace"
    return (refusal(message, concerned, "involvedObject.namespace"),)


EVENT: Final[Rows] = _namespace


# -- PersistentVolumes, claims, StorageClasses -----------------------------------------------------------------------


_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def _modes(modes: Any, _: Any) -> Iterator[FieldError]:
    yield from (unsupported("", each, _MODES) for each in modes if each not in _MODES)
    if "ReadWriteOncePod" in modes and any(each in _MODES and each != "ReadWriteOncePod" for each in modes):
        yield refusal("Forbidden: may not use ReadWriteOncePod with other access modes", modes)


def _requested(resources: Any, _: Any) -> Errors:
    """The size that a claim requests: the server leaves `requests` out of its path."""
    size = ((resources or {}).get("requests") or {}).get("storage")
    return [each.below("[storage]") for each in _SIZE(size, None)]


_SIZE: Final = rules.table(("given", rules.quantity()))
CLAIM_SPEC: Final[Rows] = {
    "accessModes": ("Required value: at least 1 access mode is required", _modes),
    "selector": "selector",
    "resources": rules.missing(_requested),
    "storageClassName volumeAttributesClassName": "subdomain",
    "volumeMode": "Block|Filesystem",
    "dataSource dataSourceRef": {
        "name kind": "needed",
        "apiGroup": "subdomain",
        lambda source: not source.get("apiGroup") and source.get("kind") != "PersistentVolumeClaim": (
            "Invalid value: {kind}: must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        ),
    },
    "dataSourceRef.namespace": "label",
}


def _of_bound(claim: Any, old: Any) -> Iterator[FieldError]:
    if old is None:
        return
    path = "spec.resources.requests.storage"
    if "spec.volumeMode" in immutable_changes(claim, old):
        yield refusal("Invalid value: {}: field is immutable", value_at(claim, "spec.volumeMode"), "volumeMode")
    size, before, capacity = (
        parse_quantity(value_at(*each) or 0) for each in ((claim, path), (old, path), (old, "status.capacity.storage"))
    )
    if size is not None and before is not None and capacity is not None and size < before and size <= capacity:
        yield refusal("Forbidden: field can not be less than status.capacity", size, path)


_FIXED: Final = "except resources.requests and volumeAttributesClassName for bound claims"
CLAIM: Final[Rows] = (
    {"spec!": CLAIM_SPEC},
    rules.frozen(f"Forbidden: spec is immutable after creation {_FIXED}", at="spec"),
    _of_bound,
)


def _capacity(capacity: Any, _: Any) -> Errors:
    if (capacity or {}).keys() == {"storage"}:
        return [each.below("[storage]") for each in _SIZE(capacity["storage"], None)]
    wrong = refusal('Unsupported value: {}: supported values: "storage"', capacity)
    return (wrong,) if capacity else (refusal("Required value", capacity), wrong)


_NO_SOURCES: Final = (
    *("accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy"),
    *("storageClassName", "volumeAttributesClassName", "volumeMode"),
)
_VOLUME: Final[Rows] = (
    SOURCES,
    rules.union("volume", but=_NO_SOURCES),
    {
        "accessModes": ("needed", _modes),
        "capacity": rules.missing(_capacity),
        "persistentVolumeReclaimPolicy": "Delete|Recycle|Retain",
        "volumeMode": "Block|Filesystem",
        "storageClassName": "subdomain",
        "nfs.path csi.volumeHandle": "needed",
        "nfs.path": {lambda path: not path.startswith("/"): "Invalid value: {}: must be an absolute path"},
        rules.has("local"): {"nodeAffinity": "Required value: Local volume requires node affinity"},
        lambda spec: value_at(spec, "hostPath.path") == "/": {
            "persistentVolumeReclaimPolicy": {
                lambda policy: policy == "Recycle": "Forbidden: may not be 'recycle' for a hostPath mount of '/'"
            }
        },
    },
)
VOLUME: Final[Rows] = {"spec!": rules.changed(_VOLUME)}
STORAGE_CLASS: Final = rules.frozen("Forbidden: updates to {path} are forbidden.")
