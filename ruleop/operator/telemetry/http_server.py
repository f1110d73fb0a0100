"""The standard library's HTTP server in threads, with limits: for probes, for Prometheus and for curl.

Any client that reaches the port can connect, and must not block the probes. So a request has a maximum size and has to
arrive in time, a connection has a maximum lifetime, and above a maximum number of connections the oldest is closed. One
request per connection: probes send one, and a scraper connects twice a minute.

With a certificate, a TLS handshake is part of the request, done in the thread of the connection and bounded alike."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import ipaddress
import os
import socket
import ssl
import threading
import time
from http import HTTPStatus
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import structlog
from prometheus_client import exposition as plain
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from ruleop.errors import RuleopError
from ruleop.files import MAX_CREDENTIAL, read_regular
from ruleop.operator.wire.http.access import Identity
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from prometheus_client.core import Metric


# -- exposition --------------------------------------------------------------------------------------------------------
#
# The text of `/metrics`: worked out at most once a second, by one thread at a time.
#
# Any client that reaches the port can ask as often as it likes. So a text is kept for a second, in each format and
# compressed, and a request for some metrics by name is answered from its parts.


KEPT = 1.0  # seconds; a scraper asks twice a minute
PATIENCE = 10.0  # seconds that a request waits while another one works the text out
_OPENMETRICS = "application/openmetrics-text"
_END = b"# EOF\n"  # of a text in OpenMetrics


@dataclass(frozen=True, slots=True)
class _Page:
    """The metrics in one format."""

    content_type: str
    parts: list[tuple[frozenset[str], bytes]]  # a metric's name and those of its samples, and its text
    end: bytes
    whole: bytes
    compressed: bytes

    def chosen(self, names: Iterable[str]) -> bytes:
        requested = frozenset(names)
        return b"".join([*(text for known, text in self.parts if known & requested), self.end])


class _Family(Collector):
    """One metric, for the formatters of the library."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterable[Metric]:
        yield self._metric


