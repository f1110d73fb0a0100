"""When what is live is what we want, although the server writes it in another way.

The kind's shape says what the server does by itself: it fills in a default where we left a field out, does not keep a field that is empty,
and writes the same amount in another spelling. None of that is a difference. In a list or map that is replaced as a whole anything else is
one, for nobody but us has a say in it; elsewhere the merge looks at our own fields alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.merge.equality import same
from ruleop.schema.quantity import quantity_equal
from ruleop.schema.shape import UNKNOWN, Shape

if TYPE_CHECKING:
    from ruleop.kinds import JSON, Object


def stands_for(live: JSON, wanted: JSON, shape: Shape) -> bool:
    """Whether the server makes `live` of `wanted` by the kind's schema alone. None means absent."""
    if same(live, wanted):
        return True
    if type(live) is dict and type(wanted) is dict:
        return all(_member_stands_for(live, wanted, name, shape) for name in live.keys() | wanted.keys())
    if type(live) is list and type(wanted) is list:
        items = shape.items or UNKNOWN
        return len(live) == len(wanted) and all(stands_for(one, other, items) for one, other in zip(live, wanted, strict=True))
    if live is None:
        return shape.drops_empty and not wanted
    return shape.format == "quantity" and quantity_equal(live, wanted)


def left_out(value: JSON, name: str, parent: Shape) -> bool:
    """Whether the server keeps such a value of a property by leaving it out."""
    return name in parent.defaults and same(value, parent.defaults[name])


def _member_stands_for(live: Object, wanted: Object, name: str, parent: Shape) -> bool:
    found, sought = live.get(name), wanted.get(name)
    shape = parent.fields.get(name) or parent.values or UNKNOWN
    if sought is None:
        return stands_for(found, parent.defaults.get(name), shape)
    return stands_for(found, sought, shape) or (found is None and left_out(sought, name, parent))
