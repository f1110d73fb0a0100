"""The log of a pass: one line for each write and one for the result; in a dry run, one for each write that would be
made. And its Events.

Fields are logged by their paths, never with their values. The last report of each CR is kept, so that a rejection that
is the same at each retry is logged once; the metrics count CRs by these reports, too.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import structlog

from ruleop.kubernetes.kinds import Kind, ObjectKey
from ruleop.messages import shortened
from ruleop.operator.queue import Request
from ruleop.operator.wire.client.event_recorder import EventRecorder, ObjectEvent
from ruleop.planning import Event, FinalizerAction
from ruleop.planning.changes import Verb, changes, field_paths, reason_for
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.language.templates.values.cost import Allowance
    from ruleop.operator.telemetry import ControllerMetrics
    from ruleop.planning import Action, History, Kinds, Plan, Wait
    from ruleop.planning.model.conditions import Conditions

Intent: TypeAlias = tuple[str, tuple[str, ...]]
"""A write that a dry run would make, and the fields that it would change."""

MAX_WAITS: Final = 8
"""Maximum number of waits on one line."""

MAX_WAIT: Final = 160
"""Maximum length of one of them, in characters."""


@dataclass(slots=True)
class Reported:
    """The last report of one CR."""

    reason: str = ""  # of its Ready condition
    state: Literal["", "ready", "waiting", "failed"] = ""  # by its conditions Ready and Stalled
    states: tuple[str, ...] = ()  # of its children
    waits: tuple[tuple[str, str], ...] = ()  # child ids, and the kind of wait
    waiting: tuple[str, ...] = ()  # the same as text
    held: int = 0  # deletions and releases that are held back
    intents: tuple[Intent, ...] | None = None  # in a dry run
    failure: str = ""  # the error that prevented the last pass
    status_failure: str = ""  # the error of the last write of the status


class PassLog:
    """The log of the passes of one watched kind."""

    def __init__(self, kinds: Kinds, metrics: ControllerMetrics, title: str) -> None:
        self.kinds = kinds
        self.metrics = metrics
        self.reported: dict[Request, Reported] = defaultdict(Reported)
        self.log = structlog.get_logger().bind(controller=title)

    def remove(self, request: Request) -> None:
        self.reported.pop(request, None)

    # -- writes --------------------------------------------------------------------------------------------------------

    def wrote(self, request: Request, plan: Plan, action: Action, *, allowance: Allowance) -> None:
        """Logs an action that was carried out, and counts reverted drift. Beyond the allowance, outer fields are
        logged. The fields are compared only for a line that is logged, or where these alone tell drift from a change of
        marks."""
        is_logged = self.log.is_enabled_for(logging.INFO)
        is_compared = is_logged or plan.synced.may_be_of_marks(action)
        changed = changes(action, self.kinds, None, allowance=allowance) if is_compared else []
        verb = plan.synced.verb(action, plan.uid, changed)
        if verb in {Verb.REVERT, Verb.RECREATE}:
            self.metrics.drift.inc()
        if isinstance(action, FinalizerAction):
            self.log.info(verb.done, resource=str(request), finalizer=action.finalizer)
            return
        reason = reason_for(action)
        paths = field_paths(changed, plan.uid, plan.public_words.get(action.child)) if is_logged else ()
        more: dict[str, Any] = {"reason": reason} if reason else {}
        more |= {"fields": list(paths)} if paths else {}
        self.log.info(verb.done, resource=str(request), child=action.child, object=str(action.key), **more)

    def field_conflicts(self, request: Request, plan: Plan) -> Iterator[Event]:
        """Logs and counts the field conflicts that are new in this plan, and returns their Events."""
        for each in plan.field_conflicts:
            if each.new:
                self.metrics.field_conflicts.inc()
                self.log.warning("field conflict", resource=str(request), child=each.child, message=each.message)
                yield Event("Warning", "FieldConflict", f"{each.child}: {each.message}")

    # -- results -------------------------------------------------------------------------------------------------------

    def reconciled(self, request: Request, history: History, plan: Plan) -> None:
        """Logs the number of writes of the pass, and what the CR waits for. If nothing has changed since the last pass,
        at level debug."""
        reported, reason = self.reported[request], plan.conditions.ready.reason if plan.conditions is not None else ""
        reported.states = tuple(child.state.value for child in plan.children)
        reported.waits = tuple((wait.child, wait.why) for wait in plan.waits)
        reported.held = len(plan.held)
        waiting: tuple[str, ...] = ()
        lasting: tuple[str, ...] = ()
        if plan.waits:
            waiting = tuple(waits(plan.waits))
            # The server's message about a rejected write may differ each time.
            lasting = tuple(waits(each for each in plan.waits if each.why != "write"))
        news = history.written or reason != reported.reason or lasting != reported.waiting
        more = {"waits": list(waiting)} if waiting else {}
        log = self.log.info if news else self.log.debug
        log("reconciled", resource=str(request), reason=reason, written=history.written, **more)
        if plan.problems and reason != reported.reason:
            self.problems(request, plan)
        reported.waiting, reported.reason, reported.failure = lasting, reason, ""
        reported.state = _state(plan.conditions)

    def not_reconciled(self, request: Request, error: str) -> None:
        reported = self.reported[request]
        log = self.log.debug if reported.failure == error else self.log.warning
        log("reconcile failed; will retry", resource=str(request), error=error)
        reported.failure = error

    def problems(self, request: Request, plan: Plan) -> None:
        for problem in plan.problems:
            site = {"site": str(problem.site)} if problem.site is not None else {}
            self.log.warning(
                "problem",
                resource=str(request),
                child=problem.child,
                reason=problem.reason,
                **site,
                message=problem.message,
            )

    # -- the status ----------------------------------------------------------------------------------------------------

    def status_written(self, request: Request, plan: Plan, resource: Object) -> None:
        if self.log.is_enabled_for(logging.DEBUG):
            self.log.debug("status written", resource=str(request), fields=list(status_fields(plan, resource)))
        if (reported := self.reported.get(request)) is not None:
            reported.status_failure = ""

    def status_not_written(self, request: Request, error: str, grant: Mapping[str, str]) -> bool:
        """Logs the error, unless it is the same as last time. Whether it is new: then Events report it, because no
        status can."""
        reported = self.reported[request]
        if reported.status_failure == error:
            return False
        reported.status_failure = error
        self.log.warning("status not written", resource=str(request), error=error, **grant)
        return True

    # -- dry run -------------------------------------------------------------------------------------------------------

    def intended(self, request: Request, plan: Plan, resource: Object, *, allowance: Allowance) -> None:
        """Logs what a dry run would do, unless it is the same as last time."""
        intents = tuple(self._intents(plan, resource, allowance=allowance))
        reported = self.reported[request]
        if intents == reported.intents:
            return
        reported.intents = intents
        for would, fields in intents:
            self.log.info("dry run", resource=str(request), would=would, **({"fields": list(fields)} if fields else {}))
        if not intents:
            self.log.info("dry run", resource=str(request), would="do nothing")

    def _intents(self, plan: Plan, resource: Object, *, allowance: Allowance) -> Iterator[Intent]:
        for action in plan.actions:
            changed = changes(action, self.kinds, None, allowance=allowance)
            verb = plan.synced.verb(action, plan.uid, changed)
            on = action.finalizer if isinstance(action, FinalizerAction) else action.key
            yield f"{verb.do} {on}", field_paths(changed, plan.uid, plan.public_words.get(action.child))
        if plan.status is not None and plan.status.patch is not None:
            yield f"write the status of {plan.resource}", status_fields(plan, resource)


def _state(conditions: Conditions | None) -> Literal["", "ready", "waiting", "failed"]:
    if conditions is None:
        return ""
    if conditions.ready.status == "True":
        return "ready"
    return "failed" if conditions.stalled.status == "True" else "waiting"


def status_fields(plan: Plan, resource: Object) -> tuple[str, ...]:
    """The names of the status fields that would change."""
    assert plan.status is not None
    before, after = resource.get("status") or {}, plan.status.status
    names = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    return tuple(f"status.{name}" for name in names)


def waits(found: Iterable[Wait]) -> Iterator[str]:
    """Descriptions of the first waits: the child, and what it waits for."""
    described = list(dict.fromkeys(shortened(f"{each.child}: {each.for_what}", MAX_WAIT) for each in found))
    yield from described[:MAX_WAITS]
    if (more := len(described) - MAX_WAITS) > 0:
        yield f"and {more} more"


class Events:
    """Records Events on custom resources, and logs them."""

    def __init__(self, recorder: EventRecorder, *, dry_run: bool = False) -> None:
        self.recorder = recorder
        self.dry_run = dry_run
        self.log = structlog.get_logger()

    def record(self, resource: Object, events: Iterable[Event]) -> None:
        for event in events:
            key = ObjectKey.of(resource)
            log = self.log.bind(controller=str(key.group_kind), resource=str(Request.of(resource)))
            if self.dry_run:
                log.info("dry run", would=f"record the event {event.reason}", message=event.message)
                continue
            log.info("event recorded", type=event.type, reason=event.reason, message=event.message)
            uid, version = resource["metadata"].get("uid", ""), Kind.of(resource).version
            warning = event.type == "Warning"
            self.recorder.record(ObjectEvent(key, version, uid, event.reason, event.message, warning=warning))
