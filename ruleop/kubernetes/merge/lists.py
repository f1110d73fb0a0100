"""Lists that are merged by keys: the identity of items, and their order.

An item is identified by *all* keys that the API declares, so 53/UDP and 53/TCP are two ports. A missing key counts as
its default on both sides: an item that is written without `protocol` matches the live item with `protocol: TCP`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, TypeVar

from ruleop.errors import RuleopError
from ruleop.kubernetes.merge.equality import canonical
from ruleop.kubernetes.merge.path import scalar_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.kubernetes.kinds import JSON
    from ruleop.kubernetes.merge.fields import ItemKey
    from ruleop.kubernetes.schema import Shape

K = TypeVar("K")


class MergeError(RuleopError):
    """A desired list that contradicts its declaration in the API. `path` is the field path, for messages. `redacted`
    is the message without values."""

    def __init__(self, path: str, message: str, *, redacted: str = "") -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message
        self.redacted = redacted or message

    def within(self, outer: str) -> MergeError:
        """The same error, with the path starting from an outer container."""
        joint = "" if not self.path or self.path.startswith("[") else "."
        return MergeError(f"{outer}{joint}{self.path}", self.message, redacted=self.redacted)


def item_key(item: JSON, shape: Shape) -> ItemKey | None:
    """The values of an item's keys; None if one is missing, which is possible in live objects."""
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
    """Live items by key. The first of several items with the same key counts; items without a key are left out."""
    found: dict[ItemKey, JSON] = {}
    for key, item in zip(item_keys(items, shape), items, strict=True):
        if key is not None:
            found.setdefault(key, item)
    return found


def desired_items(items: list[JSON], shape: Shape) -> dict[ItemKey, JSON]:
    """The desired items by their keys, in order. Raises MergeError for missing and duplicate keys."""
    found: dict[ItemKey, JSON] = {}
    for key, item in zip(item_keys(items, shape), items, strict=True):
        if key is None:
            raise MergeError(f"[{len(found)}]", _missing_key_message(item, shape))
        if key in found:
            raise MergeError(
                f"[{len(found)}]",
                f"an item with {_format_key(key, shape)} is already in this list",
                redacted="an item with the same key is already in this list",
            )
        found[key] = item
    return found


def desired_members(items: list[JSON]) -> dict[JSON, JSON]:
    """The desired members of a set by `member_key`, in order. Raises MergeError for duplicates."""
    found: dict[JSON, JSON] = {}
    for item in items:
        key = member_key(item)
        if key in found:
            raise MergeError(
                f"[{len(found)}]", "the same value is already in this list, which the API declares as a set"
            )
        found[key] = item
    return found


def member_key(item: JSON) -> JSON:
    """The key of a member of a set: a string itself, anything else as canonical JSON, so that 1, True and "1"
    differ."""
    return item if type(item) is str else canonical(item)


def item_path(key: ItemKey, shape: Shape) -> str:
    return f"[{_format_key(key, shape)}]"


def in_apply_order(live: Iterable[tuple[K | None, JSON]], desired: Mapping[K, JSON]) -> list[JSON]:
    """The desired items among those of others, in the order of server-side apply.

    `live` are the remaining items in live order, with the key None for items of others. `desired` is in the desired
    order, which is kept. Items of others keep their positions, and the live desired items take each other's positions
    in the desired order. A new item is inserted before the next desired item that is live, or at the end. If the live
    items are in the desired order already, nothing moves.
    """
    items = [(key, item) for key, item in live]
    present = {key for key, _ in items}
    waiting = deque(desired)
    live_order = deque(key for key in desired if key in present)
    order: list[JSON] = []
    for key, item in items:
        if key is None:
            order.append(item)
        elif live_order and key == live_order[0]:  # any other desired item is added when its turn comes
            live_order.popleft()
            while True:
                next_key = waiting.popleft()
                order.append(desired[next_key])
                if next_key == key:
                    break
    order.extend(desired[next_key] for next_key in waiting)
    return order


def _missing_key_message(item: JSON, shape: Shape) -> str:
    if type(item) is not dict:
        return f"items of this list must be mappings with {', '.join(shape.keys)}"
    missing = [name for name in shape.keys if item.get(name) is None and name not in shape.key_defaults]
    if missing:
        keys = ", ".join(shape.keys)
        return f"the item has no {' and no '.join(missing)}; items of this list are identified by {keys}"
    return f"the keys of an item ({', '.join(shape.keys)}) must be scalars"


def _format_key(key: ItemKey, shape: Shape) -> str:
    values = (value[0] if type(value) is tuple else scalar_text(value) for value in key)
    return ",".join(f"{name}={value}" for name, value in zip(shape.keys, values, strict=True))
