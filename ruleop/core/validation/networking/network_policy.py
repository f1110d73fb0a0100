"""NetworkPolicies: validation, warnings, and when their generation grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.core.validation.field_errors import forbidden_value, invalid_value, required, validate_one_of
from ruleop.core.validation.fields.addresses import cidr_warnings, parse_network, validate_cidr
from ruleop.core.validation.fields.label_selectors import validate_label_selector
from ruleop.core.validation.fields.numbers import validate_port_or_name

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError

_RULES: Final = (("ingress", "from"), ("egress", "to"))
_TYPES: Final = ("Ingress", "Egress")
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")


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


def validate_network_policy(new: Object, old: Object | None) -> Iterator[FieldError]:
    spec = new.get("spec") or {}
    known = {each for _, block in _blocks(old) for each in (block.get("cidr"), *(block.get("except") or ()))}
    yield from validate_label_selector(spec.get("podSelector"), "spec.podSelector")
    for direction, side in _RULES:
        for index, rule in enumerate(spec.get(direction) or ()):
            field = f"spec.{direction}[{index}]"
            for number, port in enumerate(rule.get("ports") or ()):
                yield from _validate_policy_port(f"{field}.ports[{number}]", port)
            for number, peer in enumerate(rule.get(side) or ()):
                yield from _validate_peer(f"{field}.{side}[{number}]", peer, known)
    types = spec.get("policyTypes") or []
    if len(types) > len(_TYPES):
        yield invalid_value("spec.policyTypes", types, "may not specify more than two policyTypes")
        return
    for index, each in enumerate(types):
        yield from validate_one_of(f"spec.policyTypes[{index}]", each, _TYPES)


def _validate_policy_port(field: str, port: Object) -> Iterator[FieldError]:
    number, end = port.get("port"), port.get("endPort")
    yield from validate_one_of(f"{field}.protocol", port.get("protocol"), _PROTOCOLS, optional=True)
    if isinstance(number, int):
        yield from validate_port_or_name(number, f"{field}.port")
        if end is not None:
            if end < number:
                yield invalid_value(f"{field}.endPort", number, "must be greater than or equal to `port`")
            yield from validate_port_or_name(end, f"{field}.endPort")
        return
    if end is not None:
        state = "not specified" if number is None else "non-numeric"
        yield invalid_value(f"{field}.endPort", end, f"may not be specified when `port` is {state}")
    if number is not None:
        yield from validate_port_or_name(number, f"{field}.port")


def _validate_peer(field: str, peer: Object, known: Container[Any]) -> Iterator[FieldError]:
    selectors = [name for name in ("podSelector", "namespaceSelector") if peer.get(name) is not None]
    for name in selectors:
        yield from validate_label_selector(peer[name], f"{field}.{name}")
    block = peer.get("ipBlock")
    if block is not None:
        yield from _validate_block(f"{field}.ipBlock", block, known)
    if block is None and not selectors:
        yield required(field, "must specify a peer")
    elif block is not None and selectors:
        yield forbidden_value(field, "may not specify both ipBlock and another peer")


def _validate_block(field: str, block: Object, known: Container[Any]) -> Iterator[FieldError]:
    cidr = block.get("cidr", "")
    if not cidr:
        yield required(f"{field}.cidr")
        return
    yield from validate_cidr(f"{field}.cidr", cidr, known)
    if (whole := parse_network(cidr)) is None:
        return
    for index, each in enumerate(block.get("except") or ()):
        yield from validate_cidr(f"{field}.except[{index}]", each, known)
        part: Any = parse_network(each)
        if part is None:
            continue
        if part.version != whole.version or part == whole or not part.subnet_of(whole):
            yield invalid_value(f"{field}.except[{index}]", each, "must be a strict subset of `cidr`")
