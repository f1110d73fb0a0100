"""One watched kind: its CRs, each looked at when something about it changes, planned, carried out, and told about.

A reconcile reads the current state and nothing else. Which event led to it, and in which order events came, plays no part, so any of them
may be lost or repeated. Children are written first; the status follows, at once when nothing else waits, and after the others' children
when many do.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from ruleop.engine.cache.index import Index
from ruleop.engine.queue.result import AT_ONCE, Result
from ruleop.engine.queue.triggers import RESYNC
from ruleop.engine.reconcile.drift import DriftDetector
from ruleop.engine.reconcile.memory import Memory
from ruleop.engine.reconcile.name_conflicts import NameConflicts
from ruleop.engine.reconcile.observation import Seen, target_of
from ruleop.engine.reconcile.pass_log import PassLog, status_fields
from ruleop.engine.reconcile.status_debounce import CHANGED, WRITTEN
from ruleop.errors import RuleopError
from ruleop.kinds import GroupKind, Kind, Object, ObjectKey
from ruleop.kube.client.errors import ApiError, Problem
from ruleop.merge.equality import fingerprint
from ruleop.permissions import grant, place
from ruleop.planning import (
    AddFinalizer,
    Create,
    Delete,
    Event,
    Failed,
    Failure,
    Kinds,
    Objects,
    Observed,
    Owner,
    Patch,
    Plan,
    Refused,
    RemoveFinalizer,
    Replace,
    ServerSideApply,
    choose_rule,
    plan,
)
from ruleop.planning.events import done
from ruleop.planning.marks import is_paused
from ruleop.planning.period import reconcile_period
from ruleop.planning.scope import Scope
from ruleop.planning.writes import verb_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from ruleop.engine.queue.request import Request
    from ruleop.engine.reconcile.executor import Executor, Outcomes
    from ruleop.engine.reconcile.status_debounce import StatusDebounce
    from ruleop.engine.telemetry.metrics import Metrics
    from ruleop.rules import Rule

NAMESPACE = Kind("", "v1", "Namespace")
MAX_REPLANS = 5
STORES_AGAIN = 1.0  # seconds until the next look, should a store not tell that it is there before
REFUSED_FOR = 60.0  # seconds until the same status is tried again: the schema may be another by then


class _Unknown(Exception):  # noqa: N818 - no error: the pass ends, and another begins when all is known
    """A store was made anew while the pass waited for an answer. What is not in it may exist, and nothing follows from its silence."""


class World(Objects, Kinds, Protocol):
    """What the stores hold, and what can be read live."""

    def resource(self, key: ObjectKey, version: str = "") -> Object | None: ...
    def seen_from(self, namespace: str) -> Kinds: ...
    def is_at_least(self, key: ObjectKey, version: str) -> bool: ...
    def has_seen(self, key: ObjectKey, version: str) -> bool: ...
    async def look(self, kind: Kind, key: ObjectKey) -> Object | None:
        """An object's metadata, read live: somebody else's object in the place of a child."""
        ...


class StatusWriter(Protocol):
    async def __call__(self, kind: Kind, key: ObjectKey, patch: Mapping[str, Any], *, subresource: bool) -> Object: ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every reconciler works with."""

    world: World
    executor: Executor
    write_status: StatusWriter
    say: Callable[[Object, Event], None]  # an Event on a CR
    before_writes: Callable[[Rule, Plan], Awaitable[None]]  # the inventory has to know first
    metrics: Metrics
    debounce: StatusDebounce
    clock: Callable[[], str]
    ticks: Callable[[], float]  # seconds that nobody sets back
    seed: Callable[[], bytes]
    finalizer: str
    conditions_of: Callable[[GroupKind], frozenset[str]]  # that rules of a kind have or had
    dry_run: bool = False


