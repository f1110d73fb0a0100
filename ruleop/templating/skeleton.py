"""The parsed form of a template's slotted text, and how values are put into it.

The text with marks is parsed as YAML once; in the steady state the same text comes back at every render, so its skeleton is cached and a
render parses nothing. Filling builds new containers and puts the values in as they are: a mapping that a CR holds may become a field's value,
but can never become a sibling's.

A skeleton is itself compiled: a small function that builds the object from a list of values, written out as a Python display. It takes all values to be
there. When one leaves out its field, or is to be spread, the slow way is taken, node by node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ruleop.errors import RuleError, Site
from ruleop.kinds import JSON
from ruleop.templating.text import CLOSE, MARK, OPEN, SPREAD, SPREAD_MARK, Dump, Layout, Slot, Text, faulty, slot_text
from ruleop.templating.values import OMIT, Absent, Fault, MapView, NotThereYet, plain
from ruleop.templating.yaml_reader import YamlNode, read_yaml


@dataclass(frozen=True, slots=True)
class Whole:
    """A slot that is the whole value."""

    slot: int


@dataclass(frozen=True, slots=True)
class Joined:
    """Text with slots in it; always a string. `quoted` and of one slot alone, it may still leave out its field."""

    pieces: tuple[str | int, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Spread:
    """The entries or items of a slot's value, in this place."""

    slot: int


_ANY_MARK = re.compile(f"{MARK.pattern}|{SPREAD_MARK.pattern}")

MAX_BUILT = 2000  # nodes; Python's own compiler is slow on longer displays, and a template that large is no hot path

Node: TypeAlias = Any  # JSON, in which Whole, Joined stand for values, Members and Items for containers with slots in them


@dataclass(frozen=True, slots=True)
class Members:
    entries: tuple[tuple[str | Whole | Joined | Spread, Node], ...]


@dataclass(frozen=True, slots=True)
class Items:
    items: tuple[Node, ...]


@dataclass(slots=True)
class Skeleton:
    documents: tuple[Node, ...]
    used: tuple[int, ...]  # the slots that stand in the tree; the others are in YAML comments
    whole: tuple[int, ...]  # those of them that are a value by themselves
    joins: tuple[Joined, ...]
    can_build: bool  # nothing is spread, and no key is a slot
    build: Callable[[Sequence[Any], Sequence[str]], list[Any]] | None = None  # made when the skeleton is used a second time
    fills: int = 0

    def builder(self) -> Callable[[Sequence[Any], Sequence[str]], list[Any]] | None:
        if self.build is None and self.can_build:
            self.fills += 1
            if self.fills > 1:
                self.build = _compile(self.documents, self.joins)
                self.can_build = False
        return self.build


class Unreadable(Exception):
    """The slotted text is no YAML."""

    def __init__(self, mistakes: list[RuleError]) -> None:
        super().__init__(str(mistakes[0]))
        self.mistakes = mistakes


def parse(layout: Layout, name: str) -> Skeleton:
    """The skeleton of a slotted text; raises `Unreadable` with places in the template."""

    nodes, mistakes = read_yaml(layout.text, name, locate=lambda line, column: Site("", line, column))
    if mistakes:
        raise Unreadable([_in_template(mistake, layout, name) for mistake in mistakes])
    return _Composer().compose(nodes)


def _in_template(mistake: RuleError, layout: Layout, name: str) -> RuleError:
    line = mistake.site.line
    site = layout.site_of_line(line) or Site(name)
    for near in (line, line - 1):
        alone = layout.alone_on_line(near)
        if alone is not None and mistake.message.startswith("not YAML"):
            what = _name_of(alone.value)
            return RuleError(
                f"{{{{ {alone.place.expression} }}}} stands alone on its line among entries of another sort: it is {what} here; "
                "a mapping can be spread among keys, a list among items, captured text has to fit its place",
                alone.place.site,
            )
    message = MARK.sub("{{ ... }}", SPREAD_MARK.sub("{{ ... }}", mistake.message))
    return RuleError(message, site)


def _name_of(value: Any) -> str:
    if isinstance(value, Mapping) or (isinstance(value, Dump) and isinstance(value.data, Mapping)):
        return "a mapping"
    if isinstance(value, Text):
        return "captured text"
    if isinstance(value, str):
        return "text"
    if isinstance(value, (bool, int, float)):
        return "a number or boolean"
    return "a list"


