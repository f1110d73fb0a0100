"""The connections to one server: the idle ones, those in use, and how a new one is made.

An `Access` has the server's address, TLS or none, and perhaps a proxy, which tunnels TLS (CONNECT) and gets the whole
URL otherwise. `NotConnectedError` means that there was no connection, so that the request was not sent.
"""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from ruleop import __version__
from ruleop.operator.wire.http.connection import BrokenError, Connection
from ruleop.operator.wire.http.tls import Tls, trusting_context
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.operator.wire.http.access import Access
    from ruleop.operator.wire.http.connection import PreparedRequest

CONNECT_TIMEOUT = 10.0
HAPPY_EYEBALLS = 0.25  # seconds until the next address of a name is tried in parallel
# A load balancer drops an idle connection silently (AWS after 350 s, Azure after 240 s), so probes come before that.
# Data that is not acknowledged ends the connection after a minute instead of the kernel's quarter of an hour.
KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, KEEPALIVE_PROBES, UNACKNOWLEDGED = 30, 15, 4, 60_000
# An idle connection is closed before the API server or a balancer does, so that no write is sent into a closing one.
IDLE = 30.0
RECEIVED = 1 << 16  # bytes read from a socket at once
GOODBYES = 20  # iterations of the loop, at most, until closed connections are gone
_MISMATCHES = frozenset({62, 64})  # OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH
_ONLY_NAMES = "; it needs this name or address as a subjectAltName, a common name does not count"
AGENT = f"ruleop/{__version__}"


class NotConnectedError(Exception):
    """There is no connection, so nothing was sent. `untrusted`: the server's certificate was not accepted."""

    def __init__(self, why: str, *, untrusted: bool = False) -> None:
        super().__init__(why)
        self.untrusted = untrusted


@dataclass(frozen=True, slots=True)
class _Address:
    """The parts of a URL."""

    host: str
    port: int
    tls: bool
    path: str
    login: str  # the value of an authorization header, where the URL has a user

    @property
    def authority(self) -> str:
        """As in a CONNECT request."""
        return f"{self._host}:{self.port}"

    @property
    def header(self) -> str:
        return self._host if self.port == (443 if self.tls else 80) else self.authority

    @property
    def _host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