class Reconciler:
    def __init__(
        self,
        kind: Kind,
        rules: Sequence[Rule],
        surroundings: Surroundings,
        *,
        known: Callable[[], bool],
        busy: Callable[[], bool],
        wake: Callable[[Request], None],
    ) -> None:
        """`known` says whether the stores know all that the rules need, or that it cannot be had; `busy`, whether other CRs of the kind
        wait to be looked at; `wake` has one looked at soon."""
        self.rules = tuple(rules)
        self.kind = kind
        self.title = str(self.kind.versionless)
        self.around = surroundings
        self.known, self.busy, self.wake = known, busy, wake
        self.world, self.executor, self.metrics = surroundings.world, surroundings.executor, surroundings.metrics.of(self.title)
        self.drift = DriftDetector(self.world, surroundings.ticks, surroundings.say, self.metrics.fights.inc, self.title)
        self.name_conflicts = NameConflicts(self.world, self.executor, surroundings.ticks, self.title)
        self.pass_log = PassLog(self.world, self.metrics, self.title)
        self.dry_run = surroundings.dry_run
        self.index = Index()
        self.memory: dict[Request, Memory] = {}
        self.held_until = ""  # RFC 3339: nothing is deleted before, because the rules have just changed
        self.finalizer_troubles: set[Failure] = set()  # of CRs that no rule matches; each is told once, until one succeeds
        self.log = structlog.get_logger().bind(controller=self.title)

    def key(self, request: Request) -> ObjectKey:
        return ObjectKey(self.kind.group, self.kind.kind, request.namespace, request.name)

    async def reconcile(self, request: Request) -> Result:
        resource = self.world.resource(self.key(request))
        if resource is None:
            self.index.forget(request)
            self.memory.pop(request, None)
            return Result()
        rule = choose_rule(self.rules, resource)
        if rule is None:
            return await self._unmatched(request, resource)
        if (resource := self._resource(rule, request)) is None:
            return Result()  # the watch of its version has not shown it yet, or knows already that it is gone
        memory = self.memory.setdefault(request, Memory())
        if memory.awaited and (wait := memory.awaited.wait(self.world, self.around.ticks())) is not None:
            return Result(again=wait, why="a store is behind")
        if memory.fights:
            memory.fights.settle(self.around.ticks())
        try:
            await self.name_conflicts.look(request, memory)
            memory.namespace_ends = bool(rule.finalize) and await self._namespace_ends(resource)
            planned, outcomes = await self._carry_out(rule, request, resource, memory)
        except _Unknown:
            return Result(again=STORES_AGAIN, why="a store is made anew")
        except RuleopError as error:  # what has to be known or written first: the inventory
            news, memory.trouble = memory.trouble != str(error), str(error)
            (self.log.warning if news else self.log.debug)("not reconciled; trying again", resource=str(request), error=memory.trouble)
            return Result(failed=True, again=self.executor.classify(error)[1])
        memory.trouble = ""
        return await self._conclude(rule, request, memory, planned, outcomes)

    def _resource(self, rule: Rule, request: Request) -> Object | None:
        return self.world.resource(self.key(request), rule.kind.version)

    # -- planning and writing ------------------------------------------------------------------------------------------------------------

    async def _carry_out(self, rule: Rule, request: Request, resource: Object, memory: Memory) -> tuple[Plan, Outcomes | None]:
        """Plans and writes, and plans again where the world was other than planned."""
        outcomes: Outcomes | None = None
        for _ in range(MAX_REPLANS):
            planned = self._plan(rule, resource, memory)
            while planned.unread and await self.name_conflicts.read(planned.unread, request, memory):
                planned = self._plan(rule, resource, memory)
            if memory.fights and not self.dry_run and await self.drift.holds_back(planned, resource, memory):
                planned = self._plan(rule, resource, memory)
            self._keep_routes(rule, request, resource, memory)
            memory.in_step.plan(rule, resource, planned)
            if not planned.actions or self.dry_run:
                return planned, None
            await self.around.before_writes(rule, planned)
            outcomes, others = await self._execute(planned, resource)
            self._remember(planned, memory, outcomes)
            self.pass_log.wrote(request, resource, memory, outcomes)
            self.drift.sees(resource, memory, outcomes)
            for event in done(outcomes.done, request.namespace):
                self.around.say(resource, event)
            now = outcomes.resource or self._resource(rule, request)
            if now is None or not outcomes.replan:
                break
            resource = now
        assert outcomes is not None
        if now is None or (outcomes.clean and _ends(planned, resource)):
            return planned, outcomes
        if outcomes.clean and (others or self.busy()) and self._may_wait(request, memory, WRITTEN):
            return planned, outcomes  # children first, and the status when the others have theirs
        return self._plan(rule, now, memory, outcomes), outcomes

    async def _execute(self, planned: Plan, resource: Object) -> tuple[Outcomes, bool]:
        """What became of it, and whether children of other CRs are being written, too."""
        debounce = self.around.debounce
        debounce.begin()
        try:
            outcomes = await self.executor.execute(planned.actions, resource)
        finally:
            others = debounce.end()
        return outcomes, others

    def _may_wait(self, request: Request, memory: Memory, patience: float) -> bool:
        memory.status_in = self.around.debounce.may_wait((self.kind, request), patience, lambda: self.wake(request))
        return memory.status_in is not None

    def _plan(self, rule: Rule, resource: Object, memory: Memory, outcomes: Outcomes | None = None) -> Plan:
        if not self.known():
            raise _Unknown
        start = time.perf_counter()
        known = self.around.conditions_of(rule.kind.versionless)
        seen = Seen(self.world, memory)
        observed = Observed(
            objects=seen,
            partial=seen.partial() if memory.foreign else (),
            kinds=self.world.seen_from(resource["metadata"].get("namespace") or ""),
            now=self.around.clock(),
            seed=self.around.seed(),
            finalizer=self.around.finalizer,
            learned=memory.learned,
            failed=self._failed(rule, resource, memory) | (outcomes.failed if outcomes is not None else {}),
            recreated=memory.recreated,
            fights=memory.fights.told(self.around.ticks()) if memory.fights else {},
            refused=memory.refused if self.around.ticks() < memory.refused_until else None,
            retired=known - {each.type for each in rule.conditions} if known else (),
            last_reason=memory.reason,
            held_until=self.held_until,
            namespace_terminating=memory.namespace_ends,
            foresee=self.dry_run,
            settled=outcomes is not None,
            acted=outcomes.deleted | outcomes.written.keys() if outcomes is not None else (),
        )
        planned = plan(rule, resource, observed)
        self.metrics.plan_time.observe(time.perf_counter() - start)
        return planned

    def _failed(self, rule: Rule, resource: Object, memory: Memory) -> dict[ObjectKey, Failed]:
        """What was refused for good, and is not to be tried again yet."""
        if not memory.failed:
            return {}
        period, _ = reconcile_period(rule, resource)
        now = self.around.ticks()
        return {key: each.failed for key, each in memory.failed.items() if each.stands(self._version(key), now, period)}

    def _version(self, key: ObjectKey) -> str:
        live = self.world.get(key)
        return (live["metadata"].get("resourceVersion") or "") if live is not None else ""

    def _remember(self, planned: Plan, memory: Memory, outcomes: Outcomes) -> None:
        kinds = {action.key: Kind.of(action.object) for action in planned.actions if isinstance(action, (Create, ServerSideApply))}
        shapes = {key: self.world.info(kinds.get(key) or Kind.of(answer)).shape for key, (_, answer) in outcomes.written.items()}
        memory.learn(outcomes.written, shapes)
        memory.wrote(outcomes.versions)
        done = [action for action in outcomes.done if not isinstance(action, (AddFinalizer, RemoveFinalizer))]
        for action in done:
            if isinstance(action, Delete) and action.why == "recreate" and action.key in memory.failed:
                memory.recreated[action.key] = memory.failed[action.key].failed.wanted
        changes = (action for action in planned.actions if isinstance(action, (Patch, Replace, ServerSideApply)))
        versions = {action.key: action.live["metadata"]["resourceVersion"] for action in changes if action.live is not None}
        acted = {action.key for action in done} | set(outcomes.failed)
        memory.remember(outcomes.failed, acted, versions=versions, now=self.around.ticks())
        memory.meet(outcomes.foreign, self.around.ticks())
        carried_out = {id(action) for action in outcomes.done}
        for each in planned.actions:
            key = planned.resource if isinstance(each, (AddFinalizer, RemoveFinalizer)) else each.key
            outcome = outcomes.failed[key].failure.value if key in outcomes.failed else "done" if id(each) in carried_out else "held back"
            self.metrics.wrote(verb_of(each).do, outcome)

    # -- what is said --------------------------------------------------------------------------------------------------------------------

    async def _conclude(self, rule: Rule, request: Request, memory: Memory, planned: Plan, outcomes: Outcomes | None) -> Result:
        resource = self._resource(rule, request)
        if resource is None:
            return Result()
        if outcomes is not None and outcomes.clean and _ends(planned, resource):
            for event in planned.events:
                self.around.say(resource, event)
            return Result()
        if outcomes is not None and outcomes.clean and planned.actions and not self.dry_run:
            return Result(again=memory.status_in)
        if planned.status is not None and planned.status.patch is not None and not self.dry_run:
            if outcomes is None and self.around.debounce.busy and self._may_wait(request, memory, CHANGED):
                return Result(again=memory.status_in)
            self.around.debounce.done((self.kind, request))
            try:
                if rule.conditions:
                    await self.around.before_writes(rule, planned)
                answer = await self.around.write_status(
                    rule.kind, self.key(request), planned.status.patch, subresource=planned.status.subresource
                )
            except RuleopError as error:
                return await self._status_failed(rule, request, resource, memory, planned, error)
            fields = partial(status_fields, planned, resource)
            self.log.debug("status written", resource=str(request), fields=fields)
            memory.untold = ""
            memory.wrote({self.key(request): answer["metadata"]["resourceVersion"]})
        if self.dry_run:
            self.pass_log.would(request, memory, planned, resource)
        told_before = planned.quiet and not memory.reason and not memory.written and outcomes is None
        for event in planned.events:
            # At the first look after a start, where the status has no room for a reason, this was said in an earlier life.
            if not (told_before and event.reason == "Synced"):
                self.around.say(resource, event)
        if planned.complete and not self.held_until:
            memory.keep({each.key for child in planned.children for each in child.objects})
        self._tell(request, memory, planned, outcomes)
        memory.reason = planned.conditions[0]["reason"] if planned.conditions else ""
        if outcomes is not None and not outcomes.clean:
            return Result(failed=True, again=outcomes.retry_after)
        again, why = self._again(memory, planned)
        return Result(again=again, why=why)

    async def _status_failed(
        self, rule: Rule, request: Request, resource: Object, memory: Memory, planned: Plan, error: RuleopError
    ) -> Result:
        """What the status was to say is said otherwise, once; but for a CR that is gone, or a newer one than the status was made for."""
        if isinstance(error, ApiError) and error.problem is Problem.NOT_FOUND:
            return Result(failed=True)
        if isinstance(error, ApiError) and error.problem is Problem.CONFLICT:
            return await self._status_overtaken(rule, request, planned)
        failure, retry_after = self.executor.classify(error)
        assert planned.status is not None
        if failure is Failure.INVALID and planned.status.projected:
            memory.refused = Refused(fingerprint(planned.status.projected), str(error))
            memory.refused_until = self.around.ticks() + REFUSED_FOR
            return Result(again=AT_ONCE, why="the status was refused")
        if failure is not None and failure is not Failure.OTHER and memory.untold != str(error):
            memory.untold = str(error)
            title = f"{self.world.info(rule.kind).resource}/status"
            needed = grant(title if planned.status.subresource else title.removesuffix("/status"), place(request.namespace), ["patch"])
            grants = {"grant": needed} if failure is Failure.FORBIDDEN else {}
            self.log.warning("status not written", resource=str(request), error=str(error), **grants)
            for problem in planned.problems:
                self.pass_log.problem(request, problem)
            for event in planned.events:
                self.around.say(resource, event)
        return Result(failed=True, again=retry_after)

    async def _status_overtaken(self, rule: Rule, request: Request, planned: Plan) -> Result:
        """There is a newer CR than the one that the status was made for; it is read live, and planned for. If there is none, the server
        refuses for another reason."""
        assert planned.status is not None
        assert planned.status.patch is not None
        try:
            live = await self.executor.see(rule.kind, self.key(request))
        except RuleopError:
            return Result(failed=True)
        known = planned.status.patch["metadata"].get("resourceVersion")
        if live is None or live["metadata"]["resourceVersion"] == known:
            return Result(failed=True)
        return Result(again=AT_ONCE, why="the CR is a newer one")

    def _again(self, memory: Memory, planned: Plan) -> tuple[float | None, str]:
        waits = [(foreign.look_at - self.around.ticks(), "an object is in the way") for foreign in memory.foreign.values()]
        if memory.fights and (look_at := memory.fights.look_at(self.around.ticks())) is not None:
            waits.append((look_at - self.around.ticks(), "a fight"))
        if planned.look_again is not None:
            waits.append((planned.look_again, "its time has come"))
        for key, refusal in memory.failed.items():
            left = refusal.until - self.around.ticks()
            if left > 0 and self._version(key) != refusal.version:  # later, what hinders it tells when it is gone
                waits.append((left, "what was refused may pass"))
        if any(each.reason == "StatusRefused" for each in planned.problems):
            waits.append((memory.refused_until - self.around.ticks(), "the status was refused"))
        if planned.period:
            waits.append((planned.period, RESYNC))
        wait, why = min(waits, default=(None, ""))
        return (None if wait is None else max(AT_ONCE, wait)), why

    def _tell(self, request: Request, memory: Memory, planned: Plan, outcomes: Outcomes | None) -> None:
        if outcomes is None:
            self.metrics.quiet.inc()
        memory.states = tuple(child.state.value for child in planned.children)
        memory.waits = tuple((wait.child, wait.why) for wait in planned.waits)
        self.pass_log.reconciled(request, memory, planned)

    # -- CRs that are deleted, and CRs that no rule matches ------------------------------------------------------------------------------

    async def _namespace_ends(self, resource: Object) -> bool:
        """Whether nothing can be created in the CR's namespace any more; asked only of a CR that is being deleted."""
        metadata = resource["metadata"]
        name = metadata.get("namespace")
        if not metadata.get("deletionTimestamp") or not name or self.around.finalizer not in (metadata.get("finalizers") or ()):
            return False
        try:
            found = await self.world.look(NAMESPACE, ObjectKey("", "Namespace", "", name))
        except RuleopError:  # with rights in this namespace only, it cannot be told; the creation will be
            return False
        return found is None or bool(found["metadata"].get("deletionTimestamp"))

    async def _unmatched(self, request: Request, resource: Object) -> Result:
        """A CR that matches no rule keeps its children, and loses our finalizer; not in the first seconds after a reload: its rule may be
        in a file that is yet to come. Nor in a pause, unless its kind has no rules any more: then nobody would be there after it."""
        self.index.forget(request)
        self.memory.pop(request, None)
        if self.rules and is_paused(resource):
            return Result()
        if self.around.finalizer not in (resource["metadata"].get("finalizers") or ()) or self.dry_run or self.held_until:
            return Result()
        outcomes = await self.executor.execute([RemoveFinalizer(self.around.finalizer)], resource)
        self.pass_log.wrote(request, resource, Memory(), outcomes)
        troubles = {each.failure: each.message for each in outcomes.failed.values()}
        news = troubles.keys() - self.finalizer_troubles
        for each in sorted(troubles[failure] for failure in news):
            self.log.warning("a finalizer that no rule needs cannot be removed; trying again", resource=str(request), error=each)
        self.finalizer_troubles = set(troubles) if outcomes.clean else self.finalizer_troubles | set(troubles)
        return Result(failed=not outcomes.clean, again=outcomes.retry_after)

    # -- index --------------------------------------------------------------------------------------------------------------------------

    def _keep_routes(self, rule: Rule, request: Request, resource: Object, memory: Memory) -> None:
        kinds = self.world.seen_from(request.namespace)
        scope = Scope(rule, resource, Observed(Seen(self.world, memory), kinds)) if rule.observe else None
        targets = [target for observe in rule.observe.values() if scope and (target := target_of(scope, observe)) is not None]
        self.index.keep(request, Owner.of(resource).part_of, targets)


def _ends(planned: Plan, resource: Object) -> bool:
    """Our finalizer goes from a CR that is being deleted: there is nothing left to write a status to."""
    return bool(resource["metadata"].get("deletionTimestamp")) and any(isinstance(action, RemoveFinalizer) for action in planned.actions)
