"""The rules that run: for each watched kind a controller, and for all of them together the watches that they need.

Rules come from the project as it was started and from each edit of it that can be loaded; an edit that cannot be leaves the last good rules
at work.

In the first seconds after rules have changed nothing is taken away: no child, no finalizer, and no watch that was removed. Files of one
edit may arrive one after the other, and what is there in between may be loadable.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import structlog

from ruleop.engine.cache.informers import WatchSpec
from ruleop.engine.cache.watch_specs import child_needs, observe_need
from ruleop.engine.manager.unserved_kinds import Unserved
from ruleop.engine.queue.triggers import START
from ruleop.kinds import Kind
from ruleop.permissions import READ
from ruleop.planning.permissions import LEFT, WATCHED, verbs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from ruleop.engine.cache.informers import Informer, Informers
    from ruleop.engine.cache.published_schemas import PublishedSchemas
    from ruleop.engine.manager.controllers import Controller, Controllers
    from ruleop.engine.manager.inventory import Inventory
    from ruleop.engine.reconcile.status_schema import StatusSchemas
    from ruleop.engine.telemetry.metrics import Metrics
    from ruleop.kinds import GroupKind
    from ruleop.kube.client.discovery import Discovery
    from ruleop.rules import Project, ProjectErrors, Rule

CRD = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


class ControllerSet:
    def __init__(  # noqa: PLR0913 - it stands between all of them
        self,
        controllers: Controllers,
        *,
        informers: Informers,
        discovery: Discovery,
        schemas: PublishedSchemas,
        inventory: Inventory,
        room: StatusSchemas,
        metrics: Metrics,
        make: Callable[[Kind], Controller],
        limit: int | None,
        pause: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`limit`: of CRs at once, whatever the rules say; `pause`: seconds after a change of the rules in which nothing is taken away,
        counted by the loop; `clock` tells people when that is over."""
        self.controllers, self.world = controllers, controllers.world
        self.informers, self.discovery, self.schemas, self.inventory = informers, discovery, schemas, inventory
        self.room = room
        self.metrics = metrics
        self.make, self.limit, self.pause, self.clock = make, limit, pause, clock
        self.refused = ""  # why the rules on disk are not the ones that run
        self.leading = False
        self.log = structlog.get_logger()
        self.unserved = Unserved()
        self.unsettled = asyncio.Event()  # the inventory may say more than there is
        self._pausing: asyncio.TimerHandle | None = None
        self._ending: set[asyncio.Task[None]] = set()

    # -- which rules run -----------------------------------------------------------------------------------------------------------------

    def adopt(self, project: Project) -> list[Controller]:
        """Makes these the rules that run, and says for which kinds they are others than before. A controller whose watch was removed stays
        without rules until it is certain that it is not needed."""
        by_kind: dict[GroupKind, list[Rule]] = {kind: [] for kind in self.controllers.by_kind}
        for rule in project.rules:
            by_kind.setdefault(rule.kind.versionless, []).append(rule)
        touched = [controller for kind, rules in by_kind.items() if (controller := self._adopt_kind(kind, tuple(rules))) is not None]
        self.watch()
        self.open()
        return touched

    def _adopt_kind(self, kind: GroupKind, rules: tuple[Rule, ...]) -> Controller | None:
        controller = self.controllers.get(kind) or self._begin(rules[0].kind)
        before = controller.digests
        self.room.look(rules, self.world)
        controller.take(rules[0].kind if rules else controller.kind, rules)
        controller.workers.limit = self.limit or max((rule.max_concurrent for rule in rules), default=controller.workers.limit)
        return controller if controller.digests != before else None

    def _begin(self, kind: Kind) -> Controller:
        controller = self.controllers.by_kind[kind.versionless] = self.make(kind)
        controller.workers.start(controller.reconciler.reconcile)
        return controller

    def leave(self, kind: Kind) -> None:
        """The watch of this kind was removed while no operator was there: its CRs may keep our finalizer."""
        self._begin(kind)
        self.watch()
        self.open()

    def end(self, controller: Controller) -> None:
        """Nothing of a removed watch is left to do."""
        del self.controllers.by_kind[controller.kind.versionless]
        self.metrics.forget(controller.workers.title)
        task = asyncio.create_task(controller.workers.stop(), name=f"end {controller.kind.versionless}")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        self.watch()

    def reloaded(self, project: Project) -> None:
        self.refused = ""
        self.metrics.reloads.labels("done").inc()
        self.metrics.reload_failed.set(0)
        touched = self.adopt(project)
        self.log.info("rules reloaded", rules=len(project.rules), touched=sorted(str(each.kind.versionless) for each in touched))
        if touched:
            self._pause(touched)

    def _pause(self, touched: Collection[Controller] = ()) -> None:
        """Begins the pause, or prolongs it. CRs whose deletions it holds back report the deadline, so they are reconciled for a new one."""
        if self._pausing is not None:
            self._pausing.cancel()
        self._pausing = asyncio.get_running_loop().call_later(self.pause, self._go_on)
        deadline = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.clock() + self.pause))
        for controller in self.controllers:
            if controller in touched or controller.reconciler.held_until:
                controller.reconciler.held_until = deadline
                self.controllers.all_again(controller, "the rules changed")

    def _go_on(self) -> None:
        self._pausing = None
        for controller in self.controllers:
            if controller.reconciler.held_until:
                controller.reconciler.held_until = ""
                self.controllers.all_again(controller, "pruning is resumed")
        self.unsettled.set()

    @property
    def is_settled(self) -> bool:
        """It leads, and the rules are not on the move."""
        return self.leading and self._pausing is None

    def refuse(self, errors: ProjectErrors) -> None:
        self.refused = str(errors)
        self.metrics.reloads.labels("refused").inc()
        self.metrics.reload_failed.set(1)
        if self._pausing is not None:  # the edit goes on
            self._pause()
        self.log.error("the changed rules are refused; the last good ones go on", mistakes=str(errors))

    # -- what is watched for them --------------------------------------------------------------------------------------------------------

    def watch(self) -> None:
        """Watches what the rules need, and tells the cache which informer is for what. Worked out each time, because a kind that only
        the inventory remembers can be watched once it is served."""
        needs: dict[WatchSpec, None] = {WatchSpec(CRD): None}
        self.world.required = {}
        self.world.primary, self.world.other_versions, self.world.children_of, self.world.observed = {}, {}, {}, {}
        for controller in self.controllers:
            controller.needs = frozenset(self._needs_of(controller.kind, controller.rules))
            needs.update(dict.fromkeys(sorted(controller.needs, key=str)))
        self.informers.want(needs)
        informers = self.informers.informers
        for kind, controller in self.controllers.by_kind.items():
            self.world.required[kind] = tuple(informers[need] for need in controller.needs)
            self.world.primary[kind] = informers[WatchSpec(controller.kind)]
            others = dict.fromkeys(rule.kind for rule in controller.rules if rule.kind != controller.kind)
            self.world.other_versions[kind] = [informers[WatchSpec(each)] for each in others]
            for need in self._child_needs(kind, controller.rules):
                _add(self.world.children_of, informers[need])
            for need in _observed(controller.rules):
                _add(self.world.observed, informers[need])
        self.world.forget()
        self.unsettled.set()
        self.unserved.look(informers.values(), self.controllers)

    def _needs_of(self, kind: Kind, rules: tuple[Rule, ...]) -> Iterator[WatchSpec]:
        yield WatchSpec(kind)
        if not rules:
            return
        yield from (WatchSpec(rule.kind) for rule in rules)
        yield WatchSpec(CRD)  # its schema says what may be written into the status
        yield from self._child_needs(kind.versionless, rules)
        yield from _observed(rules)

    def _child_needs(self, kind: GroupKind, rules: tuple[Rule, ...]) -> Iterator[WatchSpec]:
        if not rules:
            return
        remembered = self.inventory.of(kind).children
        preferred = {each: found.info.kind for each in remembered if (found := self.discovery.get(each)) is not None}
        yield from child_needs(rules, remembered, preferred)

    def verbs(self, kind: GroupKind) -> frozenset[str]:
        """What the operator has to be permitted on objects of a kind."""
        wanted = verbs((rule for controller in self.controllers for rule in controller.rules), kind)
        left = any(kind in self.inventory.of(each).children for each in self.controllers.by_kind)
        return wanted | frozenset(LEFT if left else WATCHED if kind in self.controllers.by_kind else READ)

    # -- who may work --------------------------------------------------------------------------------------------------------------------

    def lead(self) -> None:
        """The inventory may be another than the one that the watches were made for: who led before has written it."""
        self.leading = True
        self.watch()
        self.open()
        self._pause()

    def open(self) -> None:
        """A controller works while all that its rules need is known, or known not to be had."""
        for controller in self.controllers:
            synced = self.world.is_synced(controller.kind.versionless)
            controller.workers.open(self.leading and synced and self.schemas.known_of(controller.kinds()))

    def stirred(self, informer: Informer) -> None:
        """A store is synced, or its kind is gone or forbidden: what needs it may go on, or has to wait."""
        self.world.forget()
        self.unsettled.set()
        self.unserved.look(self.informers.informers.values(), self.controllers)
        at_work = [controller for controller in self.controllers if controller.workers.is_open]
        self.open()
        for controller in self.controllers:
            if informer.need in controller.needs:
                cause = f"{informer.need.kind.versionless} is {informer.state.value}" if controller in at_work else START
                self.controllers.all_again(controller, cause)

    async def stop(self) -> None:
        """Ends when no CR is being worked on any more."""
        if self._pausing is not None:
            self._pausing.cancel()
        await asyncio.gather(*(controller.workers.stop() for controller in self.controllers), *self._ending)


def _observed(rules: tuple[Rule, ...]) -> Iterator[WatchSpec]:
    return (observe_need(observe) for rule in rules for observe in rule.observe.values())


def _add(informers: dict[GroupKind, list[Informer]], informer: Informer) -> None:
    known = informers.setdefault(informer.need.kind.versionless, [])
    if informer not in known:
        known.append(informer)
