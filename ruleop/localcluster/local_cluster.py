"""A cluster in memory: starts and stops the server, gives clients what they need to reach it, and keeps the objects in
a file."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import importlib.resources
import os
import secrets
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import orjson

from ruleop.errors import RuleopError
from ruleop.files import read_regular, why_unreadable
from ruleop.kubernetes.builtin.table import builtin_release
from ruleop.kubernetes.kinds import SERVER_METADATA, Kind
from ruleop.kubernetes.times import now
from ruleop.localcluster.api.api import Api
from ruleop.localcluster.api.audit import LOCAL_ADMIN, Audit, Users
from ruleop.localcluster.api.faulty import Faults, FaultyApi
from ruleop.localcluster.api.object_writer import ObjectWriter
from ruleop.localcluster.api.requests import WriteOptions
from ruleop.localcluster.api.responses import refusal
from ruleop.localcluster.controllers import CONTROLLERS, Machinery
from ruleop.localcluster.http import ClusterServer
from ruleop.localcluster.kinds import Registry, follow
from ruleop.localcluster.object_store import NAMESPACES, Name, Resource, Store
from ruleop.localcluster.status_errors import Rejected

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.http import AnyResponse, Request
    from ruleop.localcluster.object_store import Stored, StoreEvent


T = TypeVar("T")

SAVED_AFTER: Final = 0.5  # seconds after the first change
_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})


class LocalCluster:
    """An API server in memory, in a thread of its own. Use it as a context manager.

    Its address contains a random token, so that no web page and no other user of the machine can guess it: clients send
    no bearer token over plain HTTP.
    """

    def __init__(self, port: int = 0, state: Path | None = None) -> None:
        """`state`: a file that keeps the objects over restarts."""
        self.store = Store()
        self.registry = Registry()
        self.writer = ObjectWriter(self.store)
        self.faults = Faults()
        self.users = Users()
        self.audit = Audit()
        self.api = FaultyApi(Api(self.store, self.registry, self.writer, self.users), self.faults)
        # In the path of the address, too: clients in Go send no bearer token without TLS, and no web page can guess it.
        self.token = secrets.token_urlsafe(24)
        self.port = port
        self._http = ClusterServer(self._handle)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.state = state
        self._save_timer: asyncio.TimerHandle | None = None
        is_new = state is None or not state.exists()
        if state is not None and not is_new:
            self.token = read_state(state, self.store)
        self.users.add(LOCAL_ADMIN, self.token)
        follow(self.store, self.registry)
        self.machinery = Machinery(self.store, self.registry, self.writer, CONTROLLERS)
        if is_new:
            self._fill()
        else:
            self.machinery.queue_all()
        if state is not None:
            write_state(state, self.store, self.token)  # a place that cannot be written is found now, not at the end
            self.store.listen_to_all(self._save_soon)

    def _fill(self) -> None:
        """Creates the objects that every cluster has."""
        text = importlib.resources.files(__package__).joinpath("bootstrap.json").read_text()
        for each in orjson.loads(text.replace("{release}", builtin_release()).replace("{now}", now())):
            served = self.registry.of_kind(Kind.of(each))
            assert served is not None
            made = self.writer.create(served, each["metadata"].get("namespace", ""), each)
            if status := each.get("status"):
                self.machinery.update_status(served.resource, made, status)
        self.machinery.settle()

    # -- start and stop -----------------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Starts the server on the running loop."""
        self.port = await self._http.start(self.port)
        self.machinery.start(asyncio.get_running_loop())

    async def close(self) -> None:
        self.machinery.stop()
        await self._http.stop()
        self._save()

    def _save_soon(self, _resource: Resource, _event: StoreEvent) -> None:
        if self._save_timer is None:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:  # before it serves
                return
            self._save_timer = loop.call_later(SAVED_AFTER, self._save)

    def _save(self) -> None:
        if self._save_timer is not None:
            self._save_timer.cancel()
            self._save_timer = None
        if self.state is not None:
            write_state(self.state, self.store, self.token)

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

    # -- access -------------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return self._url(self.token)

    def _url(self, token: str) -> str:
        return f"http://127.0.0.1:{self.port}/{token}"

    def kubeconfig(self, user: str = LOCAL_ADMIN) -> dict[str, Any]:
        """That of a user. Another name than the usual one only makes the user's requests known in `audit`."""
        token = self.users.token_for(user)
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "local", "cluster": {"server": self._url(token)}}],
            "users": [{"name": "local", "user": {"token": token}}],
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local", "namespace": "default"}}],
            "current-context": "local",
        }

    def write_kubeconfig(self, path: Path) -> None:
        path.touch(mode=0o600)
        path.chmod(0o600)
        path.write_bytes(orjson.dumps(self.kubeconfig(), option=orjson.OPT_INDENT_2) + b"\n")

    def compact(self) -> None:
        """Removes the events so far, as etcd does periodically: watches that resume from them get an error 410."""
        self.call(self.store.compact)

    def call(self, function: Callable[[], T]) -> T:
        """Calls a function on the server's loop, where the objects may be read and written, and returns its result."""
        if self._loop is None or self._thread is threading.current_thread():
            return function()
        found: concurrent.futures.Future[T] = concurrent.futures.Future()

        def run() -> None:
            try:
                found.set_result(function())
            except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
                found.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return found.result()

    # -- objects ------------------------------------------------------------------------------------------------------

    def apply(self, obj: Object) -> Stored:
        """Creates an object, or changes the existing one to it, as `kubectl apply --server-side` does. Creates its
        namespace if it does not exist. Call it before the server runs, or on its loop."""
        kind = Kind.of(obj)
        served = self.registry.of_kind(kind)
        if served is None:
            raise RuleopError(f"the cluster does not serve {kind}: is its CRD missing?")
        self.writer.warnings = []
        metadata = {name: each for name, each in (obj.get("metadata") or {}).items() if name not in SERVER_METADATA}
        namespace = (metadata.get("namespace") or "default") if served.namespaced else ""
        if namespace and self.machinery.get(NAMESPACES, "", namespace) is None:
            self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        name, config = Name(namespace, str(metadata.get("name", ""))), {**obj, "metadata": metadata}
        try:
            return self.writer.apply(served, name, config, "", WriteOptions(manager="ruleop-dev", force=True))[0]
        except Rejected as error:
            raise RuleopError(error.message) from None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings to the author of the object that was applied last."""
        return tuple(self.writer.warnings)

    # -- requests -----------------------------------------------------------------------------------------------------

    def _handle(self, request: Request) -> AnyResponse:
        host = request.headers.get("host", "").rpartition(":")[0]
        if host not in _HOSTS:
            return refusal(Rejected(403, "Forbidden", "the Host header does not name this machine"))
        first, _, rest = request.path.lstrip("/").partition("/")
        path = "/" + rest
        user = self.users.name_of(first)
        if user is None:
            path = request.path
            user = self.users.name_of(request.headers.get("authorization", "").removeprefix("Bearer "))
        if user is None:
            return refusal(Rejected(401, "Unauthorized", "Unauthorized"))
        # Nothing is authorised here: a user that is impersonated is only known in `audit`.
        asked = replace(request, path=path, user=request.headers.get("impersonate-user") or user)
        response = self.api.handle(asked)
        if self.audit.enabled:
            self.audit.record(asked, response)
        return response


# -- the state file --------------------------------------------------------------------------------------------------
#
# One JSON document, replaced as a whole: a crash leaves the old one or the new one. A file that cannot be read is left
# alone, and the cluster does not start.


FORMAT: Final = "ruleop local cluster 1"
MAX_STATE: Final = 512 * 1024 * 1024  # bytes: some hundred thousand objects


def write_state(path: Path, store: Store, token: str) -> None:
    resources = [
        {
            "group": each.group,
            "plural": each.plural,
            "objects": [orjson.Fragment(found.data) for found in store.all(each)],
        }
        for each in store.resources()
    ]
    document = {"format": FORMAT, "token": token, "version": store.version, "resources": resources}
    other = path.with_name(f".{path.name}.new")
    try:
        with os.fdopen(os.open(other, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(orjson.dumps(document))
            file.flush()
            os.fsync(file.fileno())
        other.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            other.unlink()
        raise RuleopError(f"{path} cannot be written: {error.strerror}") from None


def read_state(path: Path, store: Store) -> str:
    """Fills an empty store, and returns the token of the address. Raises RuleopError, and then the store is empty."""
    try:
        document = orjson.loads(read_regular(path, MAX_STATE))
        resources = _checked(document)
        version, token = int(document["version"]), str(document["token"])
    except OSError as error:
        raise RuleopError(f"{path}: {why_unreadable(error)}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RuleopError(
            f"{path} is damaged, or no state file of `ruleop cluster` ({error}); it is left as it is: "
            "name another file, or remove it"
        ) from None
    store.version = version
    for resource, objects in resources:
        for each in objects:
            store.load(resource, each)
    return token


def _checked(document: Any) -> list[tuple[Resource, list[dict[str, Any]]]]:
    if document["format"] != FORMAT:
        raise ValueError(f"its format is {document['format']!r}")
    found = []
    for each in document["resources"]:
        for obj in each["objects"]:
            metadata = obj["metadata"]
            int(metadata["resourceVersion"])
            if not (metadata["name"] and metadata["uid"] and obj["kind"] and obj["apiVersion"]):
                raise ValueError("an object has no name, uid or kind")
        found.append((Resource(each["group"], each["plural"]), each["objects"]))
    return found
