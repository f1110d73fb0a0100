"""Makes random objects on two servers, changes them at random, and compares the answers."""

from __future__ import annotations

import copy
import json
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Self

from tests.contract.client import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, Reply, Server
from tests.contract.walk.changes import changed, operations, partial
from tests.contract.walk.comparing import differences, is_wrong_status
from tests.contract.walk.kinds import KINDS, METADATA
from tests.contract.walk.making import Chance, fields, items, one_of

STATUS = fields(
    {},
    {
        "replicas": 2,
        "readyReplicas": 1,
        "observedGeneration": 1,
        "phase": "Ready",
        "conditions": items(fields({"type": one_of("a", "b"), "status": "True"}), keys=("type",)),
    },
)
_REQUESTS = ("create", "apply", "apply", "apply", "update", "update", "merge", "strategic", "json", "status", "get")


@dataclass(frozen=True)
class Request:
    """What both servers are asked. The body is computed for each from the object that it answered last."""

    what: str
    method: str
    path: str
    media: str
    body: Callable[[dict[str, Any]], Any]
    query: dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """An answer that differs."""

    kind: str
    request: Request
    body: Any
    differences: list[str]

    @property
    def signature(self) -> str:
        """The same for findings that probably have the same cause."""
        first = next((each for each in self.differences if not each.startswith("code")), self.differences[0])
        codes = self.differences[0].partition(": ")[2] if first is not self.differences[0] else ""
        return f"{self.kind} {self.request.what}: {codes} " + re.sub(r"\[\d+\]|\"[a-d]\"|\d+", "#", first)[:110]

    def __str__(self) -> str:
        query = {name: value for name, value in self.request.query.items() if value is not None}
        lines = [f"{self.request.method} {self.request.path} {query or ''}", json.dumps(self.body)[:2000]]
        return "\n    ".join([f"{self.kind}, {self.request.what}", *lines, *self.differences[:6]])


class Walk:
    """A walk with the same seed asks the same."""

    def __init__(self, real: Server, memory: Server, *, seed: int, wrong: float = 0.0) -> None:
        self.servers = (real, memory)
        self.seed = seed
        self.chance = Chance(Random(seed), wrong)
        self.namespace = f"walk-{uuid.uuid4().hex[:6]}"
        self.requests = 0
        for server in self.servers:
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
            server.create("/api/v1/namespaces", namespace)
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}}
            server.create(f"/api/v1/namespaces/{self.namespace}/serviceaccounts", account)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for server in self.servers:
            server.delete(f"/api/v1/namespaces/{self.namespace}")

    def findings(self, objects: int, plurals: Sequence[str] = tuple(KINDS)) -> Iterator[Finding]:
        for number in range(objects):
            yield from self._life_of(self.chance.random.choice(plurals), f"o{self.seed}-{number}")

    def _life_of(self, plural: str, name: str) -> Iterator[Finding]:
        """Some requests for one object, until the servers hold different ones."""
        api_version, kind, make = KINDS[plural]
        root = "apis" if "/" in api_version else "api"
        path = f"/{root}/{api_version}/namespaces/{self.namespace}/{plural}"

        def fresh() -> dict[str, Any]:
            metadata = {**METADATA(self.chance), "name": name}
            return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **make(self.chance)}

        obj = fresh()
        live: tuple[dict[str, Any], ...] = (obj, obj)
        for step in range(self.chance.random.randint(2, 6)):
            what = self.chance.random.choice(_REQUESTS if step else ("create", "apply"))
            if what == "status" and "uid" not in live[0]["metadata"]:
                what = "get"
            obj = (
                obj if what in ("status", "get") else fresh() if self.chance.happens(0.1) else changed(self.chance, obj)
            )
            request = self._request(what, path, name, obj)
            bodies = [request.body(each) for each in live]
            answers = [self._send(server, request, body) for server, body in zip(self.servers, bodies, strict=True)]
            self.requests += 1
            if is_wrong_status(*answers):
                return  # they hold different ones now
            if found := differences(*answers):
                yield Finding(kind, request, bodies[0], found)
                if not all(answer.status >= 400 for answer in answers):
                    return
            if all(_is_stored(answer, kind, request) for answer in answers):
                live = tuple(answer.body for answer in answers)

    def _send(self, server: Server, request: Request, body: Any) -> Reply:
        return server.send(request.method, request.path, body, media=request.media, **request.query)

    def _request(self, what: str, path: str, name: str, obj: dict[str, Any]) -> Request:
        chance, one = self.chance, f"{path}/{name}"
        query: dict[str, Any] = {}
        if what != "get" and chance.happens(0.1):
            query["dryRun"] = "All"
        if what != "get" and chance.happens(0.15):
            query["fieldValidation"] = chance.random.choice(("Strict", "Ignore", "Warn"))
        if what == "create":
            return Request(what, "POST", path, JSON, lambda live: obj, query)
        if what == "apply":
            query |= {"fieldManager": chance.random.choice(("m1", "m2")), "force": chance.random.choice((None, "true"))}
            return Request(what, "PATCH", one, APPLY, lambda live: obj, query)
        if what == "update":
            checked = chance.happens(0.5)
            return Request(what, "PUT", one, JSON, lambda live: _at_version(obj, live) if checked else obj, query)
        if what == "status":
            status = STATUS(chance)
            return Request(what, "PUT", f"{one}/status", JSON, lambda live: {**live, "status": status}, query)
        if what == "json":
            patch = operations(chance, obj)
            return Request(what, "PATCH", one, JSON_PATCH, lambda live: patch, query)
        if what == "get":
            return Request(what, "GET", one, "", lambda live: None, query)
        part = partial(chance, obj, strategic=what == "strategic")
        return Request(what, "PATCH", one, STRATEGIC if what == "strategic" else MERGE, lambda live: part, query)


def _at_version(obj: dict[str, Any], live: dict[str, Any]) -> dict[str, Any]:
    """The object, to be written only if the object is still at the version of the last answer."""
    obj = copy.deepcopy(obj)
    version = live["metadata"].get("resourceVersion")
    if version and isinstance(obj.get("metadata"), dict):
        obj["metadata"]["resourceVersion"] = version
    return obj


def _is_stored(answer: Reply, kind: str, request: Request) -> bool:
    return answer.status < 300 and answer.body.get("kind") == kind and "dryRun" not in request.query
