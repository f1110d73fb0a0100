"""Carries out a plan: each action with its preconditions, independent ones at once, dependent ones in order.

The plan was made from stores, which are always a little behind. So every write names what it was planned for (uid and resourceVersion), and
what the server answers is put into the store at once, so that the next pass sees it. Where the server says that the world is another than
planned (the object exists, has changed, is gone, or nobody knows what became of the request), the object is read live and the CR planned
again; that is no failure. What the server refuses for good is a failure, and goes into the CR's condition.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ruleop.errors import RuleopError
from ruleop.kinds import Kind, Object, ObjectKey
from ruleop.planning import (
    Action,
    AddFinalizer,
    Create,
    Delete,
    Failed,
    Failure,
    Owner,
    Patch,
    RemoveFinalizer,
    Replace,
    ServerSideApply,
)
from ruleop.planning.marks import claim_on

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Api(Protocol):
    """The writes and live reads that a plan needs. All raise `ApiError`."""

    async def read(self, kind: Kind, key: ObjectKey) -> Object | None: ...
    async def create(self, obj: Object) -> Object: ...
    async def patch(self, kind: Kind, key: ObjectKey, patch: Mapping[str, Any]) -> Object: ...
    async def replace(self, obj: Object) -> Object: ...
    async def apply(self, obj: Object, *, migrate: bool) -> Object: ...
    async def delete(self, kind: Kind, key: ObjectKey, *, uid: str, version: str, propagation: str) -> Object | None: ...


class Stores(Protocol):
    """Where answers go, so that what was written is seen."""

    def put(self, obj: Object) -> bool:
        """False where no store holds such objects: it is not labelled as a child."""
        ...

    def remove(self, kind: Kind, key: ObjectKey, uid: str) -> None: ...


@dataclass(slots=True)
class Outcomes:
    """What became of a plan's actions."""

    written: dict[ObjectKey, tuple[Object, Object]] = field(default_factory=dict)  # what was sent, and the answer
    deleted: set[ObjectKey] = field(default_factory=set)
    failed: dict[ObjectKey, Failed] = field(default_factory=dict)
    foreign: dict[ObjectKey, Object] = field(default_factory=dict)  # what is in the way of a child, read live
    replan: bool = False  # something is other than planned: plan again at once
    resource: Object | None = None  # the CR, as the answer to a write on it
    retry_after: float | None = None

    @property
    def clean(self) -> bool:
        return not self.failed and not self.replan


class Classifier(Protocol):
    def __call__(self, error: RuleopError) -> tuple[Failure | None, float | None]: ...


class Executor:
    def __init__(self, api: Api, stores: Stores, classify: Classifier) -> None:
        self.api = api
        self.stores = stores
        self.classify = classify

    async def execute(self, actions: Sequence[Action], resource: Object) -> Outcomes:
        """Runs the actions in waves: those whose needs are met, all at once; then those that needed them."""
        run = _Run(self, resource)
        waiting = list(actions)
        while waiting:
            pending = {_child(action) for action in waiting}
            ready = [action for action in waiting if not (action.needs - {_child(action)}) & pending and not _held_back(action, waiting)]
            if not ready:  # they need each other: the rules have no cycles, so this is one child in several roles
                ready = waiting
            waiting = [action for action in waiting if action not in ready]
            await asyncio.gather(*(run.one(action) for action in ready))
        return run.outcomes


def _child(action: Action) -> str:
    return "" if isinstance(action, (AddFinalizer, RemoveFinalizer)) else action.child


def _held_back(action: Action, waiting: Sequence[Action]) -> bool:
    """Deletions come after all writes, and our finalizer goes last of all."""
    if isinstance(action, RemoveFinalizer):
        return any(not isinstance(other, RemoveFinalizer) for other in waiting)
    if isinstance(action, Delete) and action.after_writes:
        return any(not isinstance(other, (Delete, RemoveFinalizer)) for other in waiting)
    return False