class Exposition:
    """A WSGI application. Raises TimeoutError if the metrics cannot be read in time."""

    def __init__(self, registry: Collector, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._registry = registry
        self._clock = clock
        self._lock = threading.Lock()
        self._families: list[Metric] = []
        self._pages: dict[bool, _Page] = {}
        self._until = clock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        page = self._page(in_openmetrics=_accepts_openmetrics(environ.get("HTTP_ACCEPT", "")))
        headers = [("Content-Type", page.content_type)]
        if names := parse_qs(environ.get("QUERY_STRING", "")).get("name[]"):
            body = page.chosen(names)
        elif plain.gzip_accepted(environ.get("HTTP_ACCEPT_ENCODING", "")):
            body = page.compressed
            headers.append(("Content-Encoding", "gzip"))
        else:
            body = page.whole
        start_response(f"{HTTPStatus.OK.value} {HTTPStatus.OK.phrase}", [*headers, ("Content-Length", str(len(body)))])
        return [body]

    def _page(self, *, in_openmetrics: bool) -> _Page:
        if not self._lock.acquire(timeout=PATIENCE):
            raise TimeoutError
        try:
            if self._clock() >= self._until:
                self._families, self._pages = list(self._registry.collect()), {}
                self._until = self._clock() + KEPT
            if in_openmetrics not in self._pages:
                self._pages[in_openmetrics] = _format(self._families, in_openmetrics=in_openmetrics)
            return self._pages[in_openmetrics]
        finally:
            self._lock.release()


def _format(families: Iterable[Metric], *, in_openmetrics: bool) -> _Page:
    parts = [
        (frozenset({family.name, *(sample.name for sample in family.samples)}), _text(family, in_openmetrics))
        for family in families
    ]
    end = _END if in_openmetrics else b""
    whole = b"".join([*(text for _, text in parts), end])
    content_type = openmetrics.CONTENT_TYPE_LATEST if in_openmetrics else plain.CONTENT_TYPE_PLAIN_0_0_4
    return _Page(content_type, parts, end, whole, gzip.compress(whole, compresslevel=5))


def _text(family: Metric, in_openmetrics: bool) -> bytes:
    if in_openmetrics:
        text: bytes = openmetrics.generate_latest(_Family(family))  # type: ignore[no-untyped-call]
        return text.removesuffix(_END)
    return plain.generate_latest(_Family(family))


def _accepts_openmetrics(accept: str) -> bool:
    """In its version 1; a client that knows only a draft gets plain text."""
    kinds = (each.partition(";") for each in accept.split(","))
    return any(kind.strip() == _OPENMETRICS and "version=0." not in settings for kind, _, settings in kinds)


# -- http server -------------------------------------------------------------------------------------------------------


# -- bind addresses ----------------------------------------------------------------------------------------------------
#
# The addresses of the operator's servers, as its flags name them: `host:port`, or `:port` for all of this machine.


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


# -- server certificate ------------------------------------------------------------------------------------------------
#
# The certificate of the metrics server, from two files that are replaced while the operator runs.
#
# cert-manager and the kubelet replace both files; a server that keeps the old pair fails when it expires. A pair that
# cannot be used (one file is new and the other one is not yet) leaves the previous one in force.


log = structlog.get_logger(__name__)

RECHECK = 1.0  # seconds; the files are read when a client connects, at most this often


class ServerCertificate:
    """Used by the thread that accepts connections, and by no other."""

    def __init__(self, certificate: Path, key: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises RuleopError if the pair cannot be used."""
        self._certificate, self._key = certificate, key
        self._clock = clock
        self._checked = clock()
        self._problem = ""  # the last one that was logged
        try:
            self._identity = self._read()
            self._context = _context(self._identity)
        except (OSError, ValueError) as error:
            raise RuleopError(f"the metrics certificate cannot be used: {self._reason(error)}") from error

    def context(self) -> ssl.SSLContext:
        if self._clock() - self._checked >= RECHECK:
            self._checked = self._clock()
            self._reload()
        return self._context

    def _reload(self) -> None:
        try:
            identity = self._read()
            if identity == self._identity:
                self._problem = ""
                return
            self._context = _context(identity)
        except (OSError, ValueError) as error:
            problem = self._reason(error)
            if problem != self._problem:
                log.warning("metrics certificate not reloaded; using the previous one", error=problem)
            self._problem = problem
            return
        self._identity, self._problem = identity, ""
        log.info("metrics certificate reloaded", certificate=str(self._certificate))

    def _read(self) -> Identity:
        return Identity(*(read_regular(file, MAX_CREDENTIAL) for file in (self._certificate, self._key)))

    def _reason(self, error: Exception) -> str:
        files = f"{self._certificate} and {self._key}"
        if isinstance(error, ssl.SSLError):  # its text names the place in OpenSSL
            return f"{files}: {(error.reason or 'not a certificate and its key').replace('_', ' ').lower()}"
        if isinstance(error, OSError):
            return f"{error.filename}: {error.strerror}"
        return f"{files}: {error}"


def _context(identity: Identity) -> ssl.SSLContext:
    """TLS 1.2 or later, with the ciphers that OpenSSL and the image's policy allow."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not identity.certificate.strip():
        raise ValueError("the certificate is empty")
    identity.present_in(context)
    return context


# -- http server -------------------------------------------------------------------------------------------------------


MAX_REQUEST_BYTES = 1 << 14
TIMEOUT = 10.0  # seconds for a request to arrive, and for its response to be sent
LIFETIME = 30.0  # seconds of a connection, whatever its client does; a response may be sent in many pieces
PAUSE = 0.1  # seconds, when the process has no file descriptor left
MAX_CONNECTIONS = 100
MAX_THREADS = 2 * MAX_CONNECTIONS  # a thread outlives its connection while it waits for the operator's event loop


class HttpServer(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self, host: str, port: int, app: WSGIApplication, tls: Callable[[], ssl.SSLContext] | None = None
    ) -> None:
        """Listens on all addresses where the host is empty. `tls` gives the context of a new connection. Raises OSError
        or UnicodeError."""
        self._connections: dict[Any, float] = {}  # with the time of their start, the oldest first
        self._tls = tls
        self._lock = threading.Lock()
        self.address_family, address = resolve(host, port)
        super().__init__(address, _Handler)
        self.set_app(app)

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, args=(1.0,), name="http server", daemon=True).start()

    def close(self) -> None:
        """At once on Linux, where this wakes the thread; elsewhere within the second of `serve_forever`."""
        _interrupt(self.socket)
        self.shutdown()
        self.server_close()
        with self._lock:
            for connection in self._connections:
                _interrupt(connection)

    def server_bind(self) -> None:
        """As HTTPServer does, but without looking up the name of the host, which can take seconds."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, self.server_address[0] != "::")
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def get_request(self) -> tuple[Any, Any]:
        """The handshake comes later, so that no client delays this thread. Raises OSError."""
        try:
            connection, address = super().get_request()
        except OSError as error:
            if error.errno in {errno.EMFILE, errno.ENFILE}:
                time.sleep(PAUSE)  # the connection still waits to be accepted, so the next attempt comes at once
            raise
        if self._tls is not None:
            try:
                connection = self._tls().wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
            except (OSError, ValueError) as error:  # the client has left
                connection.close()
                raise ConnectionAbortedError from error
        return connection, address

    def service_actions(self) -> None:
        """Called at least once a second."""
        with self._lock:
            for connection, started in self._connections.items():
                if time.monotonic() - started < LIFETIME:
                    break
                _interrupt(connection)

    def process_request(self, request: Any, client_address: Any) -> None:
        if threading.active_count() > MAX_THREADS:
            self.shutdown_request(request)
            return
        with self._lock:
            if len(self._connections) >= MAX_CONNECTIONS:
                oldest = next(iter(self._connections))
                del self._connections[oldest]
                _interrupt(oldest)
            self._connections[request] = time.monotonic()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, *_args: Any) -> None:
        """A connection that timed out or was closed is not worth a line of the log."""


class _Handler(WSGIRequestHandler):
    def setup(self) -> None:
        """Reads the request at once: the standard library limits each line and each wait, but not their sum."""
        head, deadline = b"", time.monotonic() + TIMEOUT
        if isinstance(self.request, ssl.SSLSocket):
            self.request.settimeout(TIMEOUT)
            self.request.do_handshake()
        super().setup()
        self.rfile.close()
        while b"\r\n\r\n" not in head and len(head) < MAX_REQUEST_BYTES:
            self.connection.settimeout(max(0.001, deadline - time.monotonic()))
            received = self.connection.recv(MAX_REQUEST_BYTES)
            if not received:
                break
            head += received
        self.rfile = io.BufferedReader(io.BytesIO(head if b"\r\n\r\n" in head else b""))
        self.connection.settimeout(TIMEOUT)

    def finish(self) -> None:
        super().finish()
        if isinstance(self.request, ssl.SSLSocket):
            self.request.settimeout(0)  # the client's close_notify is not waited for
            with contextlib.suppress(OSError, ValueError):
                self.request.unwrap()

    def log_message(self, *_args: Any) -> None:
        """Requests are not logged."""

    def get_stderr(self) -> Any:
        """Where wsgiref writes a traceback when a client does not read its response."""
        return io.StringIO()


def _interrupt(connection: socket.socket) -> None:
    """Ends the reads and writes of the thread that serves it."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)  # SSLSocket.shutdown also turns TLS off


def resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[Any, ...]]:
    """A name stands for its first address, IPv4 first, as in Go; none stands for all addresses of both families."""
    if not host and socket.has_dualstack_ipv6():
        return socket.AF_INET6, ("::", port, 0, 0)
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return family, address
