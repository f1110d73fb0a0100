"""Where a case runs: planning without a cluster, or an operator with a cluster in memory.

Both have the same methods. The steps of a case call them, and its expectations look at the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from ruleop.authoring.ruletests.running.dev_mode import DevMode
    from ruleop.authoring.ruletests.running.plan_mode import PlanMode

World: TypeAlias = "PlanMode | DevMode"
