"""Connections: reused, broken, abandoned, refused; plain and over TLS, against a scripted server."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gc
import re
import socket
import ssl
import time
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.operator.wire.client import requests
from ruleop.operator.wire.client.client import LONGEST_LINE, Client, Session, Stream
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.operator.wire.http import connection as http
from ruleop.operator.wire.http import pool
from ruleop.operator.wire.http.access import Access
from ruleop.operator.wire.http.tls import trusting_context
from tests.exploration import others_slow
from tests.operator.wire.certificates import Certificates
from tests.operator.wire.http_server import Exchange, Recorder, listening, serving
from tests.operator.wire.model_server import WIDGETS
from tests.waiting import PATIENCE

Handler = Callable[[Exchange], Awaitable[None]]
Play = Callable[[Handler], contextlib.AbstractAsyncContextManager["World"]]

KEY = ObjectKey("example.com", "Widget", "ns", "a")
READ = requests.get(WIDGETS, KEY)
WRITE = requests.merge_patch(WIDGETS, KEY, {})
WATCH = requests.document("/watch")


class Given:
    """Credentials that are this access."""

    namespace = "default"

    def __init__(self, access: Access) -> None:
        self.access = access

    async def load(self, *, forced: bool = False) -> Access:
        return self.access


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


class World:
    """A server, and a client of it."""

    def __init__(self, server: Recorder, session: Session) -> None:
        self.server = server
        self.session = session
        self.client = Client(session)

    @property
    def connections(self) -> list[Any]:
        """Those on which the server was asked something, in the order of the requests."""
        return [each.writer for each in self.server.seen]

    @property
    def open(self) -> int:
        return len(self.session._current._open)

    @property
    def resting(self) -> int:
        return len(self.session._current._idle)


@contextlib.asynccontextmanager
async def session_of(access: Access) -> AsyncIterator[Session]:
    session = await Session.open(Given(access))
    try:
        yield session
    finally:
        await session.close()


def trusted(certificates: Certificates, address: str, **more: Any) -> Access:
    """Access over TLS to a server whose certificate is trusted."""
    return Access(address, tls=trusting_context(certificates.authority.read_bytes()), **more)


@pytest.fixture(params=others_slow(["plain", "tls"], "plain"))
def play(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[Play]:
    @contextlib.asynccontextmanager
    async def playing(handler: Handler) -> AsyncIterator[World]:
        tls = request.param == "tls"
        async with serving(handler, certificates.server_context() if tls else None) as server:
            access = trusted(certificates, server.address) if tls else Access(server.address)
            async with session_of(access) as session, asyncio.timeout(PATIENCE):
                yield World(server, session)
            assert not session._current._open

    gc.freeze()  # the collection is only of what the test makes
    yield playing
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gc.collect()  # a socket that is still open would warn now


async def until(condition: Callable[[], Any]) -> None:
    while not condition():  # noqa: ASYNC110 - what is waited for is the world's, and sets no event
        await asyncio.sleep(0.005)


async def problem_of(sent: Awaitable[Any]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await sent
    return caught.value


async def fine(exchange: Exchange) -> None:
    await exchange.answer({"fine": True})


# Kept connections


async def test_requests_in_sequence_share_one_connection(play: Play) -> None:
    async with play(fine) as world:
        for _ in range(3):
            assert await world.client.send(READ) == {"fine": True}
        await asyncio.gather(*(world.client.send(READ) for _ in range(3)))
        assert len(set(world.connections)) == 3
        assert world.open == world.resting == 3
        await world.client.send(READ)
        assert len(set(world.connections)) == 3


async def test_a_request_that_impersonates_somebody_hands_the_user_to_no_other_request(play: Play) -> None:
    """The heads of requests are kept, and connections are reused: neither may hand a user to the next request."""
    users = ["", "system:serviceaccount:a:x", "", "system:serviceaccount:b:y", "system:serviceaccount:a:x", ""]
    async with play(fine) as world:
        for user in users:
            await world.client.send(replace(WRITE, as_user=user))
        assert len(set(world.connections)) == 1
        found = [each.headers.get("impersonate-user", "") for each in world.server.seen]
        assert found == users
        await asyncio.gather(*(world.client.send(replace(WRITE, as_user=user)) for user in users))
        found = [each.headers.get("impersonate-user", "") for each in world.server.seen[len(users) :]]
        assert sorted(found) == sorted(users)


async def test_credentials_that_impersonate_a_user_cannot_impersonate_another_one() -> None:
    """They may have more permissions than that user, who asked for no more than a part."""
    async with serving(fine) as server:
        access = Access(server.address, impersonation=(("Impersonate-User", "joe"), ("Impersonate-Group", "dev")))
        async with session_of(access) as session:
            client = Client(session)
            await client.send(WRITE)
            error = await problem_of(client.send(replace(WRITE, as_user="system:serviceaccount:a:x")))
            assert "the kubeconfig impersonates a user" in str(error)
        (seen,) = server.seen
        assert seen.headers["impersonate-user"] == "joe"


@pytest.mark.parametrize("user", ["a\r\nX-Evil: 1", "a\n", "ä", "\x00"])
async def test_a_user_with_characters_of_a_header_is_never_sent(user: str) -> None:
    async with serving(fine) as server, session_of(Access(server.address)) as session:
        error = await problem_of(Client(session).send(replace(WRITE, as_user=user)))
        assert error.problem is Problem.UNREACHABLE
        assert server.seen == []


async def test_a_connection_closed_by_the_server_after_its_answer_is_not_reused(play: Play) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.answer(b"{}", Connection="close")

    async with play(handler) as world:
        await world.client.send(READ)
        await world.client.send(READ)
        assert len(set(world.connections)) == 2


@pytest.mark.parametrize("how", ["closes", "says something"])
async def test_an_idle_connection_on_which_the_server_sends_or_closes_is_discarded(play: Play, how: str) -> None:
    async with play(fine) as world:
        await world.client.send(READ)
        writer = world.connections[0]
        if how == "closes":
            writer.close()
        else:
            writer.write(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        await until(lambda: world.open == 0)
        assert world.resting == 0
        await world.client.send(WRITE)
        assert len(set(world.connections)) == 2


async def test_a_close_that_the_event_loop_has_not_read_yet_is_detected(play: Play) -> None:
    """A write on that connection would be one of which nobody knows whether it was done."""
    async with play(fine) as world:
        await world.client.send(READ)
        world.connections[0].transport.abort()
        (connection,) = world.session._current._idle
        found = connection.is_usable()
        while found:  # no turn of this loop, so the client has read nothing: the server is of the same loop, and closes in its turn
            connection.transport.pause_reading()
            await asyncio.sleep(0.005)
            found = connection.is_usable()
        assert world.resting == 1, "what the loop knows of it"
        await world.client.send(WRITE)
        assert len(set(world.connections)) == 2


async def test_an_idle_connection_is_closed_after_a_while(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE", 0.1)
    async with play(fine) as world:
        await world.client.send(READ)
        await until(lambda: world.open == 0)


async def test_an_idle_connection_past_its_time_is_not_reused_by_a_late_event_loop(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "IDLE", 0.1)
    async with play(fine) as world:
        await world.client.send(READ)
        time.sleep(0.15)  # noqa: ASYNC251 - that is what is tested
        await world.client.send(WRITE)
        assert len(set(world.connections)) == 2


def closing_the_second(*, after: bytes = b"") -> Callable[[Exchange], Awaitable[None]]:
    """A server that takes the second request on a connection, and closes."""
    served: set[Any] = set()

    async def handler(exchange: Exchange) -> None:
        if exchange.writer in served:
            if after:
                await exchange.raw(after)
            exchange.reset()
            raise ConnectionError
        served.add(exchange.writer)
        await exchange.answer({"fine": True})

    return handler


async def test_a_read_that_fails_on_a_reused_connection_is_sent_again_on_a_new_one(play: Play) -> None:
    async with play(closing_the_second()) as world:
        await world.client.send(READ)
        assert await world.client.send(READ) == {"fine": True}
        first, second, third = world.connections
        assert first is second is not third


async def test_a_write_that_fails_on_a_reused_connection_is_not_sent_again(play: Play) -> None:
    async with play(closing_the_second()) as world:
        await world.client.send(READ)
        error = await problem_of(world.client.send(WRITE))
        assert (error.problem, error.outcome_unknown) == (Problem.TIMEOUT, True)
        assert "it may have been done or not" in error.text
        assert len(world.connections) == 2


async def test_a_read_with_a_partial_answer_is_not_sent_again(play: Play) -> None:
    async with play(closing_the_second(after=b"HTTP/1.1 200")) as world:
        await world.client.send(READ)
        error = await problem_of(world.client.send(READ))
        assert (error.problem, error.outcome_unknown) == (Problem.TIMEOUT, False)
        assert len(world.connections) == 2


async def test_a_read_that_fails_on_a_new_connection_is_not_sent_again(play: Play) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.reset()

    async with play(handler) as world:
        assert (await problem_of(world.client.send(READ))).problem is Problem.TIMEOUT
        assert len(world.connections) == 1


# Answers that are none


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", "not an answer in HTTP/1.1: 'SSH-2.0-OpenSSH_9.6"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "Invalid character in Content-Length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "Invalid character in chunk size"),
    ],
)
@pytest.mark.parametrize("asked", [READ, WRITE])
async def test_malformed_answers_are_reported_at_once_and_close_the_connection(
    play: Play, said: bytes, told: str, asked: requests.PreparedRequest
) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.raw(said)
        await asyncio.Event().wait()

    async with play(handler) as world:
        error = await problem_of(world.client.send(asked))
        assert error.problem is Problem.TIMEOUT
        assert told in error.text
        assert error.outcome_unknown == (asked is WRITE)
        await until(lambda: world.open == 0)


WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n" + b'{"fine":true}'


async def test_a_connection_that_is_closed_at_any_byte_of_the_answer_is_an_error(play: Play) -> None:
    async def handler(exchange: Exchange) -> None:
        length = int(exchange.path.rpartition("/")[2])
        await exchange.raw(WHOLE[:length])
        exchange.writer.close()
        raise ConnectionError

    async with play(handler) as world:
        for length in range(len(WHOLE)):
            error = await problem_of(world.client.send(requests.document(f"/{length}")))
            assert "the connection ended" in error.text or "the connection broke" in error.text
        assert await world.client.send(requests.document(f"/{len(WHOLE)}")) == {"fine": True}


async def test_an_answer_that_arrives_byte_by_byte_is_read(play: Play) -> None:
    async def handler(exchange: Exchange) -> None:
        for byte in WHOLE:
            await exchange.raw(bytes([byte]))
            await asyncio.sleep(0.001)

    async with play(handler) as world:
        assert await world.client.send(READ) == {"fine": True}


@pytest.mark.slow
async def test_an_endless_header_ends_at_the_timeout(play: Play) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.raw(b"HTTP/1.1 200 OK\r\n")
        while True:
            await exchange.raw(b"X: y\r\n")
            await asyncio.sleep(0.01)

    async with play(handler) as world:
        error = await problem_of(world.client.send(replace(WRITE, timeout=0.3)))
        assert error.text == "no answer in time; it may have been done or not"
        await until(lambda: world.open == 0)


async def test_an_answer_that_is_not_json_is_a_server_error(play: Play) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.answer(b"<html>please log in</html>")

    async with play(handler) as world:
        error = await problem_of(world.client.send(WRITE))
        assert error.text == "the answer is not a JSON object"
        assert (error.problem, error.outcome_unknown) == (Problem.SERVER, True)


async def test_an_answer_above_the_maximum_size_is_not_read_to_its_end(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "LARGEST", 104_857)

    async def handler(exchange: Exchange) -> None:
        await exchange.open()
        while True:
            await exchange.chunk(b"x" * 10_000)

    async with play(handler) as world:
        error = await problem_of(world.client.send(READ))
        assert error.text.startswith("the answer is larger than 0.1 MiB; a Kubernetes API server sends less")
        assert (error.problem, error.retryable) == (Problem.TOO_LARGE, False)
        error = await problem_of(world.client.send(WRITE))
        assert "; it may have been done or not" in error.text
        assert (error.problem, error.outcome_unknown) == (Problem.TIMEOUT, True)


def test_answers_and_lines_have_a_maximum_size() -> None:
    assert (http.LARGEST, LONGEST_LINE) == (64 << 20, 16 << 20)


# Time and cancellation


async def test_cancelling_a_request_closes_its_connection_at_any_stage(play: Play) -> None:
    async def handler(exchange: Exchange) -> None:
        if exchange.path == "/head":
            await exchange.raw(WHOLE[:20])
        elif exchange.path == "/body":
            await exchange.raw(WHOLE[:-1])
        elif exchange.path == "/fine":
            await exchange.raw(WHOLE)
            return
        await asyncio.Event().wait()

    async with play(handler) as world:
        for path in ("/nothing", "/head", "/body"):
            await world.client.send(requests.document("/fine"))
            assert world.resting == 1
            seen = len(world.connections)
            task = asyncio.ensure_future(world.client.send(requests.document(path)))
            await until(lambda seen=seen: len(world.connections) > seen)
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert world.resting == 0
            await until(lambda: world.open == 0)


async def test_cancelling_a_request_as_its_answer_arrives_closes_its_connection(play: Play) -> None:
    task: asyncio.Future[Any]

    class Cancelling(http.Connection):
        __slots__ = ()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            task.cancel()

    async with play(fine) as world:
        await world.client.send(READ)
        (connection,) = world.session._current._idle
        connection.__class__ = Cancelling
        task = asyncio.ensure_future(world.client.send(READ))
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(set(world.connections)) == 1
        assert world.resting == 0
        await until(lambda: world.open == 0)


def test_cancelling_a_request_while_it_connects_leaves_nothing_open(certificates: Certificates) -> None:
    """A server that takes the connection, and says nothing in the handshake."""

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            access = trusted(certificates, f"https://127.0.0.1:{silent.getsockname()[1]}")
            session = await Session.open(Given(access))
            task = asyncio.ensure_future(Client(session).send(READ))
            taken, _ = await asyncio.to_thread(silent.accept)
            with taken:
                await asyncio.sleep(0.02)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert not session._current._open
                taken.settimeout(20)
                while await asyncio.to_thread(taken.recv, 4096):
                    pass  # its end is what is waited for
            await session.close()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(main())
        gc.collect()


async def test_a_tls_handshake_timeout_means_that_nothing_was_sent(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was sent, so a write did not happen."""
    monkeypatch.setattr(pool, "CONNECT_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        access = trusted(certificates, f"https://127.0.0.1:{silent.getsockname()[1]}")
        session = await Session.open(Given(access))
        error = await problem_of(Client(session).send(WRITE))
        assert error.text == f"{access.server} cannot be reached: no connection within 0.2 s"
        assert (error.problem, error.outcome_unknown) == (Problem.UNREACHABLE, False)
        await session.close()


async def test_a_server_without_tls_means_that_nothing_was_sent(certificates: Certificates) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent something else\n")
        writer.close()

    async with listening(plain) as port:
        access = trusted(certificates, f"https://127.0.0.1:{port}")
        session = await Session.open(Given(access))
        error = await problem_of(Client(session).send(WRITE))
        assert f"no TLS connection with {access.server}: " in error.text
        assert (error.problem, error.outcome_unknown) == (Problem.UNREACHABLE, False)
        await session.close()


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ("basicConstraints=CA:FALSE", "Hostname mismatch"),  # nothing but the common name
        ("subjectAltName=email:a@example.com", "Hostname mismatch"),
        ("subjectAltName=IP:127.0.0.1", "Hostname mismatch"),
        ("subjectAltName=DNS:named.example.com", ""),
    ],
)
async def test_the_common_name_of_a_certificate_is_not_a_host_name(
    certificates: Certificates, names: str, why: str
) -> None:
    certificates.sign("named.example.com", names)
    server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_tls.load_cert_chain(certificates.path("named.example.com.crt"), certificates.path("named.example.com.key"))
    async with serving(fine, server_tls) as server:
        access = trusted(certificates, server.address, server_hostname="named.example.com")
        session = await Session.open(Given(access))
        if why:
            error = await problem_of(Client(session).send(READ))
            assert why in error.text
            assert "it needs this name or address as a subjectAltName, a common name does not count" in error.text
            assert error.problem is Problem.UNTRUSTED
        else:
            await Client(session).send(READ)
        await session.close()


