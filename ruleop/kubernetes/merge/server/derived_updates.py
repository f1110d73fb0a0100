"""Updates fields that the server derived from other fields when their source changes.

A derived field (`ruleop.kubernetes.schema.derived_fields`) stays when its source changes or is removed, and may even
restore it. So when a merge changes the source, it also sets the derived field to the value that the server would derive
now, or removes it. The field is left alone if the rule sets or ignores it, or if its value is not derived from the old
source: then someone else has set it.

Only changed parts are visited, so a merge without a difference costs nothing here.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ruleop.kubernetes.merge.equality import same
from ruleop.kubernetes.merge.lists import item_keys, items_by_key
from ruleop.kubernetes.merge.server.normalise import without_nulls
from ruleop.kubernetes.schema.derived_fields import ANYTHING, DERIVED, Derived
from ruleop.kubernetes.schema.shape import UNKNOWN, Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.kubernetes.merge.ignored import Ignored

_NO_MEMBERS: Mapping[str, JSON] = MappingProxyType({})


class _Point(NamedTuple):
    """The values at one path before and after the merge, with the desired value, the shape and the ignored fields."""

    live: JSON
    merged: JSON
    desired: JSON
    shape: Shape
    ignored: Ignored | None


def with_derived(live: Object, merged: Object, desired: Object, shape: Shape, ignored: Ignored | None) -> Object:
    """`merged` with updated derived fields, where the merge changes their source."""
    result: Object = _update(_Point(live, merged, desired, shape, ignored))
    return result


def _update(point: _Point) -> JSON:
    if point.merged is point.live:
        return point.merged
    merged = _map_containers(point, _update, changed=True)
    for row in DERIVED.get(point.shape.derived, ()):
        if merged is not point.merged:
            point = point._replace(merged=merged)
        merged = _update_row(point, row, row.within, point.live, merged)
    return merged


def _update_row(point: _Point, row: Derived, within: tuple[str, ...], before: Object, after: Object) -> JSON:
    """Updates one derived field in the map at the path `within` below `point`. `before` and `after` are the object of
    the row's type."""
    if type(point.merged) is list:
        return _map_containers(point, lambda item: _update_row(item, row, within, before, after))
    if type(point.live) is not dict or type(point.merged) is not dict:
        return point.merged
    if within:
        return _map_containers(
            point, lambda member: _update_row(member, row, within[1:], before, after), only=within[0]
        )
    if _is_ignored(point.ignored, row.field):
        return point.merged
    return _with_value(point.merged, row.field, _derived_value(point, row, before, after))


def _derived_value(point: _Point, row: Derived, before: Object, after: Object) -> JSON:
    """The value that the field should have; None if it should be missing."""
    found, was = point.merged.get(row.field), point.live.get(row.field)
    if found is None:
        return row.value(point.merged, after) if row.restored and was is not None else None
    derived, now = row.value(point.live, before), row.value(point.merged, after)
    if same(derived, now) or not _is_derived(found, derived):
        return found
    desired = _as_map(point.desired).get(row.field)
    if _is_empty(desired, point.shape.fields.get(row.field) or UNKNOWN):
        return now
    # The live value is the server's learned answer to the desired one. With another source the answer may differ.
    return desired if type(desired) is not dict and same(found, was) else found


def _is_empty(desired: JSON, shape: Shape) -> bool:
    """Whether a desired value is equivalent to a missing one: an empty list or open map is, an empty struct is not."""
    return not desired and (type(desired) is not dict or shape.drops_empty)


def _with_value(holder: Object, name: str, value: JSON) -> Object:
    if same(holder.get(name), value):
        return holder
    return (
        {**holder, name: value} if value is not None else {key: member for key, member in holder.items() if key != name}
    )


def _is_derived(found: JSON, derived: JSON) -> bool:
    """Whether the server derived the live value. A map may have fewer members than derived: defaults differ between
    releases."""
    if derived is ANYTHING:
        return True
    if type(found) is dict and type(derived) is dict:
        return all(name in derived and same(value, derived[name]) for name, value in without_nulls(found).items())
    return same(found, derived)


def _map_containers(
    point: _Point, visit: Callable[[_Point], JSON], *, only: str | None = None, changed: bool = False
) -> JSON:
    """The merged map or list, with `visit` applied to each container in it that is not ignored, or only to the member
    `only`, or only to members that were `changed`."""
    live, merged, shape = point.live, point.merged, point.shape
    if type(live) is dict and type(merged) is dict and not shape.atomic:
        changes: dict[str, Any] = {}
        for name in merged if only is None else (only,):
            value = merged.get(name)
            if changed and live.get(name) is value:
                continue
            if type(value) in (dict, list) and not _is_ignored(point.ignored, name):
                inner = point.ignored.names.get(name) if point.ignored is not None else None
                desired = _as_map(point.desired).get(name)
                member = _Point(
                    live.get(name), value, desired, shape.fields.get(name) or shape.values or UNKNOWN, inner
                )
                if (after := visit(member)) is not value:
                    changes[name] = after
        return {**merged, **changes} if changes else merged
    if type(live) is list and type(merged) is list and shape.list_type == "map":
        live_items, items = items_by_key(live, shape), []
        desired = items_by_key(point.desired, shape) if type(point.desired) is list else {}
        for key, item in zip(item_keys(merged, shape), merged, strict=True):
            inner = point.ignored.item(item, shape) if point.ignored is not None else None
            if key is None or key not in live_items or (inner is not None and inner.whole):
                items.append(item)
            else:
                items.append(visit(_Point(live_items[key], item, desired.get(key), shape.items or UNKNOWN, inner)))
        return merged if all(a is b for a, b in zip(items, merged, strict=True)) else items
    return merged


def _as_map(value: JSON) -> Mapping[str, JSON]:
    return value if type(value) is dict else _NO_MEMBERS


def _is_ignored(ignored: Ignored | None, name: str) -> bool:
    inner = ignored.names.get(name) if ignored is not None else None
    return inner is not None and inner.whole
