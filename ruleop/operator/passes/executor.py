"""Carries out a plan: each action with its preconditions, independent ones concurrently, dependent ones in order.

The plan was made from stores, which are always slightly behind the API server. So each write carries the uid and the
resourceVersion that it was planned for, and the response is put into the store at once, so that the next pass sees it.
If the response shows that the plan is outdated (the object exists, has changed or is gone), or the outcome of the
request is unknown, the object is read live and the CR is planned again; this does not count as a failure. A permanent
rejection is a failure, and is reported in the CR's conditions.

After a write with an unknown outcome, the live read decides. If the object is unchanged, the write did not happen, and
a new plan would only repeat it: this is a failure, and is retried with backoff."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import Kind, Object, ObjectKey, parse_version, version_of
from ruleop.kubernetes.permissions import IMPERSONATE
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.planning import (
    GRANT,
    Action,
    AddFinalizer,
    Create,
    Delete,
    Expire,
    Failed,
    Failure,
    Outcome,
    Owner,
    Patch,
    RemoveFinalizer,
    ResourceAction,
    ServerSideApply,
)
from ruleop.planning.model.actions import OWN_FINALIZER
from ruleop.planning.model.marks import claim_on

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from ruleop.kubernetes.permissions import ServiceAccount
    from ruleop.operator.cache import OwnWrites
    from ruleop.operator.server_api import ServerApi
    from ruleop.planning import KindInfo
    from ruleop.planning.model.marks import Proofs


# -- write failures ----------------------------------------------------------------------------------------------------
#
# Classifies an `ApiError` for the executor: plan again, or report a failure on the CR.


# A retry of the same object fails again.
_FOR_GOOD = frozenset({Problem.INVALID, Problem.TOO_LARGE, Problem.UNSUPPORTED})


def classify(error: RuleopError) -> tuple[Failure | None, float | None]:
    """The failure to report on the CR, and the server's Retry-After in seconds.

    The failure is None if the plan is outdated or the outcome is unknown: then the object is read live and the CR is
    planned again.
    """
    if not isinstance(error, ApiError):
        return Failure.OTHER, None
    if error.problem is Problem.NOT_FOUND:
        # For a create, the namespace or the kind is missing; neither a live read nor another plan helps.
        return (Failure.OTHER if error.verb == "create" else None), error.retry_after
    if error.held_by_others:
        return Failure.HELD, error.retry_after
    if error.problem in {Problem.CONFLICT, Problem.EXISTS} or error.outcome_unknown:
        return None, error.retry_after
    if error.problem is Problem.FORBIDDEN:
        # A terminating namespace is answered with 403, too, but it is a temporary state and not a missing permission.
        return (Failure.OTHER if error.namespace_terminating else Failure.FORBIDDEN), error.retry_after
    if error.problem in _FOR_GOOD:
        return (Failure.IMMUTABLE if error.immutable else Failure.INVALID), error.retry_after
    return Failure.OTHER, error.retry_after


# -- executor ----------------------------------------------------------------------------------------------------------


MAX_CONCURRENT_WRITES = 8
"""Concurrent writes of one CR. The client sends 16 requests at once, in the order of the calls. Without this limit, a
CR with a thousand children would delay all others."""


class Stores(Protocol):
    """The stores, into which each response is put. A dry run on the server has none."""

    def info(self, kind: Kind) -> KindInfo: ...

    def put(self, obj: Object) -> bool:
        """False if no store is responsible for the object: it lacks ruleop's label."""
        ...

    def remove(self, key: ObjectKey, uid: str, version: str = "") -> None:
        """Removes an object that was deleted or, with a version, had lost ruleop's label in that version."""
        ...


