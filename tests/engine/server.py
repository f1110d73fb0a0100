"""An API server in memory, as the executor sees one: it checks preconditions, and gives any answer that a test asks for."""

from __future__ import annotations

import asyncio
import copy
from enum import Enum
from typing import TYPE_CHECKING, Any

import orjson

from ruleop.kinds import Kind, Object, ObjectKey
from ruleop.kube.client.errors import ApiError, Problem, answer_error
from ruleop.merge import merge_patch
from ruleop.planning import Owner
from ruleop.planning.model.marks import PART_OF
from tests.patching import patched

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Answer(Enum):
    """Faults that the server injects."""

    EXISTS = "409 exists"
    CONFLICT = "409 conflict"
    NOT_FOUND = "404"
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


APPLIED_ALL_THE_SAME = frozenset({Answer.GATEWAY, Answer.TIMEOUT_AFTER})
_STATUS = {
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


def error_of(answer: Answer, verb: str, resource: str) -> ApiError:
    if answer in _STATUS:
        status, reason, message = _STATUS[answer]
        body = orjson.dumps({"kind": "Status", "reason": reason, "message": message.replace("VERB", verb)})
        return answer_error(status, body, verb=verb, resource=resource, retry_after="3" if status == 429 else None)
    problem = Problem.UNREACHABLE if answer is Answer.UNREACHABLE else Problem.TIMEOUT
    return ApiError(problem, verb=verb, resource=resource, text="no answer")


class Server:
    """Objects by identity. `answers` has the faults for the next requests by verb and name, `log` the requests in
    order."""

    def __init__(self, *objects: Mapping[str, Any]) -> None:
        self.objects: dict[ObjectKey, dict[str, Any]] = {}
        self.answers: dict[tuple[str, str], list[Answer]] = {}
        self.before: dict[tuple[str, str], Callable[[], Any]] = {}  # what somebody else does just then
        self.log: list[tuple[str, str]] = []
        self.ended: list[tuple[str, str]] = []
        self.held: dict[tuple[str, str], asyncio.Event | asyncio.Barrier] = {}  # requests that wait
        self.under_way = self.most = 0
        self._version = 100
        for obj in objects:
            self.make(obj)

    # -- what a test does ----------------------------------------------------------------------------------------------

    def make(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Stores an object without preconditions, as other clients do."""
        stored = copy.deepcopy(dict(obj))
        self._version += 1
        stored["metadata"].setdefault("uid", f"uid-{self._version}")
        stored["metadata"]["resourceVersion"] = str(self._version)
        self.objects[ObjectKey.of(stored)] = stored
        return copy.deepcopy(stored)

    def edit(self, key: ObjectKey, **fields: Any) -> dict[str, Any]:
        """Changes an object as another client."""
        return self.make({**self.objects[key], **fields})

    def answer_with(self, verb: str, name: str, *answers: Answer) -> None:
        self.answers.setdefault((verb, name), []).extend(answers)

    def requests(self, *verbs: str) -> list[tuple[str, str]]:
        return [each for each in self.log if each[0] in verbs]

    # -- Api -----------------------------------------------------------------------------------------------------------

    async def read(self, kind: Kind, key: ObjectKey) -> Object | None:
        return await self._asked("get", key, lambda: copy.deepcopy(self.objects.get(key)))

    async def create(self, obj: Object) -> Object:
        key = ObjectKey.of(obj)

        def make() -> Object:
            if key in self.objects:
                raise error_of(Answer.EXISTS, "create", str(key))
            return self.make(obj)

        return await self._asked("create", key, make)

    async def patch(self, kind: Kind, key: ObjectKey, patch: Mapping[str, Any]) -> Object:
        def change() -> Object:
            live = self._guarded("patch", key, patch["metadata"])
            return self.make(patched(live, patch))

        return await self._asked("patch", key, change)

    async def replace(self, obj: Object) -> Object:
        key = ObjectKey.of(obj)

        def put() -> Object:
            self._guarded("update", key, obj["metadata"])
            return self.make(obj)

        return await self._asked("update", key, put)

    async def apply(self, obj: Object, *, recorded: Any) -> Object:
        key = ObjectKey.of(obj)

        def put() -> Object:
            if "uid" in obj["metadata"]:
                self._guarded("apply", key, {"uid": obj["metadata"]["uid"]})
            return self.make(patched(self.objects.get(key, {}), obj))

        return await self._asked("apply", key, put)

    async def delete(self, kind: Kind, key: ObjectKey, *, uid: str, version: str, propagation: str) -> Object | None:
        assert propagation in {"Background", "Foreground"}
        assert uid
        assert version, "a deletion names the very version that it is about"

        def end() -> Object | None:
            live = self._guarded("delete", key, {"uid": uid, "resourceVersion": version})
            if live["metadata"].get("finalizers"):
                return self.make(
                    {**live, "metadata": {**live["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
                )
            del self.objects[key]
            return None

        return await self._asked("delete", key, end)

    async def write_status(self, kind: Kind, key: ObjectKey, patch: Mapping[str, Any], *, subresource: bool) -> Object:
        def change() -> Object:
            live = self._guarded("patch", key, patch["metadata"])
            return self.make(patched(live, {"status": patch["status"]}))

        answer: Object = await self._asked("status", key, change)
        return answer

    async def _asked(self, verb: str, key: ObjectKey, act: Callable[[], Any]) -> Any:
        self.log.append((verb, key.name))
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(0)
            if (held := self.held.get((verb, key.name))) is not None:
                await held.wait()
            if (meanwhile := self.before.pop((verb, key.name), None)) is not None:
                meanwhile()
            waiting = self.answers.get((verb, key.name))
            answer = waiting.pop(0) if waiting else None
            if answer is None:
                return act()
            if answer in APPLIED_ALL_THE_SAME:
                act()
            raise error_of(answer, verb, str(key))
        finally:
            self.under_way -= 1
            self.ended.append((verb, key.name))

    def _guarded(self, verb: str, key: ObjectKey, desired: Mapping[str, Any]) -> dict[str, Any]:
        live = self.objects.get(key)
        if live is None:
            raise error_of(Answer.NOT_FOUND, verb, str(key))
        if any(desired.get(name) not in {None, live["metadata"][name]} for name in ("uid", "resourceVersion")):
            raise error_of(Answer.CONFLICT, verb, str(key))
        return copy.deepcopy(live)


class FakeStores:
    """The stores: children by ruleop's label, and the CR itself."""

    def __init__(self, *objects: Object) -> None:
        self.objects: dict[ObjectKey, Object] = {ObjectKey.of(obj): obj for obj in objects}

    def put(self, obj: Object) -> bool:
        if obj["kind"] != "App" and PART_OF not in (obj["metadata"].get("labels") or {}):
            return False
        self.objects[ObjectKey.of(obj)] = obj
        return True

    def remove(self, key: ObjectKey, uid: str, version: str = "") -> None:
        found = self.objects.get(key)
        if found is not None and found["metadata"]["uid"] == uid:
            del self.objects[key]


APP: Object = {
    "apiVersion": "example.com/v1",
    "kind": "App",
    "metadata": {"name": "web", "namespace": "shop", "uid": "uid-of-web", "finalizers": ["somebody.else/has-one"]},
}


def child(name: str, *, kind: str = "ConfigMap", owner: Object | None = APP, **fields: Any) -> dict[str, Any]:
    """A child of the App; with another owner, or none, somebody else's object."""
    metadata: dict[str, Any] = {"name": name, "namespace": "shop"}
    if owner is not None:
        metadata |= {"labels": {PART_OF: Owner.of(owner).part_of}, "ownerReferences": [Owner.of(owner).reference()]}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}


def patch_of(live: Object, desired: Object) -> dict[str, Any]:
    """The guarded patch from one object to the other."""
    patch = merge_patch(live, desired) or {}
    guards = {name: live["metadata"][name] for name in ("uid", "resourceVersion")}
    return {**patch, "metadata": {**(patch.get("metadata") or {}), **guards}}
