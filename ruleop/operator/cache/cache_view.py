"""The cluster as planning reads it: objects from the stores, and for each kind its schema and whether it is served.

A plan on the event loop reads the cache itself, which does not change meanwhile. A plan in another thread reads a
snapshot, which the loop takes in one turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from ruleop.kubernetes.builtin.table import builtin_shape
from ruleop.kubernetes.kinds import GroupKind, Kind, Object, ObjectKey, owners_of
from ruleop.kubernetes.labels import labels_of
from ruleop.kubernetes.schema import UNKNOWN, Shape
from ruleop.operator.cache.informers import Informer, InformerSnapshot, WatchSpec
from ruleop.operator.cache.watch_specs import child_need, observe_need
from ruleop.operator.wire.watch.store import Store, StoreSnapshot, StoreState
from ruleop.planning import KindInfo, Query, Served
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ruleop.kubernetes.builtin.table import ResourceInfo
    from ruleop.kubernetes.crd import CustomResourceDefinition
    from ruleop.kubernetes.kinds import Kind
    from ruleop.kubernetes.schema import Shape
    from ruleop.language.rules import Observe
    from ruleop.operator.queue import Request
    from ruleop.planning import Kinds
    from ruleop.planning.model.targets import Target


# -- share -------------------------------------------------------------------------------------------------------------
#
# The part of the custom resources that this process watches, if the operator runs as several processes.


@dataclass(frozen=True, slots=True)
class WatchedShare:
    """The CRs that a label selector matches, and whose uids are in these buckets."""

    selector: str = ""
    buckets: frozenset[int] | None = None  # None: all

    def resources(self, kind: Kind) -> WatchSpec:
        """The watch of the CRs of a kind."""
        return WatchSpec(kind, labels=self.selector, buckets=self.buckets)

    def of(self, need: WatchSpec) -> WatchSpec:
        """The part of what the rules need. What they observe is read as a whole."""
        return replace(need, buckets=self.buckets) if need.children else need


# -- kind infos --------------------------------------------------------------------------------------------------------
#
# Information about a kind of a cluster, from discovery, its CRD, the packaged table or the published schemas.


class Published(NamedTuple):
    """The schema that the API server publishes, for kinds whose CRD cannot be read."""

    shape: Shape | None = None
    schema: Mapping[str, Any] | None = None


UNPUBLISHED: Final = Published()


def kind_info(
    kind: Kind,
    resource: ResourceInfo | None,
    definition: CustomResourceDefinition | None,
    published: Published = UNPUBLISHED,
    *,
    state: Served,
    places: Mapping[str, Served] | None = None,
) -> KindInfo:
    """`resource`: how the cluster serves the kind; None if it does not."""
    version = definition.version(kind.version) if definition is not None else None
    shape = builtin_shape(kind) or published.shape
    if shape is None:
        shape = (definition.shape(kind.version) if definition is not None else None) or UNKNOWN
    return KindInfo(
        kind,
        namespaced=resource.namespaced if resource is not None else True,
        state=state,
        shape=shape,
        status_schema=_mapping(version.schema) if version is not None else published.schema,
        status_subresource=resource.status_subresource if resource is not None else True,
        places=places,
        served=resource is not None,
        resource=resource.title if resource is not None else "",
    )


def _mapping(schema: Any) -> Mapping[str, Any] | None:
    return schema if isinstance(schema, Mapping) and schema else None


# -- index -------------------------------------------------------------------------------------------------------------
#
# Maps a changed object to the CRs that it concerns: by ruleop's label, by name, by selector, or by owner.


class Index:
    """The index of one watched kind. Each pass updates the entry of its CR; events are looked up."""

    def __init__(self) -> None:
        self._part_of: dict[str, Request] = {}
        self._targets: dict[Request, tuple[str, tuple[Target, ...]]] = {}
        self._observers: dict[_IndexKey, set[Request]] = {}

    def add(self, request: Request, part_of: str) -> None:
        """Adds a CR whose targets are not known yet: its children are."""
        if request not in self._targets:
            self.update(request, part_of)

    def update(self, request: Request, part_of: str, targets: Iterable[Target] = ()) -> bool:
        """Sets the entry of a CR. Returns whether it is new or has changed."""
        entry = (part_of, tuple(targets))
        if self._targets.get(request) == entry:
            return False
        self.remove(request)
        self._targets[request] = entry
        self._part_of[part_of] = request
        for target in entry[1]:
            self._observers.setdefault(_index_key(target), set()).add(request)
        return True

    def remove(self, request: Request) -> None:
        part_of, targets = self._targets.pop(request, ("", ()))
        if self._part_of.get(part_of) == request:
            del self._part_of[part_of]
        for target in targets:
            key = _index_key(target)
            observers = self._observers.get(key, set())
            observers.discard(request)
            if not observers:  # names change with the CRs, so empty entries would accumulate
                self._observers.pop(key, None)

    def owner(self, part_of: str) -> Request | None:
        """The CR whose children have this value of ruleop's label; None if no known CR has."""
        return self._part_of.get(part_of)

    def observers_of(self, obj: Object) -> set[Request]:
        """The CRs that observe an object. For a change, it is called with the old and with the new object."""
        key, labels, owners = ObjectKey.of(obj), labels_of(obj), owners_of(obj["metadata"])
        found: set[Request] = set()
        for namespace in (key.namespace, None):
            found |= self._observers.get((key.group_kind, namespace, key.name), set())
            # A selector is indexed by its last label only; planning compares the others.
            for pair in (*labels.items(), None):
                found |= self._observers.get((key.group_kind, namespace, pair), set())
            for uid in owners:
                found |= self._observers.get((key.group_kind, namespace, (uid,)), set())
        return found


