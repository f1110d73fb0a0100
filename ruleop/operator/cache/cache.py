"""The objects and kinds of the cluster, kept by watches.

All controllers share one cache. Children come from stores that select ruleop's label, observed objects from stores for
the rules' `observe`. To a plan, an object in none of these stores does not exist, until the API server answers a write
with a name conflict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.kubernetes.kinds import GroupKind, Kind, Object, ObjectKey
from ruleop.operator.cache.cache_view import CacheView, WatchedShare
from ruleop.operator.cache.informers import Informer, InformerSnapshot
from ruleop.operator.wire.watch.store import StoreEntry, StoreState
from ruleop.planning.model.marks import PART_OF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ruleop.kubernetes.builtin.table import ResourceInfo
    from ruleop.operator.server_api import ServerApi
    from ruleop.operator.wire.watch.store import Store


# -- cache -------------------------------------------------------------------------------------------------------------


class Cache(CacheView[Informer]):
    def __init__(
        self, api: ServerApi, lookup: Callable[[Kind], ResourceInfo | None], *, namespaces: tuple[str, ...] = ()
    ) -> None:
        """`namespaces` are watched separately, because permissions may differ between them. Without any, one watch
        covers the whole cluster."""
        self.api = api
        self.lookup = lookup
        self.namespaces = namespaces
        self.share = WatchedShare()
        self.required: dict[GroupKind, tuple[Informer, ...]] = {}  # all that the rules of a watched kind need
        self.primary: dict[GroupKind, Informer] = {}
        # The watches of the same CRs: first that of the default version, then those of other versions that rules name.
        self.primaries: dict[GroupKind, tuple[Informer, ...]] = {}
        self.children_of = {}
        self.observed = {}
        self.patched_kinds = {}
        self.definitions, self.shapes, self.published = {}, {}, {}
        self._infos, self._states = {}, {}

    def invalidate(self) -> None:
        """Drops what was computed about kinds: discovery, a CRD or a store's state has changed."""
        self._infos, self._states = {}, {}  # new ones: a plan of the page, in another thread, may be adding to these

    def is_synced(self, kind: GroupKind) -> bool:
        """Whether each store that the rules of a watched kind need is synced, unserved or forbidden. A store is pending
        while it is listed again; an object that is missing from it then may exist."""
        required = self.required.get(kind)
        return required is not None and all(informer.state is not StoreState.PENDING for informer in required)

    # -- objects -------------------------------------------------------------------------------------------------------

    def resource(self, key: ObjectKey, version: str = "") -> Object | None:
        """A CR in this version of its kind; by default in the version in which all CRs of the kind are watched."""
        for informer in self.primaries.get(key.group_kind, ()):
            if not version or version == informer.need.kind.version:
                store = informer.store_for(key)
                return store.get(key) if store is not None else None
        return None

    def resources(self, kind: GroupKind) -> Iterable[tuple[ObjectKey, StoreEntry]]:
        """All CRs of a kind that this process watches."""
        informer = self.primary.get(kind)
        return informer.entries() if informer is not None else ()

    def parse(self, informer: Informer, key: ObjectKey, entry: StoreEntry) -> Object | None:
        store = informer.store_for(key)
        return store.parse(entry) if store is not None else None

    async def read_metadata(self, kind: Kind, key: ObjectKey) -> Object | None:
        return await self.api.read_metadata(kind, key)

    def child_informer(self, kind: GroupKind) -> Informer | None:
        """An informer for the children of a kind, a synced one if possible. The informer of each version holds all of
        them."""
        informers = self.children_of.get(kind, ())
        return next(
            (informer for informer in informers if informer.state is StoreState.SYNCED),
            informers[0] if informers else None,
        )

    # -- a plan in another thread --------------------------------------------------------------------------------------

    def snapshot(self, part_of: str) -> CacheSnapshot:
        """All that the plan of the CR with this label may read, as it is now."""
        return CacheSnapshot(self, part_of)

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
            if store is not None and store.state is StoreState.SYNCED:
                yield store


class CacheSnapshot(CacheView[InformerSnapshot]):
    """A cache as it was at one instant, for the plan of one CR."""

    def __init__(self, cache: Cache, part_of: str) -> None:
        def taken(informers: dict[GroupKind, list[Informer]]) -> dict[GroupKind, list[InformerSnapshot]]:
            return {kind: [each.snapshot(part_of) for each in found] for kind, found in informers.items()}

        self.lookup, self.namespaces, self.share = cache.lookup, cache.namespaces, cache.share
        self.children_of, self.observed = taken(cache.children_of), taken(cache.observed)
        self.patched_kinds = taken(cache.patched_kinds)
        self.definitions, self.shapes, self.published = (
            dict(cache.definitions),
            dict(cache.shapes),
            dict(cache.published),
        )
        self._infos, self._states = dict(cache._infos), dict(cache._states)  # noqa: SLF001 - a copy of it
