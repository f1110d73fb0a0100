"""Reconciles the CRs of one watched kind.

A reconcile depends on the current state only, not on the event that triggered it or on the order of events, so events
may be lost or repeated. Children are written first. The status follows at once, or, while children of many CRs are
being written, after them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import structlog

from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import Kind, Object, ObjectKey
from ruleop.operator.cache import ControllerExpectations, Index
from ruleop.operator.passes.executor import classify
from ruleop.operator.passes.large_plans import Large
from ruleop.operator.passes.pass_log import PassLog
from ruleop.operator.passes.pass_planning import CurrentPass, PassPlanning, Unsynced
from ruleop.operator.passes.status import StatusWriter
from ruleop.operator.passes.status_debounce import CHANGED, WRITTEN
from ruleop.operator.queue import IMMEDIATELY, Result, Urgency
from ruleop.planning import PLAN_IS_LATE, History, Plan, RemoveFinalizer, choose_rule, write_events
from ruleop.planning.changes import verb_of
from ruleop.planning.guard import TooSlow
from ruleop.planning.model.marks import is_paused, part_of
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ruleop.language.rules import Rule
    from ruleop.operator.passes.executor import Executor
    from ruleop.operator.passes.pass_planning import PassEnvironment
    from ruleop.operator.queue import Request, Workers
    from ruleop.planning import Failure, Outcome, Requeue
    from ruleop.planning.model.conditions import Condition


# -- unmatched ---------------------------------------------------------------------------------------------------------
#
# Removes ruleop's finalizer from custom resources that no rule matches. They keep their children.


class Unmatched:
    """The unmatched CRs of one watched kind."""

    def __init__(self, executor: Executor, finalizer: str, title: str) -> None:
        self.executor = executor
        self.finalizer = finalizer
        self._reported: set[Failure] = set()  # each is logged once, until a removal succeeds
        self.log = structlog.get_logger().bind(controller=title)

    async def release(self, request: Request, resource: Object) -> Result:
        if self.finalizer not in (resource["metadata"].get("finalizers") or ()):
            return Result()
        outcome = await self.executor.execute([RemoveFinalizer(ObjectKey.of(resource), self.finalizer)], resource)
        if outcome.done and outcome.writes:
            self.log.info("finalizer removed", resource=str(request), finalizer=self.finalizer)
        failures = {each.failure: each.message for each in outcome.failed.values()}
        for message in sorted(failures[failure] for failure in failures.keys() - self._reported):
            self.log.warning("finalizer cannot be removed; will retry", resource=str(request), error=message)
        self._reported = set(failures) if outcome.clean else self._reported | set(failures)
        return Result(failed=not outcome.clean, retry_after=outcome.retry_after)


# -- reconciler --------------------------------------------------------------------------------------------------------


MAX_REPLANS = 5
LARGE = 0.5  # of what a plan may use, for those of a pass: the next plan, which may use as much, is another pass's
PLAN_IS_SLOW = "its plan takes long"
TURN_AT_LATEST = 60.0  # seconds until a slow CR asks again whether it is its turn, should nobody have woken it
RESYNCED_AFTER = 1.0  # seconds until the next attempt, unless a store reports earlier that it is synced again


@dataclass(frozen=True, slots=True)
class _Written:
    """The last plan of the children, and what came of its writes; no outcome if there was nothing to write."""

    planned: Plan
    outcome: Outcome | None = None
    others: bool = False  # children of other CRs are being written
    is_gone: bool = False  # the CR has no finalizer of this operator any more: no status can be written


class Reconciler:
    def __init__(self, kind: Kind, rules: Sequence[Rule], environment: PassEnvironment, workers: Workers) -> None:
        self.rules = tuple(rules)
        self.kind = kind
        self.environment, self.workers = environment, workers
        title = str(kind.versionless)
        self.cache, self.clock, self.debounce = environment.cache, environment.clock, environment.debounce
        self.metrics = environment.metrics.of(title)
        self.pass_log = PassLog(self.cache, self.metrics, title)
        self.unmatched = Unmatched(environment.executor, environment.finalizer, title)
        self.index = Index()
        self.histories: dict[Request, History] = {}
        self.expectations = ControllerExpectations()
        self.has_rollouts = False  # one of the rules has `rollout`
        self.held_until = ""  # see CurrentPass
        self.large: set[Request] = set()  # whose plans take long
        self.planning = PassPlanning(kind, environment, self.metrics, self.pass_log, self.index)
        self.status = StatusWriter(environment, self.pass_log, self.expectations)

    def key(self, request: Request) -> ObjectKey:
        return ObjectKey(self.kind.group, self.kind.kind, request.namespace, request.name)

    async def reconcile(self, request: Request) -> Result:
        """One pass. What it has learned is kept, however it ends."""
        # 1. The custom resource and its rule.
        found = self._find(request)
        if found is None:
            return Result()
        resource, rule, rollout = found
        if rule is None:
            self.remove(request)
            return await self._unmatched(request, resource)

        # 2. Whether it is time: the stores have its own writes, and a plan that takes long has its turn.
        if (wait := self.expectations.wait(request, self.cache, self.clock.monotonic())) is not None:
            return Result(requeue_after=wait, reason="the cache is behind")
        self.environment.other_operators.notice(resource)
        history = self.histories.get(request, History.NONE).at_pass_start(self.cache, self.clock.monotonic())
        current = CurrentPass(request, rule, resource, history, self.held_until, rollout)
        if (request in self.large or history.late is not None) and (postponed := self._postponed(current)) is not None:
            return postponed
        try:
            # 3. The plan, and the writes of the children.
            await self.planning.begin(current)
            written = await self._write_children(current)
            if written.is_gone:
                return Result()
            # 4. The status, by what is there now: at once, or in another pass.
            planned = await self._plan_of_status(current, written)
            if planned is None:
                return Result(requeue_after=current.status_in)
            if (result := await self._write_status(current, planned, written.outcome)) is not None:
                return result
            # 5. What came of it, and when the next pass is.
            return await self._report(current, planned, written.outcome)
        except (Unsynced, TooSlow) as end:
            return self._given_up(request, end)
        except RuleopError as error:  # the inventory or the owner key, which come first, could not be read or written
            self.pass_log.not_reconciled(request, str(error))
            return Result(failed=True, retry_after=classify(error)[1])
        finally:
            self.histories[request] = current.history
            if current.is_large:
                self._end_turn(current)

    def _find(self, request: Request) -> tuple[Object, Rule | None, Condition | None] | None:
        """The custom resource, its rule, and the revision of the rules; None if there is nothing to reconcile."""
        key, owns = self.key(request), self.environment.owns
        resource = self.cache.resource(key)
        if resource is None or key in self.environment.own or (owns is not None and not owns(resource)):
            self.remove(request)
            return None
        if self.has_rollouts and self.environment.rollouts is not None:
            rule, rollout, is_frozen = self.environment.rollouts.choose(self.rules, resource)
            if is_frozen:
                return None
        else:
            rule, rollout = choose_rule(self.rules, resource), None
        if rule is not None and rule.kind != Kind.of(resource):
            resource = self.cache.resource(key, rule.kind.version)
            if resource is None:
                return None  # the watch of its version does not have it yet, or no longer
        return resource, rule, rollout

    def _given_up(self, request: Request, end: Unsynced | TooSlow) -> Result:
        if isinstance(end, Unsynced):
            return Result(requeue_after=RESYNCED_AFTER, reason="a kind is listed again")
        self.large.add(request)
        return Result(requeue_after=IMMEDIATELY, reason=PLAN_IS_SLOW)

    def _end_turn(self, current: CurrentPass) -> None:
        large_plans = self.environment.large_plans
        large_plans.end(Large(self.kind.versionless, current.request))
        if current.longest and large_plans.is_short(current.longest):
            self.large.discard(current.request)

    # -- plans that take long ------------------------------------------------------------------------------------------

    def _postponed(self, current: CurrentPass) -> Result | None:
        """The pass's result if it has to plan later: for the same CR and rules the last plan was ended, or its plans
        take long and it is not its turn. An event may have started the pass, but that makes no plan shorter."""
        request, late = current.request, current.history.late
        is_repeated = late is not None and late.is_for(current.rule, current.resource)
        if late is not None and is_repeated and (wait := late.until - self.clock.monotonic()) > 0:
            return Result(requeue_after=wait, reason=PLAN_IS_LATE)
        if request not in self.large:
            return None
        wake = partial(self.workers.add, request, PLAN_IS_SLOW, Urgency.RETRY)
        urgency = Urgency.RESYNC if is_repeated else Urgency.CHANGE
        large = Large(self.kind.versionless, request)
        current.is_large = self.environment.large_plans.begin(large, urgency, wake)
        return None if current.is_large else Result(requeue_after=TURN_AT_LATEST, reason=PLAN_IS_SLOW)

    async def _unmatched(self, request: Request, resource: Object) -> Result:
        """Removes the finalizer. Not in the first seconds after a reload: a file with a matching rule may follow. Not
        while the CR is paused either, unless its kind has no rules any more: then nothing would remove it later."""
        if (self.rules and is_paused(resource)) or self.environment.dry_run or self.held_until:
            return Result()
        return await self.unmatched.release(request, resource)

    # -- the children --------------------------------------------------------------------------------------------------

    async def _write_children(self, current: CurrentPass) -> _Written:
        """Plans and writes, repeatedly if a plan was outdated."""
        for _ in range(MAX_REPLANS):
            current.history = current.history.before_writes()
            planned = await self.planning.plan_actions(current)
            if not planned.actions or self.environment.dry_run:
                return _Written(planned)
            await self.environment.inventory.before_writes(current.rule, planned)
            outcome, others = await self._execute(current, planned)
            latest = outcome.resource or self.cache.resource(self.key(current.request), current.rule.kind.version)
            if latest is None or ObjectKey.of(latest) in outcome.deleted:  # the watch may not have reported it yet
                return _Written(planned, outcome, is_gone=True)
            current.resource = latest
            if not outcome.replan or current.used > LARGE:
                break
        is_released = any(isinstance(action, RemoveFinalizer) for action in planned.actions)
        if outcome.clean and is_released and current.resource["metadata"].get("deletionTimestamp"):
            self.environment.events.record(current.resource, planned.events)
            return _Written(planned, outcome, is_gone=True)
        return _Written(planned, outcome, others=others)

    async def _execute(self, current: CurrentPass, planned: Plan) -> tuple[Outcome, bool]:
        """Carries out the actions. Returns their outcome, and whether children of other CRs are being written."""
        log = partial(self.pass_log.wrote, current.request, planned, allowance=current.descriptions)
        self.debounce.begin()
        try:
            outcome = await self.environment.executor.execute(
                planned.actions, current.resource, log, account=planned.account
            )
        finally:
            others = self.debounce.end()
        for action, result in outcome.results(planned.actions):
            self.metrics.wrote(verb_of(action).do, result)
        self.environment.events.record(current.resource, write_events(outcome.done, current.request.namespace))
        self.expectations.wrote(current.request, outcome.versions)
        current.history = current.history.after(planned, outcome, self.clock.monotonic())
        return outcome, others

    def _may_wait(self, current: CurrentPass, patience: float) -> bool:
        wake = partial(self.workers.add, current.request, "status", Urgency.RETRY)
        current.status_in = self.debounce.may_wait((self.kind, current.request), patience, wake)
        return current.status_in is not None

    # -- the status ----------------------------------------------------------------------------------------------------

    async def _plan_of_status(self, current: CurrentPass, written: _Written) -> Plan | None:
        """The plan with the status as it is after the writes; None if another pass plans and writes it. While children
        of many CRs are being written, they come first."""
        planned, outcome = written.planned, written.outcome
        if outcome is None:
            return planned
        waits = outcome.clean and (written.others or self.workers.queue.has_ready())
        if waits and not planned.steady and self._may_wait(current, WRITTEN):
            return None
        if outcome.clean and current.used > LARGE:  # the next pass has nothing to write, and plans the status
            current.status_in = IMMEDIATELY
            return None
        # If all children had been written before, as when drift is reverted, the status usually stays as it is, and
        # there is nothing to delay.
        of_status = await self.planning.plan(current)
        if of_status.watches != planned.watches:  # it has objects of children that were just created
            label = part_of(current.resource)
            if self.index.update(current.request, label, of_status.watches) and current.is_large:
                of_status = await self.planning.plan(current)
        if waits and not of_status.quiet and self._may_wait(current, WRITTEN):
            return None
        return of_status

    async def _write_status(self, current: CurrentPass, planned: Plan, outcome: Outcome | None) -> Result | None:
        """The result of the pass if the status is written later, or cannot be written."""
        status = planned.status
        if status is None or self.environment.dry_run:
            return None
        if status.missing:
            self.status.report_missing(current, status)
        if status.patch is None:
            return None
        if outcome is None and planned.late is None and self.debounce.busy and self._may_wait(current, CHANGED):
            return Result(requeue_after=current.status_in)
        self.debounce.done((self.kind, current.request))
        if outcome is None and status.details_only and (wait := self.status.details_in(current.request)):
            current.status_in = wait
            return None
        if (result := await self.status.write(current, planned, status)) is not None:
            return self._with_next_check(current, planned, result) if result.failed else result
        current.again = current.rule.reads_status
        return None

    async def _report(self, current: CurrentPass, planned: Plan, outcome: Outcome | None) -> Result:
        if self.environment.dry_run:
            log = partial(
                self.pass_log.intended, current.request, planned, current.resource, allowance=current.descriptions
            )
            if current.is_large:
                await self.environment.large_plans.make_in_thread(lambda: log)
            else:
                log()
        if outcome is None:
            self.metrics.without_writes.inc()
        self.environment.events.record(current.resource, planned.events)
        self.pass_log.reconciled(current.request, current.history, planned)
        again = current.history.next_pass(planned) if planned.again or current.again else None
        current.history = current.history.after(planned, None, self.clock.monotonic(), again=current.again)
        if outcome is not None and not outcome.clean:
            failed = Result(failed=True, retry_after=outcome.retry_after)
            return self._with_next_check(current, planned, failed, again)
        requeue = planned.requeue_after
        if again is not None and (requeue is None or again.seconds < requeue.seconds):
            requeue = again
        if current.status_in is not None and (requeue is None or current.status_in < requeue.seconds):
            return Result(requeue_after=current.status_in, reason="details of the status are written")
        if requeue is None:
            return Result()
        return Result(requeue_after=max(IMMEDIATELY, requeue.seconds), reason=requeue.reason)

    def _with_next_check(
        self, current: CurrentPass, planned: Plan, failed: Result, again: Requeue | None = None
    ) -> Result:
        """One child that fails does not delay what was promised for the others, as its backoff may be long."""
        checks = current.history.next_check(self.cache, self.clock.monotonic()), planned.time_check, again
        seconds = [check.seconds for check in checks if check is not None]
        return replace(failed, requeue_after=max(IMMEDIATELY, min(seconds))) if seconds else failed

    # -- one CR --------------------------------------------------------------------------------------------------------

    def remove(self, request: Request) -> None:
        """Removes the state of a CR that is deleted, or that another process reconciles."""
        self.index.remove(request)
        if request in self.large:
            self.large.discard(request)
            self.environment.large_plans.end(Large(self.kind.versionless, request))
        self.histories.pop(request, None)
        self.status.remove(request)
        self.expectations.remove(request)
        self.pass_log.remove(request)
        self.environment.other_operators.remove(self.key(request))
