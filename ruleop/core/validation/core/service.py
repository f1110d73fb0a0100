"""Services: their defaults, validation and warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.core.schema.builtin.immutable_fields import immutable_changes, needs_health_check, value_at
from ruleop.core.validation.field_errors import (
    duplicate,
    forbidden_value,
    invalid_value,
    invalid_values,
    required,
    unsupported,
    validate_one_of,
    validate_required,
)
from ruleop.core.validation.fields.addresses import (
    address_warnings,
    cidr_warnings,
    parse_address,
    validate_address,
    validate_cidr,
    validate_no_special_address,
)
from ruleop.core.validation.fields.field_names import key_problems, label_problems, subdomain_problems, validate_labels
from ruleop.core.validation.fields.numbers import validate_port, validate_port_or_name

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError

HEADLESS: Final = "None"
WITH_NODE_PORTS: Final = ("NodePort", "LoadBalancer")
INTERNAL_POLICIES: Final = ("Cluster", "Local")
_IN_CLUSTER: Final = ("ClusterIP", *WITH_NODE_PORTS)

_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES: Final = ("ClientIP", "None")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_FAMILIES: Final = ("IPv4", "IPv6")
_FAMILY_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
_LONGEST_AFFINITY: Final = 86400
_ANY_NODE_PORT: Final = 30000
_BALANCER: Final = "LoadBalancer"
_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
_NOT_BALANCER: Final = "may only be used when `type` is 'LoadBalancer'"
_HINTS, _MODE = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"


def validate_service(new: Object, old: Object | None) -> list[FieldError]:
    spec, before = new["spec"], (old or {}).get("spec") or {}
    return [
        *(_validate_change(new, old) if old is not None else ()),
        *_validate_hint(new["metadata"].get("annotations") or {}),
        *_validate_type(spec),
        *_validate_port_list(spec.get("ports") or []),
        *validate_labels(spec.get("selector") or {}, "spec.selector"),
        *_validate_affinity(spec),
        *(validate_cluster_ips(spec, before.get("clusterIPs") or ()) if spec.get("type") != "ExternalName" else ()),
        *_validate_external_address(spec, before.get("externalIPs") or ()),
        *validate_one_of("spec.type", spec.get("type"), _TYPES),
        *_validate_repeated_ports(spec.get("ports") or [], spec),
        *_validate_balancer(spec, before),
        *(_validate_annotated_ranges(new) if old is None else ()),
        *_validate_traffic(spec),
    ]


def _is_headless(spec: Object) -> bool:
    return spec.get("clusterIPs") == [HEADLESS]


def _validate_change(new: Object, old: Object) -> Iterator[FieldError]:
    for path in immutable_changes(new, old):
        if path == "spec.healthCheckNodePort":
            yield forbidden_value(path, "field is immutable")
        else:
            value = value_at(new, path.partition("[")[0])
            yield invalid_value(path, value or [] if "[" in path else value, "may not change once set")
    yield from _validate_class(new["spec"])


def _validate_class(spec: Object) -> Iterator[FieldError]:
    name = spec.get("loadBalancerClass")
    if name is None:
        return
    if spec.get("type") == _BALANCER:
        yield from invalid_values("spec.loadBalancerClass", name, key_problems(name))
    else:
        yield forbidden_value("spec.loadBalancerClass", _NOT_BALANCER)


def _validate_hint(annotations: Object) -> Iterator[FieldError]:
    if _HINTS in annotations and annotations.get(_MODE, annotations[_HINTS]) != annotations[_HINTS]:
        problem = f"must match annotations[{_HINTS}] when both are specified"
        yield invalid_value(f"metadata.annotations[{_MODE}]", annotations[_MODE], problem)


def _validate_type(spec: Object) -> Iterator[FieldError]:
    type_, headless = spec.get("type"), _is_headless(spec)
    if not spec.get("ports") and not headless and type_ != "ExternalName":
        yield required("spec.ports")
    if type_ in (_BALANCER, "NodePort") and headless:
        yield invalid_value("spec.clusterIPs[0]", HEADLESS, f"may not be set to 'None' for {type_} services")
    if type_ != "ExternalName":
        return
    for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(name):
            yield forbidden_value(f"spec.{name}", "may not be set for ExternalName services")
    yield from validate_required(
        "spec.externalName", spec.get("externalName", "").removesuffix("."), subdomain_problems
    )


def _validate_port_list(ports: Sequence[Object]) -> Iterator[FieldError]:
    names = set[str]()
    for index, port in enumerate(ports):
        field, name = f"spec.ports[{index}]", port.get("name")
        if name:
            yield from invalid_values(f"{field}.name", name, label_problems(name))
            if name in names:
                yield duplicate(f"{field}.name", name)
            names.add(name)
        elif len(ports) > 1:
            yield required(f"{field}.name")
        yield from _validate_port(field, port)


def _validate_port(field: str, port: Object) -> Iterator[FieldError]:
    yield from validate_port_or_name(port.get("port", 0), f"{field}.port")
    yield from validate_one_of(f"{field}.protocol", port.get("protocol", ""), _PROTOCOLS)
    yield from validate_port_or_name(port.get("targetPort", 0), f"{field}.targetPort")
    if (name := port.get("appProtocol")) is not None:
        yield from invalid_values(f"{field}.appProtocol", name, key_problems(name))


def _validate_affinity(spec: Object) -> Iterator[FieldError]:
    affinity = spec.get("sessionAffinity", "")
    if affinity not in _AFFINITIES:
        yield unsupported("spec.sessionAffinity", affinity, _AFFINITIES)
    elif affinity == "ClientIP":
        seconds = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
        if not 0 < seconds <= _LONGEST_AFFINITY:
            problem = f"must be greater than 0 and less than {_LONGEST_AFFINITY}"
            yield invalid_value("spec.sessionAffinityConfig.clientIP.timeoutSeconds", seconds, problem)


def validate_cluster_ips(spec: Object, known: Container[str]) -> Iterator[FieldError]:
    """Validates the cluster IPs and their families. `known`: addresses of the previous version."""
    addresses, field = spec.get("clusterIPs") or [], "spec.clusterIPs"
    if address := spec.get("clusterIP"):
        if not addresses:
            yield required(field)
        elif addresses[0] != address:
            yield invalid_value(field, addresses, "first value must match `clusterIP`")
    elif addresses:
        yield invalid_value(field, addresses, "must be empty when `clusterIP` is not specified")
    families = spec.get("ipFamilies") or []
    for index, each in enumerate(families):
        yield from validate_one_of(f"spec.ipFamilies[{index}]", each, _FAMILIES)
        if each in families[:index]:
            yield duplicate(f"spec.ipFamilies[{index}]", each)
    yield from validate_one_of("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), _FAMILY_POLICIES, optional=True)
    malformed = list(_validate_addresses(addresses, known))
    yield from malformed
    if len(addresses) > 2:
        yield invalid_value(field, addresses, "may only hold up to 2 values")
    if not malformed and addresses[:1] != [HEADLESS]:
        yield from _validate_families(addresses, families)


def _validate_addresses(addresses: Sequence[str], known: Container[str]) -> Iterator[FieldError]:
    for index, each in enumerate(addresses):
        if index or each != HEADLESS:
            yield from validate_address(f"spec.clusterIPs[{index}]", each, known)
        elif len(addresses) > 1:
            yield invalid_value("spec.clusterIPs", list(addresses), "'None' must be the first and only value")


def _validate_families(addresses: Sequence[str], families: Sequence[str]) -> Iterator[FieldError]:
    actual = ["IPv6" if ":" in each else "IPv4" for each in addresses]
    if len(actual) > 1 and (len(actual) > 2 or actual[0] == actual[1]):
        problem = "may specify no more than one IP for each IP family"
        yield invalid_value("spec.clusterIPs", list(addresses), problem)
    for index, (address, one, family) in enumerate(zip(addresses, actual, families, strict=False)):
        if family in _FAMILIES and family != one:
            problem = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            yield invalid_value(f"spec.clusterIPs[{index}]", address, problem)


def _validate_external_address(spec: Object, known: Container[str]) -> Iterator[FieldError]:
    for index, each in enumerate(spec.get("externalIPs") or ()):
        field = f"spec.externalIPs[{index}]"
        if errors := list(validate_address(field, each, known)):
            yield from errors
        else:
            yield from validate_no_special_address(field, each)


def _validate_repeated_ports(ports: Sequence[Object], spec: Object) -> Iterator[FieldError]:
    """Node ports and ports are one port's, of each protocol."""
    if spec.get("type") == "ClusterIP":
        for index, each in enumerate(ports):
            if each.get("nodePort"):
                detail = "may not be used when `type` is 'ClusterIP'"
                yield forbidden_value(f"spec.ports[{index}].nodePort", detail)
    for name in ("nodePort", "port"):
        seen = set[Any]()
        for index, each in enumerate(ports):
            number, protocol = each.get(name, 0), each.get("protocol")
            if (protocol, number) in seen and name == "nodePort" and number:
                yield duplicate(f"spec.ports[{index}].nodePort", number)
            elif (protocol, number) in seen and name == "port":
                shown = {"Name": "", "Protocol": protocol, "AppProtocol": None, "Port": number}
                yield duplicate(f"spec.ports[{index}]", {**shown, "TargetPort": 0, "NodePort": 0})
            seen.add((protocol, number))


