"""NetworkPolicies: why one is invalid, what is warned of, and when its generation grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.errors import forbidden_value, invalid_value, required, unsupported
from ruleop.localcluster.kinds.addresses import cidr_causes, cidr_warnings, parse_network
from ruleop.localcluster.kinds.label_selectors import label_selector_causes
from ruleop.localcluster.kinds.numbers import port_or_name_causes

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from ruleop.kinds import Object
    from ruleop.localcluster.errors import Cause

_RULES: Final = (("ingress", "from"), ("egress", "to"))
_TYPES: Final = ("Ingress", "Egress")
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")


def policy_causes(new: Object, old: Object | None) -> list[Cause]:
    known = {each for _, block in _blocks(old) for each in (block.get("cidr"), *(block.get("except") or ()))}
    return list(_spec_causes(new.get("spec") or {}, known))


def policy_warnings(new: Object, _old: Object | None) -> list[str]:
    return [
        warning
        for field, block in _blocks(new)
        for name, values in (("cidr", [block.get("cidr", "")]), ("except", block.get("except") or ()))
        for index, value in enumerate(values)
        for warning in cidr_warnings(f"{field}.cidr" if name == "cidr" else f"{field}.except[{index}]", value)
    ]


def has_empty_fields(spec: Any) -> bool:
    """Whether a list or the labels of a selector are empty. A stored policy has no such field, and the server compares
    an empty one with none as different."""
    if isinstance(spec, list):
        return not spec or any(map(has_empty_fields, spec))
    if not isinstance(spec, dict):
        return False
    return spec.get("matchLabels") == {} or any(
        has_empty_fields(value) for name, value in spec.items() if name != "policyTypes"
    )


def _blocks(policy: Object | None) -> Iterator[tuple[str, Object]]:
    """The ipBlocks of a policy, and where they are."""
    spec = (policy or {}).get("spec") or {}
    for direction, side in _RULES:
        for index, rule in enumerate(spec.get(direction) or ()):
            for number, peer in enumerate(rule.get(side) or ()):
                if (block := peer.get("ipBlock")) is not None:
                    yield f"spec.{direction}[{index}].{side}[{number}].ipBlock", block


def _spec_causes(spec: Object, known: Container[Any]) -> Iterator[Cause]:
    yield from label_selector_causes(spec.get("podSelector"), "spec.podSelector")
    for direction, side in _RULES:
        for index, rule in enumerate(spec.get(direction) or ()):
            field = f"spec.{direction}[{index}]"
            for number, port in enumerate(rule.get("ports") or ()):
                yield from _policy_port_causes(f"{field}.ports[{number}]", port)
            for number, peer in enumerate(rule.get(side) or ()):
                yield from _peer_causes(f"{field}.{side}[{number}]", peer, known)
    types = spec.get("policyTypes") or []
    if len(types) > len(_TYPES):
        yield invalid_value("spec.policyTypes", types, "may not specify more than two policyTypes")
        return
    for index, each in enumerate(types):
        if each not in _TYPES:
            yield unsupported(f"spec.policyTypes[{index}]", each, _TYPES)


def _policy_port_causes(field: str, port: Object) -> Iterator[Cause]:
    protocol, number, end = port.get("protocol"), port.get("port"), port.get("endPort")
    if protocol is not None and protocol not in _PROTOCOLS:
        yield unsupported(f"{field}.protocol", protocol, _PROTOCOLS)
    if isinstance(number, int):
        yield from port_or_name_causes(number, f"{field}.port")
        if end is not None:
            if end < number:
                yield invalid_value(f"{field}.endPort", number, "must be greater than or equal to `port`")
            yield from port_or_name_causes(end, f"{field}.endPort")
        return
    if end is not None:
        state = "not specified" if number is None else "non-numeric"
        yield invalid_value(f"{field}.endPort", end, f"may not be specified when `port` is {state}")
    if number is not None:
        yield from port_or_name_causes(number, f"{field}.port")


def _peer_causes(field: str, peer: Object, known: Container[Any]) -> Iterator[Cause]:
    selectors = [name for name in ("podSelector", "namespaceSelector") if peer.get(name) is not None]
    for name in selectors:
        yield from label_selector_causes(peer[name], f"{field}.{name}")
    block = peer.get("ipBlock")
    if block is not None:
        yield from _block_causes(f"{field}.ipBlock", block, known)
    if block is None and not selectors:
        yield required(field, "must specify a peer")
    elif block is not None and selectors:
        yield forbidden_value(field, "may not specify both ipBlock and another peer")


def _block_causes(field: str, block: Object, known: Container[Any]) -> Iterator[Cause]:
    cidr = block.get("cidr", "")
    if not cidr:
        yield required(f"{field}.cidr")
        return
    yield from cidr_causes(f"{field}.cidr", cidr, known)
    if (whole := parse_network(cidr)) is None:
        return
    for index, each in enumerate(block.get("except") or ()):
        yield from cidr_causes(f"{field}.except[{index}]", each, known)
        part: Any = parse_network(each)
        if part is None:
            continue
        if part.version != whole.version or part == whole or not part.subnet_of(whole):
            yield invalid_value(f"{field}.except[{index}]", each, "must be a strict subset of `cidr`")
