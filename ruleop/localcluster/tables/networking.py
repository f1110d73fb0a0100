"""Rows of Ingresses, NetworkPolicies and EndpointSlices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.localcluster.tables.cell_text import (
    NONE,
    UNSET,
    age,
    annotation,
    first_three,
    label_selector,
    load_balancer,
    name,
    spec,
)
from ruleop.localcluster.tables.printer import printer

if TYPE_CHECKING:
    from ruleop.core.kinds import JSON, Object


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
        load_balancer(obj),
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


NETWORKING: Final = {
    ("discovery.k8s.io", "EndpointSlice"): printer("Name|AddressType|Ports|Endpoints|Age", _endpoint_slice),
    ("networking.k8s.io", "Ingress"): printer("Name|Class|Hosts|Address|Ports|Age", _ingress),
    ("networking.k8s.io", "IngressClass"): printer("Name|Controller|Parameters|Age", _ingress_class),
    ("networking.k8s.io", "NetworkPolicy"): printer("Name|Pod-Selector|Age", _network_policy),
}
