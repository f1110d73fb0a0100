"""Services: what of the previous version a new one keeps; their addresses and node ports, and what the server refuses
while it allocates them.

They are chosen by the uid, so that tests of rules, in which uids are not random, see the same ones in each run. Those
of all Services are kept current by each write, so that a new one reads no other.
"""

from __future__ import annotations

from collections import Counter
from ipaddress import ip_address, ip_network
from random import Random
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.immutable_fields import needs_health_check
from ruleop.kubernetes.builtin.kind_defaults import WITH_NODE_PORTS, is_exposed
from ruleop.kubernetes.validation import (
    HEADLESS,
    INTERNAL_POLICIES,
    cluster_ip_errors,
    invalid_value,
)
from ruleop.localcluster.object_store import SERVICES, Name
from ruleop.localcluster.status_errors import Rejected, invalid_named

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.validation import FieldError
    from ruleop.localcluster.object_store import Store, StoreEvent


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


class Allocations:
    def __init__(self, store: Store) -> None:
        self.addresses: Counter[str] = Counter()
        self.node_ports: Counter[int] = Counter()
        for each in store.all(SERVICES):
            self._count(each.obj, 1)
        store.listen(SERVICES, self._changed)

    def _changed(self, event: StoreEvent) -> None:
        if event.old is not None:
            self._count(event.old.obj, -1)
        if not event.deleted:
            self._count(event.new.obj, 1)

    def _count(self, service: Object, number: int) -> None:
        spec = service["spec"]
        if address := spec.get("clusterIP"):
            self.addresses[address] += number
        if health_port := spec.get("healthCheckNodePort"):
            self.node_ports[health_port] += number
        for port in spec.get("ports") or []:
            if node_port := port.get("nodePort"):
                self.node_ports[node_port] += number


NODE_PORTS: Final = range(30000, 32768)
_ADDRESSES: Final = ip_network("10.96.0.0/16")
_FAMILIES: Final = ("IPv4", "IPv6")


def allocate(service: dict[str, Any], store: Store) -> dict[str, Any]:
    """The Service with its cluster IP and node ports. Raises Rejected."""
    spec, metadata = dict(service["spec"]), service["metadata"]
    existing = store.get(SERVICES, Name(metadata["namespace"], metadata["name"]))
    is_update = existing is not None and existing.uid == metadata["uid"]
    before: Object = existing.obj["spec"] if existing is not None and is_update else {}
    if spec.get("type") == "ExternalName":
        if spec.get("clusterIP"):
            spec.setdefault("clusterIPs", [spec["clusterIP"]])
        if spec.get("internalTrafficPolicy") in INTERNAL_POLICIES:
            del spec["internalTrafficPolicy"]  # not shown for this type
        return {**service, "spec": spec}
    allocations, random = store.attached(Allocations), Random(metadata["uid"])  # noqa: S311 - not for secrets
    _refuse(metadata["name"], list(_fill_families(spec, before)))
    if not before or before.get("type") == "ExternalName":
        _refuse(metadata["name"], list(_fill_address(spec, allocations, random)))
    if spec.get("type") in WITH_NODE_PORTS:
        _refuse(metadata["name"], list(_fill_ports(spec, before, allocations, random)))
    if needs_health_check(spec) and not needs_health_check(before):
        chosen = {each["nodePort"] for each in spec.get("ports") or () if each.get("nodePort")}
        spec.setdefault("healthCheckNodePort", _free_port(allocations, chosen, random))
    return {**service, "spec": spec}


def _refuse(name: str, errors: list[FieldError]) -> None:
    if errors:
        raise invalid_named("", "Service", name, errors)


