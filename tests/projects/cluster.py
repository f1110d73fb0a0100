"""A cluster in memory, and methods that act as users and controllers.

It has the properties of a real cluster that planning relies on: uids, resourceVersions and generations; preconditions;
strict field validation, normalised values, defaults, immutable fields; finalizers, the garbage collector, and the deletion
of namespaces with their objects. It has no controllers: a test decides when a Deployment is available.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ruleop.kinds import Kind, Object, ObjectKey
from ruleop.offline.cluster import OfflineKinds
from ruleop.planning import Failure, KindInfo, Served
from ruleop.planning.model.marks import APPLIED
from ruleop.schema.shape_fields import unknown_to_shape
from ruleop.schema.structural import default, prune
from ruleop.schema.table import builtin_shape
from ruleop.schema.validation import validate
from tests.patching import patched
from tests.projects.admission import as_kept, settled, without_nothing
from tests.projects.rendering import loaded

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ruleop.rules import Observe

LABEL = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?\Z")

IMMUTABLE: dict[str, tuple[tuple[str, ...], ...]] = {
    "Deployment": (("spec", "selector"),),
    "StatefulSet": (
        ("spec", "selector"),
        ("spec", "serviceName"),
        ("spec", "volumeClaimTemplates"),
        ("spec", "podManagementPolicy"),
    ),
    "Job": (("spec", "template"), ("spec", "completions")),
    "PersistentVolumeClaim": (("spec", "accessModes"), ("spec", "storageClassName")),
    "RoleBinding": (("roleRef",),),
    "Service": (("spec", "clusterIP"),),
}


class Refused(Exception):  # noqa: N818 - an expected answer
    def __init__(self, failure: Failure, message: str) -> None:
        super().__init__(message)
        self.failure, self.message = failure, message


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
        self.history: list[Happened] = []
        self.listeners: list[Callable[[Happened], None]] = []
        self.moments = 0  # the time, in passes
        self._kinds = OfflineKinds(self.project)
        self._namespaces = {home, *namespaces}
        self._uids, self._versions = 0, 100

    # -- reading -------------------------------------------------------------------------------------------------------------------------

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
            ("annotations", {APPLIED, "ruleop.dev/owner"}),
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
        status, reason, _ = self.conditions(name)["Ready"]
        return status, reason

    def fields(self, name: str) -> dict[str, Any]:
        """The status without conditions and generation."""
        status = self[name].get("status", {})
        return {key: value for key, value in status.items() if key not in {"conditions", "observedGeneration"}}

    # -- other clients -------------------------------------------------------------------------------------------------------------------

    def add(self, *objects: Object) -> None:
        """A user creates objects."""
        for obj in objects:
            self._create(obj)

    def edit(self, name: str, patch: Mapping[str, Any]) -> None:
        """A user edits an object with a merge patch."""
        key = self.key(name)
        self._update(key, patched(self.objects[key], patch))

    def change(self, name: str, how: Callable[[dict[str, Any]], object]) -> None:
        """A user edits an object with a function, because a merge patch would have to repeat a list."""
        obj = self[name]
        how(obj)
        self._update(self.key(name), obj)

    def delete(self, name: str, *, propagation: str = "background") -> None:
        self._delete(self.key(name), propagation)
        self.collect()

    def status(self, name: str, status: Mapping[str, Any]) -> None:
        """A controller writes a status."""
        key = self.key(name)
        self._store(key, {**self.objects[key], "status": copy.deepcopy(dict(status))})

    def settle(self, *names: str) -> None:
        """Controllers write the status of these objects, or of all."""
        for name in names or self.names:
            found = settled(self[name])
            if found is not None and found != self[name].get("status"):
                self.status(name, found)

    def collect(self) -> None:
        """Runs the garbage collector and deletes the objects of terminating namespaces."""
        while self._collect_once():
            pass

    def _collect_once(self) -> bool:
        before = len(self.objects), self._versions
        for key in list(self.objects):
            obj = self.objects.get(key)
            if obj is None:
                continue
            metadata = obj["metadata"]
            if key.kind == "Namespace" and metadata.get("deletionTimestamp"):
                inside = [each for each in self.objects if each.namespace == key.name]
                for each in inside:
                    self._delete(each)
                if not any(each.namespace == key.name for each in self.objects):
                    self._remove(key)
                continue
            if metadata.get("deletionTimestamp") and "orphan" in metadata.get("finalizers", ()):
                for each in self._dependents(metadata["uid"]):
                    theirs = self.objects[each]["metadata"]
                    reconcile = [
                        reference for reference in theirs["ownerReferences"] if reference["uid"] != metadata["uid"]
                    ]
                    self._store(
                        each,
                        without_nothing({**self.objects[each], "metadata": {**theirs, "ownerReferences": reconcile}}),
                    )
                self._finalizers(key, [each for each in metadata["finalizers"] if each != "orphan"])
                continue
            owners = metadata.get("ownerReferences") or []
            if owners and not any(self._sees(key, reference) for reference in owners):
                self._delete(key)
        return (len(self.objects), self._versions) != before

    def _dependents(self, uid: str) -> list[ObjectKey]:
        return [
            key
            for key, obj in self.objects.items()
            if any(each["uid"] == uid for each in obj["metadata"].get("ownerReferences", ()))
        ]

    def _sees(self, key: ObjectKey, reference: Mapping[str, Any]) -> bool:
        """Whether the owner exists in the object's namespace or is cluster-scoped."""
        return any(
            obj["metadata"]["uid"] == reference["uid"] and other.namespace in {"", key.namespace}
            for other, obj in self.objects.items()
        )

    # -- the API server ------------------------------------------------------------------------------------------------------------------

    def info(self, kind: Kind) -> KindInfo:
        """The kinds that the cluster serves."""
        if kind in self.unserved:
            return KindInfo(kind, state=Served.UNSERVED, served=False)
        return self._kinds.info(kind)

    def state_of(self, observe: Observe) -> Served:
        return self.info(observe.kind).state

    def _create(self, sent: Object) -> dict[str, Any]:
        kind = Kind.of(sent)
        obj = copy.deepcopy(dict(sent))
        metadata = obj["metadata"]
        if kind in self.unserved:
            raise Refused(Failure.OTHER, "the server could not find the requested resource")
        if self.info(kind).namespaced:
            metadata.setdefault("namespace", self.home)
            home = self.objects.get(ObjectKey("", "Namespace", "", metadata["namespace"]))
            if home is None and metadata["namespace"] not in self._namespaces:
                raise Refused(Failure.OTHER, f'namespaces "{metadata["namespace"]}" not found')
            if home is not None and home["metadata"].get("deletionTimestamp"):
                raise Refused(Failure.FORBIDDEN, f'namespace "{metadata["namespace"]}" is being terminated')
        key = ObjectKey.of(obj)
        if key in self.objects:
            raise Refused(Failure.EXISTS, f"{key} already exists")
        self._uids += 1
        metadata |= {"uid": f"uid-{self._uids}", "generation": 1, "creationTimestamp": self._now()}
        if kind.group in {"", "batch", "apps"}:  # a test decides when an object is ready
            obj.pop("status", None)
        obj = self._admitted(kind, obj, None)
        return self._store(key, obj)

    def _update(self, key: ObjectKey, new: dict[str, Any], *, uid: str = "", version: str = "") -> dict[str, Any]:
        old = self.objects.get(key)
        if old is None:
            raise Refused(Failure.OTHER, f"{key} not found")
        theirs = old["metadata"]
        if (uid and uid != theirs["uid"]) or (version and version != theirs["resourceVersion"]):
            raise Refused(Failure.CONFLICT, f"{key} has been modified")
        new = copy.deepcopy(new)
        kept = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp")
        new["metadata"] |= {name: theirs[name] for name in kept if name in theirs}
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]
        new = self._admitted(Kind.of(new), new, old)
        if _spec_of(new) != _spec_of(old):
            new["metadata"]["generation"] = theirs["generation"] + 1
        if theirs.get("deletionTimestamp") and not new["metadata"].get("finalizers"):
            self._remove(key)
            self.collect()
            return new
        return self._store(key, new)

    def _admitted(self, kind: Kind, obj: dict[str, Any], old: Object | None) -> dict[str, Any]:
        """The object after strict validation, defaulting and normalisation."""
        for crd in self.project.crds:
            if (crd.group, crd.kind) == (kind.group, kind.kind):
                version = crd.version(kind.version)
                assert version is not None
                obj = default(prune(obj, version.schema), version.schema)
                findings = validate(obj, version.schema)
                if findings:
                    raise Refused(Failure.INVALID, "; ".join(map(str, findings)))
        shape = builtin_shape(kind)
        if shape is not None and (unknown := list(unknown_to_shape(obj, shape))):
            raise Refused(Failure.INVALID, f"strict decoding error: {unknown[0]}")
        for label, value in obj["metadata"].get("labels", {}).items():
            if len(value) > 63 or not LABEL.match(value):
                raise Refused(Failure.INVALID, f"metadata.labels.{label}: Invalid value: {value!r}")
        obj = without_nothing(obj) if shape is not None else {**obj, "metadata": without_nothing(obj["metadata"])}
        as_kept(obj)
        for path in IMMUTABLE.get(kind.kind, ()) if old is not None else ():
            if _at(obj, path) != _at(old, path):
                raise Refused(
                    Failure.IMMUTABLE, f"{kind.kind} {obj['metadata']['name']!r}: {'.'.join(path)}: field is immutable"
                )
        return obj

    def _store(self, key: ObjectKey, obj: dict[str, Any]) -> dict[str, Any]:
        """An update without changes keeps the resourceVersion."""
        before = self.objects.get(key)
        if obj != before:
            self._versions += 1
            obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self._versions)}}
            self.objects[key] = obj
            self._happened(key, before, obj)
        return self.objects[key]

    def _remove(self, key: ObjectKey) -> None:
        self._versions += 1
        self._happened(key, self.objects.pop(key), None)

    def _happened(self, key: ObjectKey, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        self.history.append(Happened(self._versions, key, old, new))
        for listener in self.listeners:
            listener(self.history[-1])

    @property
    def version(self) -> int:
        return self._versions

    def _delete(self, key: ObjectKey, propagation: str = "background") -> None:
        obj = self.objects[key]
        finalizers = list(obj["metadata"].get("finalizers", ()))
        if propagation == "orphan":
            finalizers.append("orphan")
        if not finalizers and key.kind != "Namespace":
            self._remove(key)
        elif not obj["metadata"].get("deletionTimestamp"):
            phase = {"status": {"phase": "Terminating"}} if key.kind == "Namespace" else {}
            metadata = {
                **obj["metadata"],
                "deletionTimestamp": self._now(),
                "generation": obj["metadata"]["generation"] + 1,
            }
            self._store(
                key, {**obj, **phase, "metadata": {**metadata, **({"finalizers": finalizers} if finalizers else {})}}
            )

    def _finalizers(self, key: ObjectKey, finalizers: list[str], *, version: str = "") -> None:
        obj = self.objects[key]
        self._update(key, {**obj, "metadata": {**obj["metadata"], "finalizers": finalizers}}, version=version)

    def _now(self) -> str:
        return f"2026-01-01T{self.moments // 60:02}:{self.moments % 60:02}:00Z"


def _spec_of(obj: Object) -> dict[str, Any]:
    return {name: value for name, value in obj.items() if name not in {"metadata", "status"}}


def _at(obj: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        obj = obj.get(name) if isinstance(obj, Mapping) else None
    return obj
