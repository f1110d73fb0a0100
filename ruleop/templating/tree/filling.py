"""Values into a skeleton. What comes out are new containers, in which the values stand as they are: a mapping that a CR holds may become a
field's value, but can never become a sibling's.

Most renders only need values and joined texts where the template put them: then the skeleton's compiled function builds the objects. When
something is left out or spread, it goes node by node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.templating.tree.skeleton import Items, Joined, Members, Node, Skeleton, Spread, Whole
from ruleop.templating.tree.spreading import add_member, spread_into
from ruleop.templating.values.data import MapView, plain
from ruleop.templating.values.faults import Fault, NotThereYet
from ruleop.templating.values.text import Dump, Slot
from ruleop.templating.values.undefined import OMIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ruleop.kinds import JSON
    from ruleop.templating.tree.layout import Layout

_AS_THEY_ARE = frozenset({str, bool, dict, list})  # what a template made is plain since the layout weighed it
_LEFT_OUT = object()


def fill(skeleton: Skeleton, layout: Layout, *, lenient: bool = False) -> list[JSON]:
    """The documents with the values in. `lenient` (a status): what is not there yet leaves out its own field; otherwise it raises."""
    slots = layout.slots
    filler = _Filler(slots, lenient=lenient)
    for slot in layout.lost:
        filler.value(slot)
    build = skeleton.built()
    if build is not None:
        values = _values(skeleton.whole, slots)
        texts = _texts(skeleton.joins, slots) if values is not None else None
        if texts is not None:
            return build(values, texts)  # type: ignore[arg-type]
    return [document for node in skeleton.documents if (document := filler.node(node)) is not _LEFT_OUT]


def _values(whole: Sequence[int], slots: Sequence[Slot]) -> list[Any] | None:
    """The values by number of slot; None when one of them needs a closer look."""
    values: list[Any] = [None] * len(slots)
    for number in whole:
        value = slots[number].value
        kind = type(value)
        if kind in _AS_THEY_ARE:
            values[number] = value
        elif kind is int or kind is float or kind is MapView:
            values[number] = _whole(slots[number])
        else:
            return None
    return values


def _texts(joins: Sequence[Joined], slots: Sequence[Slot]) -> list[str] | None:
    """The joined texts; None when one of them needs a closer look."""
    texts = []
    for joined in joins:
        text = ""
        for piece in joined.pieces:
            if type(piece) is str:
                text += piece
                continue
            value = slots[piece].value  # type: ignore[index]
            if type(value) is not str:
                if type(value) is not int:
                    return None
                value = slots[piece].text  # type: ignore[index]
            text += value
        texts.append(text)
    return texts


def _whole(slot: Slot) -> JSON:
    try:
        return plain(slot.value)
    except Fault as error:
        raise slot.placed(error) from None


class _Filler:
    """The slow way: one node at a time."""

    def __init__(self, slots: Sequence[Slot], *, lenient: bool) -> None:
        self.slots = slots
        self.lenient = lenient

    def node(self, node: Node) -> Any:
        if isinstance(node, Whole):
            return self.value(self.slots[node.slot])
        if isinstance(node, Joined):
            return self.joined(node)
        if isinstance(node, Members):
            return self.members(node)
        if isinstance(node, Items):
            return self.items(node)
        return _fresh(node)

    def value(self, slot: Slot) -> Any:
        if slot.value is None or slot.value is OMIT:
            return _LEFT_OUT
        try:
            return _whole(slot)
        except NotThereYet:
            if self.lenient:
                return _LEFT_OUT
            raise

    def joined(self, node: Joined) -> Any:
        if len(node.pieces) == 1 and isinstance(node.pieces[0], int):
            value = self.slots[node.pieces[0]].value
            if value is None or value is OMIT:
                return _LEFT_OUT
        try:
            return self.text(node)
        except NotThereYet:
            if self.lenient:
                return _LEFT_OUT
            raise

    def text(self, node: Joined) -> str:
        text = ""
        for piece in node.pieces:
            if isinstance(piece, str):
                text += piece
                continue
            slot = self.slots[piece]
            if isinstance(slot.value, Dump) and slot.place.alone:
                text = _indented(text, slot.value.bare())
            else:
                text += slot.text
        return text

    def members(self, node: Members) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, member in node.entries:
            if isinstance(key, Spread):
                self.spread_into(result, self.slots[key.slot])
                continue
            name = key if isinstance(key, str) else self.joined_key(key)
            value = _LEFT_OUT if name is None else self.node(member)
            if value is _LEFT_OUT or name is None:
                continue
            try:
                add_member(result, name, value, computed=not isinstance(key, str))
            except Fault as fault:
                raise self._placed(fault, key) from None
        return result

    def joined_key(self, node: Joined) -> str | None:
        try:
            return self.text(node)
        except NotThereYet:
            if self.lenient:
                return None
            raise

    def _placed(self, fault: Fault, key: str | Joined) -> Fault:
        """At the first slot of a key that has one."""
        slots = (self.slots[piece] for piece in (() if isinstance(key, str) else key.pieces) if isinstance(piece, int))
        return next((slot.placed(fault) for slot in slots), fault)

    def spread_into(self, result: dict[str, Any], slot: Slot) -> None:
        try:
            spread_into(result, self.spread(slot))
        except Fault as fault:
            raise slot.placed(fault) from None

    def spread(self, slot: Slot) -> Any:
        return _whole(Slot(slot.value.data, slot.place) if isinstance(slot.value, Dump) else slot)

    def items(self, node: Items) -> list[Any]:
        result: list[Any] = []
        for item in node.items:
            if isinstance(item, Spread):
                result.extend(value for value in self.spread(self.slots[item.slot]) if value is not None)
                continue
            value = self.node(item)
            if value is not _LEFT_OUT:
                result.append(value)
        return result


def _fresh(constant: Any) -> Any:
    """The template's own containers are made anew for each render: whoever gets the object may keep it."""
    if isinstance(constant, dict):
        return {key: _fresh(member) for key, member in constant.items()}
    return [_fresh(item) for item in constant] if isinstance(constant, list) else constant


def _indented(text: str, more: str) -> str:
    """Text of several lines takes the column at which it begins."""
    column = text[text.rfind("\n") + 1 :]
    if column.strip(" "):
        return text + more
    return text + more.rstrip("\n").replace("\n", "\n" + column)
