"""A cluster in memory, an operator that plays in it, and the hand that plays everybody else.

The cluster keeps what a real one promises and planning relies on: identity, uids, resourceVersions and generations; preconditions; strict
fields, values that come back other than they were sent, defaults that nobody asked for, fields that cannot change; finalizers, the garbage
collector, namespaces that take what is in them with them. It has no controllers: a test says when a Deployment is available.

The operator is the engine's loop without its haste: plan, carry out, plan again for the status, until there is nothing left to do. Whatever
is asked of planning in a life is asked of it here on each pass: that the same arguments give the same plan, and that it changes none of them.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ruleop.kinds import Kind, Object, ObjectKey
from ruleop.merge import Learned
from ruleop.planning import (
    Action,
    AddFinalizer,
    Create,
    Delete,
    Event,
    Failed,
    Failure,
    FixedObjects,
    KindInfo,
    Observed,
    Patch,
    Plan,
    RemoveFinalizer,
    Replace,
    Served,
    ServerSideApply,
    choose_rule,
    plan,
)
from ruleop.planning.marks import APPLIED
from ruleop.planning.offline import OfflineKinds
from ruleop.schema.fields import unknown_to_shape
from ruleop.schema.structural import default, prune
from ruleop.schema.table import builtin_shape
from ruleop.schema.validation import validate
from tests.projects.admission import as_kept, settled, without_nothing
from tests.projects.rendering import loaded

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FINALIZER = "ruleop.dev/ruleop"
MOST_PASSES = 12
LABEL = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?\Z")

IMMUTABLE: dict[str, tuple[tuple[str, ...], ...]] = {
    "Deployment": (("spec", "selector"),),
    "StatefulSet": (("spec", "selector"), ("spec", "serviceName"), ("spec", "volumeClaimTemplates"), ("spec", "podManagementPolicy")),
    "Job": (("spec", "template"), ("spec", "completions")),
    "PersistentVolumeClaim": (("spec", "accessModes"), ("spec", "storageClassName")),
    "RoleBinding": (("roleRef",),),
    "Service": (("spec", "clusterIP"),),
}


class Refused(Exception):  # noqa: N818 - it is no error of the test's
    def __init__(self, failure: Failure, message: str) -> None:
        super().__init__(message)
        self.failure, self.message = failure, message


@dataclass(slots=True)
class Memory:
    """What the engine remembers of a CR between passes."""

    learned: dict[ObjectKey, Learned]
    failed: dict[ObjectKey, Failed]
    recreated: dict[ObjectKey, str]
    reason: str = ""


class World:
    def __init__(self, folder: Path, *, home: str = "default", namespaces: Iterable[str] = (), unserved: Iterable[Kind] = ()) -> None:
        """`home`: the namespace that names leave out. `unserved`: kinds that the cluster does not have, beside those that it never had."""
        self.project = loaded(folder)
        self.home = home
        self.unserved = set(unserved)
        self.objects: dict[ObjectKey, dict[str, Any]] = {}
        self.events: list[Event] = []
        self.last: Plan | None = None
        self.may_prune = True
        self._kinds = OfflineKinds(self.project)
        self._namespaces = {home, *namespaces}
        self._memories: dict[str, Memory] = {}
        self._writes: list[str] = []
        self._uids = self._versions = self._passes = 0

    # -- looking -------------------------------------------------------------------------------------------------------------------------

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
        """All that there is."""
        return sorted(map(self.name, self.objects))

    def bare(self, name: str) -> dict[str, Any]:
        """An object without what every object has: uid, versions, times, owner, and ruleop's marks."""
        obj = self[name]
        metadata = obj["metadata"]
        kept = {field: metadata[field] for field in ("name", "namespace") if field in metadata}
        for field, ours in (
            ("labels", {"ruleop.dev/part-of", "app.kubernetes.io/managed-by"}),
            ("annotations", {APPLIED, "ruleop.dev/owner"}),
        ):
            rest = {key: value for key, value in metadata.get(field, {}).items() if key not in ours}
            if rest:
                kept[field] = rest
        return {**obj, "metadata": kept}

    def conditions(self, name: str) -> dict[str, tuple[str, str, str]]:
        """Status, reason and message, by type."""
        found = self[name].get("status", {}).get("conditions", [])
        return {each["type"]: (each["status"], each["reason"], each.get("message", "")) for each in found}

    def ready(self, name: str) -> tuple[str, str]:
        status, reason, _ = self.conditions(name)["Ready"]
        return status, reason

    def fields(self, name: str) -> dict[str, Any]:
        """The projected status."""
        status = self[name].get("status", {})
        return {key: value for key, value in status.items() if key not in {"conditions", "observedGeneration"}}

    @property
    def waits(self) -> dict[str, str]:
        """What the last pass waited for."""
        assert self.last is not None
        return {wait.child: wait.for_what for wait in self.last.waits}

    # -- everybody else ------------------------------------------------------------------------------------------------------------------

    def add(self, *objects: Object) -> None:
        """Somebody creates objects."""
        for obj in objects:
            self._create(obj)

    def edit(self, name: str, patch: Mapping[str, Any]) -> None:
        """Somebody edits an object, with a merge patch."""
        key = self.key(name)
        self._update(key, _merged(self.objects[key], patch))

    def change(self, name: str, how: Callable[[dict[str, Any]], object]) -> None:
        """Somebody edits an object, where a merge patch would have to repeat a list."""
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
        """Controllers have done their work on these objects; without names, on all."""
        for name in names or self.names:
            found = settled(self[name])
            if found is not None and found != self[name].get("status"):
                self.status(name, found)

    def collect(self) -> None:
        """The garbage collector, and the end of namespaces."""
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
                    del self.objects[key]
                continue
            if metadata.get("deletionTimestamp") and "orphan" in metadata.get("finalizers", ()):
                for each in self._dependents(metadata["uid"]):
                    theirs = self.objects[each]["metadata"]
                    rest = [reference for reference in theirs["ownerReferences"] if reference["uid"] != metadata["uid"]]
                    self._store(each, without_nothing({**self.objects[each], "metadata": {**theirs, "ownerReferences": rest}}))
                self._finalizers(key, [each for each in metadata["finalizers"] if each != "orphan"])
                continue
            owners = metadata.get("ownerReferences") or []
            if owners and not any(self._sees(key, reference) for reference in owners):
                self._delete(key)
        return (len(self.objects), self._versions) != before

    def _dependents(self, uid: str) -> list[ObjectKey]:
        return [key for key, obj in self.objects.items() if any(each["uid"] == uid for each in obj["metadata"].get("ownerReferences", ()))]

    def _sees(self, key: ObjectKey, reference: Mapping[str, Any]) -> bool:
        """An owner is looked for in the object's own namespace, or among what has none."""
        return any(
            obj["metadata"]["uid"] == reference["uid"] and other.namespace in {"", key.namespace} for other, obj in self.objects.items()
        )

    # -- the API server ------------------------------------------------------------------------------------------------------------------

    def info(self, kind: Kind) -> KindInfo:
        """What the operator sees of kinds."""
        if kind in self.unserved:
            return KindInfo(kind, state=Served.UNSERVED)
        return self._kinds.info(kind)

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
        if kind.group in {"", "batch", "apps"}:  # whoever wants an object ready says so
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
            del self.objects[key]
            self.collect()
            return new
        return self._store(key, new)

    def _admitted(self, kind: Kind, obj: dict[str, Any], old: Object | None) -> dict[str, Any]:
        """Validated strictly, defaulted, and with values as the server writes them."""
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
                raise Refused(Failure.IMMUTABLE, f"{kind.kind} {obj['metadata']['name']!r}: {'.'.join(path)}: field is immutable")
        return obj

    def _store(self, key: ObjectKey, obj: dict[str, Any]) -> dict[str, Any]:
        """Nothing is written where nothing changes."""
        if obj != self.objects.get(key):
            self._versions += 1
            obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self._versions)}}
            self.objects[key] = obj
        return self.objects[key]

    def _delete(self, key: ObjectKey, propagation: str = "background") -> None:
        obj = self.objects[key]
        finalizers = list(obj["metadata"].get("finalizers", ()))
        if propagation == "orphan":
            finalizers.append("orphan")
        if not finalizers and key.kind != "Namespace":
            del self.objects[key]
        elif not obj["metadata"].get("deletionTimestamp"):
            phase = {"status": {"phase": "Terminating"}} if key.kind == "Namespace" else {}
            metadata = {**obj["metadata"], "deletionTimestamp": self._now(), "generation": obj["metadata"]["generation"] + 1}
            self._store(key, {**obj, **phase, "metadata": {**metadata, **({"finalizers": finalizers} if finalizers else {})}})

    def _finalizers(self, key: ObjectKey, finalizers: list[str], *, version: str = "") -> None:
        obj = self.objects[key]
        self._update(key, {**obj, "metadata": {**obj["metadata"], "finalizers": finalizers}}, version=version)

    def _now(self) -> str:
        return f"2026-01-01T{self._passes // 60:02}:{self._passes % 60:02}:00Z"

    # -- the operator --------------------------------------------------------------------------------------------------------------------

    def rest(self) -> list[str]:
        """The operator works until it has nothing to do; what it wrote to others than the CR's status, in order."""
        for _ in range(MOST_PASSES):
            if not sum(self.work(key) for key in self._resources()):
                break
            self.collect()
        else:
            raise AssertionError(f"the operator finds no rest: {self._writes}")
        writes, self._writes = self._writes, []
        return writes

    def _resources(self) -> list[ObjectKey]:
        watched = {rule.kind.versionless for rule in self.project.rules}
        return sorted(key for key in self.objects if key.group_kind in watched)

    def planned(self, key: ObjectKey, *, failed: Mapping[ObjectKey, Failed] | None = None, settled: bool = False) -> Plan:
        resource = self.objects[key]
        rule = choose_rule(self.project.rules, resource)
        assert rule is not None
        memory = self._memories.setdefault(resource["metadata"]["uid"], Memory({}, {}, {}))
        observed = Observed(
            objects=FixedObjects(obj for obj in self.objects.values() if Kind.of(obj) not in self.unserved),
            kinds=self,
            now=self._now(),
            seed=f"pass {self._passes}".encode(),
            finalizer=FINALIZER,
            learned=memory.learned,
            failed=memory.failed if failed is None else failed,
            recreated=memory.recreated,
            last_reason=memory.reason,
            may_prune=self.may_prune,
            namespace_terminating=ObjectKey("", "Namespace", "", key.namespace) in self.objects
            and "deletionTimestamp" in self.objects[ObjectKey("", "Namespace", "", key.namespace)]["metadata"],
            settled=settled,
        )
        before = json.dumps(list(self.objects.values()))
        found = plan(rule, resource, observed)
        assert json.dumps(list(self.objects.values())) == before, "planning has changed what it was given"
        assert found == plan(rule, resource, observed), "the same arguments have given another plan"
        return found

    def work(self, key: ObjectKey) -> bool:
        """One pass over one CR. False when there was nothing to do."""
        self._passes += 1
        self.last = first = self.planned(key)
        if first.quiet:
            return False
        failed: dict[ObjectKey, Failed] = {}
        if first.actions:
            failed = self._execute(key, first.actions)
            if key not in self.objects:
                self.events += first.events
                return True
            self.last = self.planned(key, failed=failed, settled=True)
            assert not self.last.actions
        memory = self._memories[self.last.uid]
        memory.reason = self.last.conditions[0]["reason"] if self.last.conditions else ""
        self.events += self.last.events
        status = self.last.status
        wrote = status is not None and status.patch is not None
        if status is not None and status.patch is not None:
            guards = status.patch["metadata"]
            live = self.objects[key]
            assert guards["uid"] == live["metadata"]["uid"]
            assert guards["resourceVersion"] == live["metadata"]["resourceVersion"]
            merged = _merged(live.get("status", {}), status.patch["status"])
            assert merged == status.status
            assert self._admitted(Kind.of(live), {**live, "status": merged}, None)["status"] == merged, "the server would drop a part of it"
            self._store(key, {**live, "status": merged})
        # A write that failed is tried again with backoff, which is no work while nothing changes.
        return wrote or any(getattr(action, "key", None) not in failed for action in first.actions)

    def _execute(self, resource: ObjectKey, actions: Iterable[Action]) -> dict[ObjectKey, Failed]:
        """In order, deletions after all writes; what needs a failed write is skipped."""
        failed: dict[ObjectKey, Failed] = {}
        broken: set[str] = set()
        memory = self._memories[self.objects[resource]["metadata"]["uid"]]
        for action in sorted(actions, key=_turn):
            child = "" if isinstance(action, (AddFinalizer, RemoveFinalizer)) else action.child
            ending = isinstance(action, RemoveFinalizer) or (isinstance(action, Delete) and action.after_writes)
            if action.needs & broken or (ending and failed):
                broken.add(child)
                continue
            try:
                self._do(resource, action, memory)
            except Refused as refused:
                assert not isinstance(action, (AddFinalizer, RemoveFinalizer))
                broken.add(child)
                failed[action.key] = Failed(refused.failure, refused.message, "" if isinstance(action, Delete) else action.wanted)
                self._writes.append(f"failed {self.name(action.key)}: {refused.message}")
        acted = {action.key for action in actions if not isinstance(action, (AddFinalizer, RemoveFinalizer))}
        known = {key: each for key, each in memory.failed.items() if key not in acted}
        memory.failed = known | {key: each for key, each in failed.items() if each.failure is Failure.IMMUTABLE}
        return known | failed

    def _do(self, resource: ObjectKey, action: Action, memory: Memory) -> None:
        match action:
            case Create():
                self._learn(memory, action, action.object, self._create(action.object))
                self._writes.append(f"create {self.name(action.key)}")
            case Patch():
                before, guards = self.objects[action.key], action.patch["metadata"]
                assert {"uid", "resourceVersion"} <= guards.keys()
                answer = self._update(action.key, _merged(before, action.patch), uid=guards["uid"], version=guards["resourceVersion"])
                if action.sent is not None:
                    self._learn(memory, action, action.sent, answer)
                self._note({"changed": "patch", "adopted": "adopt", "released": "release"}[action.why], action.key, before, answer)
            case Replace():
                before, guards = self.objects[action.key], action.object["metadata"]
                answer = self._update(action.key, dict(action.object), uid=guards["uid"], version=guards["resourceVersion"])
                self._learn(memory, action, action.object, answer)
                self._note("replace", action.key, before, answer)
            case ServerSideApply():
                raise NotImplementedError("no project says strategy: server-side")
            case Delete():
                theirs = self.objects[action.key]["metadata"]
                assert all(theirs[name] == action.live["metadata"][name] for name in ("uid", "resourceVersion"))
                if action.why == "recreate":
                    memory.recreated[action.key] = memory.failed[action.key].wanted
                self._delete(action.key)
                self._writes.append(f"delete {self.name(action.key)}: {action.why}")
            case AddFinalizer():
                finalizers = self.objects[resource]["metadata"].get("finalizers", [])
                self._finalizers(resource, [*finalizers, action.finalizer])
                self._writes.append("finalizer added")
            case RemoveFinalizer():
                finalizers = self.objects[resource]["metadata"]["finalizers"]
                assert action.finalizer in finalizers
                self._finalizers(resource, [each for each in finalizers if each != action.finalizer])
                self._writes.append("finalizer removed")

    def _learn(self, memory: Memory, action: Create | Patch | Replace, sent: Object, answer: Object) -> None:
        memory.learned[action.key] = Learned.NOTHING.learn(sent, answer, self.info(Kind.of(answer)).shape)

    def _note(self, verb: str, key: ObjectKey, before: Object, after: Object) -> None:
        paths = [path for path in _differences(before, after) if path not in _SERVERS]
        self._writes.append(f"{verb} {self.name(key)}: {' '.join(paths)}".rstrip(": "))


