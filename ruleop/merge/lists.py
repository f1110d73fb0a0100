"""Lists that are maps: what identifies an item, and where it stands.

An item is known by *all* the keys that the API declares, so 53/UDP and 53/TCP are two ports. A key that the item leaves out and the API
has a default for counts as that default, on either side: what we write without `protocol` is found again with `protocol: TCP`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, TypeVar

from ruleop.errors import RuleopError
from ruleop.merge.equality import canonical
from ruleop.merge.path import scalar_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.kinds import JSON
    from ruleop.merge.fields import ItemKey
    from ruleop.schema.shape import Shape

K = TypeVar("K")


class MergeError(RuleopError):
    """Something wanted that has no meaning as the API declares its lists. `path` says where, for a person to read."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message

    def within(self, outer: str) -> MergeError:
        """The same mistake, seen from the container around it."""
        joint = "" if not self.path or self.path.startswith("[") else "."
        return MergeError(f"{outer}{joint}{self.path}", self.message)


def item_key(item: JSON, shape: Shape) -> ItemKey | None:
    """What identifies an item of a list of this shape; None when something is missing, as it may be in what is live."""
    if type(item) is not dict:
        return None
    key = []
    for name in shape.keys:
        value = item.get(name)
        if value is None:
            value = shape.key_defaults.get(name)
        kind: type = type(value)
        if kind is str or kind is int:
            key.append(value)
        elif kind is bool or kind is float:
            key.append((canonical(value).decode(),))  # as members of a dict, True and 1.0 would be 1
        else:
            return None
    return tuple(key)


def item_keys(items: list[JSON], shape: Shape) -> list[ItemKey | None]:
    """The keys of all items, in their order."""
    if len(shape.keys) > 1:
        return [item_key(item, shape) for item in items]
    name = shape.keys[0]
    keys = []
    for item in items:
        value = item.get(name) if type(item) is dict else None
        keys.append((value,) if type(value) is str else item_key(item, shape))
    return keys


def items_by_key(items: list[JSON], shape: Shape) -> dict[ItemKey, JSON]:
    """Items that others had a hand in: of several with one key the first counts, and what has no key is left out."""
    found: dict[ItemKey, JSON] = {}
    for key, item in zip(item_keys(items, shape), items, strict=True):
        if key is not None:
            found.setdefault(key, item)
    return found


def wanted_items(items: list[JSON], shape: Shape) -> dict[ItemKey, JSON]:
    """The items we want by their keys, in our order. Refuses what could not be found again in what is live."""
    found: dict[ItemKey, JSON] = {}
    for key, item in zip(item_keys(items, shape), items, strict=True):
        if key is None:
            raise MergeError(f"[{len(found)}]", _why_no_key(item, shape))
        if key in found:
            raise MergeError(f"[{len(found)}]", f"an item with {_described(key, shape)} stands in this list already")
        found[key] = item
    return found


def wanted_members(items: list[JSON]) -> dict[JSON, JSON]:
    """The members of a set we want, in our order, by what tells them apart."""
    found: dict[JSON, JSON] = {}
    for item in items:
        key = member_key(item)
        if key in found:
            raise MergeError(f"[{len(found)}]", "the same value stands in this list already, and the API declares it a set")
        found[key] = item
    return found


def member_key(item: JSON) -> JSON:
    """A text is its own key; anything else is its canonical bytes, so that 1, True and "1" are three members."""
    return item if type(item) is str else canonical(item)


def item_path(key: ItemKey, shape: Shape) -> str:
    return f"[{_described(key, shape)}]"


def arranged(live: Iterable[tuple[K | None, JSON]], ours: Mapping[K, JSON]) -> list[JSON]:
    """Our items among those of others, in the order that server-side apply gives them.

    `live` is what stays, in live order; the key of what is not ours is None. `ours` is in our order, which is kept. Items of others stay
    where they stand; ours come up in turn at the places where ours stand; a new one goes before the next of ours that is there already,
    and at the end if there is none. Where ours already stand in our order, nothing moves.
    """
    standing = [(key, item) for key, item in live]
    present = {key for key, _ in standing}
    waiting = deque(ours)
    turn = deque(key for key in ours if key in present)
    order: list[JSON] = []
    for key, item in standing:
        if key is None:
            order.append(item)
        elif turn and key == turn[0]:  # any other of ours moves to the place where its turn comes
            turn.popleft()
            while True:
                mine = waiting.popleft()
                order.append(ours[mine])
                if mine == key:
                    break
    order.extend(ours[mine] for mine in waiting)
    return order


def _why_no_key(item: JSON, shape: Shape) -> str:
    if type(item) is not dict:
        return f"items of this list are mappings known by {', '.join(shape.keys)}"
    missing = [name for name in shape.keys if item.get(name) is None and name not in shape.key_defaults]
    if missing:
        return f"the item has no {' and no '.join(missing)}, and items of this list are told apart by {', '.join(shape.keys)}"
    return f"the keys of an item ({', '.join(shape.keys)}) must be plain values"


def _described(key: ItemKey, shape: Shape) -> str:
    values = (value[0] if type(value) is tuple else scalar_text(value) for value in key)
    return ",".join(f"{name}={value}" for name, value in zip(shape.keys, values, strict=True))