@contextlib.asynccontextmanager
async def over_tls(handler: Handler, certificates: Certificates, **options: Any) -> AsyncIterator[World]:
    context = certificates.server_context()
    for name, value in options.items():
        setattr(context, name, value)
    async with serving(handler, context) as server, session_of(trusted(certificates, server.address)) as session:
        async with asyncio.timeout(PATIENCE):
            yield World(server, session)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_large_bodies_pass_in_both_directions_with_tls_1_2_and_1_3(
    certificates: Certificates, version: ssl.TLSVersion
) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.answer(exchange.body)

    async with over_tls(handler, certificates, minimum_version=version, maximum_version=version) as world:
        body = b'"' + b"x" * 3_000_000 + b'"'
        for _ in range(2):
            assert (await world.client.fetch(requests.PreparedRequest("POST", "/x", "create", "x", body=body)))[
                0
            ] == body
        assert len(set(world.connections)) == 1


def under_tls(exchange: Exchange) -> asyncio.Transport:
    transport: Any = exchange.writer.transport
    return transport._ssl_protocol._transport


async def test_an_answer_that_ends_without_a_tls_close_notify_is_truncated(certificates: Certificates) -> None:
    """It has no length, so its end is the connection's; and anybody on the way can end that."""

    async def handler(exchange: Exchange) -> None:
        await exchange.raw(b"HTTP/1.1 200 OK\r\n\r\n{}")
        if exchange.path == "/cut":
            under_tls(exchange).close()
        else:
            exchange.writer.close()
        raise ConnectionError

    async with over_tls(handler, certificates) as world:
        assert await world.client.send(requests.document("/whole")) == {}
        text = (await problem_of(world.client.send(requests.document("/cut")))).text
        assert re.search(
            "the connection broke .*(EOF occurred in violation of protocol|UNEXPECTED_EOF_WHILE_READING)", text
        )


