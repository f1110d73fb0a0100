"""A proxy between the operator and the API server, with the faults of networks, load balancers and API servers.

It counts the writes, so that a fault can happen at the seventh write. A test's `before` gets a request before the
server does, and may answer it, delay it, or cut the connection; `after` gets it when the server has carried it out, and
may cut the connection: then the operator does not know that the write was made. Events of watches can be delayed
(`hold`), added (`inject`) or begin with an older state (`replay`).

All proxies of a test run are in one thread, and tests call them from other threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from io import BytesIO
from pathlib import Path
from typing import Any, Self, TypeVar

import aiohttp
from aiohttp import web
from yarl import URL

T = TypeVar("T")

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
# Headers of one connection, which are not forwarded to the other one.
HOP = frozenset({"host", "connection", "content-length", "transfer-encoding", "keep-alive"})
BUFFER = 8 << 20
TIMEOUT = 60.0


class CutError(Exception):
    """Raised by a hook: the connection ends here, without an answer."""


@dataclass(frozen=True)
class Answer:
    """An answer of the proxy instead of the server's."""

    status: int
    reason: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def body(self) -> bytes:
        said = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": self.reason, "code": self.status}
        return json.dumps({**said, "message": f"the proxy says {self.status}"}).encode()


@dataclass
class Call:
    """A request and, when the server has answered, its answer's status."""

    method: str
    path: str
    query: str
    body: bytes
    number: int = 0  # among the writes, from 1; events do not count
    status: int = 0
    under_way: bool = False  # the server has it, and nobody knows yet what it says
    hit: bool = False  # a test has done something to it

    @property
    def is_watch(self) -> bool:
        return "watch=1" in self.query

    @property
    def parts(self) -> list[str]:
        """Resource, name and subresource; empty where the path has none."""
        parts = self.path.strip("/").split("/")
        parts = parts[2:] if parts[0] == "api" else parts[3:]
        return parts[2:] if parts[:1] == ["namespaces"] and len(parts) > 2 else parts

    @property
    def resource(self) -> str:
        parts = self.parts
        return "/".join([parts[0], *parts[2:]]) if parts else self.path

    @property
    def name(self) -> str:
        if self.method == "POST":
            return str(json.loads(self.body)["metadata"].get("name", ""))
        parts = self.parts
        return parts[1] if len(parts) > 1 else ""

    @property
    def is_write(self) -> bool:
        """Whether the request is a write of the operator's work. Events only report it."""
        return self.method in VERBS and self.resource != "events"

    @property
    def done(self) -> bool:
        return 200 <= self.status < 300

    def __str__(self) -> str:
        return f"{VERBS.get(self.method, 'get')} {self.resource} {self.name}".rstrip()


