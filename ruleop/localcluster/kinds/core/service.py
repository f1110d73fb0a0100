"""Services: defaults, and what of the previous version a new one keeps. `service_allocation` allocates the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.kubernetes.builtin.immutable_fields import needs_health_check
from ruleop.kubernetes.validation.tables.core import WITH_NODE_PORTS, is_exposed

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object


def gets_node_ports(spec: Object) -> bool:
    """Whether ports without a node port are given one."""
    if spec.get("type") == "LoadBalancer":
        return spec.get("allocateLoadBalancerNodePorts") is not False
    return spec.get("type") == "NodePort"


def kept_on_update(new: dict[str, Any], old: Object) -> dict[str, Any]:
    """The new version with what was allocated, where a client leaves it out; and without what its type does not have,
    where a client leaves it as it was."""
    spec, before = dict(new["spec"]), old["spec"]
    if "ExternalName" not in (spec.get("type"), before.get("type")):
        _keep_addresses(spec, before)
    if gets_node_ports(before) and gets_node_ports(spec):
        spec["ports"] = _with_known_node_ports(spec.get("ports") or [], before.get("ports") or [])
    if needs_health_check(before) and needs_health_check(spec) and before.get("healthCheckNodePort"):
        spec.setdefault("healthCheckNodePort", before["healthCheckNodePort"])
    _drop_unused(spec, before)
    found = {**new, "spec": {name: value for name, value in spec.items() if value != [] or name != "ports"}}
    if spec.get("type") != "LoadBalancer" and "status" in new:
        found["status"] = {**new["status"], "loadBalancer": {}}
    return found


def _keep_addresses(spec: dict[str, Any], before: Object) -> None:
    """`clusterIP` and `clusterIPs` are the same address; a client may know the first only."""
    changed = bool(spec.get("clusterIP")) and spec["clusterIP"] != before.get("clusterIP")
    for name in ("clusterIP", "clusterIPs"):
        if not spec.get(name) and before.get(name):
            spec[name] = before[name]
    if changed and spec.get("clusterIPs") == before.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]


def _with_known_node_ports(ports: list[dict[str, Any]], before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A port keeps the node port of the previous port of its name."""
    known = {each.get("name"): each.get("nodePort") for each in before}
    used = {each.get("nodePort") for each in ports} & {each.get("nodePort") for each in before}
    found = []
    for each in ports:
        number = known.get(each.get("name"))
        found.append(each if each.get("nodePort") or not number or number in used else {**each, "nodePort": number})
    return found


def _drop_unused(spec: dict[str, Any], before: Object) -> None:
    if spec.get("type") == "ExternalName" and before.get("type") != "ExternalName":
        if all(spec.get(name) == before.get(name) for name in ("clusterIP", "clusterIPs")):
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
        _drop_same(spec, before, "ipFamilies", "ipFamilyPolicy")
    if before.get("type") in WITH_NODE_PORTS and spec.get("type") not in WITH_NODE_PORTS:
        known = {each.get("nodePort") for each in before.get("ports") or []}
        ports = spec.get("ports") or []
        if all(each.get("nodePort") in known for each in ports if each.get("nodePort")):
            spec["ports"] = [{name: value for name, value in each.items() if name != "nodePort"} for each in ports]
    if needs_health_check(before) and not needs_health_check(spec):
        _drop_same(spec, before, "healthCheckNodePort")
    if before.get("type") == "LoadBalancer" and spec.get("type") != "LoadBalancer":
        _drop_same(spec, before, "allocateLoadBalancerNodePorts", "loadBalancerClass")
    if is_exposed(before) and not is_exposed(spec):
        _drop_same(spec, before, "externalTrafficPolicy")


def _drop_same(spec: dict[str, Any], before: Object, *names: str) -> None:
    for name in names:
        if name in spec and spec[name] == before.get(name):
            del spec[name]
