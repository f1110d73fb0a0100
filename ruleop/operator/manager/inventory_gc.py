"""Removes obsolete entries from the inventory: once per leadership, and once after each reload.

Entries are written before objects, so obsolete ones accumulate: kinds that the rules no longer create, a finalizer that
is on no CR, conditions that are in no status, watches that were removed. Each costs a watch and does no other harm, so
the inventory is checked only after the pause at the start of leadership and after the pause of a reload. The entry of a
watched kind is decided when none of its CRs is queued, running or failing: a pass that started with the previous rules
may be about to create an object of a kind that seems unused.

Only a process that works alone does this: the others know a part of the custom resources each.

Entries may also be missing, after somebody edited or deleted the ConfigMap. So existing objects are recorded first.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from ruleop.errors import RuleopError
from ruleop.operator.controllers import NOTHING, InventoryEntry, entry_of_rules
from ruleop.operator.wire.watch.store import StoreState
from ruleop.planning import Owner

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.kubernetes.kinds import GroupKind, ObjectKey
    from ruleop.operator.controllers import Controller, ControllerSet

CHECK_INTERVAL = 1.0  # seconds between two checks whether a kind's CRs have been reconciled
RETRY_INTERVAL = 30.0  # seconds after a failed write


class InventoryCollector:
    def __init__(
        self, controller_set: ControllerSet, *, finalizer: str, is_alone: Callable[[], bool] = lambda: True
    ) -> None:
        """`is_alone`: whether no other process has CRs whose objects this one does not know."""
        self.is_alone = is_alone
        self.controller_set = controller_set
        self.controllers, self.cache = controller_set.controllers, controller_set.cache
        self.inventory, self.discovery = controller_set.inventory, controller_set.discovery
        self.finalizer = finalizer
        self.log = structlog.get_logger()

    async def run(self) -> None:
        while True:
            await self.controller_set.settled.wait()
            self.controller_set.settled.clear()
            pending = sorted({*self.inventory.entries, *self.controllers.by_kind})
            while pending and self.controller_set.is_settled:
                await asyncio.sleep(CHECK_INTERVAL if self.is_alone() else RETRY_INTERVAL)
                try:
                    pending = [kind for kind in pending if not await self.collect(kind)]
                except RuleopError as error:
                    self.log.warning("inventory not written; will retry", error=str(error), retry_in=RETRY_INTERVAL)
                    await asyncio.sleep(RETRY_INTERVAL)

    async def collect(self, kind: GroupKind) -> bool:
        """Reduces the entry of a watched kind to what its CRs may have. False if it has to be called again."""
        controller, before = self.controllers.get(kind), self.inventory.of(kind)
        if controller is None and before.finalizer and (served := self.discovery.get(kind)) is not None:
            self.controller_set.add_without_rules(served.info.kind)  # its watch was removed while no operator ran
            return False
        if not self._can_decide(controller):
            return False
        if controller is not None and controller.rules:
            await self.inventory.ensure(kind, self._unrecorded(controller))
        if not await self.inventory.shrink(kind, lambda: self._remaining(kind)) or not self._can_decide(controller):
            self.controller_set.update_watches()  # somebody else wrote the inventory: it may name other kinds
            return False
        after = self.inventory.of(kind)
        removed = sorted(map(str, before.children - after.children))
        if removed or before.finalizer > after.finalizer:
            finalizer = before.finalizer and not after.finalizer
            self.log.info("removed from the inventory", watched=str(kind), kinds=removed, finalizer=finalizer)
        if controller is not None and not controller.rules and not self._may_carry_finalizer(kind):
            self.controller_set.remove(controller)
        elif after != before:
            self.controller_set.update_watches()
        return True

    def _can_decide(self, controller: Controller | None) -> bool:
        return self.controller_set.is_settled and self.is_alone() and (controller is None or controller.is_quiet())

    def _remaining(self, kind: GroupKind) -> InventoryEntry:
        """The part of the entry that has to stay."""
        entry, controller = self.inventory.of(kind), self.controllers.get(kind)
        if not self._can_decide(controller):
            return entry
        if controller is None or not controller.rules:
            held = (controller is not None or entry.finalizer) and self._may_carry_finalizer(kind)
            return entry if held else NOTHING
        if self.cache.primary[kind].state is not StoreState.SYNCED:
            return entry
        possible = entry_of_rules(controller.in_force)
        return InventoryEntry(
            frozenset(
                each for each in entry.children if each in possible.children or self._may_exist(controller, each)
            ),
            entry.finalizer and (possible.finalizer or self._may_carry_finalizer(kind)),
            frozenset(each for each in entry.conditions if each in possible.conditions or self._is_shown(kind, each)),
            frozenset(
                each for each in entry.patched if each in possible.patched or self._may_be_patched(controller, each)
            ),
        )

    def _unrecorded(self, controller: Controller) -> InventoryEntry:
        """Existing children and finalizers that are missing from the inventory."""
        kind = controller.kind.versionless
        if self.cache.primary[kind].state is not StoreState.SYNCED:
            return NOTHING
        unknown = entry_of_rules(controller.in_force).children - self.inventory.of(kind).children
        children = frozenset(each for each in unknown if self._exists(controller, each))
        patched = entry_of_rules(controller.in_force).patched - self.inventory.of(kind).patched
        return InventoryEntry(
            children,
            self._may_carry_finalizer(kind),
            patched=frozenset(each for each in patched if self._may_be_patched(controller, each)),
        )

    def _may_exist(self, controller: Controller, child: GroupKind) -> bool:
        informer = self.cache.child_informer(child)
        if informer is None or informer.state is StoreState.UNSERVED:
            return not self._is_gone(child)
        return informer.state is not StoreState.SYNCED or self._exists(controller, child)

    def _exists(self, controller: Controller, child: GroupKind) -> bool:
        """Whether a CR of the controller's kind has a child of this kind."""
        informer, parents = self.cache.child_informer(child), self.cache.primary[controller.kind.versionless]
        found = {entry.part_of for _, entry in informer.entries()} if informer is not None else set()
        owners = (Owner(controller.kind, key.namespace, key.name, "") for key, _ in parents.entries())
        return bool(found) and any(owner.part_of in found for owner in owners)

    def _may_be_patched(self, controller: Controller, patched: ObjectKey) -> bool:
        """Whether an object has fields of a CR of the controller's kind, as far as its watches know."""
        informers = self.cache.patched_kinds.get(patched.group_kind, ())
        if not informers or all(informer.state is StoreState.UNSERVED for informer in informers):
            return not self._is_gone(patched.group_kind)
        if any(informer.state not in {StoreState.SYNCED, StoreState.UNSERVED} for informer in informers):
            return True
        stores = [store for informer in informers for store in informer.stores()]
        parents = self.cache.primary[controller.kind.versionless]
        owners = (Owner(controller.kind, key.namespace, key.name, "") for key, _ in parents.entries())
        return any(store.patches(owner.part_of) for owner in owners for store in stores)

    def _may_carry_finalizer(self, kind: GroupKind) -> bool:
        informer, needle = self.cache.primary.get(kind), f'"{self.finalizer}"'.encode()
        if informer is None or informer.state is StoreState.UNSERVED:
            return not self._is_gone(kind)
        return informer.state is not StoreState.SYNCED or any(
            needle in entry.body and self.finalizer in (entry.parsed()["metadata"].get("finalizers") or ())
            for _, entry in informer.entries()
        )

    def _is_shown(self, kind: GroupKind, condition: str) -> bool:
        needle = f'"{condition}"'.encode()
        return any(needle in (entry.status or b"") for _, entry in self.cache.primary[kind].entries())

    def _is_gone(self, kind: GroupKind) -> bool:
        """Whether the cluster certainly has no objects of the kind. It may have some if the kind's server does not
        respond, or if the kind is defined but not served yet."""
        stale = any(group == kind.group for group, _ in self.discovery.catalogue.stale)
        return self.discovery.get(kind) is None and not stale and kind not in self.cache.definitions