class Threads:
    """The thread of the proxies."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="proxies", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


async def _nothing(_call: Call) -> Answer | None:
    return None


class Proxy:
    """Listens at `address` while its context is open. It serves plain HTTP, because these tests do not concern TLS."""

    def __init__(self, threads: Threads, server: str, authority: Path | None) -> None:
        self.threads = threads
        self.server = server
        self.before: Callable[[Call], Awaitable[Answer | None]] = _nothing
        self.after: Callable[[Call], Awaitable[Answer | None]] = _nothing
        self.calls: list[Call] = []
        self.watches: dict[asyncio.Queue[bytes | None], Call] = {}
        self.port = 0
        self.ahead = 0.0  # seconds by which the clock of the API server seems to be ahead
        self._authority = authority
        self._numbers = 0
        self._held: dict[str, asyncio.Event] = {}
        self._going = asyncio.Event()
        self._going.set()
        self._past: dict[str, list[bytes]] = {}
        self._replaying: set[str] = set()
        self._runner: web.AppRunner | None = None

    def __enter__(self) -> Self:
        self.threads.run(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self.threads.run(self._close())

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    # -- what tests ask ------------------------------------------------------------------------------------------------

    def mark(self) -> int:
        return len(self.calls)

    def writes(self, mark: int = 0) -> list[Call]:
        """The writes that the server has carried out since then. The change of a write is visible before its answer, so
        this waits for the answer."""
        asked = [call for call in self.calls[mark:] if call.is_write]
        deadline = time.monotonic() + TIMEOUT
        while any(call.under_way for call in asked):
            assert time.monotonic() < deadline, f"no answer to {[str(call) for call in asked if call.under_way]}"
            time.sleep(0.002)
        return [call for call in asked if call.done]

    def written(self, mark: int = 0) -> list[str]:
        return [str(call) for call in self.writes(mark)]

    def creates_and_deletes(self) -> Counter[str]:
        """The objects that were created and deleted, and how often."""
        return Counter(str(call) for call in self.writes() if call.method in {"POST", "DELETE"})

    # -- what tests do to it -------------------------------------------------------------------------------------------

    def stop_listening(self) -> None:
        """Refuses new connections and cuts all others."""
        self.threads.run(self._stop_listening())

    def listen_again(self) -> None:
        self.threads.run(self._listen())

    def cut(self) -> None:
        """Ends all connections; new ones are accepted."""
        self.threads.run(self._abort())

    def freeze(self) -> None:
        """Accepts requests and answers none, with all connections open."""
        self.threads.loop.call_soon_threadsafe(self._going.clear)

    def thaw(self) -> None:
        self.threads.loop.call_soon_threadsafe(self._going.set)

    @contextlib.contextmanager
    def holding(self, resource: str, *, all_objects: bool = False) -> Iterator[None]:
        """Delays the events of the watches of a resource until the context ends; their order stays. `all_objects`: only
        the watches without a label selector."""
        resource = f"all {resource}" if all_objects else resource
        self.threads.run(self._hold(resource))
        try:
            yield
        finally:
            self.threads.run(self._release(resource))

    @contextlib.contextmanager
    def replaying(self, resource: str) -> Iterator[None]:
        """Watches of a resource that begin in the context get its objects as they were at its start, and no later
        event."""
        self._replaying.add(resource)
        try:
            yield
        finally:
            self._replaying.discard(resource)

    def inject(self, resource: str, event: dict[str, Any]) -> None:
        """Sends an event in all watches of a resource."""
        self.threads.run(self._inject(resource, json.dumps(event).encode() + b"\n"))

    # -- the work ------------------------------------------------------------------------------------------------------

    async def _open(self) -> None:
        secure = self._authority is None or ssl.create_default_context(cafile=str(self._authority))
        connector = aiohttp.TCPConnector(ssl=secure, limit=0)
        self._client = aiohttp.ClientSession(
            connector=connector, auto_decompress=False, read_bufsize=BUFFER, cookie_jar=aiohttp.DummyCookieJar()
        )
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await self._listen()

    async def _listen(self) -> None:
        assert self._runner is not None
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self._site = site

    async def _stop_listening(self) -> None:
        await self._site.stop()
        await self._abort()

    async def _abort(self) -> None:
        assert self._runner is not None
        assert self._runner.server is not None
        for connection in self._runner.server.connections:  # idle ones, too
            if connection.transport is not None:
                connection.transport.abort()

    async def _close(self) -> None:
        self._going.set()
        for event in self._held.values():
            event.set()
        await self._abort()
        assert self._runner is not None
        await self._runner.cleanup()
        await self._client.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        try:
            return await self._pass(request)
        except CutError:
            request.transport.abort()
            return web.Response(status=500)  # nobody reads it
        except aiohttp.ClientConnectionResetError:  # the operator has left
            return web.Response(status=500)

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        call = Call(request.method, request.path, request.query_string, await request.read())
        self.calls.append(call)
        if call.is_write:
            self._numbers += 1
            call.number = self._numbers
        await self._going.wait()
        if (answer := await self.before(call)) is not None:
            return web.Response(
                status=answer.status, body=answer.body, headers=answer.headers, content_type="application/json"
            )
        if call.is_watch and call.parts[0] in self._replaying:
            return await self._send_past_events(request, call)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP}
        if call.is_watch:
            async with self._request(request, call, headers) as upstream:
                call.status = upstream.status
                if upstream.status == 200:
                    return await self._stream(request, call, upstream)
                return web.Response(status=upstream.status, body=await upstream.read(), headers=self._kept(upstream))
        # A request that has begun is finished even without the operator, so that the writes of the server are known.
        response = await asyncio.shield(asyncio.create_task(self._forward(request, call, headers)))
        await self._going.wait()
        return response

    def _request(self, request: web.Request, call: Call, headers: dict[str, str]) -> Any:
        target = URL(self.server + request.raw_path, encoded=True)
        timeout = aiohttp.ClientTimeout(total=None)
        return self._client.request(
            call.method, target, data=BytesIO(call.body) if call.body else None, headers=headers, timeout=timeout
        )

    async def _forward(self, request: web.Request, call: Call, headers: dict[str, str]) -> web.Response:
        call.under_way = True
        try:
            async with self._request(request, call, headers) as upstream:
                body = await upstream.read()
                call.status = upstream.status
        finally:
            call.under_way = False
        if (answer := await self.after(call)) is not None:
            return web.Response(
                status=answer.status, body=answer.body, headers=answer.headers, content_type="application/json"
            )
        return web.Response(status=call.status, body=body, headers=self._kept(upstream))

    def _kept(self, upstream: aiohttp.ClientResponse) -> dict[str, str]:
        kept = {name: value for name, value in upstream.headers.items() if name.lower() not in HOP}
        return {**kept, "Date": self._date()}

    def _date(self) -> str:
        return formatdate(time.time() + self.ahead, usegmt=True)

    async def _stream(self, request: web.Request, call: Call, upstream: aiohttp.ClientResponse) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": upstream.headers.get("Content-Type", "application/json"), "Date": self._date()}
        )
        await response.prepare(request)
        lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.watches[lines] = call
        reader = asyncio.create_task(_read(upstream, lines))
        recorded: list[bytes] | None = [] if "sendInitialEvents" in call.query and call.path not in self._past else None
        try:
            while (line := await lines.get()) is not None:
                if recorded is not None:
                    recorded.append(line)
                    if b"k8s.io/initial-events-end" in line:
                        self._past[call.path] = recorded
                        recorded = None
                await self._going.wait()
                every = "" if "labelSelector" in call.query else f"all {call.parts[0]}"
                if (held := self._held.get(call.parts[0]) or self._held.get(every)) is not None:
                    await held.wait()
                await response.write(line)
        finally:
            reader.cancel()
            del self.watches[lines]
        return response

    async def _send_past_events(self, request: web.Request, call: Call) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for line in self._past[call.path]:
            await response.write(line)
        await asyncio.Event().wait()  # until the operator ends it
        return response

    async def _hold(self, resource: str) -> None:
        self._held[resource] = asyncio.Event()

    async def _release(self, resource: str) -> None:
        self._held.pop(resource).set()

    async def _inject(self, resource: str, line: bytes) -> None:
        for lines, call in self.watches.items():
            if call.parts[0] == resource:
                lines.put_nowait(line)


async def _read(upstream: aiohttp.ClientResponse, lines: asyncio.Queue[bytes | None]) -> None:
    """Line by line, and None at the end."""
    with contextlib.suppress(aiohttp.ClientError, OSError):
        async for line in upstream.content:
            lines.put_nowait(line)
    lines.put_nowait(None)
