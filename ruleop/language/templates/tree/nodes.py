"""The nodes of a template's tree, and the lines and blocks that they are parsed from. They hold no value of a custom
resource.

A place for a value takes a `Constant`, `Value`, `Joined`, `TextBlock`, `Mapping`, `Sequence` or `Blocks`. Among the
entries of a mapping, the items of a list and the documents of a file there may also be blocks: a `Spread`, a statement
of Jinja with nodes in it, or one that has only an effect.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ruleop.language.templates import syntax
from ruleop.language.templates.syntax import EFFECTS, PRINTING, bodies_of
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import JSON


# -- lines -------------------------------------------------------------------------------------------------------------
#
# The statements of a template as lines and blocks.
#
# A statement is a block if it begins and ends a line, so that what it prints is whole lines. Any other statement is a
# part of its line. The text between the tags is kept as it is, because a text block needs it exactly.

_ENTRY: Final = re.compile(r"- |[^#]*?:(\s|$)")
_FRESH_START: Final = re.compile(r"\A[ \t]*\n")
_FRESH_END: Final = re.compile(r"\n[ \t]*\Z")


Part: TypeAlias = str | syntax.Stmt
"""Text, or a statement within a line: something printed, or text with control flow in it."""


@dataclass(slots=True, eq=False)
class Line:
    parts: list[Part] = field(default_factory=list)
    number: int = 0  # in the file
    end: str = ""  # a newline, unless a block follows on the same line

    @property
    def is_blank(self) -> bool:
        return all(isinstance(part, str) and not part.strip() for part in self.parts)

    @property
    def literal(self) -> str:
        return "".join(part for part in self.parts if isinstance(part, str))


@dataclass(slots=True, eq=False)
class BlockItem:
    node: syntax.Stmt
    number: int  # the line of its first tag
    bodies: list[list[Item]]
    path: str  # the file of its bodies


Item: TypeAlias = "Line | BlockItem"


class Lines:
    """Splits a body into lines and blocks."""

    def __init__(self, path: str, line: int = 1) -> None:
        self.path = path
        self.items: list[Item] = []
        self.current = Line(number=line)
        self.number = line

    def read(self, body: syntax.Body, column: int = 0) -> list[Item]:
        """`column`: of the first line, if it stands behind a tag."""
        if column:
            self.current.parts.append(" " * column)
        for index, node in enumerate(body):
            if isinstance(node, syntax.Data):
                self._text(node)
            elif isinstance(node, PRINTING):
                self._part(node)
            else:
                self._statement(node, body[index + 1 :])
        self._close("")
        return self.items

    def _text(self, node: syntax.Data) -> None:
        self.number = node.site.line
        first, *others = node.text.split("\n")
        self._literal(first)
        for text in others:
            self._close("\n")
            self.number += 1
            self._literal(text)

    def _literal(self, text: str) -> None:
        if text:
            if self.current.is_blank and text.strip():
                self.current.number = self.number
            self.current.parts.append(text)

    def _part(self, node: syntax.Stmt) -> None:
        if self.current.is_blank:
            self.current.number = node.site.line
        self.current.parts.append(node)

    def _close(self, end: str) -> None:
        if self.current.parts or end:
            self.current.end = end
            self.current.number = self.current.number or self.number
            self.items.append(self.current)
        self.current = Line()

    def _statement(self, node: syntax.Stmt, following: syntax.Body) -> None:
        bodies = [each for each in bodies_of(node) if each]
        fresh = self.current.is_blank
        starts = fresh or (bool(bodies) and all(starts_fresh(each) for each in bodies))
        ends = _is_effect(node) or all(map(ends_fresh, bodies)) or starts_fresh(following, at_end=True)
        if _is_effect(node) and not fresh:
            starts = starts_fresh(following, at_end=True)
        if not (starts and ends) or _prints_values(node):
            self._part(node)
            return
        column = len(self.current.literal) if fresh else 0
        if fresh:
            self.current = Line()
        else:
            self._close("")
        path = node.path if isinstance(node, syntax.Block) else self.path
        line = node.site.line
        inner = [
            Lines(path, line).read(body, 0 if starts_fresh(body) else column) if body else []
            for body in bodies_of(node)
        ]
        self.items.append(BlockItem(node, line, inner, path))


def _prints_values(node: syntax.Stmt) -> bool:
    """Whether it is a loop on one line that prints no entries or items: text, in which values follow one another."""
    if (
        not isinstance(node, syntax.For)
        or node.recursive
        or not all(isinstance(each, (syntax.Data, syntax.Print)) for each in node.body)
    ):
        return False
    text = "".join(each.text if isinstance(each, syntax.Data) else "{}" for each in node.body)
    return bool(text.strip()) and "\n" not in text and not _ENTRY.match(text.strip())


def _is_effect(node: syntax.Stmt) -> bool:
    """Whether it prints nothing."""
    if isinstance(node, syntax.Data):
        return not node.text.strip()
    if isinstance(node, (syntax.If, syntax.For, syntax.With)):
        return all(_is_effect(each) for body in bodies_of(node) for each in body)
    return isinstance(node, EFFECTS)


def starts_fresh(body: syntax.Body, *, at_end: bool = False) -> bool:
    """Whether what it prints begins with the end of a line. `at_end`: of nothing."""
    return _is_fresh(body, _FRESH_START, starts_fresh, at_end=at_end)


def ends_fresh(body: syntax.Body) -> bool:
    """Whether what it prints ends with a whole line."""
    return _is_fresh(reversed(body), _FRESH_END, ends_fresh, at_end=True)


def _is_fresh(
    body: Iterable[syntax.Stmt],
    pattern: re.Pattern[str],
    inner: Callable[[syntax.Body], bool],
    *,
    at_end: bool,
) -> bool:
    """Whether the first that is printed matches, in all branches of a statement."""
    for node in body:
        if isinstance(node, syntax.Data):
            if pattern.search(node.text):
                return True
            if node.text.strip():
                return False
        elif not _is_effect(node):
            bodies = [each for each in bodies_of(node) if each]
            return bool(bodies) and all(map(inner, bodies))
    return at_end


# -- nodes -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    value: JSON  # a scalar; or an empty mapping or list
    site: Site


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """One expression, which keeps its type."""

    slot: syntax.Printing
    site: Site


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """A string that is joined from parts."""

    parts: tuple[Part, ...]
    plain: bool  # not in quotes, nor a text block: literals alone may be a number, a boolean or null
    site: Site
    own: bool = False  # of watches.yaml: a single value keeps its type, and the names that it sets end with it


@dataclass(frozen=True, slots=True, eq=False)
class TextBlock:
    """A block scalar with statements in it."""

    items: Sequence[Item]
    folded: bool
    chomping: str  # "", "-" or "+"
    indentation: int  # of its content, counted from the start of a line; 0 if its first line decides
    site: Site


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A statement within a line that is a whole value: an `if` whose branches are values."""

    node: syntax.If
    branches: tuple[Node | None, ...]
    site: Site


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    key: str | Joined
    value: Node
    site: Site  # of the key


