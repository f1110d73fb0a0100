"""A server for a few paths that are asked by GET: enough for probes, for Prometheus and for curl, and nothing that more would need.

Whoever reaches its port may ask, so each connection has a limit of bytes and of seconds, and where there are too many, the oldest goes:
a probe, which is quick, is answered also while others only hold connections. One question per connection: a probe asks one, and a scraper
that has to connect twice a minute does not notice.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import structlog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    Answering = Callable[["HttpRequest"], Awaitable["HttpResponse"]]

log = structlog.get_logger(__name__)

LONGEST_QUESTION = 1 << 14
PATIENCE = 10.0  # seconds for a question to arrive, and for its answer to leave
LINGER = 2.0  # seconds for the other side to close first: a connection that is cut with something unread takes the answer with it
MOST_AT_ONCE = 100
GRACE = 1.0  # seconds for the answers that are on their way when it ends

_FIRST_LINE = re.compile(rb"([A-Z]{1,20}) (/[!-~]*) HTTP/1\.[01]\r\n")


@dataclass(frozen=True, slots=True)
class HttpRequest:
    path: str
    query: Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class HttpResponse:
    text: str | bytes
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"


class Server:
    """Belongs to the loop in which it was opened."""

    def __init__(self, server: asyncio.Server, tasks: dict[asyncio.Task[None], None]) -> None:
        self._server = server
        self._tasks = tasks
        self.address: tuple[str, int] = server.sockets[0].getsockname()[:2]

    @classmethod
    async def open(cls, host: str | None, port: int, answers: Mapping[str, Answering]) -> Server:
        """Answers what is asked by `answers`, by path. Raises OSError."""
        tasks: dict[asyncio.Task[None], None] = {}  # the oldest first

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None, "streams make one"
            if len(tasks) >= MOST_AT_ONCE:
                next(iter(tasks)).cancel()
            tasks[task] = None
            try:
                with contextlib.suppress(OSError, asyncio.CancelledError):  # TimeoutError is one; streams complain of a cancelled task
                    await _serve(reader, writer, answers)
            finally:
                tasks.pop(task)
                writer.transport.abort()

        return cls(await asyncio.start_server(connected, host, port, limit=LONGEST_QUESTION), tasks)

    async def close(self) -> None:
        self._server.close()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=GRACE)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # the turn in which aborted connections close their sockets


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answers: Mapping[str, Answering]) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return
    except asyncio.LimitOverrunError:
        head = b""
    first = _FIRST_LINE.match(head)
    method = first[1] if first else b""
    answer = await _answer(method, first[2].decode() if first else "", answers)
    body = answer.text.encode() if isinstance(answer.text, str) else answer.text
    allowed = "Allow: GET, HEAD\r\n" if answer.status == HTTPStatus.METHOD_NOT_ALLOWED else ""
    writer.write(
        (
            f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\nContent-Type: {answer.content_type}\r\n"
            f"Content-Length: {len(body)}\r\n{allowed}Connection: close\r\n\r\n"
        ).encode()
    )
    if method != b"HEAD":
        writer.write(body)
    async with asyncio.timeout(PATIENCE):
        writer.write_eof()
        await writer.drain()
    async with asyncio.timeout(LINGER):
        while await reader.read(LONGEST_QUESTION):
            pass


async def _answer(method: bytes, target: str, answers: Mapping[str, Answering]) -> HttpResponse:
    path, _, query = target.partition("?")
    if not method:
        return HttpResponse("not a question in HTTP/1.1\n", HTTPStatus.BAD_REQUEST)
    if path not in answers:
        return HttpResponse("not found\n", HTTPStatus.NOT_FOUND)
    if method not in {b"GET", b"HEAD"}:
        return HttpResponse("only GET is answered\n", HTTPStatus.METHOD_NOT_ALLOWED)
    try:
        return await answers[path](HttpRequest(path, parse_qs(query, keep_blank_values=True)))
    except Exception:
        log.exception("a question could not be answered", path=path)
        return HttpResponse("an error, which is in the log\n", HTTPStatus.INTERNAL_SERVER_ERROR)