def _validate_annotated_ranges(service: Object) -> Iterator[FieldError]:
    text, field = (service["metadata"].get("annotations") or {}).get(_RANGES), f"metadata.annotations[{_RANGES}]"
    if text is None or service["spec"].get("loadBalancerSourceRanges"):
        return
    if service["spec"].get("type") != _BALANCER:
        yield forbidden_value(field, _NOT_BALANCER)
    for each in text.split(",") if text.strip() else ():
        yield from validate_cidr(field, each.strip())


def _validate_balancer(spec: Object, before: Object) -> Iterator[FieldError]:
    if ranges := spec.get("loadBalancerSourceRanges"):
        field = "spec.LoadBalancerSourceRanges"
        if spec.get("type") != _BALANCER:
            yield forbidden_value(field, _NOT_BALANCER)
        known = {each.strip() for each in before.get("loadBalancerSourceRanges") or ()}
        for index, each in enumerate(ranges):
            yield from validate_cidr(f"{field}[{index}]", each.strip(), known)
    if spec.get("allocateLoadBalancerNodePorts") is not None and spec.get("type") != _BALANCER:
        yield forbidden_value("spec.allocateLoadBalancerNodePorts", _NOT_BALANCER)
    yield from _validate_class(spec)


def _validate_traffic(spec: Object) -> Iterator[FieldError]:
    external, health = spec.get("externalTrafficPolicy"), spec.get("healthCheckNodePort")
    if is_exposed(spec):
        yield from validate_one_of("spec.externalTrafficPolicy", external, INTERNAL_POLICIES)
    elif external:
        problem = "may only be set for externally-accessible services"
        yield invalid_value("spec.externalTrafficPolicy", external, problem)
    if needs_health_check(spec):
        if not health:
            yield required("spec.healthCheckNodePort")
        yield from validate_port(health or None, "spec.healthCheckNodePort")
    elif health:
        problem = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield invalid_value("spec.healthCheckNodePort", health, problem)
    for name, allowed in (("internalTrafficPolicy", INTERNAL_POLICIES), ("trafficDistribution", _DISTRIBUTIONS)):
        yield from validate_one_of(f"spec.{name}", spec.get(name), allowed, optional=True)


