"""The requests to a test's cluster: they are counted, and a test may hold or refuse one.

`answer` does no I/O: `Wire` calls it in memory, for tests that decide when an event arrives, and `handle` over HTTP,
for tests of the whole operator.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote

import orjson

from ruleop.kubernetes.builtin.table import ResourceInfo
from ruleop.kubernetes.kinds import Kind, ObjectKey
from ruleop.localcluster.api.requests import parse_route, verb_of
from ruleop.localcluster.http import Request as HttpRequest
from ruleop.localcluster.http import Response, ResponseStream
from ruleop.operator.wire.client.requests import ObjectSource
from ruleop.operator.wire.http.connection import PreparedRequest
from tests.in_process import body_of, received
from tests.operator.wire.http_server import Exchange
from tests.projects.cluster import Cluster, Happened

HOME = "ruleop-system"  # of the operator itself
WRITES = frozenset({"create", "update", "patch", "delete"})
CRD = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
OWN = ("-inventory", "-revisions", "-owner-key")  # of the operator itself
BESIDE = frozenset({"events", "leases", "customresourcedefinitions"})


class Asked(NamedTuple):
    """A request, as the audit log has it."""

    verb: str
    resource: str
    key: ObjectKey
    body: Any = None

    def __str__(self) -> str:
        return f"{self.verb} {self.resource} {self.key.name}".rstrip()

    @property
    def writes(self) -> bool:
        """Whether it changes a CR or a child. Events, Leases and the operator's own objects do not count."""
        return self.verb in WRITES and self.resource not in BESIDE and not self.key.name.endswith(OWN)


@dataclass(frozen=True)
class Selection:
    """The objects of one list or watch."""

    info: ResourceInfo
    namespace: str = ""
    labels: str = ""
    fields: str = ""

    @classmethod
    def of(cls, source: ObjectSource) -> Selection:
        return cls(source.resource, source.namespace, source.labels, source.fields)

    def has(self, key: ObjectKey, obj: dict[str, Any] | None) -> bool:
        if obj is None or key.group_kind != self.info.kind.versionless or self.namespace not in {"", key.namespace}:
            return False
        labels = obj["metadata"].get("labels") or {}
        wanted = [term.split("=") for term in self.labels.split(",") if term]
        assert not any(set(term[0]) & set("! ()") for term in wanted), "this server knows a and a=b"
        named = self.fields.removeprefix("metadata.name=")
        return named in {"", key.name} and all(
            labels.get(name) in (value or [labels.get(name, False)]) for name, *value in wanted
        )

    def event(self, happened: Happened) -> tuple[str, dict[str, Any]] | None:
        """The type and the object; None if it is not selected. An object that is no longer selected is reported as
        deleted."""
        before, after = self.has(happened.key, happened.old), self.has(happened.key, happened.new)
        obj = happened.new if after else happened.old
        if obj is None or not (before or after):
            return None
        stamped = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(happened.version)}}
        return ("MODIFIED" if before and after else "ADDED" if after else "DELETED"), copy.deepcopy(stamped)


@dataclass
class ApiServer:
    cluster: Cluster
    asked: list[Asked] = field(default_factory=list)
    meddle: Callable[[Asked], Awaitable[tuple[int, Any] | None] | None] = lambda _: None
    """Called before a request is answered: it may wait, act as another client, or answer instead."""
    silent: bool = False  # watches that are open at the next event never send anything again

    def __post_init__(self) -> None:
        self.cluster.add_namespace(HOME)

    async def answer(self, request: HttpRequest) -> Response | ResponseStream:
        asked = self._asked(request)
        if asked is not None:
            self.asked.append(asked)
            meddled = self.meddle(asked)
            if meddled is not None and (instead := await meddled) is not None:
                return Response(instead[0], orjson.dumps(instead[1]))
        with self.cluster.without_unserved():
            found = self.cluster.server.api.handle(request)
        assert isinstance(found, Response | ResponseStream)
        if asked is not None and asked.verb in WRITES:
            self.cluster.collect()
        return found

    def _asked(self, request: HttpRequest) -> Asked | None:
        route = parse_route(request.path)
        served = self.cluster.server.registry.get(route.group, route.version, route.plural) if route else None
        if route is None or served is None:
            return None
        body = orjson.loads(request.body) if request.body else None
        verb = verb_of(request, route)
        name = body["metadata"]["name"] if verb == "create" else route.name
        key = ObjectKey(served.kind.group, served.kind.kind, route.namespace, name)
        return Asked(verb, f"{route.plural}/{route.subresource}".rstrip("/"), key, body)

    def writes(self) -> list[str]:
        """The writes so far."""
        return [str(each) for each in self.asked if each.writes]

    def forget(self) -> None:
        self.asked.clear()

    # -- over HTTP -----------------------------------------------------------------------------------------------------

    async def handle(self, exchange: Exchange) -> None:
        found = await self.answer(
            HttpRequest(exchange.method, unquote(exchange.path), exchange.query, exchange.headers, exchange.body)
        )
        if isinstance(found, Response):
            await exchange.answer(found.body, found.status)
            return
        await exchange.open()
        sink = QueueSink(self)
        stop = found.start(sink)
        try:
            with contextlib.suppress(ConnectionError):
                while data := await sink.parts.get():
                    await exchange.chunk(data)
                await exchange.end()
        finally:
            stop()


class QueueSink:
    """The data that a watch sends. Any thread may write to the cluster, so any thread may send."""

    is_behind = False

    def __init__(self, server: ApiServer) -> None:
        self.server, self.loop = server, asyncio.get_running_loop()
        self.parts: asyncio.Queue[bytes] = asyncio.Queue()
        self.silent = False

    def send(self, data: bytes) -> None:
        self.silent |= self.server.silent
        if not self.silent:
            self.loop.call_soon_threadsafe(self.parts.put_nowait, data)

    def end(self) -> None:
        self.send(b"")

    abort = end


def refusal(code: int, reason: str, message: str = "") -> dict[str, Any]:
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message or reason}


class Wire:
    """The operator's client without a network. It has no watches: see `FakeWatcher`."""

    server = "in memory"

    def __init__(self, server: ApiServer) -> None:
        self.api = server
        self.before_answers: Callable[[], None] = lambda: None
        """Called between a request and its answer."""

    async def send(self, request: PreparedRequest) -> Any:
        return orjson.loads((await self.fetch(request))[0])

    async def fetch(self, request: PreparedRequest) -> tuple[bytes, str]:
        await asyncio.sleep(0)
        found = await self.api.answer(received(request))
        assert isinstance(found, Response)
        self.before_answers()
        return body_of(found, request), ""