class Executor:
    def __init__(
        self,
        api: ServerApi,
        stores: Stores,
        own_writes: OwnWrites,
        *,
        proofs: Callable[[], Proofs | None] = lambda: None,
    ) -> None:
        self.api = api
        self.stores = stores
        self.own_writes = own_writes
        self.proofs = proofs

    async def refresh(self, kind: Kind, key: ObjectKey) -> Object | None:
        """Reads an object live, and puts it into the stores."""
        live = await self.api.read(kind, key)
        if live is not None:
            self.stores.put(live)
        return live

    async def execute(
        self,
        actions: Sequence[Action],
        resource: Object,
        report: Callable[[Action], None] = lambda _: None,
        *,
        account: ServiceAccount | None = None,
    ) -> Outcome:
        """Runs the actions in waves: first those whose needs are met, concurrently; then those that depend on them.
        Each action that ruleop itself has done is reported at once. `account`: by whose permissions children are
        written; the CR itself always by the operator's."""
        run = _Run(self, resource, report, account)
        waiting = list(actions)
        while len(waiting) > 1:
            ready, waiting = _wave(waiting)
            await run.all(ready)
        for action in waiting:
            await run.one(action)
        return run.outcome


def _provides(action: Action) -> str | None:
    """The need of other actions that this one meets: the id of a written child, or the finalizer. None for a deletion
    or a release."""
    if isinstance(action, AddFinalizer):
        return OWN_FINALIZER
    if isinstance(action, RemoveFinalizer | Expire):
        return None
    ends = (isinstance(action, Delete) and action.why != "recreate") or (
        isinstance(action, (Patch, ServerSideApply)) and action.why in {"released", "given up"}
    )
    return None if ends else action.child


def _is_last(action: Action) -> bool:
    """Whether the action is a deletion that comes after all writes."""
    return isinstance(action, Delete) and action.after_writes


def _wave(waiting: list[Action]) -> tuple[list[Action], list[Action]]:
    """The actions to run now, and those that wait for them. Deletions wait for all writes, and the removal of the
    finalizer waits for everything else."""
    pending = {_provides(action) for action in waiting}
    still_writing = any(not _is_last(action) and not isinstance(action, RemoveFinalizer) for action in waiting)
    still_deleting = any(not isinstance(action, RemoveFinalizer) for action in waiting)
    now: list[Action] = []
    later: list[Action] = []
    for action in waiting:
        held = still_deleting if isinstance(action, RemoveFinalizer) else still_writing and _is_last(action)
        (later if held or action.needs & pending else now).append(action)
    # Cyclic needs are rejected when the rules are loaded. If there are any nevertheless, the order in the rule decides.
    return (now, later) if now else (later[:1], later[1:])


