"""Objects that hold a child's name and are not known to be ours: they are looked at again, with backoff, until they are gone or prove to be
ours to change. For that their metadata will do; what is to be changed is read in full before, or all that others put into it would be lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import structlog

from ruleop.errors import RuleopError
from ruleop.kinds import Kind, Object, ObjectKey
from ruleop.kube.client.errors import ApiError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ruleop.engine.queue.request import Request
    from ruleop.engine.reconcile.executor import Executor
    from ruleop.engine.reconcile.memory import Foreign, Memory


class World(Protocol):
    def get(self, key: ObjectKey, *, version: str = "") -> Object | None: ...
    async def look(self, kind: Kind, key: ObjectKey) -> Object | None: ...


class NameConflicts:
    def __init__(self, world: World, executor: Executor, ticks: Callable[[], float], title: str) -> None:
        self.world = world
        self.executor = executor
        self.ticks = ticks
        self.log = structlog.get_logger().bind(controller=title)

    async def look(self, request: Request, memory: Memory) -> None:
        """Objects that hold a child's name are looked at again, with backoff, by reading their metadata; never by trying to create. One
        that cannot be read stays as it was seen last, and holds up nothing else. What a store holds is known from there."""
        for key, foreign in list(memory.foreign.items()):
            if self.world.get(key, version=Kind.of(foreign.obj).version) is not None:
                del memory.foreign[key]
                continue
            if foreign.look_at > self.ticks():
                continue
            try:
                live = await self.world.look(Kind.of(foreign.obj), key)
            except RuleopError as error:
                if not (isinstance(error, ApiError) and error.problem is Problem.NOT_FOUND):
                    memory.foreign[key] = self._unseen(request, key, foreign, error)
                    continue
                live = None  # not even its kind is served any more
            if live is None:
                del memory.foreign[key]
            else:
                memory.foreign[key] = foreign.again(live, self.ticks())

    def _unseen(self, request: Request, key: ObjectKey, foreign: Foreign, error: RuleopError) -> Foreign:
        tell = self.log.debug if foreign.trouble == str(error) else self.log.warning
        tell("conflicting object cannot be read; will retry", resource=str(request), object=str(key), error=str(error))
        return foreign.unseen(str(error), self.ticks())

    async def read(self, keys: Sequence[ObjectKey], request: Request, memory: Memory) -> bool:
        """Objects in the way that turn out to be ours, or may be taken over. Whether there is more known of them now."""
        known = False
        for key in keys:
            foreign = memory.foreign[key]
            try:
                live = await self.executor.see(Kind.of(foreign.obj), key)
            except RuleopError as error:
                memory.foreign[key] = self._unseen(request, key, foreign, error)
                continue
            known = True
            if live is None:
                del memory.foreign[key]
            else:
                memory.foreign[key] = foreign.read(live)
        return known
