"""Why a Service is invalid."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.localcluster.errors import Cause, forbidden_value, invalid_value, required, unsupported
from ruleop.localcluster.kinds.numbers import port_causes
from ruleop.localcluster.kinds.services import HEADLESS
from ruleop.localcluster.objects.names import label_causes, label_problems, port_name_problems, subdomain_problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kinds import Object

NOT_ADDRESS: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_ENUMS: Final = {
    "type": ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"),
    "sessionAffinity": ("ClientIP", "None"),
    "ipFamilyPolicy": ("PreferDualStack", "RequireDualStack", "SingleStack"),
}
_FAMILIES: Final = ("IPv4", "IPv6")


def service_causes(new: Object, old: Object | None) -> list[Cause]:
    spec = new["spec"]
    causes = [*_port_causes(spec), *_spec_causes(spec)]
    if old is not None and "ExternalName" not in (spec.get("type"), old["spec"].get("type")):
        after, before = spec.get("clusterIP"), old["spec"].get("clusterIP")
        if before and after != before:
            shown = f'["{after}"]'
            message = f"Invalid value: {shown}: may not change once set"
            causes.append(Cause("FieldValueInvalid", message, "spec.clusterIPs[0]"))
    return causes


def _node_port_causes(before: list[Any], port: Object, field: str) -> Iterator[Cause]:
    """Ports of one number and of two protocols may share a node port."""
    number = port.get("nodePort")
    taken = [each for each in before if number and each.get("nodePort") == number]
    if any(each["port"] != port["port"] or each.get("protocol") == port.get("protocol") for each in taken):
        message = f"Invalid value: {number}: provided port is already allocated"
        yield Cause("FieldValueInvalid", message, f"{field}.nodePort")


def _port_causes(spec: Object) -> Iterator[Cause]:
    ports = spec.get("ports") or []
    if not ports and spec.get("clusterIP") != HEADLESS and spec.get("type") != "ExternalName":
        yield Cause("FieldValueRequired", "Required value", "spec.ports")
    seen: set[tuple[Any, Any]] = set()
    names: set[str] = set()
    for index, each in enumerate(ports):
        field = f"spec.ports[{index}]"
        name = each.get("name")
        if not name and len(ports) > 1:
            yield Cause("FieldValueRequired", "Required value", f"{field}.name")
        elif name and name in names:
            yield Cause("FieldValueDuplicate", f'Duplicate value: "{name}"', f"{field}.name")
        names.add(name or "")
        yield from _node_port_causes(ports[:index], each, field)
        yield from _one_port_causes(each, field, spec.get("type", "ClusterIP"))
        key = (each.get("protocol"), each.get("port"))
        if key in seen:
            shown = {
                "Name": "",
                "Protocol": each.get("protocol"),
                "AppProtocol": None,
                "Port": each.get("port"),
                "TargetPort": 0,
                "NodePort": 0,
            }
            yield Cause("FieldValueDuplicate", f"Duplicate value: {orjson.dumps(shown).decode()}", field)
        seen.add(key)


def _one_port_causes(port: Object, field: str, kind: str) -> Iterator[Cause]:
    yield from port_causes(port.get("port", 0), f"{field}.port")
    target, name = port.get("targetPort", 0), port.get("name")
    yield from port_causes(target, f"{field}.targetPort")
    if isinstance(target, str):
        yield from (invalid_value(f"{field}.targetPort", target, each) for each in port_name_problems(target))
    if name:
        yield from (invalid_value(f"{field}.name", name, each) for each in label_problems(name))
    if port.get("protocol") not in _PROTOCOLS:
        yield unsupported(f"{field}.protocol", port.get("protocol"), _PROTOCOLS)
    if port.get("nodePort") and kind == "ClusterIP":
        yield forbidden_value(f"{field}.nodePort", "may not be used when `type` is 'ClusterIP'")


def _spec_causes(spec: Object) -> Iterator[Cause]:
    kind = spec.get("type", "ClusterIP")
    for name, known in _ENUMS.items():
        if name in spec and spec[name] not in known:
            yield unsupported(f"spec.{name}", spec[name], known)
    yield from label_causes(spec.get("selector") or {}, "spec.selector")
    for index, each in enumerate(spec.get("externalIPs") or ()):
        if not is_address(each):
            yield invalid_value(f"spec.externalIPs[{index}]", each, NOT_ADDRESS)
    if kind == "ExternalName":
        yield from _external_name_causes(spec.get("externalName") or "")
    else:
        yield from _address_causes(spec, kind)
    if kind == "ClusterIP" and "externalTrafficPolicy" in spec and not spec.get("externalIPs"):
        problem = "may only be set for externally-accessible services"
        yield invalid_value("spec.externalTrafficPolicy", spec["externalTrafficPolicy"], problem)
    if spec.get("loadBalancerSourceRanges") and kind != "LoadBalancer":
        yield forbidden_value("spec.LoadBalancerSourceRanges", "may only be used when `type` is 'LoadBalancer'")


def _external_name_causes(name: str) -> Iterator[Cause]:
    if not name:
        yield required("spec.externalName")
    else:
        problems = subdomain_problems(name.removesuffix("."))
        yield from (invalid_value("spec.externalName", name, each) for each in problems)


def _address_causes(spec: Object, kind: str) -> Iterator[Cause]:
    address = spec.get("clusterIP")
    if address == HEADLESS:
        if kind in ("NodePort", "LoadBalancer"):
            problem = f"may not be set to 'None' for {kind} services"
            yield invalid_value("spec.clusterIPs[0]", address, problem)
    elif address and not is_address(address):
        yield invalid_value("spec.clusterIPs[0]", address, NOT_ADDRESS)
    for index, each in enumerate(spec.get("ipFamilies") or ()):
        if each not in _FAMILIES:
            yield unsupported(f"spec.ipFamilies[{index}]", each, _FAMILIES)


def is_address(text: Any) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
