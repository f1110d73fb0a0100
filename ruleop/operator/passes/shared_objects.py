"""Objects that all reconcilers of the operator share."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from ruleop.operator.passes.large_plans import LargePlans
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.kubernetes.kinds import GroupKind, Object, ObjectKey
    from ruleop.language.rules import Rule
    from ruleop.operator.cache import Cache
    from ruleop.operator.clock import Clock
    from ruleop.operator.passes.executor import Executor
    from ruleop.operator.passes.other_operators import OtherOperators
    from ruleop.operator.passes.owner_key import OwnerKey
    from ruleop.operator.passes.pass_log import Events
    from ruleop.operator.passes.recorder import PassFiles
    from ruleop.operator.passes.status_debounce import StatusDebounce
    from ruleop.operator.rollouts import Rollouts
    from ruleop.operator.telemetry import Metrics
    from ruleop.planning import Plan


class Inventoried(Protocol):
    """The conditions and fields that current and earlier rules of a kind wrote."""

    @property
    def conditions(self) -> frozenset[str]: ...
    @property
    def patched(self) -> frozenset[ObjectKey]: ...


class InventoryReader(Protocol):
    """The record of what current and earlier rules wrote. The manager keeps it, which this wing does not know."""

    async def before_writes(self, rule: Rule, plan: Plan) -> None: ...
    def of(self, watched: GroupKind) -> Inventoried: ...


@dataclass(frozen=True, slots=True)
class PassEnvironment:
    """The parts that all reconcilers share."""

    cache: Cache
    executor: Executor
    inventory: InventoryReader
    owner_key: OwnerKey
    events: Events
    metrics: Metrics
    debounce: StatusDebounce
    clock: Clock
    finalizer: str
    other_operators: OtherOperators
    rollouts: Rollouts | None = None
    own: frozenset[ObjectKey] = frozenset()  # the operator's own objects, which no rule may write
    owns: Callable[[Object], bool] | None = None  # whether this process reconciles a CR; None: all
    resource_of: Callable[[str], ObjectKey | None] = lambda _: None  # a CR that was reconciled, by its label
    sharded: bool = False
    dry_run: bool = False
    pass_files: PassFiles | None = None  # with --record
    large_plans: LargePlans = field(default_factory=LargePlans)
