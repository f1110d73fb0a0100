"""Children whose objects are rendered from their body, and kept as they are rendered."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ruleop.core.planning.child.apply import apply
from ruleop.core.planning.child.child_plan import ChildPlan
from ruleop.core.planning.rendering.desired import render
from ruleop.core.planning.rendering.items import recorded

if TYPE_CHECKING:
    from ruleop.core.planning.child.apply import Applied
    from ruleop.core.planning.child.child_plan import ObjectPlan
    from ruleop.core.planning.rendering.desired import Desired
    from ruleop.core.planning.rendering.items import Item


class OrdinaryPlan(ChildPlan):
    def render(self, item: Item) -> list[Desired]:
        """The objects, with the record of an item whose end will be planned by it."""
        child, scope, work = self.child, self.context.scope, self.context.work
        known = work.desired(child, item.names, scope.observed.kinds) if work is not None else None
        desired = render(child, scope, item.names, item.index) if known is None else known
        record = item.ended or (recorded(child, item) if child.ended_by else None)
        return desired if record is None else [replace(each, item=record) for each in desired]

    def decide(self, object_plan: ObjectPlan) -> Applied:
        child, desired, context = self.child, object_plan.desired, self.context
        owner = context.owner
        # The garbage collector deletes objects whose owner is in another namespace, and objects whose owner is being
        # deleted, with foreground deletion at once and in any order.
        here = not owner.namespace or desired.key.namespace == owner.namespace
        references = here and not desired.orphan and not child.final and not child.deletion.in_order
        object_plan.references_owner = references
        return apply(child, desired, owner, context.observed, context.history, context.work, reference_owner=references)