class Pool:
    """Belongs to an event loop. `use` replaces the credentials; another server or certificate needs another pool."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self._loop = asyncio.get_running_loop()
        self._heads: dict[tuple[str, str], tuple[bytes, bytes]] = {}
        self._idle: list[Connection] = []  # last in, first out, so that spare ones expire
        self._buffer = bytearray(RECEIVED)
        self._open: set[Connection] = set()
        self._retired = False

    def use(self, access: Access) -> None:
        self.access = access
        self._heads.clear()

    @property
    def in_use(self) -> bool:
        return len(self._open) > len(self._idle)

    async def exchange(self, request: PreparedRequest, deadline: float, *, whole: bool) -> Connection:
        """Returns the connection with the response (or, not `whole`, its head). The caller releases it.

        Raises NotConnectedError, BrokenError, TimeoutError. An idle connection that breaks before any response was most
        likely closed by the other side before it got the request. A read is sent again, once, on a new connection; the
        outcome of a write is unknown.
        """
        data = self._bytes(request)
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_usable():
                connection.abort()
                continue
            try:
                await connection.ask(data, deadline, whole=whole)
            except BrokenError as error:
                if error.responded or request.method != "GET":
                    raise
                break
            return connection
        connection = await self._connect(deadline)
        await connection.ask(data, deadline, whole=whole)
        return connection

    def retire(self) -> None:
        """Closes idle connections now, and the others when they are released."""
        self._retired = True
        for connection in self._idle:
            connection.abort()
        self._idle.clear()

    async def close(self) -> None:
        self._retired = True
        for connection in self._open:
            connection.abort()
        await asyncio.sleep(0)
        for _ in range(GOODBYES):
            if not self._open:
                return
            await asyncio.sleep(0)

    def _release(self, connection: Connection) -> None:
        if not self._retired and connection.keep(self._loop.time() + IDLE):
            self._idle.append(connection)
        else:
            connection.abort()

    def _gone(self, connection: Connection) -> None:
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    # Requests

    def _bytes(self, request: PreparedRequest) -> bytes:
        kind = (request.accept, request.content_type)
        begin, head = self._heads.get(kind) or self._head(kind)
        if request.as_user:  # not in a head that is kept: the next request may impersonate somebody else
            head = b"%sImpersonate-User: %s\r\n" % (head, self._user(request.as_user))
        target = f"{request.path}?{request.query}" if request.query else request.path
        if request.etag and _is_line(request.etag):
            head = b"%sIf-None-Match: %s\r\n" % (head, request.etag.encode())
        if not _is_path(target):
            raise NotConnectedError(f"{target!r} is not a valid request path")
        line = b"%s %s%s" % (request.method.encode(), begin, target.encode())
        if request.body is not None:
            return b"%s%sContent-Length: %d\r\n\r\n%s" % (line, head, len(request.body), request.body)
        if request.method != "GET":
            return b"%s%sContent-Length: 0\r\n\r\n" % (line, head)
        return b"%s%s\r\n" % (line, head)

    def _user(self, user: str) -> bytes:
        """The user that a request impersonates. Credentials that impersonate a user may have more permissions than that
        one, so a request must not do it in their place."""
        if self.access.impersonation:
            raise NotConnectedError(
                f"{self.access.address}: the kubeconfig impersonates a user (`as`), who cannot impersonate another one"
            )
        self._require_lines([user])
        return user.encode()

    def _head(self, kind: tuple[str, str]) -> tuple[bytes, bytes]:
        """The bytes before and after the path, in all requests with these content types."""
        accept, content_type = kind
        server, proxy = self._server(), self._proxy()
        begin = server.path
        headers = {"Host": server.header, "User-Agent": AGENT, "Accept": accept, "Accept-Encoding": "identity"}
        headers["Authorization"] = self.access.authorization or server.login
        headers["Content-Type"] = content_type
        if proxy is not None and not server.tls:
            begin = f"http://{server.header}{begin}"
            headers["Proxy-Authorization"] = proxy.login
        lines = [f"{name}: {value}" for name, value in (*headers.items(), *self.access.impersonation) if value]
        self._require_lines(lines)
        made = begin.encode(), "\r\n".join([" HTTP/1.1", *lines, ""]).encode()
        self._heads[kind] = made
        return made

    def _require_lines(self, lines: Iterable[str]) -> None:
        if not all(map(_is_line, lines)):
            raise NotConnectedError(
                f"{self.access.address}: the token, the password or a user name has characters that no header can carry"
            )

    def _server(self) -> _Address:
        try:
            return _address(self.access.server)
        except ValueError as error:
            raise NotConnectedError(f"{self.access.address} is not a valid server URL") from error

    def _proxy(self) -> _Address | None:
        if not self.access.proxy:
            return None
        try:
            return _address(self.access.proxy)
        except ValueError as error:  # without its password
            raise NotConnectedError(
                "the proxy cannot be used: its address is not http://HOST:PORT or https://HOST:PORT"
            ) from error

    # Connecting

    async def _connect(self, deadline: float) -> Connection:
        server, proxy = self._server(), self._proxy()
        seconds = min(CONNECT_TIMEOUT, deadline - self._loop.time())
        connection = Connection(self._loop, released=self._release, gone=self._gone)
        self._open.add(connection)
        try:
            async with asyncio.timeout(seconds):
                if proxy is None:
                    await self._reach(connection, server, self.access.address)
                else:
                    await self._reach(connection, proxy, "the proxy")
                    if proxy.tls:
                        await self._secure(connection, proxy.host, "the proxy")
                    if server.tls:
                        await self._tunnel(connection, server, proxy)
                if server.tls:
                    await self._secure(connection, self.access.server_hostname or server.host, self.access.address)
        except BaseException as error:
            connection.abort()
            self._open.discard(connection)  # without a socket there is no connection_lost
            if isinstance(error, TimeoutError):
                raise NotConnectedError(
                    f"{self.access.address} cannot be reached: no connection within {seconds:.3g} s"
                ) from error
            raise
        return connection

    async def _reach(self, connection: Connection, address: _Address, name: str) -> None:
        literal = ":" in address.host or address.host.replace(".", "").isdigit()
        try:
            await self._loop.create_connection(
                lambda: connection, address.host, address.port, happy_eyeballs_delay=None if literal else HAPPY_EYEBALLS
            )
        except (OSError, UnicodeError) as error:
            raise NotConnectedError(f"{name} cannot be reached: {error}") from error
        connected = connection.transport.get_extra_info("socket")
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (
            ("TCP_KEEPIDLE", KEEPALIVE_IDLE),
            ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL),
            ("TCP_KEEPCNT", KEEPALIVE_PROBES),
            ("TCP_USER_TIMEOUT", UNACKNOWLEDGED),
        ):
            if hasattr(socket, option):  # macOS lacks some
                connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)

    async def _secure(self, connection: Connection, host: str, name: str) -> None:
        if connection.problem is not None:  # the pool was closed while it connected: nothing would end the handshake
            raise NotConnectedError(f"no TLS connection with {name}: {connection.problem}")
        context = self.access.tls or trusting_context(None)
        tls = Tls(connection.transport, self._buffer)
        try:
            await tls.shake_hands(connection, context, host.rstrip("."))
        except ssl.SSLCertVerificationError as error:
            why = f"{error}{_ONLY_NAMES if error.verify_code in _MISMATCHES else ''}"
            raise NotConnectedError(f"the certificate of {name} is not trusted: {why}", untrusted=True) from error
        except (OSError, ValueError) as error:
            raise NotConnectedError(f"no TLS connection with {name}: {error}") from error
        connection.transport = tls

    async def _tunnel(self, connection: Connection, server: _Address, proxy: _Address) -> None:
        login = f"Proxy-Authorization: {proxy.login}\r\n" if proxy.login else ""
        request = (
            f"CONNECT {server.authority} HTTP/1.1\r\nHost: {server.authority}\r\nUser-Agent: {AGENT}\r\n{login}\r\n"
        )
        try:
            response = await connection.ask(
                request.encode(), self._loop.time() + CONNECT_TIMEOUT, whole=False, tunnel=True
            )
        except BrokenError as error:
            raise NotConnectedError(f"the proxy rejected the connection to {self.access.address}: {error}") from error
        if not response.done or response.status >= 300:
            reason = response.reason.decode("latin-1")
            raise NotConnectedError(
                f"the proxy rejected the connection to {self.access.address}: {response.status} {reason}"
            )
        connection.parser = None


def _address(url: str) -> _Address:
    """Raises ValueError."""
    parts = urlsplit(url)
    tls, host = parts.scheme == "https", parts.hostname or ""
    if not host.isascii():
        host = host.encode("idna").decode()
    if parts.scheme not in {"http", "https"} or not host or not _is_path(host + parts.path):
        raise ValueError("not a server URL")
    login = ""
    if parts.username is not None:
        login = (
            "Basic " + base64.b64encode(f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()).decode()
        )
    return _Address(host, parts.port or (443 if tls else 80), tls, parts.path.rstrip("/"), login)


def _is_line(text: str) -> bool:
    """Whether it is safe in the head of a request."""
    return text.isascii() and text.isprintable()


def _is_path(text: str) -> bool:
    return _is_line(text) and " " not in text
