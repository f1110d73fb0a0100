"""Services, ConfigMaps, Secrets, Events, and the volumes of storage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.immutable_fields import immutable_changes, needs_health_check, value_at
from ruleop.kubernetes.builtin.kind_defaults import WITH_NODE_PORTS, is_exposed
from ruleop.kubernetes.quantity import parse_quantity
from ruleop.kubernetes.validation import rules
from ruleop.kubernetes.validation.field_errors import (
    FieldError,
    forbidden_value,
    immutable_value,
    invalid_value,
    required,
    subdomain_problems,
    too_long,
    unsupported,
)
from ruleop.kubernetes.validation.pods import SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.validation.rules import Check, Errors, Rows


# -- Services --------------------------------------------------------------------------------------------------------


HEADLESS: Final = "None"
INTERNAL_POLICIES: Final = ("Cluster", "Local")


def _is_headless(spec: Object) -> bool:
    return spec.get("clusterIPs") == [HEADLESS]


def _node_port(port: Any) -> Any:
    return (port.get("protocol"), port["nodePort"]) if port.get("nodePort") else None


def _addresses(spec: Any, _: Any) -> Iterator[FieldError]:
    """The first cluster IP is that of the older field, and all are of the families."""
    address, addresses, families = spec.get("clusterIP"), spec.get("clusterIPs") or [], spec.get("ipFamilies") or ()
    if address and not addresses:
        yield required("clusterIPs")
    elif addresses and address != addresses[0]:
        yield invalid_value("clusterIPs", addresses, "first value must match `clusterIP`")
    actual = ["IPv6" if ":" in each else "IPv4" for each in addresses]
    if HEADLESS in addresses[:1]:
        if len(addresses) > 1:
            yield invalid_value("clusterIPs", addresses, "'None' must be the first and only value")
    elif malformed := [each.below("clusterIPs") for each in _EACH_ADDRESS(addresses, None)]:
        yield from malformed
    elif len(actual) != len(set(actual)):
        yield invalid_value("clusterIPs", addresses, "may specify no more than one IP for each IP family")
    else:
        for index, (each, one, family) in enumerate(zip(addresses, actual, families, strict=False)):
            if family in ("IPv4", "IPv6") and family != one:
                yield invalid_value(f"clusterIPs[{index}]", each, f"must be an {family} address, as in `ipFamilies`")


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
        yield forbidden_value(field, "may not be set when `type` is not LoadBalancer")
    yield from (each.below(field) for each in _EACH_RANGE([each.strip() for each in ranges], None))


_EACH_RANGE: Final = rules.table({"[]": "full-network"})
_PORTS: Final[Rows] = (
    rules.unique("name"),
    rules.unique("nodePort", by=_node_port),
    rules.unique(by=lambda port: (port.get("protocol"), port.get("port", 0))),
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
    "sessionAffinityConfig.clientIP.timeoutSeconds if sessionAffinity=ClientIP": "1..86400",
    "ports[].nodePort if type=ClusterIP": "unset",
    "allocateLoadBalancerNodePorts loadBalancerClass if type!=LoadBalancer": "unset",
    "clusterIPs ipFamilies ipFamilyPolicy if type=ExternalName": "unset",
    "externalName if type=ExternalName": (
        "needed",
        rules.named(lambda name: subdomain_problems(name.removesuffix("."))),
    ),
    "if type!=ExternalName": (cluster_ip_errors, {rules.fails(_is_headless): {"ports": "needed"}}),
    _is_headless: {f"clusterIPs[] if type={'|'.join(WITH_NODE_PORTS)}": "unset"},
    is_exposed: {"externalTrafficPolicy": "Cluster|Local!"},
    rules.fails(is_exposed): {"externalTrafficPolicy": "unset"},
    needs_health_check: {"healthCheckNodePort": "needed"},
    rules.fails(needs_health_check): {"healthCheckNodePort": "unset"},
}
SERVICE: Final[Rows] = (rules.frozen(), {"spec": (_SERVICE, _ranges)})

# -- configuration and Events ----------------------------------------------------------------------------------------

_MAX_DATA: Final = 1024 * 1024
_IMMUTABLE: Final = rules.frozen(words="field is immutable when `immutable` is set")


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
        yield invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData")


CONFIG_MAP: Final[Rows] = (_IMMUTABLE, _size, _in_both, {"data binaryData": "config-keys"})


def _keys(*names: str, filled: bool = False) -> Check:
    """A mapping has these keys. `filled`: with values that are not empty."""
    return lambda value, _: [
        required(f"[{name}]") for name in names if not (value.get(name) if filled else name in value)
    ]


_LOGIN: Final = ("username", "password")
SECRET: Final[Rows] = (
    _IMMUTABLE,
    _size,
    {
        "data": "config-keys",
        "data! if type=kubernetes.io/basic-auth": {lambda data: data.keys().isdisjoint(_LOGIN): _keys(*_LOGIN)},
        "data! if type=kubernetes.io/dockercfg": _keys(".dockercfg"),
        "data! if type=kubernetes.io/dockerconfigjson": _keys(".dockerconfigjson"),
        "data! if type=kubernetes.io/ssh-auth": _keys("ssh-privatekey", filled=True),
        "data! if type=kubernetes.io/tls": _keys("tls.crt", "tls.key"),
        "metadata.annotations! if type=kubernetes.io/service-account-token": (
            _keys("kubernetes.io/service-account.name", filled=True)
        ),
    },
)


def _namespace(event: Any, _: Any) -> Errors:
    concerned = event.get("involvedObject") or event.get("regarding") or {}
    if (concerned.get("namespace") or "default") == event["metadata"].get("namespace", ""):
        return ()
    namespace = concerned.get("namespace", "")
    return (invalid_value("involvedObject.namespace", namespace, "does not match event.namespace"),)


EVENT: Final[Rows] = _namespace


# -- PersistentVolumes, claims, StorageClasses -----------------------------------------------------------------------


_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def _modes(modes: Any, _: Any) -> Iterator[FieldError]:
    yield from (unsupported("", each, _MODES) for each in modes if each not in _MODES)
    if "ReadWriteOncePod" in modes and any(each in _MODES and each != "ReadWriteOncePod" for each in modes):
        yield forbidden_value("", "may not use ReadWriteOncePod with other access modes")


def _requested(resources: Any, _: Any) -> Errors:
    """The size that a claim requests: the server leaves `requests` out of its path."""
    size = ((resources or {}).get("requests") or {}).get("storage")
    return [each.below("[storage]") for each in _SIZE(size, None)]


_SIZE: Final = rules.table("given positive-quantity")
CLAIM_SPEC: Final[Rows] = {
    "accessModes": ("needed", _modes),
    "selector": "selector",
    "resources": rules.missing(_requested),
    "storageClassName volumeAttributesClassName": "subdomain",
    "volumeMode": "Block|Filesystem",
    "dataSource dataSourceRef": {
        "name kind": "needed",
        "apiGroup": "subdomain",
        "if apiGroup=": {
            "if kind!=PersistentVolumeClaim": rules.invalid("must be a PersistentVolumeClaim without an apiGroup")
        },
    },
    "dataSourceRef.namespace": "label",
}


def _of_bound(claim: Any, old: Any) -> Iterator[FieldError]:
    if old is None:
        return
    path = "spec.resources.requests.storage"
    if "spec.volumeMode" in immutable_changes(claim, old):
        yield immutable_value("volumeMode", value_at(claim, "spec.volumeMode"))
    size, before, capacity = (
        parse_quantity(value_at(*each) or 0) for each in ((claim, path), (old, path), (old, "status.capacity.storage"))
    )
    if size is not None and before is not None and capacity is not None and size < before and size <= capacity:
        yield forbidden_value(path, "field can not be less than status.capacity")


_FIXED: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
CLAIM: Final[Rows] = ({"spec!": CLAIM_SPEC}, rules.frozen("spec", _FIXED), _of_bound)


def _capacity(capacity: Any, _: Any) -> Errors:
    if (capacity or {}).keys() == {"storage"}:
        return [each.below("[storage]") for each in _SIZE(capacity["storage"], None)]
    wrong = unsupported("", capacity, ("storage",))
    return (wrong,) if capacity else (required(""), wrong)


_NO_SOURCES: Final = (
    *("accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy"),
    *("storageClassName", "volumeAttributesClassName", "volumeMode"),
)
_VOLUME: Final[Rows] = (
    SOURCES,
    rules.union(but=_NO_SOURCES),
    {
        "accessModes": ("needed", _modes),
        "capacity": rules.missing(_capacity),
        "persistentVolumeReclaimPolicy": "Delete|Recycle|Retain",
        "volumeMode": "Block|Filesystem",
        "storageClassName": "subdomain",
        "nfs.path csi.volumeHandle": "needed",
        "nfs.path": rules.text(("(/.*)?", "must be an absolute path")),
        "nodeAffinity if local": "needed",
        "if hostPath.path=/": {"persistentVolumeReclaimPolicy": "Delete|Retain"},
    },
)
VOLUME: Final[Rows] = {"spec!": rules.changed(_VOLUME)}
STORAGE_CLASS: Final = rules.frozen()