async def test_injected_bytes_break_a_tls_connection(certificates: Certificates) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.open()
        under_tls(exchange).write(b"\x17\x03\x03\x00\x20" + b"x" * 32)
        await asyncio.Event().wait()

    async with over_tls(handler, certificates) as world:
        assert "the connection broke (SSLError" in (await problem_of(world.client.send(READ))).text
        await until(lambda: world.open == 0)


async def test_closing_the_session_ends_pending_requests(play: Play) -> None:
    async def handler(exchange: Exchange) -> None:
        await asyncio.Event().wait()

    async with play(handler) as world:
        task = asyncio.ensure_future(world.client.send(WRITE))
        await until(lambda: world.connections)
        await world.session.close()
        assert (await problem_of(task)).outcome_unknown
        assert world.open == 0


async def test_closing_the_session_ends_a_pending_handshake(certificates: Certificates) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        access = trusted(certificates, f"https://127.0.0.1:{silent.getsockname()[1]}")
        session = await Session.open(Given(access))
        task = asyncio.ensure_future(Client(session).send(WRITE))
        taken, _ = await asyncio.to_thread(silent.accept)
        with taken:
            await session.close()
            assert not (await problem_of(task)).outcome_unknown
            assert not session._current._open


async def test_closing_the_session_ends_a_connection_that_was_just_established(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other side has the connection, and the loop does not know yet that it has one."""
    monkeypatch.setattr(pool, "CONNECT_TIMEOUT", 3600.0)
    loop = asyncio.get_running_loop()
    connect, begun, go_on = loop.create_connection, asyncio.Event(), asyncio.Event()

    async def held(*arguments: Any, **options: Any) -> Any:
        begun.set()
        await go_on.wait()
        return await connect(*arguments, **options)

    monkeypatch.setattr(loop, "create_connection", held)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        access = trusted(certificates, f"https://127.0.0.1:{silent.getsockname()[1]}")
        session = await Session.open(Given(access))
        task = asyncio.ensure_future(Client(session).send(WRITE))
        await begun.wait()
        await session.close()
        go_on.set()
        async with asyncio.timeout(PATIENCE):
            assert not (await problem_of(task)).outcome_unknown
        assert not session._current._open


async def test_a_renewed_certificate_leaves_a_running_watch_its_connection(play: Play) -> None:
    go_on = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        if exchange.path != "/watch":
            await exchange.answer()
            return
        await exchange.open()
        await exchange.chunk(b"one\n")
        await go_on.wait()
        await exchange.chunk(b"two\n")
        await exchange.end()

    async with play(handler) as world:
        watch = open_watch(world)
        assert await anext(watch) == [b"one"]
        await world.client.send(READ)
        old, credentials = world.session._current, world.session._credentials
        assert len(old._open) == 2
        credentials.access = replace(old.access, tls_digest="other")
        await world.session._reload(forced=True)
        await until(lambda: len(old._open) == 1)  # what rested is closed
        await world.client.send(READ)
        assert len(set(world.connections)) == 3
        go_on.set()
        assert [each async for each in watch] == [[b"two"], None]
        await until(lambda: not old._open)


# Watches


async def open_watch(world: World, seconds: float = 30.0) -> AsyncIterator[list[bytes] | None]:
    async with world.client.stream(WATCH) as stream:
        while True:
            lines = await stream.lines(time.monotonic() + seconds)
            yield lines
            if lines is None:
                return


async def test_a_watch_that_ends_properly_returns_its_connection_to_the_pool(play: Play) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.open()
        await exchange.chunk(b"one\ntw")
        await asyncio.sleep(0.01)
        await exchange.chunk(b"o\nhalf")
        await exchange.end()

    async with play(handler) as world:
        assert [each async for each in open_watch(world)] == [[b"one"], [b"two"], None]
        assert world.resting == 1


async def test_a_broken_watch_delivers_the_lines_before_the_error(play: Play) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.open()
        await exchange.chunk(b"one\n")
        exchange.writer.close()
        raise ConnectionError

    async with play(handler) as world:
        watch = open_watch(world)
        assert await anext(watch) == [b"one"]
        assert "the connection ended in the middle" in (await problem_of(anext(watch))).text
        assert world.resting == 0


async def test_a_silent_watch_returns_no_lines_and_stays_open(play: Play) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.open()
        await asyncio.sleep(0.1)
        await exchange.chunk(b"late\n")
        await asyncio.Event().wait()

    async with play(handler) as world:
        async with world.client.stream(WATCH) as stream:
            assert await stream.lines(time.monotonic() + 0.01) == []
            assert await stream.lines(time.monotonic() + PATIENCE) == [b"late"]
            assert await stream.lines(time.monotonic() - 1) == []
            assert world.open == 1
        assert world.resting == 0
        await until(lambda: world.open == 0)


async def test_an_endless_line_ends_at_the_deadline() -> None:
    class Endless:
        reads = 0

        async def read(self, _until: float) -> bytes:
            """There is always more, so nothing is ever waited for."""
            self.reads += 1
            assert self.reads < 1000
            return b"x"

    endless = Endless()
    assert await Stream(endless, WATCH).lines(time.monotonic()) == []  # type: ignore[arg-type]
    assert endless.reads == 1


@pytest.mark.parametrize("end", [b"", b"\n"])
async def test_a_line_above_the_maximum_length_ends_the_watch(
    play: Play, monkeypatch: pytest.MonkeyPatch, end: bytes
) -> None:
    monkeypatch.setattr("ruleop.operator.wire.client.client.LONGEST_LINE", 1 << 20)

    async def handler(exchange: Exchange) -> None:
        await exchange.open()
        await exchange.chunk(b"x" * (1 << 20) + b"\n")
        await exchange.chunk(b"x" * (1 << 20) + b"y" + end)
        await asyncio.Event().wait()

    async with play(handler) as world:
        async with world.client.stream(WATCH) as stream:
            assert [len(line) for line in await stream.lines(time.monotonic() + PATIENCE) or ()] == [1 << 20]
            error = await problem_of(stream.lines(time.monotonic() + PATIENCE))
        assert error.text.startswith("a line of the watch is longer than 1 MiB; a Kubernetes API server sends less")
        assert (error.problem, error.status) == (Problem.SERVER, 200)


async def test_a_watch_that_is_not_read_stops_its_sender(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "UNREAD", 100_000)
    line, sent, stopped = b"x" * 9_999 + b"\n", 0, False

    async def handler(exchange: Exchange) -> None:
        nonlocal sent, stopped
        await exchange.open()
        while sent < 3_000:  # thirty megabytes: more than sockets and buffers hold
            try:
                async with asyncio.timeout(None if stopped else 0.3):
                    await exchange.chunk(line)
            except TimeoutError:
                stopped = True
            sent += 1
        await exchange.end()

    async with play(handler) as world, world.client.stream(WATCH) as stream:
        (connection,) = world.session._current._open
        await until(lambda: stopped)
        assert sent < 2_500
        assert connection.response.unread < 2_000_000
        got = 0
        while (lines := await stream.lines(time.monotonic() + PATIENCE)) is not None:
            got += len(lines)
        assert got == 3_000


async def test_a_finished_watch_that_was_not_read_leaves_a_reusable_connection(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "UNREAD", 10)

    async def handler(exchange: Exchange) -> None:
        if exchange.path == "/watch":
            await exchange.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + b"x" * 99 + b"\n")
        else:
            await exchange.answer({"fine": True})

    async with play(handler) as world:
        async with world.client.stream(WATCH):
            pass
        assert world.resting == 1
        assert await world.client.send(READ) == {"fine": True}
        assert len(set(world.connections)) == 1


@pytest.mark.slow
async def test_the_error_body_of_a_refused_watch_is_read_with_a_timeout(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ruleop.operator.wire.client.client.OPEN_TIMEOUT", 0.5)

    async def handler(exchange: Exchange) -> None:
        await exchange.raw(b"HTTP/1.1 410 Gone\r\nContent-Length: 38\r\n\r\n")
        if exchange.query:
            await asyncio.Event().wait()
        await asyncio.sleep(0.01)
        await exchange.raw(b'{"kind": "Status", "reason":"Expired"}')

    async with play(handler) as world:

        async def refused(request: requests.PreparedRequest) -> ApiError:
            with pytest.raises(ApiError) as caught:
                async with world.client.stream(request):
                    pass
            return caught.value

        assert (await refused(WATCH)).problem is Problem.GONE
        assert world.resting == 1
        assert (await refused(requests.document("/watch?silent=1"))).problem is Problem.TIMEOUT
        assert world.resting == 0


# What is sent


def seen(access: Callable[[Recorder], Access], request: requests.PreparedRequest = READ) -> Exchange:
    async def main() -> Exchange:
        async with serving(fine) as server:
            async with session_of(access(server)) as session:
                await Client(session).send(request)
            return server.seen[0]

    return asyncio.run(main())


def refused(access: Access, request: requests.PreparedRequest = READ) -> ApiError:
    async def main() -> ApiError:
        async with session_of(access) as session:
            error = await problem_of(Client(session).send(request))
            assert not session._current._open
            return error

    return asyncio.run(main())


def test_a_base_path_of_the_server_precedes_every_path() -> None:
    for end in ("", "/"):
        exchange = seen(lambda server, end=end: Access(f"{server.address}/k8s/clusters/c-abc{end}"))
        assert exchange.path == "/k8s/clusters/c-abc/apis/example.com/v1/namespaces/ns/widgets/a"


def test_credentials_in_the_server_url_are_sent_unless_others_are_given() -> None:
    def address(server: Recorder) -> str:
        return server.address.replace("://", "://joe:p%40ss@")

    assert (
        seen(lambda server: Access(address(server))).headers["authorization"]
        == "Basic " + base64.b64encode(b"joe:p@ss").decode()
    )
    assert seen(lambda server: Access(address(server), "Bearer x")).headers["authorization"] == "Bearer x"


def test_a_write_without_a_body_has_a_content_length_of_zero() -> None:
    exchange = seen(lambda server: Access(server.address), requests.PreparedRequest("POST", "/x", "create", "x"))
    assert exchange.headers["content-length"] == "0"


@pytest.mark.parametrize("token", ["two\r\nX-Evil: 1", "two\nlines", "nul\0", "ä"])
def test_a_token_that_is_not_a_valid_header_is_neither_sent_nor_quoted(token: str) -> None:
    error = refused(Access("http://127.0.0.1:1", f"Bearer {token}"))
    assert "characters that no header can carry" in error.text
    assert token not in error.text


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX-Evil: 1", "/ä", "/a?b c"])
def test_an_invalid_request_path_is_not_sent(path: str) -> None:
    assert "is not a valid request path" in refused(Access("http://127.0.0.1:1"), requests.document(path)).text


@pytest.mark.parametrize(
    "server",
    ["htp://x", "https://", "https://h:99999", "https://h:x", "https://a b", "https://[::1", "x", "http://h/a b"],
)
def test_an_invalid_server_url_is_reported(server: str) -> None:
    error = refused(Access(server))
    shown = "http://h" if server == "http://h/a b" else server
    assert error.text == f"{shown} is not a valid server URL"
    assert error.problem is Problem.UNREACHABLE


@pytest.mark.parametrize(
    ("server", "shown"),
    [
        ("https://h:6443", "https://h:6443"),
        ("https://joe:s3cret@h:6443/s3cret", "https://h:6443"),
        ("http://joe:s3cret@[::1]:80?token=s3cret", "http://[::1]:80"),
        ("https://s3cret@h", "https://h"),
        ("https://joe:s3cret@h:99999", "https://h:99999"),
        ("https://joe:s3cret/s3cret@h", "https://h"),
        ("https://joe:s3cret#s3cret@h", "https://h"),
        ("https://joe:s3cret@s3cret@h", "https://h"),
        ("joe:s3cret@h", "h"),
        ("joe:s3cret://s3cret@h", "h"),
        ("https://joe:s3cret://s3cret@h", "https://h"),
    ],
)
def test_only_scheme_host_and_port_of_the_server_url_are_shown(server: str, shown: str) -> None:
    assert Access(server).address == shown


@pytest.mark.parametrize(
    "server", ["http://joe:s3cret@127.0.0.1:1/s3cret", "http://joe:s3cret@h:99999", "https://joe:s3cret/s3cret@h"]
)
@pytest.mark.parametrize("authorization", ["", "Bearer \r\n"])
def test_a_password_in_the_server_url_is_in_no_error(server: str, authorization: str) -> None:
    assert "s3cret" not in str(refused(Access(server, authorization)))


async def test_the_session_shows_only_host_and_port() -> None:
    async with session_of(Access("https://joe:s3cret@h:6443/path")) as session:
        assert session.server == "https://h:6443"


def test_an_unresolvable_host_name_is_reported() -> None:
    assert "http://nobody.invalid cannot be reached: " in refused(Access("http://nobody.invalid")).text


def test_each_address_of_a_host_name_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    known = socket.getaddrinfo

    def addresses(host: str, port: int, *rest: Any, **options: Any) -> list[Any]:
        if host != "kube.example.com":
            return known(host, port, *rest, **options)
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port))
            for each in ("127.0.0.3", "127.0.0.2", "127.0.0.1")
        ]

    monkeypatch.setattr(socket, "getaddrinfo", addresses)
    exchange = seen(lambda server: Access(server.address.replace("127.0.0.1", "kube.example.com")))
    assert exchange.headers["host"].startswith("kube.example.com:")
    assert "kube.example.com" in refused(Access("http://kube.example.com:1")).text


def has_ipv6() -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return True
    return False


def test_an_ipv6_address_is_written_in_brackets() -> None:
    """Where there is no IPv6, at least the error names the address without them."""

    async def main() -> None:
        asked: list[bytes] = []

        async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

        async with listening(connection, "::1") as port:
            session = await Session.open(Given(Access(f"http://[::1]:{port}")))
            assert await Client(session).send(READ) == {}
            await session.close()
        assert f"\r\nHost: [::1]:{port}\r\n".encode() in asked[0]

    if has_ipv6():
        asyncio.run(main())
    else:
        assert "cannot be reached" in refused(Access("http://[::1]:1")).text


# Proxies


class Proxy:
    """Answers CONNECT with a given answer, and pipes then."""

    def __init__(self, says: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n") -> None:
        self.says = says
        self.asked: list[str] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
        host, _, port = self.asked[-1].split(" ")[1].partition(":")
        writer.write(self.says)
        if b" 200 " not in self.says:
            writer.close()
            return
        there_reader, there_writer = await asyncio.open_connection(host, int(port))
        try:
            await asyncio.gather(_pipe(reader, there_writer), _pipe(there_reader, writer))
        finally:
            there_writer.transport.abort()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
    writer.close()


def through(
    proxy: Proxy, certificates: Certificates, *, login: str = "", tls: ssl.SSLContext | None = None, times: int = 1
) -> list[Exchange]:
    """What arrives at a server with TLS that is asked through the proxy."""

    async def main() -> list[Exchange]:
        async with listening(proxy, tls=tls) as port, serving(fine, certificates.server_context()) as server:
            address = f"{'https' if tls else 'http'}://{login}127.0.0.1:{port}"
            access = trusted(certificates, server.address, authorization="Bearer x", proxy=address)
            async with session_of(access) as session:
                for _ in range(times):
                    assert await Client(session).send(READ) == {"fine": True}
            return server.seen

    return asyncio.run(main())


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("says", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.0 200 Connection established\r\nX: y\r\n\r\n"])
def test_a_proxy_tunnel_is_opened_once_and_reused(certificates: Certificates, secure: bool, says: bytes) -> None:
    proxy = Proxy(says)
    arrived = through(proxy, certificates, times=3, tls=certificates.server_context() if secure else None)
    assert [each.headers["authorization"] for each in arrived] == ["Bearer x"] * 3
    assert len(proxy.asked) == 1
    assert "Proxy-Authorization" not in proxy.asked[0]
    assert "Bearer" not in proxy.asked[0], "the proxy has no business with it"


def test_the_password_of_the_proxy_is_sent_to_the_proxy_alone(certificates: Certificates) -> None:
    proxy = Proxy()
    arrived = through(proxy, certificates, login="joe:p%40ss@")
    assert "\r\nProxy-Authorization: Basic " + base64.b64encode(b"joe:p@ss").decode() + "\r\n" in proxy.asked[0]
    assert "proxy-authorization" not in arrived[0].headers


@pytest.mark.parametrize(
    ("says", "told"),
    [
        (
            b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 5\r\n\r\nlogin",
            "407 Proxy Authentication Required",
        ),
        (b"HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n", "503 No"),
        (b"\x05\x00", "not an answer in HTTP/1.1"),
        (b"", "the connection ended without an answer"),
    ],
)
def test_a_tunnel_refused_by_the_proxy_is_reported_and_nothing_was_sent(
    certificates: Certificates, says: bytes, told: str
) -> None:
    with pytest.raises(
        ApiError, match=rf"the proxy rejected the connection to https://127.0.0.1:[0-9]+: {told}"
    ) as caught:
        through(Proxy(says), certificates)
    assert caught.value.problem is Problem.UNREACHABLE


async def test_a_plain_http_server_behind_a_proxy_is_requested_by_its_absolute_url() -> None:
    lines: list[str] = []

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.extend((await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    async with listening(connection) as port:
        access = Access("http://kube.invalid:8080/base", proxy=f"http://joe:secret@127.0.0.1:{port}")
        async with session_of(access) as session:
            await Client(session).send(requests.document("/hello?a=b"))
    assert lines[0] == "GET http://kube.invalid:8080/base/hello?a=b HTTP/1.1"
    assert "Host: kube.invalid:8080" in lines
    assert "Proxy-Authorization: Basic " + base64.b64encode(b"joe:secret").decode() in lines


@pytest.mark.parametrize("proxy", ["socks5://joe:secret@127.0.0.1:1", "http://", "foo", "http://joe:secret@h:99999"])
def test_an_invalid_proxy_url_is_reported_without_its_password(proxy: str) -> None:
    error = refused(Access("https://127.0.0.1:1", proxy=proxy))
    assert "the proxy cannot be used" in error.text
    assert "secret" not in error.text


def test_an_unreachable_proxy_is_reported() -> None:
    assert (
        "the proxy cannot be reached: "
        in refused(Access("https://127.0.0.1:1", proxy="http://joe:secret@127.0.0.1:1")).text
    )


async def test_an_untrusted_proxy_certificate_is_reported(certificates: Certificates) -> None:
    proxy = Proxy()
    async with listening(proxy, tls=certificates.server_context()) as port:
        access = Access("https://127.0.0.1:1", proxy=f"https://127.0.0.1:{port}", tls=ssl.create_default_context())
        async with session_of(access) as session:
            error = await problem_of(Client(session).send(READ))
    assert "the certificate of the proxy is not trusted: " in error.text
    assert error.problem is Problem.UNTRUSTED
    assert proxy.asked == []
