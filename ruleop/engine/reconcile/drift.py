"""Drift of a CR's children: a change by hand is reverted at once, a field conflict with backoff.

`ruleop.engine.reconcile.field_conflicts` decides what a field conflict is. This module passes it what is planned and done, and reports
the conflicts that it finds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import structlog

from ruleop.engine.queue.request import Request
from ruleop.engine.reconcile.field_conflicts import Correction, FieldConflicts, Standing, altered, corrections, message
from ruleop.engine.reconcile.field_managers import opponents
from ruleop.errors import RuleopError
from ruleop.kinds import Kind, Object, ObjectKey
from ruleop.planning import Create, Delete, Event, Kinds, Patch
from ruleop.planning.events import WELL
from ruleop.planning.status import condition_of
from ruleop.planning.writes import changes, desired

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.engine.reconcile.executor import Outcomes
    from ruleop.engine.reconcile.memory import Memory
    from ruleop.planning import Plan

TOLD = WELL | {"FieldConflict"}  # of a CR whose children have all been written


class World(Kinds, Protocol):
    async def look(self, kind: Kind, key: ObjectKey) -> Object | None: ...


class DriftDetector:
    def __init__(
        self, world: World, ticks: Callable[[], float], say: Callable[[Object, Event], None], count: Callable[[], None], title: str
    ) -> None:
        self.world = world
        self.ticks = ticks
        self.say = say
        self.count = count  # one more fight
        self.log = structlog.get_logger().bind(controller=title)

    async def holds_back(self, planned: Plan, resource: Object, memory: Memory) -> bool:
        """Whether there are actions that wait, because somebody undoes them again and again."""
        assert memory.fights is not None
        found = set()
        for action, fields in corrections(planned.actions):
            standing = memory.fights.meets(action.key, action.wanted, fields, self.ticks())
            if standing is Standing.NOTICED:
                text = await self._named(action, memory.fights)
                memory.fights.name(action.key, text)
                self.count()
                self.log.warning("field conflict", resource=str(Request.of(resource)), child=action.child, message=text)
                self.say(resource, Event("Warning", "FieldConflict", f"{action.child}: {text}"))
            found.add(standing)
        return bool(found - {Standing.FREE})

    async def _named(self, action: Correction, fights: FieldConflicts) -> str:
        """The fight over what the action would correct, in words. Who is on the other side is read from the server, once."""
        by_server, who = fights.is_altered(action.key), []
        fields = [each.path for each in changes(action, self.world)]
        if not isinstance(action, Create) and action.live is not None and not by_server:
            try:
                found = await self.world.look(Kind.of(action.live), action.key)
            except RuleopError:  # then it stays unnamed
                found = None
            who = opponents(found["metadata"], action.live, desired(action)) if found is not None else []
        return message(action, fields, who, by_server=by_server)

    def sees(self, resource: Object, memory: Memory, outcomes: Outcomes) -> None:
        """Remembers what was done although neither CR nor rules had changed: somebody changed or deleted a child. What we took away
        ourselves is nobody's doing."""
        for action in outcomes.done:
            if memory.fights and (isinstance(action, Delete) or (isinstance(action, Patch) and action.why == "released")):
                memory.fights.forget(action.key)
        said = condition_of(resource, "Ready")
        generation = resource["metadata"].get("generation")
        if (said.get("reason") or memory.reason) not in TOLD or said.get("observedGeneration", generation) != generation:
            return
        for action, fields in corrections(outcomes.done):
            memory.fights = memory.fights or FieldConflicts()
            _, answer = outcomes.written.get(action.key, (None, None))
            is_altered = answer is not None and not isinstance(action, Create) and altered(action, answer, fields)
            memory.fights.corrected(action.key, action.wanted, fields, self.ticks(), altered=is_altered)
