"""The informers: one for each `WatchSpec` that the rules need, with one store per watched namespace.

A kind that the cluster does not serve yet is not an error: its informer has the state `UNSERVED` and no watch. Once
the kind is served, or its scope changes, the informer gets a new watch.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ruleop.kubernetes.buckets import BUCKETS, bucket_of, hash_range
from ruleop.kubernetes.names import BUCKET_LABEL
from ruleop.kubernetes.permissions import FOLLOW
from ruleop.operator.wire.client.requests import ObjectSource
from ruleop.operator.wire.watch.store import Store, StoreChange, StoreEntry, StoreSnapshot, StoreState
from ruleop.operator.wire.watch.watcher import Watcher
from ruleop.planning.model.managers import FieldsManager
from ruleop.planning.model.marks import names_an_owner, owner_uid
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ruleop.kubernetes.builtin.table import ResourceInfo
    from ruleop.kubernetes.kinds import GroupKind, Kind, ObjectKey
    from ruleop.operator.wire.client.client import Client
    from ruleop.operator.wire.watch.store import Belief, Selection
    from ruleop.planning.model.proofs import Proofs

Held = TypeVar("Held", Store, StoreSnapshot)

WORST_FIRST = (StoreState.PENDING, StoreState.FORBIDDEN, StoreState.UNSERVED, StoreState.SYNCED)


@dataclass(frozen=True, slots=True)
class WatchSpec:
    """The kind to watch, and the part of its objects that the rules read."""

    kind: Kind
    labels: str = ""
    fields: str = ""
    namespace: str = ""  # '': all namespaces of the operator
    metadata_only: bool = False
    children: bool = False  # keep only objects that name a CR as their owner
    buckets: frozenset[int] | None = None  # keep only CRs in these, or children of such CRs; None: all


def selection(need: WatchSpec, own: frozenset[ObjectKey], proofs: Callable[[], Proofs | None]) -> Selection:
    """The objects that a store keeps: not these of the operator's own, and of children those that name an owner."""

    def selects(key: ObjectKey, metadata: Mapping[str, Any]) -> bool:
        if key in own or (need.children and not names_an_owner(metadata, key, proofs())):
            return False
        if need.buckets is None:
            return True
        return bucket_of(owner_uid(metadata) if need.children else metadata.get("uid") or "") in need.buckets

    return selects


def belief(proofs: Callable[[], Proofs | None]) -> Belief:
    """The field managers that a store keeps: those whose proof holds."""

    def believes(key: ObjectKey, name: str) -> bool:
        manager = FieldsManager.named(name)
        return manager is not None and manager.is_believed(key, proofs())

    return believes


class _Stores(Generic[Held]):
    """The stores of one `WatchSpec`, one per watched namespace."""

    need: WatchSpec

    def stores(self) -> Sequence[Held]:
        raise NotImplementedError

    @property
    def state(self) -> StoreState:
        if len(stores := self.stores()) == 1:
            return stores[0].state
        states = {store.state for store in stores}
        return next((state for state in WORST_FIRST if state in states), StoreState.UNSERVED)

    def state_in(self, namespace: str) -> StoreState:
        """The state of the watch of this namespace; without one, the worst state of all watches."""
        for store in self.stores() if namespace else ():
            if store.source.namespace == namespace:
                return store.state
        return self.state

    def store_for(self, key: ObjectKey) -> Held | None:
        """The store that is responsible for an object, whether it exists or not."""
        for store in self.stores():
            if store.source.namespace in {"", key.namespace}:
                return store
        return None


class Informer(_Stores[Store]):
    """The watches of one `WatchSpec`, each with its store."""

    def __init__(self, need: WatchSpec) -> None:
        self.need = need
        self.resource: ResourceInfo | None = None
        self.watchers: list[Watcher] = []

    def stores(self) -> list[Store]:
        return [watcher.store for watcher in self.watchers]

    @property
    def problem(self) -> str:
        return next((watcher.store.problem for watcher in self.watchers if watcher.store.problem), "")

    def entries(self) -> Iterator[tuple[ObjectKey, StoreEntry]]:
        for store in self.stores():
            yield from store.entries()

    def snapshot(self, part_of: str) -> InformerSnapshot:
        """The stores as they are now, for a plan of the CR with this label in another thread."""
        return InformerSnapshot(self.need, [store.snapshot(part_of) for store in self.stores()])


class InformerSnapshot(_Stores[StoreSnapshot]):
    """The stores of an informer as they were at one instant."""

    def __init__(self, need: WatchSpec, stores: list[StoreSnapshot]) -> None:
        self.need, self._stores = need, stores

    def stores(self) -> list[StoreSnapshot]:
        return self._stores


