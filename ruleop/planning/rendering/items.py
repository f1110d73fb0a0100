"""The items of a child with `forEach` or `objects`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from ruleop.errors import RenderError, Site
from ruleop.kubernetes.merge import UnwritableError, as_json
from ruleop.language.rules import Given
from ruleop.language.templates import Fault, loop_items, plain, plain_and_weight
from ruleop.language.templates.values.cost import Exhausted
from ruleop.messages import shortened
from ruleop.planning.model.marks import MAX_ITEM, ItemRecord
from ruleop.planning.rendering.unplanned import ChildFails, child_error

if TYPE_CHECKING:
    from ruleop.language.rules import Child, Loop
    from ruleop.planning.rendering.scope import ResourceScope

T = TypeVar("T")

MAX_OBJECTS = 5000  # of one custom resource
_KEYS: Final = ("id", "name", "key")
_NAME: Final = re.compile(r"[^\s/\[\],]{1,63}")


class LoopItem(NamedTuple):
    """An item of `forEach`, or a child without items: its place among all, its scope, and its position or key in each
    loop. One that has ended has the record of what it was instead."""

    place: int
    names: Mapping[str, Any]
    address: tuple[int | str, ...] = ()
    ended: ItemRecord | None = None

    def title(self, child: Child) -> str:
        if self.ended is not None:
            return f"the end of the item of {self.ended.ends}"
        if len(self.address) == 1:
            return f"item {self.place} of {_loops_of(child)}"
        loops = zip(child.for_each, self.address, strict=True)
        return f"item {', '.join(f'{loop.name}[{shortened(str(at))}]' for loop, at in loops)} of forEach"


def items_of(child: Child, scope: ResourceScope) -> Iterator[LoopItem]:
    """The items of `forEach`: all combinations, if it has several loops. Raises ChildWaits and ChildFails."""
    site = child.for_each[0].over.site
    try:
        found = _up_to_limit(child, _combinations(child, child.for_each, scope.names))
    except RenderError as error:
        raise child_error(error) from None
    except Exhausted as limit:
        raise ChildFails(limit.reason, site, limit=True) from None
    for index, (address, names) in enumerate(found):
        yield LoopItem(index, scope.with_items(names, index), address)


def recorded(child: Child, item: LoopItem) -> ItemRecord:
    """The record of an item for its end. Raises ChildFails if it is too large."""
    site = child.for_each[0].over.site
    try:
        items = {loop.name: plain_and_weight(item.names[loop.name])[0] for loop in child.for_each}
        size = len(as_json(items))
    except UnwritableError as error:
        raise ChildFails(f"the item {error}", site) from None
    if size > MAX_ITEM:
        text = (
            f"the item has {size:,} bytes, and at most {MAX_ITEM:,} are recorded for {' and '.join(child.ended_by)}: "
            "loop over a list with less in each item, and look up the rest in the body"
        )
        raise ChildFails(text, site)
    return ItemRecord.of(child.id, items)


def name_of(child: Child, values: Mapping[str, Any]) -> str:
    """The name of one combination of items: a text or a number is its own, a mapping has its `id`, `name` or `key`.
    Empty if there is none. The runs of `once` are recorded by it."""
    names = [_name(values.get(loop.name)) for loop in child.for_each]
    return ",".join(names) if all(names) else ""


def _name(value: Any) -> str:
    try:
        found = plain(value)
    except Fault:
        return ""
    candidates: Iterable[Any] = [found.get(key) for key in _KEYS] if isinstance(found, dict) else [found]
    texts = (str(each) for each in candidates if isinstance(each, str | int) and not isinstance(each, bool))
    return next((text for text in texts if _NAME.fullmatch(text)), "")


def _loops_of(child: Child) -> str:
    """The key that gives the child its items."""
    return "objects" if isinstance(child.form, Given) else "forEach"


def _combinations(
    child: Child, loops: tuple[Loop, ...], names: Mapping[str, Any]
) -> Iterator[tuple[tuple[int | str, ...], dict[str, Any]]]:
    """The positions and the items of the loops for each combination. An inner loop sees the items of the outer ones."""
    loop, *inner = loops
    entries = _up_to_limit(child, _entries(child, loop.over.value(names), loop.over.site))
    for at, entry in entries:
        own = {loop.name: entry}
        if not inner:
            yield (at,), own
            continue
        for address, items in _combinations(child, tuple(inner), {**names, **own}):
            yield (at, *address), {**own, **items}


def _up_to_limit(child: Child, items: Iterator[T]) -> list[T]:
    found = list(islice(items, MAX_OBJECTS + 1))
    if len(found) > MAX_OBJECTS:
        text = f"{_loops_of(child)} has more items than the {MAX_OBJECTS:,} objects that one CR may have"
        raise ChildFails(text, child.for_each[0].over.site)
    return found


def _entries(child: Child, value: Any, site: Site) -> Iterator[tuple[int | str, Any]]:
    is_given = isinstance(child.form, Given)
    items = None if is_given and isinstance(value, Mapping) else loop_items(value)
    if items is None:
        raise ChildFails("objects needs a list" if is_given else "forEach needs a list or a mapping", site)
    return items
