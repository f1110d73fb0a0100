"""The standard library's HTTP server in threads, with limits: for probes, for Prometheus and for curl.

Any client that reaches the port can connect, and must not block the probes. So a request has a maximum size and has to
arrive in time, a connection has a maximum lifetime, and above a maximum number of connections the oldest is closed. One
request per connection: probes send one, and a scraper connects twice a minute.

With a certificate, a TLS handshake is part of the request, done in the thread of the connection and bounded alike.
"""

from __future__ import annotations

import contextlib
import errno
import io
import socket
import ssl
import threading
import time
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from wsgiref.types import WSGIApplication

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