class Informers:
    """All informers. `changed` is called for each change of an object, `state_changed` when the state of an informer
    changes. `needed` returns the verbs that the rules need on a kind: a watch that is denied logs them, because it is
    the first request that a missing permission affects."""

    changed: Callable[[Informer, StoreChange], None]
    state_changed: Callable[[Informer], None]
    needed: Callable[[GroupKind], Iterable[str]]

    def __init__(
        self,
        client: Client,
        lookup: Callable[[Kind], ResourceInfo | None],
        namespaces: tuple[str, ...],
        *,
        selection: Callable[[WatchSpec], Selection] = lambda _: lambda _key, _metadata: True,
        believes: Belief = lambda _key, _manager: True,
    ) -> None:
        """`selection` returns which objects a store keeps, `believes` which field managers of ruleop."""
        self.client = client
        self.lookup = lookup
        self.namespaces = namespaces or ("",)
        self.selection, self.believes = selection, believes
        self.informers: dict[WatchSpec, Informer] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def connect(
        self,
        changed: Callable[[Informer, StoreChange], None],
        state_changed: Callable[[Informer], None],
        needed: Callable[[GroupKind], Iterable[str]] = lambda _: FOLLOW,
    ) -> None:
        """Called once, before the first watch: those that are called also need the informers."""
        self.changed, self.state_changed, self.needed = changed, state_changed, needed

    def watch(self, needs: Iterable[WatchSpec]) -> None:
        """Starts and stops watches so that exactly these remain. Those that run already are not restarted."""
        specs = dict.fromkeys(needs)
        for need in [need for need in self.informers if need not in specs]:
            self._end(self.informers.pop(need))
        for need in specs:
            if need not in self.informers:
                self.informers[need] = Informer(need)
                self._begin(self.informers[need])

    def update_resources(self) -> None:
        """Restarts the informers whose kind became served or unserved, or changed its scope, in the last discovery."""
        for informer in self.informers.values():
            if self.lookup(informer.need.kind) != informer.resource:
                self._end(informer)
                self._begin(informer)
                self.state_changed(informer)

    def list_proven_again(self) -> None:
        """Restarts the informers whose stores now keep other objects, or other field managers, because other proofs
        hold."""
        for informer in self.informers.values():
            if informer.need.children or any(store.has_unbelieved for store in informer.stores()):
                self._end(informer)
                self._begin(informer)
                self.state_changed(informer)

    def list_again(self, kind: GroupKind, delay: float) -> None:
        """The schema of the kind has changed."""
        for informer in self.informers.values():
            if informer.need.kind.versionless == kind and not informer.need.metadata_only:
                for watcher in informer.watchers:
                    watcher.list_again(delay)

    def wake(self) -> None:
        for informer in self.informers.values():
            for watcher in informer.watchers:
                watcher.wake()

    def _connection_regained(self) -> None:
        """Called when one watch reaches the API server again. The others then retry at once: their backoff may be up to
        a minute."""
        for informer in self.informers.values():
            for watcher in informer.watchers:
                if watcher.cut_off:
                    watcher.wake()

    async def stop(self) -> None:
        for informer in self.informers.values():
            self._end(informer)
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _begin(self, informer: Informer) -> None:
        informer.resource = resource = self.lookup(informer.need.kind)
        if resource is None:
            return
        need = informer.need
        namespaces = (need.namespace,) if need.namespace else self.namespaces if resource.namespaced else ("",)
        for namespace in namespaces:
            source = _source(need, resource, namespace)
            watcher = Watcher(
                self.client,
                source,
                regained=self._connection_regained,
                needed=lambda: self.needed(need.kind.versionless),
                selects=self.selection(need),
                believes=self.believes,
            )
            watcher.store.subscribe(partial(self.changed, informer))
            watcher.store.subscribe_state(lambda _: self.state_changed(informer))
            informer.watchers.append(watcher)
            watcher.start()

    def _end(self, informer: Informer) -> None:
        for watcher in informer.watchers:
            task = asyncio.ensure_future(watcher.stop())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        informer.watchers = []


def _source(need: WatchSpec, resource: ResourceInfo, namespace: str) -> ObjectSource:
    """The server leaves out most of what is in other buckets. Children without the label of their bucket are listed
    everywhere; they were made by a single process."""
    labels, hashes = need.labels, None
    if need.buckets and need.children and (others := sorted(set(range(BUCKETS)) - need.buckets)):
        labels = f"{labels},{BUCKET_LABEL} notin ({','.join(map(str, others))})"
    elif need.buckets:
        hashes = hash_range(need.buckets)
    return ObjectSource(resource, namespace, labels, need.fields, need.metadata_only, hashes)
