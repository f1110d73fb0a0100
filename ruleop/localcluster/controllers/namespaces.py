"""Namespaces get what every namespace has, and end when nothing is left in them. Definitions end with their objects."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.controllers.machinery import BATCH, LocalController, is_being_deleted, with_condition
from ruleop.localcluster.kinds import CLEANUP, CONFIG_MAPS, CRDS, NAMESPACES, SERVICE_ACCOUNTS, resource_of
from ruleop.localcluster.object_store import Name, Resource
from ruleop.localcluster.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.localcluster.controllers.machinery import Machinery
    from ruleop.localcluster.object_store import Stored, StoreEvent

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
