"""IP addresses and CIDR values."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.validation.field_errors import invalid_value

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from ruleop.kubernetes.validation.field_errors import FieldError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NOT_ADDRESS: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NOT_CIDR: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_LEADING_ZEROS: Final = re.compile(r"(?<![0-9a-fA-F:.])0+(?=[0-9])|(?<=\.)0+(?=[0-9])")
_SPECIAL: Final = (
    ("is_loopback", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
    ("is_link_local", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
)
_LOCAL_MULTICAST: Final = (ip_network("224.0.0.0/24"), ip_network("ff02::/16"))


@lru_cache(maxsize=256)
def parse_address(text: str) -> Address | None:
    """An address as older versions of the API accepted it: with leading zeros."""
    try:
        return ip_address(_LEADING_ZEROS.sub("", text)) if "%" not in text else None
    except ValueError:
        return None


def parse_network(text: str) -> Network | None:
    """The network of a CIDR value as older versions of the API accepted it."""
    address, slash, length = text.partition("/")
    parsed = parse_address(address)
    if parsed is None or not slash or not (length.isascii() and length.isdigit()):
        return None
    try:
        return ip_network((parsed, int(length)), strict=False)
    except ValueError:
        return None


def validate_address(field: str, text: str, known: Container[Any] = ()) -> Iterator[FieldError]:
    """`known`: addresses of the previous version, which stay valid."""
    if text in known:
        return
    parsed = parse_address(text)
    if parsed is None:
        yield invalid_value(field, text, _NOT_ADDRESS)
    elif _LEADING_ZEROS.search(text):
        yield invalid_value(field, text, "must not have leading 0s")
    elif _is_mapped(parsed):
        yield invalid_value(field, text, "must not be an IPv4-mapped IPv6 address")


def validate_external_address(field: str, text: str, known: Container[Any] = ()) -> Iterator[FieldError]:
    """An address of other machines is not one of the machine itself or of its link."""
    if errors := list(validate_address(field, text, known)):
        yield from errors
        return
    parsed = ip_address(text)
    if parsed.is_unspecified:
        yield invalid_value(field, text, f"may not be unspecified ({text})")
    for name, words in _SPECIAL:
        if getattr(parsed, name):
            yield invalid_value(field, text, words)
    if any(parsed in each for each in _LOCAL_MULTICAST):
        yield invalid_value(field, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")


def validate_cidr(field: str, text: str, known: Container[Any] = ()) -> Iterator[FieldError]:
    """`known`: values of the previous version, which stay valid."""
    if text in known:
        return
    parsed = parse_network(text)
    address, _, length = text.partition("/")
    if parsed is None:
        yield invalid_value(field, text, _NOT_CIDR)
    elif _LEADING_ZEROS.search(address) or (length.startswith("0") and length != "0"):
        yield invalid_value(field, text, "must not have leading 0s in IP or prefix length")
    elif _is_mapped(ip_address(address)):
        yield invalid_value(field, text, "must not have an IPv4-mapped IPv6 address")
    elif ip_address(address) != parsed.network_address:
        yield invalid_value(field, text, "must not have bits set beyond the prefix length")


def _is_mapped(address: Address) -> bool:
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None