_SERVERS = {"metadata.resourceVersion", "metadata.generation", f"metadata.annotations[{APPLIED}]"}


def _turn(action: Action) -> int:
    if isinstance(action, RemoveFinalizer):
        return 2
    return 1 if isinstance(action, Delete) and action.after_writes else 0


def _spec_of(obj: Object) -> dict[str, Any]:
    return {name: value for name, value in obj.items() if name not in {"metadata", "status"}}


def _at(obj: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        obj = obj.get(name) if isinstance(obj, Mapping) else None
    return obj


def _merged(value: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    result = dict(value) if isinstance(value, Mapping) else {}
    for name, each in patch.items():
        if each is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), each)
    return result


def _differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """The paths that differ: +x came, -x went, x is another."""
    if isinstance(before, list) and isinstance(after, list):
        before, after = (_by_name(value) for value in (before, after))
        if before is None or after is None:
            yield path
            return
        steps = {name: f"{path}[{name}]" for name in {**before, **after}}
        if steps and list(before) != list(after) and before.keys() == after.keys():
            yield f"{path} order"
    elif isinstance(before, Mapping) and isinstance(after, Mapping):
        steps = {name: _step(path, name) for name in {**before, **after}}
    else:
        if before != after:
            yield path
        return
    for name, step in steps.items():
        if name not in before:
            yield f"+{step}"
        elif name not in after:
            yield f"-{step}"
        elif before[name] != after[name]:
            yield from _differences(before[name], after[name], step)


def _step(path: str, name: str) -> str:
    if not re.fullmatch(r"\w+", name):
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else name


def _by_name(items: list[Any]) -> dict[str, Any] | None:
    if not all(isinstance(item, Mapping) for item in items):
        return None
    names = [str(item.get("name", item.get("uid", index))) for index, item in enumerate(items)]
    return dict(zip(names, items, strict=True)) if len({*names}) == len(names) else None
