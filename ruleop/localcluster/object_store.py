"""The objects of all resources, with one counter of versions, as etcd has one.

Everything happens in one thread, so a write and its events are one step: listeners are called before the write returns,
and see the versions in order. Objects are frozen; a write stores a new one. Two reads of a version may
return two objects, which are equal.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from dataclasses import field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import orjson

from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ruleop.kubernetes.kinds import Object

T = TypeVar("T")

KEPT_EVENTS: Final = 20_000
"""Events of one resource that a watch can still be resumed from."""

KEPT_OBJECTS: Final = 16 * 1024 * 1024
"""Bytes of JSON whose objects are kept, by which they need not be read again."""

MAX_SIZE: Final = 1_572_864  # bytes of an object, as etcd has it

_FIRST_FIELDS: Final = ("kind", "apiVersion", "metadata")


class Name(NamedTuple):
    """The place of an object within its resource."""

    namespace: str
    name: str


def _key(name: Name) -> str:
    """Objects are in the order of their keys in etcd, in which those of namespace a-b are before those of a."""
    return f"{name.namespace}/{name.name}"


class Resource(NamedTuple):
    """One resource of the store: all versions of a kind share its objects."""

    group: str
    plural: str


CONFIG_MAPS: Final = Resource("", "configmaps")
ENDPOINTS: Final = Resource("", "endpoints")
EVENTS: Final = Resource("", "events")
NAMESPACES: Final = Resource("", "namespaces")
NODES: Final = Resource("", "nodes")
CLAIMS: Final = Resource("", "persistentvolumeclaims")
VOLUMES: Final = Resource("", "persistentvolumes")
PODS: Final = Resource("", "pods")
SECRETS: Final = Resource("", "secrets")
SERVICE_ACCOUNTS: Final = Resource("", "serviceaccounts")
SERVICES: Final = Resource("", "services")
CRDS: Final = Resource("apiextensions.k8s.io", "customresourcedefinitions")
REVISIONS: Final = Resource("apps", "controllerrevisions")
DAEMON_SETS: Final = Resource("apps", "daemonsets")
DEPLOYMENTS: Final = Resource("apps", "deployments")
REPLICA_SETS: Final = Resource("apps", "replicasets")
STATEFUL_SETS: Final = Resource("apps", "statefulsets")
CRON_JOBS: Final = Resource("batch", "cronjobs")
JOBS: Final = Resource("batch", "jobs")
SLICES: Final = Resource("discovery.k8s.io", "endpointslices")
INGRESSES: Final = Resource("networking.k8s.io", "ingresses")
BUDGETS: Final = Resource("policy", "poddisruptionbudgets")
PRIORITY_CLASSES: Final = Resource("scheduling.k8s.io", "priorityclasses")
CLASSES: Final = Resource("storage.k8s.io", "storageclasses")


class Stored:
    """One version of an object: its JSON, and the object. A store keeps the objects of recent versions only: others are
    read from their JSON again when they are needed. `written` is the JSON of the last write, where a change of the
    schema shows the object in another way since."""

    __slots__ = ("_obj", "_recent", "data", "name", "version", "written")

    def __init__(self, obj: Object, version: int, data: bytes) -> None:
        metadata = obj["metadata"]
        self.name = Name(metadata.get("namespace", ""), metadata["name"])
        self.version, self.data, self.written = version, data, data
        self._obj: Object | None = obj
        self._recent: Recent | None = None

    @property
    def obj(self) -> Object:
        obj = self._obj
        if obj is None:
            obj = self._obj = orjson.loads(self.data)
            if self._recent is not None:
                self._recent.add(self)
        return obj

    @property
    def uid(self) -> str:
        uid: str = self.obj["metadata"]["uid"]
        return uid

    def keep_in(self, recent: Recent) -> None:
        """Keeps the object for as long as it is among these."""
        self._recent = recent
        recent.add(self)

    def drop_object(self) -> None:
        self._obj = None


class Recent:
    """The versions whose objects are kept. An object takes four times the memory of its JSON."""

    def __init__(self) -> None:
        self._versions: deque[Stored] = deque()
        self._size = 0  # of their JSON

    def add(self, found: Stored) -> None:
        self._versions.append(found)
        self._size += len(found.data)
        while self._size > KEPT_OBJECTS and self._versions:
            oldest = self._versions.popleft()
            self._size -= len(oldest.data)
            oldest.drop_object()


@dataclass(frozen=True, slots=True)
class StoreEvent:
    """One write: `old` is None for a creation, `new` has the last version of an object that is gone if `deleted`."""

    version: int
    old: Stored | None
    new: Stored
    deleted: bool = False


class TooLargeError(Exception):
    """An object has more bytes than etcd takes."""

    def __init__(self, size: int) -> None:
        super().__init__("etcdserver: request is too large")
        self.size = size


class TooOldError(Exception):
    """The events after this version are no longer known."""


@dataclass(slots=True)
class _Table:
    objects: dict[Name, Stored] = field(default_factory=dict)
    names: list[Name] = field(default_factory=list)  # in the order of their keys
    events: deque[StoreEvent] = field(default_factory=lambda: deque(maxlen=KEPT_EVENTS))
    known_since: int = 0  # the events after this version are in `events`
    listeners: list[Callable[[StoreEvent], None]] = field(default_factory=list)


class Store:
    def __init__(self, version: int = 1) -> None:
        self.version = version
        self._tables: dict[Resource, _Table] = {}
        self._listeners: list[Callable[[Resource, StoreEvent], None]] = []
        self._attached: dict[Any, Any] = {}
        self._recent = Recent()

    def resources(self) -> Iterator[Resource]:
        return (resource for resource, table in self._tables.items() if table.objects)

    # -- reading ------------------------------------------------------------------------------------------------------

    def get(self, resource: Resource, name: Name) -> Stored | None:
        table = self._tables.get(resource)
        return table.objects.get(name) if table is not None else None

    def all(self, resource: Resource, namespace: str = "", after: Name | None = None) -> Iterator[Stored]:
        """The objects in their order, of all namespaces if none is given."""
        table = self._tables.get(resource)
        if table is None:
            return
        names = table.names
        start = bisect_left(names, f"{namespace}/", key=_key) if namespace else 0
        if after is not None:
            start = max(start, bisect_right(names, _key(after), key=_key))
        for name in islice(names, start, None):
            if namespace and name.namespace != namespace:
                return
            yield table.objects[name]

    def at(self, resource: Resource, version: int, namespace: str, after: Name) -> list[Stored]:
        """The objects after a name as they were at a version, for the next page of a list. Raises TooOldError."""
        found = {each.name: each for each in self.all(resource, namespace, after)}
        for event in reversed(list(self.since(resource, version))):
            name = event.new.name
            if (namespace and name.namespace != namespace) or _key(name) <= _key(after):
                continue
            if event.old is None:
                found.pop(name, None)
            else:
                found[name] = event.old
        return [found[name] for name in sorted(found, key=_key)]

    def since(self, resource: Resource, version: int) -> list[StoreEvent]:
        """The events after a version. Raises TooOldError."""
        table = self._table(resource)
        if version < table.known_since:
            raise TooOldError
        found: list[StoreEvent] = []
        for event in reversed(table.events):
            if event.version <= version:
                break
            found.append(event)
        found.reverse()
        return found

    def known_since(self, resource: Resource) -> int:
        return self._table(resource).known_since

    # -- writing ------------------------------------------------------------------------------------------------------

    def put(self, resource: Resource, obj: Object) -> Stored:
        """Stores a new object, or a new version of one. Raises TooLargeError."""
        table = self._table(resource)
        new = stored(obj, self.version + 1)
        if len(new.data) > MAX_SIZE:
            raise TooLargeError(len(new.data))
        self.version += 1
        name = new.name
        old = table.objects.get(name)
        if old is None:
            insort(table.names, name, key=_key)
        table.objects[name] = new
        new.keep_in(self._recent)
        self._publish(resource, table, StoreEvent(self.version, old, new))
        return new

    def delete(self, resource: Resource, name: Name) -> Stored:
        """Removes an object. Returns its last version, whose resourceVersion is that of the deletion."""
        table = self._table(resource)
        old = table.objects.pop(name)
        del table.names[bisect_left(table.names, _key(name), key=_key)]
        self.version += 1
        last = stored(old.obj, self.version)
        last.keep_in(self._recent)
        self._publish(resource, table, StoreEvent(self.version, old, last, deleted=True))
        return last

    def begin(self, resource: Resource) -> None:
        """Of a resource that is served from now on, no earlier version is known."""
        table = self._table(resource)
        if not table.events:
            table.known_since = self.version

    def amend(self, resource: Resource, obj: Object, *, written: bytes | None = None) -> Stored:
        """Changes a stored object without a new version and without an event. `written`: its JSON as it was written
        last, if it is only shown in another way."""
        found = stored(obj, int(obj["metadata"]["resourceVersion"]))
        found.written = written or found.data
        found.keep_in(self._recent)
        self._table(resource).objects[found.name] = found
        return found

    def compact(self) -> None:
        """Removes all events: watches that resume from an earlier version fail."""
        for table in self._tables.values():
            table.events.clear()
            table.known_since = self.version

    def load(self, resource: Resource, obj: Object) -> None:
        """Adds an object of an earlier run as it is."""
        table = self._table(resource)
        insort(table.names, self.amend(resource, obj).name, key=_key)
        table.known_since = self.version

    # -- events -------------------------------------------------------------------------------------------------------

    def listen(self, resource: Resource, listener: Callable[[StoreEvent], None]) -> Callable[[], None]:
        """Calls the listener with each event of the resource from now on. Returns a function that ends this."""
        listeners = self._table(resource).listeners
        listeners.append(listener)
        return lambda: listeners.remove(listener)

    def listen_to_all(self, listener: Callable[[Resource, StoreEvent], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def attached(self, kind: Callable[[Store], T]) -> T:
        """The view of this type that is derived from the objects of this store and follows its events: one of each
        type."""
        if kind not in self._attached:
            self._attached[kind] = kind(self)
        found: T = self._attached[kind]
        return found

    def _publish(self, resource: Resource, table: _Table, event: StoreEvent) -> None:
        if len(table.events) == KEPT_EVENTS:
            table.known_since = table.events[0].version
        table.events.append(event)
        for listener in tuple(table.listeners):
            listener(event)
        for each in tuple(self._listeners):
            each(resource, event)

    def _table(self, resource: Resource) -> _Table:
        table = self._tables.get(resource)
        if table is None:
            table = self._tables[resource] = _Table(known_since=0)
        return table


def stored(obj: Object, version: int) -> Stored:
    """The object with this resourceVersion."""
    return _ordered(obj, {**obj["metadata"], "resourceVersion": str(version)}, version)


def unstored(obj: Object) -> Stored:
    """An object that a dry run would create. It has no resourceVersion."""
    return _ordered(obj, obj["metadata"], 0)


def _ordered(obj: Object, metadata: Object, version: int) -> Stored:
    fields: dict[str, Any] = {"kind": obj["kind"], "apiVersion": obj["apiVersion"], "metadata": metadata}
    fields.update((name, value) for name, value in obj.items() if name not in _FIRST_FIELDS)
    # A copy: what orjson returns keeps its buffer, which is three times as large on average.
    return Stored(fields, version, orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)[:-1])
