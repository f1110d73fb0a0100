"""The address of the API server and the credentials for it, at one moment: from a source of credentials to a
connection."""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import os
import re
import ssl
import tempfile
from dataclasses import field
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from ruleop.errors import RuleopError
from ruleop.operator.wire.http.tls import trusting_context
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


# -- proxies -----------------------------------------------------------------------------------------------------------
#
# The proxy to the API server, from the variables that kubectl reads and by the same rules.
#
# The standard library reads them too, but without CIDR ranges in NO_PROXY, and in a cluster the API server is an IP
# address that NO_PROXY names by its range.


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


# -- access ------------------------------------------------------------------------------------------------------------


# The kubelet replaces a pod's token after 80 % of its hour, and any file may be replaced. As often as client-go.
REREAD = 60.0
_HOST_END = re.compile(r"[/?#\\]")


class CredentialsError(RuleopError):
    """There are no usable credentials: no kubeconfig, no such context, a plugin that fails."""


@dataclass(frozen=True, slots=True)
class Access:
    """All that a connection needs."""

    server: str
    authorization: str = field(default="", repr=False)
    impersonation: tuple[tuple[str, str], ...] = ()  # headers that impersonate another user
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    tls_digest: str = ""  # of certificates and keys: connections that were made with others are closed
    proxy: str = field(default="", repr=False)  # may hold a password
    server_hostname: str = ""
    fresh_for: float | None = None  # seconds until the next load; None: when they are rejected

    @property
    def address(self) -> str:
        """The server as messages, logs and metrics show it: a user, a password, a path and a query stay out."""
        scheme, mark, rest = self.server.partition("://")
        if not scheme.isalnum() or not mark:
            scheme, mark, rest = "", "", self.server
        return f"{scheme}{mark}{_HOST_END.split(rest.rpartition('@')[2], maxsplit=1)[0]}"


class Credentials(Protocol):
    """A source of access. `forced`: the last credentials were rejected, so none may come from a cache."""

    @property
    def namespace(self) -> str: ...

    async def load(self, *, forced: bool = False) -> Access: ...


@dataclass(slots=True)
class Identity:
    """A certificate and its key as PEM. Never in a file, where a key would stay when the process is killed."""

    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)

    def present_in(self, context: ssl.SSLContext) -> None:
        """Raises ssl.SSLError, or ValueError for a key with a passphrase."""
        if self.certificate:
            with _as_file(self.certificate + b"\n" + self.key) as name:  # OpenSSL reads them from files only
                context.load_cert_chain(name, password=_no_passphrase)


@dataclass(slots=True)
class Configuration:
    """The contents of a kubeconfig or a service account, before it becomes an `Access`."""

    server: str
    authorization: str = field(default="", repr=False)
    authority: bytes | None = None
    identity: Identity = field(default_factory=Identity)
    impersonation: tuple[tuple[str, str], ...] = ()
    verify: bool = True
    server_hostname: str = ""
    proxy: str = field(default="", repr=False)

    def access(self, environ: Mapping[str, str], *, fresh_for: float | None) -> Access:
        """Raises ValueError or OSError."""
        if not self.server:
            raise ValueError("the cluster has no server")
        scheme, _, token = self.authorization.partition(" ")
        return Access(
            server=self.server,
            authorization=f"{scheme} {token.strip()}" if token.strip() else "",
            impersonation=self.impersonation,
            tls=self._tls() if self.server.startswith("https") else None,
            tls_digest=hashlib.sha256(
                (self.authority or b"") + self.identity.certificate + self.identity.key
            ).hexdigest(),
            proxy=self.proxy or proxy_for(self.server, environ),
            server_hostname=self.server_hostname,
            fresh_for=fresh_for,
        )

    def _tls(self) -> ssl.SSLContext:
        try:
            context = trusting_context(self.authority)
            self.identity.present_in(context)
        except (ssl.SSLError, ValueError) as error:
            raise ValueError(f"the certificates cannot be read: {error}") from error
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def _no_passphrase() -> str:
    raise ValueError("the client's key is locked with a password")


@contextlib.contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """The name of a temporary file. Where the system can, it is in memory only, which needs no writable folder."""
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("ruleop"), "wb") as file:  # noqa: PTH123 - it has no path
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        yield file.name