def validate_service_status(new: Object, old: Object | None) -> list[FieldError]:
    if _points(new) and (new.get("spec") or {}).get("type") != _BALANCER:
        detail = "may only be used when `spec.type` is 'LoadBalancer'"
        return [forbidden_value("status.loadBalancer.ingress", detail)]
    return list(validate_load_balancer_status(new, old))


def service_warnings(new: Object, _old: Object | None) -> list[str]:
    spec, annotations = new["spec"], new["metadata"].get("annotations") or {}
    found = []
    if _HINTS in annotations:
        found.append(f"annotation {_HINTS} is deprecated, please use {_MODE} instead")
    headless = spec.get("type") == "ClusterIP" and spec.get("clusterIP") == HEADLESS
    if headless:
        ignored = {"loadBalancerIP": spec.get("loadBalancerIP"), "externalIPs": spec.get("externalIPs")}
        ignored["SessionAffinity"] = spec.get("sessionAffinity") != "None"
        found += [f"spec.{name} is ignored for headless services" for name, given in ignored.items() if given]
    found += _address_warnings(spec)
    external, type_ = spec.get("externalIPs"), spec.get("type")
    if external and not headless and type_ != "ExternalName":
        found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if external and type_ == "ExternalName":
        found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if type_ != "ExternalName" and spec.get("externalName"):
        found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return found


def _address_warnings(spec: Object) -> Iterator[str]:
    for name in ("clusterIPs", "externalIPs"):
        for index, each in enumerate(spec.get(name) or ()):
            yield from address_warnings(f"spec.{name}[{index}]", each)
    if address := spec.get("loadBalancerIP"):
        yield from address_warnings("spec.loadBalancerIP", address)
    for index, each in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        yield from cidr_warnings(f"spec.loadBalancerSourceRanges[{index}]", each)


def with_service_defaults(service: dict[str, Any]) -> dict[str, Any]:
    spec = dict(service.get("spec") or {})
    if is_exposed(spec):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec.get("type") in _IN_CLUSTER:
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec.get("type") == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    return {**service, "spec": spec}


def is_exposed(spec: Object) -> bool:
    """Whether a Service can be reached from outside the cluster."""
    return spec.get("type") in WITH_NODE_PORTS or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


def validate_load_balancer_status(new: Object, old: Object | None) -> Iterator[FieldError]:
    """Validates the addresses of a load balancer, in the status of an Ingress or a Service."""
    known = {each.get("ip") for each in _points(old)}
    for index, each in enumerate(_points(new)):
        field = f"status.loadBalancer.ingress[{index}]"
        if address := each.get("ip"):
            yield from validate_address(f"{field}.ip", address, known)
        if host := each.get("hostname"):
            yield from invalid_values(f"{field}.hostname", host, subdomain_problems(host))
            if parse_address(host) is not None:
                yield invalid_value(f"{field}.hostname", host, "must be a DNS name, not an IP address")


def _points(obj: Object | None) -> list[Any]:
    return value_at(obj or {}, "status.loadBalancer.ingress") or []


def as_allocated(service: dict[str, Any]) -> dict[str, Any]:
    """A new Service as if the server had allocated what its validation asks for."""
    spec = dict(service["spec"])
    if spec.get("clusterIP"):
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
    if needs_health_check(spec):
        spec.setdefault("healthCheckNodePort", _ANY_NODE_PORT)
    return {**service, "spec": spec}
