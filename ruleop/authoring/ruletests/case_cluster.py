"""The cluster of one case: what is behind the API of the local cluster, without its server, and the writes of a plan.

Objects are stored with the defaults, and the operator's writes are validated, as by an API server. What a test itself
says about objects is not: it may leave out what does not matter to it. The garbage collector runs, and what else
deletes; a test says what other controllers do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.authoring.offline import OfflineKinds, as_live, uid_of
from ruleop.kubernetes.kinds import Kind, Object, ObjectKey, is_being_deleted
from ruleop.kubernetes.merge import item_key
from ruleop.kubernetes.schema import UNKNOWN, Shape
from ruleop.kubernetes.times import timestamp
from ruleop.localcluster.api.object_checks import with_defaults
from ruleop.localcluster.api.object_writer import CONTROLLERS, ObjectWriter, is_finished
from ruleop.localcluster.api.requests import DeleteOptions, WriteOptions
from ruleop.localcluster.controllers import ENDINGS, GarbageCollector, Machinery
from ruleop.localcluster.kinds import Registry, open_kind, served_versions
from ruleop.localcluster.object_store import NAMESPACES, SERVICES, Name, Resource, Store
from ruleop.localcluster.objects import merge_patch, with_entries
from ruleop.localcluster.status_errors import Rejected
from ruleop.planning import (
    AddFinalizer,
    Create,
    Delete,
    Expire,
    Failed,
    Failure,
    FixedObjects,
    Outcome,
    Patch,
    RemoveFinalizer,
    ResourceAction,
    ServerSideApply,
)
from ruleop.planning.model.managers import patch_entries

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from ruleop.kubernetes.kinds import JSON
    from ruleop.kubernetes.validation import FieldError
    from ruleop.language.rules import Project
    from ruleop.localcluster.kinds import ServedKind
    from ruleop.localcluster.object_store import Stored, StoreEvent
    from ruleop.operator.wire.client.server_errors import ApiError
    from ruleop.planning import Action, KindInfo


def overlaid(before: Mapping[str, Any], patch: Mapping[str, Any], shape: Shape = UNKNOWN) -> dict[str, Any]:
    """The object with the changes. A null removes a field."""
    result = dict(before)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _value(result.get(name), value, shape.fields.get(name) or shape.values or UNKNOWN)
    return result


def _value(before: JSON, value: JSON, shape: Shape) -> JSON:
    if isinstance(value, dict):
        return overlaid(before if isinstance(before, dict) else {}, value, shape)
    if isinstance(value, list) and isinstance(before, list) and shape.list_type == "map":
        return _items(before, value, shape)
    return value


def _items(before: list[JSON], patch: list[JSON], shape: Shape) -> list[JSON]:
    """The items with those of the patch: changed where the key is known, appended otherwise."""
    result = list(before)
    places = {item_key(item, shape): place for place, item in enumerate(before)}
    for item in patch:
        key = item_key(item, shape)
        if key is not None and key in places:
            result[places[key]] = _value(result[places[key]], item, shape.items or UNKNOWN)
        else:
            result.append(item)
    return result


REJECTED: Final = "the test rejects it"
MANAGER: Final = "ruleop"
MOST_KNOWN: Final = 1000


class CaseKinds(OfflineKinds):
    """The kinds of a project as its cases serve them. The cases share it."""

    def __init__(self, project: Project, served: Collection[Kind] | None = None) -> None:
        super().__init__(project, served)
        self.registry = Registry()
        for crd in project.crds:
            self.registry.serve(Resource(crd.group, crd.plural), served_versions(crd))
        strategies = {child.apply.strategy for rule in project.rules for child in rule.every_child}
        # Only a server-side apply depends on the managers of fields.
        self.options = WriteOptions(MANAGER if "server-side" in strategies else "", field_validation="Strict")
        self.known: dict[tuple[Kind, str, bytes], Object] = {}

    def shape_of(self, kind: Kind) -> Shape:
        return self.info(kind).shape

    def served(self, kind: Kind) -> ServedKind:
        found = self.registry.of_kind(kind)
        if found is None:  # nothing is known about it
            found = open_kind(kind, namespaced=self.info(kind).namespaced)
            self.registry.serve(found.resource, [found])
        return found

    def created(self, obj: Object, live: Object) -> Object:
        """A new object as the server stores it, with the name and the uid of a live one."""
        served, metadata = self.served(Kind.of(obj)), live["metadata"]
        named = {**obj, "metadata": {**(obj.get("metadata") or {}), "name": metadata["name"]}}
        writer = CaseWriter(Store(), self, lambda _: str(metadata["uid"]))
        try:
            return writer.create(served, metadata.get("namespace", ""), named, self.options).obj
        except Rejected:
            return with_defaults(served, named)


class CaseWriter(ObjectWriter):
    """The writer of a case, whose namespaces exist unless the test says otherwise. Most cases of a project write the
    same objects, and what the server made of one is known then."""

    def __init__(
        self, store: Store, kinds: CaseKinds, new_uid: Callable[[Object], str], clock: Callable[[], float] = lambda: 0.0
    ) -> None:
        super().__init__(store, clock=clock, new_uid=new_uid)
        self.known = kinds.known

    def check_namespace(self, served: ServedKind, namespace: str, name: str) -> None:
        if self.store.get(NAMESPACES, Name("", namespace)) is not None:
            super().check_namespace(served, namespace, name)

    def validate(
        self, served: ServedKind, new: Object, old: Object | None, errors: list[FieldError], subresource: str = ""
    ) -> None:
        """An object that a test describes in part is invalid before the operator writes to it, too."""
        try:
            super().validate(served, new, old, errors, subresource)
        except Rejected:
            known = {each.field for each in served.validator.validate(old, None)} if old is not None else set()
            found = [each for each in (*errors, *served.validator.validate(new, old)) if each.field not in known]
            if found or not known:
                raise

    def create(self, served: ServedKind, namespace: str, obj: Object, options: WriteOptions = CONTROLLERS) -> Stored:
        if self._depends_on_others(served, namespace, obj):
            return super().create(served, namespace, obj, options)
        key = served.kind, namespace, orjson.dumps([obj, self.new_uid(obj), self.clock()])
        if (found := self.known.get(key)) is not None:
            self.check_namespace(served, namespace, obj["metadata"]["name"])
            return self.store.put(served.resource, found)
        return self._remembered(key, super().create(served, namespace, obj, options))

    def update(
        self, served: ServedKind, old: Stored, obj: Object, subresource: str = "", options: WriteOptions = CONTROLLERS
    ) -> Stored:
        key = served.kind, subresource, old.data + orjson.dumps([obj, self.clock()])
        if (found := self.known.get(key)) is not None:
            return self.store.put(served.resource, found)
        stored = super().update(served, old, obj, subresource, options)
        is_put = stored is not old and self.store.get(served.resource, old.name) is stored
        return self._remembered(key, stored) if is_put and not served.strategy.allocates_on_update else stored

    def _remembered(self, key: tuple[Kind, str, bytes], stored: Stored) -> Stored:
        if len(self.known) >= MOST_KNOWN:
            self.known.clear()
        self.known[key] = stored.obj
        return stored

    def delete(self, served: ServedKind, old: Stored, options: DeleteOptions | None = None) -> tuple[Stored, bool]:
        """Pods end at once: no kubelet runs."""
        return super().delete(served, old, replace(options or DeleteOptions(), grace=0))

    def _depends_on_others(self, served: ServedKind, namespace: str, obj: Object) -> bool:
        """Whether the new object depends on what else there is: an object of its name, or other Services."""
        if served.strategy.admit is not None:
            return served.resource != SERVICES or any(True for _ in self.store.all(SERVICES))
        name = obj["metadata"].get("name")
        return not name or self.store.get(served.resource, Name(namespace, name)) is not None


class _Collector(GarbageCollector):
    """Owners that a test does not mention exist until the last one that it mentions is deleted."""

    def concerned(self, resource: Resource, event: StoreEvent) -> Iterator[Name]:
        if event.deleted or is_being_deleted(event.new.obj):
            yield from super().concerned(resource, event)


_CONTROLLERS: Final = tuple(_Collector if each is GarbageCollector else each for each in ENDINGS)


class CaseCluster:
    def __init__(self, kinds: CaseKinds) -> None:
        self.kinds, self.options = kinds, kinds.options
        self.patch_options = replace(kinds.options, is_patch=True)
        self.objects: dict[ObjectKey, Object] = {}  # as the operator sees them
        self.writes: list[Action] = []  # of the current step
        self.rejected: frozenset[str] = frozenset()  # ids of children, and names of objects, whose writes fail
        self.time = 0.0  # seconds since 1970
        self.store = Store()
        self.writer = CaseWriter(self.store, kinds, uid_of, lambda: self.time)
        self.machinery = Machinery(self.store, kinds.registry, self.writer, _CONTROLLERS)
        self.store.listen_to_all(self._stored)

    @property
    def now(self) -> str:
        return timestamp(self.time)

    @property
    def fixed(self) -> FixedObjects:
        return FixedObjects(self.objects.values())

    def _stored(self, _resource: Resource, event: StoreEvent) -> None:
        key = ObjectKey.of(event.new.obj)
        if event.deleted:
            self.objects.pop(key, None)
        else:
            self.objects[key] = _as_stored(event.new.obj)

    def _live(self, key: ObjectKey) -> tuple[ServedKind, Stored]:
        served = self.kinds.served(Kind.of(self.objects[key]))
        found = self.store.get(served.resource, Name(key.namespace, key.name))
        assert found is not None
        return served, found

    # -- what a test changes -------------------------------------------------------------------------------------------

    def add(self, obj: Object) -> ObjectKey:
        """Creates an object, or changes the existing one to it."""
        [live] = as_live([obj], self.kinds, self.now)
        key = ObjectKey.of(live)
        before = self.objects.get(key)
        if before is not None:
            metadata = {**before["metadata"], **(obj.get("metadata") or {})}
            live = {**before, **obj, "metadata": metadata}
        self.put(live)
        return key

    def change(self, key: ObjectKey, patch: Mapping[str, Any]) -> None:
        """Changes an object. A controller that writes a status has seen the object as it is now."""
        before = self.objects[key]
        shape = self.kinds.shape_of(Kind.of(before))
        after = overlaid(before, patch, shape)
        status, fields = patch.get("status"), shape.fields.get("status", UNKNOWN).fields
        generation = after["metadata"].get("generation")
        if isinstance(status, dict) and "observedGeneration" in fields and generation is not None:
            after["status"] = {**after["status"], "observedGeneration": status.get("observedGeneration", generation)}
        self.put(after)

    def put(self, obj: Object) -> None:
        """Stores an object with its defaults, whether or not it is valid."""
        served, key = self.kinds.served(Kind.of(obj)), ObjectKey.of(obj)
        old = self.store.get(served.resource, Name(key.namespace, key.name))
        before = old.obj if old is not None else None
        new = with_defaults(served, dict(obj), before)
        if before is None:
            new = {**served.strategy.create(new), **({"status": obj["status"]} if "status" in obj else {})}
        else:
            managers = {name: each for name, each in before["metadata"].items() if name == "managedFields"}
            new["metadata"] = {**new["metadata"], **managers}
            if "generation" in before["metadata"]:
                new = self.writer.with_generation(served, before, new, "")
        stored = self.store.put(served.resource, new)
        if is_finished(new):
            self.store.delete(served.resource, stored.name)
        self.machinery.settle()

    def delete(self, key: ObjectKey) -> None:
        """Deletes an object. With finalizers it stays, as being deleted."""
        self.writer.delete(*self._live(key), DeleteOptions(propagation="Background"))
        self.machinery.settle()

    # -- what the operator writes --------------------------------------------------------------------------------------

    def execute(self, actions: Iterable[Action]) -> Outcome:
        outcome = carry_out(actions, self.kinds.info, self._carry_out)
        self.writes += outcome.done
        self.machinery.settle()
        return outcome

    def write_status(self, key: ObjectKey, patch: Object) -> None:
        """Raises ApiError."""
        served, _ = self._live(key)
        try:
            self._patch(key, patch, "status" if served.status_subresource else "")
        except Rejected as rejected:
            raise api_error(rejected, "patch", key) from None

    def _carry_out(self, action: Action) -> Object | Failed | None:
        if not isinstance(action, ResourceAction) and not self.rejected.isdisjoint(
            {action.child, f"{action.key.kind}/{action.key.name}", str(action.key)}
        ):
            return Failed(Failure.INVALID, REJECTED)
        try:
            stored = self._write(action)
        except Rejected as rejected:
            from ruleop.operator.passes.executor import classify  # noqa: PLC0415 - most cases need no errors

            error = api_error(rejected, "create" if isinstance(action, Create) else "patch", action.key)
            return Failed(classify(error)[0] or Failure.OTHER, str(error), "", error.redacted, error.causes)
        return _as_stored(stored.obj) if stored is not None else None

    def _write(self, action: Action) -> Stored | None:
        """The response, if it is an object that was written."""
        match action:
            case Create():
                served = self.kinds.served(Kind.of(action.object))
                return self.writer.create(served, action.key.namespace, action.object, self.options)
            case Patch():
                return self._patch(action.key, action.patch)
            case ServerSideApply():
                return self._apply(action)
            case Delete() | Expire():
                self.writer.delete(*self._live(action.key), DeleteOptions(propagation="Background"))
            case AddFinalizer():
                self._set_finalizers(action.key, [*self._finalizers(action.key), action.finalizer])
            case RemoveFinalizer():
                others = [each for each in self._finalizers(action.key) if each != action.finalizer]
                self._set_finalizers(action.key, others)
        return None

    def _patch(self, key: ObjectKey, patch: Object, subresource: str = "") -> Stored:
        served, live = self._live(key)
        return self.writer.update(served, live, merge_patch(live.obj, patch), subresource, self.patch_options)

    def _apply(self, action: ServerSideApply) -> Stored:
        from ruleop.operator.server_api import migrated, needs_migration  # noqa: PLC0415 - rarely needed

        served = self.kinds.served(Kind.of(action.object))
        name = Name(action.key.namespace, action.key.name)
        if action.manager:
            options = replace(self.options, manager=action.manager, force=action.force)
            return self.writer.apply(served, name, dict(action.object), "", options)[0]
        live = self.store.get(served.resource, name)
        entries = live.obj["metadata"].get("managedFields") or [] if live is not None else []
        if live is not None and needs_migration(entries):
            metadata = {**live.obj["metadata"], "managedFields": migrated(entries, action.recorded)}
            self.store.amend(served.resource, {**live.obj, "metadata": metadata})
        return self.writer.apply(served, name, dict(action.object), "", replace(self.options, force=True))[0]

    def _finalizers(self, key: ObjectKey) -> list[str]:
        return self.objects[key]["metadata"].get("finalizers") or []

    def _set_finalizers(self, key: ObjectKey, finalizers: list[str]) -> None:
        self._patch(key, {"metadata": {"finalizers": finalizers}})


def _as_stored(obj: Object) -> Object:
    """The object as the operator's stores keep it."""
    entries = patch_entries(obj["metadata"].get("managedFields"))
    return with_entries(obj, [dict(each) for each in entries])


