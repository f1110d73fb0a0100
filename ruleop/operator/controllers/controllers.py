"""A controller per watched kind: its rules, its reconciler, and the workers that call the reconciler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ruleop.operator.cache import uses_has_kind
from ruleop.operator.queue import Request, Urgency

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.kinds import GroupKind, Kind, ObjectKey
    from ruleop.language.rules import Rule
    from ruleop.operator.cache import Cache, WatchSpec
    from ruleop.operator.passes.reconciler import Reconciler
    from ruleop.operator.queue import Cause, Workers


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
