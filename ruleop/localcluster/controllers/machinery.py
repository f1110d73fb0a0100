"""The machinery of all controllers: a queue that the store's events fill, timers, and reads and writes of objects.

A controller is called with the names of objects that may have changed, and reads their state then. All controllers run
on the server's loop, a few objects at a time, so that requests are answered in between. Equal Events about an object
are one that is counted.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import math
import time
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.kubernetes.builtin.builtin_types import kept_empty
from ruleop.kubernetes.kinds import is_being_deleted, is_true, owners_of
from ruleop.kubernetes.times import now
from ruleop.localcluster.api.object_writer import CONTROLLERS, SUFFIX_LETTERS
from ruleop.localcluster.object_store import EVENTS, NAMESPACES, Name, Resource, Stored, StoreEvent
from ruleop.localcluster.status_errors import Rejected

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.api.object_writer import ObjectWriter
    from ruleop.localcluster.api.requests import DeleteOptions
    from ruleop.localcluster.kinds import Registry, ServedKind
    from ruleop.localcluster.object_store import Store


def is_over(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_ready(obj: Object) -> bool:
    """Whether a pod or a node is ready."""
    return is_true(obj, "Ready")


TURN: Final = 0.005  # seconds until requests get their turn
BATCH: Final = 20
"""Objects that a controller creates or deletes in one turn. More follow, as their events queue its object again."""
FIRST_DELAY: Final = 0.005  # seconds until an object that was refused is reconciled again; doubled each time
LAST_DELAY: Final = 10.0  # in a real cluster 1,000, for which nobody wants to wait here

_LOG = logging.getLogger(__name__)


class LocalController:
    resource: Resource  # whose objects it reconciles

    def __init__(self, machinery: Machinery) -> None:
        self.machinery = machinery

    def concerned(self, resource: Resource, event: StoreEvent) -> Iterator[Name]:
        """The objects that the event of any resource may concern."""
        if resource == self.resource and not event.deleted:
            yield event.new.name

    def sync(self, name: Name) -> None:
        """Brings one object closer to what it should be."""
        if (found := self.machinery.store.get(self.resource, name)) is not None:
            self.reconcile(found)

    def reconcile(self, found: Stored) -> None:
        """As `sync`, of an object that exists."""


class Machinery:
    def __init__(
        self,
        store: Store,
        registry: Registry,
        writer: ObjectWriter,
        controllers: Iterable[Callable[[Machinery], LocalController]] = (),
    ) -> None:
        self.store, self.registry, self.writer = store, registry, writer
        self.controllers = [controller(self) for controller in controllers]
        self.owners = OwnerIndex()
        self._queue: dict[tuple[int, Name], None] = {}  # (controller, object)
        self._planned = False
        self._failures: dict[tuple[int, Name], int] = {}  # attempts in a row that were refused
        self._awaited: dict[tuple[Resource, Name], dict[tuple[int, Name], None]] = {}
        self._current: tuple[int, Name] | None = None
        self._events: dict[tuple[str, str, str, str], str] = {}  # names of Events
        self._timers: dict[tuple[int, Name], asyncio.TimerHandle] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        store.listen_to_all(self._event)

    # -- the queue ----------------------------------------------------------------------------------------------------

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._plan()

    def queue_all(self) -> None:
        """Queues all objects for their controllers, as after a restart."""
        for resource in list(self.store.resources()):
            for each in list(self.store.all(resource)):
                self._event(resource, StoreEvent(each.version, None, each))

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._loop = None

    def enqueue(self, controller: LocalController, name: Name) -> None:
        self._queue[self.controllers.index(controller), name] = None
        self._plan()

    def after(self, seconds: float, controller: LocalController, name: Name) -> None:
        """Queues an object after some time; a later call replaces an earlier one."""
        self._after(seconds, (self.controllers.index(controller), name))

    def wait_for(self, resource: Resource, name: Name) -> None:
        """Queues the object that is being reconciled when another one is created, changed or deleted."""
        assert self._current is not None
        self._awaited.setdefault((resource, name), {})[self._current] = None

    def _after(self, seconds: float, key: tuple[int, Name]) -> None:
        if self._loop is None:
            return
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()

        def due() -> None:
            self._timers.pop(key, None)
            self._queue[key] = None
            self._plan()

        self._timers[key] = self._loop.call_later(max(0.0, seconds), due)

    def _event(self, resource: Resource, event: StoreEvent) -> None:
        self.owners.update(resource, event)
        if resource == EVENTS:
            return
        for key in self._awaited.pop((resource, event.new.name), ()):
            self._queue[key] = None
        for number, controller in enumerate(self.controllers):
            for name in controller.concerned(resource, event):
                self._queue[number, name] = None
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
        self._current = key = next(iter(self._queue))
        del self._queue[key]
        number, name = key
        try:
            self.controllers[number].sync(name)
        except Rejected as error:
            self._retry(key, error)
        except Exception:  # noqa: BLE001 - one object must not stop the others; the log has the traceback
            _LOG.exception("the controller of %s failed for %s", self.controllers[number].resource.plural, name)
        else:
            self._failures.pop(key, None)

    def _retry(self, key: tuple[int, Name], error: Rejected) -> None:
        """Reconciles an object again later, unless it goes with its namespace."""
        number, name = key
        _LOG.debug("%s %s: %s", self.controllers[number].resource.plural, name, error)
        namespace = self.get(NAMESPACES, "", name.namespace) if name.namespace else None
        if namespace is not None and is_being_deleted(namespace.obj):
            self._failures.pop(key, None)
            return
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self._after(min(LAST_DELAY, FIRST_DELAY * 2.0 ** (failures - 1)), key)

    # -- objects ------------------------------------------------------------------------------------------------------

    def get(self, resource: Resource, namespace: str, name: str) -> Stored | None:
        return self.store.get(resource, Name(namespace, name))

    def served(self, resource: Resource) -> ServedKind:
        found = self.registry.of(resource)
        assert found is not None, resource
        return found

    def owned(self, resource: Resource, owner: Object) -> list[Stored]:
        """The objects that this one controls, in the order of their names."""
        uid = owner["metadata"]["uid"]
        names = sorted(name for each, name in self.owners.of(uid) if each == resource)
        found = (self.store.get(resource, name) for name in names)
        return [each for each in found if each is not None and is_controlled_by(each.obj, uid)]

    def create(self, resource: Resource, namespace: str, obj: Object) -> Stored:
        """Raises Rejected: the object of a controller that does not handle it is retried with a backoff."""
        return self.writer.create(self.served(resource), namespace, obj)

    def update(self, resource: Resource, old: Stored, new: Object) -> Stored:
        return self.writer.update(self.served(resource), old, new, "", CONTROLLERS)

    def update_status(self, resource: Resource, old: Stored, status: Mapping[str, Any], **fields: Any) -> Stored:
        """Writes a status, without what Go leaves out of it. `fields`: others than those of the old object."""
        served = self.served(resource)
        kept = kept_empty(served.shape.fields["status"].name)
        written = {name: value for name, value in status.items() if value or name in kept}
        new = {**old.obj, **fields, "status": written}
        return old if new == old.obj else self.writer.update(served, old, new, "status", CONTROLLERS)

    def record(self, obj: Object, reason: str, message: str, component: str, *, type_: str = "Normal") -> None:
        """Writes an Event about an object, or counts it once more."""
        metadata, stamp = obj["metadata"], now()
        namespace = metadata.get("namespace") or "default"
        key = metadata["uid"], component, reason, message
        name = self._events.setdefault(key, f"{metadata['name']}.{time.time_ns():x}")
        about = {key: metadata[key] for key in ("namespace", "name", "uid", "resourceVersion") if key in metadata}
        event = {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {"kind": obj["kind"], "apiVersion": obj["apiVersion"], **about},
            "reason": reason,
            "message": message,
            "type": type_,
            "source": {"component": component},
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
            "eventTime": None,
            "reportingComponent": component,
            "reportingInstance": "",
        }
        with contextlib.suppress(Rejected):  # no Event can be written where a namespace is being deleted
            if (old := self.get(EVENTS, namespace, name)) is None:
                self.create(EVENTS, namespace, event)
            else:
                self.update(EVENTS, old, {**old.obj, "count": old.obj.get("count", 1) + 1, "lastTimestamp": stamp})

    def remove_finalizer(self, resource: Resource, found: Stored, finalizer: str) -> None:
        metadata = found.obj["metadata"]
        if finalizer in (finalizers := metadata.get("finalizers") or []):
            rest = [each for each in finalizers if each != finalizer]
            self.update(resource, found, {**found.obj, "metadata": {**metadata, "finalizers": rest}})

    def delete(self, resource: Resource, found: Stored, options: DeleteOptions | None = None) -> None:
        self.writer.delete(self.served(resource), found, options)


class OwningController(LocalController):
    """The controller of objects that make others: one is reconciled when it or one of its dependents changes."""

    kind: str
    dependents: Resource

    def concerned(self, resource: Resource, event: StoreEvent) -> Iterator[Name]:
        yield from super().concerned(resource, event)
        if resource == self.dependents and (owner := controller_of(event.new.obj, self.kind)) is not None:
            yield owner


class OwnerIndex:
    """The objects that name an owner, by its UID."""

    def __init__(self) -> None:
        self._by_uid: dict[str, dict[tuple[Resource, Name], None]] = {}

    def of(self, uid: str) -> list[tuple[Resource, Name]]:
        return list(self._by_uid.get(uid, ()))

    def update(self, resource: Resource, event: StoreEvent) -> None:
        before = frozenset[str]() if event.old is None else owners_of(event.old.obj["metadata"])
        after = frozenset[str]() if event.deleted else owners_of(event.new.obj["metadata"])
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


def share(value: str | int, total: int, rounded: Callable[[float], int] = math.ceil) -> int:
    """A number of pods, or a percentage of all."""
    return rounded(total * int(value[:-1]) / 100) if isinstance(value, str) and value.endswith("%") else int(value)


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