def api_error(rejected: Rejected, verb: str, key: ObjectKey) -> ApiError:
    """The error that the operator gets."""
    from ruleop.operator.wire.client.server_errors import response_error  # noqa: PLC0415 - most cases need no errors

    return response_error(rejected.code, orjson.dumps(rejected.document()), verb=verb, resource=key.kind)


def carry_out(
    actions: Iterable[Action],
    info: Callable[[Kind], KindInfo],
    write: Callable[[Action], Object | Failed | None],
) -> Outcome:
    """Carries out the actions of a plan one after the other: deletions after writes, the removal of the CR's finalizer
    last, and none that needs a failed write. `write` returns the object as it is stored, if there is one, or why it
    failed."""
    outcome, stopped = Outcome(), set[str]()
    for action in sorted(actions, key=_turn_of):
        if action.needs & stopped or (isinstance(action, RemoveFinalizer) and outcome.failed):
            stopped.add(action.child)
            continue
        found = write(action)
        if isinstance(found, Failed):
            digest = "" if isinstance(action, Delete | ResourceAction) else action.desired_digest
            outcome.failed[action.key] = replace(found, desired_digest=digest)
            stopped.add(action.child)
            continue
        outcome.done.append(action)
        if isinstance(action, Delete):
            outcome.deleted.add(action.key)
        elif found is not None and not isinstance(action, ResourceAction):
            outcome.wrote(action, found, info)
    return outcome


def _turn_of(action: Action) -> int:
    """The place of an action in the order of a plan."""
    if isinstance(action, RemoveFinalizer):
        return 2
    return 1 if isinstance(action, Delete) and action.after_writes else 0
