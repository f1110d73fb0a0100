"""The objects of one watch, as bytes.

A parsed object takes six times the memory of its JSON, so a store keeps JSON and parses on demand (15 us for 5 KB). An
object is kept in three pieces: `body`, without labels, status, resourceVersion, generation and managedFields (but for
those of children with `patch`), `labels` and `status`. Of many objects, body and status are compressed, but for those
that changed last: they are read, and change again.
Whether anything changed that a rule reads is then a comparison of bytes, exact and cheap: a status write, by ruleop or
another controller, leaves the body as it was. (Without the status subresource it changes the generation, so the
generation is not part of the body.)

It has two sources. The reflector passes on events in the server's order; `put` takes the server's response to a write
of ruleop, which is newer than the events of the watch so far. Of two versions of an object the newer one is kept,
whichever arrives first: nothing goes back in time. Neither does a deletion: an object that a live read showed to be
deleted (`remove`) stays deleted although the watch may still bring older versions of it, until the watch reports the
deletion.

What a label selects may be made by anybody, so a store can be more selective: the children's stores keep only objects
that name a custom resource as their owner.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson
import structlog

from ruleop.kubernetes.kinds import Object, ObjectKey, owners_of, parse_version
from ruleop.kubernetes.names import PART_OF_LABEL, PATCH_MANAGER
from ruleop.operator.wire.client.json_depth import dump_json
from ruleop.operator.wire.watch.packing import MARK, SAMPLES, Packing
from ruleop.planning.model.managers import managers_on, patch_entries
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import ItemsView, Iterator, Mapping

    from ruleop.kubernetes.kinds import GroupKind, Kind
    from ruleop.operator.wire.client.requests import ObjectSource

log = structlog.get_logger(__name__)

WARM: Final = 1 << 20
"""Bytes of objects, the last that changed, that are not compressed."""

MAX_KEPT = 128
MAX_KEPT_BYTES = 1 << 14
"""Parsed objects that are kept, of all kinds, and the size of the largest: a parsed object takes about ten times its
bytes, and the largest may be of 1.5 MB."""


class StoreState(Enum):
    """Whether the store is complete. A store that was synced once stays so while its watch is renewed."""

    PENDING = "pending"  # the first list is not complete
    SYNCED = "synced"
    UNSERVED = "unserved"  # the cluster does not serve the kind; the store is empty
    FORBIDDEN = "forbidden"  # a permission is missing; the store keeps its objects, which may be out of date


class EntryOrigin(Enum):
    """Where a change came from. It decides how urgent a reconcile is, never what it does."""

    LIST = "list"  # the first list, or one that followed a lost watch
    WATCH = "watch"
    WRITE = "write"  # ruleop's own, by `put`; the event of the watch is not a change any more
    READ = "read"  # a live read, or the response to a deletion, ahead of the watch


class StoreEntry(NamedTuple):
    """One version of an object. Immutable; `parsed` makes a new dict each time, without apiVersion and kind:
    `Store.get` adds them, and may give the same dict twice, which nobody changes."""

    uid: str
    version: int
    generation: int  # 0 for kinds that have none
    part_of: str  # the label by which a child names its CR
    packed: bytes  # the body
    packed_status: bytes | None
    packing: Packing | None = None  # None: neither is compressed
    labels: bytes = b""  # a selector is compared with them before anything else is parsed

    @property
    def body(self) -> bytes:
        return self.packed if self.packing is None else self.packing.unpack(self.packed)

    @property
    def status(self) -> bytes | None:
        status = self.packed_status
        return status if status is None or self.packing is None else self.packing.unpack(status)

    def has_body_of(self, other: StoreEntry) -> bool:
        """Bodies of the same packing are compared as they are."""
        return self.packed == other.packed or (self.packing is not other.packing and self.body == other.body)

    def equals(self, other: StoreEntry) -> bool:
        """Whether both are the same, although one may be compressed."""
        return (
            self[:4] == other[:4]
            and self.labels == other.labels
            and self.has_body_of(other)
            and self.status == other.status
        )

    def parsed_labels(self) -> dict[str, str]:
        return orjson.loads(self.labels) if self.labels else {}

    def parsed(self) -> dict[str, Any]:
        unpack = self.packing.unpack if self.packing is not None else bytes
        obj: dict[str, Any] = orjson.loads(unpack(self.packed))
        obj["metadata"]["resourceVersion"] = str(self.version)
        if self.labels:
            obj["metadata"]["labels"] = orjson.loads(self.labels)
        if self.generation:
            obj["metadata"]["generation"] = self.generation
        if self.packed_status is not None:
            obj["status"] = orjson.loads(unpack(self.packed_status))
        return obj


def _parsed(kind: Kind, entry: StoreEntry) -> Object:
    return {"apiVersion": kind.api_version, "kind": kind.kind, **entry.parsed()}


_kept = lru_cache(maxsize=MAX_KEPT)(_parsed)
"""A pass asks several times for the same few objects."""


def parse(kind: Kind, entry: StoreEntry) -> Object:
    """The object, which nobody changes. From any thread."""
    size = len(entry.packed) + len(entry.packed_status or b"")
    return (_kept if size <= MAX_KEPT_BYTES else _parsed)(kind, entry)


class StoreChange(NamedTuple):
    """An object was added (`old` is None), changed, or deleted (`new` is None). A new uid under an old name is two
    changes."""

    key: ObjectKey
    old: StoreEntry | None
    new: StoreEntry | None
    origin: EntryOrigin

    @property
    def outside_status(self) -> bool:
        """Something else than status, resourceVersion, generation and managedFields of others changed."""
        old, new = self.old, self.new
        return old is None or new is None or not old.has_body_of(new) or old.labels != new.labels


class _Ended(NamedTuple):
    """An object that was removed before the watch reported it. Events of earlier versions must not bring it back."""

    uid: str
    version: int  # of the removed entry
    last: int | None  # the last version of this uid to ignore; None: all of them

    def covers(self, entry: StoreEntry) -> bool:
        return entry.version <= self.version or (
            entry.uid == self.uid and (self.last is None or entry.version <= self.last)
        )


Listener = Callable[[StoreChange], None]
Selection = Callable[["ObjectKey", "Mapping[str, Any]"], bool]
"""Whether an object belongs in a store, by its key and metadata: more than a selector of the API server can say."""
Belief = Callable[["ObjectKey", str], bool]
"""Whether the operator itself may have written to an object by a field manager of this name."""
_FEW: Final = 16
_MANAGER: Final = f'"{PATCH_MANAGER}'.encode()


@dataclass(slots=True)
class StoreSnapshot:
    """A store as it was at one instant, for the plan of one CR. Entries are immutable, and the store copies a mapping
    that a snapshot has before it changes the mapping."""

    source: ObjectSource
    state: StoreState
    _entries: Mapping[ObjectKey, StoreEntry]
    _children: tuple[ObjectKey, ...]  # of the CR
    _patched: tuple[ObjectKey, ...]
    _owned: Mapping[str, dict[ObjectKey, None]] | None

    def entry(self, key: ObjectKey) -> StoreEntry | None:
        return self._entries.get(key)

    def get(self, key: ObjectKey) -> Object | None:
        entry = self._entries.get(key)
        return self.parse(entry) if entry is not None else None

    def parse(self, entry: StoreEntry) -> Object:
        return parse(self.source.resource.kind, entry)

    def select_keys(self, namespace: str | None = None) -> list[ObjectKey]:
        return sorted(key for key in self._entries if namespace in {None, key.namespace})

    def owned_keys(self, uid: str, namespace: str | None = None) -> list[ObjectKey]:
        if self._owned is None:  # nobody has asked yet
            owned = {key: None for key, entry in self._entries.items() if uid in _owners(entry)}
        else:
            owned = self._owned.get(uid, {})
        return sorted(key for key in owned if namespace in {None, key.namespace})

    def children(self, part_of: str) -> Iterator[Object]:  # noqa: ARG002 - those of one CR
        for key in self._children:
            yield self.parse(self._entries[key])

    def patched(self, part_of: str) -> list[Object]:  # noqa: ARG002
        return [self.parse(self._entries[key]) for key in self._patched]


@dataclass(frozen=True, slots=True)
class Statistics:
    objects: int
    bytes: int
    version: int
    changes: int
    state: StoreState
    problem: str


class Store:
    """Owned by one event loop. Listeners are called at once, in the order of the changes, and see the store as it is
    after the change."""

    def __init__(
        self,
        source: ObjectSource,
        selects: Selection = lambda _key, _metadata: True,
        believes: Belief = lambda _key, _manager: True,
    ) -> None:
        """Of an object that `selects` refuses, nothing is kept, and of managedFields only what is about managers of
        ruleop that it `believes`."""
        self.source = source
        self.selects, self.believes = selects, believes
        self.has_unbelieved = False  # it left out a manager
        self.kind: Kind = source.resource.kind
        self.group_kind: GroupKind = self.kind.versionless
        self.state = StoreState.PENDING
        self.problem = ""  # why it is not synced, or its watch not renewed
        self.version = 0  # the store has all changes up to here
        self._entries: dict[ObjectKey, StoreEntry] = {}
        self._children: dict[str, tuple[ObjectKey, ...] | dict[ObjectKey, None]] = {}
        self._namespaces: dict[str, dict[ObjectKey, None]] | None = None  # once somebody asks
        self._patched: dict[str, dict[ObjectKey, None]] = {}  # by the label of the CR
        self._owned: dict[str, dict[ObjectKey, None]] | None = None  # by the uid of an owner, once somebody asks
        self._listed: dict[ObjectKey, StoreEntry] | None = None
        self._ended: dict[ObjectKey, _Ended] = {}
        self._unreadable: dict[ObjectKey, None] = {}  # those that were logged
        self._listeners: list[Listener] = []
        self._state_listeners: list[Callable[[Store], None]] = []
        self.listener_failures = 0
        self._bytes = 0
        self._changes = 0
        self._packing: Packing | None = None
        self._warm: dict[ObjectKey, int] = {}  # bytes of objects that are not compressed yet, the last changed last
        self._warm_bytes = 0
        self._is_shared = False  # a snapshot has the mappings of entries and owners

    # For readers

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def entries(self) -> ItemsView[ObjectKey, StoreEntry]:
        return self._entries.items()

    def entry(self, key: ObjectKey) -> StoreEntry | None:
        return self._entries.get(key)

    def get(self, key: ObjectKey) -> Object | None:
        entry = self._entries.get(key)
        return self.parse(entry) if entry is not None else None

    def parse(self, entry: StoreEntry) -> Object:
        return parse(self.kind, entry)

    def select_keys(self, namespace: str | None = None) -> list[ObjectKey]:
        """All keys, or those of one namespace; sorted. Objects are indexed by namespace from the first call with one
        on."""
        if namespace is None:
            return sorted(self._entries)
        if self._namespaces is None:
            self._namespaces = {}
            for key in self._entries:
                self._namespaces.setdefault(key.namespace, {})[key] = None
        return sorted(self._namespaces.get(namespace, ()))

    def owned_keys(self, uid: str, namespace: str | None = None) -> list[ObjectKey]:
        """The keys of the objects of an owner, sorted. Objects are indexed by owner from the first call on."""
        if self._owned is None:
            self._owned = {}
            for key, entry in self._entries.items():
                self._index_owners(key, None, entry)
        return sorted(key for key in self._owned.get(uid, ()) if namespace in {None, key.namespace})

    def select(self, namespace: str | None = None) -> list[Object]:
        """All objects, or those of one namespace; by namespace and name."""
        return [self.parse(self._entries[key]) for key in self.select_keys(namespace)]

    def children(self, part_of: str) -> Iterator[Object]:
        """The objects with this label, by namespace and name."""
        for key in sorted(self._children.get(part_of, ())):
            yield self.parse(self._entries[key])

    def patched(self, part_of: str) -> list[Object]:
        """The objects with fields that a child of this CR has set, by namespace and name."""
        return [self.parse(self._entries[key]) for key in sorted(self._patched.get(part_of, ()))]

    def patches(self, part_of: str) -> bool:
        """Whether there are such objects."""
        return part_of in self._patched

    def snapshot(self, part_of: str) -> StoreSnapshot:
        """The objects as they are now, for a plan of the CR with this label in another thread."""
        self._is_shared = True
        children, patched = self._children.get(part_of, ()), self._patched.get(part_of, ())
        return StoreSnapshot(
            self.source, self.state, self._entries, tuple(sorted(children)), tuple(sorted(patched)), self._owned
        )

    def is_at_least(self, version: str | int, key: ObjectKey | None = None) -> bool:
        """Whether the store has all changes up to `version`; with a key, all changes of that object.

        resourceVersions of a kind are ordered numbers (KEP-5504).
        """
        needed = parse_version(version) if isinstance(version, str) else version
        if self.version >= needed:
            return True
        entry = self._entries.get(key) if key is not None else None
        return entry is not None and entry.version >= needed

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

    # For the reflector

    def set_state(self, state: StoreState, problem: str = "") -> None:
        self.problem = problem
        if state is StoreState.UNSERVED and self._entries:
            for key in list(self._entries):
                self._remove(key, EntryOrigin.LIST)  # deleted with their kind
        if state is not self.state:
            self.state = state
            for listener in tuple(self._state_listeners):
                listener(self)

    def set_problem(self, problem: str) -> None:
        self.problem = problem

    def begin_list(self) -> None:
        """Objects that are listed from now on are collected until the list is complete."""
        self._listed = {}

    def list_object(self, obj: dict[str, Any]) -> None:
        assert self._listed is not None, "begin_list comes first"
        key = self._key(obj["metadata"])
        if not self.selects(key, obj["metadata"]):
            return
        entry = self.entry_of(key, obj)
        known = self._entries.get(key)
        if known is not None and known.equals(entry):
            self._listed[key] = known  # one copy is enough
            return
        self._listed[key] = self._packed(entry)
        if self._packing is None and len(self._listed) >= SAMPLES:
            self._packing = _packing_of(self._listed)

    def remove_listed(self, obj: dict[str, Any]) -> None:
        """The object was deleted while the list was being received."""
        assert self._listed is not None, "begin_list comes first"
        self._listed.pop(self._key(obj["metadata"]), None)

    def end_list(self, version: int) -> None:
        """Replaces all objects by the listed ones. An object that is missing from the list, and not newer than it, was
        deleted."""
        listed, self._listed = self._listed, None
        assert listed is not None, "begin_list comes first"
        self.version = max(self.version, version)
        for key, entry in list(self._entries.items()):
            if key not in listed and entry.version <= version:
                self._remove(key, EntryOrigin.LIST)
        # An older list does not show the deletion; the watch that follows will report it.
        for key in [key for key, ended in self._ended.items() if key not in listed and ended.version <= version]:
            del self._ended[key]
        for key, entry in listed.items():
            self._set(key, entry, EntryOrigin.LIST)
        self.set_state(StoreState.SYNCED)

    def apply(self, obj: dict[str, Any]) -> None:
        metadata = obj["metadata"]
        key = self._key(metadata)
        known = self._entries.get(key)
        if known is not None and known.version and known.version == parse_version(metadata.get("resourceVersion")):
            # The event of ruleop's own write, the most frequent one while CRs are created: nothing to do.
            self.version = max(self.version, known.version)
            return
        if not self.selects(key, metadata):
            self.delete(obj)
            return
        entry = self.entry_of(key, obj)
        self.version = max(self.version, entry.version)
        self._set(key, entry, EntryOrigin.WATCH)

    def delete(self, obj: dict[str, Any]) -> None:
        metadata = obj["metadata"]
        version = parse_version(metadata.get("resourceVersion"))
        self.version = max(self.version, version)
        key = self._key(metadata)
        self._unreadable.pop(key, None)
        if (ended := self._ended.get(key)) is not None and ended.uid == metadata.get("uid"):
            del self._ended[key]
        known = self._entries.get(key)
        # A deletion has a newer version than the object; an older one concerns an earlier object of this name.
        if known is not None and (known.version <= version or not version):
            self._remove(key, EntryOrigin.WATCH)

    def skip_unreadable(self, obj: dict[str, Any], problem: str) -> None:
        """The object cannot be parsed; of `obj` only the metadata is valid. A known version stays, because it is not
        deleted."""
        metadata = obj["metadata"]
        key, uid = self._key(metadata), metadata.get("uid")
        if key not in self._unreadable:
            self._unreadable[key] = None
            log.warning("object cannot be read; ignored until it changes", object=str(key), error=problem)
        known = self._entries.get(key)
        if self._listed is not None:
            if known is not None and known.uid == uid:
                self._listed.setdefault(key, known)
            return
        self.version = max(self.version, parse_version(metadata.get("resourceVersion")))
        if known is not None and known.uid != uid:
            self._remove(key, EntryOrigin.WATCH)

    def bookmark(self, version: int) -> None:
        self.version = max(self.version, version)

    # For ruleop's own writes

    def put(self, obj: Mapping[str, Any]) -> bool:
        """Stores the server's response to a write. False if the watch has brought that version already, or the store
        does not select the object.

        Listeners are called with `Origin.WRITE`: others than the writer may wait for this object.
        """
        metadata = obj["metadata"]
        key, version = self._key(metadata), parse_version(metadata.get("resourceVersion"))
        known = self._entries.get(key)
        # The store has all changes up to self.version: if the object is missing, it was deleted since.
        if version <= self.version or (known is not None and known.version >= version):
            return False
        if not self.selects(key, metadata):
            return False
        entry = self.entry_of(key, {**obj, "metadata": dict(metadata)})
        return self._set(key, entry, EntryOrigin.WRITE)

    def remove(self, key: ObjectKey, uid: str, version: str = "") -> None:
        """A live read, or the response to a write, shows that the object left the collection. With a version: up to
        there (it lost ruleop's label, and may get it back). Without: it was deleted, and its uid never comes back."""
        last = parse_version(version) if version else None
        known = self._entries.get(key)
        # A missing object was removed by the watch already, or the watch will report both its creation and its
        # deletion.
        if known is not None and known.uid == uid and (last is None or known.version <= last):
            self._ended[key] = _Ended(uid, known.version, last)
            self._remove(key, EntryOrigin.READ)

    def entry_of(self, key: ObjectKey, obj: dict[str, Any]) -> StoreEntry:
        """Splits the object into an entry. Modifies `obj`."""
        metadata = obj["metadata"]
        managed = metadata.pop("managedFields", None) or ()
        if any(str(each.get("manager")).startswith(PATCH_MANAGER) for each in managed):
            entries = patch_entries(managed)
            believed = [each for each in entries if self.believes(key, each["manager"])]
            self.has_unbelieved = self.has_unbelieved or len(believed) < len(entries)
            if believed:
                metadata["managedFields"] = believed
        version = parse_version(metadata.pop("resourceVersion", None))
        generation = metadata.pop("generation", None) or 0
        obj.pop("apiVersion", None)  # the same for all objects, and missing in a list
        obj.pop("kind", None)
        if self.source.metadata_only:
            obj = {"metadata": metadata}
        status = obj.pop("status", None)
        labels = metadata.pop("labels", None)
        part_of = labels.get(PART_OF_LABEL) or "" if labels else ""
        kept = None if status is None else _compact(dump_json(status))
        if self._unreadable:
            self._unreadable.pop(key, None)
        packed_labels = _compact(dump_json(labels)) if labels else b""
        uid = metadata.get("uid") or ""
        return StoreEntry(uid, version, generation, part_of, _compact(dump_json(obj)), kept, None, packed_labels)

    def _packed(self, entry: StoreEntry) -> StoreEntry:
        """The entry, compressed; as it is while there are few objects, or if `_patchers` has to read it."""
        packing, status = self._packing, entry.packed_status
        if packing is None or _MANAGER in entry.packed:
            return entry
        packed_status = packing.pack(status) if status is not None else None
        return entry._replace(packed=packing.pack(entry.packed), packed_status=packed_status, packing=packing)

    def _keep_warm(self, key: ObjectKey, size: int) -> None:
        """The object has changed. Compresses those that changed longest ago."""
        self._warm[key] = size
        self._warm_bytes += size
        while self._warm_bytes > WARM:
            cold = next(iter(self._warm))
            self._warm_bytes -= self._warm.pop(cold)
            entry = self._entries[cold]
            if self._packing is None and len(self._entries) >= SAMPLES:
                self._packing = _packing_of(self._entries)
            self._entries[cold] = packed = self._packed(entry)
            self._bytes += _size(packed) - _size(entry)

    def _unshare(self) -> None:
        """Leaves the mappings to the snapshots that have them."""
        if self._is_shared:
            self._is_shared, self._entries = False, self._entries.copy()
            if self._owned is not None:
                self._owned = {uid: keys.copy() for uid, keys in self._owned.items()}

    def _key(self, metadata: Mapping[str, Any]) -> ObjectKey:
        return ObjectKey(self.kind.group, self.kind.kind, sys.intern(metadata.get("namespace") or ""), metadata["name"])

    # Changes

    def _set(self, key: ObjectKey, entry: StoreEntry, origin: EntryOrigin) -> bool:
        """Whether the store changed."""
        if self._ended and (ended := self._ended.get(key)) is not None:
            if ended.covers(entry):
                return False
            del self._ended[key]  # this version is newer than the deletion
        old = self._entries.get(key)
        if old is not None:
            # At the same version, a custom resource reads differently after a change of its CRD.
            if old.version > entry.version > 0 or (old.version == entry.version and old.equals(entry)):
                return False
            if old.uid != entry.uid:
                self._remove(key, origin)
                old = None
        self._unshare()
        self._entries[key] = entry
        if self._patched or _MANAGER in entry.packed:
            self._index_patches(key, old, entry)
        if self._owned is not None:
            self._index_owners(key, old, entry)
        self._bytes += (size := _size(entry)) - (_size(old) if old is not None else 0)
        self._warm_bytes -= self._warm.pop(key, 0)
        if entry.packing is None:
            self._keep_warm(key, size)
        if old is None and self._namespaces is not None:
            self._namespaces.setdefault(key.namespace, {})[key] = None
        if old is None or old.part_of != entry.part_of:
            if old is not None:
                self._disown(old.part_of, key)
            if entry.part_of:
                self._own(entry.part_of, key)
        self._notify(StoreChange(key, old, entry, origin))
        return True

    def _remove(self, key: ObjectKey, origin: EntryOrigin) -> None:
        self._unshare()
        old = self._entries.pop(key)
        self._bytes -= _size(old)
        self._warm_bytes -= self._warm.pop(key, 0)
        if self._namespaces is not None:
            in_namespace = self._namespaces[key.namespace]
            del in_namespace[key]
            if not in_namespace:
                del self._namespaces[key.namespace]
        self._disown(old.part_of, key)
        if self._patched:
            self._index_patches(key, old, None)
        if self._owned is not None:
            self._index_owners(key, old, None)
        self._notify(StoreChange(key, old, None, origin))

    def _index_patches(self, key: ObjectKey, old: StoreEntry | None, new: StoreEntry | None) -> None:
        for part_of in _patchers(old):
            self._patched[part_of].pop(key, None)
            if not self._patched[part_of]:
                del self._patched[part_of]
        for part_of in _patchers(new):
            self._patched.setdefault(part_of, {})[key] = None

    def _index_owners(self, key: ObjectKey, old: StoreEntry | None, new: StoreEntry | None) -> None:
        assert self._owned is not None
        if old is not None and new is not None and old.has_body_of(new):
            return
        for uid in _owners(old):
            self._owned[uid].pop(key, None)
            if not self._owned[uid]:
                del self._owned[uid]
        for uid in _owners(new):
            self._owned.setdefault(uid, {})[key] = None

    def _own(self, part_of: str, key: ObjectKey) -> None:
        """Adds a child. A tuple takes less memory, a dict less time if there are many."""
        keys = self._children.get(part_of, ())
        if isinstance(keys, dict):
            keys[key] = None
        elif len(keys) < _FEW:
            self._children[part_of] = (*keys, key)
        else:
            self._children[part_of] = dict.fromkeys((*keys, key))

    def _disown(self, part_of: str, key: ObjectKey) -> None:
        if not part_of:
            return
        keys = self._children[part_of]
        if isinstance(keys, dict):
            del keys[key]
        else:
            keys = self._children[part_of] = tuple(other for other in keys if other != key)
        if not keys:
            del self._children[part_of]

    def _notify(self, change: StoreChange) -> None:
        self._changes += 1
        for listener in tuple(self._listeners):
            try:
                listener(change)
            except Exception:
                # The other listeners are called nevertheless: a change is not repeated.
                self.listener_failures += 1
                log.exception("store listener failed: internal error", change=str(change.key))


def _packing_of(samples: Mapping[ObjectKey, StoreEntry]) -> Packing:
    """A packing with some of these objects as its dictionary."""
    chosen = islice(samples.values(), SAMPLES)
    return Packing(each.body + (each.status or b"") for each in chosen)


def _patchers(entry: StoreEntry | None) -> set[str]:
    """The labels of the CRs with fields on the object."""
    if entry is None or entry.packed.startswith(MARK) or _MANAGER not in entry.packed:
        return set()
    obj = {"metadata": orjson.loads(entry.packed)["metadata"]}
    return {each.part_of for each in managers_on(obj)}


def _owners(entry: StoreEntry | None) -> frozenset[str]:
    """The uids of the owners of the object."""
    body = entry.body if entry is not None else b""
    return owners_of(orjson.loads(body)["metadata"]) if b'"ownerReferences"' in body else frozenset()


def _compact(data: bytes) -> bytes:
    # A copy: the result of orjson keeps its whole buffer, 4 KB for 300 bytes.
    return bytes(memoryview(data))


def _size(entry: StoreEntry) -> int:
    return len(entry.packed) + len(entry.labels) + len(entry.packed_status or b"")
