"""Fields that the server derived from others are updated with their source.

A derived field stays when its source changes or is removed, and may even restore it (`ruleop.schema.derived`). So when a merge changes
the source, it also sets the derived field to what the server would derive now, or removes it. The field stays as it is if the rule sets
it or ignores it, and if its value is not the one that the server derived from the old source: then somebody else has set it.

Only what a merge changes is visited, so a merge without a difference costs nothing here.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ruleop.merge.equality import same
from ruleop.merge.lists import item_keys, items_by_key
from ruleop.merge.normalise import without_nulls
from ruleop.schema.derived import ANYTHING, DERIVED, Derived
from ruleop.schema.shape import UNKNOWN, Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ruleop.kinds import JSON, Object
    from ruleop.merge.ignored import Ignored

_NO_MEMBERS: Mapping[str, JSON] = MappingProxyType({})


class _Place(NamedTuple):
    """One point of the object: before and after the merge, and what is known of it."""

    live: JSON
    merged: JSON
    wanted: JSON
    shape: Shape
    ignored: Ignored | None


def with_derived(live: Object, merged: Object, wanted: Object, shape: Shape, ignored: Ignored | None) -> Object:
    """`merged`, with the fields updated that depend on what the merge changes."""
    result: Object = _followed(_Place(live, merged, wanted, shape, ignored))
    return result


def _followed(place: _Place) -> JSON:
    if place.merged is place.live:
        return place.merged
    merged = _each(place, _followed)
    for row in DERIVED.get(place.shape.derived, ()):
        merged = _with_row(place._replace(merged=merged), row, row.within, place.live, merged)
    return merged


def _with_row(place: _Place, row: Derived, within: tuple[str, ...], before: Object, after: Object) -> JSON:
    """One derived field at its place, which is `within` here; `before` and `after` are the object of the row's type."""
    if type(place.merged) is list:
        return _each(place, lambda item: _with_row(item, row, within, before, after))
    if type(place.live) is not dict or type(place.merged) is not dict:
        return place.merged
    if within:
        return _each(place, lambda member: _with_row(member, row, within[1:], before, after), only=within[0])
    if _is_ignored(place.ignored, row.field):
        return place.merged
    return _with_value(place.merged, row.field, _value(place, row, before, after))


def _value(place: _Place, row: Derived, before: Object, after: Object) -> JSON:
    """The value that the field should have; None if it should be absent."""
    found, was = place.merged.get(row.field), place.live.get(row.field)
    if found is None:
        return row.value(place.merged, after) if row.restored and was is not None else None
    derived, now = row.value(place.live, before), row.value(place.merged, after)
    if same(derived, now) or not _is_made_of(found, derived):
        return found
    desired = _members(place.wanted).get(row.field)
    if _is_absent(desired, place.shape.fields.get(row.field) or UNKNOWN):
        return now
    # The live value was learned as the server's answer to the desired one. With another source the answer would be another.
    return desired if type(desired) is not dict and same(found, was) else found


def _is_absent(desired: JSON, shape: Shape) -> bool:
    """Whether a desired value amounts to none. An empty list or open map does, an empty struct does not."""
    return not desired and (type(desired) is not dict or shape.drops_empty)


def _with_value(holder: Object, name: str, value: JSON) -> Object:
    if same(holder.get(name), value):
        return holder
    return {**holder, name: value} if value is not None else {key: member for key, member in holder.items() if key != name}


def _is_made_of(found: JSON, derived: JSON) -> bool:
    """Whether a live value is what the server derived. It may have filled in fewer members of a map: defaults differ between releases."""
    if derived is ANYTHING:
        return True
    if type(found) is dict and type(derived) is dict:
        return all(name in derived and same(value, derived[name]) for name, value in without_nulls(found).items())
    return same(found, derived)


def _each(place: _Place, visit: Callable[[_Place], JSON], *, only: str | None = None) -> JSON:
    """The merged map or list after a visit to each container in it that is not ignored, or only to the one of this name."""
    live, merged, shape = place.live, place.merged, place.shape
    if type(live) is dict and type(merged) is dict and not shape.atomic:
        changes: dict[str, Any] = {}
        for name, value in merged.items():
            if (only is None or name == only) and type(value) in (dict, list) and not _is_ignored(place.ignored, name):
                inner = place.ignored.names.get(name) if place.ignored is not None else None
                desired = _members(place.wanted).get(name)
                member = _Place(live.get(name), value, desired, shape.fields.get(name) or shape.values or UNKNOWN, inner)
                if (after := visit(member)) is not value:
                    changes[name] = after
        return {**merged, **changes} if changes else merged
    if type(live) is list and type(merged) is list and shape.list_type == "map":
        standing, items = items_by_key(live, shape), []
        wanted = items_by_key(place.wanted, shape) if type(place.wanted) is list else {}
        for key, item in zip(item_keys(merged, shape), merged, strict=True):
            inner = place.ignored.item(item, shape) if place.ignored is not None else None
            if key is None or key not in standing or (inner is not None and inner.whole):
                items.append(item)
            else:
                items.append(visit(_Place(standing[key], item, wanted.get(key), shape.items or UNKNOWN, inner)))
        return merged if all(a is b for a, b in zip(items, merged, strict=True)) else items
    return merged


def _members(value: JSON) -> Mapping[str, JSON]:
    return value if type(value) is dict else _NO_MEMBERS


def _is_ignored(ignored: Ignored | None, name: str) -> bool:
    inner = ignored.names.get(name) if ignored is not None else None
    return inner is not None and inner.whole
