"""Requests and responses, and a server that answers them over HTTP/1.1, on loopback only.

A connection's requests are answered one after another, in their order. The handler is called on the loop and must not
block it.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import field
from email.utils import formatdate
from http import HTTPStatus
from http.client import responses
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import parse_qsl, unquote

import httptools

from ruleop.errors import RuleopError
from ruleop.values import dataclass

# -- requests, and what may be answered to them -----------------------------------------------------------------------


JSON_TYPE: Final = "application/json"
NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str  # decoded
    query: Mapping[str, str]
    headers: Mapping[str, str]  # names in lower case
    body: bytes = b""
    user: str = ""  # who sent it, once that is known


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes
    content_type: str = JSON_TYPE
    headers: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS)


class ResponseSink(Protocol):
    """Where a stream sends its parts."""

    def send(self, data: bytes) -> None: ...
    def end(self) -> None:
        """Ends the stream in order."""
        ...

    def abort(self) -> None:
        """Closes the connection in the middle of the stream."""
        ...

    @property
    def is_behind(self) -> bool:
        """Whether the client reads more slowly than the stream sends."""
        ...


@dataclass(frozen=True, slots=True)
class ResponseStream:
    """A response without an end that is known in advance. `start` begins it and returns what stops it when the client
    is gone."""

    start: Callable[[ResponseSink], Callable[[], None]]
    content_type: str = JSON_TYPE
    headers: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS)


@dataclass(frozen=True, slots=True)
class LaterResponse:
    """A response that is worked out after some seconds."""

    seconds: float
    response: Callable[[], AnyResponse]


@dataclass(frozen=True, slots=True)
class Disconnect:
    """No response: the connection is closed."""


AnyResponse: TypeAlias = Response | ResponseStream | LaterResponse | Disconnect
Handler: TypeAlias = Callable[[Request], AnyResponse]


# -- server ----------------------------------------------------------------------------------------------------------


MAX_BODY: Final = 16 * 1024 * 1024
MAX_HEAD: Final = 1024 * 1024 + 4096  # bytes of a URL with its headers, as Go's server has it
MAX_WAITING: Final = 100  # requests of one connection that wait for their turn
MAX_UNSENT: Final = 8 * 1024 * 1024  # bytes of a stream that a client has not read; then its connection is closed
LINGERING: Final = 0.5  # seconds in which what a client still sends is dropped after its request was refused
ACCEPTING: Final = 3  # turns of the loop until a connection that was accepted is known here
_NOT_KEPT: Final = {"Cache-Control": "no-cache, private"}  # where a response says nothing else

_LOG = logging.getLogger(__name__)


class ClusterServer:
    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None

    async def start(self, port: int = 0, host: str = "127.0.0.1") -> int:
        """Listens, and returns the port."""
        if not ipaddress.ip_address(host).is_loopback:
            raise ValueError(f"{host} is not a loopback address")
        try:
            self._server = await asyncio.get_running_loop().create_server(lambda: _Connection(self), host, port)
        except OSError as error:  # the message of asyncio has the address twice
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise RuleopError(f"cannot listen on {host}:{port}: {reason}; use another port") from None
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    async def stop(self) -> None:
        if self._server is not None:
            # A server that is closed fails to make the connections that it has just accepted, and leaves them open.
            for listening in self._server.sockets:
                asyncio.get_running_loop().remove_reader(listening.fileno())
            for _ in range(ACCEPTING):
                await asyncio.sleep(0)
            self._server.close()
            while self.connections:  # `Server.wait_closed` of Python 3.11 does not wait for them
                for connection in tuple(self.connections):
                    connection.abort()
                await asyncio.sleep(0)
            self._server = None


class _Connection(asyncio.Protocol):
    def __init__(self, server: ClusterServer) -> None:
        self.server = server
        self.transport: asyncio.Transport
        self.is_behind = False
        self._parser: Any = httptools.HttpRequestParser(self)
        self._waiting: deque[Request] = deque()
        self._busy = False
        self._stop: Callable[[], None] | None = None  # of the stream that is being sent
        self._url, self._headers, self._body = b"", dict[str, str](), list[bytes]()
        self._size = 0
        self._refused = False
        self._unparsed = 0  # bytes since the parser has reported anything: of a head, a trailer, the size of a chunk

    # -- asyncio ------------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.connections.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        self.server.connections.discard(self)
        self._stop_stream()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._unparsed += len(data)
        try:
            self._parser.feed_data(data)
            if self._unparsed > MAX_HEAD:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "431 Request Header Fields Too Large")
        except httptools.HttpParserUpgrade:
            self._refuse(HTTPStatus.NOT_IMPLEMENTED, "this server does not switch protocols: it has no processes")
        except (httptools.HttpParserError, ValueError, OverflowError) as error:
            self._refuse(HTTPStatus.BAD_REQUEST, f"the request is not valid HTTP: {error}")

    def pause_writing(self) -> None:
        self.is_behind = True

    def resume_writing(self) -> None:
        self.is_behind = False

    # -- the parser ---------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._url, self._headers, self._body, self._size = b"", {}, [], 0

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._unparsed = 0
        if "100-continue" in self._headers.get("expect", "").lower():
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, data: bytes) -> None:
        self._size += len(data)
        self._unparsed = 0
        if self._size > MAX_BODY:
            raise ValueError(f"a body of more than {MAX_BODY:,} bytes")
        self._body.append(data)

    def on_message_complete(self) -> None:
        self._unparsed = 0
        path, _, query = self._url.partition(b"?")
        request = Request(
            self._parser.get_method().decode("ascii"),
            unquote(path.decode("latin-1")),
            dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True)) if query else {},
            self._headers,
            b"".join(self._body),
        )
        if len(self._waiting) >= MAX_WAITING:
            raise ValueError("too many requests in advance")
        self._waiting.append(request)
        self._next()

    # -- responses ----------------------------------------------------------------------------------------------------

    def _next(self) -> None:
        while self._waiting and not self._busy and not self.transport.is_closing():
            request = self._waiting.popleft()
            self._busy = True
            try:
                response = self.server.handler(request)
            except Exception:  # noqa: BLE001 - one request must not end the server; the log has the traceback
                _LOG.exception("the handler of %s %s failed", request.method, request.path)
                self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, "this is a bug of the server: its log has the traceback")
                return
            self._respond(request, response)

    def _respond(self, request: Request, response: AnyResponse) -> None:
        if isinstance(response, Response):
            close = request.headers.get("connection", "").lower() == "close"
            body = response.body if request.method != "HEAD" else b""
            self.transport.write(_head(response, close=close) + body)
            if close:
                self.transport.close()
            self._done()
        elif isinstance(response, ResponseStream):
            self.transport.write(_head(response))
            self._stop = response.start(self)
            if self.transport.is_closing() or not self._busy:  # it ended at once
                self._stop_stream()
        elif isinstance(response, LaterResponse):
            loop = asyncio.get_running_loop()
            loop.call_later(response.seconds, lambda: self._respond_later(request, response))
        elif isinstance(response, Disconnect):
            self.transport.abort()

    def _respond_later(self, request: Request, response: LaterResponse) -> None:
        if not self.transport.is_closing():
            self._respond(request, response.response())

    def _done(self) -> None:
        self._busy = False
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next)

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self._refused = True
        self._waiting.clear()
        self.transport.write(_head(Response(status, message.encode(), "text/plain"), close=True) + message.encode())
        self.transport.write_eof()
        # A connection that is closed while the client sends is reset, and the client may never read the response.
        asyncio.get_running_loop().call_later(LINGERING, self.transport.close)

    # -- a stream -----------------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self.is_behind and self.transport.get_write_buffer_size() > MAX_UNSENT:
            self.abort()
            return
        self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def end(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(b"0\r\n\r\n")
        self._stop_stream()
        self._done()

    def abort(self) -> None:
        self.transport.abort()

    def _stop_stream(self) -> None:
        if self._stop is not None:
            stop, self._stop = self._stop, None
            stop()


@functools.cache
def _status_line(status: int) -> bytes:
    return f"HTTP/1.1 {status} {responses.get(status, '')}\r\n".encode()


@functools.lru_cache(maxsize=1)
def _date_of(second: int) -> str:
    return formatdate(second, usegmt=True)


def _head(response: Response | ResponseStream, *, close: bool = False) -> bytes:
    headers = {
        "Content-Type": response.content_type,
        **_NOT_KEPT,
        "Date": _date_of(int(time.time())),
        **response.headers,
    }
    if isinstance(response, ResponseStream):
        headers["Transfer-Encoding"] = "chunked"
    elif response.status == HTTPStatus.NOT_MODIFIED:
        del headers["Content-Type"]
    else:
        headers["Content-Length"] = str(len(response.body))
    if close:
        headers["Connection"] = "close"
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    status = HTTPStatus.OK if isinstance(response, ResponseStream) else response.status
    return _status_line(status) + lines.encode("latin-1", "replace") + b"\r\n"
