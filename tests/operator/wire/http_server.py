"""A scripted HTTP server: each connection is handed to the test's own coroutine, so that a test decides every byte and
its time."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson

from tests.waiting import PATIENCE


@dataclass
class Exchange:
    """One request, and the means to answer it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    client_name: str
    writer: asyncio.StreamWriter = field(repr=False)

    async def answer(self, body: Any = b"{}", status: int = 200, **headers: str) -> None:
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        lines = [
            f"HTTP/1.1 {status} x",
            f"Content-Length: {len(data)}",
            *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items()),
        ]
        await self.raw("\r\n".join(lines).encode() + b"\r\n\r\n" + data)

    async def open(self) -> None:
        """The head of a stream."""
        await self.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")

    async def chunk(self, data: bytes) -> None:
        await self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    async def end(self) -> None:
        await self.raw(b"0\r\n\r\n")

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        self.writer.transport.abort()


@dataclass
class Recorder:
    address: str
    seen: list[Exchange] = field(default_factory=list)


Handler = Callable[[Exchange], Awaitable[None]]


@contextlib.asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[Recorder]:
    recorder = Recorder("")
    tasks: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())  # type: ignore[arg-type]
        writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                exchange = await _read(reader, writer)
                recorder.seen.append(exchange)
                await handler(exchange)
        writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    recorder.address = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    try:
        yield recorder
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await abort(writers)


@contextlib.contextmanager
def serving_elsewhere(handler: Handler) -> Iterator[str]:
    """In a thread of its own, so that it answers while the event loop of the client is blocked. Yields its address."""
    address: list[str] = []
    ready, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        async with serving(handler) as recorder:
            address.append(recorder.address)
            ready.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(PATIENCE), "the server did not begin"
        yield address[0]
    finally:
        stop.set()
        thread.join()


RawHandler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def listening(
    handler: RawHandler, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """A server of something else: what it says and reads is all the handler's. Gives its port."""
    tasks: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())  # type: ignore[arg-type]
        writers.append(writer)
        with contextlib.suppress(asyncio.CancelledError, OSError):
            await handler(reader, writer)

    server = await asyncio.start_server(connection, host, 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await abort(writers)


async def abort(writers: list[asyncio.StreamWriter]) -> None:
    """Leaves no socket open, and waits for nobody's goodbye."""
    for writer in writers:
        with contextlib.suppress(AttributeError):  # Python 3.11.2 cannot abort a transport of TLS that was closed twice
            writer.transport.abort()
    for _ in range(5):
        await asyncio.sleep(0)


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Exchange:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    certificate = writer.get_extra_info("peercert") or {}
    name = "".join(value for part in certificate.get("subject", ()) for key, value in part if key == "commonName")
    url = urlsplit(target)
    return Exchange(method, url.path or target, dict(parse_qsl(url.query)), headers, body, name, writer)
