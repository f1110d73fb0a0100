"""The rules in force: a controller for each watched kind, and the watches that all of them need.

Rules come from the project at the start, and from each later edit of it that is valid. An invalid edit changes nothing.

In the first seconds after a change of the rules nothing is deleted: no child, no finalizer, no controller of a removed
watch. The files of one edit may arrive one after the other, and the project may be valid in between."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import TYPE_CHECKING

import structlog

from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.permissions import FOLLOW
from ruleop.operator.cache import WatchSpec, child_needs, observe_need, uses_has_kind
from ruleop.operator.queue import START, Request, Urgency
from ruleop.operator.wire.watch.store import StoreState
from ruleop.planning import patched_key
from ruleop.planning.model.observed import KindInfo
from ruleop.planning.model.rule_permissions import LEFT, verbs
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from ruleop.kubernetes.kinds import GroupKind, ObjectKey
    from ruleop.language.rules import Project, ProjectErrors, Rule
    from ruleop.operator.cache import Cache, Informer, Informers, PublishedSchemas, WatchedShare
    from ruleop.operator.controllers.inventory import Inventory
    from ruleop.operator.passes.reconciler import Reconciler
    from ruleop.operator.passes.status import StatusSchemas
    from ruleop.operator.queue import Cause, Workers
    from ruleop.operator.telemetry import Metrics
    from ruleop.operator.wire.client.discovery import Discovery


# -- controllers -------------------------------------------------------------------------------------------------------
#
# A controller per watched kind: its rules, its reconciler, and the workers that call the reconciler.


@dataclass(slots=True)
class Controller:
    """The controller of one watched kind. Without rules its watch was removed, and it only removes ruleop's finalizer
    from CRs."""

    kind: Kind
    rules: tuple[Rule, ...]
    reconciler: Reconciler
    workers: Workers
    earlier: tuple[Rule, ...] = ()  # of earlier revisions, which CRs have until a rollout reaches them
    needs: frozenset[WatchSpec] = frozenset()  # its workers open when these are synced

    @property
    def digests(self) -> tuple[str, ...]:
        """Of its rules: equal digests, equal plans."""
        return tuple(rule.digest for rule in self.rules)

    @property
    def in_force(self) -> tuple[Rule, ...]:
        """All rules that its CRs may have."""
        return (*self.rules, *self.earlier)

    def set_rules(self, kind: Kind, rules: tuple[Rule, ...]) -> None:
        """Running reconciles keep the rules that they started with."""
        self.kind = self.reconciler.kind = kind
        self.rules = self.reconciler.rules = rules
        self.reconciler.has_rollouts = any(rule.rollout is not None for rule in rules)

    def is_quiet(self) -> bool:
        """Whether its workers may work, and have nothing to do: no CR is queued, running or failing."""
        return self.workers.is_open and self.workers.queue.is_quiet()

    def kinds(self) -> list[Kind]:
        """The kinds that it writes: of its CRs, their children, and the objects whose fields they set."""
        patched = {each.target.kind for rule in self.in_force for each in rule.patches}
        return [self.kind, *sorted({*patched, *(need.kind for need in self.needs if need.children)})]

    def reads_status(self) -> bool:
        """Whether a rule depends on the status of its CRs."""
        return any(rule.reads_status for rule in self.in_force)

    def uses_has_kind(self) -> bool:
        """Whether a rule depends on which kinds the cluster serves."""
        return uses_has_kind(self.in_force)


class Controllers:
    """The controllers by watched kind."""

    def __init__(self, cache: Cache) -> None:
        self.by_kind: dict[GroupKind, Controller] = {}
        self.cache = cache

    def __iter__(self) -> Iterator[Controller]:
        return iter(self.by_kind.values())

    def get(self, kind: GroupKind) -> Controller | None:
        return self.by_kind.get(kind)

    def resource_of(self, part_of: str) -> ObjectKey | None:
        """The CR with this label, if it was reconciled."""
        for controller in self:
            if (request := controller.reconciler.index.owner(part_of)) is not None:
                return controller.reconciler.key(request)
        return None

    def enqueue_all(self, controller: Controller, cause: Cause) -> None:
        """Queues all its CRs, less urgently than changes."""
        for key, _ in self.cache.resources(controller.kind.versionless):
            controller.workers.add(Request(key.namespace, key.name), cause, Urgency.RESYNC)


# -- controller set ----------------------------------------------------------------------------------------------------


# -- unserved kinds ----------------------------------------------------------------------------------------------------
#
# Warns once about each kind that the rules need and the cluster does not serve, and logs when it is served.
#
# A kind that is not served is not an error: its CRD may be installed later, and nothing has to be done then. But if the
# CRD is missing by mistake, no CR is reconciled, and no condition shows the reason.


class UnservedKinds:
    def __init__(self) -> None:
        self._reported: set[Kind] = set()
        self.log = structlog.get_logger()

    def report(self, informers: Iterable[Informer], controllers: Iterable[Controller]) -> None:
        states: dict[Kind, set[StoreState]] = {}
        for informer in informers:
            states.setdefault(informer.need.kind, set()).add(informer.state)
        served = {kind.versionless for kind, found in states.items() if found != {StoreState.UNSERVED}}
        needed = {
            kind: (watched, optional)
            for kind, watched, optional, choice in _needed(controllers)
            if not (choice and kind.versionless in served)
        }
        self._reported &= needed.keys()
        for kind in sorted(needed):
            if kind not in states:
                continue
            if states[kind] == {StoreState.UNSERVED} and kind not in self._reported:
                self._reported.add(kind)
                self._warn(kind, *needed[kind])
            elif kind in self._reported and states[kind] & {StoreState.SYNCED, StoreState.FORBIDDEN}:
                # Not yet while it is being listed: the first list of a new kind may be answered with 404 again.
                self._reported.remove(kind)
                self.log.info("kind is served; resumed", kind=str(kind))

    def _warn(self, kind: Kind, watched: bool, optional: bool) -> None:
        if watched:
            self.log.warning("watched kind is not served; install its CRD", kind=str(kind))
        elif optional:
            self.log.info("kind is not served; its optional children are left out", kind=str(kind))
        else:
            self.log.warning("kind is not served; children that need it wait", kind=str(kind))


def _needed(controllers: Iterable[Controller]) -> Iterator[tuple[Kind, bool, bool, bool]]:
    """Each kind that rules name, whether it is a watched one, whether all that needs it is optional, and whether all
    that needs it can have another version of it instead."""
    watched: set[Kind] = set()
    required: set[Kind] = set()
    optional: set[Kind] = set()
    fixed: set[Kind] = set()
    for rule in (rule for controller in controllers for rule in controller.in_force):
        watched.add(rule.kind)
        observed = {each.kind for observe in rule.observe.values() for each in (observe, *observe.owners)}
        required.update(observed)
        fixed.update({rule.kind, *observed})
        for child in rule.every_child:
            (optional if child.optional else required).update(child.kinds)
            versions = Counter(kind.versionless for kind in child.kinds)
            fixed.update(kind for kind in child.kinds if versions[kind.versionless] == 1)
    for kind in watched | required | optional:
        yield kind, kind in watched, kind not in required, kind not in fixed


# -- controller set ----------------------------------------------------------------------------------------------------


CRD = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


class ControllerSet:
    def __init__(  # noqa: PLR0913 - it connects all of them
        self,
        controllers: Controllers,
        *,
        informers: Informers,
        discovery: Discovery,
        schemas: PublishedSchemas,
        inventory: Inventory,
        status_schemas: StatusSchemas,
        metrics: Metrics,
        create_controller: Callable[[Kind], Controller],
        max_concurrent: int | None,
        pause: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`max_concurrent` overrides the rules. `pause`: seconds without deletions after a change of the rules; `clock`
        gives the deadline that CRs report."""
        self.controllers, self.cache = controllers, controllers.cache
        self.informers, self.discovery, self.schemas, self.inventory = informers, discovery, schemas, inventory
        self.status_schemas = status_schemas
        self.metrics = metrics
        self.create_controller, self.max_concurrent = create_controller, max_concurrent
        self.pause, self.clock = pause, clock
        self.rejected = ""  # why the rules on disk are not in force
        self.leading = False
        self.log = structlog.get_logger()
        self.unserved_kinds = UnservedKinds()
        self.earlier_rules: Callable[[GroupKind], Iterable[Rule]] = lambda _: ()  # those that rollouts still need
        self.extra_watches: Callable[[], Iterable[WatchSpec]] = tuple
        self.settled = asyncio.Event()  # set when it becomes settled; cleared by the task that waits for it
        self._pause_end: asyncio.TimerHandle | None = None
        self._stopping: set[asyncio.Task[None]] = set()

    # -- rules ---------------------------------------------------------------------------------------------------------

    def apply(self, project: Project) -> list[Controller]:
        """Puts the rules in force; returns the controllers whose rules changed. The controller of a removed watch
        stays, without rules, until no CR carries the finalizer."""
        by_kind: dict[GroupKind, list[Rule]] = {kind: [] for kind in self.controllers.by_kind}
        for rule in project.rules:
            by_kind.setdefault(rule.kind.versionless, []).append(rule)
        touched = [
            controller
            for kind, rules in by_kind.items()
            if (controller := self._set_rules(kind, tuple(rules))) is not None
        ]
        self.update_watches()
        self.open_workers()
        return touched

    def _set_rules(self, kind: GroupKind, rules: tuple[Rule, ...]) -> Controller | None:
        controller = self.controllers.get(kind) or self._add_controller(rules[0].kind)
        before = controller.digests
        self.status_schemas.report(rules, self.cache)
        controller.set_rules(rules[0].kind if rules else controller.kind, rules)
        controller.earlier = tuple(self.earlier_rules(kind))
        controller.workers.limit = self.max_concurrent or max(
            (rule.pace.max_concurrent for rule in rules), default=controller.workers.limit
        )
        return controller if controller.digests != before else None

    def _add_controller(self, kind: Kind) -> Controller:
        controller = self.controllers.by_kind[kind.versionless] = self.create_controller(kind)
        controller.workers.start(controller.reconciler.reconcile)
        return controller

    def add_without_rules(self, kind: Kind) -> None:
        """Adds a kind whose watch was removed while no operator ran: its CRs may carry the finalizer."""
        self._add_controller(kind)
        self.update_watches()
        self.open_workers()

    def remove(self, controller: Controller) -> None:
        del self.controllers.by_kind[controller.kind.versionless]
        self.metrics.remove(controller.workers.title)
        task = asyncio.create_task(controller.workers.stop(), name=f"stop {controller.kind.versionless}")
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)
        self.update_watches()

    def reloaded(self, project: Project) -> None:
        self.rejected = ""
        self.metrics.reloads.labels("done").inc()
        self.metrics.reload_failed.set(0)
        touched = self.apply(project)
        self.log.info(
            "rules reloaded", rules=len(project.rules), touched=sorted(str(each.kind.versionless) for each in touched)
        )
        if touched:
            self._pause(touched)

    def _pause(self, touched: Collection[Controller] = ()) -> None:
        """Starts or extends the pause. CRs whose deletions are held back report its end, so they are reconciled for a
        new one."""
        if self._pause_end is not None:
            self._pause_end.cancel()
        self._pause_end = asyncio.get_running_loop().call_later(self.pause, self._resume)
        deadline = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.clock() + self.pause))
        for controller in self.controllers:
            if controller in touched or controller.reconciler.held_until:
                controller.reconciler.held_until = deadline
                self.controllers.enqueue_all(controller, "the rules changed")

    def _resume(self) -> None:
        self._pause_end = None
        for controller in self.controllers:
            if controller.reconciler.held_until:
                controller.reconciler.held_until = ""
                self.controllers.enqueue_all(controller, "pruning is resumed")
        self.settled.set()

    @property
    def is_settled(self) -> bool:
        """Whether this process leads and the pause is over."""
        return self.leading and self._pause_end is None

    def reject(self, errors: ProjectErrors) -> None:
        self.rejected = str(errors)
        self.metrics.reloads.labels("rejected").inc()
        self.metrics.reload_failed.set(1)
        if self._pause_end is not None:  # the edit is not complete
            self._pause()
        self.log.error("reload rejected; keeping the previous rules", errors=str(errors))

    # -- rollouts ------------------------------------------------------------------------------------------------------

    def enqueue(self, kind: GroupKind, keys: Iterable[ObjectKey] | None, cause: str) -> None:
        """Queues CRs of a kind; None for all."""
        if (controller := self.controllers.get(kind)) is None:
            return
        if keys is None:
            self.controllers.enqueue_all(controller, cause)
            return
        for key in keys:
            controller.workers.add(Request(key.namespace, key.name), cause, Urgency.RESYNC)

    def rules_changed(self) -> None:
        """The rules of earlier revisions that CRs may have were loaded, or are not needed any more."""
        touched = []
        for kind, controller in self.controllers.by_kind.items():
            before, controller.earlier = controller.earlier, tuple(self.earlier_rules(kind))
            if before != controller.earlier:
                touched.append(controller)
        self.update_watches()
        self.open_workers()
        for controller in touched:
            self.controllers.enqueue_all(controller, "earlier rules were loaded")

    # -- watches -------------------------------------------------------------------------------------------------------

    def update_watches(self) -> None:
        """Watches what the rules need, and assigns the informers in the cache. The needs are computed each time,
        because a kind that only the inventory names can be watched once it is served."""
        needs: dict[WatchSpec, None] = {WatchSpec(CRD): None}
        share = self.cache.share
        self.cache.required = {}
        self.cache.primary, self.cache.primaries, self.cache.children_of, self.cache.observed = {}, {}, {}, {}
        self.cache.patched_kinds = {}
        for controller in self.controllers:
            controller.needs = frozenset(self._needed_watches(controller.kind, controller.in_force))
            needs.update(dict.fromkeys(sorted(controller.needs, key=str)))
        needs.update(dict.fromkeys(self.extra_watches()))
        self.informers.watch(needs)
        informers = self.informers.informers
        for kind, controller in self.controllers.by_kind.items():
            self.cache.required[kind] = tuple(informers[need] for need in controller.needs)
            self.cache.primary[kind] = informers[share.resources(controller.kind)]
            others = dict.fromkeys(rule.kind for rule in controller.in_force if rule.kind != controller.kind)
            versions = (informers[share.resources(each)] for each in (controller.kind, *others))
            self.cache.primaries[kind] = tuple(versions)
            for need in self._child_needs(kind, controller.in_force):
                _add(self.cache.children_of, informers[need])
            for need in _observed(controller.in_force):
                _add(self.cache.observed, informers[need])
            for need in self._patched(kind, controller.in_force):  # also those that only the inventory names
                _add(self.cache.observed, informers[need])
                _add(self.cache.patched_kinds, informers[need])
        self.cache.invalidate()
        self.unserved_kinds.report(informers.values(), self.controllers)

    def _needed_watches(self, kind: Kind, rules: tuple[Rule, ...]) -> Iterator[WatchSpec]:
        yield self.cache.share.resources(kind)
        if not rules:
            return
        yield from (self.cache.share.resources(rule.kind) for rule in rules)
        yield WatchSpec(CRD)  # its schema says which status fields can be written
        yield from self._child_needs(kind.versionless, rules)
        yield from _observed(rules)
        yield from self._patched(kind.versionless, rules)

    def _patched(self, kind: GroupKind, rules: tuple[Rule, ...]) -> Iterator[WatchSpec]:
        """The objects of others with fields of these CRs: those of the rules, and those of earlier rules according to
        the inventory."""
        if not rules:
            return
        targets = {patched_key(each.target): each.target for rule in rules for each in rule.patches}
        yield from (observe_need(each.target) for rule in rules for each in rule.patches)
        for key in sorted(self.inventory.of(kind).patched - targets.keys()):
            if (served := self.discovery.get(key.group_kind)) is not None:
                fields = f"metadata.name={key.name}" if key.name else ""
                yield WatchSpec(served.info.kind, fields=fields, namespace=key.namespace)

    def _child_needs(self, kind: GroupKind, rules: tuple[Rule, ...]) -> Iterator[WatchSpec]:
        if not rules:
            return
        remembered = self.inventory.of(kind).children
        preferred = {each: found.info.kind for each in remembered if (found := self.discovery.get(each)) is not None}
        yield from map(self.cache.share.of, child_needs(rules, remembered, preferred))

    def verbs(self, kind: GroupKind) -> frozenset[str]:
        """The verbs that the operator needs on a kind."""
        rules = [rule for controller in self.controllers for rule in controller.in_force]
        served, entry = self.discovery.get(kind), self.inventory.of(kind)
        needed = verbs(rules, kind, served.info if served is not None else KindInfo(Kind(kind.group, "", kind.kind)))
        if entry.finalizer:
            needed |= {"get", "patch"}
        children = [child for rule in rules for child in rule.owned_children]
        made = {each.versionless for child in children for each in child.kinds}
        entries = [self.inventory.of(each) for each in self.controllers.by_kind]
        if kind not in made and any(kind in each.children for each in entries):
            needed |= frozenset(LEFT)
        if any(kind == key.group_kind for each in entries for key in each.patched):
            needed |= {"get", "patch"}
        return needed | frozenset(FOLLOW)

    # -- workers -------------------------------------------------------------------------------------------------------

    def start_leading(self) -> None:
        """The previous leader may have changed the inventory, and with it what has to be watched."""
        self.leading = True
        self.update_watches()
        self.open_workers()
        self._pause()

    def open_workers(self) -> None:
        """Workers are open while this process leads and each watch that their rules need is synced, unserved or
        forbidden."""
        for controller in self.controllers:
            synced = self.cache.is_synced(controller.kind.versionless)
            controller.workers.open(self.leading and synced and self.schemas.is_known(controller.kinds()))

    def state_changed(self, informer: Informer) -> None:
        """Called when a store is synced, or when its kind becomes unserved or forbidden."""
        self.cache.invalidate()
        self.unserved_kinds.report(self.informers.informers.values(), self.controllers)
        were_open = [controller for controller in self.controllers if controller.workers.is_open]
        self.open_workers()
        for controller in self.controllers:
            if informer.need in controller.needs:
                cause = (
                    f"{informer.need.kind.versionless} is {informer.state.value}" if controller in were_open else START
                )
                self.controllers.enqueue_all(controller, cause)

    def enqueue_everything(self, cause: Cause) -> None:
        for controller in self.controllers:
            self.controllers.enqueue_all(controller, cause)

    async def finish_running(self) -> None:
        """Returns when the reconciles that run now are done."""
        await asyncio.gather(*(controller.workers.finish_running() for controller in self.controllers))

    def set_share(self, share: WatchedShare, keeps: Callable[[str], bool]) -> None:
        """Watches this part of the CRs. The state of CRs whose uid it does not keep is removed."""
        if share == self.cache.share:
            return
        for controller in self.controllers:
            for key, entry in self.cache.resources(controller.kind.versionless):
                if not keeps(entry.uid):
                    controller.reconciler.remove(Request(key.namespace, key.name))
        self.cache.share = share
        self.update_watches()
        self.open_workers()

    async def stop(self) -> None:
        """Returns when the running reconciles are done."""
        if self._pause_end is not None:
            self._pause_end.cancel()
        await asyncio.gather(*(controller.workers.stop() for controller in self.controllers), *self._stopping)


def _observed(rules: tuple[Rule, ...]) -> Iterator[WatchSpec]:
    return (observe_need(observe) for rule in rules for observe in rule.read_objects)


def _add(informers: dict[GroupKind, list[Informer]], informer: Informer) -> None:
    known = informers.setdefault(informer.need.kind.versionless, [])
    if informer not in known:
        known.append(informer)
