"""The HTTP server of probes and metrics answers whatever other clients do."""

from __future__ import annotations

import contextlib
import errno
import gc
import re
import socket
import threading

import pytest

from ruleop.operator.telemetry import http_server
from ruleop.operator.telemetry.http_server import HttpServer
from tests.exploration import others_slow
from tests.waiting import PATIENCE, eventually

GET = b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"


def app(environ, start_response):
    body = (
        b"x" * 50_000_000
        if environ["PATH_INFO"] == "/long"
        else f"{environ['PATH_INFO']} {environ['QUERY_STRING']}".encode()
    )
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


@contextlib.contextmanager
def serving(host="127.0.0.1", app=app):
    server = HttpServer(host, 0, app)
    server.start()
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def server():
    with serving() as server:
        yield server


def connect(server, host="127.0.0.1"):
    return socket.create_connection((host, server.server_port), timeout=PATIENCE)


def read_all(connection):
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def open_connections(server):
    """The open connections of the server, whether it has counted them or not."""
    gc.collect()
    return sum(
        isinstance(each, socket.socket) and each.fileno() >= 0 and is_of(server, each) for each in gc.get_objects()
    )


def is_of(server, connection):
    with contextlib.suppress(OSError):
        is_of_a_network = connection.family != socket.AF_UNIX  # as event loops of other tests have
        return is_of_a_network and connection is not server.socket and connection.getsockname()[1] == server.server_port
    return False


def request(server, data, host="127.0.0.1"):
    """The status and the body."""
    with connect(server, host) as connection:
        connection.sendall(data)
        head, _, body = read_all(connection).partition(b"\r\n\r\n")
    return head.decode().partition("\r\n")[0].partition(" ")[2], body


@pytest.mark.parametrize(
    ("data", "status", "body"),
    [
        (GET, "200 OK", b"/hello "),
        (b"GET /hello?verbose HTTP/1.0\r\n\r\n", "200 OK", b"/hello verbose"),
        (b"GET /hello HTTP/1.1\r\n\r\n" * 2, "200 OK", b"/hello "),
        (b"", "", b""),
    ],
)
def test_one_request_of_a_connection_is_answered(server, data, status, body):
    with connect(server) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        head, _, found = read_all(connection).partition(b"\r\n\r\n")
    assert (head.decode().partition("\r\n")[0].partition(" ")[2], found) == (status, body)


@pytest.mark.parametrize("data", [b"\x16\x03\x01\r\n\r\n", b"GET /hello HTTP/9.9\r\n\r\n", b"GET\r\n\r\n"])
def test_a_request_that_is_not_http_is_an_error_of_its_connection_only(server, data):
    with connect(server) as connection:
        connection.sendall(data)
        assert re.search(rb"\b(400|505)\b", read_all(connection))
    assert request(server, GET)[0] == "200 OK"


def test_a_request_above_the_maximum_size_is_not_read_to_its_end(server):
    with connect(server) as connection, contextlib.suppress(OSError):
        connection.sendall(b"GET /hello HTTP/1.1\r\nX: " + b"y" * 5_000_000 + b"\r\n\r\n")
        assert read_all(connection) == b""
    assert request(server, GET)[0] == "200 OK"


@pytest.mark.slow
def test_a_long_response_arrives_whole(server):
    assert len(request(server, b"GET /long HTTP/1.1\r\n\r\n")[1]) == 50_000_000


@pytest.mark.slow
@pytest.mark.parametrize("data", [b"", b"GET /hello HTTP/1.1\r\n", b"GET /long HTTP/1.1\r\n\r\n"])
def test_a_client_that_stops_sending_or_reading_is_disconnected(server, monkeypatch, capfd, data):
    monkeypatch.setattr(http_server, "TIMEOUT", 0.1)
    before, ended, shut_down = threading.active_count(), threading.Event(), server.shutdown_request

    def noted(connection):
        shut_down(connection)
        ended.set()

    monkeypatch.setattr(server, "shutdown_request", noted)
    with connect(server) as connection:
        connection.sendall(data)
        assert ended.wait(PATIENCE)
        assert len(read_all(connection)) < 50_000_000
    eventually("the server", lambda: threading.active_count() == before)
    assert capfd.readouterr().err == ""


def test_the_oldest_connection_is_closed_for_a_new_one(server, monkeypatch):
    monkeypatch.setattr(http_server, "MAX_CONNECTIONS", 3)
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(connect(server)) for _ in range(5)]
        assert request(server, GET)[0] == "200 OK"
        assert read_all(idle[0]) == b""


def test_above_the_maximum_number_of_threads_connections_are_refused(monkeypatch):
    monkeypatch.setattr(http_server, "MAX_CONNECTIONS", 1)
    monkeypatch.setattr(http_server, "MAX_THREADS", threading.active_count() + 4)
    release = threading.Event()

    def waiting(environ, start_response):
        release.wait(PATIENCE)
        return app(environ, start_response)

    with serving(app=waiting) as server, contextlib.ExitStack() as stack:
        connections = [stack.enter_context(connect(server)) for _ in range(20)]
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.sendall(GET)
        assert read_all(connections[-1]) == b""
        assert threading.active_count() <= http_server.MAX_THREADS + 1
        release.set()


@pytest.mark.slow
@pytest.mark.parametrize(
    "data", others_slow([b"", b"GET /hello HTTP/1.1\r\n", b"GET /long HTTP/1.1\r\n\r\n"], b"GET /hello HTTP/1.1\r\n")
)
def test_slow_clients_take_no_more_sockets_than_the_maximum(server, monkeypatch, data):
    monkeypatch.setattr(http_server, "MAX_CONNECTIONS", 5)
    with contextlib.ExitStack() as stack:
        clients = []
        for _ in range(60):
            clients.append(stack.enter_context(connect(server)))
            with contextlib.suppress(OSError):
                clients[-1].sendall(data)
        eventually("the server", lambda: open_connections(server) <= 5)
        assert request(server, GET)[0] == "200 OK"


@pytest.mark.slow
def test_a_connection_has_a_maximum_lifetime(server, monkeypatch):
    monkeypatch.setattr(http_server, "LIFETIME", 0.1)
    with connect(server), connect(server) as unread:
        unread.sendall(b"GET /long HTTP/1.1\r\n\r\n")
        eventually("the server", lambda: len(server._connections) == 2)
        eventually(
            "the server", lambda: not server._connections
        )  # long before TIMEOUT, by which the test would end, too
        assert request(server, GET)[0] == "200 OK"


def test_the_server_pauses_when_no_file_descriptor_is_free(server, monkeypatch):
    pauses = []

    def no_descriptor(_server):
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(http_server.WSGIServer, "get_request", no_descriptor)
    monkeypatch.setattr(http_server.time, "sleep", pauses.append)
    with pytest.raises(OSError, match="too many"):
        server.get_request()
    assert pauses == [http_server.PAUSE]


def test_closing_disconnects_clients_and_refuses_new_ones():
    with serving() as server, connect(server) as connection:
        assert request(server, GET)[0] == "200 OK"
        server.close()
        assert read_all(connection) == b""
        with pytest.raises(OSError, match="refused"):
            connect(server)


def test_an_empty_host_is_every_address_of_both_families():
    with serving("") as server:
        assert request(server, GET)[0] == "200 OK"
        if socket.has_dualstack_ipv6():
            assert request(server, GET, "::1")[0] == "200 OK"


def test_a_host_name_is_bound_to_its_ipv4_address():
    with serving("localhost") as server:
        assert server.server_name == "127.0.0.1"
