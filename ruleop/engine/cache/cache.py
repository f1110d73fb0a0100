"""What the operator knows of the cluster, as planning asks for it: objects from the stores, and how each kind is served
and shaped.

One world serves all controllers. Children come from the stores of our label, observed objects from the stores of what
is observed; an object that is in neither does not exist for planning, until the executor meets it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ruleop.engine.cache.watch_specs import child_need, observe_need
from ruleop.kinds import GroupKind, Kind, Object, ObjectKey
from ruleop.kube.watch.store import Entry, State
from ruleop.planning import KindInfo, Served
from ruleop.planning.marks import PART_OF
from ruleop.schema.shape import UNKNOWN, Shape
from ruleop.schema.table import builtin_shape

if TYPE_CHECKING:
    from ruleop.engine.api.server_api import ServerApi
    from ruleop.engine.cache.informers import Informer, WatchSpec
    from ruleop.kube.watch.store import Store
    from ruleop.planning import Kinds
    from ruleop.rules import Observe
    from ruleop.schema.crds import CustomResourceDefinition
    from ruleop.schema.table import ResourceInfo

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
        """`namespaces`: those that are watched, each for itself; a right may be missing in one of them. None: all of
        them, at once."""
        self.api = api
        self.lookup = lookup
        self.namespaces = namespaces
        self.required: dict[GroupKind, tuple[Informer, ...]] = {}  # what the rules of a watched kind need
        self.primary: dict[GroupKind, Informer] = {}
        self.other_versions: dict[
            GroupKind, list[Informer]
        ] = {}  # of the same CRs, for the rules that name another version
        self.children_of: dict[GroupKind, list[Informer]] = {}  # one for each version that rules write
        self.observed: dict[GroupKind, list[Informer]] = {}
        self.definitions: dict[GroupKind, CustomResourceDefinition] = {}
        self.shapes: dict[Kind, Shape] = {}
        self.published: dict[Kind, Mapping[str, Any]] = {}  # schemas of kinds whose definition cannot be read
        self._infos: dict[tuple[Kind, str], KindInfo] = {}
        self._states: dict[tuple[WatchSpec, str], Served] = {}

    def forget(self) -> None:
        """What was said of kinds is to be worked out anew: discovery, a definition or a store's state has changed."""
        self._infos.clear()
        self._states.clear()

    def is_synced(self, kind: GroupKind) -> bool:
        """Whether all is known that the rules of a watched kind need, or known not to be had. A store that is listed
        again knows nothing, and what it does not hold must not be taken to be gone."""
        required = self.required.get(kind)
        return required is not None and all(informer.state is not State.PENDING for informer in required)

    # -- objects -------------------------------------------------------------------------------------------------------

    def resource(self, key: ObjectKey, version: str = "") -> Object | None:
        """A CR, in this version of its kind; without one, in that by which all of them are watched."""
        for informer in self.primaries(key.group_kind):
            if version in {"", informer.need.kind.version}:
                store = informer.store_of(key)
                return store.get(key) if store is not None else None
        return None

    def primaries(self, kind: GroupKind) -> Iterator[Informer]:
        """The informers of a kind's CRs: that of all of them, then one for each other version that a rule names."""
        if (informer := self.primary.get(kind)) is not None:
            yield informer
            yield from self.other_versions.get(kind, ())

    def get(self, key: ObjectKey, *, version: str = "", partial: bool = False) -> Object | None:
        offered = [
            informer.store_of(key)
            for informer in self._feeds(key.group_kind)
            if _offers(informer, version, partial=partial)
        ]
        for store in _believed([store for store in offered if store is not None]):
            if (found := store.get(key)) is not None:
                return found
        return None

    def children(self, part_of: str) -> Iterable[Object]:
        for informers in self.children_of.values():
            for informer in informers:
                for store in informer.stores():
                    yield from store.children(part_of)

    def select(
        self, kind: GroupKind, namespace: str | None, *, version: str = "", partial: bool = False
    ) -> Sequence[Object]:
        found: dict[ObjectKey, Object] = {}
        informers = [
            informer for informer in self.observed.get(kind, ()) if _offers(informer, version, partial=partial)
        ]
        stores = [
            store
            for informer in informers
            for store in informer.stores()
            if namespace is None or store.source.namespace in {"", namespace}
        ]
        for store in _believed(stores):
            for obj in store.select(namespace):
                found[ObjectKey.of(obj)] = obj
        return [found[key] for key in sorted(found)]

    def parse(self, informer: Informer, key: ObjectKey, entry: Entry) -> Object | None:
        store = informer.store_of(key)
        return store.parse(entry) if store is not None else None

    async def look(self, kind: Kind, key: ObjectKey) -> Object | None:
        return await self.api.look(kind, key)

    def children_feed(self, kind: GroupKind) -> Informer | None:
        """Of the informers of a kind's children one that knows them, if there is one: each version has them all."""
        informers = self.children_of.get(kind, ())
        return next(
            (informer for informer in informers if informer.state is State.SYNCED), informers[0] if informers else None
        )

    def _feeds(self, kind: GroupKind) -> Iterable[Informer]:
        yield from self.children_of.get(kind, ())
        yield from self.observed.get(kind, ())

    # -- answers to our own writes -------------------------------------------------------------------------------------

    def put(self, obj: Object) -> bool:
        """Into each store that would hold the object. False where none does: somebody else's object, or one of ours
        without its label."""
        key, kind = ObjectKey.of(obj), Kind.of(obj)
        labelled = PART_OF in ((obj.get("metadata") or {}).get("labels") or {})
        homes = [*self.primaries(key.group_kind), *(self.children_of.get(key.group_kind, ()) if labelled else ())]
        held = False
        for informer in (*homes, *self.observed.get(key.group_kind, ())):
            store = informer.store_of(key) if informer.need.kind == kind else None
            if store is not None and (
                key in store or (informer.need.labels in {"", PART_OF} and not informer.need.fields)
            ):
                store.put(obj)
                held = held or informer in homes
        return held

    def remove(self, key: ObjectKey, uid: str, version: str = "") -> None:
        """A live read did not find the object with this uid; or, with a version, found it without our label."""
        gone = not version
        informers = [
            *self.children_of.get(key.group_kind, ()),
            *((*self.primaries(key.group_kind), *self.observed.get(key.group_kind, ())) if gone else ()),
        ]
        for informer in informers:
            store = informer.store_of(key)
            if store is not None:
                store.remove(key, uid, version)

    def is_at_least(self, key: ObjectKey, version: str) -> bool:
        return all(store.is_at_least(version, key) for store in self._homes(key))

    def has_seen(self, key: ObjectKey, version: str) -> bool:
        return all(store.is_at_least(version) for store in self._homes(key))

    def _homes(self, key: ObjectKey) -> Iterable[Store]:
        """The synced stores that would hold a CR or a child of this name."""
        for informer in (*self.primaries(key.group_kind), *self.children_of.get(key.group_kind, ())):
            store = informer.store_of(key)
            if store is not None and store.state is State.SYNCED:
                yield store

    # -- kinds ---------------------------------------------------------------------------------------------------------

    def info(self, kind: Kind, namespace: str = "") -> KindInfo:
        """As seen from a namespace, where that matters."""
        found = self._infos.get((kind, namespace))
        if found is None:
            found = self._infos[kind, namespace] = self._work_out(kind, namespace)
        return found

    def state_of(self, observe: Observe, namespace: str = "") -> Served:
        return self._state(observe_need(observe), namespace)

    def seen_from(self, namespace: str) -> Kinds:
        """For a CR of this namespace: permissions in other namespaces matter only to CRs with children there."""
        return _From(self, namespace) if self.namespaces else self

    def _work_out(self, kind: Kind, namespace: str) -> KindInfo:
        resource, need = self.lookup(kind), child_need(kind)
        definition = self.definitions.get(kind.versionless)
        version = definition.version(kind.version) if definition is not None else None
        shape = builtin_shape(kind) or self.shapes.get(kind)
        if shape is None:
            shape = (definition.shape(kind.version) if definition is not None else None) or UNKNOWN
        return KindInfo(
            kind,
            namespaced=resource.namespaced if resource is not None else True,
            state=self._state(need, namespace),
            shape=shape,
            status_schema=_schema(version.schema) if version is not None else self.published.get(kind),
            status_subresource=resource.status_subresource if resource is not None else True,
            places={each: self._state(need, each) for each in self.namespaces} or None,
            served=resource is not None,
            resource=resource.title if resource is not None else "",
        )

    def _state(self, need: WatchSpec, namespace: str) -> Served:
        """Of what is watched for this need. What others look at, or another version of the kind, tells nothing about
        it."""
        found = self._states.get((need, namespace))
        if found is None:
            found = self._states[need, namespace] = self._look_up(need, namespace)
        return found

    def _look_up(self, need: WatchSpec, namespace: str) -> Served:
        if self.lookup(need.kind) is None:
            return Served.UNSERVED
        informer = next((informer for informer in self._feeds(need.kind.versionless) if informer.need == need), None)
        return _SERVED[informer.state_in(namespace)] if informer is not None else Served.PENDING


class _From:
    def __init__(self, world: Cache, namespace: str) -> None:
        self.world, self.namespace = world, namespace

    def info(self, kind: Kind) -> KindInfo:
        return self.world.info(kind, self.namespace)

    def state_of(self, observe: Observe) -> Served:
        return self.world.state_of(observe, self.namespace)


def _offers(informer: Informer, version: str, *, partial: bool) -> bool:
    return version in {"", informer.need.kind.version} and (partial or not informer.need.metadata_only)


def _believed(stores: list[Store]) -> list[Store]:
    """Those that are kept up to date; where none is, those that know what was."""
    return [store for store in stores if store.state is State.SYNCED] or stores


def _schema(schema: Any) -> Mapping[str, Any] | None:
    return schema if isinstance(schema, Mapping) and schema else None