_IndexKey: TypeAlias = tuple[GroupKind, str | None, str | tuple[str, str] | tuple[str] | None]
"""Kind, namespace, and a name, a label, the uid of an owner, or None for all."""


def _index_key(target: Target) -> _IndexKey:
    if target.owner:
        return target.kind, target.namespace, (target.owner,)
    if target.name is not None:
        return target.kind, target.namespace, target.name
    return target.kind, target.namespace, target.labels[-1] if target.labels else None


# -- cache view --------------------------------------------------------------------------------------------------------


Known = TypeVar("Known", Informer, InformerSnapshot)
Stored = TypeVar("Stored", Store, StoreSnapshot)

_SERVED = {
    StoreState.SYNCED: Served.SYNCED,
    StoreState.FORBIDDEN: Served.FORBIDDEN,
    StoreState.UNSERVED: Served.UNSERVED,
    StoreState.PENDING: Served.PENDING,
}


class CacheView(Generic[Known]):
    """All that a plan reads."""

    lookup: Callable[[Kind], ResourceInfo | None]
    namespaces: tuple[str, ...]
    share: WatchedShare
    children_of: dict[GroupKind, list[Known]]  # one per version that rules write
    observed: dict[GroupKind, list[Known]]
    patched_kinds: dict[GroupKind, list[Known]]  # of `observed`, those whose objects rules patch
    definitions: dict[GroupKind, CustomResourceDefinition]
    shapes: dict[Kind, Shape]
    published: dict[Kind, Mapping[str, Any]]  # schemas of kinds whose definition cannot be read
    _infos: dict[tuple[Kind, str], KindInfo]
    _states: dict[tuple[WatchSpec, str], Served]

    # -- objects -------------------------------------------------------------------------------------------------------

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
                for store in informer.stores():
                    yield from store.children(part_of)

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
        holders: dict[ObjectKey, Store | StoreSnapshot] = {}
        for store in _synced_or_all(stores):
            keys = store.owned_keys(query.owner, query.namespace) if query.owner else store.select_keys(query.namespace)
            holders |= dict.fromkeys(keys, store)
        for key in sorted(holders):
            holder = holders[key]
            if (entry := holder.entry(key)) is not None and query.matches(entry.parsed_labels()):
                yield holder.parse(entry)

    def _informers_of(self, kind: GroupKind) -> Iterator[Known]:
        yield from self.children_of.get(kind, ())
        yield from self.observed.get(kind, ())

    # -- kinds ---------------------------------------------------------------------------------------------------------

    def info(self, kind: Kind, namespace: str = "") -> KindInfo:
        """The information about a kind. With a namespace, its state is that of the watch of this namespace."""
        infos = self._infos
        found = infos.get((kind, namespace))
        if found is None:
            found = infos[kind, namespace] = self._build_info(kind, namespace)
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
        states = self._states
        found = states.get((need, namespace))
        if found is None:
            found = states[need, namespace] = self._read_state(need, namespace)
        return found

    def _read_state(self, need: WatchSpec, namespace: str) -> Served:
        if self.lookup(need.kind) is None:
            return Served.UNSERVED
        informer = next(
            (informer for informer in self._informers_of(need.kind.versionless) if informer.need == need), None
        )
        return _SERVED[informer.state_in(namespace)] if informer is not None else Served.PENDING


class _NamespaceView:
    def __init__(self, cache: CacheView[Any], namespace: str) -> None:
        self.cache, self.namespace = cache, namespace

    def info(self, kind: Kind) -> KindInfo:
        return self.cache.info(kind, self.namespace)

    def state_of(self, observe: Observe) -> Served:
        return self.cache.state_of(observe, "" if observe.all_namespaces else self.namespace)


def _serves(informer: Informer | InformerSnapshot, version: str, *, partial: bool) -> bool:
    return version in {"", informer.need.kind.version} and (partial or not informer.need.metadata_only)


def _synced_or_all(stores: list[Stored]) -> list[Stored]:
    """The synced stores; if there are none, all of them, with the objects that they held last."""
    return [store for store in stores if store.state is StoreState.SYNCED] or stores