class _Run:
    def __init__(
        self, executor: Executor, resource: Object, report: Callable[[Action], None], account: ServiceAccount | None
    ) -> None:
        self.account, self.writer = account, executor.api.writing_as(account)
        self.api, self.stores, self.own_writes = executor.api, executor.stores, executor.own_writes
        self.resource, self.report = resource, report
        self.proofs = executor.proofs
        self.outcome = Outcome()
        self.not_provided: set[str | None] = set()  # needs that are not met, because their action failed

    async def all(self, actions: Sequence[Action]) -> None:
        """Runs the actions, some at once. All of them are run even after an internal error in one, and it waits for
        all: a write that is still running could overlap with the next pass of its CR."""
        left, errors = iter(actions), list[BaseException]()

        async def work() -> None:
            for action in left:
                try:
                    await self.one(action)
                except Exception as error:  # noqa: BLE001 - raised below
                    errors.append(error)

        await asyncio.gather(*(work() for _ in range(min(len(actions), MAX_CONCURRENT_WRITES))))
        for error in errors:
            raise error

    async def one(self, action: Action) -> None:
        if action.needs & self.not_provided or (not self.outcome.clean and isinstance(action, RemoveFinalizer)):
            self.not_provided.add(_provides(action))
            return
        try:
            done = await self._carry_out(action)
        except RuleopError as error:
            done = await self._handle_error(action, error)
        if done:
            self.outcome.done.append(action)
            if not any(each is action for each in self.outcome.gone):
                self.report(action)
        else:
            self.not_provided.add(_provides(action))

    async def _carry_out(self, action: Action) -> bool:
        """Whether the action is done; otherwise the CR is planned again."""
        match action:
            case Create():
                await self._write(action, self.writer.create(action.object))
            case Patch():
                await self._write(action, self.writer.patch(Kind.of(action.live), action.key, action.patch))
            case ServerSideApply():
                await self._write(action, self._apply(action))
            case Delete():
                return await self._delete(action)
            case AddFinalizer():
                others = [each for each in self._finalizers() if each != action.finalizer]
                await self._write_finalizers([*others, action.finalizer])
            case RemoveFinalizer():
                return await self._remove_finalizer(action)
            case Expire():
                await self._expire(action)
        return True

    # -- children ------------------------------------------------------------------------------------------------------

    def _apply(self, action: ServerSideApply) -> Awaitable[Object]:
        if action.manager:
            return self.writer.patch_fields(action.object, manager=action.manager, force=action.force)
        return self.writer.apply(action.object, recorded=action.recorded)

    async def _write(self, action: Create | Patch | ServerSideApply, request: Awaitable[Object]) -> None:
        key = action.key
        with self.own_writes.writing(key) as write:
            response = await request
            write.versions.add(parse_version(version_of(response)))
        self.outcome.wrote(action, response, self.stores.info)
        # Without ruleop's label (released, or removed by a webhook), the old object has to be removed from the store.
        if not self._put(key, response):
            self.stores.remove(key, _uid(response), version_of(response))

    def _put(self, key: ObjectKey, obj: Object) -> bool:
        held = self.stores.put(obj)
        if held:
            self.outcome.versions[key] = version_of(obj)
        return held

    async def _delete(self, action: Delete) -> bool:
        """Deletes an object after a live read: only if it is unchanged since the plan, and still a child of the CR."""
        kind, metadata = Kind.of(action.live), action.live["metadata"]
        live = await self.api.read(kind, action.key)
        if live is None:
            self.outcome.gone.append(action)
            return self._gone(action)
        owner = Owner.of(self.resource, self.proofs())
        if not _same_version(live, action.live) or not claim_on(live, action.key, owner).owned:
            self._store_live(action.key, action.live, live)
            self.outcome.replan = True
            return False
        response = await self.writer.delete(kind, action.key, uid=metadata["uid"], version=metadata["resourceVersion"])
        if response is None or not response["metadata"].get("deletionTimestamp"):
            return self._gone(action)
        self.outcome.deleted.add(action.key)
        self._put(action.key, response)
        return True

    def _gone(self, action: Delete) -> bool:
        self.outcome.deleted.add(action.key)
        self.stores.remove(action.key, _uid(action.live))
        return True

    def _store_live(self, key: ObjectKey, planned: Object | None, live: Object | None) -> None:
        """Updates the stores with an object that was read live."""
        held = live is not None and self._put(key, live)
        if not held and planned is not None:
            self.stores.remove(
                key, _uid(planned), version_of(live) if live is not None and _uid(live) == _uid(planned) else ""
            )
        if not held and live is not None:
            self.outcome.conflicting[key] = live

    # -- the CR --------------------------------------------------------------------------------------------

    def _finalizers(self) -> list[str]:
        return list(self.resource["metadata"].get("finalizers") or [])

    async def _write_finalizers(self, finalizers: list[str]) -> None:
        metadata = self.resource["metadata"]
        patch = {
            "metadata": {
                "finalizers": finalizers,
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            }
        }
        response = await self.api.patch(Kind.of(self.resource), ObjectKey.of(self.resource), patch)
        self.resource = self.outcome.resource = response
        self._put(ObjectKey.of(response), response)

    async def _remove_finalizer(self, action: RemoveFinalizer) -> bool:
        """Removes the finalizer after a live read, as for a deletion: the CR may be deleted by it."""
        live = await self.api.read(Kind.of(self.resource), ObjectKey.of(self.resource))
        if live is None:
            self.outcome.gone.append(action)
            return True
        if not _same_version(live, self.resource):
            self.outcome.resource = live
            self.outcome.replan = True
            self._put(ObjectKey.of(live), live)
            return False
        await self._write_finalizers([each for each in self._finalizers() if each != action.finalizer])
        return True

    async def _expire(self, action: Expire) -> None:
        """Deletes the CR. With finalizers it stays, as being deleted; else its watch reports that it is gone."""
        metadata = self.resource["metadata"]
        response = await self.api.delete(
            Kind.of(self.resource),
            action.key,
            uid=metadata["uid"],
            version=metadata["resourceVersion"],
        )
        if response is None:
            self.outcome.gone.append(action)
        if response is None or not response["metadata"].get("deletionTimestamp"):
            self.outcome.deleted.add(action.key)
            return
        self.resource = self.outcome.resource = response
        self._put(action.key, response)

    # -- errors --------------------------------------------------------------------------------------------------------

    async def _handle_error(self, action: Action, error: RuleopError) -> bool:
        """Records a failure or asks for another plan. Returns whether the action is done nevertheless."""
        failure, retry_after = classify(error)
        if retry_after is not None:
            self.outcome.retry_after = max(retry_after, self.outcome.retry_after or 0.0)
        if failure is Failure.INVALID and isinstance(action, (Patch, ServerSideApply)):
            return self._record_failure(action, failure, error, managed=await self._managed(action))
        if failure is not None:
            return self._record_failure(action, failure, error)
        kind, key, planned = self._kind_of(action), action.key, self._planned_for(action)
        try:
            live = await self.api.read(kind, key)
        except RuleopError as unread:
            # Without new information, another plan would be the same.
            failure, _ = classify(unread)
            return self._record_failure(action, failure or Failure.OTHER, unread)
        if isinstance(action, Delete) and (
            live is None or (_uid(live) == _uid(action.live) and live["metadata"].get("deletionTimestamp"))
        ):
            self.outcome.deleted.add(key)
            if not (isinstance(error, ApiError) and error.outcome_unknown):
                self.outcome.gone.append(action)
            self._store_live(key, planned, live)
            return True
        if isinstance(action, ResourceAction):
            if live is None:  # the CR is gone, and the watch will report that
                return self._record_failure(action, Failure.OTHER, error)
            self.outcome.resource = live
            self._put(key, live)
        else:
            self._store_live(key, planned, live)
        if isinstance(error, ApiError) and error.outcome_unknown and _same_version(live, planned):
            return self._record_failure(action, Failure.OTHER, error)
        self.outcome.replan = True
        return False

    def _kind_of(self, action: Action) -> Kind:
        match action:
            case AddFinalizer() | RemoveFinalizer() | Expire():
                return Kind.of(self.resource)
            case Create() | ServerSideApply():
                return Kind.of(action.object)
            case Patch() | Delete():
                return Kind.of(action.live)

    def _planned_for(self, action: Action) -> Object | None:
        """The object for which the action was planned; None if it did not exist."""
        if isinstance(action, ResourceAction):
            return self.resource
        return None if isinstance(action, Create) else action.live

    async def _managed(self, action: Patch | ServerSideApply) -> tuple[Mapping[str, Any], ...]:
        """The managedFields of the object, which stores do not keep: the server may reject ruleop's list item because
        of another manager's."""
        try:
            live = await self.api.read(self._kind_of(action), action.key)
        except RuleopError:  # then the message names no manager
            return ()
        return tuple(
            each for each in (live or {}).get("metadata", {}).get("managedFields") or () if isinstance(each, Mapping)
        )

    def _record_failure(
        self, action: Action, failure: Failure, error: RuleopError, *, managed: tuple[Mapping[str, Any], ...] = ()
    ) -> bool:
        digest = "" if isinstance(action, Delete | ResourceAction) else action.desired_digest
        redacted, causes = (error.redacted, error.causes) if isinstance(error, ApiError) else ("", ())
        verb = error.verb if isinstance(error, ApiError) and error.not_permitted else ""
        if isinstance(error, ApiError) and error.grants_too_much:
            verb = GRANT
        if isinstance(error, ApiError) and error.cannot_impersonate:
            verb = IMPERSONATE
        account = str(self.account) if verb and self.account and not isinstance(action, ResourceAction) else ""
        self.outcome.failed[action.key] = Failed(failure, str(error), digest, redacted, causes, managed, verb, account)
        return False


def _uid(obj: Object) -> str:
    return obj["metadata"].get("uid") or ""


def _same_version(one: Object | None, two: Object | None) -> bool:
    """Whether both are the same version of the same object, or both do not exist."""
    if one is None or two is None:
        return one is two
    return all(one["metadata"].get(name) == two["metadata"].get(name) for name in ("uid", "resourceVersion"))
