"""A cluster of one case: objects in a dictionary, the writes of a plan, deletion and the garbage collector.

It stores objects as they are written, with the metadata of the API server, but it fills in no defaults and runs no
controllers: a test says what controllers do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.offline.stand_in import EPOCH, OfflineKinds, as_live, stored_secret
from ruleop.authoring.ruletests.overlay import overlaid
from ruleop.core.kinds import Kind, Object, ObjectKey
from ruleop.core.merge import merge_patched
from ruleop.core.planning import (
    AddFinalizer,
    Create,
    Delete,
    Failed,
    Failure,
    FixedObjects,
    Outcome,
    Patch,
    RemoveFinalizer,
    Replace,
    ServerSideApply,
)
from ruleop.core.schema.shape import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.core.planning import Action


REJECTED: Final = "the test rejects it"


class CaseCluster:
    def __init__(self, kinds: OfflineKinds) -> None:
        self.kinds = kinds
        self.objects: dict[ObjectKey, Object] = {}
        self.writes: list[Action] = []  # of the current step
        self.rejected: frozenset[str] = frozenset()  # ids of children, and names of objects, whose writes fail
        self._versions = 1

    @property
    def fixed(self) -> FixedObjects:
        return FixedObjects(self.objects.values())

    # -- what a test changes -------------------------------------------------------------------------------------------

    def add(self, obj: Object) -> ObjectKey:
        """Creates an object, or changes the existing one to it."""
        [live] = as_live([obj], self.kinds)
        key = ObjectKey.of(live)
        before = self.objects.get(key)
        if before is not None:
            metadata = {**before["metadata"], **(obj.get("metadata") or {})}
            live = {**before, **obj, "metadata": metadata}
        self.store(key, live)
        return key

    def change(self, key: ObjectKey, patch: Mapping[str, Any]) -> None:
        """Changes an object. A controller that writes a status has seen the object as it is now."""
        before = self.objects[key]
        shape = self.kinds.info(Kind.of(before)).shape
        after = overlaid(before, patch, shape)
        status, fields = patch.get("status"), shape.fields.get("status", UNKNOWN).fields
        generation = after["metadata"].get("generation")
        if isinstance(status, dict) and "observedGeneration" in fields and generation is not None:
            after["status"] = {**after["status"], "observedGeneration": status.get("observedGeneration", generation)}
        self.store(key, after)

    def delete(self, key: ObjectKey) -> None:
        """Deletes an object. With finalizers it stays, as being deleted."""
        obj = self.objects[key]
        if obj["metadata"].get("finalizers"):
            if not obj["metadata"].get("deletionTimestamp"):
                self.store(key, {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": EPOCH}})
            return
        del self.objects[key]
        self._collect(obj["metadata"]["uid"])

    def _collect(self, uid: str) -> None:
        """The garbage collector: deletes the objects of an owner that is gone, unless another owner of them exists."""
        uids = {each["metadata"]["uid"] for each in self.objects.values()}
        for key, obj in list(self.objects.items()):
            owners = {each.get("uid") for each in obj["metadata"].get("ownerReferences") or ()}
            if uid in owners and uids.isdisjoint(owners) and key in self.objects:
                self.delete(key)

    def store(self, key: ObjectKey, obj: Object) -> Object:
        """Stores a new version of an object."""
        self._versions += 1
        before = self.objects.get(key)
        metadata = {**obj["metadata"], "resourceVersion": str(self._versions)}
        if before is not None and before["metadata"].get("generation") and before.get("spec") != obj.get("spec"):
            metadata["generation"] = before["metadata"]["generation"] + 1
        stored = stored_secret({**obj, "metadata": metadata})
        self.objects[key] = stored
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self.delete(key)
        return stored

    # -- what a plan writes --------------------------------------------------------------------------------------------

    def execute(self, actions: Iterable[Action]) -> Outcome:
        """The writes of a plan: deletions last, and without those that need a failed write."""
        outcome = Outcome()
        stopped: set[str] = set()
        for action in sorted(actions, key=_turn):
            ends = isinstance(action, RemoveFinalizer) or (isinstance(action, Delete) and action.after_writes)
            if action.needs & stopped or (ends and outcome.failed):
                stopped.add(action.child)
                continue
            if not isinstance(action, (AddFinalizer, RemoveFinalizer)) and self._rejects(action):
                stopped.add(action.child)
                digest = "" if isinstance(action, Delete) else action.desired_digest
                outcome.failed[action.key] = Failed(Failure.INVALID, REJECTED, digest)
                continue
            self._write(action, outcome)
            self.writes.append(action)
            outcome.done.append(action)
        return outcome

    def _rejects(self, action: Action) -> bool:
        return not self.rejected.isdisjoint({action.child, f"{action.key.kind}/{action.key.name}", str(action.key)})

    def _write(self, action: Action, outcome: Outcome) -> None:
        match action:
            case Create():
                [live] = as_live([action.object], self.kinds)
                live["metadata"].setdefault("generation", 1)
                outcome.written[action.key] = (action.object, self.store(action.key, live))
            case Patch():
                patched = merge_patched(self.objects[action.key], _without_guards(action.patch))
                answer = self.store(action.key, patched)
                if action.sent is not None:
                    outcome.written[action.key] = (action.sent, answer)
            case Replace():
                before = self.objects[action.key]
                metadata = {**_server_metadata(before), **action.object["metadata"]}
                answer = self.store(action.key, {**action.object, "metadata": metadata})
                outcome.written[action.key] = (action.object, answer)
            case ServerSideApply():
                applied = overlaid(
                    self.objects.get(action.key, {}), action.object, self.kinds.info(Kind.of(action.object)).shape
                )
                [live] = as_live([applied], self.kinds)
                outcome.written[action.key] = (action.object, self.store(action.key, live))
            case Delete():
                outcome.deleted.add(action.key)
                self.delete(action.key)
            case AddFinalizer():
                self._set_finalizers(action.key, [*self._finalizers(action.key), action.finalizer])
            case RemoveFinalizer():
                self._set_finalizers(
                    action.key, [each for each in self._finalizers(action.key) if each != action.finalizer]
                )

    def _finalizers(self, key: ObjectKey) -> list[str]:
        return self.objects[key]["metadata"].get("finalizers") or []

    def _set_finalizers(self, key: ObjectKey, finalizers: list[str]) -> None:
        obj = self.objects[key]
        self.store(key, {**obj, "metadata": {**obj["metadata"], "finalizers": finalizers}})


def _turn(action: Action) -> int:
    if isinstance(action, RemoveFinalizer):
        return 2
    return 1 if isinstance(action, Delete) and action.after_writes else 0


def _without_guards(patch: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {name: value for name, value in patch["metadata"].items() if name not in {"uid", "resourceVersion"}}
    return {**patch, "metadata": metadata}


def _server_metadata(obj: Object) -> dict[str, Any]:
    kept = ("uid", "generation", "creationTimestamp", "deletionTimestamp", "finalizers")
    return {name: obj["metadata"][name] for name in kept if name in obj["metadata"]}
