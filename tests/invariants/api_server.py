"""The cluster of the lives, served as an API server serves it: create, read, update, patch, delete, list, watch and
discovery.

`answer` takes a request and gives the status and the body; `selected` says what a watch brings. Neither does I/O:
`Wire` asks them in memory, for tests that say themselves when which event arrives, and `handle` over HTTP, for tests of
the whole operator.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, unquote

import orjson
import yaml

from ruleop.kinds import Kind, ObjectKey
from ruleop.kube.client.errors import answer_error
from ruleop.kube.client.requests import APPLY_PATCH, JSON_PATCH
from ruleop.planning import Failure
from ruleop.schema.table import ResourceInfo, builtin_kinds, builtin_resource
from tests.kube.model_server import bookmark, line
from tests.patching import patched
from tests.projects.cluster import Cluster, Happened, Refused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ruleop.kube.client.requests import Source
    from ruleop.kube.http.request import Request
    from tests.kube.http_server import Exchange

HOME = "ruleop-system"  # of the operator itself
WRITES = frozenset({"create", "update", "patch", "delete"})
CRD = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
OWN = ("-inventory", "-owner-key")  # of the operator itself
BESIDE = frozenset({"events", "leases", "customresourcedefinitions"})
_REFUSALS = {
    Failure.EXISTS: (409, "AlreadyExists"),
    Failure.CONFLICT: (409, "Conflict"),
    Failure.INVALID: (422, "Invalid"),
    Failure.IMMUTABLE: (422, "Invalid"),
    Failure.FORBIDDEN: (403, "Forbidden"),
    Failure.OTHER: (404, "NotFound"),
}


class Asked(NamedTuple):
    """A request, as the audit log would tell of it."""

    verb: str
    resource: str
    key: ObjectKey
    body: Any = None

    def __str__(self) -> str:
        return f"{self.verb} {self.resource} {self.key.name}".rstrip()

    @property
    def writes(self) -> bool:
        """Whether it changes a CR or a child. What is said about the work does not."""
        return self.verb in WRITES and self.resource not in BESIDE and not self.key.name.endswith(OWN)


@dataclass(frozen=True)
class Selection:
    """What one list or watch is about."""

    info: ResourceInfo
    namespace: str = ""
    labels: str = ""
    fields: str = ""

    @classmethod
    def of(cls, source: Source) -> Selection:
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
        """The type and the object; None where it is of no concern. What no longer fits is deleted for whoever
        selects."""
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
    """What happens before a request is answered: something may be waited for, done, or answered instead."""
    silent: bool = False  # watches that are open when something happens are never told of anything again

    def __post_init__(self) -> None:
        self._news = asyncio.Event()
        self.cluster._namespaces.add(HOME)
        self.cluster.listeners.append(lambda _: self.tell())
        for crd in sorted((Path(self.cluster.project.root) / "crds").glob("*.yaml")):
            for document in yaml.safe_load_all(crd.read_text("utf-8")):
                document["metadata"] |= {"uid": document["metadata"]["name"], "generation": 1}
                document["status"] = {"conditions": [{"type": "Established", "status": "True"}]}
                self.cluster._store(ObjectKey.of(document), document)

    def tell(self) -> None:
        """Wakes the watches that are open."""
        self._news.set()
        self._news = asyncio.Event()

    # -- what is served ------------------------------------------------------------------------------------------------

    @property
    def infos(self) -> list[ResourceInfo]:
        kinds = [info for kind in builtin_kinds() if (info := builtin_resource(kind)) is not None]
        kinds += [
            info
            for crd in self.cluster.project.crds
            for each in crd.versions
            if (info := crd.resource(each.name)) is not None
        ]
        return [info for info in kinds if info.kind not in self.cluster.unserved]

    def info(self, group: str, version: str, plural: str) -> ResourceInfo:
        for info in self.infos:
            if (info.kind.group, info.kind.version, info.plural) == (group, version, plural):
                return info
        raise Refused(Failure.OTHER, "the server could not find the requested resource")

    def discovery(self, *, core: bool) -> dict[str, Any]:
        groups = []
        for group, of_group in itertools.groupby(
            sorted(self.infos, key=lambda info: info.kind), lambda info: info.kind.group
        ):
            if (group == "") is core:
                versions = [
                    {"version": version, "resources": [_described(info) for info in infos]}
                    for version, infos in itertools.groupby(of_group, lambda info: info.kind.version)
                ]
                groups.append({"metadata": {"name": group}, "versions": versions})
        return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": groups}

    # -- requests ------------------------------------------------------------------------------------------------------

    async def answer(
        self, method: str, path: str, query: str, body: bytes | None, content_type: str
    ) -> tuple[int, Any]:
        """The status and the JSON, or a Selection where it is to be watched."""
        if path in {"/api", "/apis"}:
            return 200, self.discovery(core=path == "/api")
        if path.startswith("/openapi"):
            return 200, {"paths": {}}
        try:
            wanted = _Wanted.of(self, method, path, dict(parse_qsl(query)), orjson.loads(body) if body else None)
            self.asked.append(wanted.asked)
            meddled = self.meddle(wanted.asked)
            instead = await meddled if meddled is not None else None
            return instead if instead is not None else wanted.done(self.cluster, content_type)
        except Refused as refused:
            code, reason = _REFUSALS[refused.failure]
            return code, refusal(code, reason, refused.message)

    def writes(self) -> list[str]:
        """What was asked to be changed so far."""
        return [str(each) for each in self.asked if each.writes]

    def forget(self) -> None:
        self.asked.clear()

    # -- over HTTP -----------------------------------------------------------------------------------------------------

    async def handle(self, exchange: Exchange) -> None:
        query = "&".join(f"{name}={value}" for name, value in exchange.query.items())
        status, body = await self.answer(
            exchange.method,
            unquote(exchange.path),
            query,
            exchange.body or None,
            exchange.headers.get("content-type", ""),
        )
        if isinstance(body, Selection):
            await self._stream(exchange, body)
        else:
            await exchange.answer(body, status)

    async def _stream(self, exchange: Exchange, selection: Selection) -> None:
        """Each event, followed by a bookmark: so a watch knows of all that there is, and a test can tell that it
        does."""
        await exchange.open()
        version = int(exchange.query.get("resourceVersion") or 0)
        if not version:
            version = self.cluster.version
            there = [obj for key, obj in self.cluster.objects.items() if selection.has(key, obj)]
            lines = [*(line("ADDED", obj) for obj in there), bookmark(version, ends=True)]
            await exchange.chunk(b"".join(each + b"\n" for each in lines))
        with contextlib.suppress(ConnectionError):
            while True:
                news = self._news
                if self.silent:
                    await asyncio.Event().wait()
                events = [
                    event
                    for each in self.cluster.history
                    if each.version > version and (event := selection.event(each))
                ]
                if self.cluster.version > version:
                    version = self.cluster.version
                    await exchange.chunk(
                        b"".join(each + b"\n" for each in (*(line(*event) for event in events), bookmark(version)))
                    )
                await news.wait()


@dataclass(frozen=True)
class _Wanted:
    """A request, understood."""

    asked: Asked
    info: ResourceInfo
    subresource: str
    query: dict[str, str]

    @classmethod
    def of(cls, server: ApiServer, method: str, path: str, query: dict[str, str], body: Any) -> _Wanted:
        _, root, *rest = path.split("/")
        group = rest.pop(0) if root == "apis" else ""
        version = rest.pop(0)
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            _, namespace, *rest = rest
        plural, name, subresource = (*rest, "", "")[:3]
        info = server.info(group, version, plural)
        read = "watch" if "watch" in query else "get" if name else "list"
        verb = {"GET": read, "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[method]
        if verb == "create":
            name = body["metadata"]["name"]
        key = ObjectKey(info.kind.group, info.kind.kind, namespace, name)
        return cls(Asked(verb, f"{plural}/{subresource}".rstrip("/"), key, body), info, subresource, query)

    def done(self, cluster: Cluster, content_type: str) -> tuple[int, Any]:
        verb, _, key, body = self.asked
        if verb in {"list", "watch"}:
            selection = Selection(
                self.info, key.namespace, self.query.get("labelSelector", ""), self.query.get("fieldSelector", "")
            )
            if verb == "watch":
                return 200, selection
            items = [obj for each, obj in cluster.objects.items() if selection.has(each, obj)]
            return 200, {"kind": "List", "metadata": {"resourceVersion": str(cluster.version)}, "items": items}
        if verb == "create":
            return 201, cluster._create(body)
        live = cluster.objects.get(key)
        if live is None:
            raise Refused(Failure.OTHER, f"{key} not found")
        if verb == "get":
            return 200, live
        if verb == "delete":
            return 200, self._deleted(cluster, key, body)
        assert content_type not in {JSON_PATCH, APPLY_PATCH}, "this server knows merge patches"
        new = patched(live, body) if verb == "patch" else body
        guards = {name: (body.get("metadata") or {}).get(name, "") for name in ("uid", "resourceVersion")}
        if self.subresource == "status" or (not self.info.status_subresource and "status" in body):
            return 200, self._told(cluster, key, new.get("status"), guards)
        return 200, cluster._update(key, new, uid=guards["uid"], version=guards["resourceVersion"])

    def _told(self, cluster: Cluster, key: ObjectKey, status: Any, guards: dict[str, str]) -> Any:
        live = cluster.objects[key]
        if any(wanted not in {"", live["metadata"][name]} for name, wanted in guards.items()):
            raise Refused(Failure.CONFLICT, f"{key} has been modified")
        return cluster._store(key, cluster._admitted(self.info.kind, {**live, "status": status}, None))

    def _deleted(self, cluster: Cluster, key: ObjectKey, options: Any) -> Any:
        metadata, conditions = cluster.objects[key]["metadata"], (options or {}).get("preconditions") or {}
        if any(conditions[name] != metadata[name] for name in conditions):
            raise Refused(Failure.CONFLICT, f"the precondition of {key} does not hold")
        cluster._delete(key)
        cluster.collect()
        return cluster.objects.get(key) or {"kind": "Status", "status": "Success"}


def _described(info: ResourceInfo) -> dict[str, Any]:
    subresources = [{"subresource": "status"}] if info.status_subresource else []
    kind = {"group": info.kind.group, "version": info.kind.version, "kind": info.kind.kind}
    scope, verbs = "Namespaced" if info.namespaced else "Cluster", ["get", "list", "watch", *sorted(WRITES)]
    return {"resource": info.plural, "responseKind": kind, "scope": scope, "verbs": verbs, "subresources": subresources}


def refusal(code: int, reason: str, message: str = "") -> dict[str, Any]:
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message or reason}


class Wire:
    """The operator's client, where nothing is between it and the server. Watches are not its business: see
    `FakeWatcher`."""

    server = "in memory"

    def __init__(self, server: ApiServer) -> None:
        self.api = server
        self.before_answers: Callable[[], None] = lambda: None
        """What happens between a request and its answer."""

    async def send(self, request: Request) -> Any:
        return orjson.loads((await self.fetch(request))[0])

    async def fetch(self, request: Request) -> tuple[bytes, str]:
        await asyncio.sleep(0)
        status, body = await self.api.answer(
            request.method, unquote(request.path), request.query, request.body, request.content_type
        )
        data = orjson.dumps(body)
        self.before_answers()
        if status >= 300:
            raise answer_error(status, data, verb=request.verb, resource=request.resource)
        return data, ""
