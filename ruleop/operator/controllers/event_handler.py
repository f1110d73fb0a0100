"""Queues the CRs that a change in a store concerns. A change decides which CRs are reconciled, never what their
reconcile does."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ruleop.operator.controllers.controller_set import CRD
from ruleop.operator.queue import START, Request, Urgency
from ruleop.operator.wire.watch.store import EntryOrigin, StoreChange

if TYPE_CHECKING:
    from ruleop.operator.cache import Cache, Informer, OwnWrites
    from ruleop.operator.controllers.controller_set import Controllers
    from ruleop.operator.controllers.discovery_sync import DiscoverySync
    from ruleop.operator.queue import Cause
    from ruleop.operator.rollouts import RolloutDriver


class EventHandler:
    def __init__(
        self,
        cache: Cache,
        controllers: Controllers,
        own_writes: OwnWrites,
        discovery_sync: DiscoverySync,
        *,
        rollouts: RolloutDriver | None = None,
        status_changes: bool = False,
    ) -> None:
        """`status_changes`: whether a change of a CR's status queues it. In a dry run others write the status;
        otherwise ruleop does."""
        self.cache = cache
        self.own_writes = own_writes
        self.rollouts = rollouts
        self.controllers = controllers
        self.discovery_sync = discovery_sync
        self.status_changes = status_changes

    def changed(self, informer: Informer, change: StoreChange) -> None:
        if informer.need.kind == CRD:
            self.discovery_sync.definition_changed(informer, change)
            return
        kind = change.key.group_kind
        urgency = Urgency.RESYNC if change.origin is EntryOrigin.LIST else Urgency.CHANGE
        cause = START if change.origin is EntryOrigin.LIST and change.old is None else change.key
        controller = self.controllers.get(kind)
        if self.rollouts is not None:
            if informer.need == self.rollouts.need:
                obj = self.cache.parse(informer, change.key, change.new) if change.new is not None else None
                self.rollouts.record_changed(obj)
            elif controller is not None and controller.reconciler.has_rollouts:
                self.rollouts.wake()
        if (
            controller is not None
            and informer in self.cache.primaries.get(kind, ())
            and (
                change.outside_status
                or self.status_changes
                or (
                    change.origin is not EntryOrigin.WRITE and controller.reads_status()
                )  # a pass knows of its own writes
            )
        ):
            controller.workers.add(Request(change.key.namespace, change.key.name), cause, urgency)
        observed, children = self.cache.observed.get(kind, ()), self.cache.children_of.get(kind, ())
        if informer not in observed and informer not in children:
            return
        # A kind that is both a child and observed is in two stores, and one of them is behind: a CR reconciled when the
        # first changed may have read the old object from the second. So a change in either queues owner and observers.
        if change.origin is not EntryOrigin.WRITE:
            enqueue = partial(self._enqueue_owners, change, cause, urgency)
            if not self.own_writes.hold(change.key, change.new.version if change.new is not None else 0, enqueue):
                enqueue()
        if observed:
            self._enqueue_observers(informer, change, cause, urgency)

    def _enqueue_owners(self, change: StoreChange, cause: Cause, urgency: Urgency) -> None:
        owners = {entry.part_of for entry in (change.old, change.new) if entry is not None and entry.part_of}
        for part_of in sorted(owners):
            for controller in self.controllers:
                request = controller.reconciler.index.owner(part_of)
                if request is not None:
                    controller.workers.add(request, cause, urgency)

    def _enqueue_observers(self, informer: Informer, change: StoreChange, cause: Cause, urgency: Urgency) -> None:
        for entry in (change.old, change.new):
            obj = self.cache.parse(informer, change.key, entry) if entry is not None else None
            if obj is None:
                continue
            for controller in self.controllers:
                for request in controller.reconciler.index.observers_of(obj):
                    controller.workers.add(request, cause, urgency)
