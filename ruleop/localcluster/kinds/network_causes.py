"""Why Ingresses and NetworkPolicies are invalid."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.errors import Cause, forbidden_value, invalid_value, required, unsupported
from ruleop.localcluster.kinds.label_selectors import label_selector_causes
from ruleop.localcluster.kinds.numbers import port_causes
from ruleop.localcluster.kinds.service_causes import is_address
from ruleop.localcluster.objects.names import port_name_problems, subdomain_problems, wildcard_problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kinds import Object

_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_FORBIDDEN_IN_PATHS: Final = ("//", "/./", "/../", "%2f", "%2F")
_DIRECTIONS: Final = {"ingress": "from", "egress": "to"}
_POLICY_TYPES: Final = ("Ingress", "Egress")
_NOT_RANGE: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


# -- Ingresses ---------------------------------------------------------------------------------------------------------


def ingress_causes(new: Object, _old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    causes = list[Cause]()
    if not spec.get("rules") and "defaultBackend" not in spec:
        causes.append(invalid_value("spec", None, "either `defaultBackend` or `rules` must be specified"))
    if "defaultBackend" in spec:
        causes += _backend_causes(spec["defaultBackend"] or {}, "spec.defaultBackend")
    for index, rule in enumerate(spec.get("rules") or ()):
        causes += _rule_causes(rule, f"spec.rules[{index}]")
    for index, each in enumerate(spec.get("tls") or ()):
        for number, host in enumerate(each.get("hosts") or ()):
            field = f"spec.tls[{index}].hosts[{number}]"
            causes += (invalid_value(field, host, problem) for problem in wildcard_problems(host))
    if name := spec.get("ingressClassName"):
        causes += (invalid_value("spec.ingressClassName", name, each) for each in subdomain_problems(name))
    return causes


def _rule_causes(rule: Object, field: str) -> Iterator[Cause]:
    if host := rule.get("host"):
        if is_address(host):
            yield invalid_value(f"{field}.host", host, "must be a DNS name, not an IP address")
        else:
            yield from (invalid_value(f"{field}.host", host, each) for each in wildcard_problems(host))
    if "http" not in rule:
        return
    paths = (rule["http"] or {}).get("paths") or ()
    if not paths:
        yield required(f"{field}.http.paths")
    for index, path in enumerate(paths):
        yield from _path_causes(path, f"{field}.http.paths[{index}]")


def _path_causes(path: Object, field: str) -> Iterator[Cause]:
    kind, text = path.get("pathType"), path.get("path") or ""
    if kind is None:
        yield required(f"{field}.pathType", "pathType must be specified")
    elif kind not in _PATH_TYPES:
        yield unsupported(f"{field}.pathType", kind, _PATH_TYPES)
    elif kind == "ImplementationSpecific":
        if text and not text.startswith("/"):
            yield invalid_value(f"{field}.path", text, "must be an absolute path")
    elif not text.startswith("/"):
        yield invalid_value(f"{field}.path", text, "must be an absolute path")
    else:
        yield from _part_causes(text, f"{field}.path")
    yield from _backend_causes(path.get("backend") or {}, f"{field}.backend")


def _part_causes(text: str, field: str) -> Iterator[Cause]:
    for part in _FORBIDDEN_IN_PATHS:
        if part in text:
            yield invalid_value(field, text, f"must not contain '{part}'")
    for end in ("/..", "/."):
        if text.endswith(end):
            yield invalid_value(field, text, f"cannot end with '{end}'")


def _backend_causes(backend: Object, field: str) -> Iterator[Cause]:
    service = backend.get("service")
    if service is not None and backend.get("resource") is not None:
        yield invalid_value(field, "", "cannot set both resource and service backends")
    elif service is not None:
        yield from _service_causes(service, field)
    elif backend.get("resource") is None:
        yield invalid_value(field, "", "resource or service backend is required")


def _service_causes(service: Object, field: str) -> Iterator[Cause]:
    if not service.get("name"):
        yield required(f"{field}.service.name")
    port = service.get("port") or {}
    number, name = port.get("number"), port.get("name")
    if number and name:
        yield invalid_value(field, "", "cannot set both port name & port number")
    elif name:
        yield from (invalid_value(f"{field}.service.port.name", name, each) for each in port_name_problems(name))
    elif number:
        yield from port_causes(number, f"{field}.service.port.number")
    else:
        yield required(field, "port name or number is required")


# -- NetworkPolicies ---------------------------------------------------------------------------------------------------


def policy_causes(new: Object, _old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    causes = list(label_selector_causes(spec.get("podSelector"), "spec.podSelector"))
    for direction, side in _DIRECTIONS.items():
        for index, rule in enumerate(spec.get(direction) or ()):
            causes += _traffic_causes(rule, side, f"spec.{direction}[{index}]")
    for index, each in enumerate(spec.get("policyTypes") or ()):
        if each not in _POLICY_TYPES:
            causes.append(unsupported(f"spec.policyTypes[{index}]", each, _POLICY_TYPES))
    return causes


def _traffic_causes(rule: Object, side: str, field: str) -> Iterator[Cause]:
    for index, each in enumerate(rule.get("ports") or ()):
        yield from port_causes(each.get("port"), f"{field}.ports[{index}].port")
    for index, each in enumerate(rule.get(side) or ()):
        yield from _peer_causes(each, f"{field}.{side}[{index}]")


def _peer_causes(peer: Object, field: str) -> Iterator[Cause]:
    block = peer.get("ipBlock")
    if not peer:
        yield required(field, "must specify a peer")
    elif block is not None and len(peer) > 1:
        yield forbidden_value(field, "may not specify both ipBlock and another peer")
    elif block is not None:
        yield from _block_causes(block, f"{field}.ipBlock")
    for name in ("podSelector", "namespaceSelector"):
        yield from label_selector_causes(peer.get(name), f"{field}.{name}")


def _block_causes(block: Object, field: str) -> Iterator[Cause]:
    if not block.get("cidr"):
        yield required(f"{field}.cidr")
        return
    whole = _range(block["cidr"])
    if whole is None:
        yield invalid_value(f"{field}.cidr", block["cidr"], _NOT_RANGE)
        return
    for index, each in enumerate(block.get("except") or ()):
        part = _range(each)
        if part is None:
            yield invalid_value(f"{field}.except[{index}]", each, _NOT_RANGE)
        elif part.version != whole.version or part == whole or not part.subnet_of(whole):
            yield invalid_value(f"{field}.except[{index}]", each, "must be a strict subset of `cidr`")


def _range(text: Any) -> Any:
    try:
        return ipaddress.ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        return None
