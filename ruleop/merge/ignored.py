"""The paths of `apply.ignore`, and of `apply.own`, in the form in which a merge walks the object.

An ignored field is neither wanted nor ours: the live value stays, whatever it is, also when there is none. It is set only together with
what holds it, when the object, the list item or the map that the field lies in does not exist yet: a new container needs its image.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from ruleop.merge.lists import items_by_key, wanted_items
from ruleop.merge.path import Path, Segment, Selector, scalar_text
from ruleop.schema.shape import UNKNOWN, Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ruleop.kinds import JSON, Object


@dataclass(slots=True, eq=False)
class Ignored:
    """One place in the object. `whole`: everything here is left to others; else something further inside is."""

    whole: bool = False
    names: dict[str, Ignored] = field(default_factory=dict)
    items: dict[Selector, Ignored] = field(default_factory=dict)

    def item(self, item: JSON, shape: Shape) -> Ignored | None:
        """What is ignored in this item of a list. Several selectors may point at one item."""
        found = [inner for selector, inner in self.items.items() if _selects(selector, item, shape)]
        return _joined(found) if found else None


def ignored_at(paths: Sequence[Path]) -> Ignored | None:
    return _tree(tuple(paths)) if paths else None


@lru_cache(maxsize=1024)
def _tree(paths: tuple[Path, ...]) -> Ignored:
    """The same few paths come with every merge of a child, so the tree is built once. Nobody changes it afterwards."""
    root = Ignored()
    for path in paths:
        place = root
        for segment in path.segments:
            place = _step(place, segment)
        place.whole = True
    return root


def _step(place: Ignored, segment: Segment) -> Ignored:
    if isinstance(segment, Selector):
        return place.items.setdefault(segment, Ignored())
    return place.names.setdefault(segment, Ignored())


def _selects(selector: Selector, item: JSON, shape: Shape) -> bool:
    if type(item) is not dict:
        return False
    for name, text in selector.pairs:
        value = item.get(name)
        if value is None:
            value = shape.key_defaults.get(name)
        if value is None or scalar_text(value) != text:
            return False
    return True


def _joined(places: list[Ignored]) -> Ignored:
    if len(places) == 1:
        return places[0]
    joined = Ignored(whole=any(place.whole for place in places))
    for name in {name for place in places for name in place.names}:
        joined.names[name] = _joined([place.names[name] for place in places if name in place.names])
    for selector in {selector for place in places for selector in place.items}:
        joined.items[selector] = _joined([place.items[selector] for place in places if selector in place.items])
    return joined


def as_sent(wanted: Object, live: Object, ignore: Sequence[Path], shape: Shape) -> Object:
    """What a merge of `wanted` into `live` sends: what is ignored is left out, or is the live value in what is replaced as a whole.

    Only of this may the answer be learned from. What others had set in an ignored place is no answer to the value that we want there.
    """
    ignored = ignored_at(ignore)
    return wanted if ignored is None else _as_sent(wanted, live, ignored, shape)


def _as_sent(wanted: JSON, live: JSON, ignored: Ignored, shape: Shape) -> JSON:
    if type(live) is not type(wanted):
        return wanted
    if type(wanted) is dict and not shape.atomic:
        sent = {}
        for name, value in wanted.items():
            inner = ignored.names.get(name)
            if inner is None or not inner.whole:
                sent[name] = value if inner is None else _as_sent(value, live.get(name), inner, _member(shape, name))
        return sent
    if type(wanted) is list and shape.list_type == "map":
        theirs, items = items_by_key(live, shape), []
        for key, item in wanted_items(wanted, shape).items():
            inner = ignored.item(item, shape)
            if inner is None or not inner.whole:
                items.append(item if inner is None else _as_sent(item, theirs.get(key), inner, shape.items or UNKNOWN))
        return items
    return with_live_places(wanted, live, ignored, shape)


def with_live_places(wanted: JSON, live: JSON, ignored: Ignored, shape: Shape) -> JSON:
    """`wanted` with the ignored places as they are in `live`: for values that are replaced as a whole and still hold an ignored place."""
    if type(wanted) is dict and type(live) is dict:
        result = dict(wanted)
        for name, inner in ignored.names.items():
            if inner.whole:
                result.pop(name, None)
                if name in live:
                    result[name] = live[name]
            elif name in wanted and name in live:
                result[name] = with_live_places(wanted[name], live[name], inner, _member(shape, name))
        return result
    if type(wanted) is list and type(live) is list:
        return _items_with_live_places(wanted, live, ignored, shape)
    return wanted


def _items_with_live_places(wanted: list[JSON], live: list[JSON], ignored: Ignored, shape: Shape) -> list[JSON]:
    """An item is the live item that the same selector points at; ignored ones that only live has come at the end."""
    result = list(wanted)
    for selector, inner in ignored.items.items():
        theirs = [item for item in live if _selects(selector, item, shape)]
        if inner.whole:
            places = [at for at, item in enumerate(result) if _selects(selector, item, shape)]
            first = places[0] if places else len(result)
            kept = [item for item in result[first:] if not _selects(selector, item, shape)]
            result[first:] = [*theirs, *kept]
        elif theirs:
            items = shape.items or UNKNOWN
            result = [with_live_places(item, theirs[0], inner, items) if _selects(selector, item, shape) else item for item in result]
    return result


def _member(shape: Shape, name: str) -> Shape:
    return shape.fields.get(name) or shape.values or UNKNOWN
