"""The proxy to the API server, from the variables that kubectl reads and by the same rules.

The standard library reads them too, but without CIDR ranges in NO_PROXY, and in a cluster the API server is an IP
address that NO_PROXY names by its range.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping


def proxy_for(server: str, environ: Mapping[str, str]) -> str:
    """The proxy's URL, or '' for none. As in Go: never for localhost, and only HTTPS_PROXY counts for https."""
    try:
        url = urlsplit(server)
        host, port = (url.hostname or "").rstrip("."), url.port or (443 if url.scheme == "https" else 80)
    except ValueError:  # whose message could quote a password; the connection pool reports it
        return ""
    names = ("HTTPS_PROXY", "https_proxy") if url.scheme == "https" else ("HTTP_PROXY", "http_proxy")
    proxy = next((environ[name] for name in names if environ.get(name)), "")
    if not proxy or host == "localhost" or _is_loopback(host):
        return ""
    exempt = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    if any(_exempts(entry.strip().lower(), host, port) for entry in exempt.split(",") if entry.strip()):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _exempts(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    address = _address(host)
    try:
        network = ipaddress.ip_network(entry, strict=False)
    except ValueError:
        pass
    else:
        return address is not None and address in network
    name, colon, expected_port = entry.rpartition(":")
    if colon and expected_port.isdigit():
        if int(expected_port) != port:
            return False
        entry = name
    entry = entry.removeprefix("*")
    if entry.startswith("."):
        return host.endswith(entry)
    return host == entry.strip("[]") or host.endswith(f".{entry}")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return address is not None and address.is_loopback
