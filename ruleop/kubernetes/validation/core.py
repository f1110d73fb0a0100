"""Services, ConfigMaps, Secrets, Events, and the volumes of storage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.immutable_fields import immutable_changes, needs_health_check, value_at
from ruleop.kubernetes.quantity import parse_quantity
from ruleop.kubernetes.validation.field_errors import (
    FieldError,
    duplicate,
    forbidden_value,
    immutable_value,
    invalid_value,
    invalid_values,
    required,
    subdomain_problems,
    too_long,
    unsupported,
    validate_address,
    validate_cidr,
    validate_external_address,
)
from ruleop.kubernetes.validation.pods import SOURCES
from ruleop.kubernetes.validation.rules import (
    Rows,
    between,
    forbids,
    frozen,
    holds,
    is_changed,
    missing,
    needed,
    on_update,
    placed,
    quantity,
    sub_table,
    union,
    unique,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.validation.rules import At, Errors


# -- Services --------------------------------------------------------------------------------------------------------


HEADLESS: Final = "None"
WITH_NODE_PORTS: Final = ("NodePort", "LoadBalancer")
INTERNAL_POLICIES: Final = ("Cluster", "Local")
_FAMILIES: Final = ("IPv4", "IPv6")
_FAMILY_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_NOT_BALANCER: Final = "may only be used when `type` is 'LoadBalancer'"


def is_exposed(spec: Object) -> bool:
    """Whether a Service can be reached from outside the cluster."""
    return spec.get("type") in WITH_NODE_PORTS or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


def _changes(service: Any, at: At) -> Iterator[FieldError]:
    for path in immutable_changes(service, at.old_root):
        if path == "spec.healthCheckNodePort":
            yield forbidden_value(path, "field is immutable")
        else:
            value = value_at(service, path.partition("[")[0])
            yield invalid_value(path, value or [] if "[" in path else value, "may not change once set")


def _ports(ports: Any, at: At) -> Iterator[FieldError]:
    """Ports have names if there are several, and differ by protocol and number."""
    for name in ("nodePort", "port"):
        seen = set[Any]()
        for index, port in enumerate(ports if len(ports) > 1 else ()):
            key, field = (port.get("protocol"), port.get(name, 0)), f"{at.field}[{index}]"
            if name == "port" and not port.get("name"):
                yield required(f"{field}.name")
            if key in seen and name == "port":
                shown = {"Name": "", "Protocol": key[0], "AppProtocol": None, "Port": key[1]}
                yield duplicate(field, {**shown, "TargetPort": 0, "NodePort": 0})
            elif key in seen and key[1]:
                yield duplicate(f"{field}.nodePort", key[1])
            seen.add(key)


def validate_cluster_ips(spec: Object) -> Iterator[FieldError]:
    """The errors of the cluster IPs and their families."""
    addresses, families, field = list(spec.get("clusterIPs") or ()), spec.get("ipFamilies") or (), "spec.clusterIPs"
    if (address := spec.get("clusterIP")) and not addresses:
        yield required(field)
    elif address != addresses[0] if addresses else False:
        words = "first value must match" if address else "must be empty when"
        yield invalid_value(field, addresses, f"{words} `clusterIP`{'' if address else ' is not specified'}")
    for index, each in enumerate(families):
        if each not in _FAMILIES:
            yield unsupported(f"spec.ipFamilies[{index}]", each, _FAMILIES)
        if each in families[:index]:
            yield duplicate(f"spec.ipFamilies[{index}]", each)
    if (policy := spec.get("ipFamilyPolicy")) not in (None, *_FAMILY_POLICIES):
        yield unsupported("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES)
    if HEADLESS in addresses[:1]:
        if len(addresses) > 1:
            yield invalid_value(field, addresses, "'None' must be the first and only value")
        return
    numbered = list(enumerate(addresses))
    malformed = [error for index, each in numbered for error in validate_address(f"{field}[{index}]", each)]
    yield from malformed
    actual = ["IPv6" if ":" in each else "IPv4" for each in addresses]
    if len(actual) > 2:
        yield invalid_value(field, addresses, "may only hold up to 2 values")
    if len(actual) != len(set(actual)) and not malformed:
        yield invalid_value(field, addresses, "may specify no more than one IP for each IP family")
    for index, (each, one, family) in enumerate(zip(addresses, actual, families, strict=False)):
        if family in _FAMILIES and family != one and not malformed:
            words = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            yield invalid_value(f"{field}[{index}]", each, words)


def _by_type(spec: Any, _: At) -> Iterator[FieldError]:
    type_, headless = spec.get("type"), spec.get("clusterIPs") == [HEADLESS]
    if type_ != "ExternalName":
        if not spec.get("ports") and not headless:
            yield required("spec.ports")
        if type_ in WITH_NODE_PORTS and headless:
            yield invalid_value("spec.clusterIPs[0]", HEADLESS, f"may not be set to 'None' for {type_} services")
        yield from validate_cluster_ips(spec)
    else:
        for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if spec.get(name):
                yield forbidden_value(f"spec.{name}", "may not be set for ExternalName services")
        name = spec.get("externalName", "").removesuffix(".")
        problems = invalid_values("spec.externalName", name, subdomain_problems(name))
        yield from problems if name else (required("spec.externalName"),)
    external, health = spec.get("externalTrafficPolicy"), spec.get("healthCheckNodePort")
    if is_exposed(spec) and external not in INTERNAL_POLICIES:
        yield unsupported("spec.externalTrafficPolicy", external, INTERNAL_POLICIES)
    elif external and not is_exposed(spec):
        words = "may only be set for externally-accessible services"
        yield invalid_value("spec.externalTrafficPolicy", external, words)
    if needs_health_check(spec) and not health:
        yield required("spec.healthCheckNodePort")
    elif health and not needs_health_check(spec):
        words = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield invalid_value("spec.healthCheckNodePort", health, words)


def _ranges(ranges: Any, at: At) -> Iterator[FieldError]:
    field = "spec.LoadBalancerSourceRanges"
    if at.root["spec"].get("type") != "LoadBalancer":
        yield forbidden_value(field, _NOT_BALANCER)
    for index, each in enumerate(ranges):
        yield from validate_cidr(f"{field}[{index}]", each.strip())


def _is_balancer(spec: Object) -> bool:
    return spec.get("type") == "LoadBalancer"


_SECONDS: Final = between(1, 86400, "must be greater than 0 and less than 86400")
SERVICE: Final[Rows] = (
    on_update(_changes),
    {
        "spec": (
            _by_type,
            {
                "ports": (unique("name"), _ports),
                "ports[]": {
                    "name": "label",
                    "port targetPort": "port-or-name",
                    "protocol": "PROTOCOL",
                    "appProtocol": "full-key",
                },
                "selector": "labels",
                "sessionAffinity": "ClientIP|None",
                "externalIPs[]": lambda value, at: validate_external_address(at.field, value),
                "type": "ClusterIP|ExternalName|LoadBalancer|NodePort",
                "loadBalancerSourceRanges": placed(_ranges),
                "internalTrafficPolicy": "Cluster|Local",
                "trafficDistribution": "PreferClose|PreferSameZone|PreferSameNode",
                "loadBalancerClass": "full-key",
            },
            sub_table(
                {"sessionAffinityConfig.clientIP.timeoutSeconds": _SECONDS},
                when=lambda spec, _: spec.get("sessionAffinity") == "ClientIP",
            ),
            sub_table(
                {"ports[]": forbids("nodePort", lambda _: False, "may not be used when `type` is 'ClusterIP'")},
                when=lambda spec, _: spec.get("type") == "ClusterIP",
            ),
            forbids("allocateLoadBalancerNodePorts", _is_balancer, _NOT_BALANCER),
            forbids("loadBalancerClass", _is_balancer, _NOT_BALANCER),
        )
    },
)

# -- configuration and Events -----------------------------------------------------------------------------------------

_MAX_DATA: Final = 1024 * 1024


def _immutable_data(new: Any, at: At) -> Iterator[FieldError]:
    for name in immutable_changes(new, at.old_root):
        if name == "type":
            yield immutable_value(name, new.get("type", ""))
        else:
            yield forbidden_value(name, "field is immutable when `immutable` is set")


def _size(obj: Any, _: At) -> Errors:
    """The limit of the contents: of a Secret, in bytes that are encoded."""
    is_secret, binaries = obj.get("kind") == "Secret", obj.get("binaryData") or {}
    texts = (obj.get("data") or {}).values()
    encoded = [*binaries.values(), *(texts if is_secret else ())]
    size = sum(len(each) * 3 // 4 - each[-2:].count("=") for each in encoded)
    size += 0 if is_secret else sum(len(each.encode()) for each in texts)
    return (too_long("data" if is_secret else "[]", _MAX_DATA),) if size > _MAX_DATA else ()


def _in_both(data: Any, at: At) -> Iterator[FieldError]:
    for key in data.keys() & (at.root.get("binaryData") or {}).keys():
        yield invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData")


CONFIG_MAP: Final[Rows] = (
    on_update(_immutable_data),
    _size,
    {"data": ("config-keys", placed(_in_both)), "binaryData": "config-keys"},
)

_ACCOUNT: Final = "kubernetes.io/service-account.name"
_KEYS: Final = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def _contents(secret: Any, _: At) -> Iterator[FieldError]:
    """The keys that the type of a Secret asks for."""
    type_, data, annotations = secret.get("type"), secret.get("data") or {}, secret["metadata"].get("annotations") or {}
    if type_ == "kubernetes.io/service-account-token" and not annotations.get(_ACCOUNT):
        yield required(f"metadata.annotations[{_ACCOUNT}]")
    if type_ == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
        yield from (required(f"data[{key}]") for key in ("username", "password"))
    for key in _KEYS.get(type_, ()):
        if key not in data or (key == "ssh-privatekey" and not data[key]):
            yield required(f"data[{key}]")


SECRET: Final[Rows] = (on_update(_immutable_data), _size, {"data": "config-keys"}, _contents)


def _namespace(event: Any, _: At) -> Errors:
    namespace = event["metadata"].get("namespace", "")
    concerned = (event.get("involvedObject") or event.get("regarding") or {}).get("namespace", "")
    if concerned == namespace or (not concerned and namespace == "default"):
        return ()
    return (invalid_value("involvedObject.namespace", concerned, "does not match event.namespace"),)


EVENT: Final[Rows] = _namespace


# -- PersistentVolumes, claims, StorageClasses -----------------------------------------------------------------------


_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def _modes(modes: Any, at: At) -> Iterator[FieldError]:
    yield from (unsupported(at.field, each, _MODES) for each in modes if each not in _MODES)
    if "ReadWriteOncePod" in modes and any(each in _MODES and each != "ReadWriteOncePod" for each in modes):
        yield forbidden_value(at.field, "may not use ReadWriteOncePod with other access modes")


def _requested(resources: Any, at: At) -> Errors:
    """The size that a claim requests: the server leaves `requests` out of its path."""
    size, place = ((resources or {}).get("requests") or {}).get("storage"), at._replace(field=f"{at.field}[storage]")
    return (required(place.field),) if size is None else quantity().check(size, place)


def _source_group(source: Any, at: At) -> Errors:
    kind, words = source.get("kind", ""), "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
    is_known = source.get("apiGroup") or kind == "PersistentVolumeClaim"
    return () if is_known else (invalid_value(at.field, kind, words),)


CLAIM_SPEC: Final[Rows] = {
    "accessModes": (needed("at least 1 access mode is required"), _modes),
    "selector": "selector",
    "resources": missing(_requested),
    "storageClassName volumeAttributesClassName": "subdomain",
    "volumeMode": "Block|Filesystem",
    "dataSource dataSourceRef": (
        {"name kind": "needed", "apiGroup": "subdomain"},
        _source_group,
    ),
    "dataSourceRef.namespace": "label",
}


def _update(claim: Any, at: At) -> Iterator[FieldError]:
    path = "spec.resources.requests.storage"
    if changes := immutable_changes(claim, at.old_root):
        words = "except resources.requests and volumeAttributesClassName for bound claims"
        yield forbidden_value("spec", f"spec is immutable after creation {words}")
    if "spec.volumeMode" in changes:
        yield immutable_value("volumeMode", value_at(claim, "spec.volumeMode"))
    size, before, capacity = (
        parse_quantity(value_at(*each) or 0)
        for each in ((claim, path), (at.old, path), (at.old, "status.capacity.storage"))
    )
    if size is not None and before is not None and capacity is not None and size < before and size <= capacity:
        yield forbidden_value(path, "field can not be less than status.capacity")


CLAIM: Final[Rows] = ({"spec!": CLAIM_SPEC}, on_update(_update))


def _capacity(capacity: Any, at: At) -> Errors:
    if (capacity or {}).keys() == {"storage"}:
        return quantity().check(capacity["storage"], at._replace(field=f"{at.field}[storage]"))
    wrong = unsupported(at.field, capacity, ("storage",))
    return (wrong,) if capacity else (required(at.field), wrong)


def _of_volume(spec: Any, at: At) -> Iterator[FieldError]:
    if spec.get("local") is not None and not spec.get("nodeAffinity"):
        yield required(at.child("nodeAffinity"), "Local volume requires node affinity")
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle" and (spec.get("hostPath") or {}).get("path") == "/":
        words = "may not be 'recycle' for a hostPath mount of '/'"
        yield forbidden_value(at.child("persistentVolumeReclaimPolicy"), words)


_NO_SOURCES: Final = (
    *("accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy"),
    *("storageClassName", "volumeAttributesClassName", "volumeMode"),
)
VOLUME: Final[Rows] = {
    "spec!": sub_table(
        (
            {
                "accessModes": ("needed", _modes),
                "capacity": missing(_capacity),
                "persistentVolumeReclaimPolicy": "Delete|Recycle|Retain",
                "volumeMode": "Block|Filesystem",
                "storageClassName": "subdomain",
                "nfs.path csi.volumeHandle": "needed",
                "nfs.path": holds(lambda path: path.startswith("/"), "must be an absolute path"),
            },
            SOURCES,
            union("volume", but=_NO_SOURCES),
            _of_volume,
        ),
        when=is_changed,
    )
}
STORAGE_CLASS: Final = frozen("updates to {0} are forbidden.", forbidden=True)
