"""Live values that differ from the desired ones only by what the server changes according to the kind's schema.

The server fills in a default for a missing field, drops an empty field, and writes a quantity in another spelling.
These are not differences. In a list or map that is replaced as a whole, anything else is one, because all of it is
desired; elsewhere the merge compares only desired fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.core.merge.equality import same
from ruleop.core.schema.quantity import quantity_equal
from ruleop.core.schema.shape import UNKNOWN, Shape

if TYPE_CHECKING:
    from ruleop.core.kinds import JSON, Object


def is_stored_as(live: JSON, desired: JSON, shape: Shape) -> bool:
    """Whether the server stores `desired` as `live` by the kind's schema alone. None means missing."""
    if same(live, desired):
        return True
    if type(live) is dict and type(desired) is dict:
        return all(_is_member_stored_as(live, desired, name, shape) for name in live.keys() | desired.keys())
    if type(live) is list and type(desired) is list:
        items = shape.items or UNKNOWN
        return len(live) == len(desired) and all(
            is_stored_as(one, other, items) for one, other in zip(live, desired, strict=True)
        )
    if live is None:
        return shape.drops_empty and not desired
    return shape.format == "quantity" and quantity_equal(live, desired)


def is_omitted_default(value: JSON, name: str, parent: Shape) -> bool:
    """Whether the value is the default of this property, which the server may leave out."""
    return name in parent.defaults and same(value, parent.defaults[name])


def _is_member_stored_as(live: Object, desired: Object, name: str, parent: Shape) -> bool:
    live_member, desired_member = live.get(name), desired.get(name)
    shape = parent.fields.get(name) or parent.values or UNKNOWN
    if desired_member is None:
        return is_stored_as(live_member, parent.defaults.get(name), shape)
    return is_stored_as(live_member, desired_member, shape) or (
        live_member is None and is_omitted_default(desired_member, name, parent)
    )
