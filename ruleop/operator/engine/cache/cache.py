"""The cluster as planning reads it: objects from the stores, and for each kind its schema and whether it is served.

All controllers share one cache. Children come from stores that select ruleop's label, observed objects from stores for
the rules' `observe`. To a plan, an object in none of these stores does not exist, until the API server answers a write
with a name conflict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.core.kinds import GroupKind, Kind, Object, ObjectKey
from ruleop.core.planning import KindInfo, Query, Served
from ruleop.core.planning.model.marks import PART_OF
from ruleop.operator.engine.cache.kind_infos import Published, kind_info
from ruleop.operator.engine.cache.share import Share
from ruleop.operator.engine.cache.watch_specs import child_need, observe_need
from ruleop.operator.kube.watch.store import Entry, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ruleop.core.planning import Kinds
    from ruleop.core.rules import Observe
    from ruleop.core.schema.builtin.table import ResourceInfo
    from ruleop.core.schema.crd.crds import CustomResourceDefinition
    from ruleop.core.schema.shape import Shape
    from ruleop.operator.engine.api.server_api import ServerApi
    from ruleop.operator.engine.cache.informers import Informer, WatchSpec
    from ruleop.operator.kube.watch.store import Store

_SERVED = {
    State.SYNCED: Served.SYNCED,
    State.FORBIDDEN: Served.FORBIDDEN,
    State.UNSERVED: Served.UNSERVED,
    State.PENDING: Served.PENDING,
}


class Cache:
    def __init__(
        self, api: ServerApi, lookup: Callable[[Kind], ResourceInfo | None], *, namespaces: tuple[str, ...] = ()
    ) -> None:
        """`namespaces` are watched separately, because permissions may differ between them. Without any, one watch
        covers the whole cluster."""
        self.api = api
        self.lookup = lookup
        self.namespaces = namespaces
        self.share = Share()
        self.required: dict[GroupKind, tuple[Informer, ...]] = {}  # all that the rules of a watched kind need
        self.primary: dict[GroupKind, Informer] = {}
        # The watches of the same CRs: first that of the default version, then those of other versions that rules name.
        self.primaries: dict[GroupKind, tuple[Informer, ...]] = {}
        self.children_of: dict[GroupKind, list[Informer]] = {}  # one per version that rules write
        self.observed: dict[GroupKind, list[Informer]] = {}
        self.patched_kinds: dict[GroupKind, list[Informer]] = {}  # of `observed`, those whose objects rules patch
        self.definitions: dict[GroupKind, CustomResourceDefinition] = {}
        self.shapes: dict[Kind, Shape] = {}
        self.published: dict[Kind, Mapping[str, Any]] = {}  # schemas of kinds whose definition cannot be read
        self._infos: dict[tuple[Kind, str], KindInfo] = {}
        self._states: dict[tuple[WatchSpec, str], Served] = {}

    def invalidate(self) -> None:
        """Drops what was computed about kinds: discovery, a CRD or a store's state has changed."""
        self._infos.clear()
        self._states.clear()

    def is_synced(self, kind: GroupKind) -> bool:
        """Whether each store that the rules of a watched kind need is synced, unserved or forbidden. A store is pending
        while it is listed again; an object that is missing from it then may exist."""
        required = self.required.get(kind)
        return required is not None and all(informer.state is not State.PENDING for informer in required)

    # -- objects -------------------------------------------------------------------------------------------------------

    def resource(self, key: ObjectKey, version: str = "") -> Object | None:
        """A CR in this version of its kind; by default in the version in which all CRs of the kind are watched."""
        for informer in self.primaries.get(key.group_kind, ()):
            if not version or version == informer.need.kind.version:
                store = informer.store_for(key)
                return store.get(key) if store is not None else None
        return None

    def resources(self, kind: GroupKind) -> Iterable[tuple[ObjectKey, Entry]]:
        """All CRs of a kind that this process watches."""
        informer = self.primary.get(kind)
        return informer.entries() if informer is not None else ()

    def get(self, key: ObjectKey, *, version: str = "", partial: bool = False) -> Object | None:
        offered = [
            informer.store_for(key)
            for informer in self._informers_of(key.group_kind)
            if _serves(informer, version, partial=partial)
        ]
        for store in _synced_or_all([store for store in offered if store is not None]):
            if (found := store.get(key)) is not None:
                return found
        return None

    def children(self, part_of: str) -> Iterable[Object]:
        for informers in self.children_of.values():
            for informer in informers:
                for watcher in informer.watchers:
                    yield from watcher.store.children(part_of)

    def patched(self, part_of: str) -> Iterable[Object]:
        found: dict[ObjectKey, Object] = {}
        for informers in self.patched_kinds.values():
            for informer in informers:
                for store in informer.stores():
                    found |= {ObjectKey.of(obj): obj for obj in store.patched(part_of)}
        return [found[key] for key in sorted(found)]

    def select(self, query: Query) -> Iterator[Object]:
        informers = [
            informer
            for informer in self.observed.get(query.kind, ())
            if _serves(informer, query.version, partial=query.partial)
        ]
        stores = [
            store
            for informer in informers
            for store in informer.stores()
            if query.namespace is None or store.source.namespace in {"", query.namespace}
        ]
        holders: dict[ObjectKey, Store] = {}
        for store in _synced_or_all(stores):
            keys = store.owned_keys(query.owner, query.namespace) if query.owner else store.select_keys(query.namespace)
            holders |= dict.fromkeys(keys, store)
        for key in sorted(holders):
            store = holders[key]
            if (entry := store.entry(key)) is not None and query.matches(entry.parsed_labels()):
                yield store.parse(entry)

    def parse(self, informer: Informer, key: ObjectKey, entry: Entry) -> Object | None:
        store = informer.store_for(key)
        return store.parse(entry) if store is not None else None

    async def read_metadata(self, kind: Kind, key: ObjectKey) -> Object | None:
        return await self.api.read_metadata(kind, key)

    def child_informer(self, kind: GroupKind) -> Informer | None:
        """An informer for the children of a kind, a synced one if possible. The informer of each version holds all of
        them."""
        informers = self.children_of.get(kind, ())
        return next(
            (informer for informer in informers if informer.state is State.SYNCED), informers[0] if informers else None
        )

    def _informers_of(self, kind: GroupKind) -> Iterable[Informer]:
        yield from self.children_of.get(kind, ())
        yield from self.observed.get(kind, ())

    # -- responses to ruleop's own writes ------------------------------------------------------------------------------

    def put(self, obj: Object) -> bool:
        """Puts an object into each store that selects it. False if none of them is for CRs or children: the object
        belongs to somebody else, or has lost ruleop's label or its owner."""
        key, kind = ObjectKey.of(obj), Kind.of(obj)
        group_kind = kind.versionless
        labelled = PART_OF in ((obj.get("metadata") or {}).get("labels") or {})
        holders = [*self.primaries.get(group_kind, ()), *(self.children_of.get(group_kind, ()) if labelled else ())]
        held = False
        for informer in (*holders, *self.observed.get(group_kind, ())):
            store = informer.store_for(key) if informer.need.kind == kind else None
            if (
                store is not None
                and store.selects(key, obj["metadata"])
                and (key in store or (informer.need.labels in {"", PART_OF} and not informer.need.fields))
            ):
                store.put(obj)
                held = held or informer in holders
        return held

    def remove(self, key: ObjectKey, uid: str, version: str = "") -> None:
        """Removes an object with this uid, which a live read did not find. With a version, the read found it without
        ruleop's label, and only the children's stores remove it."""
        gone, kind = not version, key.group_kind
        informers = [
            *self.children_of.get(kind, ()),
            *((*self.primaries.get(kind, ()), *self.observed.get(kind, ())) if gone else ()),
        ]
        for informer in informers:
            store = informer.store_for(key)
            if store is not None:
                store.remove(key, uid, version)

    def is_at_least(self, key: ObjectKey, version: str) -> bool:
        """Whether the object's stores hold this version or a later one, or know that it was deleted since. True if no
        store is responsible for the object."""
        return all(store.is_at_least(version, key) for store in self._stores_of(key))

    def has_seen(self, key: ObjectKey, version: str) -> bool:
        """Whether the watches of the object's stores have reached this version. From then on the stores cannot be
        older."""
        return all(store.is_at_least(version) for store in self._stores_of(key))

    def _stores_of(self, key: ObjectKey) -> Iterable[Store]:
        """The synced stores that hold the object if it exists and is a CR or a child."""
        for informer in (*self.primaries.get(key.group_kind, ()), *self.children_of.get(key.group_kind, ())):
            store = informer.store_for(key)
            if store is not None and store.state is State.SYNCED:
                yield store

    # -- kinds ---------------------------------------------------------------------------------------------------------

    def info(self, kind: Kind, namespace: str = "") -> KindInfo:
        """The information about a kind. With a namespace, its state is that of the watch of this namespace."""
        found = self._infos.get((kind, namespace))
        if found is None:
            found = self._infos[kind, namespace] = self._build_info(kind, namespace)
        return found

    def state_of(self, observe: Observe, namespace: str = "") -> Served:
        return self._state(observe_need(observe), namespace)

    def seen_from(self, namespace: str) -> Kinds:
        """The kinds as a CR in this namespace sees them: permissions that are missing in other namespaces concern only
        CRs with children there."""
        return _NamespaceView(self, namespace) if self.namespaces else self

    def _build_info(self, kind: Kind, namespace: str) -> KindInfo:
        need = self.share.of(child_need(kind))
        return kind_info(
            kind,
            self.lookup(kind),
            self.definitions.get(kind.versionless),
            Published(self.shapes.get(kind), self.published.get(kind)),
            state=self._state(need, namespace),
            places={each: self._state(need, each) for each in self.namespaces} or None,
        )

    def _state(self, need: WatchSpec, namespace: str) -> Served:
        """The state of the watch for this need. Watches of the same kind for other needs, or in other versions, do not
        count."""
        found = self._states.get((need, namespace))
        if found is None:
            found = self._states[need, namespace] = self._read_state(need, namespace)
        return found

    def _read_state(self, need: WatchSpec, namespace: str) -> Served:
        if self.lookup(need.kind) is None:
            return Served.UNSERVED
        informer = next(
            (informer for informer in self._informers_of(need.kind.versionless) if informer.need == need), None
        )
        return _SERVED[informer.state_in(namespace)] if informer is not None else Served.PENDING


class _NamespaceView:
    def __init__(self, cache: Cache, namespace: str) -> None:
        self.cache, self.namespace = cache, namespace

    def info(self, kind: Kind) -> KindInfo:
        return self.cache.info(kind, self.namespace)

    def state_of(self, observe: Observe) -> Served:
        return self.cache.state_of(observe, "" if observe.all_namespaces else self.namespace)


def _serves(informer: Informer, version: str, *, partial: bool) -> bool:
    return version in {"", informer.need.kind.version} and (partial or not informer.need.metadata_only)


def _synced_or_all(stores: list[Store]) -> list[Store]:
    """The synced stores; if there are none, all of them, with the objects that they held last."""
    return [store for store in stores if store.state is State.SYNCED] or stores
