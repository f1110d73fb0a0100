"""Keeps the inventory in step with what there is.

The inventory is written before it matters and so may say too much: a kind that the rules do not make any more, of which the last object
is gone; a finalizer that no CR carries; a kind whose watch was removed. What says too much is taken out here, and then is watched no
longer. It may also say too little, when somebody has edited or deleted the ConfigMap; what is there and missing in it is written again.

Nothing is decided before rules and leadership have been the same for a while, before all that is to be known is known, or while a CR of the
kind is being worked on: a pass that began by other rules may be about to make the very object that is not there.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from ruleop.engine.manager.inventory import InventoryEntry
from ruleop.errors import RuleopError
from ruleop.kube.watch.store import State
from ruleop.planning import Owner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.engine.cache.informers import Informer
    from ruleop.engine.manager.controller_set import ControllerSet
    from ruleop.engine.manager.controllers import Controller
    from ruleop.kinds import GroupKind
    from ruleop.kube.watch.store import Change
    from ruleop.rules import Rule

MOMENT = 0.5  # seconds; what ends, ends in numbers
TRY_AGAIN = 30.0  # seconds; the inventory cannot be written


class InventoryCollector:
    def __init__(self, controller_set: ControllerSet, *, finalizer: str) -> None:
        self.controller_set = controller_set
        self.controllers, self.world = controller_set.controllers, controller_set.world
        self.inventory, self.discovery = controller_set.inventory, controller_set.discovery
        self.finalizer = finalizer
        self.log = structlog.get_logger()
        self._needle = f'"{finalizer}"'.encode()
        self._waits_for: set[GroupKind] = set()  # kinds whose objects keep something in the inventory
        self._busy = False  # something could not be decided because CRs were being worked on
        self._told: set[tuple[GroupKind, GroupKind | None, str]] = set()
        self._trouble = ""

    def changed(self, informer: Informer, change: Change) -> None:
        """An object that kept something in the inventory may be gone."""
        if change.outside_status and informer.need.kind.versionless in self._waits_for:
            self.controller_set.unsettled.set()

    async def follow(self) -> None:
        while True:
            await self.controller_set.unsettled.wait()
            self.controller_set.unsettled.clear()
            await asyncio.sleep(MOMENT)
            try:
                await self.take()
            except RuleopError as error:
                if str(error) != self._trouble:
                    self._trouble = str(error)
                    self.log.warning("the inventory cannot be written; trying again", error=self._trouble)
                await asyncio.sleep(TRY_AGAIN)
                self.controller_set.unsettled.set()
            else:
                self._trouble = ""
                if self._busy:
                    self.controller_set.unsettled.set()

    async def take(self) -> None:
        """Looks at each watched kind once."""
        self._waits_for, self._busy = set(), False
        if not self.controller_set.is_settled:
            return
        for kind in sorted({*self.inventory.entries, *self.controllers.by_kind}):
            controller = self.controllers.get(kind)
            if controller is None and self.inventory.of(kind).finalizer and (served := self.discovery.get(kind)) is not None:
                self.controller_set.leave(served.info.kind)
                continue
            if controller is not None and controller.rules:
                await self.inventory.ensure(kind, self._missing(kind, controller))
            await self._shrink(kind)

    async def _shrink(self, kind: GroupKind) -> None:
        before = self.inventory.of(kind)
        if self.inventory.in_doubt or self._left(kind) != before:
            if not await self.inventory.shrink(kind, lambda: self._left(kind)):
                self._busy = True
                self.controller_set.watch()  # what somebody else has written may name other kinds
                return
            after = self.inventory.of(kind)
            gone, finalizer = sorted(map(str, before.children - after.children)), before.finalizer and not after.finalizer
            if gone or finalizer:
                self.log.info("the inventory forgets", watched=str(kind), kinds=gone, finalizer=finalizer)
        controller = self.controllers.get(kind)
        if controller is not None and not controller.rules and self._has_ended(controller):
            self.controller_set.end(controller)
        elif self.inventory.of(kind) != before:
            self.controller_set.watch()

    # -- what is to be remembered --------------------------------------------------------------------------------------------------------

    def _left(self, kind: GroupKind) -> InventoryEntry:
        """What is to be remembered of a watched kind: less than before, or the same."""
        entry, controller = self.inventory.of(kind), self.controllers.get(kind)
        if not self.controller_set.is_settled:
            return entry
        if controller is None:
            return entry if entry.finalizer and not self._is_unserved(kind, kind) else InventoryEntry()
        if not controller.rules:
            return InventoryEntry() if self._has_ended(controller) else entry
        if not controller.is_idle():
            self._busy = True
            return entry
        made = _made(controller.rules)
        told = _conditions(controller.rules)
        if not entry.children - made and not entry.conditions - told and (not entry.finalizer or may_need_finalizer(controller.rules)):
            return entry
        primary = self.world.primary[kind]
        if primary.state is not State.SYNCED:
            return entry
        children = frozenset(each for each in entry.children if each in made or self._may_have(controller, each))
        finalizer = entry.finalizer and (may_need_finalizer(controller.rules) or self._is_held(primary))
        conditions = frozenset(each for each in entry.conditions if each in told or _is_shown(primary, each))
        return InventoryEntry(children, finalizer, conditions)

    def _has_ended(self, controller: Controller) -> bool:
        """Whether no CR of a removed watch keeps our finalizer."""
        kind = controller.kind.versionless
        informer = self.world.primary[kind]
        if informer.state is State.UNSERVED:
            return self._is_unserved(kind, kind)
        if informer.state is not State.SYNCED:
            self._tell(kind, None, informer)
            return False
        if self._is_held(informer):
            return False
        if not controller.is_idle():
            self._busy = True
            return False
        return True

    def _is_held(self, informer: Informer) -> bool:
        """Whether a CR carries our finalizer."""
        for key, entry in informer.entries():
            if self._needle in entry.body and self.finalizer in (entry.parsed()["metadata"].get("finalizers") or ()):
                self._waits_for.add(key.group_kind)
                return True
        return False

    def _may_have(self, controller: Controller, child: GroupKind) -> bool:
        """Whether a CR has, or may have, children of a kind that the rules do not make any more."""
        watched, informer = controller.kind.versionless, self.world.children_feed(child)
        if informer is None or informer.state is State.UNSERVED:
            return not self._is_unserved(watched, child)
        if informer.state is not State.SYNCED:
            self._tell(watched, child, informer)
            return True
        if self._has(controller, informer):
            self._waits_for |= {watched, child}
            return True
        return False

    def _has(self, controller: Controller, informer: Informer) -> bool:
        owners: set[str] | None = None
        for _, entry in informer.entries():
            owners = owners if owners is not None else set(self._labels(controller))
            if entry.part_of in owners:
                return True
        return False

    def _labels(self, controller: Controller) -> Iterator[str]:
        """Of the children of each of its CRs."""
        for key, _ in self.world.primary[controller.kind.versionless].entries():
            yield Owner(controller.kind, key.namespace, key.name, "").part_of

    def _missing(self, kind: GroupKind, controller: Controller) -> InventoryEntry:
        """What is there, and is not remembered: somebody else has written the ConfigMap, or deleted it."""
        entry, primary = self.inventory.of(kind), self.world.primary[kind]
        if primary.state is not State.SYNCED:
            return InventoryEntry()
        informers = {each: self.world.children_feed(each) for each in _made(controller.rules) - entry.children}
        children = frozenset(each for each, informer in informers.items() if informer is not None and self._has(controller, informer))
        return InventoryEntry(children, not entry.finalizer and self._is_held(primary))

    def _is_unserved(self, watched: GroupKind, kind: GroupKind) -> bool:
        """Whether the cluster surely has no such objects. A kind whose server does not answer, or that is defined and only not served just
        now, may have some."""
        if self.discovery.get(kind) is not None:
            return False
        stale = any(group == kind.group for group, _ in self.discovery.catalogue.stale)
        if stale or kind in self.world.definitions:
            self._tell(watched, kind if kind != watched else None, None)
            return False
        return True

    def _tell(self, watched: GroupKind, child: GroupKind | None, informer: Informer | None) -> None:
        """Once: it stops nothing, and nobody else says it."""
        if informer is not None and informer.state is State.PENDING:
            return
        what = (watched, child, informer.problem if informer is not None else "it is not served just now")
        if what not in self._told:
            self._told.add(what)
            self.log.warning(
                "what the rules made once cannot be looked at", watched=str(watched), kind=str(child or watched), error=what[2]
            )


def _made(rules: tuple[Rule, ...]) -> frozenset[GroupKind]:
    """The kinds of children that the rules make."""
    return frozenset(kind.versionless for rule in rules for child in rule.every_child() for kind in child.kinds)


def _conditions(rules: tuple[Rule, ...]) -> frozenset[str]:
    return frozenset(each.type for rule in rules for each in rule.conditions)


def _is_shown(informer: Informer, condition: str) -> bool:
    """Whether a CR's status may have a condition of this type."""
    needle = f'"{condition}"'.encode()
    return any(entry.status is not None and needle in entry.status for _, entry in informer.entries())


def may_need_finalizer(rules: tuple[Rule, ...]) -> bool:
    """Whether by these rules a CR can have children that the garbage collector does not follow."""
    return any(
        rule.finalize or rule.reach == "cluster" or any(child.deletion is not None for child in rule.children.values()) for rule in rules
    )
