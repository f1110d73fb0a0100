"""Fills a skeleton with values. The result has new containers with the values unchanged: a mapping of a CR may become
the value of a field, but can never add sibling fields.

Most renders only insert values and joined texts; then the skeleton's compiled function builds the objects. When
something is omitted or spread, the skeleton is filled node by node.

Members with computed keys (a slot in a key, or a mapping that is spread) may not repeat others, so a value can add a
field to a mapping but never replace one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.core.templating.tree.skeleton import Items, Joined, Members, Node, Skeleton, Spread, Whole
from ruleop.core.templating.values.cost import METER
from ruleop.core.templating.values.data import MapView, plain
from ruleop.core.templating.values.faults import Fault, NotThereYet
from ruleop.core.templating.values.text import Dump, Slot
from ruleop.core.templating.values.undefined import OMIT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ruleop.core.kinds import JSON
    from ruleop.core.templating.tree.layout import Layout


def add_member(result: dict[str, Any], name: str, value: Any, *, computed: bool) -> None:
    """Adds one member. `computed`: the key contains a slot."""
    if name in result:
        if computed:
            raise Fault("this results in a duplicate key")
        advice = "the mapping that is spread above adds it too; merge the two with `combine`"
        raise Fault(f'duplicate key "{name}": {advice}', redacted=f"duplicate key: {advice}")
    result[name] = value


def spread_into(result: dict[str, Any], members: Mapping[str, Any]) -> None:
    """Adds the members of a mapping. Members that are null are omitted, as everywhere."""
    for name, value in members.items():
        if value is None:
            continue
        if name in result:
            advice = "merge the two with `combine`"
            raise Fault(
                f'spreading this adds the duplicate key "{name}"; {advice}',
                redacted=f"spreading this adds a duplicate key; {advice}",
            )
        result[name] = value


_PLAIN_TYPES = frozenset({str, bool, dict, list})  # already converted to plain data by the layout
_OMITTED = object()
LONG_TEXT = 256
"""Characters of a joined text from which it is charged. A shorter one is charged by the number of its slots."""


def fill(skeleton: Skeleton, layout: Layout, *, lenient: bool = False) -> list[JSON]:
    """The documents. `lenient` (a status): a value that is not available yet omits its own field; otherwise it
    raises."""
    slots = layout.slots
    if layout.undefined:
        filler = _Filler(slots, lenient=lenient)
        for slot in layout.undefined:
            filler.value(slot)
    build = skeleton.compiled()
    if build is not None:
        values = _fast_values(skeleton.whole, slots)
        texts = _fast_texts(skeleton.joins, slots) if values is not None else None
        if texts is not None:
            return build(values, texts)  # type: ignore[arg-type]
    filler = _Filler(slots, lenient=lenient)
    return [document for node in skeleton.documents if (document := filler.node(node)) is not _OMITTED]


def _fast_values(whole: Sequence[int], slots: Sequence[Slot]) -> list[Any] | None:
    """The values by number of slot; None if one of them needs the slow way."""
    values: list[Any] = [None] * len(slots)
    for number in whole:
        value = slots[number].value
        kind = type(value)
        if kind in _PLAIN_TYPES:
            values[number] = value
        elif kind is int or kind is float or kind is MapView:
            values[number] = _slot_value(slots[number])
        else:
            return None
    return values


def _fast_texts(joins: Sequence[Joined], slots: Sequence[Slot]) -> list[str] | None:
    """The joined texts; None if one of them needs the slow way."""
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
        if len(text) > LONG_TEXT:
            METER.made(text)
        texts.append(text)
    return texts


def _slot_value(slot: Slot) -> JSON:
    try:
        return plain(slot.value)
    except Fault as error:
        raise slot.with_place(error) from None


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
        return _copy_constant(node)

    def value(self, slot: Slot) -> Any:
        if slot.value is None or slot.value is OMIT:
            return _OMITTED
        try:
            return _slot_value(slot)
        except NotThereYet:
            if self.lenient:
                return _OMITTED
            raise

    def joined(self, node: Joined) -> Any:
        if len(node.pieces) == 1 and isinstance(node.pieces[0], int):
            value = self.slots[node.pieces[0]].value
            if value is None or value is OMIT:
                return _OMITTED
        try:
            return self.text(node)
        except NotThereYet:
            if self.lenient:
                return _OMITTED
            raise

    def text(self, node: Joined) -> str:
        text = ""
        for piece in node.pieces:
            if isinstance(piece, str):
                text += piece
                continue
            slot = self.slots[piece]
            if isinstance(slot.value, Dump) and slot.place.alone:
                text = _append_indented(text, slot.value.bare())
            else:
                text += slot.text
        METER.made(text)
        return text

    def members(self, node: Members) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, member in node.entries:
            if isinstance(key, Spread):
                self.spread_into(result, self.slots[key.slot])
                continue
            name = key if isinstance(key, str) else self.joined_key(key)
            value = _OMITTED if name is None else self.node(member)
            if value is _OMITTED or name is None:
                continue
            try:
                add_member(result, name, value, computed=not isinstance(key, str))
            except Fault as fault:
                raise self._with_place(fault, key) from None
        return result

    def joined_key(self, node: Joined) -> str | None:
        try:
            return self.text(node)
        except NotThereYet:
            if self.lenient:
                return None
            raise

    def _with_place(self, fault: Fault, key: str | Joined) -> Fault:
        """The fault with the place of the first slot in the key."""
        slots = (self.slots[piece] for piece in (() if isinstance(key, str) else key.pieces) if isinstance(piece, int))
        return next((slot.with_place(fault) for slot in slots), fault)

    def spread_into(self, result: dict[str, Any], slot: Slot) -> None:
        try:
            spread_into(result, self.spread(slot))
        except Fault as fault:
            raise slot.with_place(fault) from None

    def spread(self, slot: Slot) -> Any:
        return _slot_value(Slot(slot.value.data, slot.place) if isinstance(slot.value, Dump) else slot)

    def items(self, node: Items) -> list[Any]:
        result: list[Any] = []
        for item in node.items:
            if isinstance(item, Spread):
                result.extend(value for value in self.spread(self.slots[item.slot]) if value is not None)
                continue
            value = self.node(item)
            if value is not _OMITTED:
                result.append(value)
        return result


def _copy_constant(constant: Any) -> Any:
    """A copy of a constant of the template: the caller owns the rendered object."""
    if isinstance(constant, dict):
        return {key: _copy_constant(member) for key, member in constant.items()}
    return [_copy_constant(item) for item in constant] if isinstance(constant, list) else constant


def _append_indented(text: str, more: str) -> str:
    """Appends text, with its lines indented to the column of the first."""
    column = text[text.rfind("\n") + 1 :]
    if column.strip(" "):
        return text + more
    return text + more.rstrip("\n").replace("\n", "\n" + column)
