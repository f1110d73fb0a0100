"""Plans a pass from the stores, and makes the live reads that the plan asks for.

With `--record` the pass is written to a file as well."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import NAMESPACE_KIND, Kind, Object, ObjectKey
from ruleop.language.templates.values.cost import Account, Allowance, for_descriptions
from ruleop.operator.passes.large_plans import LargePlans
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.planning import Observed, Plan, plan
from ruleop.planning.guard import GUARD, SECONDS
from ruleop.planning.model.marks import part_of
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ruleop.kubernetes.kinds import GroupKind, Object
    from ruleop.language.rules import Rule
    from ruleop.operator.cache import Cache, CacheView, Index
    from ruleop.operator.clock import Clock
    from ruleop.operator.passes.executor import Executor
    from ruleop.operator.passes.other_operators import OtherOperators
    from ruleop.operator.passes.owner_key import OwnerKey
    from ruleop.operator.passes.pass_log import Events, PassLog
    from ruleop.operator.passes.recorder import PassFiles
    from ruleop.operator.passes.status_debounce import StatusDebounce
    from ruleop.operator.queue import Request
    from ruleop.operator.rollouts import Rollouts
    from ruleop.operator.telemetry import ControllerMetrics, Metrics
    from ruleop.planning import ConflictingObject, History, Plan, Read
    from ruleop.planning.model.conditions import Condition


# -- shared objects ----------------------------------------------------------------------------------------------------
#
# Objects that all reconcilers of the operator share.


class Inventoried(Protocol):
    """The conditions and fields that current and earlier rules of a kind wrote."""

    @property
    def conditions(self) -> frozenset[str]: ...
    @property
    def patched(self) -> frozenset[ObjectKey]: ...


class InventoryReader(Protocol):
    """The record of what current and earlier rules wrote. The manager keeps it, which this wing does not know."""

    async def before_writes(self, rule: Rule, plan: Plan) -> None: ...
    def of(self, watched: GroupKind) -> Inventoried: ...


@dataclass(frozen=True, slots=True)
class PassEnvironment:
    """The parts that all reconcilers share."""

    cache: Cache
    executor: Executor
    inventory: InventoryReader
    owner_key: OwnerKey
    events: Events
    metrics: Metrics
    debounce: StatusDebounce
    clock: Clock
    finalizer: str
    other_operators: OtherOperators
    rollouts: Rollouts | None = None
    own: frozenset[ObjectKey] = frozenset()  # the operator's own objects, which no rule may write
    owns: Callable[[Object], bool] | None = None  # whether this process reconciles a CR; None: all
    resource_of: Callable[[str], ObjectKey | None] = lambda _: None  # a CR that was reconciled, by its label
    sharded: bool = False
    dry_run: bool = False
    pass_files: PassFiles | None = None  # with --record
    large_plans: LargePlans = field(default_factory=LargePlans)


# -- pass planning -----------------------------------------------------------------------------------------------------


# -- live reads --------------------------------------------------------------------------------------------------------
#
# Live reads in a pass, for objects that no cache holds: conflicting objects that have a child's name, and the
# managedFields of a child.
#
# The metadata of a conflicting object shows its owner. It is read again with backoff until the object is gone or may be
# adopted. The object is read in full before it is changed; otherwise the fields of others would be lost.


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


# -- pass planning -----------------------------------------------------------------------------------------------------


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
    again: bool = False  # it has written the status, which its rule reads
    status_in: float | None = None  # seconds until the status is written, if it is delayed
    descriptions: Allowance = field(default_factory=for_descriptions)  # of its log
    used: float = 0.0  # by its plans together: parts of the account, or of the CPU time, that a plan has
    is_large: bool = False  # its plans take long: they are made in the thread, and it is its turn
    longest: float = 0.0  # the seconds of CPU time of the longest of them


class PassPlanning:
    """Plans the passes of one watched kind."""

    def __init__(
        self, kind: Kind, environment: PassEnvironment, metrics: ControllerMetrics, pass_log: PassLog, index: Index
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
        deletes_as_account = rule.reach.write_as is not None and rule.annotates_children
        is_checked = bool(rule.finalize) or rule.has_order or deletes_as_account
        if is_checked or self.environment.inventory.of(rule.kind.versionless).patched:
            current.namespace_terminating = await self.live_reads.is_namespace_terminating(
                current.resource, self.environment.finalizer
            )

    async def plan(self, current: CurrentPass) -> Plan:
        """Plans on the loop, by the cache as it is; or in the thread, by a snapshot of the cache: one instant in either
        case. Raises TooSlow."""
        large_plans, account, used = self.environment.large_plans, Account(), 0.0
        if current.is_large:
            (planned, document), seconds = await large_plans.make_in_thread(
                lambda: self._prepared(current, self.cache.snapshot(part_of(current.resource)), account)
            )
            current.longest, used = max(current.longest, seconds), seconds / SECONDS
        else:
            start = time.perf_counter()
            planned, document = GUARD.within(GUARD.patience, self._prepared(current, self.cache, account))
            seconds = time.perf_counter() - start
        self.metrics.plan_time.observe(seconds)
        current.used += max(account.share, used)
        if planned.late is not current.history.late:
            current.history = replace(current.history, late=planned.late)
        if document and self.environment.pass_files is not None:
            self.environment.pass_files.write(ObjectKey.of(current.resource), document)
        return planned

    def _prepared(
        self, current: CurrentPass, cache: CacheView[Any], account: Account
    ) -> Callable[[], tuple[Plan, Object]]:
        """Makes the plan, and with `--record` the document of the pass, from what is known now."""
        if not self.cache.is_synced(self.kind.versionless):
            raise Unsynced
        rule, resource, history = current.rule, current.resource, current.history
        inventoried = self.environment.inventory.of(rule.kind.versionless)
        known = inventoried.conditions
        observed = Observed(
            objects=cache,
            kinds=cache.seen_from(current.request.namespace),
            now=self.clock.now(),
            clock=self.clock.monotonic(),
            seed=self.clock.seed(),
            finalizer=self.environment.finalizer,
            retired=known - {each.type for each in rule.status.conditions} if known else (),
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
        predict_status, files = self.environment.dry_run, self.environment.pass_files

        def make() -> tuple[Plan, Object]:
            if files is None:
                planned = plan(
                    rule, resource, observed, history, predict_status=predict_status, masks=False, account=account
                )
                return planned, {}
            recorder = files.recorder(observed)
            planned = plan(rule, resource, recorder.observed, history, predict_status=predict_status, account=account)
            seen = replace(history, late=planned.late)
            return planned, recorder.document(rule, resource, seen, planned, predict_status=predict_status)

        return make

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
        if self.index.update(current.request, label, planned.watches) and current.is_large:
            planned = await self.plan(current)  # what it began to watch may have changed since it was read
        return planned
