"""The objects of one watch, as bytes.

A parsed object takes six times the memory of its JSON, so a store keeps JSON and parses what is asked for (15 us for 5 KB). What it keeps
of an object is cut into two pieces: `body`, without status, resourceVersion, generation and managedFields, and `status`. Whether something
changed that a rule looks at is then a comparison of bytes, exact and for nothing: our own status write, or another controller's, changes no
body. (Without the status subresource it changes the generation, which is why that is none of the body.)

Two sources feed it. The reflector says what the server said, in the server's order; `put` says what the server answered to our own write,
which is newer than what the watch has brought so far. Of two versions of an object the newer one stands, whichever comes first: nothing
here ever goes back in time. Neither does a deletion: what a live read showed to be gone (`remove`) stays gone, although the watch may still
bring older versions of it, until the watch tells of its end too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import structlog

from ruleop.kinds import ObjectKey
from ruleop.kube.client.json_depth import written
from ruleop.names import PART_OF_LABEL

if TYPE_CHECKING:
    from collections.abc import ItemsView, Iterator, Mapping

    from ruleop.kinds import GroupKind, Kind
    from ruleop.kube.client.requests import Source

log = structlog.get_logger(__name__)


class State(Enum):
    """Whether the store knows all that there is. A store that was synced once stays so while its watch is being renewed."""

    PENDING = "pending"  # the first list has not been answered
    SYNCED = "synced"
    UNSERVED = "unserved"  # the cluster has no such kind (any longer); the store is empty
    FORBIDDEN = "forbidden"  # we may not read it; the store keeps what it knew, and it must not be relied on


class Origin(Enum):
    """Where a change came from. It says how urgent a look is, never what to do."""

    LIST = "list"  # the first list, or one that followed a lost watch
    WATCH = "watch"
    WRITE = "write"  # our own, by `put`; the watch's echo of it will be no change any more
    READ = "read"  # a live read, or the answer to a deletion, that says what the watch will no more have to tell


class Entry(NamedTuple):
    """One version of an object. Immutable; `parsed` makes a new dict each time, without apiVersion and kind: `Store.get` adds them."""

    uid: str
    version: int
    generation: int  # 0 for kinds that have none
    part_of: str  # the label by which a child names its CR
    body: bytes
    status: bytes | None

    def parsed(self) -> dict[str, Any]:
        obj: dict[str, Any] = orjson.loads(self.body)
        obj["metadata"]["resourceVersion"] = str(self.version)
        if self.generation:
            obj["metadata"]["generation"] = self.generation
        if self.status is not None:
            obj["status"] = orjson.loads(self.status)
        return obj


class Change(NamedTuple):
    """An object came (`old` is None), changed, or went (`new` is None). A new uid under an old name is two changes."""

    key: ObjectKey
    old: Entry | None
    new: Entry | None
    origin: Origin

    @property
    def outside_status(self) -> bool:
        """Something changed beside status, resourceVersion, generation and managedFields."""
        return self.old is None or self.new is None or self.old.body != self.new.body


class _Ended(NamedTuple):
    """What was removed before the watch told of it, and must not come back by what the watch still has to tell."""

    uid: str
    version: int  # as it was here
    last: int | None  # the last version of this uid that is of no interest; None: all of them

    def covers(self, entry: Entry) -> bool:
        return entry.version <= self.version or (entry.uid == self.uid and (self.last is None or entry.version <= self.last))


Listener = Callable[[Change], None]


@dataclass(frozen=True, slots=True)
class Statistics:
    objects: int
    bytes: int
    version: int
    changes: int
    state: State
    problem: str


class Store:
    """Owned by one event loop. Listeners are called at once, in the order of the changes, and see the store as it is after the change."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.kind: Kind = source.resource.kind
        self.group_kind: GroupKind = self.kind.versionless
        self.state = State.PENDING
        self.problem = ""  # why it is not synced, or not renewed, in words
        self.version = 0  # all that happened up to here is in the store
        self._entries: dict[ObjectKey, Entry] = {}
        self._children: dict[str, tuple[ObjectKey, ...]] = {}
        self._namespaces: dict[str, dict[ObjectKey, None]] = {}
        self._listed: dict[ObjectKey, Entry] | None = None
        self._ended: dict[ObjectKey, _Ended] = {}
        self._unreadable: dict[ObjectKey, None] = {}  # as told in the log
        self._listeners: list[Listener] = []
        self._state_listeners: list[Callable[[Store], None]] = []
        self.listener_failures = 0
        self._bytes = 0
        self._changes = 0

    # What readers ask

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def entries(self) -> ItemsView[ObjectKey, Entry]:
        return self._entries.items()

    def entry(self, key: ObjectKey) -> Entry | None:
        return self._entries.get(key)

    def get(self, key: ObjectKey) -> dict[str, Any] | None:
        entry = self._entries.get(key)
        return self.parse(entry) if entry is not None else None

    def parse(self, entry: Entry) -> dict[str, Any]:
        return {"apiVersion": self.kind.api_version, "kind": self.kind.kind, **entry.parsed()}

    def select_keys(self, namespace: str | None = None) -> list[ObjectKey]:
        """All keys, or those of one namespace; sorted."""
        return sorted(self._entries if namespace is None else self._namespaces.get(namespace, ()))

    def select(self, namespace: str | None = None) -> list[dict[str, Any]]:
        """All objects, or those of one namespace; by namespace and name."""
        return [self.parse(self._entries[key]) for key in self.select_keys(namespace)]

    def children(self, part_of: str) -> Iterator[dict[str, Any]]:
        for key in self._children.get(part_of, ()):
            yield self.parse(self._entries[key])

    def is_at_least(self, version: str | int, key: ObjectKey | None = None) -> bool:
        """Whether all that happened up to `version` is in the store; with a key, all that happened to that object.

        resourceVersions of a kind are ordered numbers (KEP-5504).
        """
        wanted = parse_version(version) if isinstance(version, str) else version
        if self.version >= wanted:
            return True
        entry = self._entries.get(key) if key is not None else None
        return entry is not None and entry.version >= wanted

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener` for each change from now on; returns what ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def subscribe_state(self, listener: Callable[[Store], None]) -> Callable[[], None]:
        """The same for `state`."""
        self._state_listeners.append(listener)
        return lambda: self._state_listeners.remove(listener)

    def statistics(self) -> Statistics:
        return Statistics(len(self._entries), self._bytes, self.version, self._changes, self.state, self.problem)

    # What the reflector says

    def set_state(self, state: State, problem: str = "") -> None:
        self.problem = problem
        if state is State.UNSERVED and self._entries:
            for key in list(self._entries):
                self._remove(key, Origin.LIST)  # they went with their kind
        if state is not self.state:
            self.state = state
            for listener in tuple(self._state_listeners):
                listener(self)

    def set_problem(self, problem: str) -> None:
        self.problem = problem

    def begin_list(self) -> None:
        """What is listed from here on is put aside, until it is complete."""
        self._listed = {}

    def list_object(self, obj: dict[str, Any]) -> None:
        assert self._listed is not None, "begin_list comes first"
        key, entry = self.entry_of(obj)
        known = self._entries.get(key)
        # The same version is the same object: one copy is enough, also while both lists are there.
        self._listed[key] = known if known is not None and known.version == entry.version and known.uid == entry.uid else entry

    def unlist_object(self, obj: dict[str, Any]) -> None:
        """It was deleted while the list was on its way."""
        assert self._listed is not None, "begin_list comes first"
        self._listed.pop(self._key(obj["metadata"]), None)

    def end_list(self, version: int) -> None:
        """Replaces everything by what was listed, at once. What is missing from the list, and not newer than it, has been deleted."""
        listed, self._listed = self._listed, None
        assert listed is not None, "begin_list comes first"
        self.version = max(self.version, version)
        for key, entry in list(self._entries.items()):
            if key not in listed and entry.version <= version:
                self._remove(key, Origin.LIST)
        # A list from before it was made knows nothing of its end, and the watch that follows will tell all of its life.
        for key in [key for key, ended in self._ended.items() if key not in listed and ended.version <= version]:
            del self._ended[key]
        for key, entry in listed.items():
            self._set(key, entry, Origin.LIST)
        self.set_state(State.SYNCED)

    def apply(self, obj: dict[str, Any]) -> None:
        metadata = obj["metadata"]
        known = self._entries.get(self._key(metadata))
        if known is not None and known.version and known.version == parse_version(metadata.get("resourceVersion")):
            # The echo of our own write, as most events are while CRs are made: there is nothing to cut up and keep.
            self.version = max(self.version, known.version)
            return
        key, entry = self.entry_of(obj)
        self.version = max(self.version, entry.version)
        self._set(key, entry, Origin.WATCH)

    def delete(self, obj: dict[str, Any]) -> None:
        metadata = obj["metadata"]
        version = parse_version(metadata.get("resourceVersion"))
        self.version = max(self.version, version)
        key = self._key(metadata)
        self._unreadable.pop(key, None)
        if (ended := self._ended.get(key)) is not None and ended.uid == metadata.get("uid"):
            del self._ended[key]
        known = self._entries.get(key)
        # The version of a deletion is newer than every version of what it deletes; one that is not is about an earlier object.
        if known is not None and (known.version <= version or not version):
            self._remove(key, Origin.WATCH)

    def leave_out(self, obj: dict[str, Any], problem: str) -> None:
        """Nobody can read it: of `obj`, only what names it is to be relied on. What was known of it stays, for it is not gone."""
        metadata = obj["metadata"]
        key, uid = self._key(metadata), metadata.get("uid")
        if key not in self._unreadable:
            self._unreadable[key] = None
            log.warning("an object cannot be read; nothing is done about it until it is changed", object=str(key), error=problem)
        known = self._entries.get(key)
        if self._listed is not None:
            if known is not None and known.uid == uid:
                self._listed.setdefault(key, known)
            return
        self.version = max(self.version, parse_version(metadata.get("resourceVersion")))
        if known is not None and known.uid != uid:
            self._remove(key, Origin.WATCH)

    def bookmark(self, version: int) -> None:
        self.version = max(self.version, version)

    # What our own writes say

    def put(self, obj: Mapping[str, Any]) -> bool:
        """Takes over the server's answer to a write, unless the watch has been there already. False if it had.

        Listeners hear of it, with `Origin.WRITE`: others than the writer may wait for this object.
        """
        key, entry = self.entry_of({**obj, "metadata": dict(obj["metadata"])})
        known = self._entries.get(key)
        # All up to self.version is known here, and if the object is not, it was deleted since.
        if entry.version <= self.version or (known is not None and known.version >= entry.version):
            return False
        return self._set(key, entry, Origin.WRITE)

    def remove(self, key: ObjectKey, uid: str, version: str = "") -> None:
        """A live read, or the answer to a write, says that the object is none of this store's any more. With a version: up to there (it
        lost our label, and may get it back). Without: it was deleted, and its uid never comes back."""
        last = parse_version(version) if version else None
        known = self._entries.get(key)
        # One that is not here either went by the watch, or the watch will tell its short life from end to end: both need no note.
        if known is not None and known.uid == uid and (last is None or known.version <= last):
            self._ended[key] = _Ended(uid, known.version, last)
            self._remove(key, Origin.READ)

    def entry_of(self, obj: dict[str, Any]) -> tuple[ObjectKey, Entry]:
        """Cuts the object into pieces, and in doing so takes it apart."""
        metadata = obj["metadata"]
        metadata.pop("managedFields", None)
        version = parse_version(metadata.pop("resourceVersion", None))
        generation = metadata.pop("generation", None) or 0
        obj.pop("apiVersion", None)  # in the items of a list they are missing; here they would be the same a thousand times
        obj.pop("kind", None)
        if self.source.metadata_only:
            obj = {"metadata": metadata}
        status = obj.pop("status", None)
        labels = metadata.get("labels")
        part_of = labels.get(PART_OF_LABEL) or "" if labels else ""
        kept = None if status is None else _compact(status)
        key = self._key(metadata)
        if self._unreadable:
            self._unreadable.pop(key, None)
        return key, Entry(metadata.get("uid") or "", version, generation, part_of, _compact(obj), kept)

    def _key(self, metadata: Mapping[str, Any]) -> ObjectKey:
        return ObjectKey(self.kind.group, self.kind.kind, sys.intern(metadata.get("namespace") or ""), metadata["name"])

    # How a change is made

    def _set(self, key: ObjectKey, entry: Entry, origin: Origin) -> bool:
        """Whether it is news."""
        if self._ended and (ended := self._ended.get(key)) is not None:
            if ended.covers(entry):
                return False
            del self._ended[key]  # what comes after it is newer
        old = self._entries.get(key)
        if old is not None:
            if old.version > entry.version > 0 or (old.version == entry.version and old.uid == entry.uid):
                return False
            if old.uid != entry.uid:
                self._remove(key, origin)
                old = None
        self._entries[key] = entry
        self._bytes += _size(entry) - (_size(old) if old is not None else 0)
        if old is None:
            self._namespaces.setdefault(key.namespace, {})[key] = None
        if old is None or old.part_of != entry.part_of:
            if old is not None:
                self._disown(old.part_of, key)
            if entry.part_of:
                self._children[entry.part_of] = tuple(sorted((*self._children.get(entry.part_of, ()), key)))
        self._tell(Change(key, old, entry, origin))
        return True

    def _remove(self, key: ObjectKey, origin: Origin) -> None:
        old = self._entries.pop(key)
        self._bytes -= _size(old)
        in_namespace = self._namespaces[key.namespace]
        del in_namespace[key]
        if not in_namespace:
            del self._namespaces[key.namespace]
        self._disown(old.part_of, key)
        self._tell(Change(key, old, None, origin))

    def _disown(self, part_of: str, key: ObjectKey) -> None:
        if part_of:
            left = tuple(other for other in self._children[part_of] if other != key)
            if left:
                self._children[part_of] = left
            else:
                del self._children[part_of]

    def _tell(self, change: Change) -> None:
        self._changes += 1
        for listener in tuple(self._listeners):
            try:
                listener(change)
            except Exception:
                # The others must hear of it all the same: nobody will tell them again.
                self.listener_failures += 1
                log.exception("a listener failed", change=str(change.key))


def parse_version(text: Any) -> int:
    """A resourceVersion as a number; 0, which is older than everything, for what is none."""
    return int(text) if isinstance(text, str) and text.isdecimal() else 0


def _compact(value: Any) -> bytes:
    # A copy: what orjson returns keeps the buffer that it was written to, 4 KB for 300 bytes.
    return bytes(memoryview(written(value)))


def _size(entry: Entry) -> int:
    return len(entry.body) + (len(entry.status) if entry.status is not None else 0)
