"""The API server in memory, asked by the engine's own requests without HTTP, and what a test does to these requests.

What is stored and what is answered is `ruleop.localcluster`'s, without its controllers. Here are only the requests:
they are counted and can be held, another client can act just before one, and a test can choose the answer to one, or
let it get lost.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import Enum
from typing import Any, Final

import orjson
import yaml

from ruleop.kubernetes.builtin.table import ResourceInfo, builtin_resource
from ruleop.kubernetes.kinds import Kind, Object, ObjectKey
from ruleop.localcluster.api.api import Api
from ruleop.localcluster.api.audit import Users
from ruleop.localcluster.api.object_writer import ObjectWriter
from ruleop.localcluster.api.requests import WriteOptions, parse_route
from ruleop.localcluster.http import Response
from ruleop.localcluster.kinds.registry import Registry, follow
from ruleop.localcluster.kinds.served import ServedKind
from ruleop.localcluster.object_store import CRDS, Name, Resource, Store, Stored
from ruleop.operator.server_api import ServerApi
from ruleop.operator.wire.client.requests import APPLY_PATCH, JSON_PATCH, ONE_PARTIAL
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.operator.wire.http.connection import PreparedRequest
from tests.definitions import definition
from tests.in_process import body_of, received

NAMESPACE: Final = "shop"
APP: Final = Kind("example.com", "v1", "App")
SOMEBODY: Final = "somebody"


class Answer(Enum):
    """Answers that a test chooses."""

    EXISTS = "409 exists"
    CONFLICT = "409 conflict"
    NOT_FOUND = "404"  # the object is removed before; of a creation, it is the namespace that is missing
    INVALID = "422 invalid"
    IMMUTABLE = "422 immutable"
    FORBIDDEN = "403"
    NO_ROLE = "403 by the authorizer"
    THROTTLED = "429 with Retry-After"
    BROKEN = "500"
    GATEWAY = "504, but applied"
    UNREACHABLE = "no connection"
    TIMEOUT_BEFORE = "no answer, and not applied"
    TIMEOUT_AFTER = "no answer, but applied"


APPLIED_ALL_THE_SAME: Final = frozenset({Answer.GATEWAY, Answer.TIMEOUT_AFTER})
_STATUS: Final = {
    Answer.EXISTS: (409, "AlreadyExists", "it already exists"),
    Answer.CONFLICT: (409, "Conflict", "the object has been modified"),
    Answer.NOT_FOUND: (404, "NotFound", "not found"),
    Answer.INVALID: (422, "Invalid", "it is invalid: spec.x: Invalid value: 7"),
    Answer.IMMUTABLE: (422, "Invalid", "it is invalid: spec.x: Invalid value: 7: field is immutable"),
    Answer.FORBIDDEN: (403, "Forbidden", "you may not"),
    Answer.NO_ROLE: (
        403,
        "Forbidden",
        'it is forbidden: User "operator" cannot VERB resource "things" in API group ""',
    ),
    Answer.THROTTLED: (429, "TooManyRequests", "not now"),
    Answer.BROKEN: (500, "InternalError", "etcd has its own trouble"),
    Answer.GATEWAY: (504, "Timeout", "it took too long"),
}


def chosen(answer: Answer, request: PreparedRequest) -> Response:
    """The response of a chosen answer. Raises ApiError where there is none."""
    if answer not in _STATUS:
        problem = Problem.UNREACHABLE if answer is Answer.UNREACHABLE else Problem.TIMEOUT
        raise ApiError(problem, verb=request.verb, resource=request.resource, text="no answer")
    status, reason, message = _STATUS[answer]
    body = {"kind": "Status", "reason": reason, "message": message.replace("VERB", request.verb)}
    return Response(status, orjson.dumps(body), headers={"Retry-After": "3"} if answer is Answer.THROTTLED else {})


def asked(request: PreparedRequest) -> tuple[str, str]:
    """The verb and the name of the object; of a list, the plural. Requests of the same verb in the API have different
    ones here: "status", "apply", "migrate" (of managedFields) and "metadata" (a read of no more)."""
    route = parse_route(request.path)
    assert route is not None
    if not route.name:
        return request.verb, orjson.loads(request.body)["metadata"]["name"] if request.body else route.plural
    if route.subresource:
        return route.subresource, route.name
    verbs = {APPLY_PATCH: "apply", JSON_PATCH: "migrate"}
    verb = "metadata" if request.accept == ONE_PARTIAL else verbs.get(request.content_type, request.verb)
    return verb, route.name


class Server:
    """The server has the kind App and the namespace "shop". `log` has the requests in order, `api` sends them as the
    operator does."""

    def __init__(self, *objects: Object) -> None:
        self.store, self.registry = Store(), _registry()
        self.writer = ObjectWriter(self.store)
        self.api = ServerApi(self, self._lookup)  # type: ignore[arg-type]
        self.answers: dict[tuple[str, str], list[Answer]] = {}  # to the next requests by verb and name
        self.before: dict[tuple[str, str], Callable[[], Any]] = {}  # what somebody else does just then
        self.log: list[tuple[str, str]] = []
        self.ended: list[tuple[str, str]] = []
        self.held: dict[tuple[str, str], asyncio.Event | asyncio.Barrier] = {}  # requests that wait
        self.under_way = self.most = 0
        self.add_namespace(NAMESPACE)
        for obj in objects:
            self.make(obj)

    # -- the objects ---------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        return self.store.version

    def stored(self) -> Iterator[Stored]:
        """All objects, with their JSON."""
        return (each for resource in self.store.resources() for each in self.store.all(resource))

    def object_keys(self) -> list[ObjectKey]:
        return [ObjectKey.of(each.obj) for each in self.stored()]

    def live(self, key: ObjectKey) -> Any:
        """A copy of an object, or None."""
        found = self._find(key)
        return None if found is None else orjson.loads(found[1].data)

    def _find(self, key: ObjectKey) -> tuple[ServedKind, Stored] | None:
        resource = builtin_resource(key.group_kind)
        served = self._served(APP if resource is None else resource.kind)
        found = self.store.get(served.resource, Name(key.namespace, key.name))
        return None if found is None else (served, found)

    def _served(self, kind: Kind) -> ServedKind:
        served = self.registry.of_kind(kind)
        assert served is not None
        return served

    def _lookup(self, kind: Kind) -> ResourceInfo | None:
        served = self.registry.of_kind(kind)
        return served and ResourceInfo(served.plural, served.namespaced, served.status_subresource, kind)

    # -- other clients -------------------------------------------------------------------------------------------------

    def add_namespace(self, name: str) -> None:
        self.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def make(self, obj: Object) -> Any:
        """Creates an object. If it has a uid, it keeps that, as when a backup is restored into etcd."""
        served = self._served(Kind.of(obj))
        sent = orjson.loads(orjson.dumps(obj))
        uid = sent["metadata"].pop("uid", None)
        for name in ("resourceVersion", "generation"):
            sent["metadata"].pop(name, None)
        made = self.writer.create(served, sent["metadata"].get("namespace", ""), sent, _options(SOMEBODY))
        if uid is not None:
            self.store.amend(served.resource, {**made.obj, "metadata": {**made.obj["metadata"], "uid": uid}})
        return self.live(ObjectKey.of(obj))

    def edit(self, key: ObjectKey, *, manager: str = SOMEBODY, **fields: Any) -> Any:
        """Changes fields of an object, or its status, whatever its version is."""
        found = self._find(key)
        assert found is not None
        served, old = found
        new = {**orjson.loads(old.data), **fields}
        new["metadata"] = {**new["metadata"], "resourceVersion": str(old.version)}
        self.writer.update(served, old, new, "status" if "status" in fields else "", _options(manager))
        return self.live(key)

    def delete(self, key: ObjectKey) -> None:
        """Deletes an object; one with finalizers stays until they are removed."""
        found = self._find(key)
        assert found is not None
        self.writer.delete(*found)

    def remove(self, key: ObjectKey) -> None:
        """Removes an object that exists, with its finalizers."""
        found = self._find(key)
        assert found is not None
        self._remove(found[0].resource, found[1].name)

    def _remove(self, resource: Resource, name: Name) -> None:
        if self.store.get(resource, name) is not None:
            self.store.delete(resource, name)

    def amend(self, key: ObjectKey, **metadata: Any) -> None:
        """Changes metadata without a new version, as no server does."""
        found = self._find(key)
        assert found is not None
        served, old = found
        self.store.amend(served.resource, {**old.obj, "metadata": {**old.obj["metadata"], **metadata}})

    # -- requests ------------------------------------------------------------------------------------------------------

    def answer_with(self, verb: str, name: str, *answers: Answer) -> None:
        self.answers.setdefault((verb, name), []).extend(answers)

    def requests(self, *verbs: str) -> list[tuple[str, str]]:
        return [each for each in self.log if each[0] in verbs]

    def alter(self, kind: Kind, webhook: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """A mutating webhook for the objects of a kind."""
        served = self._served(kind)
        app = self._served(APP)
        strategy = replace(served.strategy, admit=lambda new, _store: webhook(new), allocates_on_update=True)
        self.registry = Registry()
        self.registry.serve(served.resource, [replace(served, strategy=strategy)])
        self.registry.serve(app.resource, [app])

    async def send(self, request: PreparedRequest) -> dict[str, Any]:
        """The answer to a request of `api`."""
        this = asked(request)
        self.log.append(this)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(0)
            if (held := self.held.get(this)) is not None:
                await held.wait()
            if (meanwhile := self.before.pop(this, None)) is not None:
                meanwhile()
            body: dict[str, Any] = orjson.loads(body_of(self._answered(this, request), request))
            return body
        finally:
            self.under_way -= 1
            self.ended.append(this)

    def _answered(self, this: tuple[str, str], request: PreparedRequest) -> Response:
        waiting = self.answers.get(this)
        answer = waiting.pop(0) if waiting else None
        if answer is Answer.NOT_FOUND and (route := parse_route(request.path)) is not None and route.name:
            self._remove(Resource(route.group, route.plural), Name(route.namespace, route.name))
            answer = None
        if answer is not None and answer not in APPLIED_ALL_THE_SAME:
            return chosen(answer, request)
        found = Api(self.store, self.registry, self.writer, Users()).handle(received(request))
        assert isinstance(found, Response)
        return found if answer is None or found.status >= 300 else chosen(answer, request)


def _options(manager: str) -> WriteOptions:
    return WriteOptions(manager=manager, field_validation="Strict")


@functools.cache
def _registry() -> Registry:
    """The built-in kinds, and the App."""
    store, registry = Store(), Registry()
    follow(store, registry)
    definitions = registry.of(CRDS)
    assert definitions is not None
    ObjectWriter(store).create(definitions, "", yaml.safe_load(definition("App")), _options(SOMEBODY))
    return registry
