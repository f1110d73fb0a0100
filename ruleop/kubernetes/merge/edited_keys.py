"""List items whose key was changed by hand: a Service's port 5432 that `kubectl patch` changed to 6000.

By its keys alone such an item belongs to someone else, and the desired item is missing. But two ports of a Service
cannot have the same name, so the API server would reject the desired item beside the edited one on every pass. If a
recorded item is missing, and an item that is neither desired nor recorded has the same value in a unique field, that
item is the recorded one, edited. Its keys are restored and it is merged like any other item, so that fields set by the
server and others (a node port) are kept.

This needs a record: an item that existed before ruleop applied the list does not belong to ruleop because it has the
same name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.kubernetes.merge.conflicts import conflicting_field, has_same_unique_value, positions_by_value
from ruleop.kubernetes.merge.equality import canonical

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.merge.fields import ItemKey
    from ruleop.kubernetes.schema.shape import Shape


def edited_items(
    others: Mapping[int, Object], missing: Mapping[ItemKey, Object], lost: Collection[ItemKey], shape: Shape
) -> Iterator[tuple[int, ItemKey, ItemKey]]:
    """The edited items: the position of each in the live list, its desired key, and its recorded key. The two keys
    differ only if the rule has changed the key since.

    `others` are the candidates by position: live items that are neither desired nor recorded. `missing` are the desired
    items that are not live, and `lost` the keys of recorded items that are not live, whether still desired or not.
    """
    recorded = {key: key for key in lost if key in missing}
    removed = (key for key in lost if key not in missing)
    was = recorded | dict(zip((key for key in missing if key not in recorded), removed, strict=False))
    for key, position in _match_items(dict(others), {key: missing[key] for key in was}, shape):
        yield position, key, was[key]


def _match_items(
    left: dict[int, Object], missing: dict[ItemKey, Object], shape: Shape
) -> Iterator[tuple[ItemKey, int]]:
    """Pairs each missing item with the one live item that has the same value in a unique field, and removes both from
    the arguments."""
    for unique in shape.unique:
        by_value = positions_by_value(left.items(), unique)
        for key, item in list(missing.items()):
            value = item.get(unique.field)
            found = [
                position
                for position in (by_value.get(canonical(value), ()) if value else ())
                if position in left and has_same_unique_value(item, left[position], unique, shape)
            ]
            if len(found) == 1:
                yield key, found[0]
                del left[found[0]], missing[key]
    if len(left) == 1 and missing:  # with several items without a value, the match would be a guess
        (position, other), (key, item) = next(iter(left.items())), next(iter(missing.items()))
        if conflicting_field(item, other, shape) is not None:
            yield key, position


def with_keys_of(item: Object, desired: Object, shape: Shape) -> Object:
    """The item with the keys of the desired one. A key that the desired item leaves out gets its default."""
    keys = {
        name: desired.get(name) if desired.get(name) is not None else shape.key_defaults.get(name)
        for name in shape.keys
    }
    return {**item, **{name: value for name, value in keys.items() if value is not None}}
