"""The watched kinds at work: each with its rules, the reconciler that keeps them, and the workers that call it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ruleop.engine.cache.watch_specs import CHILD_LABELS, asks_for_kinds
from ruleop.engine.queue.request import Request
from ruleop.engine.queue.work_queue import Urgency

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.engine.cache.cache import Cache
    from ruleop.engine.cache.informers import WatchSpec
    from ruleop.engine.queue.triggers import Cause
    from ruleop.engine.queue.workers import Workers
    from ruleop.engine.reconcile.reconciler import Reconciler
    from ruleop.kinds import GroupKind, Kind
    from ruleop.rules import Rule


@dataclass(slots=True)
class Controller:
    """One watched kind at work. Without rules it is on its way out: its watch was removed, and no CR may keep our finalizer."""

    kind: Kind
    rules: tuple[Rule, ...]
    reconciler: Reconciler
    workers: Workers
    needs: frozenset[WatchSpec] = frozenset()  # no CR of it is reconciled before these are synced; worked out with the watches

    @property
    def digests(self) -> tuple[str, ...]:
        """By which its rules are known again."""
        return tuple(rule.digest for rule in self.rules)

    def take(self, kind: Kind, rules: tuple[Rule, ...]) -> None:
        """From now on by these rules; what runs goes on by those that it began with."""
        self.kind = self.reconciler.kind = kind
        self.rules = self.reconciler.rules = rules

    def is_quiet(self) -> bool:
        """Whether its workers may work, and have nothing to do: no CR is queued, running or failing."""
        return self.workers.is_open and self.workers.queue.is_quiet()

    def kinds(self) -> list[Kind]:
        """What it writes: CRs and children."""
        return [self.kind, *sorted(need.kind for need in self.needs if need.labels == CHILD_LABELS)]

    def asks_for_kinds(self) -> bool:
        """Whether it is of interest which kinds there are, beside those that it needs."""
        return asks_for_kinds(self.rules)


class Controllers:
    """By watched kind."""

    def __init__(self, world: Cache) -> None:
        self.by_kind: dict[GroupKind, Controller] = {}
        self.world = world

    def __iter__(self) -> Iterator[Controller]:
        return iter(self.by_kind.values())

    def get(self, kind: GroupKind) -> Controller | None:
        return self.by_kind.get(kind)

    def all_again(self, controller: Controller, cause: Cause) -> None:
        """Each of its CRs is looked at, when nothing more urgent is."""
        informer = self.world.primary.get(controller.kind.versionless)
        for key, _ in informer.entries() if informer is not None else ():
            controller.workers.add(Request(key.namespace, key.name), cause, Urgency.RESYNC)
