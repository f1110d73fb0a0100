"""The cells of Services, Ingresses and the other kinds of the network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.localcluster.tables.printer import printer
from ruleop.localcluster.tables.text import (
    NONE,
    UNKNOWN,
    UNSET,
    age,
    annotation,
    first_three,
    label_selector,
    labels,
    name,
    spec,
    status,
)

if TYPE_CHECKING:
    from ruleop.kinds import JSON, Object


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
            return ",".join(each for each in (_load_balancer(obj), *addresses) if each) or "<pending>"
        case "ExternalName":
            return str(desired.get("externalName", ""))
        case _:
            return UNKNOWN


def _load_balancer(obj: Object) -> str:
    ingress = (status(obj).get("loadBalancer") or {}).get("ingress") or ()
    return ",".join(sorted({found for each in ingress if (found := each.get("ip") or each.get("hostname"))}))


def _endpoints(obj: Object, now: float) -> list[JSON]:
    found: list[str] = []
    for subset in obj.get("subsets") or ():
        addresses = [each["ip"] for each in subset.get("addresses") or ()]
        ports = subset.get("ports")
        found += [_joined(each, port["port"]) for port in ports for each in addresses] if ports else addresses
    return [name(obj), first_three(found, "" if obj.get("subsets") else NONE), age(obj, now)]


def _joined(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _endpoint_slice(obj: Object, now: float) -> list[JSON]:
    ports = [str(port.get("port", port.get("name", "*"))) for port in obj.get("ports") or ()]
    addresses = [each for endpoint in obj.get("endpoints") or () for each in endpoint.get("addresses") or ()]
    return [
        name(obj),
        obj.get("addressType", ""),
        first_three(ports, UNSET),
        first_three(addresses, UNSET),
        age(obj, now),
    ]


def _ingress(obj: Object, now: float) -> list[JSON]:
    desired = spec(obj)
    return [
        name(obj),
        desired.get("ingressClassName", NONE),
        _hosts(desired.get("rules") or ()),
        _load_balancer(obj),
        "80, 443" if desired.get("tls") else "80",
        age(obj, now),
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


def _ingress_class(obj: Object, now: float) -> list[JSON]:
    parameters = spec(obj).get("parameters")
    text = NONE
    if parameters is not None:
        group = f".{parameters['apiGroup']}" if "apiGroup" in parameters else ""
        text = f"{parameters['kind']}{group}/{parameters['name']}"
    is_default = annotation(obj, "ingressclass.kubernetes.io/is-default-class") == "true"
    title = f"{name(obj)} (default)" if is_default else name(obj)
    return [title, spec(obj).get("controller", ""), text, age(obj, now)]


def _network_policy(obj: Object, now: float) -> list[JSON]:
    return [name(obj), label_selector(spec(obj).get("podSelector")) or NONE, age(obj, now)]


def _ip_address(obj: Object, now: float) -> list[JSON]:
    """With the age, as Kubernetes does, although there is no column for it."""
    parent = spec(obj).get("parentRef") or {}
    resource = ".".join(part for part in (parent.get("resource"), parent.get("group")) if part).lower()
    reference = "/".join(part for part in (resource, parent.get("namespace"), parent.get("name")) if part)
    return [name(obj), reference or NONE, age(obj, now)]


def _service_range(obj: Object, now: float) -> list[JSON]:
    return [name(obj), ",".join(spec(obj).get("cidrs") or ()), age(obj, now)]


NETWORK = {
    ("", "Service"): printer("Name|Type|Cluster-IP|External-IP|Port(s)|Age|Selector+", _service),
    ("", "Endpoints"): printer("Name|Endpoints|Age", _endpoints),
    ("discovery.k8s.io", "EndpointSlice"): printer("Name|AddressType|Ports|Endpoints|Age", _endpoint_slice),
    ("networking.k8s.io", "Ingress"): printer("Name|Class|Hosts|Address|Ports|Age", _ingress),
    ("networking.k8s.io", "IngressClass"): printer("Name|Controller|Parameters|Age", _ingress_class),
    ("networking.k8s.io", "NetworkPolicy"): printer("Name|Pod-Selector|Age", _network_policy),
    ("networking.k8s.io", "IPAddress"): printer("Name|ParentRef", _ip_address),
    ("networking.k8s.io", "ServiceCIDR"): printer("Name|CIDRs|Age", _service_range),
}