class _Run:
    def __init__(self, executor: Executor, resource: Object) -> None:
        self.api, self.stores, self.classify = executor.api, executor.stores, executor.classify
        self.resource = resource
        self.outcomes = Outcomes()
        self.broken: set[str] = set()  # children whose write did not succeed

    async def one(self, action: Action) -> None:
        if action.needs & self.broken or (isinstance(action, (Delete, RemoveFinalizer)) and not self._may_end(action)):
            self.broken.add(_child(action))
            return
        try:
            await self._do(action)
        except RuleopError as error:
            self.broken.add(_child(action))
            await self._fail(action, error)

    def _may_end(self, action: Action) -> bool:
        return self.outcomes.clean if isinstance(action, RemoveFinalizer) or (isinstance(action, Delete) and action.after_writes) else True

    async def _do(self, action: Action) -> None:
        match action:
            case Create():
                self._written(action.key, action.object, await self.api.create(action.object))
            case Patch():
                self._written(action.key, action.sent, await self.api.patch(Kind.of(action.live), action.key, action.patch))
            case Replace():
                self._written(action.key, action.object, await self.api.replace(action.object))
            case ServerSideApply():
                self._written(action.key, action.object, await self.api.apply(action.object, migrate=action.migrate))
            case Delete():
                await self._delete(action)
            case AddFinalizer():
                await self._finalizers([*self._finalizers_now(), action.finalizer])
            case RemoveFinalizer():
                await self._finalizers([each for each in self._finalizers_now() if each != action.finalizer])

    def _written(self, key: ObjectKey, sent: Object | None, answer: Object) -> None:
        if sent is not None:
            self.outcomes.written[key] = (sent, answer)
        self.stores.put(answer)

    async def _delete(self, action: Delete) -> None:
        """After a live read: what is deleted is the very object that the plan was made for, and still ours."""
        kind, metadata = Kind.of(action.live), action.live["metadata"]
        live = await self.api.read(kind, action.key)
        if live is None:
            self.stores.remove(kind, action.key, metadata.get("uid", ""))
            self.outcomes.deleted.add(action.key)
            return
        same = all(live["metadata"].get(name) == metadata.get(name) for name in ("uid", "resourceVersion"))
        if not same or not claim_on(live, action.key, Owner.of(self.resource)).ours:
            self.stores.put(live)
            self.outcomes.replan = True
            self.broken.add(action.child)
            return
        answer = await self.api.delete(
            kind, action.key, uid=metadata["uid"], version=metadata["resourceVersion"], propagation=action.propagation.capitalize()
        )
        self.outcomes.deleted.add(action.key)
        if answer is not None and (answer.get("metadata") or {}).get("deletionTimestamp"):
            self.stores.put(answer)
        else:
            self.stores.remove(kind, action.key, metadata["uid"])

    def _finalizers_now(self) -> list[str]:
        return list(self.resource["metadata"].get("finalizers") or [])

    async def _finalizers(self, finalizers: list[str]) -> None:
        metadata = self.resource["metadata"]
        patch = {"metadata": {"finalizers": finalizers, "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}}
        answer = await self.api.patch(Kind.of(self.resource), ObjectKey.of(self.resource), patch)
        self.resource = self.outcomes.resource = answer
        self.stores.put(answer)

    async def _fail(self, action: Action, error: RuleopError) -> None:
        failure, retry_after = self.classify(error)
        if retry_after is not None:
            self.outcomes.retry_after = max(retry_after, self.outcomes.retry_after or 0.0)
        if isinstance(action, (AddFinalizer, RemoveFinalizer)):
            await self._reread(Kind.of(self.resource), ObjectKey.of(self.resource))
            self.outcomes.replan = True
            return
        if failure is None:  # the world is other than planned, or nobody knows what became of the request
            kind = Kind.of(action.object if isinstance(action, (Create, Replace, ServerSideApply)) else action.live)
            await self._reread(kind, action.key)
            self.outcomes.replan = True
            return
        wanted = "" if isinstance(action, Delete) else action.wanted
        self.outcomes.failed[action.key] = Failed(failure, str(error), wanted)

    async def _reread(self, kind: Kind, key: ObjectKey) -> None:
        try:
            live = await self.api.read(kind, key)
        except RuleopError as error:
            self.outcomes.failed[key] = Failed(Failure.OTHER, str(error))
            return
        if live is None:
            self.stores.remove(kind, key, "")
        elif not self.stores.put(live):
            self.outcomes.foreign[key] = live
