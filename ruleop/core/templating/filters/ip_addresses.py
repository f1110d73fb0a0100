"""Filters and tests of IP addresses and networks, which the standard library reads."""

from __future__ import annotations

import ipaddress
from typing import Any, Final, TypeAlias

from ruleop.core.templating.values.cost import METER
from ruleop.core.templating.values.data import is_list, scalar_text
from ruleop.core.templating.values.faults import Fault

_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_LONGEST: Final = 80  # characters of an address with a netmask
_UNITS: Final = 20  # of reading an address, which is Python code
_PARTS: Final = {
    "network": "network_address",
    "prefix": "prefixlen",
    "netmask": "netmask",
    "broadcast": "broadcast_address",
    "size": "num_addresses",
    "version": "version",
}
"""The attributes of a network, by Ansible's names."""


def _network(name: str, value: Any) -> _Network:
    METER.spend(_UNITS)
    text = scalar_text(value)
    try:
        if len(text) <= _LONGEST and "%" not in text:
            return ipaddress.ip_network(text, strict=False)
    except ValueError:
        pass
    raise Fault(f"{name}: not an IP address or network, such as 10.0.0.1, 10.0.0.0/16 or fd00::/48")


def ip_network(value: Any, part: str | None = None) -> str | int:
    """The network of an address with a prefix, or a part of it."""
    network = _network("ip_network", value)
    if part is None:
        return str(network)
    if part not in _PARTS:
        raise Fault(f"ip_network has no such part; use one of {', '.join(_PARTS)}")
    found = getattr(network, _PARTS[part])
    return found if isinstance(found, int) else str(found)


def host(value: Any, number: int) -> str:
    """The address with this number in the network, from 0; a negative number counts from its end."""
    network = _network("host", value)
    try:
        return str(network[int(number)])
    except IndexError:
        raise Fault("host: the network has fewer addresses") from None


def ip_in(value: Any, network: Any, *more: Any) -> bool:
    """Whether the address or network is inside of one of the networks."""
    inner = _network("ip_in", value)
    for each in (network, *more):
        for outer in each if is_list(each) else [each]:
            found = _network("ip_in", outer)
            if isinstance(found, ipaddress.IPv4Network):
                if isinstance(inner, ipaddress.IPv4Network) and inner.subnet_of(found):
                    return True
            elif isinstance(inner, ipaddress.IPv6Network) and inner.subnet_of(found):
                return True
    return False


def is_address(value: Any, version: int | None = None) -> bool:
    """Whether this is the text of an address, without a prefix; if given, of this version of IP."""
    METER.spend(_UNITS)
    if not isinstance(value, str) or len(value) > _LONGEST or "%" in value:
        return False
    try:
        return version in {None, ipaddress.ip_address(str(value)).version}
    except ValueError:
        return False
