"""The parsed form of a template's slotted text.

The text with marks is parsed as YAML once; in the steady state the same text comes back at every render, so its skeleton is cached and a
render parses nothing.

A skeleton is itself compiled when it comes back: a small function that builds the objects from a list of values, written out as a Python
display. It takes all values to be there; `filling` says what happens when one is not.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ruleop.errors import RuleError, Site
from ruleop.templating.tree import layout as marks
from ruleop.templating.tree.layout import ALONE, CLOSE, OPEN, Layout
from ruleop.templating.tree.yaml_reader import YamlNode, read_yaml
from ruleop.templating.values.budget import METER, Exhausted
from ruleop.templating.values.data import noun
from ruleop.templating.values.text import Dump, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True)
class Whole:
    """A slot that is the whole value."""

    slot: int


@dataclass(frozen=True, slots=True)
class Joined:
    """Text with slots in it; always a string. Of one slot alone, which was in quotes then, it may still leave out its field."""

    pieces: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """The entries or items of a slot's value, in this place."""

    slot: int


_ANY_MARK = re.compile(f"{marks.VALUE.pattern}|{marks.SPREAD.pattern}")
_NOWHERE = Site("")
MAX_DOCUMENTS = 5000
MAX_BUILT = 2000  # nodes; Python's own compiler is slow on longer displays, and a template that large is no hot path

Node: TypeAlias = Any  # JSON, in which Whole, Joined stand for values, Members and Items for containers with slots in them


@dataclass(frozen=True, slots=True)
class Members:
    entries: tuple[tuple[str | Joined | Spread, Node], ...]


@dataclass(frozen=True, slots=True)
class Items:
    items: tuple[Node, ...]


@dataclass(slots=True)
class Skeleton:
    documents: tuple[Node, ...]
    whole: tuple[int, ...]  # the slots that are a value by themselves
    joins: tuple[Joined, ...]
    can_build: bool  # nothing is spread, and no key is a slot
    build: Callable[[Sequence[Any], Sequence[str]], list[Any]] | None = None  # made when the skeleton is used a second time
    fills: int = 0

    def built(self) -> Callable[[Sequence[Any], Sequence[str]], list[Any]] | None:
        if self.build is None and self.can_build:
            self.fills += 1
            if self.fills > 1:
                self.build = _compile(self.documents, self.joins)
                self.can_build = False
        return self.build


class Unreadable(Exception):  # noqa: N818 - says what the text is
    """The slotted text is no YAML."""

    def __init__(self, mistakes: list[RuleError]) -> None:
        super().__init__(str(mistakes[0]))
        self.mistakes = mistakes


class Skeletons:
    """Those that came up last, by their text. Bounded, for tenants' values decide how many different texts there are, and how long they
    get."""

    MAX_COUNT = 4096
    MAX_CHARACTERS = 16 * 1024 * 1024

    def __init__(self) -> None:
        self.known: OrderedDict[str, Skeleton] = OrderedDict()
        self.characters = 0
        self.parsed = 0

    def of(self, layout: Layout, name: str) -> Skeleton:
        found = self.known.get(layout.text)
        if found is not None:
            return found
        found = parse(layout, name)
        self.parsed += 1
        self.known[layout.text] = found
        self.characters += len(layout.text)
        while len(self.known) > self.MAX_COUNT or self.characters > self.MAX_CHARACTERS:
            text, _ = self.known.popitem(last=False)
            self.characters -= len(text)
        return found


def parse(layout: Layout, name: str) -> Skeleton:
    """The skeleton of a slotted text; raises `Unreadable` with places in the template."""

    METER.spend(len(layout.text) >> 1)
    nodes, mistakes = read_yaml(layout.text, name, locate=_nowhere)
    if mistakes:
        raise Unreadable(_in_template(layout, name))
    if len(nodes) > MAX_DOCUMENTS:
        raise Exhausted(f"{len(nodes):,} documents; at most {MAX_DOCUMENTS:,} are allowed")
    return _Composer().compose(nodes)


def _nowhere(_line: int, _column: int) -> Site:
    return _NOWHERE


def _in_template(layout: Layout, name: str) -> list[RuleError]:
    """The mistakes with their places in the template: read once more, so that only who makes a mistake pays for finding its place."""
    sites = layout.sites()

    def locate(line: int, _column: int) -> Site:
        return (sites[line - 1] if line <= len(sites) else None) or Site(name)

    _, placed = read_yaml(layout.text, name, locate=locate)
    _, counted = read_yaml(layout.text, name, locate=lambda line, _column: Site("", line))
    for line in (counted[0].site.line, counted[0].site.line - 1):
        alone = layout.alone_on_line(line)
        if alone is not None and counted[0].message.startswith("not YAML"):
            misfit = (
                f"{{{{ {alone.place.expression} }}}} stands alone on its line among entries of another sort: "
                f"it is {_name_of(alone.value)} here; "
                "a mapping can be spread among keys, a list among items, captured text has to fit its place"
            )
            return [RuleError(misfit, alone.place.site)]
    return [RuleError(_ANY_MARK.sub("{{ ... }}", mistake.message), mistake.site) for mistake in placed]


def _name_of(value: Any) -> str:
    if isinstance(value, Text):
        return "captured text"
    return noun(value.data if isinstance(value, Dump) else value)


class _Composer:
    def __init__(self) -> None:
        self.whole: list[int] = []
        self.joins: list[Joined] = []
        self.fast = True
        self.size = 0

    def compose(self, nodes: list[YamlNode]) -> Skeleton:
        documents = tuple(self.node(node) for node in nodes)
        return Skeleton(documents, tuple(self.whole), tuple(self.joins), can_build=self.fast and self.size < MAX_BUILT)

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
        if ALONE in key and marks.SPREAD.fullmatch(key):
            return None
        return self.node(member)

    def item(self, node: YamlNode) -> Node:
        if isinstance(node.value, str) and node.plain and ALONE in node.value and (match := marks.SPREAD.fullmatch(node.value)):
            self.fast = False
            return Spread(int(match[1]))
        return self.node(node)

    def key(self, key: str) -> str | Joined | Spread:
        if OPEN not in key and ALONE not in key:
            return key
        self.fast = False
        if match := marks.SPREAD.fullmatch(key):
            return Spread(int(match[1]))
        return self.joined(key)

    def scalar(self, text: str, *, plain_style: bool) -> Node:
        if OPEN not in text and ALONE not in text:
            return text
        match = marks.VALUE.fullmatch(text)
        if match and plain_style:
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
        if any(isinstance(piece, str) and (OPEN in piece or ALONE in piece or CLOSE in piece) for piece in pieces):
            raise AssertionError("a slot's mark came out of the YAML parser damaged")
        joined = Joined(tuple(pieces))
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
