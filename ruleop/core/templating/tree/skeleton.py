"""The parsed form of the text of a layout.

The text with marks is parsed as YAML once. Most renders of a template have the same text, so skeletons are cached and
these renders parse nothing.

A skeleton that is used again is compiled into a function that builds the objects from a list of values, written as a
Python display. The function needs all values; `filling` handles missing ones.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ruleop.core.errors import RuleError, Site
from ruleop.core.templating.tree import layout as marks
from ruleop.core.templating.tree.layout import ALONE, CLOSE, OPEN, Layout
from ruleop.core.templating.tree.yaml_reader import read_yaml
from ruleop.core.templating.values.cost import METER, Exhausted
from ruleop.core.templating.values.data import noun
from ruleop.core.templating.values.text import Dump, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ruleop.core.templating.tree.yaml_node import YamlNode


@dataclass(frozen=True, slots=True)
class Whole:
    """A slot that is a whole value."""

    slot: int


@dataclass(frozen=True, slots=True)
class Joined:
    """A string that contains slots. A single slot, which is in quotes, may still omit its field."""

    pieces: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """A slot whose entries or items are inserted here."""

    slot: int


_ANY_MARK = re.compile(f"{marks.VALUE.pattern}|{marks.SPREAD.pattern}")
_NO_SITE = Site("")
MAX_DOCUMENTS = 5000
MAX_BUILT = 2000  # nodes; Python compiles longer displays slowly, and such templates are rare

Node: TypeAlias = Any  # JSON with Whole and Joined as values, and Members and Items as containers that contain slots


@dataclass(frozen=True, slots=True)
class Members:
    entries: tuple[tuple[str | Joined | Spread, Node], ...]


@dataclass(frozen=True, slots=True)
class Items:
    items: tuple[Node, ...]


@dataclass(slots=True)
class Skeleton:
    documents: tuple[Node, ...]
    whole: tuple[int, ...]  # the slots that are whole values
    joins: tuple[Joined, ...]
    can_build: bool  # nothing is spread, and no key is a slot
    size: int = 0  # the number of its values
    build: Callable[[Sequence[Any], Sequence[str]], list[Any]] | None = (
        None  # made when the skeleton is used a second time
    )
    fills: int = 0

    def compiled(self) -> Callable[[Sequence[Any], Sequence[str]], list[Any]] | None:
        if self.build is None and self.can_build:
            self.fills += 1
            if self.fills > 1:
                self.build = _compile(self.documents, self.joins)
                self.can_build = False
        return self.build


class Unreadable(Exception):  # noqa: N818 - describes the text
    """The text of a layout is not valid YAML."""

    def __init__(self, mistakes: list[RuleError], joined: tuple[Site, int] | None = None) -> None:
        super().__init__(str(mistakes[0]))
        self.mistakes = mistakes
        self.joined = joined  # two lines of a template that are one line of the text, where the first mistake is


class Skeletons:
    """A cache of skeletons by their text. Bounded by the memory that it takes, because the values of tenants determine
    the number of texts, their length, and how many values each has. The least recently used one is dropped first."""

    MAX_BYTES = 16 * 1024 * 1024
    MAX_OF_ONE = 2 * 1024 * 1024
    NODE_BYTES = 300  # of a value in a skeleton and in its compiled function, approximately

    def __init__(self) -> None:
        self.cache: OrderedDict[str, Skeleton] = OrderedDict()
        self.bytes = 0
        self.parsed = 0

    def of(self, layout: Layout, name: str) -> Skeleton:
        found = self.cache.get(layout.text)
        if found is not None:
            self.cache.move_to_end(layout.text)
            return found
        found = parse(layout, name)
        self.parsed += 1
        size = self._size(layout.text, found)
        if size > self.MAX_OF_ONE:
            return found
        try:
            self.cache[layout.text] = found
            self.bytes += size
            while self.bytes > self.MAX_BYTES:
                self.bytes -= self._size(*self.cache.popitem(last=False))
        except BaseException:  # the pass was interrupted: the bytes may not be those of the cache
            self.cache.clear()
            self.bytes = 0
            raise
        return found

    def _size(self, text: str, skeleton: Skeleton) -> int:
        # The text is the key, and its literals are in the skeleton. Because of the marks, a letter takes two bytes.
        return 1000 + 4 * len(text) + self.NODE_BYTES * skeleton.size


def parse(layout: Layout, name: str) -> Skeleton:
    """The skeleton of a layout. Raises `Unreadable` with sites in the template."""

    METER.parse(layout.text)
    nodes, mistakes = read_yaml(layout.text, name, locate=_no_site, most=MAX_DOCUMENTS)
    if mistakes:
        raise _unreadable(layout, name)
    if len(nodes) > MAX_DOCUMENTS:
        raise Exhausted(f"more than {MAX_DOCUMENTS:,} documents; {MAX_DOCUMENTS:,} are allowed")
    return _Composer().compose(nodes)


def _no_site(_line: int, _column: int) -> Site:
    return _NO_SITE


@dataclass(frozen=True, slots=True)
class _PlacedSite(Site):
    """A site in a template, with the line of the text that came from it."""

    text_line: int = 0


def _unreadable(layout: Layout, name: str) -> Unreadable:
    """The mistakes with their sites in the template. The text is read again, so that valid texts do not pay for
    sites."""
    sites = layout.sites()

    def locate(line: int, _column: int) -> Site:
        site = (sites[line - 1] if line <= len(sites) else None) or Site(name)
        return _PlacedSite(site.path, site.line, site.column, line)

    _, placed = read_yaml(layout.text, name, locate=locate)
    first = placed[0].site
    assert isinstance(first, _PlacedSite)
    for line in (first.text_line, first.text_line - 1):
        alone = layout.alone_on_line(line)
        if alone is not None and placed[0].message.startswith("not YAML"):
            message = (
                f"{{{{ {alone.place.expression} }}}} is alone on its line among entries of another type: "
                f"it is {_describe(alone.value)} here; "
                "a mapping can be spread among keys and a list among items, and captured text must fit its position"
            )
            return Unreadable([RuleError(message, alone.place.site)])
    mistakes = [
        RuleError(_ANY_MARK.sub("{{ ... }}", each.message), Site(each.site.path, each.site.line)) for each in placed
    ]
    return Unreadable(mistakes, layout.joined_lines(first.text_line))


def _describe(value: Any) -> str:
    if isinstance(value, Text):
        return "captured text"
    return noun(value.data if isinstance(value, Dump) else value)


class _Composer:
    def __init__(self) -> None:
        self.whole: list[int] = []
        self.joins: list[Joined] = []
        self.can_compile = True
        self.size = 0

    def compose(self, nodes: list[YamlNode]) -> Skeleton:
        documents = tuple(self.node(node) for node in nodes)
        return Skeleton(
            documents,
            tuple(self.whole),
            tuple(self.joins),
            can_build=self.can_compile and self.size < MAX_BUILT,
            size=self.size,
        )

    def node(self, node: YamlNode) -> Node:
        value = node.value
        self.size += 1
        if isinstance(value, str):
            return self.scalar(value, plain_style=node.plain)
        if isinstance(value, list):
            items = tuple(self.item(item) for item in value if item.value is not None)  # a null omits its item
            return (
                Items(items)
                if any(isinstance(item, (Whole, Joined, Spread, Members, Items)) for item in items)
                else [*items]
            )
        if isinstance(value, dict):
            entries = tuple(
                (self.key(key), self.entry(key, member)) for key, member in value.items() if member.value is not None
            )
            slotted = any(
                not isinstance(key, str) or isinstance(member, (Whole, Joined, Members, Items))
                for key, member in entries
            )
            return Members(entries) if slotted else dict(entries)
        return value

    def entry(self, key: str, member: YamlNode) -> Node:
        if ALONE in key and marks.SPREAD.fullmatch(key):
            return None
        return self.node(member)

    def item(self, node: YamlNode) -> Node:
        if (
            isinstance(node.value, str)
            and node.plain
            and ALONE in node.value
            and (match := marks.SPREAD.fullmatch(node.value))
        ):
            self.can_compile = False
            return Spread(int(match[1]))
        return self.node(node)

    def key(self, key: str) -> str | Joined | Spread:
        if OPEN not in key and ALONE not in key:
            return key
        self.can_compile = False
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
            raise AssertionError("the YAML parser changed the mark of a slot")
        joined = Joined(tuple(pieces))
        self.joins.append(joined)
        return joined


def _compile(
    documents: tuple[Node, ...], joins: Sequence[Joined]
) -> Callable[[Sequence[Any], Sequence[str]], list[Any]]:
    """Compiles the documents to a Python expression over the values `v` and the joined texts `j`. It contains no data
    of a CR, only the `repr` of the template's own text."""
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
