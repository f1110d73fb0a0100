"""Live reads in a pass, for objects that no cache holds: conflicting objects that have a child's name, and the
managedFields of a child.

The metadata of a conflicting object shows its owner. It is read again with backoff until the object is gone or may be
adopted. The object is read in full before it is changed; otherwise the fields of others would be lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import structlog

from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import NAMESPACE_KIND, Kind, Object, ObjectKey
from ruleop.operator.wire.client.server_errors import ApiError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.operator.cache.cache import Cache
    from ruleop.operator.clock import Clock
    from ruleop.operator.passes.executor import Executor
    from ruleop.operator.queue.request import Request
    from ruleop.planning import History, Read
    from ruleop.planning.history import ConflictingObject


class LiveReads:
    def __init__(self, cache: Cache, executor: Executor, clock: Clock, title: str) -> None:
        self.cache = cache
        self.executor = executor
        self.clock = clock
        self.log = structlog.get_logger().bind(controller=title)

    async def refresh(self, request: Request, history: History) -> History:
        """Reads the conflicting objects that are due. An object that cannot be read stays as it was read last."""
        for key, found in history.conflicting.items():
            if found.due <= self.clock.monotonic():
                history = history.with_conflicting(key, await self._reread(request, key, found))
        return history

    async def _reread(self, request: Request, key: ObjectKey, found: ConflictingObject) -> ConflictingObject | None:
        try:
            live = await self.cache.read_metadata(Kind.of(found.obj), key)
        except RuleopError as error:
            if isinstance(error, ApiError) and error.problem is Problem.NOT_FOUND:
                return None  # its kind is no longer served
            return self._unread(request, key, found, error)
        return None if live is None else found.reread(live, self.clock.monotonic())

    async def read(self, reads: Iterable[Read], request: Request, history: History) -> tuple[History, bool]:
        """Carries out the reads that a plan asks for. Returns whether any of them succeeded."""
        news = False
        for each in reads:
            if each.why == "managers":
                history, news = history.with_managed(each.key, await self._managed(each)), True
                continue
            found = history.conflicting[each.key]
            try:
                live = await self.executor.refresh(each.kind, each.key)
            except RuleopError as error:
                history = history.with_conflicting(each.key, self._unread(request, each.key, found, error))
                continue
            history, news = history.with_conflicting(each.key, None if live is None else found.in_full(live)), True
        return history, news

    async def is_namespace_terminating(self, resource: Object, finalizer: str) -> bool:
        """Whether objects can no longer be created in the CR's namespace. Checked only if the CR is being deleted."""
        metadata = resource["metadata"]
        name = metadata.get("namespace")
        if not metadata.get("deletionTimestamp") or not name or finalizer not in (metadata.get("finalizers") or ()):
            return False
        try:
            found = await self.cache.read_metadata(NAMESPACE_KIND, ObjectKey("", "Namespace", "", name))
        except RuleopError:  # not permitted with a Role only; then a creation fails
            return False
        return found is None or bool(found["metadata"].get("deletionTimestamp"))

    async def _managed(self, read: Read) -> tuple[Mapping[str, object], ...]:
        """The managedFields of an object; empty if it cannot be read."""
        try:
            live = await self.cache.read_metadata(read.kind, read.key)
        except RuleopError:
            return ()
        entries = live["metadata"].get("managedFields") if live is not None else None
        return tuple(each for each in entries or () if isinstance(each, Mapping))

    def _unread(
        self, request: Request, key: ObjectKey, found: ConflictingObject, error: RuleopError
    ) -> ConflictingObject:
        log = self.log.debug if found.error == str(error) else self.log.warning
        log("conflicting object cannot be read; will retry", resource=str(request), object=str(key), error=str(error))
        return found.read_failed(str(error), self.clock.monotonic())