class _Composer:
    def __init__(self) -> None:
        self.used: list[int] = []
        self.whole: list[int] = []
        self.joins: list[Joined] = []
        self.fast = True
        self.size = 0

    def compose(self, nodes: list[YamlNode]) -> Skeleton:
        documents = tuple(self.node(node) for node in nodes)
        return Skeleton(documents, tuple(self.used), tuple(self.whole), tuple(self.joins), can_build=self.fast and self.size < MAX_BUILT)

    def node(self, node: YamlNode) -> Node:
        value = node.value
        self.size += 1
        if isinstance(value, str):
            return self.scalar(value, plain_style=node.plain)
        if isinstance(value, list):
            items = tuple(self.item(item) for item in value if item.value is not None)  # a null leaves out its item
            return Items(items) if any(isinstance(item, (Whole, Joined, Spread, Members, Items)) for item in items) else [*items]
        if isinstance(value, dict):
            entries = tuple((self.key(key), self.entry(key, member)) for key, member in value.items() if member.value is not None)
            slotted = any(not isinstance(key, str) or isinstance(member, (Whole, Joined, Members, Items)) for key, member in entries)
            return Members(entries) if slotted else dict(entries)
        return value

    def entry(self, key: str, member: YamlNode) -> Node:
        if SPREAD in key and SPREAD_MARK.fullmatch(key):
            return None
        return self.node(member)

    def item(self, node: YamlNode) -> Node:
        if isinstance(node.value, str) and node.plain and SPREAD in node.value and (match := SPREAD_MARK.fullmatch(node.value)):
            self.fast = False
            self.used.append(int(match[1]))
            return Spread(int(match[1]))
        return self.node(node)

    def key(self, key: str) -> str | Whole | Joined | Spread:
        if OPEN not in key and SPREAD not in key:
            return key
        self.fast = False
        if match := SPREAD_MARK.fullmatch(key):
            self.used.append(int(match[1]))
            return Spread(int(match[1]))
        return self.joined(key)

    def scalar(self, text: str, *, plain_style: bool) -> Node:
        if OPEN not in text and SPREAD not in text:
            return text
        match = MARK.fullmatch(text)
        if match and plain_style:
            self.used.append(int(match[1]))
            self.whole.append(int(match[1]))
            return Whole(int(match[1]))
        return self.joined(text)

    def joined(self, text: str) -> Joined:
        pieces: list[str | int] = []
        at = 0
        for match in _ANY_MARK.finditer(text):
            if match.start() > at:
                pieces.append(text[at : match.start()])
            pieces.append(int(match[1] or match[2]))
            at = match.end()
        if at < len(text):
            pieces.append(text[at:])
        if any(isinstance(piece, str) and (OPEN in piece or SPREAD in piece or CLOSE in piece) for piece in pieces):
            raise AssertionError("a slot's mark came out of the YAML parser damaged")
        self.used.extend(piece for piece in pieces if isinstance(piece, int))
        joined = Joined(tuple(pieces), text)
        self.joins.append(joined)
        return joined


def _compile(documents: tuple[Node, ...], joins: Sequence[Joined]) -> Callable[[Sequence[Any], Sequence[str]], list[Any]]:
    """Writes the documents as a Python expression over the values `v` and the joined texts `j`. Nothing of a CR is in it: only the
    template's own text, and as `repr` writes it."""
    numbers = {id(joined): number for number, joined in enumerate(joins)}

    def write(node: Node) -> str:
        if isinstance(node, Whole):
            return f"v[{node.slot}]"
        if isinstance(node, Joined):
            return f"j[{numbers[id(node)]}]"
        if isinstance(node, Members):
            return "{" + ", ".join(f"{key!r}: {write(member)}" for key, member in node.entries) + "}"
        if isinstance(node, Items):
            return "[" + ", ".join(map(write, node.items)) + "]"
        if isinstance(node, dict):
            return "{" + ", ".join(f"{key!r}: {write(member)}" for key, member in node.items()) + "}"
        if isinstance(node, list):
            return "[" + ", ".join(map(write, node)) + "]"
        return repr(node)

    source = f"lambda v, j: [{', '.join(map(write, documents))}]"
    return eval(source, {"__builtins__": {}}, {})  # type: ignore[no-any-return]  # noqa: S307 - see the docstring


# -- filling -----------------------------------------------------------------------------------------------------------------------------

_SCALARS = frozenset({str, int, float, bool})
_LEFT_OUT = object()


