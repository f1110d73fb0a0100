"""Deletes objects whose owners are gone, and lets owners go whose dependents were asked for first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.kinds import Kind
from ruleop.localcluster.api.object_deletion import FOREGROUND, ORPHAN
from ruleop.localcluster.api.options import DeleteOptions
from ruleop.localcluster.controllers.machinery import LocalController, is_being_deleted, references
from ruleop.localcluster.object_store import Name, Resource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.localcluster.object_store import Stored, StoreEvent

ALL: Final = Resource("*", "*")
_SEPARATOR: Final = "\n"


class GarbageCollector(LocalController):
    resource = ALL

    def concerned(self, resource: Resource, event: StoreEvent) -> Iterator[Name]:
        if event.deleted:
            for each, name in self.machinery.owners.of(event.new.uid):
                yield _key(each, name)
            for reference in references(event.new.obj):  # its owners may wait for it
                if (owner := self._owner(event.new, reference)) is not None and _waits(owner[1]):
                    yield _key(owner[0], owner[1].name)
        elif references(event.new.obj) or _waits(event.new):
            yield _key(resource, event.new.name)

    def sync(self, name: Name) -> None:
        resource, name = _parse(name)
        found = self.machinery.store.get(resource, name)
        if found is None:
            return
        if is_being_deleted(found.obj):
            self._let_go(resource, found)
        if (found := self.machinery.store.get(resource, name)) is not None:
            self._collect(resource, found)

    def _collect(self, resource: Resource, found: Stored) -> None:
        """Deletes an object none of whose owners remains; otherwise drops the references to those that do not. An owner
        that waits for its dependents does not remain."""
        entries = references(found.obj)
        if not entries or is_being_deleted(found.obj):
            return
        owners = [self._owner(found, each) for each in entries]
        solid = [
            each
            for each, owner in zip(entries, owners, strict=True)
            if owner is not None and not (each.get("blockOwnerDeletion") and _is_foreground(owner[1]))
        ]
        if solid:
            if len(solid) < len(entries):
                metadata = {**found.obj["metadata"], "ownerReferences": solid}
                self.machinery.update(resource, found, {**found.obj, "metadata": metadata})
        elif any(owner is not None for owner in owners) and any(self.machinery.owners.of(found.uid)):
            self.machinery.delete(resource, found, DeleteOptions(propagation="Foreground", uid=found.uid))
        else:
            self.machinery.delete(resource, found, DeleteOptions(propagation="Background", uid=found.uid))

    def _owner(self, found: Stored, reference: Mapping[str, Any]) -> tuple[Resource, Stored] | None:
        """The owner that a reference names, if it exists: in the object's namespace, or in none."""
        served = self.machinery.registry.of_kind(Kind.parse(reference["apiVersion"], reference["kind"]))
        if served is None:
            return None
        namespace = found.name.namespace if served.namespaced else ""
        owner = self.machinery.store.get(served.resource, Name(namespace, reference["name"]))
        return (served.resource, owner) if owner is not None and owner.uid == reference["uid"] else None

    def _let_go(self, resource: Resource, owner: Stored) -> None:
        """Removes the finalizer of an owner whose dependents are orphaned or gone."""
        finalizers = owner.obj["metadata"].get("finalizers") or []
        dependents = [
            (each, found)
            for each, name in self.machinery.owners.of(owner.uid)
            if (found := self.machinery.store.get(each, name)) is not None
        ]
        if ORPHAN in finalizers:
            for each, found in dependents:
                rest = [one for one in references(found.obj) if one["uid"] != owner.uid]
                metadata = {**found.obj["metadata"], "ownerReferences": rest}
                if not rest:
                    del metadata["ownerReferences"]
                self.machinery.update(each, found, {**found.obj, "metadata": metadata})
            self.machinery.remove_finalizer(resource, owner, ORPHAN)
        elif FOREGROUND in finalizers:
            blocking = [
                (each, found)
                for each, found in dependents
                if any(one["uid"] == owner.uid and one.get("blockOwnerDeletion") for one in references(found.obj))
            ]
            for each, found in dependents:
                if not is_being_deleted(found.obj):
                    self._collect(each, found)
            if not blocking:
                self.machinery.remove_finalizer(resource, owner, FOREGROUND)


def _key(resource: Resource, name: Name) -> Name:
    """An object of any resource as one name, for the queue."""
    return Name(_SEPARATOR.join(resource), _SEPARATOR.join(name))


def _parse(key: Name) -> tuple[Resource, Name]:
    group, plural = key.namespace.split(_SEPARATOR)
    namespace, name = key.name.split(_SEPARATOR)
    return Resource(group, plural), Name(namespace, name)


def _is_foreground(found: Stored) -> bool:
    return is_being_deleted(found.obj) and FOREGROUND in (found.obj["metadata"].get("finalizers") or [])


def _waits(found: Stored) -> bool:
    finalizers = found.obj["metadata"].get("finalizers") or []
    return is_being_deleted(found.obj) and (FOREGROUND in finalizers or ORPHAN in finalizers)
