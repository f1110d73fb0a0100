"""Children of `finalize` with `forEachOf`: an object is made for each item that ends.

The objects alone show how far an end has come, so a crash at any moment repeats nothing:

- only the item's object exists: the end has not begun
- both exist: it has begun. It is completed even if the item is desired again, because after half of a clean-up the
  item's object is of no use: it waits, is deleted, and is created again when the end is over
- only the object that ends the item exists: it is removed when it is ready"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ruleop.language.rules import ItemEnd
from ruleop.language.templates import view
from ruleop.planning.child.existing import Ending
from ruleop.planning.child.kinds.ordinary import OrdinaryPlan
from ruleop.planning.model.marks import SKIP_FINALIZE, annotations_of, item_on
from ruleop.planning.rendering.desired import render
from ruleop.planning.rendering.items import LoopItem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.kubernetes.kinds import Object, ObjectKey
    from ruleop.language.rules import Rule
    from ruleop.planning.child.existing import Existing
    from ruleop.planning.model.marks import ItemRecord, Owner
    from ruleop.planning.model.observed import Observed
    from ruleop.planning.rendering.desired import Desired
    from ruleop.planning.rendering.scope import ResourceScope


class ItemEndPlan(OrdinaryPlan):
    form: ItemEnd

    def items(self) -> Iterator[LoopItem]:
        """The items that have ended, each with the names of the loop as they were recorded."""
        ending = [each for each in self.context.ending.values() if each.record.child == self.form.of]
        for index, each in enumerate(ending):
            items = {name: view(name, value) for name, value in each.record.values.items()}
            yield LoopItem(index, {**self.context.scope.names, **items}, ended=each.record)

    def render(self, item: LoopItem) -> list[Desired]:
        found = render(self.child, self.context.scope, item.names, item.place)
        return [replace(each, item=item.ended) for each in found]

    def desired(self, item: LoopItem) -> list[Desired] | None:
        found = super().desired(item)
        if item.ended is not None and item.ended.ends is not None:
            self.context.ending[item.ended.ends].decided.add(self.child.id)
        return found


def skip_reason(resource: Object, observed: Observed) -> str:
    """The reason that `finalize` is skipped; empty if it is not."""
    if annotations_of(resource).get(SKIP_FINALIZE) == "true":
        return f"the annotation {SKIP_FINALIZE} skips finalizing"
    return "the namespace is being deleted; nothing can be created in it" if observed.namespace_terminating else ""


def ends_item(rule: Rule, each: Existing) -> bool:
    """Whether the object is made at the end of an item."""
    child = rule.finalize.get(each.child)
    return child is not None and isinstance(child.form, ItemEnd)


def begun(existing: Iterable[Existing], rule: Rule, owner: Owner, scope: ResourceScope) -> dict[ObjectKey, Ending]:
    """The ends that have begun, by the object of the item."""
    found: dict[ObjectKey, Ending] = {}
    if skip_reason(scope.resource, scope.observed):
        return found
    for each in existing:
        child = rule.finalize.get(each.child)
        if child is not None and isinstance(child.form, ItemEnd):
            record = item_on(each.live, each.key, owner)
            if record is not None and record.ends is not None and record.child == child.form.of:
                found.setdefault(record.ends, Ending(record)).made.append(each)
    return found


def waits(found: Mapping[ObjectKey, Ending]) -> dict[ObjectKey | ItemRecord, ObjectKey]:
    """The object that still ends an item, by the object of the item and by the item: neither is created again before
    it is gone."""
    return {at: ending.made[0].key for key, ending in found.items() for at in (key, replace(ending.record, ends=None))}
