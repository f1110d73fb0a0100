"""The server of the probes: whoever asks, and however."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from ruleop.engine.telemetry import http_server as answering
from ruleop.engine.telemetry.http_server import HttpResponse, Server


async def hello(question):
    return HttpResponse(f"{question.path} {dict(question.query)}")


async def fails(question):
    raise ZeroDivisionError


async def long(question):
    return HttpResponse(b"x" * 5_000_000)


def serving(scenario):
    async def main():
        server = await Server.open("127.0.0.1", 0, {"/hello": hello, "/fails": fails, "/long": long})
        try:
            async with asyncio.timeout(60):
                await scenario(server)
        finally:
            await server.close()

    return main()


async def until(condition):
    while not condition():  # noqa: ASYNC110 - nothing says it
        await asyncio.sleep(0.005)


class Asker:
    """One connection."""

    def __init__(self, server):
        self.server = server

    async def __aenter__(self):
        self.reader, self.writer = await asyncio.open_connection(*self.server.address)
        return self

    async def __aexit__(self, *_):
        self.writer.transport.abort()
        await asyncio.sleep(0)

    async def ask(self, data):
        self.writer.write(data)
        return await self.reader.read()


async def ask(server, data):
    async with Asker(server) as asker:
        said = await asker.ask(data)
    head, _, body = said.partition(b"\r\n\r\n")
    first, *headers = head.decode().split("\r\n")
    assert {"Connection: close", f"Content-Length: {len(body)}"} <= {*headers} or data.startswith(b"HEAD")
    return first.removeprefix("HTTP/1.1 "), body.decode()


@pytest.mark.parametrize(
    ("question", "status", "body"),
    [
        (b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK", "/hello {}"),
        (b"GET /hello?verbose HTTP/1.0\r\n\r\n", "200 OK", "/hello {'verbose': ['']}"),
        (b"GET /hello?a=%20 HTTP/1.1\r\n\r\nGET /hello HTTP/1.1\r\n\r\n", "200 OK", "/hello {'a': [' ']}"),
        (b"HEAD /hello HTTP/1.1\r\n\r\n", "200 OK", ""),
        (b"GET /hello/ HTTP/1.1\r\n\r\n", "404 Not Found", "not found\n"),
        (b"POST /hello HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", "405 Method Not Allowed", "only GET is answered\n"),
        (b"GET hello HTTP/1.1\r\n\r\n", "400 Bad Request", "not a question in HTTP/1.1\n"),
        (b"GET /h\xc3 HTTP/1.1\r\n\r\n", "400 Bad Request", "not a question in HTTP/1.1\n"),
        (b"\x16\x03\x01\r\n\r\n", "400 Bad Request", "not a question in HTTP/1.1\n"),
        (b"GET /hello HTTP/1.1\r\nX: " + b"y" * 50_000 + b"\r\n\r\n", "400 Bad Request", "not a question in HTTP/1.1\n"),
    ],
    ids=lambda value: repr(value[:40]),
)
def test_what_is_answered(run, question, status, body):
    async def scenario(server):
        assert await ask(server, question) == (status, body)

    run(serving(scenario))


def test_an_answer_that_fails_is_an_error_of_that_question_alone(run):
    async def scenario(server):
        assert (await ask(server, b"GET /fails HTTP/1.1\r\n\r\n"))[0] == "500 Internal Server Error"
        assert (await ask(server, b"GET /hello HTTP/1.1\r\n\r\n"))[0] == "200 OK"

    with capture_logs() as lines:
        run(serving(scenario))
    assert [(line["event"], line["path"]) for line in lines] == [("a question could not be answered", "/fails")]


def test_a_long_answer_arrives_whole(run):
    async def scenario(server):
        assert len((await ask(server, b"GET /long HTTP/1.1\r\n\r\n"))[1]) == 5_000_000

    run(serving(scenario))


@pytest.mark.parametrize("said", [b"", b"GET /hello HTTP/1.1\r\n", b"GET /long HTTP/1.1\r\n\r\n"])
def test_who_does_not_go_on_is_left(run, monkeypatch, said):
    monkeypatch.setattr(answering, "PATIENCE", 0.1)

    async def scenario(server):
        async with Asker(server) as asker:
            asker.writer.write(said)
            await until(lambda: server._tasks)
            asker.writer.transport.pause_reading()
            await until(lambda: not server._tasks)

    run(serving(scenario))


def test_many_who_only_hold_connections_keep_nobody_from_an_answer(run, monkeypatch):
    monkeypatch.setattr(answering, "MOST_AT_ONCE", 3)

    async def scenario(server):
        askers = [await Asker(server).__aenter__() for _ in range(5)]
        assert await ask(server, b"GET /hello HTTP/1.1\r\n\r\n") == ("200 OK", "/hello {}")
        assert await askers[0].reader.read() == b""
        for asker in askers:
            await asker.__aexit__()

    run(serving(scenario))


def test_its_end_waits_for_an_answer_on_its_way_and_not_for_a_question(run, monkeypatch):
    monkeypatch.setattr(answering, "GRACE", 0.2)

    async def scenario(server):
        async with Asker(server) as silent:
            await until(lambda: server._tasks)
            await server.close()
            assert await silent.reader.read() == b""
            with pytest.raises(OSError, match="Connect call failed"):
                await asyncio.open_connection(*server.address)

    run(serving(scenario))
