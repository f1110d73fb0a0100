"""A cluster in memory: starts and stops the server, and gives clients what they need to reach it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import secrets
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self

import orjson

from ruleop.localcluster.api.api import Api, refusal
from ruleop.localcluster.api.writer import NAMESPACES, Writer
from ruleop.localcluster.errors import Rejected
from ruleop.localcluster.http.server import Server
from ruleop.localcluster.kinds.custom import follow
from ruleop.localcluster.kinds.registry import Registry
from ruleop.localcluster.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from ruleop.localcluster.http.message import Answer, Request

FIRST_NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})


class LocalCluster:
    """An API server in memory, in a thread of its own. Use it as a context manager.

    Its address contains a random token, so that no web page and no other user of the machine can guess it: clients send
    no bearer token over plain HTTP.
    """

    def __init__(self, port: int = 0) -> None:
        self.store = Store()
        self.registry = Registry()
        self.writer = Writer(self.store)
        self.api = Api(self.store, self.registry, self.writer)
        self.token = secrets.token_urlsafe(24)
        self.port = port
        self._http = Server(self._handle)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        follow(self.store, self.registry)
        namespaces = self.registry.of(NAMESPACES)
        assert namespaces is not None
        for name in FIRST_NAMESPACES:
            self.writer.create(namespaces, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    # -- start and stop ------------------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Starts the server on the running loop."""
        self.port = await self._http.start(self.port)

    async def close(self) -> None:
        await self._http.stop()

    def start(self) -> Self:
        """Starts the server in a thread."""
        started: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._run, args=(started,), name="local cluster", daemon=True)
        self._thread.start()
        started.result()
        return self

    def stop(self) -> None:
        if self._loop is not None and self._thread is not None:
            asyncio.run_coroutine_threadsafe(self.close(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop = self._thread = None

    def _run(self, started: concurrent.futures.Future[None]) -> None:
        self._loop = loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(self.serve())
        except BaseException as error:
            started.set_exception(error)
            raise
        started.set_result(None)
        try:
            loop.run_forever()
        finally:
            loop.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    # -- access --------------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self.token}"

    def kubeconfig(self) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "local", "cluster": {"server": self.url}}],
            "users": [{"name": "local", "user": {"token": self.token}}],
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local", "namespace": "default"}}],
            "current-context": "local",
        }

    def write_kubeconfig(self, path: Path) -> None:
        path.touch(mode=0o600)
        path.chmod(0o600)
        path.write_bytes(orjson.dumps(self.kubeconfig(), option=orjson.OPT_INDENT_2) + b"\n")

    # -- requests ------------------------------------------------------------------------------------------------------

    def _handle(self, request: Request) -> Answer:
        host = request.headers.get("host", "").rpartition(":")[0]
        if host not in _HOSTS:
            return refusal(Rejected(403, "Forbidden", "the Host header does not name this machine"))
        first, _, rest = request.path.lstrip("/").partition("/")
        if secrets.compare_digest(first.encode(), self.token.encode()):
            return self.api.handle(replace(request, path="/" + rest))
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if secrets.compare_digest(given.encode(), self.token.encode()):
            return self.api.handle(request)
        return refusal(Rejected(401, "Unauthorized", "Unauthorized"))
