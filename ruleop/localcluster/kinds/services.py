"""Services: the addresses and ports that the server allocates, and what of them is kept."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.kinds.allocations import Allocations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kinds import Object
    from ruleop.localcluster.store.store import Store

NODE_PORTS: Final = range(30000, 32768)
_WITH_NODE_PORTS: Final = ("NodePort", "LoadBalancer")
_ADDRESS_FIELDS: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
_TRAFFIC_FIELDS: Final = ("internalTrafficPolicy", "externalTrafficPolicy", "allocateLoadBalancerNodePorts")
HEADLESS: Final = "None"


def with_service_defaults(service: dict[str, Any]) -> dict[str, Any]:
    spec = dict(service.get("spec") or {})
    if spec.get("type") == "ExternalName":
        for name in (*_ADDRESS_FIELDS, *_TRAFFIC_FIELDS):
            spec.pop(name, None)
        return {**service, "spec": spec}
    spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec.get("type") in _WITH_NODE_PORTS or spec.get("externalIPs"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec.get("type") == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    return {**service, "spec": spec}


def allocate(service: dict[str, Any], store: Store) -> dict[str, Any]:
    """The Service with its cluster IP and node ports."""
    spec = dict(service["spec"])
    if spec.get("type") == "ExternalName":
        return service
    both = spec.get("clusterIP") == HEADLESS and not spec.get("selector")
    spec.setdefault("ipFamilies", ["IPv4", "IPv6"] if both else ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "RequireDualStack" if both else "SingleStack")
    if not spec.get("clusterIP"):
        taken = store.attached(Allocations).addresses
        spec["clusterIP"] = next(each for each in _addresses() if not taken[each])
    spec["clusterIPs"] = [spec["clusterIP"]]
    spec = {**spec, **_with_ports(spec, store)}
    if spec.get("externalTrafficPolicy") == "Local" and spec.get("type") == "LoadBalancer":
        spec.setdefault("healthCheckNodePort", _free_port(store, set()))
    return {**service, "spec": spec}


def _addresses() -> Iterator[str]:
    while True:
        yield f"10.96.{secrets.randbelow(256)}.{1 + secrets.randbelow(254)}"


def _with_ports(spec: Object, store: Store) -> dict[str, Any]:
    needs = spec.get("type") == "NodePort" or (
        spec.get("type") == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts")
    )
    if not needs or "ports" not in spec:
        return {}
    chosen = {each["nodePort"] for each in spec["ports"] if each.get("nodePort")}
    ports = []
    for each in spec["ports"]:
        number = each.get("nodePort") or _free_port(store, chosen)
        chosen.add(number)
        ports.append({**each, "nodePort": number})
    return {"ports": ports}


def _free_port(store: Store, chosen: set[int]) -> int:
    taken = store.attached(Allocations).node_ports
    while (found := secrets.choice(NODE_PORTS)) in chosen or taken[found]:
        pass
    return found


def kept_on_update(new: dict[str, Any], old: Object) -> dict[str, Any]:
    """What a client leaves out stays as it was allocated."""
    spec, before = dict(new["spec"]), old["spec"]
    kind = spec.get("type")
    if kind == "ExternalName":
        return new
    if before.get("type") != "ExternalName":
        for name in ("clusterIP", "clusterIPs"):
            if not spec.get(name) and before.get(name):
                spec[name] = before[name]
    if kind != "LoadBalancer":
        for name in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            spec.pop(name, None)
    if kind in _WITH_NODE_PORTS:
        spec["ports"] = _with_known_node_ports(spec.get("ports") or [], before.get("ports") or [])
        if spec.get("externalTrafficPolicy") != "Local":
            spec.pop("healthCheckNodePort", None)
        elif before.get("healthCheckNodePort"):
            spec.setdefault("healthCheckNodePort", before["healthCheckNodePort"])
    else:
        spec.pop("healthCheckNodePort", None)
        if not spec.get("externalIPs"):
            spec.pop("externalTrafficPolicy", None)
        if before.get("type") in _WITH_NODE_PORTS:
            spec["ports"] = [
                {name: value for name, value in each.items() if name != "nodePort"} for each in spec.get("ports") or []
            ]
    return {**new, "spec": {name: value for name, value in spec.items() if value != [] or name != "ports"}}


def _with_known_node_ports(ports: list[dict[str, Any]], before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A port keeps the node port of the previous port of its name."""
    known = {each.get("name"): each.get("nodePort") for each in before}
    used = {each.get("nodePort") for each in ports} & {each.get("nodePort") for each in before}
    found = []
    for each in ports:
        number = known.get(each.get("name"))
        if each.get("nodePort") or not number or number in used:
            found.append(each)
        else:
            used.add(number)
            found.append({**each, "nodePort": number})
    return found
