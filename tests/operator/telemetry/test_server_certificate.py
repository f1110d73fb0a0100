"""Metrics over TLS, with a certificate that is replaced while the operator runs."""

from __future__ import annotations

import socket
import ssl
import threading

import pytest
from structlog.testing import capture_logs

from ruleop.errors import RuleopError
from ruleop.operator.telemetry import http_server
from ruleop.operator.telemetry.http_server import HttpServer, ServerCertificate
from tests.operator.telemetry.test_http_server import app, read_all
from tests.operator.wire.certificates import Certificates
from tests.waiting import PATIENCE, eventually

NAMES = "subjectAltName=IP:127.0.0.1"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    certificates = Certificates(tmp_path_factory.mktemp("certificates"))
    certificates.sign("first", NAMES)
    certificates.sign("second", NAMES)
    return certificates


class Served:
    """A server whose certificate is in two files of a folder, and a clock."""

    def __init__(self, folder, made):
        self.made = made
        self.crt, self.key = folder / "tls.crt", folder / "tls.key"
        self.use("first")
        self.now = 0.0
        self.certificate = ServerCertificate(self.crt, self.key, clock=lambda: self.now)
        self.server = HttpServer("127.0.0.1", 0, app, self.certificate.context)
        self.server.start()

    def use(self, crt, key=""):
        self.crt.write_bytes((self.made.folder / f"{crt}.crt").read_bytes())
        self.key.write_bytes((self.made.folder / f"{key or crt}.key").read_bytes())

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.server.server_port), timeout=PATIENCE)

    def get(self, path="/hello", maximum=None):
        """The name in the certificate, and the body."""
        context = ssl.create_default_context(cafile=str(self.made.authority))
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.maximum_version = maximum or ssl.TLSVersion.MAXIMUM_SUPPORTED
        with context.wrap_socket(self.connect(), server_hostname="127.0.0.1") as connection:
            subject = dict(part[0] for part in connection.getpeercert()["subject"])
            connection.sendall(f"GET {path} HTTP/1.1\r\n\r\n".encode())
            return subject["commonName"], read_all(connection).partition(b"\r\n\r\n")[2]


@pytest.fixture
def served(tmp_path, made):
    served = Served(tmp_path, made)
    yield served
    served.server.close()


@pytest.mark.slow
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_request_is_answered_over_tls(served, version):
    assert served.get(maximum=version) == ("first", b"/hello ")
    assert len(served.get("/long", version)[1]) == 50_000_000


@pytest.mark.slow
def test_a_new_pair_is_used_by_new_connections(served):
    served.use("second")
    assert served.get()[0] == "first", "read a moment ago"
    served.now += 1
    with capture_logs() as lines:
        assert served.get()[0] == "second"
        served.now += 1
        assert served.get()[0] == "second"
    assert [line["event"] for line in lines] == ["metrics certificate reloaded"]


@pytest.mark.parametrize("how", ["other key", "garbage", "empty", "missing"])
def test_a_pair_that_cannot_be_used_keeps_the_previous_one(served, how):
    served.use("second", "first")
    if how == "missing":
        served.crt.unlink()
    elif how != "other key":
        served.crt.write_text("" if how == "empty" else "garbage")
    with capture_logs() as lines:
        for _ in range(3):
            served.now += 1
            assert served.get()[0] == "first"
    assert [line["event"] for line in lines] == ["metrics certificate not reloaded; using the previous one"]
    assert str(served.crt) in lines[0]["error"]
    served.use("second")
    served.now += 1
    assert served.get()[0] == "second"


def test_a_pair_that_cannot_be_used_at_the_start_is_an_error(tmp_path, made):
    with pytest.raises(RuleopError, match=r"the metrics certificate cannot be used: .*tls\.crt: No such file"):
        ServerCertificate(tmp_path / "tls.crt", tmp_path / "tls.key")
    with pytest.raises(RuleopError, match=r"the metrics certificate cannot be used: .*: key values mismatch"):
        ServerCertificate(made.folder / "first.crt", made.folder / "second.key")
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).write_text("")
    with pytest.raises(RuleopError, match="the metrics certificate cannot be used: "):
        ServerCertificate(tmp_path / "tls.crt", tmp_path / "tls.key")


@pytest.mark.parametrize("data", [b"", b"\x16\x03\x01", b"GET /hello HTTP/1.1\r\n\r\n"])
def test_a_client_without_a_handshake_is_disconnected(served, monkeypatch, capfd, data):
    monkeypatch.setattr(http_server, "TIMEOUT", 0.1)
    before = threading.active_count()
    with served.connect() as connection:
        connection.sendall(data)
        assert b"/hello" not in read_all(connection)
    eventually("the server", lambda: threading.active_count() == before)
    monkeypatch.setattr(http_server, "TIMEOUT", PATIENCE)  # the next client has all the time that a busy machine takes
    assert served.get()[0] == "first"
    assert capfd.readouterr().err == ""


def test_the_oldest_connection_is_closed_for_a_new_one(served, monkeypatch):
    monkeypatch.setattr(http_server, "MAX_CONNECTIONS", 3)
    idle = [served.connect() for _ in range(5)]
    try:
        assert served.get()[0] == "first"
        assert read_all(idle[0]) == b""
    finally:
        for connection in idle:
            connection.close()
