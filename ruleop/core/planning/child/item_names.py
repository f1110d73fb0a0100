"""The items that the objects of a `forEach` were made for, as people name them: `access[joe]`.

The name of an object may be a hash of its item. So tests and plans name it by the item.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ruleop.core.planning.model.item_records import ITEM, item_on
from ruleop.core.planning.model.marks import annotations_of
from ruleop.core.planning.rendering.items import name_of
from ruleop.core.rules import Given

if TYPE_CHECKING:
    from ruleop.core.kinds import ObjectKey
    from ruleop.core.planning.child.children import Children


def item_names(children: Children) -> dict[ObjectKey, str]:
    """By object. An object has none whose item has no name, or the same one as another item of the child."""
    found: dict[ObjectKey, str] = {}
    for child_plan in children.plans.values():
        child = child_plan.child
        if not child.for_each or isinstance(child.form, Given) or child.secrecy.reads:
            continue
        names = {each.desired.key: name_of(child, each.desired.names) for each in child_plan.objects}
        for each in children.existing if child.ended_by else ():
            if each.child == child.id and ITEM in annotations_of(each.live):
                record = item_on(each.live, each.key, children.owner)
                names.setdefault(each.key, name_of(child, record.values) if record is not None else "")
        uses = Counter(names.values())
        found |= {key: f"{child.id}[{name}]" for key, name in names.items() if name and uses[name] == 1}
    return found