def _fill_families(spec: dict[str, Any], before: Object) -> Iterator[FieldError]:
    """Of a cluster with IPv4 alone. Without any error, the families are there."""
    if spec.get("clusterIP"):
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
    if spec.get("clusterIPs") == []:
        del spec["clusterIPs"]
    any_family = spec.get("clusterIP") == HEADLESS and not spec.get("selector")
    given, policy = spec.get("ipFamilies"), spec.get("ipFamilyPolicy") or before.get("ipFamilyPolicy")
    spec["ipFamilies"] = given or (list(_FAMILIES) if any_family and policy != "SingleStack" else ["IPv4"])
    spec["ipFamilyPolicy"] = policy or ("RequireDualStack" if any_family else "SingleStack")
    if errors := [each.below("spec") for each in cluster_ip_errors(spec, None)]:
        yield from errors
    elif not any_family:
        if given and len(given) > 1 and not policy:
            problem = "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"
            yield invalid_value("spec.ipFamilyPolicy", spec["ipFamilyPolicy"], problem)
            return
        if spec["ipFamilyPolicy"] == "RequireDualStack":
            problem = "this cluster is not configured for dual-stack services"
            yield invalid_value("spec.ipFamilyPolicy", spec["ipFamilyPolicy"], problem)
        for index, each in enumerate(spec["ipFamilies"]):
            if each != "IPv4":
                yield invalid_value(f"spec.ipFamilies[{index}]", each, "not configured on this cluster")


def _fill_address(spec: dict[str, Any], allocations: Allocations, random: Random) -> Iterator[FieldError]:
    taken, addresses = allocations.addresses, spec.get("clusterIPs") or []
    if HEADLESS in addresses:
        return
    if not addresses:
        spec["clusterIP"] = next(each for each in _free_addresses(random) if not taken[each])
        spec["clusterIPs"] = [spec["clusterIP"]]
        return
    address, problem = addresses[0], ""
    if ip_address(address) not in _ADDRESSES:
        problem = "the provided network does not match the current range"
    elif taken[address]:
        problem = "provided IP is already allocated"
    if problem:
        yield invalid_value("spec.clusterIPs", addresses, f"failed to allocate IP {address}: {problem}")


def _free_addresses(random: Random) -> Iterator[str]:
    while True:
        yield f"10.96.{random.randrange(256)}.{random.randrange(1, 255)}"


def _fill_ports(spec: dict[str, Any], before: Object, allocations: Allocations, random: Random) -> Iterator[FieldError]:
    """New ports of one number and of two protocols share a node port."""
    ports, known = spec.get("ports") or [], {each.get("nodePort") for each in before.get("ports") or ()}
    requested = {each.get("port"): each["nodePort"] for each in reversed(ports) if each.get("nodePort")}
    used: dict[int, Any] = {}  # the number of the port that has a node port
    shared: dict[Any, int] = {}
    found = []
    for index, each in enumerate(ports):
        own, port = each.get("nodePort"), each.get("port")
        if not own and not gets_node_ports(spec):
            found.append(each)
            continue
        number = own or (0 if before else shared.get(port) or requested.get(port))
        if not number:
            number = _free_port(allocations, {*used, *requested.values()}, random)
        elif number in known or used.get(number) == port:
            pass  # allocated already
        elif problem := _port_problem(number, allocations, () if before else used):
            yield invalid_value(f"spec.ports[{index}].nodePort", number, problem)
            return
        used[number] = port
        shared.setdefault(port, number)
        found.append({**each, "nodePort": number})
    if "ports" in spec:
        spec["ports"] = found


def _port_problem(number: int, allocations: Allocations, used: Container[int]) -> str:
    if number not in NODE_PORTS:
        first, last = NODE_PORTS[0], NODE_PORTS[-1]
        return f"provided port is not in the valid range. The range of valid ports is {first}-{last}"
    return "provided port is already allocated" if number in used or allocations.node_ports[number] else ""


def _free_port(allocations: Allocations, chosen: set[int], random: Random) -> int:
    if free := [each for each in NODE_PORTS if each not in chosen and not allocations.node_ports[each]]:
        return random.choice(free)
    problem = "failed to allocate a nodePort: range is full"
    raise Rejected(500, "InternalError", f"Internal error occurred: {problem}", {"causes": [{"message": problem}]})
