"""The files and pieces of a project as trees, each parsed once in the form in which it is used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ruleop.language.templates.tree.inheritance import Inherited
from ruleop.language.templates.tree.parser import parse
from ruleop.language.templates.values.faults import RuleErrors

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from ruleop.language.templates import syntax
    from ruleop.language.templates.bodies.conditions import Scope
    from ruleop.language.templates.compile.library import Library
    from ruleop.language.templates.tree.nodes import Documents


class Source(NamedTuple):
    """A file: its statements, and the blocks in it. If it extends another, the statements are those of that one."""

    body: syntax.Body
    path: str
    blocks: Mapping[str, syntax.Block]


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A piece of a template with the names that it sees."""

    body: syntax.Body
    path: str
    scope: Scope
    frame: tuple[Hashable, ...]
    is_text: bool = False  # also if it is a mapping or a list


class Sources:
    def __init__(self, library: Library) -> None:
        self.library = library
        self.known: dict[Any, Any] = library.parsed

    def file(self, name: str) -> Source:
        found: Source | None = self.known.get(name)
        if found is None:
            inherited = Inherited.of(self.library.source(name).tree, self._parent)  # raises RuleErrors
            found = self.known[name] = Source(inherited.body, inherited.path, inherited.blocks)
        return found

    def _parent(self, name: str) -> syntax.Template | None:
        return self.library.source(name).tree if name in self.library.texts else None

    def documents(self, body: syntax.Body, path: str) -> Documents:
        """A piece as documents. Raises RuleErrors."""
        known = self.known.get(id(body))
        if known is None:
            try:
                found: Documents | RuleErrors = parse(body, path, self._lines)
            except RuleErrors as errors:
                found = errors
            known = self.known[id(body)] = (body, found)  # with the body, so that its id is not given out again
        if isinstance(known[1], RuleErrors):
            raise known[1]
        return known[1]

    def _lines(self, path: str) -> list[str]:
        lines: list[str] | None = self.known.get((path,))
        if lines is None:
            text = self.library.texts.get(path.removeprefix(self.library.prefix), "")
            lines = self.known[path,] = text.split("\n")
        return lines
