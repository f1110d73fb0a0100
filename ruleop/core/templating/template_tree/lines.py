"""The statements of a template as lines and blocks.

A statement is a block if it begins and ends a line, so that what it prints is whole lines. Any other statement is a
part of its line. The text between the tags is kept as it is, because a text block needs it exactly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from jinja2 import nodes

from ruleop.core.errors import Site
from ruleop.core.templating.values.text import SlotPlace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

PRINTED: Final = (nodes.Include, nodes.CallBlock, nodes.FilterBlock)
EFFECTS: Final = (nodes.Assign, nodes.AssignBlock, nodes.Macro, nodes.Import, nodes.FromImport)
_ENTRY: Final = re.compile(r"- |[^#]*?:(\s|$)")
_FRESH_START: Final = re.compile(r"\A[ \t]*\n")
_FRESH_END: Final = re.compile(r"\n[ \t]*\Z")


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """One `{{ ... }}`, or a tag that prints: an include, a `call` or a `filter` block."""

    node: nodes.Node
    place: SlotPlace


@dataclass(frozen=True, slots=True, eq=False)
class Inline:
    """A statement within a line: text, with control flow in it."""

    node: nodes.Stmt
    site: Site


Part: TypeAlias = str | Expression | Inline


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
    node: nodes.Stmt
    number: int  # the line of its first tag
    bodies: list[list[Item]]
    path: str  # the file of its bodies


Item: TypeAlias = "Line | BlockItem"


def bodies_of(node: nodes.Node) -> list[list[nodes.Node]]:
    """The branches of a statement in the order of the source; the last is taken if no other is."""
    if isinstance(node, nodes.If):
        return [node.body, *(each.body for each in node.elif_), node.else_]
    if isinstance(node, nodes.For):
        return [node.body, node.else_]
    if isinstance(node, (nodes.With, nodes.Block, nodes.Scope)):
        return [node.body]
    return []


class Lines:
    """Splits a body into lines and blocks."""

    def __init__(self, path: str, line: int = 1) -> None:
        self.path = path
        self.items: list[Item] = []
        self.current = Line(number=line)
        self.number = line

    def read(self, body: Sequence[nodes.Node], column: int = 0) -> list[Item]:
        """`column`: of the first line, if it stands behind a tag."""
        if column:
            self.current.parts.append(" " * column)
        flat = list(_flat(body))
        for index, node in enumerate(flat):
            if isinstance(node, nodes.TemplateData):
                self._text(node)
            elif isinstance(node, nodes.Stmt) and not isinstance(node, PRINTED):
                self._statement(node, flat[index + 1 :])
            else:
                self._part(Expression(node, getattr(node, "place", None) or SlotPlace(self._site(node), "")), node)
        self._close("")
        return self.items

    def _site(self, node: nodes.Node) -> Site:
        return Site(self.path, node.lineno)

    def _text(self, node: nodes.TemplateData) -> None:
        self.number = node.lineno
        first, *others = node.data.split("\n")
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

    def _part(self, part: Expression | Inline, node: nodes.Node) -> None:
        if self.current.is_blank:
            self.current.number = node.lineno
        self.current.parts.append(part)

    def _close(self, end: str) -> None:
        if self.current.parts or end:
            self.current.end = end
            self.current.number = self.current.number or self.number
            self.items.append(self.current)
        self.current = Line()

    def _statement(self, node: nodes.Stmt, following: Sequence[nodes.Node]) -> None:
        bodies = [each for each in bodies_of(node) if each]
        fresh = self.current.is_blank
        starts = fresh or (bool(bodies) and all(starts_fresh(each) for each in bodies))
        ends = _is_effect(node) or all(map(ends_fresh, bodies)) or starts_fresh(following, at_end=True)
        if _is_effect(node) and not fresh:
            starts = starts_fresh(following, at_end=True)
        if not (starts and ends) or _prints_values(node):
            self._part(Inline(node, self._site(node)), node)
            return
        column = len(self.current.literal) if fresh else 0
        if fresh:
            self.current = Line()
        else:
            self._close("")
        path = getattr(node, "path", self.path)  # a block that another file overrides
        line = node.lineno or self.number
        inner = [
            Lines(path, line).read(body, 0 if starts_fresh(body) else column) if body else []
            for body in bodies_of(node)
        ]
        self.items.append(BlockItem(node, line, inner, path))


def _prints_values(node: nodes.Stmt) -> bool:
    """Whether it is a loop on one line that prints no entries or items: text, in which values follow one another."""
    if (
        not isinstance(node, nodes.For)
        or node.recursive
        or any(isinstance(each, nodes.Stmt) for each in _flat(node.body))
    ):
        return False
    text = "".join(each.data if isinstance(each, nodes.TemplateData) else "{}" for each in _flat(node.body))
    return bool(text.strip()) and "\n" not in text and not _ENTRY.match(text.strip())


def _is_effect(node: nodes.Node) -> bool:
    """Whether it prints nothing."""
    if isinstance(node, nodes.Output) or not isinstance(node, nodes.Stmt):
        return isinstance(node, nodes.TemplateData) and not node.data.strip()
    if isinstance(node, (nodes.If, nodes.For, nodes.With)):
        return all(_is_effect(each) for body in bodies_of(node) for each in _flat(body))
    return isinstance(node, EFFECTS)


def _flat(body: Sequence[nodes.Node]) -> Iterator[nodes.Node]:
    for node in body:
        if isinstance(node, nodes.Output):
            yield from node.nodes
        else:
            yield node


def starts_fresh(body: Sequence[nodes.Node], *, at_end: bool = False) -> bool:
    """Whether what it prints begins with the end of a line. `at_end`: of nothing."""
    return _is_fresh(_flat(body), _FRESH_START, starts_fresh, at_end=at_end)


def ends_fresh(body: Sequence[nodes.Node]) -> bool:
    """Whether what it prints ends with a whole line."""
    return _is_fresh(reversed(list(_flat(body))), _FRESH_END, ends_fresh, at_end=True)


def _is_fresh(
    body: Iterable[nodes.Node],
    pattern: re.Pattern[str],
    inner: Callable[[Sequence[nodes.Node]], bool],
    *,
    at_end: bool,
) -> bool:
    """Whether the first that is printed matches, in all branches of a statement."""
    for node in body:
        if isinstance(node, nodes.TemplateData):
            if pattern.search(node.data):
                return True
            if node.data.strip():
                return False
        elif not _is_effect(node):
            bodies = [each for each in bodies_of(node) if each]
            return bool(bodies) and all(map(inner, bodies))
    return at_end
