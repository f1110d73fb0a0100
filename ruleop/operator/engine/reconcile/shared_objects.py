"""Objects that all reconcilers of the operator share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ruleop.operator.engine.reconcile.slow_plans import SlowPlans
from ruleop.operator.engine.reconcile.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.core.kinds import GroupKind, Object, ObjectKey
    from ruleop.core.planning import Plan
    from ruleop.core.rules import Rule
    from ruleop.operator.engine.cache.cache import Cache
    from ruleop.operator.engine.clock import Clock
    from ruleop.operator.engine.reconcile.executor import Executor
    from ruleop.operator.engine.reconcile.owner_key import OwnerKey
    from ruleop.operator.engine.reconcile.pass_log import Events
    from ruleop.operator.engine.reconcile.recorder import PassFiles
    from ruleop.operator.engine.reconcile.status.status_debounce import StatusDebounce
    from ruleop.operator.engine.rollouts.rollouts import Rollouts
    from ruleop.operator.engine.telemetry.metrics import Metrics


class Inventory(Protocol):
    """The kinds of children and the conditions that current and earlier rules wrote. The manager keeps it, which this
    wing does not know."""

    async def before_writes(self, rule: Rule, plan: Plan) -> None: ...
    def conditions_of(self, kind: GroupKind) -> frozenset[str]: ...


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
    rollouts: Rollouts | None = None
    own: frozenset[ObjectKey] = frozenset()  # the operator's own objects, which no rule may write
    owns: Callable[[Object], bool] | None = None  # whether this process reconciles a CR; None: all
    sharded: bool = False
    dry_run: bool = False
    pass_files: PassFiles | None = None  # with --record
    turns: Turns = field(default_factory=Turns)
    slow_plans: SlowPlans = field(default_factory=SlowPlans)
