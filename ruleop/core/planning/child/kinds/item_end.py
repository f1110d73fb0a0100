"""Children of `finalize` with `forEachOf`: an object is made for each item that ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.core.planning.child.endings import ended_items
from ruleop.core.planning.child.kinds.ordinary import OrdinaryPlan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.core.planning.rendering.desired import Desired
    from ruleop.core.planning.rendering.items import Item
    from ruleop.core.rules import ItemEnd


class ItemEndPlan(OrdinaryPlan):
    form: ItemEnd

    def items(self) -> Iterable[Item]:
        return ended_items(self.context.ending, self.form.of, self.context.scope.names)

    def desired(self, item: Item) -> list[Desired] | None:
        found = super().desired(item)
        if item.ended is not None and item.ended.ends is not None:
            self.context.ending[item.ended.ends].decided.add(self.child.id)
        return found