def fill(skeleton: Skeleton, layout: Layout, *, lenient: bool = False) -> list[JSON]:
    """The documents with the values in. `lenient` (a status): what is not there yet leaves out its own field; otherwise it raises."""
    slots = layout.slots
    if not lenient:
        for slot in layout.lost:
            _raise_fault(slot)
    elif layout.lost:
        for slot in layout.lost:
            _raise_unless_later(slot)
    build = skeleton.builder()
    if build is not None:
        values: list[Any] = [None] * len(slots)
        for number in skeleton.whole:
            value = slots[number].value
            kind = type(value)
            if kind in _SCALARS:
                values[number] = value
            elif kind is MapView:
                values[number] = plain(value)
            elif value is None or isinstance(value, Absent):
                break
            else:
                values[number] = _whole(slots[number])
        else:
            joined = _join_all(skeleton.joins, slots)
            if joined is not None:
                return build(values, joined)
    filler = _Filler(slots, lenient=lenient)
    return [document for node in skeleton.documents if (document := filler.node(node)) is not _LEFT_OUT]


def _join_all(joins: Sequence[Joined], slots: Sequence[Slot]) -> list[str] | None:
    """The joined texts; None when one of them needs a closer look."""
    texts = []
    for joined in joins:
        text = ""
        for piece in joined.pieces:
            if type(piece) is str:
                text += piece
                continue
            value = slots[piece].value  # type: ignore[index]
            if type(value) is str:
                text += value
            elif type(value) is int:
                text += str(value)
            else:
                return None
        texts.append(text)
    return texts


def _whole(slot: Slot) -> JSON:
    try:
        return plain(slot.value)
    except Fault as error:
        raise faulty(error, slot.place) from None
    except RecursionError:
        raise faulty(Fault("a value is nested too deeply"), slot.place) from None


def _raise_fault(slot: Slot) -> None:
    if isinstance(slot.value, Absent) and slot.value is not OMIT:
        raise faulty(slot.value.fault(), slot.place)


def _raise_unless_later(slot: Slot) -> None:
    try:
        _raise_fault(slot)
    except NotThereYet:
        return


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
        return node

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
        for number, piece in enumerate(node.pieces):
            if isinstance(piece, str):
                text += piece
                continue
            slot = self.slots[piece]
            if isinstance(slot.value, Dump) and slot.place.alone:
                text = self._indented(text, slot.value.bare())
            elif isinstance(slot.value, (Mapping, list)) and slot.place.alone and SPREAD in node.source:
                raise faulty(Fault("a mapping or list inside longer text: print it with `to_yaml` or `to_json`"), slot.place)
            elif isinstance(slot.value, str) and number == 0 and len(node.pieces) == 1:
                text = str(slot.value)
            else:
                text += slot_text(slot)
        return text

    @staticmethod
    def _indented(text: str, more: str) -> str:
        """Text of several lines takes the column at which it begins."""
        column = text[text.rfind("\n") + 1 :]
        if column.strip(" "):
            return text + more
        return text + more.rstrip("\n").replace("\n", "\n" + column)

    def members(self, node: Members) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, member in node.entries:
            if isinstance(key, Spread):
                self.spread_into(result, self.slots[key.slot])
                continue
            name = key if isinstance(key, str) else self.key(key)
            if name is None:
                continue
            value = self.node(member)
            if value is _LEFT_OUT:
                continue
            if name in result:
                raise self._twice(name, key)
            result[name] = value
        return result

    def key(self, node: Whole | Joined) -> str | None:
        if isinstance(node, Joined):
            try:
                return self.text(node)
            except NotThereYet:
                if self.lenient:
                    return None
                raise
        raise AssertionError(node)  # keys are always joined

    def _twice(self, name: str, key: Any) -> Fault:
        error = Fault(f'the key "{name}" stands here twice')
        slots = [piece for piece in getattr(key, "pieces", ()) if isinstance(piece, int)]
        return faulty(error, self.slots[slots[0]].place) if slots else error

    def spread_into(self, result: dict[str, Any], slot: Slot) -> None:
        try:
            entries = _whole(Slot(slot.value.data if isinstance(slot.value, Dump) else slot.value, slot.place))
        except NotThereYet:
            if self.lenient:
                return
            raise
        for key, value in entries.items():
            if value is None:
                continue
            if key in result:
                raise faulty(Fault(f'spreading this adds the key "{key}", which is there already; join the two with `combine`'), slot.place)
            result[key] = value

    def items(self, node: Items) -> list[Any]:
        result: list[Any] = []
        for item in node.items:
            if isinstance(item, Spread):
                slot = self.slots[item.slot]
                try:
                    values = _whole(Slot(slot.value.data if isinstance(slot.value, Dump) else slot.value, slot.place))
                except NotThereYet:
                    if self.lenient:
                        continue
                    raise
                result.extend(value for value in values if value is not None)
                continue
            value = self.node(item)
            if value is not _LEFT_OUT:
                result.append(value)
        return result
