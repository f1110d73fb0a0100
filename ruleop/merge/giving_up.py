"""Taking back what we applied before and no longer want.

What goes, and what stays:

- A scalar, an atomic list and an atomic map go.
- An open map (labels, a ConfigMap's data, anything undeclared) loses our keys. When we created it, it goes once it is empty.
- A declared struct and an item of a list that we created go as a whole, with what the server and others have put inside. The server's
  defaults are not told apart from what others set, and a container without an image is refused: leaving the torso would make every
  further write fail.
- Structs and items that were there before us lose our fields and stay, and an item keeps its keys.
- Lists known by keys and sets lose our items. When we created the list, it goes once it is empty.
- Where the list is not the kind of list it was when we recorded it, or a map became an atomic one or the reverse, the record no longer
  tells what is ours: everything stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.merge.equality import fingerprint
from ruleop.merge.fields import Fields, KeyedFields, Leaf, MapFields
from ruleop.merge.lists import item_key
from ruleop.schema.shape import UNKNOWN, Shape

if TYPE_CHECKING:
    from ruleop.kinds import JSON
    from ruleop.merge.ignored import Ignored

GONE: Final = object()


def without_fields(live: JSON, fields: Fields, shape: Shape, ignored: Ignored | None, *, keep: tuple[str, ...] = ()) -> JSON:
    """What is left of `live` without `fields`: `live` itself if that is everything, `GONE` if nothing is left or may be left.

    `keep` names the members that identify an item; an item that stays keeps them.
    """
    if isinstance(fields, Leaf):
        return live if _turned_granular(live, fields, shape) else GONE
    if isinstance(fields, MapFields):
        if type(live) is not dict:
            return live  # somebody put something else there, and that is theirs
        if fields.created and shape.fields and not keep:
            return GONE
        return _without_members(live, fields, shape, ignored, keep)
    if type(live) is not list:
        return live
    if isinstance(fields, KeyedFields):
        if shape.list_type != "map" or shape.keys != fields.keys:
            return live
        left = [kept for item in live if (kept := _item_left(item, fields, shape, ignored)) is not GONE]
    else:
        if shape.list_type != "set":
            return live
        left = [item for item in live if fingerprint(item) not in fields.fingerprints]
    if not left and fields.created:
        return GONE
    return live if len(left) == len(live) and all(a is b for a, b in zip(left, live, strict=True)) else left


def without_item(item: JSON, fields: Fields, shape: Shape, ignored: Ignored | None) -> JSON:
    """What is left of one item of a list of this shape."""
    if isinstance(fields, Leaf) or (isinstance(fields, MapFields) and fields.created):
        return GONE
    return without_fields(item, fields, shape.items or UNKNOWN, ignored, keep=shape.keys)


def _item_left(item: JSON, fields: KeyedFields, shape: Shape, ignored: Ignored | None) -> JSON:
    key = item_key(item, shape)
    ours = fields.items.get(key) if key is not None else None
    inner = ignored.item(item, shape) if ignored else None
    if ours is None or (inner and inner.whole):
        return item
    return without_item(item, ours, shape, inner)


def _without_members(live: dict[str, JSON], fields: MapFields, shape: Shape, ignored: Ignored | None, keep: tuple[str, ...]) -> JSON:
    left = dict(live)
    for name, inner in fields.members.items():
        spared = ignored.names.get(name) if ignored else None
        if name not in live or name in keep or (spared and spared.whole):
            continue
        value = without_fields(live[name], inner, shape.fields.get(name) or shape.values or UNKNOWN, spared)
        if value is GONE:
            del left[name]
        else:
            left[name] = value
    if fields.created and not left:
        return GONE
    return live if len(left) == len(live) and all(left[name] is live[name] for name in left) else left


def _turned_granular(live: JSON, fields: Leaf, shape: Shape) -> bool:
    """Whether what was one value to us has become a container in which others may have their share."""
    if fields is Leaf.LIST:
        return type(live) is list and shape.list_type != "atomic"
    return fields is Leaf.MAP and type(live) is dict and not shape.atomic
