"""The paths of `apply.ignore` and `apply.own` as a tree, which a merge walks along with the object.

An ignored field is neither desired nor recorded: the live value is kept, or the field stays missing. It is set only
when the object, the list item or the map around it is created: a new container needs its image.
"""

from __future__ import annotations

from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING

from ruleop.kubernetes.merge.lists import desired_items, items_by_key
from ruleop.kubernetes.merge.path import Path, PathSelector, Segment, scalar_text
from ruleop.kubernetes.schema import UNKNOWN, Shape
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ruleop.kubernetes.kinds import JSON, Object


@dataclass(slots=True, eq=False)
class Ignored:
    """One node of the tree. `whole`: the field at this path is ignored with all fields in it, or the list is owned."""

    whole: bool = False
    names: dict[str, Ignored] = field(default_factory=dict)
    items: dict[PathSelector, Ignored] = field(default_factory=dict)

    def item(self, item: JSON, shape: Shape) -> Ignored | None:
        """The node of a list item. Several selectors may match one item."""
        found = [inner for selector, inner in self.items.items() if _matches(selector, item, shape)]
        return _union(found) if found else None


def ignored_at(paths: Sequence[Path]) -> Ignored | None:
    return _build_tree(tuple(paths)) if paths else None


@lru_cache(maxsize=1024)
def _build_tree(paths: tuple[Path, ...]) -> Ignored:
    """Cached, because every merge of a child has the same few paths. The tree is never changed afterwards."""
    root = Ignored()
    for path in paths:
        node = root
        for segment in path.segments:
            node = _child(node, segment)
        node.whole = True
    return root


def _child(node: Ignored, segment: Segment) -> Ignored:
    if isinstance(segment, PathSelector):
        return node.items.setdefault(segment, Ignored())
    return node.names.setdefault(segment, Ignored())


def _matches(selector: PathSelector, item: JSON, shape: Shape) -> bool:
    if type(item) is not dict:
        return False
    for name, text in selector.pairs:
        value = item.get(name)
        if value is None:
            value = shape.key_defaults.get(name)
        if value is None or scalar_text(value) != text:
            return False
    return True


def _union(nodes: list[Ignored]) -> Ignored:
    if len(nodes) == 1:
        return nodes[0]
    joined = Ignored(whole=any(node.whole for node in nodes))
    for name in {name for node in nodes for name in node.names}:
        joined.names[name] = _union([node.names[name] for node in nodes if name in node.names])
    for selector in {selector for node in nodes for selector in node.items}:
        joined.items[selector] = _union([node.items[selector] for node in nodes if selector in node.items])
    return joined


def as_sent(desired: Object, live: Object, ignore: Sequence[Path], shape: Shape) -> Object:
    """The desired state as a merge sends it: without ignored fields, or with their live values where a value is
    replaced as a whole.

    Only answers to this may be learned: the live value of an ignored field is not the server's answer to the desired
    one.
    """
    ignored = ignored_at(ignore)
    return desired if ignored is None else _without_ignored(desired, live, ignored, shape)


def _without_ignored(desired: JSON, live: JSON, ignored: Ignored, shape: Shape) -> JSON:
    if type(live) is not type(desired):
        return desired
    if type(desired) is dict and not shape.atomic:
        sent = {}
        for name, value in desired.items():
            inner = ignored.names.get(name)
            if inner is None or not inner.whole:
                sent[name] = (
                    value if inner is None else _without_ignored(value, live.get(name), inner, _member(shape, name))
                )
        return sent
    if type(desired) is list and shape.list_type == "map":
        live_items, items = items_by_key(live, shape), []
        for key, item in desired_items(desired, shape).items():
            inner = ignored.item(item, shape)
            if inner is None or not inner.whole:
                items.append(
                    item
                    if inner is None
                    else _without_ignored(item, live_items.get(key), inner, shape.items or UNKNOWN)
                )
        return items
    return with_live_places(desired, live, ignored, shape)


def with_live_places(desired: JSON, live: JSON, ignored: Ignored, shape: Shape) -> JSON:
    """`desired` with the live values of ignored fields, for values that are replaced as a whole."""
    if type(desired) is dict and type(live) is dict:
        result = dict(desired)
        for name, inner in ignored.names.items():
            if inner.whole:
                result.pop(name, None)
                if name in live:
                    result[name] = live[name]
            elif name in desired and name in live:
                result[name] = with_live_places(desired[name], live[name], inner, _member(shape, name))
        return result
    if type(desired) is list and type(live) is list:
        return _items_with_live_places(desired, live, ignored, shape)
    return desired


def _items_with_live_places(desired: list[JSON], live: list[JSON], ignored: Ignored, shape: Shape) -> list[JSON]:
    """Items correspond if the same selector matches them. Ignored items that are only live are appended."""
    result = list(desired)
    for selector, inner in ignored.items.items():
        live_items = [item for item in live if _matches(selector, item, shape)]
        if inner.whole:
            nodes = [at for at, item in enumerate(result) if _matches(selector, item, shape)]
            first = nodes[0] if nodes else len(result)
            kept = [item for item in result[first:] if not _matches(selector, item, shape)]
            result[first:] = [*live_items, *kept]
        elif live_items:
            items = shape.items or UNKNOWN
            result = [
                with_live_places(item, live_items[0], inner, items) if _matches(selector, item, shape) else item
                for item in result
            ]
    return result


def _member(shape: Shape, name: str) -> Shape:
    return shape.fields.get(name) or shape.values or UNKNOWN
