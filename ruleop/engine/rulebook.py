"""The rules that run: for each watched kind a controller, and for all of them together the watches that they need.

Rules come from the project as it was started and from each edit of it that can be loaded; an edit that cannot be leaves the last good rules
at work.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from ruleop.engine.causes import START
from ruleop.engine.feeds import Need
from ruleop.engine.needs import child_needs, observe_need
from ruleop.kinds import Kind
from ruleop.kube.store import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ruleop.engine.controllers import Controller, Controllers
    from ruleop.engine.feeds import Feed, Feeds
    from ruleop.engine.inventory import Inventory
    from ruleop.engine.metrics import Metrics
    from ruleop.engine.room import Room
    from ruleop.engine.schemas import Schemas
    from ruleop.kinds import GroupKind
    from ruleop.kube.discovery import Discovery
    from ruleop.rules import Project, ProjectErrors, Rule

CRD = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
NO_PRUNE_AFTER_RELOAD = 30.0


class Rulebook:
    def __init__(
        self,
        controllers: Controllers,
        *,
        feeds: Feeds,
        discovery: Discovery,
        schemas: Schemas,
        inventory: Inventory,
        room: Room,
        metrics: Metrics,
        make: Callable[[tuple[Rule, ...]], Controller],
    ) -> None:
        self.controllers, self.world = controllers, controllers.world
        self.feeds, self.discovery, self.schemas, self.inventory = feeds, discovery, schemas, inventory
        self.room = room
        self.metrics = metrics
        self.make = make
        self.refused = ""  # why the rules on disk are not the ones that run
        self.leading = False
        self.log = structlog.get_logger()
        self._pruning_again: asyncio.TimerHandle | None = None
        self._ending: set[asyncio.Task[None]] = set()

    # -- which rules run -----------------------------------------------------------------------------------------------------------------

    def adopt(self, project: Project) -> None:
        """Makes these the rules that run. A controller whose rules are the same goes on as it is."""
        by_kind: dict[GroupKind, list[Rule]] = {}
        for rule in project.rules:
            by_kind.setdefault(rule.kind.versionless, []).append(rule)
        for gone in [kind for kind in self.controllers.by_kind if kind not in by_kind]:
            controller = self.controllers.by_kind.pop(gone)
            self.metrics.forget(controller.workers.title)
            task = asyncio.create_task(controller.workers.stop(), name=f"end {gone}")
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        for kind, rules in by_kind.items():
            self._adopt_kind(kind, tuple(rules))
        self.watch()
        self.open()

    def _adopt_kind(self, kind: GroupKind, rules: tuple[Rule, ...]) -> None:
        controller = self.controllers.get(kind)
        self.room.look(rules, self.world.definitions)
        if controller is not None:
            controller.rules = rules
            controller.reconciler.rules, controller.reconciler.kind = rules, rules[0].kind
            return
        controller = self.controllers.by_kind[kind] = self.make(rules)
        controller.workers.start(controller.reconciler.reconcile)

    def reloaded(self, project: Project) -> None:
        self.refused = ""
        self.metrics.reloads.labels("done").inc()
        self.metrics.reload_failed.set(0)
        touched = [kind for kind, controller in self.controllers.by_kind.items() if controller.rules != project.rules]
        self.log.info("rules reloaded", rules=len(project.rules))
        self.adopt(project)
        for kind in touched:
            if (controller := self.controllers.get(kind)) is not None:
                self.controllers.all_again(controller, "the rules changed")
                controller.reconciler.may_prune = False
        if self._pruning_again is not None:
            self._pruning_again.cancel()  # files of one edit may arrive one after the other
        self._pruning_again = asyncio.get_running_loop().call_later(NO_PRUNE_AFTER_RELOAD, self._prune_again)

    def _prune_again(self) -> None:
        for controller in self.controllers:
            if not controller.reconciler.may_prune:
                controller.reconciler.may_prune = True
                self.controllers.all_again(controller, "pruning is resumed")

    def refuse(self, errors: ProjectErrors) -> None:
        self.refused = str(errors)
        self.metrics.reloads.labels("refused").inc()
        self.metrics.reload_failed.set(1)
        self.log.error("the changed rules are refused; the last good ones go on", mistakes=str(errors))

    # -- what is watched for them --------------------------------------------------------------------------------------------------------

    def watch(self) -> None:
        """Watches what the rules need, and tells the world which feed is for what. What is needed is worked out anew: a kind that only the
        inventory remembers can be watched once it is served."""
        needs: dict[Need, None] = {Need(CRD): None}
        self.world.primary, self.world.children_of, self.world.observed = {}, {}, {}
        for kind, controller in self.controllers.by_kind.items():
            controller.needs = frozenset(self._needs_of(kind, controller.rules))
            needs.update(dict.fromkeys(sorted(controller.needs, key=str)))
        self.feeds.want(needs)
        feeds = self.feeds.feeds
        for kind, controller in self.controllers.by_kind.items():
            self.world.primary[kind] = feeds[Need(controller.kind)]
            for need in self._child_needs(kind, controller.rules):
                self.world.children_of.setdefault(need.kind.versionless, feeds[need])
            for rule in controller.rules:
                for observe in rule.observe.values():
                    watching = self.world.observed.setdefault(observe.kind.versionless, [])
                    if feeds[observe_need(observe)] not in watching:
                        watching.append(feeds[observe_need(observe)])
        self.world.forget()

    def _needs_of(self, kind: GroupKind, rules: tuple[Rule, ...]) -> Iterator[Need]:
        yield Need(rules[0].kind)
        yield Need(CRD)  # its schema says what may be written into the status
        yield from self._child_needs(kind, rules)
        for rule in rules:
            for observe in rule.observe.values():
                yield observe_need(observe)

    def _child_needs(self, kind: GroupKind, rules: tuple[Rule, ...]) -> Iterator[Need]:
        remembered = self.inventory.of(kind)
        preferred = {each: found.info.kind for each in remembered.children if (found := self.discovery.get(each)) is not None}
        return child_needs(rules, remembered, preferred)

    # -- who may work --------------------------------------------------------------------------------------------------------------------

    def lead(self) -> None:
        self.leading = True
        self.open()

    def open(self) -> None:
        """A controller works while all that its rules need is known, or known not to be had."""
        for controller in self.controllers:
            synced = all(self.feeds.feeds[need].state is not State.PENDING for need in controller.needs)
            controller.workers.open(self.leading and synced and self.schemas.known_of(controller.kinds()))

    def stirred(self, feed: Feed) -> None:
        """A store is synced, or its kind is gone or forbidden: what needs it may go on, or has to wait."""
        self.world.forget()
        at_work = [controller for controller in self.controllers if controller.workers.is_open]
        self.open()
        for controller in self.controllers:
            if feed.need in controller.needs:
                cause = f"{feed.need.kind.versionless} is {feed.state.value}" if controller in at_work else START
                self.controllers.all_again(controller, cause)

    async def stop(self) -> None:
        """Ends when no CR is being worked on any more."""
        if self._pruning_again is not None:
            self._pruning_again.cancel()
        await asyncio.gather(*(controller.workers.stop() for controller in self.controllers), *self._ending)