@dataclass(frozen=True, slots=True, eq=False)
class Mapping:
    members: tuple[Entry | Block, ...]
    site: Site


@dataclass(frozen=True, slots=True, eq=False)
class ListNode:
    members: tuple[Node | Block, ...]
    site: Site


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """A value that is nothing but blocks: they decide whether it is a mapping, a list or a scalar."""

    members: tuple[Block, ...]
    site: Site


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """An expression alone on its line among entries or items."""

    slot: syntax.Printing
    site: Site


@dataclass(frozen=True, slots=True, eq=False)
class SpreadKey:
    """A key of watches.yaml without a value: the mapping that it prints."""

    key: Joined
    site: Site


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """A statement of Jinja alone on its lines, with the content of each of its bodies; None if one is empty."""

    node: syntax.Stmt
    bodies: tuple[Node | None, ...]
    site: Site


@dataclass(frozen=True, slots=True, eq=False)
class DocumentBlock:
    """A statement of Jinja around whole documents."""

    node: syntax.Stmt
    bodies: tuple[Documents, ...]
    site: Site


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """The documents of a file, a macro or a branch."""

    members: tuple[Node | DocumentBlock, ...] = field(default=())
    separated: bool = False  # it has a line `---`


def depth_of(documents: Documents) -> int:
    """The number of mappings, lists and statements inside each other."""
    deepest = 0
    pending: list[tuple[object, int]] = [(each, 1) for each in documents.members]
    while pending:
        node, depth = pending.pop()
        deepest = max(deepest, depth)
        inner: Iterable[Any] = ()
        match node:
            case Entry():
                inner = (node.value,)
            case Mapping() | ListNode() | Blocks() | Documents():
                inner = node.members
            case Statement() | DocumentBlock():
                inner = node.bodies
            case Choice():
                inner = node.branches
        step = 0 if isinstance(node, (Entry, Blocks, Documents)) else 1
        pending += [(each, depth + step) for each in inner if each is not None]
    return deepest


Block: TypeAlias = Spread | SpreadKey | Statement
DATA: Final = (Mapping, ListNode, Blocks, Value)
"""The documents of which a piece that is a whole value is data, and not text."""
Node: TypeAlias = Constant | Value | Joined | TextBlock | Choice | Mapping | ListNode | Blocks
