"""The addresses of the operator's servers, as its flags name them: `host:port`, or `:port` for all of this machine."""

from __future__ import annotations

import ipaddress
import os
import socket

from ruleop.errors import RuleopError


def is_on(address: str) -> bool:
    return address not in {"", "0", ":0"}


def split_address(address: str) -> tuple[str, int]:
    """Host and port. Raises RuleopError."""
    host, _, port = address.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise RuleopError(f"cannot listen on {address!r}: an address is host:port, :port, or 0 for none")
    return host.strip("[]"), int(port)


def is_loopback(address: str) -> bool:
    """Whether only this machine, or this pod, reaches it."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def not_listening(address: str, host: str, error: OSError | UnicodeError) -> RuleopError:
    """The error of an address that cannot be used."""
    return RuleopError(f"cannot listen on {address}: {_reason(error, host)}; choose another address, or 0 for none")


def _reason(error: OSError | UnicodeError, host: str) -> str:
    if isinstance(error, UnicodeError):  # raised when the name is encoded as IDNA
        return f"{host} is not a valid host name"
    if isinstance(error, socket.gaierror):  # its numbers are the resolver's own
        return error.strerror or str(error)
    return os.strerror(error.errno) if error.errno else str(error)
