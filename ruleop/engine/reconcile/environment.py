"""What all reconcilers of the operator share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ruleop.engine.reconcile.turns import Turns
from ruleop.planning import Kinds, Objects

if TYPE_CHECKING:
    from ruleop.engine.clock import Clock
    from ruleop.engine.reconcile.events import Events
    from ruleop.engine.reconcile.executor import Executor
    from ruleop.engine.reconcile.recorder import PassFiles
    from ruleop.engine.reconcile.status_debounce import StatusDebounce
    from ruleop.engine.telemetry.metrics import Metrics
    from ruleop.kinds import GroupKind, Kind, Object, ObjectKey
    from ruleop.planning import Plan
    from ruleop.planning.model.proofs import Proofs
    from ruleop.rules import Rule


class Cache(Objects, Kinds, Protocol):
    """The stores, and live reads of metadata."""

    def resource(self, key: ObjectKey, version: str = "") -> Object | None: ...
    def seen_from(self, namespace: str) -> Kinds: ...
    def is_synced(self, kind: GroupKind) -> bool:
        """Whether each store that the rules of a watched kind need is synced, unserved or forbidden."""
        ...

    def is_at_least(self, key: ObjectKey, version: str) -> bool: ...
    def has_seen(self, key: ObjectKey, version: str) -> bool: ...
    async def read_metadata(self, kind: Kind, key: ObjectKey) -> Object | None: ...


class Inventory(Protocol):
    """The kinds of children and the conditions that current and earlier rules wrote."""

    async def before_writes(self, rule: Rule, plan: Plan) -> None: ...
    def conditions_of(self, kind: GroupKind) -> frozenset[str]: ...


class OwnerKey(Protocol):
    """The key of the proofs in owner annotations."""

    @property
    def proofs(self) -> Proofs | None: ...
    async def ensure(self, rule: Rule) -> None:
        """Returns when the key is known, if the rule needs it."""
        ...


@dataclass(frozen=True, slots=True)
class Environment:
    """The parts that all reconcilers share."""

    cache: Cache
    executor: Executor
    inventory: Inventory
    owner_key: OwnerKey
    events: Events
    metrics: Metrics
    debounce: StatusDebounce
    clock: Clock
    finalizer: str
    own: frozenset[ObjectKey] = frozenset()  # the operator's own objects, which no rule may write
    dry_run: bool = False
    pass_files: PassFiles | None = None  # with --record
    turns: Turns = field(default_factory=Turns)
