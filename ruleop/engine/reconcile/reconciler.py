"""Reconciles the CRs of one watched kind.

A reconcile depends on the current state only, not on the event that triggered it or on the order of events, so events
may be lost or repeated. Children are written first. The status follows at once, or, while children of many CRs are
being written, after them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from ruleop.engine.cache.expectations import Expectations
from ruleop.engine.cache.index import Index
from ruleop.engine.cache.parsed_objects import ParsedObjects
from ruleop.engine.queue.result import IMMEDIATELY, Result
from ruleop.engine.reconcile.live_reads import LiveReads
from ruleop.engine.reconcile.pass_log import PassLog
from ruleop.engine.reconcile.status_debounce import CHANGED, WRITTEN
from ruleop.engine.reconcile.turns import Turns
from ruleop.engine.reconcile.unmatched import Unmatched
from ruleop.errors import RuleopError
from ruleop.kinds import GroupKind, Kind, Object, ObjectKey
from ruleop.kube.client.errors import ApiError, Problem
from ruleop.offline.recording import Recorder
from ruleop.permissions import grant, place
from ruleop.planning import (
    Failure,
    History,
    Kinds,
    Objects,
    Observed,
    Owner,
    Plan,
    Planning,
    RemoveFinalizer,
    choose_rule,
)
from ruleop.planning.events import write_events
from ruleop.planning.model.marks import is_paused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ruleop.engine.clock import Clock
    from ruleop.engine.queue.request import Request
    from ruleop.engine.reconcile.events import Events
    from ruleop.engine.reconcile.executor import Executor
    from ruleop.engine.reconcile.recorder import PassFiles
    from ruleop.engine.reconcile.status_debounce import StatusDebounce
    from ruleop.engine.telemetry.metrics import Metrics
    from ruleop.planning import Outcome
    from ruleop.rules import Rule
    from ruleop.steps import Steps

T = TypeVar("T")

NAMESPACE = Kind("", "v1", "Namespace")
MAX_REPLANS = 5
RESYNCED_AFTER = 1.0  # seconds until the next attempt, unless a store reports earlier that it is synced again


class _Unsynced(Exception):  # noqa: N818 - not an error: the pass ends, and the next one starts when all is synced
    """A store is listed again since the pass waited for a response. An object that is missing from it may exist."""


class Cache(Objects, Kinds, Protocol):
    """The stores, and live reads of metadata."""

    def resource(self, key: ObjectKey, version: str = "") -> Object | None: ...
    def seen_from(self, namespace: str) -> Kinds: ...
    def is_synced(self, kind: GroupKind) -> bool:
        """Whether each store that the rules of a watched kind need is synced, unserved or forbidden."""
        ...

    def is_at_least(self, key: ObjectKey, version: str) -> bool: ...
    def has_seen(self, key: ObjectKey, version: str) -> bool: ...
    async def read_metadata(self, kind: Kind, key: ObjectKey) -> Object | None: ...


class Inventory(Protocol):
    """The kinds of children and the conditions that current and earlier rules wrote."""

    async def before_writes(self, rule: Rule, plan: Plan) -> None: ...
    def conditions_of(self, kind: GroupKind) -> frozenset[str]: ...


class Queue(Protocol):
    def has_ready(self) -> bool:
        """Whether other CRs of the kind are due."""
        ...

    def wake(self, request: Request) -> None:
        """Queues a CR whose status has waited long enough."""
        ...


@dataclass(frozen=True, slots=True)
class Environment:
    """The parts that all reconcilers share."""

    cache: Cache
    executor: Executor
    inventory: Inventory
    events: Events
    metrics: Metrics
    debounce: StatusDebounce
    clock: Clock
    finalizer: str
    dry_run: bool = False
    pass_files: PassFiles | None = None  # with --record
    turns: Turns = field(default_factory=Turns)


@dataclass(slots=True)
class _Pass:
    """One reconcile of one CR."""

    request: Request
    rule: Rule
    resource: Object
    history: History
    namespace_terminating: bool = False
    paused: bool = False  # a plan of this pass took several turns of the loop
    status_in: float | None = None  # seconds until the status is written, if it is delayed


class Reconciler:
    def __init__(self, kind: Kind, rules: Sequence[Rule], environment: Environment, queue: Queue) -> None:
        self.rules = tuple(rules)
        self.kind = kind
        self.environment, self.queue = environment, queue
        title = str(kind.versionless)
        self.cache, self.executor, self.clock = environment.cache, environment.executor, environment.clock
        self.metrics = environment.metrics.of(title)
        self.live_reads = LiveReads(self.cache, self.executor, self.clock, title)
        self.pass_log = PassLog(self.cache, self.metrics, title)
        self.unmatched = Unmatched(self.executor, environment.finalizer, title)
        self.index = Index()
        self.histories: dict[Request, History] = {}
        self.expectations: dict[Request, Expectations] = {}
        self.held_until = ""  # RFC 3339: no deletions before this time, because the rules have just changed

    def key(self, request: Request) -> ObjectKey:
        return ObjectKey(self.kind.group, self.kind.kind, request.namespace, request.name)

    async def reconcile(self, request: Request) -> Result:
        resource = self.cache.resource(self.key(request))
        if resource is None:
            self._remove(request)
            return Result()
        rule = choose_rule(self.rules, resource)
        if rule is None:
            self._remove(request)
            return await self._unmatched(request, resource)
        if (resource := self._resource(rule, request)) is None:
            return Result()  # the watch of its version does not have it yet, or no longer
        if (wait := self._behind(request)) is not None:
            return Result(requeue_after=wait, reason="the cache is behind")
        history = self.histories.get(request, History.NONE).at_pass_start(self.cache, self.clock.monotonic())
        current = _Pass(request, rule, resource, history)
        try:
            return await self._reconcile(current)
        except _Unsynced:
            return Result(requeue_after=RESYNCED_AFTER, reason="a kind is listed again")
        except RuleopError as error:  # the inventory, which comes first, could not be read or written
            self.pass_log.not_reconciled(request, str(error))
            return Result(failed=True, requeue_after=self.executor.classify(error)[1])
        finally:
            self.histories[request] = current.history
            if current.paused:
                self.environment.turns.collector_pause.end()

    async def _reconcile(self, current: _Pass) -> Result:
        current.history = await self.live_reads.refresh(current.request, current.history)
        current.namespace_terminating = bool(current.rule.finalize) and await self._is_namespace_terminating(
            current.resource
        )
        planned, outcome = await self._write(current)
        self.pass_log.began(current.request)
        return await self._conclude(current, planned, outcome)

    async def _unmatched(self, request: Request, resource: Object) -> Result:
        """Removes the finalizer. Not in the first seconds after a reload: a file with a matching rule may follow. Not
        while the CR is paused either, unless its kind has no rules any more: then nothing would remove it later."""
        if (self.rules and is_paused(resource)) or self.environment.dry_run or self.held_until:
            return Result()
        return await self.unmatched.release(request, resource)

    # -- planning ------------------------------------------------------------------------------------------------------

    async def _plan(self, current: _Pass) -> Plan:
        rule = current.rule
        known = self.environment.inventory.conditions_of(rule.kind.versionless)
        observed = Observed(
            objects=ParsedObjects(self.cache),
            kinds=self.cache.seen_from(current.request.namespace),
            now=self.clock.now(),
            clock=self.clock.monotonic(),
            seed=self.clock.seed(),
            finalizer=self.environment.finalizer,
            retired=known - {each.type for each in rule.conditions} if known else (),
            held_until=self.held_until,
            namespace_terminating=current.namespace_terminating,
        )
        files, foresee = self.environment.pass_files, self.environment.dry_run
        if files is None:
            return await self._planned(
                current, Planning(rule, current.resource, observed, current.history, foresee=foresee)
            )
        recorder = Recorder(observed)
        planned = await self._planned(
            current, Planning(rule, current.resource, recorder.observed, current.history, foresee=foresee)
        )
        files.write(
            self.key(current.request),
            recorder.document(rule, current.resource, current.history, planned, foresee=foresee),
        )
        return planned

    async def _planned(self, current: _Pass, planning: Planning) -> Plan:
        """Plans, a large plan in several turns of the loop. What it reads later may be newer than what it read first;
        the preconditions of its writes refer to what it has read."""
        seconds = 0.0

        def advance(is_time_up: Callable[[], bool]) -> Plan | None:
            nonlocal seconds
            if not self.cache.is_synced(self.kind.versionless):
                raise _Unsynced
            start = time.perf_counter()
            found = planning.run(is_time_up)
            seconds += time.perf_counter() - start
            if found is None and not current.paused:
                current.paused = True
                self.environment.turns.collector_pause.begin()
            return found

        planned = await self.environment.turns.finish(advance)
        self.metrics.plan_time.observe(seconds)
        return planned

    async def _plan_actions(self, current: _Pass) -> Plan:
        """Plans, and repeats this after the live reads that the plan asks for."""
        part_of = Owner.of(current.resource).part_of
        self.index.add(current.request, part_of)
        planned, news = await self._plan(current), True
        while planned.reads and news:
            current.history, news = await self.live_reads.read(planned.reads, current.request, current.history)
            if news:
                planned = await self._plan(current)
        current.history = await self._in_turns(current.history.with_plan(planned, self.clock.monotonic()))
        self.environment.events.record(current.resource, self.pass_log.field_conflicts(current.request, planned))
        if self.index.update(current.request, part_of, planned.watches) and current.paused:
            planned = await self._plan(current)  # what it began to watch may have changed since it was read
        return planned

    # -- writing -------------------------------------------------------------------------------------------------------

    async def _write(self, current: _Pass) -> tuple[Plan, Outcome | None]:
        """Plans and writes, repeatedly if a plan was outdated. Returns the last plan: that of the status, unless the
        status is delayed."""
        outcome: Outcome | None = None
        for _ in range(MAX_REPLANS):
            current.history = current.history.before_writes()
            planned = await self._plan_actions(current)
            if not planned.actions or self.environment.dry_run:
                return planned, None
            await self.environment.inventory.before_writes(current.rule, planned)
            outcome, others = await self._execute(current, planned)
            resource = outcome.resource or self._resource(current.rule, current.request)
            if resource is None:
                return planned, outcome
            current.resource = resource
            if not outcome.replan:
                break
        assert outcome is not None
        if outcome.clean and _ends(planned, current.resource):
            return planned, outcome
        waits = outcome.clean and (others or self.queue.has_ready())
        if waits and not planned.steady and self._may_wait(current, WRITTEN):
            return planned, outcome
        # If all children had been written before, as when drift is reverted, the status usually stays as it is, and
        # there is nothing to delay.
        of_status = await self._plan(current)
        if waits and not of_status.quiet and self._may_wait(current, WRITTEN):
            return planned, outcome
        return of_status, outcome

    async def _execute(self, current: _Pass, planned: Plan) -> tuple[Outcome, bool]:
        """Carries out the actions. Returns their outcome, and whether children of other CRs are being written."""
        debounce = self.environment.debounce
        debounce.begin()
        try:
            outcome = await self.executor.execute(planned.actions, current.resource)
        finally:
            others = debounce.end()
        await self._in_turns(self.pass_log.wrote(current.request, current.history, planned, outcome))
        self.environment.events.record(current.resource, write_events(outcome.done, current.request.namespace))
        self._expect(current.request, outcome.versions)
        current.history = await self._in_turns(
            current.history.after_in_steps(planned, outcome, self.cache, self.clock.monotonic())
        )
        return outcome, others

    def _may_wait(self, current: _Pass, patience: float) -> bool:
        request = current.request
        current.status_in = self.environment.debounce.may_wait(
            (self.kind, request), patience, lambda: self.queue.wake(request)
        )
        return current.status_in is not None

    # -- the status ----------------------------------------------------------------------------------------------------

    async def _conclude(self, current: _Pass, planned: Plan, outcome: Outcome | None) -> Result:
        resource = self._resource(current.rule, current.request)
        if resource is None:
            return Result()
        if planned.actions and not self.environment.dry_run:
            if _ends(planned, resource):
                self.environment.events.record(resource, planned.events)
            return Result(requeue_after=current.status_in)
        if planned.status is not None and planned.status.patch is not None and not self.environment.dry_run:
            if outcome is None and self.environment.debounce.busy and self._may_wait(current, CHANGED):
                return Result(requeue_after=current.status_in)
            self.environment.debounce.done((self.kind, current.request))
            try:
                await self._write_status(current, planned, resource)
            except RuleopError as error:
                return await self._status_failed(current, resource, planned, error)
        return await self._report(current, resource, planned, outcome)

    async def _write_status(self, current: _Pass, planned: Plan, resource: Object) -> None:
        assert planned.status is not None
        assert planned.status.patch is not None
        if current.rule.conditions:
            await self.environment.inventory.before_writes(current.rule, planned)
        key, subresource = self.key(current.request), planned.status.subresource
        answer = await self.executor.write_status(current.rule.kind, key, planned.status.patch, subresource=subresource)
        self.pass_log.status_written(current.request, planned, resource)
        self._expect(current.request, {key: answer["metadata"]["resourceVersion"]})

    async def _report(self, current: _Pass, resource: Object, planned: Plan, outcome: Outcome | None) -> Result:
        if self.environment.dry_run:
            await self._in_turns(self.pass_log.intended(current.request, current.history, planned, resource))
        if outcome is None:
            self.metrics.without_writes.inc()
        self.environment.events.record(resource, planned.events)
        self.pass_log.reconciled(current.request, current.history, planned)
        current.history = await self._in_turns(
            current.history.after_in_steps(planned, None, self.cache, self.clock.monotonic())
        )
        if outcome is not None and not outcome.clean:
            return Result(failed=True, requeue_after=outcome.retry_after)
        if planned.requeue_after is None:
            return Result()
        return Result(
            requeue_after=max(IMMEDIATELY, planned.requeue_after.seconds), reason=planned.requeue_after.reason
        )

    async def _status_failed(self, current: _Pass, resource: Object, planned: Plan, error: RuleopError) -> Result:
        """Reports a rejected status in the conditions; if they are rejected as well, with Events."""
        if isinstance(error, ApiError) and error.problem is Problem.NOT_FOUND:
            return Result(failed=True)
        if isinstance(error, ApiError) and error.problem is Problem.CONFLICT:
            return await self._status_outdated(current, planned)
        failure, retry_after = self.executor.classify(error)
        assert planned.status is not None
        if failure is Failure.INVALID and planned.status.projected:
            current.history = current.history.status_refused(planned, str(error), self.clock.monotonic())
            return Result(requeue_after=IMMEDIATELY, reason="the status was rejected")
        if failure is not None and failure is not Failure.OTHER:
            granted = {"grant": self._status_grant(current, planned)} if failure is Failure.FORBIDDEN else {}
            if self.pass_log.status_not_written(current.request, planned, str(error), granted):
                self.environment.events.record(resource, planned.events)
        return Result(failed=True, requeue_after=retry_after)

    def _status_grant(self, current: _Pass, planned: Plan) -> str:
        assert planned.status is not None
        title = self.cache.info(current.rule.kind).resource + ("/status" if planned.status.subresource else "")
        return grant(title, place(current.request.namespace), ["patch"])

    async def _status_outdated(self, current: _Pass, planned: Plan) -> Result:
        """After a conflict, reads the CR live, so that the next pass plans for its new version. If the version has not
        changed, the conflict has another cause, and this is a failure."""
        assert planned.status is not None
        assert planned.status.patch is not None
        try:
            live = await self.executor.refresh(current.rule.kind, self.key(current.request))
        except RuleopError:
            return Result(failed=True)
        known = planned.status.patch["metadata"].get("resourceVersion")
        if live is None or live["metadata"]["resourceVersion"] == known:
            return Result(failed=True)
        return Result(requeue_after=IMMEDIATELY, reason="the CR has changed")

    async def _in_turns(self, steps: Steps[T]) -> T:
        return await self.environment.turns.finish_steps(steps)

    # -- the cluster ---------------------------------------------------------------------------------------------------

    def _resource(self, rule: Rule, request: Request) -> Object | None:
        return self.cache.resource(self.key(request), rule.kind.version)

    def _expect(self, request: Request, versions: dict[ObjectKey, str]) -> None:
        """Records the versions that the cache has to reach before the next pass."""
        if versions:
            self.expectations.setdefault(request, Expectations()).wrote(versions)

    def _behind(self, request: Request) -> float | None:
        """Seconds until the next check, while the cache is older than ruleop's last writes; otherwise None."""
        if (expected := self.expectations.get(request)) is None:
            return None
        wait = expected.wait(self.cache, self.clock.monotonic())
        if not expected:
            del self.expectations[request]
        return wait

    def _remove(self, request: Request) -> None:
        self.index.remove(request)
        self.histories.pop(request, None)
        self.expectations.pop(request, None)
        self.pass_log.remove(request)

    async def _is_namespace_terminating(self, resource: Object) -> bool:
        """Whether objects can no longer be created in the CR's namespace. Checked only if the CR is being deleted."""
        metadata = resource["metadata"]
        name = metadata.get("namespace")
        if (
            not metadata.get("deletionTimestamp")
            or not name
            or self.environment.finalizer not in (metadata.get("finalizers") or ())
        ):
            return False
        try:
            found = await self.cache.read_metadata(NAMESPACE, ObjectKey("", "Namespace", "", name))
        except RuleopError:  # not permitted with a Role only; then a creation fails
            return False
        return found is None or bool(found["metadata"].get("deletionTimestamp"))


def _ends(planned: Plan, resource: Object) -> bool:
    """Whether the plan removes ruleop's finalizer from a CR that is being deleted: then no status can be written."""
    return bool(resource["metadata"].get("deletionTimestamp")) and any(
        isinstance(action, RemoveFinalizer) for action in planned.actions
    )
