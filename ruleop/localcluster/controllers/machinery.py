"""What all controllers share: a queue that the store's events fill, timers, and reads and writes of objects.

A controller is called with the names of objects that may have changed, and reads their state then. All controllers run
on the server's loop, a few objects at a time, so that requests are answered in between.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

import orjson

from ruleop.localcluster.api.writer import CONTROLLERS, SUFFIX_LETTERS
from ruleop.localcluster.clock import timestamp
from ruleop.localcluster.errors import Rejected
from ruleop.localcluster.kinds.resources import EVENTS
from ruleop.localcluster.store.store import Event, Name, Resource, Stored

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.kinds import Object
    from ruleop.localcluster.api.options import DeleteOptions
    from ruleop.localcluster.api.writer import Writer
    from ruleop.localcluster.kinds.registry import Registry
    from ruleop.localcluster.kinds.served import Served
    from ruleop.localcluster.store.store import Store

TURN: Final = 0.005  # seconds until requests get their turn
MAX_ATTEMPTS: Final = 5

_LOG = logging.getLogger(__name__)


class Controller(Protocol):
    resource: Resource  # whose objects it reconciles

    def concerned(self, resource: Resource, event: Event) -> Iterator[Name]:
        """The objects that the event of any resource may concern."""
        ...

    def sync(self, name: Name) -> None:
        """Brings one object closer to what it should be."""
        ...


class Machinery:
    def __init__(self, store: Store, registry: Registry, writer: Writer) -> None:
        self.store, self.registry, self.writer = store, registry, writer
        self.controllers: list[Controller] = []
        self.owners = OwnerIndex()
        self._queue: dict[tuple[int, Name], int] = {}  # (controller, object): attempts
        self._planned = False
        self._events: dict[tuple[str, str, str], str] = {}  # the Event about an object, by its uid, reason and message
        self._timers: dict[tuple[int, Name], asyncio.TimerHandle] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        store.listen_to_all(self._event)

    # -- the queue -----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._plan()

    def queue_all(self) -> None:
        """Queues all objects for their controllers, as after a restart."""
        for resource in list(self.store.resources()):
            for each in list(self.store.all(resource)):
                self._event(resource, Event(each.version, None, each))

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._loop = None

    def enqueue(self, controller: Controller, name: Name) -> None:
        self._queue.setdefault((self.controllers.index(controller), name), 0)
        self._plan()

    def after(self, seconds: float, controller: Controller, name: Name) -> None:
        """Queues an object after some time; a later call replaces an earlier one."""
        if self._loop is None:
            return
        key = (self.controllers.index(controller), name)
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()

        def due() -> None:
            self._timers.pop(key, None)
            self.enqueue(controller, name)

        self._timers[key] = self._loop.call_later(max(0.0, seconds), due)

    def _event(self, resource: Resource, event: Event) -> None:
        self.owners.update(resource, event)
        if resource == EVENTS:
            return
        for number, controller in enumerate(self.controllers):
            for name in controller.concerned(resource, event):
                self._queue.setdefault((number, name), 0)
        self._plan()

    def _plan(self) -> None:
        if self._loop is not None and self._queue and not self._planned:
            self._planned = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._planned = False
        end = time.perf_counter() + TURN
        while self._queue and time.perf_counter() < end:
            self._next()
        self._plan()

    def settle(self) -> None:
        """Works until nothing is left to do now, without a loop."""
        while self._queue:
            self._next()

    def _next(self) -> None:
        key = next(iter(self._queue))
        attempts = self._queue.pop(key)
        number, name = key
        try:
            self.controllers[number].sync(name)
        except Rejected as error:
            if attempts < MAX_ATTEMPTS and error.code == 409:
                self._queue[key] = attempts + 1
            else:
                _LOG.debug("%s %s: %s", self.controllers[number].resource.plural, name, error)
        except Exception:  # noqa: BLE001 - one object must not stop the others; the log has the traceback
            _LOG.exception("the controller of %s failed for %s", self.controllers[number].resource.plural, name)

    # -- objects -------------------------------------------------------------------------------------------------------

    def get(self, resource: Resource, namespace: str, name: str) -> Stored | None:
        return self.store.get(resource, Name(namespace, name))

    def served(self, resource: Resource) -> Served:
        found = self.registry.of(resource)
        assert found is not None, resource
        return found

    def owned(self, resource: Resource, owner: Object) -> list[Stored]:
        """The objects that this one controls, in the order of their names."""
        uid = owner["metadata"]["uid"]
        names = sorted(name for each, name in self.owners.of(uid) if each == resource)
        found = (self.store.get(resource, name) for name in names)
        return [each for each in found if each is not None and is_controlled_by(each.obj, uid)]

    def create(self, resource: Resource, namespace: str, obj: Object) -> Stored | None:
        """None if an object of this name exists, or its namespace is ending."""
        try:
            return self.writer.create(self.served(resource), namespace, obj)
        except Rejected as error:
            if error.code not in (403, 404, 409):
                raise
            return None

    def update(self, resource: Resource, old: Stored, new: Object) -> Stored:
        return self.writer.update(self.served(resource), old, new, "", CONTROLLERS)

    def update_status(self, resource: Resource, old: Stored, status: Mapping[str, Any]) -> Stored:
        if old.obj.get("status") == status:
            return old
        return self.writer.update(self.served(resource), old, {**old.obj, "status": status}, "status", CONTROLLERS)

    def delete(self, resource: Resource, found: Stored, options: DeleteOptions | None = None) -> None:
        self.writer.delete(self.served(resource), found, options)

    def record(self, obj: Object, reason: str, message: str, component: str, *, type_: str = "Normal") -> None:
        """An Event about an object; an equal one is counted."""
        metadata = obj["metadata"]
        namespace = metadata.get("namespace") or "default"
        now, key = timestamp(time.time()), (metadata["uid"], reason, message)
        name = self._events.get(key, "")
        old = self.get(EVENTS, namespace, name)
        if old is not None:
            self.update(EVENTS, old, {**old.obj, "count": old.obj.get("count", 1) + 1, "lastTimestamp": now})
            return
        name = self._events[key] = f"{metadata['name']}.{time.time_ns():x}"
        about = {
            "kind": obj["kind"],
            "namespace": metadata.get("namespace", ""),
            "name": metadata["name"],
            "uid": metadata["uid"],
            "apiVersion": obj["apiVersion"],
            "resourceVersion": metadata.get("resourceVersion", ""),
        }
        event = {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {key: value for key, value in about.items() if value},
            "reason": reason,
            "message": message,
            "source": {"component": component},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": type_,
            "eventTime": None,
            "reportingComponent": component,
            "reportingInstance": "",
        }
        self.create(EVENTS, namespace, event)


class OwningController:
    """The controller of objects that make others: one is reconciled when it or one of its dependents changes."""

    resource: Resource
    kind: str
    dependents: Resource

    def __init__(self, machinery: Machinery) -> None:
        self.machinery = machinery

    def concerned(self, resource: Resource, event: Event) -> Iterator[Name]:
        if resource == self.resource and not event.deleted:
            yield event.new.name
        elif resource == self.dependents and (owner := controller_of(event.new.obj, self.kind)) is not None:
            yield owner


class OwnerIndex:
    """Which objects name an owner."""

    def __init__(self) -> None:
        self._by_uid: dict[str, dict[tuple[Resource, Name], None]] = {}

    def of(self, uid: str) -> list[tuple[Resource, Name]]:
        return list(self._by_uid.get(uid, ()))

    def update(self, resource: Resource, event: Event) -> None:
        before = set() if event.old is None else owner_uids(event.old.obj)
        after = set() if event.deleted else owner_uids(event.new.obj)
        key = resource, event.new.name
        for uid in before - after:
            entries = self._by_uid[uid]
            del entries[key]
            if not entries:
                del self._by_uid[uid]
        for uid in after - before:
            self._by_uid.setdefault(uid, {})[key] = None


def safe_hash(value: Any) -> str:
    """A short name for a value, in the letters of generated names."""
    number = int.from_bytes(hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).digest()[:4])
    return "".join(SUFFIX_LETTERS[ord(digit) % len(SUFFIX_LETTERS)] for digit in f"{number:08}")


def references(obj: Object) -> list[Mapping[str, Any]]:
    return obj["metadata"].get("ownerReferences") or []


def owner_uids(obj: Object) -> set[str]:
    return {each["uid"] for each in references(obj)}


def is_controlled_by(obj: Object, uid: str) -> bool:
    return any(each["uid"] == uid and each.get("controller") for each in references(obj))


def controller_of(obj: Object, kind: str) -> Name | None:
    """The name of the object of a kind that controls this one."""
    for each in references(obj):
        if each.get("controller") and each["kind"] == kind:
            return Name(obj["metadata"].get("namespace", ""), each["name"])
    return None


def reference_to(owner: Object) -> dict[str, Any]:
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_being_deleted(obj: Object) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def with_condition(conditions: list[Any] | None, new: Mapping[str, Any], now: str) -> list[dict[str, Any]]:
    """The conditions with a new one, which keeps its time if its status is unchanged."""
    found = [dict(each) for each in conditions or []]
    for index, each in enumerate(found):
        if each["type"] == new["type"]:
            same = each.get("status") == new["status"]
            times = {"lastTransitionTime": each.get("lastTransitionTime", now) if same else now}
            if "lastUpdateTime" in new:
                unchanged = (
                    same and each.get("reason") == new.get("reason") and each.get("message") == new.get("message")
                )
                times["lastUpdateTime"] = each.get("lastUpdateTime", now) if unchanged else now
            found[index] = {**new, **times}
            return found
    return [*found, {"lastTransitionTime": now, **new}]
