"""A cluster in memory, and methods that act as users and controllers.

It is `LocalCluster` with its garbage collector and the end of namespaces, which work when `collect` is called. It has
no other controllers: a test decides when a Deployment is available.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from ruleop.authoring.checking.inferred_definitions import to_serve
from ruleop.authoring.offline import OfflineKinds
from ruleop.authoring.ruletests.case_cluster import api_error
from ruleop.kubernetes.kinds import SERVER_METADATA, Kind, Object, ObjectKey
from ruleop.language.rules import Observe
from ruleop.localcluster import LocalCluster
from ruleop.localcluster.api.requests import DeleteOptions, WriteOptions
from ruleop.localcluster.controllers import ENDINGS
from ruleop.localcluster.kinds.served import ServedKind as ServedResource
from ruleop.localcluster.kinds.served import open_kind
from ruleop.localcluster.object_store import CRDS, NAMESPACES, Name, Resource, Stored, StoreEvent
from ruleop.localcluster.status_errors import Rejected
from ruleop.operator.passes.executor import classify
from ruleop.operator.wire.client.server_errors import Problem
from ruleop.planning import Failure, KindInfo, Served
from ruleop.planning.model.marks import APPLIED, ITEM, OWNER
from tests.patching import patched
from tests.projects.rendering import documents, loaded
from tests.projects.statuses import settled

OF_EVERY_NAMESPACE: Final = {("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")}
OPERATOR, USER = "ruleop", "somebody"


class Refused(Exception):  # noqa: N818 - an expected answer
    def __init__(self, failure: Failure, message: str) -> None:
        super().__init__(message)
        self.failure, self.message = failure, message


@contextlib.contextmanager
def refusals(verb: str, key: ObjectKey) -> Iterator[None]:
    """Raises what the server rejects as Refused."""
    try:
        yield
    except Rejected as rejected:
        error = api_error(rejected, verb, key)
        known = {Problem.EXISTS: Failure.EXISTS, Problem.CONFLICT: Failure.CONFLICT}
        failure = known.get(error.problem) or classify(error)[0] or Failure.OTHER
        raise Refused(failure, rejected.message) from None


class Happened(NamedTuple):
    """An object was created (`old` is None), changed, or deleted (`new` is None) at this version of the cluster."""

    version: int
    key: ObjectKey
    old: dict[str, Any] | None
    new: dict[str, Any] | None


class Cluster:
    def __init__(
        self, folder: Path, *, home: str = "default", namespaces: Iterable[str] = (), unserved: Iterable[Kind] = ()
    ) -> None:
        """`home`: the namespace that names omit. `unserved`: additional kinds that the cluster does not serve."""
        self.project = loaded(folder)
        self.home = home
        self.unserved = set(unserved)
        self.objects: dict[ObjectKey, dict[str, Any]] = {}
        """The objects that the tests and the operator create. A new cluster's own objects are not in it."""
        self.history: list[Happened] = []
        self.listeners: list[Callable[[Happened], None]] = []
        self.moments = 0  # the time, in passes
        self._kinds = OfflineKinds(self.project)
        self.server = LocalCluster()
        machinery = self.server.machinery
        machinery.controllers = [each(machinery) for each in ENDINGS]
        written = [each for file in sorted((folder / "crds").glob("*.yaml")) for each in documents(file)]
        for definition in to_serve(written, self.project):
            self.server.apply(definition)
        self._own: set[ObjectKey] = set()
        for name in (home, *namespaces):
            self.add_namespace(name)
        self.server.store.listen_to_all(self._stored)

    def add_namespace(self, name: str) -> None:
        """A namespace that the tests do not see as an object."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self._own.add(ObjectKey.of(namespace))
        self.server.apply(namespace)

    def vanish(self, name: str) -> None:
        """An object is gone, and the garbage collector does not run yet."""
        if name.startswith("Namespace/"):
            self.server.store.delete(NAMESPACES, Name("", name.removeprefix("Namespace/")))
        else:
            key = self.key(name)
            self.server.store.delete(self._live(key)[0].resource, Name(key.namespace, key.name))

    # -- reading -------------------------------------------------------------------------------------------------------

    def name(self, key: ObjectKey) -> str:
        """Deployment/web; Secret/other/web outside the home namespace; Namespace/acme."""
        return f"{key.kind}/{key.name}" if key.namespace in {"", self.home} else str(key)

    def key(self, name: str) -> ObjectKey:
        found = [key for key in self.objects if self.name(key) == name]
        assert len(found) == 1, f"{name} is not one object: there are {self.names}"
        return found[0]

    def __getitem__(self, name: str) -> dict[str, Any]:
        return copy.deepcopy(self.objects[self.key(name)])

    def __contains__(self, name: str) -> bool:
        return any(self.name(key) == name for key in self.objects)

    @property
    def names(self) -> list[str]:
        """The names of all objects."""
        return sorted(map(self.name, self.objects))

    def bare(self, name: str) -> dict[str, Any]:
        """An object without uid, versions, times, owner, and ruleop's own metadata."""
        obj = self[name]
        metadata = obj["metadata"]
        kept = {field: metadata[field] for field in ("name", "namespace") if field in metadata}
        for field, ours in (
            ("labels", {"ruleop.dev/part-of", "app.kubernetes.io/managed-by"}),
            ("annotations", {APPLIED, OWNER, ITEM}),
        ):
            reconcile = {key: value for key, value in metadata.get(field, {}).items() if key not in ours}
            if reconcile:
                kept[field] = reconcile
        return {**obj, "metadata": kept}

    def conditions(self, name: str) -> dict[str, tuple[str, str, str]]:
        """The status, reason and message of each condition, by type."""
        found = self[name].get("status", {}).get("conditions", [])
        return {each["type"]: (each["status"], each["reason"], each.get("message", "")) for each in found}

    def ready(self, name: str) -> tuple[str, str]:
        status, reason, _ = self.conditions(name).get("Ready", ("Unknown", "no condition", ""))
        return status, reason

    def fields(self, name: str) -> dict[str, Any]:
        """The status without conditions and generation."""
        status = self[name].get("status", {})
        return {key: value for key, value in status.items() if key not in {"conditions", "observedGeneration"}}

    # -- other clients -------------------------------------------------------------------------------------------------

    def add(self, *objects: Object) -> None:
        """A user creates objects."""
        for obj in objects:
            if ObjectKey.of(obj) in self._own:  # a namespace that the test wants to see
                self.vanish(f"Namespace/{obj['metadata']['name']}")
                self._own.remove(ObjectKey.of(obj))
            self._create(obj, manager=USER)

    def edit(self, name: str, patch: Mapping[str, Any]) -> None:
        """A user edits an object with a merge patch."""
        key = self.key(name)
        self._update(key, patched(self.objects[key], patch), manager=USER)

    def change(self, name: str, how: Callable[[dict[str, Any]], object]) -> None:
        """A user edits an object with a function, because a merge patch would have to repeat a list."""
        obj = self[name]
        how(obj)
        self._update(self.key(name), obj, manager=USER)

    def delete(self, name: str, *, propagation: str = "background") -> None:
        self._delete(self.key(name), propagation)
        self.collect()

    def status(self, name: str, status: Mapping[str, Any]) -> None:
        """A controller writes a status."""
        key = self.key(name)
        self._write_status(key, copy.deepcopy(dict(status)), manager="controller")

    def settle(self, *names: str) -> None:
        """Controllers write the status of these objects, or of all."""
        for name in names or self.names:
            found = settled(self[name])
            if found is not None and found != self[name].get("status"):
                self.status(name, found)

    def collect(self) -> None:
        """Runs the garbage collector and deletes the objects of terminating namespaces."""
        self.server.machinery.settle()

    # -- the API server ------------------------------------------------------------------------------------------------

    def info(self, kind: Kind) -> KindInfo:
        """The kinds that the cluster serves."""
        if kind in self.unserved:
            return KindInfo(kind, state=Served.UNSERVED, served=False)
        return self._kinds.info(kind)

    def state_of(self, observe: Observe) -> Served:
        return self.info(observe.kind).state

    def _served(self, kind: Kind) -> ServedResource:
        if kind in self.unserved:
            raise Refused(Failure.OTHER, "the server could not find the requested resource")
        found = self.server.registry.of_kind(kind)
        if found is None:  # of another operator, without a definition in the project
            found = open_kind(kind)
            self.server.registry.serve(found.resource, [found])
        return found

    @contextlib.contextmanager
    def without_unserved(self) -> Iterator[None]:
        """For a request: the server does not have the kinds that it does not serve."""
        registry = self.server.registry
        paths = dict(registry._by_path)
        registry._by_path = {path: each for path, each in paths.items() if each.kind not in self.unserved}
        registry._versions.clear()
        try:
            yield
        finally:
            registry._by_path = paths
            registry._versions.clear()

    def _live(self, key: ObjectKey) -> tuple[ServedResource, Stored]:
        obj = self.objects.get(key)
        if obj is None:
            raise Refused(Failure.OTHER, f"{key} not found")
        served = self._served(Kind.of(obj))
        found = self.server.store.get(served.resource, Name(key.namespace, key.name))
        assert found is not None
        return served, found

    def _create(self, sent: Object, *, manager: str = OPERATOR) -> dict[str, Any]:
        served, obj = self._served(Kind.of(sent)), copy.deepcopy(dict(sent))
        obj["metadata"] = {name: each for name, each in obj["metadata"].items() if name not in SERVER_METADATA}
        namespace = obj["metadata"].get("namespace", self.home) if served.namespaced else ""
        key = ObjectKey.of(obj)
        with refusals("create", key):
            return dict(self.server.writer.create(served, namespace, obj, options_of(manager)).obj)

    def _update(
        self, key: ObjectKey, new: dict[str, Any], *, uid: str = "", version: str = "", manager: str = OPERATOR
    ) -> dict[str, Any]:
        served, old = self._live(key)
        new = copy.deepcopy(new)
        new["metadata"] |= {"uid": uid or old.uid, "resourceVersion": version or str(old.version)}
        with refusals("update", key):
            return dict(self.server.writer.update(served, old, new, "", options_of(manager)).obj)

    def _apply(self, config: Object, *, manager: str, force: bool) -> dict[str, Any]:
        key = ObjectKey.of(config)
        options = replace(options_of(manager), force=force)
        with refusals("patch", key):
            name = Name(key.namespace, key.name)
            return dict(self.server.writer.apply(self._served(Kind.of(config)), name, dict(config), "", options)[0].obj)

    def _write_status(
        self, key: ObjectKey, status: Any, *, version: str = "", uid: str = "", manager: str = OPERATOR
    ) -> dict[str, Any]:
        served, old = self._live(key)
        guards = {"uid": uid or old.uid, "resourceVersion": version or str(old.version)}
        new = {**old.obj, "metadata": {**old.obj["metadata"], **guards}, "status": status}
        with refusals("update", key):
            subresource = "status" if served.status_subresource else ""
            return dict(self.server.writer.update(served, old, new, subresource, options_of(manager)).obj)

    def _delete(self, key: ObjectKey, propagation: str = "background") -> None:
        served, old = self._live(key)
        self.server.writer.delete(served, old, DeleteOptions(grace=0, propagation=propagation.capitalize()))

    def _finalizers(self, key: ObjectKey, finalizers: list[str], *, version: str = "") -> None:
        obj = self.objects[key]
        self._update(key, {**obj, "metadata": {**obj["metadata"], "finalizers": finalizers}}, version=version)

    def _stored(self, resource: Resource, event: StoreEvent) -> None:
        key = ObjectKey.of(event.new.obj)
        new = None if event.deleted else dict(event.new.obj)
        if not (key in self._own or resource == CRDS or (key.kind, key.name) in OF_EVERY_NAMESPACE):
            if new is None:
                self.objects.pop(key)
            else:
                self.objects[key] = new
        self.history.append(Happened(event.version, key, dict(event.old.obj) if event.old is not None else None, new))
        for listener in self.listeners:
            listener(self.history[-1])

    def everything(self) -> Iterator[tuple[ObjectKey, Object]]:
        """All objects, also those that are not the tests'."""
        store = self.server.store
        return ((ObjectKey.of(each.obj), each.obj) for resource in store.resources() for each in store.all(resource))

    @property
    def version(self) -> int:
        return self.server.store.version

    def _now(self) -> str:
        return f"2026-01-01T{self.moments // 60:02}:{self.moments % 60:02}:00Z"


def options_of(manager: str) -> WriteOptions:
    return WriteOptions(manager=manager, field_validation="Strict")
