"""The standard library's HTTP server in threads, with limits: for probes, for Prometheus and for curl.

Any client that reaches the port can connect, and must not block the probes. So a request has a maximum size and has to
arrive in time, and above a maximum number of connections the oldest is closed. One request per connection: probes
send one, and a scraper connects twice a minute.
"""

from __future__ import annotations

import contextlib
import io
import socket
import threading
import time
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

MAX_REQUEST_BYTES = 1 << 14
TIMEOUT = 10.0  # seconds for a request to arrive, and for its response to be sent
MAX_CONNECTIONS = 100
MAX_THREADS = 2 * MAX_CONNECTIONS  # a thread outlives its connection while it waits for the operator's event loop


class HttpServer(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, host: str, port: int, app: WSGIApplication) -> None:
        """Listens on all addresses where the host is empty. Raises OSError or UnicodeError."""
        self._connections: dict[Any, None] = {}  # the oldest first
        self._lock = threading.Lock()
        self.address_family, address = _resolve(host, port)
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

    def process_request(self, request: Any, client_address: Any) -> None:
        if threading.active_count() > MAX_THREADS:
            self.shutdown_request(request)
            return
        with self._lock:
            if len(self._connections) >= MAX_CONNECTIONS:
                oldest = next(iter(self._connections))
                del self._connections[oldest]
                _interrupt(oldest)
            self._connections[request] = None
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
        super().setup()
        self.rfile.close()
        head, deadline = b"", time.monotonic() + TIMEOUT
        while b"\r\n\r\n" not in head and len(head) < MAX_REQUEST_BYTES:
            self.connection.settimeout(max(0.001, deadline - time.monotonic()))
            received = self.connection.recv(MAX_REQUEST_BYTES)
            if not received:
                break
            head += received
        self.rfile = io.BufferedReader(io.BytesIO(head if b"\r\n\r\n" in head else b""))
        self.connection.settimeout(TIMEOUT)

    def log_message(self, *_args: Any) -> None:
        """Requests are not logged."""

    def get_stderr(self) -> Any:
        """Where wsgiref writes a traceback when a client does not read its response."""
        return io.StringIO()


def _interrupt(connection: socket.socket) -> None:
    """Ends the reads and writes of the thread that serves it."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[Any, ...]]:
    """A name stands for its first address, IPv4 first, as in Go; none stands for all addresses of both families."""
    if not host and socket.has_dualstack_ipv6():
        return socket.AF_INET6, ("::", port, 0, 0)
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return family, address
