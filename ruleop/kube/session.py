"""The connections to one API server: one aiohttp session, which carries the credentials of the moment.

Credentials are loaded again before they end and once when they are refused, by one request while the others wait. Certificates belong
to connections: when they change, new requests get new connections, and the old ones end with the last request on them.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
import weakref
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import aiohttp
from yarl import URL

from ruleop.kube.credentials import CredentialsError
from ruleop.kube.errors import READS, ApiError, Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ruleop.kube.credentials import Access, Credentials
    from ruleop.kube.requests import Request

CONNECT_TIMEOUT = 10.0
# A balancer that forgets an idle connection says nothing to either side: probe before it forgets (AWS 350 s, Azure 240 s), and have
# data that nobody acknowledges end the connection after a minute instead of the kernel's quarter of an hour.
KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, KEEPALIVE_PROBES, UNACKNOWLEDGED = 30, 15, 4, 60_000
# An idle connection is given up here before the API server (or a balancer) gives it up, so that no write is sent into a closing one.
IDLE = 30.0
READ_BUFFER = 1 << 20
RELOAD_AGAIN = 10.0
GOODBYES = 20  # turns of the loop, at most, until closed connections are gone


@dataclass(slots=True, eq=False)
class _Connections:
    http: aiohttp.ClientSession
    access: Access  # replaced when only what each request carries is new
    due: float | None  # when it is to be loaded again
    in_use: int = 0
    retired: bool = False
    sockets: weakref.WeakSet[socket.socket] = field(default_factory=weakref.WeakSet)

    async def close(self) -> None:
        await self.http.close()
        # A TLS connection that was given up waits up to 30 s for its peer's goodbye, and nobody knows of it any more.
        for each in list(self.sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for _ in range(GOODBYES):
            if all(each.fileno() < 0 for each in self.sockets):
                return
            await asyncio.sleep(0)


class Session:
    """Opened by `Session.open`, closed by `close`. Belongs to the event loop that it was opened in."""

    def __init__(self, credentials: Credentials, connections: _Connections) -> None:
        self._credentials = credentials
        self._current = connections
        self._loading = asyncio.Lock()
        self._retired: set[_Connections] = set()

    @classmethod
    async def open(cls, credentials: Credentials) -> Session:
        """Raises CredentialsError; does not talk to the API server yet."""
        return cls(credentials, _connect(await credentials.load()))

    @property
    def server(self) -> str:
        return self._current.access.server

    async def close(self) -> None:
        for connections in (self._current, *self._retired):
            await connections.close()
        self._retired.clear()

    @contextlib.asynccontextmanager
    async def exchange(self, request: Request, limits: aiohttp.ClientTimeout) -> AsyncIterator[aiohttp.ClientResponse]:
        """Sends the request and gives the answer, whatever its status. 401 is tried again once, if there are other credentials now."""
        for last in (False, True):
            connections = await self._fresh()
            access = connections.access
            connections.in_use += 1
            try:
                async with await self._send(connections, request, limits) as response:
                    if response.status != 401 or last or not await self._renewed(access, request):
                        yield response
                        return
            finally:
                await self._give_back(connections)

    async def _send(self, connections: _Connections, request: Request, limits: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        access = connections.access
        headers = {"Accept": request.accept}
        if access.authorization:
            headers["Authorization"] = access.authorization
        if request.content_type:
            headers["Content-Type"] = request.content_type
        if request.etag:
            headers["If-None-Match"] = request.etag
        target = f"{access.server}{request.path}?{request.query}" if request.query else f"{access.server}{request.path}"
        options: dict[str, Any] = {}
        if access.proxy:
            options["proxy"] = access.proxy
        if access.server_hostname:
            options["server_hostname"] = access.server_hostname
        try:
            return await connections.http.request(
                request.method,
                URL(target, encoded=True),
                data=request.body,
                headers=headers,
                timeout=limits,
                allow_redirects=False,
                **options,
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise connection_error(error, request, access.server) from error

    async def _fresh(self) -> _Connections:
        current = self._current
        if current.due is not None and time.monotonic() >= current.due:
            await self._reload(current.access, forced=False)
        return self._current

    async def _renewed(self, refused: Access, request: Request) -> bool:
        """Whether there are other credentials than those that were just refused."""
        try:
            await self._reload(refused, forced=True)
        except CredentialsError as error:
            raise ApiError(
                Problem.UNAUTHORIZED, verb=request.verb, resource=request.resource, text=f"401, and no new credentials: {error}", status=401
            ) from error
        now = self._current.access
        return (now.authorization, now.tls_digest) != (refused.authorization, refused.tls_digest)

    async def _reload(self, used: Access, *, forced: bool) -> None:
        async with self._loading:
            current = self._current
            if current.access is not used:
                return  # somebody else did it while we waited
            try:
                access = await self._credentials.load(forced=forced)
            except CredentialsError:
                if forced:
                    raise
                # The old ones may still be good; the server says so if they are not.
                current.due = time.monotonic() + RELOAD_AGAIN
                return
            if (access.server, access.tls_digest, access.proxy) == (used.server, used.tls_digest, used.proxy):
                current.access, current.due = access, _due(access)
                return
            self._current = _connect(access)
            current.retired = True
            if current.in_use:
                self._retired.add(current)
            else:
                await current.close()

    async def _give_back(self, connections: _Connections) -> None:
        connections.in_use -= 1
        if connections.retired and not connections.in_use:
            self._retired.discard(connections)
            await connections.close()


def _connect(access: Access) -> _Connections:
    # No limit of connections: requests are bounded by the client's semaphore, and a watch that waited for one would be a silent watch.
    sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def make_socket(address: Any) -> socket.socket:
        made = _socket(address)
        sockets.add(made)
        return made

    connector = aiohttp.TCPConnector(limit=0, ssl=access.tls or True, keepalive_timeout=IDLE, socket_factory=make_socket)
    http = aiohttp.ClientSession(
        connector=connector,
        # A near server's gzip costs both sides more than the bytes.
        headers={"User-Agent": f"ruleop/{version('ruleop')}", "Accept-Encoding": "identity"},
        read_bufsize=READ_BUFFER,
        cookie_jar=aiohttp.DummyCookieJar(),
    )
    return _Connections(http, access, _due(access), sockets=sockets)


def _due(access: Access) -> float | None:
    return None if access.fresh_for is None else time.monotonic() + access.fresh_for


def _socket(address: Any) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_IDLE),
        ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL),
        ("TCP_KEEPCNT", KEEPALIVE_PROBES),
        ("TCP_USER_TIMEOUT", UNACKNOWLEDGED),
    ):
        if hasattr(socket, name):  # macOS, where people try things out, lacks some
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


def connection_error(error: BaseException, request: Request, server: str) -> ApiError:
    """Three cases: there was no connection, so nothing was sent; there was one and no good answer came; and that for a mere read."""
    problem = Problem.UNREACHABLE
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        problem = Problem.UNTRUSTED
        why = f"the certificate of {server} is not trusted: {error.certificate_error}"
    elif isinstance(error, aiohttp.ClientHttpProxyError):
        why = f"the proxy refuses to connect to {server}: {error.status} {error.message}"
    elif isinstance(error, aiohttp.ClientProxyConnectionError):
        why = f"the proxy cannot be reached: {error.os_error}"
    elif isinstance(error, aiohttp.ClientConnectorSSLError):
        why = f"no TLS connection with {server}: {error.os_error}"
    elif isinstance(error, aiohttp.ClientConnectorError):
        why = f"{server} cannot be reached: {error.os_error}"
    elif isinstance(error, aiohttp.ConnectionTimeoutError):
        why = f"{server} cannot be reached: no connection within {CONNECT_TIMEOUT:.0f} s"
    elif isinstance(error, aiohttp.InvalidURL):
        why = f"{server} is not the address of a server"
    else:
        what = "no answer in time" if isinstance(error, TimeoutError) else f"the connection broke ({type(error).__name__}: {error})"
        text = what if request.verb in READS else f"{what}; it may have been done or not"
        return ApiError(Problem.TIMEOUT, verb=request.verb, resource=request.resource, text=text)
    return ApiError(problem, verb=request.verb, resource=request.resource, text=why)
