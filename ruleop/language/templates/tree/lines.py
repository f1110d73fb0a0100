"""The statements of a template as lines and blocks.

A statement is a block if it begins and ends a line, so that what it prints is whole lines. Any other statement is a
part of its line. The text between the tags is kept as it is, because a text block needs it exactly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from ruleop.language.templates import syntax
from ruleop.language.templates.syntax import EFFECTS, PRINTING, bodies_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


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
