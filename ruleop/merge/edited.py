"""Items whose key somebody changed by hand: a Service's port 5432 that `kubectl patch` turned into 6000.

By its keys alone such an item is somebody else's, and ours is missing. But an item has more than one identity: two ports of a Service
cannot have one name, so the API server would refuse ours beside it, for ever. Where an item that we recorded is missing, and an item that
is neither desired nor recorded holds a value that only one item of the list may have, it is ours, edited. It gets its keys again and is
merged like any other item, so that what the server and others set in it (a node port) stays.

Nothing is guessed without a record: an item that was there before us is not ours because it has the same name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.merge.conflicts import alike, conflict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from ruleop.kinds import Object
    from ruleop.merge.fields import ItemKey
    from ruleop.schema.shape import Shape


def edited_items(
    others: Mapping[int, Object], missing: Mapping[ItemKey, Object], lost: Collection[ItemKey], shape: Shape
) -> Iterator[tuple[int, ItemKey, ItemKey]]:
    """Which of the items of others, by their positions, are ours: the position, the key that it should have, and the key that it is
    recorded under. The two keys differ only where the rule has changed the key since.

    `missing` are the desired items that are not live, `lost` the keys of recorded items that are not: desired still, or given up.
    """
    recorded = {key: key for key in lost if key in missing}
    given_up = (key for key in lost if key not in missing)
    was = recorded | dict(zip((key for key in missing if key not in recorded), given_up, strict=False))
    for key, position in _matches(dict(others), {key: missing[key] for key in was}, shape):
        yield position, key, was[key]


def _matches(left: dict[int, Object], missing: dict[ItemKey, Object], shape: Shape) -> Iterator[tuple[ItemKey, int]]:
    """Each missing item with the live one that has the same value in the most telling field. Removes both from what is left."""
    for unique in shape.unique:
        for key, item in list(missing.items()):
            found = [position for position, other in left.items() if alike(item, other, unique, shape)]
            if len(found) == 1:
                yield key, found[0]
                del left[found[0]], missing[key]
    if len(left) == 1 and missing:  # of several without a value, none is more likely to be ours than another
        (position, other), (key, item) = next(iter(left.items())), next(iter(missing.items()))
        if conflict(item, other, shape) is not None:
            yield key, position


def with_keys_of(item: Object, desired: Object, shape: Shape) -> Object:
    """The item under the key of the desired one. A key that the desired item leaves to its default gets the default."""
    keys = {name: desired.get(name) if desired.get(name) is not None else shape.key_defaults.get(name) for name in shape.keys}
    return {**item, **{name: value for name, value in keys.items() if value is not None}}
