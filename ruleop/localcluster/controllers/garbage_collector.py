"""Deletes objects whose owners are gone, lets owners go whose dependents were asked for first, and ends namespaces and
definitions with their objects."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.kinds import Kind, is_being_deleted
from ruleop.kubernetes.times import now
from ruleop.localcluster.api.object_writer import FOREGROUND, ORPHAN
from ruleop.localcluster.api.requests import DeleteOptions
from ruleop.localcluster.controllers.machinery import BATCH, LocalController, references, with_condition
from ruleop.localcluster.kinds import CLEANUP, resource_of
from ruleop.localcluster.object_store import CONFIG_MAPS, CRDS, NAMESPACES, SERVICE_ACCOUNTS, Name, Resource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.localcluster.controllers.machinery import Machinery
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
            if owner is not None and not (each.get("blockOwnerDeletion") and _waits(owner[1], (FOREGROUND,)))
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


def _waits(found: Stored, finalizers: tuple[str, ...] = (FOREGROUND, ORPHAN)) -> bool:
    given = found.obj["metadata"].get("finalizers") or []
    return is_being_deleted(found.obj) and any(each in given for each in finalizers)


# -- namespaces and definitions --------------------------------------------------------------------------------------
#
# Namespaces get what every namespace has, and end when nothing is left in them. Definitions end with their objects.


ROOT_CERTIFICATE: Final = "kube-root-ca.crt"


class Namespaces(LocalController):
    resource = NAMESPACES

    def __init__(self, machinery: Machinery) -> None:
        super().__init__(machinery)
        self._ending: set[str] = set()

    def concerned(self, resource: Resource, event: StoreEvent) -> Iterator[Name]:
        if resource == NAMESPACES:
            if event.deleted:
                self._ending.discard(event.new.name.name)
            else:
                yield event.new.name
        elif event.new.name.namespace and event.deleted:
            default = resource in (SERVICE_ACCOUNTS, CONFIG_MAPS) and event.new.name.name in (
                "default",
                ROOT_CERTIFICATE,
            )
            if event.new.name.namespace in self._ending or default:
                yield Name("", event.new.name.namespace)

    def reconcile(self, found: Stored) -> None:
        name = found.name.name
        if is_being_deleted(found.obj):
            self._ending.add(name)
            self._end(found)
            return
        account: dict[str, Any] = {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "default"}}
        certificate: dict[str, Any] = {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {"name": ROOT_CERTIFICATE},
            "data": {"ca.crt": ""},
        }
        for resource, obj in ((SERVICE_ACCOUNTS, account), (CONFIG_MAPS, certificate)):
            if self.machinery.get(resource, name, obj["metadata"]["name"]) is None:
                self.machinery.create(resource, name, obj)

    def _end(self, namespace: Stored) -> None:
        store = self.machinery.store
        remaining = (
            (resource, each)
            for resource in list(store.resources())
            for each in store.all(resource, namespace.name.name)
            if not is_being_deleted(each.obj)
        )
        if batch := list(islice(remaining, BATCH)):
            for resource, each in batch:
                self.machinery.delete(resource, each)
            self.machinery.enqueue(self, namespace.name)
            return
        held: dict[str, int] = {}
        left: dict[str, int] = {}
        for resource in list(self.machinery.store.resources()):
            for each in self.machinery.store.all(resource, namespace.name.name):
                title = f"{resource.plural}.{resource.group}"
                left[title] = left.get(title, 0) + 1
                for finalizer in each.obj["metadata"].get("finalizers") or []:
                    held[finalizer] = held.get(finalizer, 0) + 1
        found = self.machinery.store.get(NAMESPACES, namespace.name)
        if found is None:
            return
        if left:
            self._report(found, left, held)
            return
        spec = {**found.obj["spec"], "finalizers": []}
        self.machinery.update(NAMESPACES, found, {**found.obj, "spec": spec})

    def _report(self, found: Stored, left: dict[str, int], held: dict[str, int]) -> None:
        status = found.obj.get("status") or {}
        conditions = status.get("conditions")
        for condition in _conditions(left, held):
            conditions = with_condition(conditions, condition, now())
        self.machinery.update_status(NAMESPACES, found, {**status, "conditions": conditions})


def _conditions(left: dict[str, int], held: dict[str, int]) -> Iterator[dict[str, Any]]:
    """The conditions of a namespace that is being deleted."""
    for name, reason, message in (
        ("DiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
        ("GroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
        ("ContentFailure", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    ):
        yield {"type": f"NamespaceDeletion{name}", "status": "False", "reason": reason, "message": message}
    listed = ", ".join(f"{title} has {count} resource instances" for title, count in sorted(left.items()))
    yield {
        "type": "NamespaceContentRemaining",
        "status": "True",
        "reason": "SomeResourcesRemain",
        "message": f"Some resources are remaining: {listed}",
    }
    listed = ", ".join(f"{finalizer} in {count} resource instances" for finalizer, count in sorted(held.items()))
    yield {
        "type": "NamespaceFinalizersRemaining",
        "status": "True" if held else "False",
        "reason": "SomeFinalizersRemain" if held else "ContentHasNoFinalizers",
        "message": f"Some content in the namespace has finalizers remaining: {listed}"
        if held
        else "All content-preserving finalizers finished",
    }


class Definitions(LocalController):
    """CustomResourceDefinitions that are being deleted wait for their custom resources."""

    resource = CRDS

    def __init__(self, machinery: Machinery) -> None:
        super().__init__(machinery)
        self._ending: dict[Resource, Name] = {}

    def concerned(self, resource: Resource, event: StoreEvent) -> Iterator[Name]:
        if resource == CRDS:
            if is_being_deleted(event.new.obj) and not event.deleted:
                self._ending[resource_of(event.new.obj)] = event.new.name
                yield event.new.name
            else:
                self._ending.pop(resource_of(event.new.obj), None)
        elif event.deleted and resource in self._ending:
            yield self._ending[resource]

    def reconcile(self, found: Stored) -> None:
        if not is_being_deleted(found.obj) or CLEANUP not in (found.obj["metadata"].get("finalizers") or []):
            return
        resource = resource_of(found.obj)
        for each in list(self.machinery.store.all(resource)):
            if not is_being_deleted(each.obj):
                self.machinery.delete(resource, each)
        if not any(True for _ in self.machinery.store.all(resource)):
            self.machinery.remove_finalizer(CRDS, found, CLEANUP)
