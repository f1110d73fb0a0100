"""Plans a pass from the stores, and makes the live reads that the plan asks for.

With `--record` the pass is written to a file as well.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ruleop.core.kinds import Kind, ObjectKey
from ruleop.core.planning import Observed, Plan, Planning, SlowPlanError
from ruleop.core.planning.model.marks import part_of
from ruleop.core.templating.values.cost import Allowance, for_descriptions
from ruleop.operator.engine.reconcile.live_reads import LiveReads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.planning import History, Objects, Query
    from ruleop.core.planning.model.conditions import Condition
    from ruleop.core.rules import Rule
    from ruleop.operator.engine.cache.index import Index
    from ruleop.operator.engine.queue.request import Request
    from ruleop.operator.engine.reconcile.pass_log import PassLog
    from ruleop.operator.engine.reconcile.shared_objects import Environment
    from ruleop.operator.engine.telemetry.metrics import ControllerMetrics


class Unsynced(Exception):  # noqa: N818 - not an error: the pass ends, and the next one starts when all is synced
    """A store is listed again since the pass waited for a response. An object that is missing from it may exist."""


@dataclass(slots=True)
class CurrentPass:
    """One reconcile of one CR, and what it has learned so far."""

    request: Request
    rule: Rule
    resource: Object
    history: History
    held_until: str = ""  # RFC 3339: no deletions before this time, because the rules have just changed
    rollout: Condition | None = None  # names the revision of the rules
    namespace_terminating: bool = False
    paused: bool = False  # a plan of this pass took several turns of the loop
    again: bool = False  # it has written the status, which its rule reads
    status_in: float | None = None  # seconds until the status is written, if it is delayed
    descriptions: Allowance = field(default_factory=for_descriptions)  # of its log
    accounts: float = 0.0  # that its plans have used together
    is_slow: bool = False  # its plans take long: it is its turn
    hasty: bool = True  # a plan is given up that takes too long in one turn
    share: float = 1.0  # of the guard's patience, that the last turn had
    seconds: float = 0.0  # that its plans have taken
    longest: float = 0.0  # the seconds of CPU time of the longest turn, if it is slow


class PassPlanning:
    """Plans the passes of one watched kind."""

    def __init__(
        self, kind: Kind, environment: Environment, metrics: ControllerMetrics, pass_log: PassLog, index: Index
    ) -> None:
        self.kind, self.environment, self.metrics = kind, environment, metrics
        self.pass_log, self.index = pass_log, index
        self.cache, self.clock = environment.cache, environment.clock
        self.live_reads = LiveReads(self.cache, environment.executor, self.clock, str(kind.versionless))

    async def begin(self, current: CurrentPass) -> None:
        """Reads live what no store holds and the pass needs in any case."""
        if current.rule.needs_key:
            await self.environment.owner_key.ensure()
        if current.history.conflicting:
            current.history = await self.live_reads.refresh(current.request, current.history)
        rule = current.rule
        deletes_as_account = rule.write_as is not None and rule.annotates_children
        is_checked = bool(rule.finalize) or rule.has_order or deletes_as_account
        if is_checked or self.environment.inventory.of(rule.kind.versionless).patched:
            current.namespace_terminating = await self.live_reads.is_namespace_terminating(
                current.resource, self.environment.finalizer
            )

    async def plan(self, current: CurrentPass) -> Plan:
        rule = current.rule
        inventoried = self.environment.inventory.of(rule.kind.versionless)
        known = inventoried.conditions
        observed = Observed(
            objects=ParsedObjects(self.cache),
            kinds=self.cache.seen_from(current.request.namespace),
            now=self.clock.now(),
            clock=self.clock.monotonic(),
            seed=self.clock.seed(),
            finalizer=self.environment.finalizer,
            retired=known - {each.type for each in rule.conditions} if known else (),
            held_until=current.held_until,
            rollout=current.rollout,
            namespace_terminating=current.namespace_terminating,
            expects_refusals=self.environment.dry_run,
            proofs=self.environment.owner_key.proofs(),
            own=self.environment.own,
            patched=inventoried.patched,
            resource_of=self.environment.resource_of,
            sharded=self.environment.sharded,
        )
        files, predict_status, resource = self.environment.pass_files, self.environment.dry_run, current.resource
        recorder = files.recorder(observed) if files is not None else None
        planning = Planning(
            rule,
            resource,
            observed if recorder is None else recorder.observed,
            current.history,
            predict_status=predict_status,
            masks=recorder is not None,
            hasty=current.hasty,
        )
        planned = await self._finish(current, planning)
        if planned.late is not current.history.late:
            current.history = replace(current.history, late=planned.late)
        if files is not None and recorder is not None:
            document = recorder.document(rule, resource, current.history, planned, predict_status=predict_status)
            files.write(ObjectKey.of(resource), document)
        return planned

    async def _finish(self, current: CurrentPass, planning: Planning) -> Plan:
        """A large plan takes several turns of the loop. What it reads later may be newer than what it read first; the
        preconditions of its writes refer to what it has read."""
        kind, seconds, slow_plans = self.kind.versionless, 0.0, self.environment.slow_plans

        def advance(is_time_up: Callable[[], bool]) -> Plan | None:
            nonlocal seconds
            if not self.cache.is_synced(kind):
                raise Unsynced
            start, used = time.perf_counter(), time.thread_time() if current.is_slow else 0.0
            current.share = planning.share = 1.0 if current.is_slow else slow_plans.share
            try:
                found = planning.run(is_time_up)
            finally:
                seconds += time.perf_counter() - start
            if current.is_slow:
                current.longest = max(current.longest, time.thread_time() - used)
            if found is None and not current.paused:
                current.paused = True
                self.environment.turns.collector_pause.begin()
            return found

        try:
            planned = await self.environment.turns.finish(advance)
        except SlowPlanError:
            if not current.is_slow:
                slow_plans.give_up(seconds)
            raise
        finally:
            current.seconds += seconds
        if not current.is_slow:
            slow_plans.finish()
        self.metrics.plan_time.observe(seconds)
        current.accounts += planning.account.share
        return planned

    async def plan_actions(self, current: CurrentPass) -> Plan:
        """Plans, and repeats this after the live reads that the plan asks for."""
        label = part_of(current.resource)
        self.index.add(current.request, label)
        planned, news = await self.plan(current), True
        while planned.reads and news:
            current.history, news = await self.live_reads.read(planned.reads, current.request, current.history)
            if news:
                planned = await self.plan(current)
        current.history = current.history.with_plan(planned, self.clock.monotonic())
        if planned.field_conflicts:
            self.environment.events.record(current.resource, self.pass_log.field_conflicts(current.request, planned))
        if self.index.update(current.request, label, planned.watches) and current.paused:
            planned = await self.plan(current)  # what it began to watch may have changed since it was read
        return planned


class ParsedObjects:
    """The objects of the cache for one plan, in which each child is parsed only once."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.patched = objects.patched
        self._children: dict[tuple[ObjectKey, str], Object] = {}

    def get(self, key: ObjectKey, *, version: str = "", partial: bool = False) -> Object | None:
        return self._children.get((key, version)) or self._objects.get(key, version=version, partial=partial)

    def children(self, part_of: str) -> Iterator[Object]:
        for child in self._objects.children(part_of):
            self._children[ObjectKey.of(child), child["apiVersion"].rpartition("/")[2]] = child
            yield child

    def select(self, query: Query) -> Iterable[Object]:
        return self._objects.select(query)
