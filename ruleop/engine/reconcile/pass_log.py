"""The log of a pass: one line for each write, and one for its result; in a dry run, one for each write that would be made.

Fields are named by their paths; their values are never logged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import structlog

from ruleop.planning import AddFinalizer, RemoveFinalizer
from ruleop.planning.differences import shortened
from ruleop.planning.writes import Verb, changes, field_paths, reason_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.engine.queue.request import Request
    from ruleop.engine.reconcile.executor import Outcomes
    from ruleop.engine.reconcile.memory import Memory
    from ruleop.engine.telemetry.metrics import ControllerMetrics
    from ruleop.kinds import Object
    from ruleop.planning import Action, Kinds, Plan, Problem, Wait

Intent: TypeAlias = tuple[str, tuple[str, ...]]
"""What would be done, and with which fields."""

MAX_WAITS: Final = 8
"""Waits that are named on one line."""

MAX_WAIT: Final = 160
"""Characters of one of them."""


class PassLog:
    """Of one watched kind."""

    def __init__(self, kinds: Kinds, metrics: ControllerMetrics, title: str) -> None:
        self.kinds = kinds
        self.metrics = metrics
        self.log = structlog.get_logger().bind(controller=title)

    def wrote(self, request: Request, resource: Object, memory: Memory, outcomes: Outcomes) -> None:
        """Logs each action that was carried out, and counts the drift among them."""
        for action in outcomes.done:
            verb = memory.in_step.verb(action, resource, self.kinds)
            memory.in_step.done(action)
            if outcomes.was_gone(action):
                continue
            if verb in {Verb.REVERT, Verb.RECREATE}:
                self.metrics.drift.inc()
            self._wrote(verb, action, request, resource)
        memory.written += outcomes.writes
        if not outcomes.clean:
            memory.in_step.doubt()

    def _wrote(self, verb: Verb, action: Action, request: Request, resource: Object) -> None:
        if isinstance(action, (AddFinalizer, RemoveFinalizer)):
            self.log.info(verb.done, resource=str(request), finalizer=action.finalizer)
            return
        reason, paths = reason_for(action), _paths(action, resource, self.kinds)
        more = {"reason": reason} if reason else {}
        fields = {"fields": list(paths)} if paths else {}
        self.log.info(verb.done, resource=str(request), child=action.child, object=str(action.key), **more, **fields)

    def reconciled(self, request: Request, memory: Memory, planned: Plan) -> None:
        """What all rounds of the pass wrote, and what the CR waits for. At level debug where nothing has changed since the
        last pass: the same refusal at every retry is not news."""
        reason = planned.conditions[0]["reason"] if planned.conditions else ""
        waiting: tuple[str, ...] = ()
        lasting: tuple[str, ...] = ()
        if planned.waits:
            waiting = tuple(waits(planned.waits))
            # What the server answers to a write may be worded in another way each time.
            lasting = tuple(waits(each for each in planned.waits if each.why != "write"))
        written, memory.written = memory.written, 0
        news = written or reason != memory.reason or lasting != memory.waiting
        more = {"waits": list(waiting)} if waiting else {}
        (self.log.info if news else self.log.debug)("reconciled", resource=str(request), reason=reason, written=written, **more)
        for problem in planned.problems if reason != memory.reason else ():
            self.problem(request, problem)
        memory.waiting = lasting

    def problem(self, request: Request, problem: Problem) -> None:
        site = {"site": str(problem.site)} if problem.site is not None else {}
        self.log.warning("problem", resource=str(request), child=problem.child, reason=problem.reason, **site, message=problem.message)

    def would(self, request: Request, memory: Memory, planned: Plan, resource: Object) -> None:
        """What a dry run would do; logged once, until it would do something else."""
        meant, memory.meant = memory.meant, tuple(self._intents(planned, resource, memory))
        if meant == memory.meant:
            return
        for would, fields in memory.meant:
            self.log.info("dry run", resource=str(request), would=would, **({"fields": list(fields)} if fields else {}))
        if not memory.meant:
            self.log.info("dry run", resource=str(request), would="do nothing")

    def _intents(self, planned: Plan, resource: Object, memory: Memory) -> Iterator[Intent]:
        for action in planned.actions:
            verb = memory.in_step.verb(action, resource, self.kinds)
            on = action.finalizer if isinstance(action, (AddFinalizer, RemoveFinalizer)) else action.key
            yield f"{verb.do} {on}", _paths(action, resource, self.kinds)
        if planned.status is not None and planned.status.patch is not None:
            yield f"write the status of {planned.resource}", status_fields(planned, resource)


def _paths(action: Action, resource: Object, kinds: Kinds) -> tuple[str, ...]:
    return field_paths(changes(action, kinds), resource["metadata"].get("uid") or "")


def status_fields(planned: Plan, resource: Object) -> tuple[str, ...]:
    """The fields of the status that differ, by their names."""
    assert planned.status is not None
    before, after = resource.get("status") or {}, planned.status.status
    names = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    return tuple(f"status.{name}" for name in names)


def waits(found: Iterable[Wait]) -> Iterator[str]:
    """Which child waits, and for what; the first of them."""
    described = list(dict.fromkeys(shortened(f"{each.child}: {each.for_what}", MAX_WAIT) for each in found))
    yield from described[:MAX_WAITS]
    if (more := len(described) - MAX_WAITS) > 0:
        yield f"and {more} more"
