"""IP addresses and CIDR values: validation and warnings."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Final

from ruleop.core.validation.field_errors import invalid_value

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from ruleop.core.validation.field_errors import FieldError

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


def validate_address(field: str, text: str, known: Container[str] = ()) -> Iterator[FieldError]:
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


def validate_no_special_address(field: str, text: str) -> Iterator[FieldError]:
    """An address of other machines is not one of the machine itself or of its link."""
    parsed = ip_address(text)
    if parsed.is_unspecified:
        yield invalid_value(field, text, f"may not be unspecified ({text})")
    for name, problem in _SPECIAL:
        if getattr(parsed, name):
            yield invalid_value(field, text, problem)
    if any(parsed in each for each in _LOCAL_MULTICAST):
        problem = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        yield invalid_value(field, text, problem)


def validate_cidr(field: str, text: str, known: Container[str] = ()) -> Iterator[FieldError]:
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


def address_warnings(field: str, text: str) -> list[str]:
    """The warnings for an address that is valid, or was valid once."""
    parsed = parse_address(text) if ":" in text or _LEADING_ZEROS.search(text) else None
    if parsed is None:
        return []
    if _LEADING_ZEROS.search(text) or _is_mapped(parsed):
        shown = (parsed.ipv4_mapped or parsed) if isinstance(parsed, IPv6Address) else parsed
        return [f'{field}: non-standard IP address "{text}" is invalid: use "{shown}"']
    if parsed.version == 6 and str(parsed) != text:
        return [f'{field}: IPv6 address "{text}" should be in RFC 5952 canonical format ("{parsed}")']
    return []


def cidr_warnings(field: str, text: str) -> list[str]:
    """The warnings for a CIDR value that is valid."""
    parsed = parse_network(text)
    if parsed is None or parsed.version == 4 or str(parsed) == text:
        return []
    return [f'{field}: IPv6 CIDR value "{text}" should be in RFC 5952 canonical format ("{parsed}")']


def _is_mapped(address: Address) -> bool:
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None
