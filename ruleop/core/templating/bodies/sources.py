"""The files and pieces of a project as trees, each parsed once in the form in which it is used."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from jinja2 import nodes

from ruleop.core.templating.compile.node_index import nodes_of
from ruleop.core.templating.template_tree.lines import EFFECTS
from ruleop.core.templating.template_tree.parser import parse
from ruleop.core.templating.values.faults import RuleErrors

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from ruleop.core.templating.bodies.branch_conditions import Needs, Scope
    from ruleop.core.templating.compile.library import Library
    from ruleop.core.templating.template_tree.nodes import Documents


Levels: TypeAlias = tuple[tuple[list[nodes.Node], str], ...]
"""The bodies of a block and of those that it overrides, with their files, the one in force first."""


class Source(NamedTuple):
    """A file: its statements, and the blocks in it. If it extends another, the statements are those of that one."""

    body: list[nodes.Node]
    path: str
    blocks: dict[str, Levels]


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A piece of a template with the names that it sees."""

    body: Sequence[nodes.Node]
    path: str
    scope: Scope
    frame: tuple[Hashable, ...]
    needs: Needs = ()  # with which it is what is printed
    is_text: bool = False  # also if it is a mapping or a list


class Sources:
    def __init__(self, library: Library) -> None:
        self.library = library
        self.known: dict[Any, Any] = library.parsed

    def file(self, name: str) -> Source:
        found: Source | None = self.known.get(name)
        if found is None:
            found = self.known[name] = self._file(name, {})
        return found

    def _file(self, name: str, blocks: dict[str, Levels]) -> Source:
        self.library.source(name)  # raises RuleErrors
        tree, path = self.library.written_tree(name), self.library.prefix + name
        for each in nodes_of(tree, nodes.Block):
            blocks[each.name] = (*blocks.get(each.name, ()), (each.body, path))
        extends = next(iter(nodes_of(tree, nodes.Extends)), None)
        parent = extends.template.value if extends is not None and isinstance(extends.template, nodes.Const) else None
        if parent not in self.library.texts:
            return Source(_with_blocks(tree.body, blocks), path, blocks)
        effects = [_elsewhere(each, path) for each in tree.body if isinstance(each, EFFECTS)]
        found = self._file(parent, blocks)
        return found._replace(body=[*effects, *found.body])

    def documents(self, body: Sequence[nodes.Node], path: str) -> Documents:
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


def _with_blocks(body: Sequence[nodes.Node], blocks: dict[str, Levels]) -> list[nodes.Node]:
    """The statements with the blocks that are in force."""
    found: list[nodes.Node] = []
    for node in body:
        changed = node
        if isinstance(node, nodes.Block):
            levels = blocks[node.name]
            changed = nodes.Scope(_with_blocks(levels[0][0], blocks), lineno=node.lineno)
            changed.path, changed.levels = levels[0][1], levels  # type: ignore[attr-defined]
        elif next(iter(node.find_all(nodes.Block)), None) is not None:
            changed = copy.copy(node)
            for name in ("body", "else_", "elif_"):
                if isinstance(inside := getattr(node, name, None), list):
                    setattr(changed, name, _with_blocks(inside, blocks))
        found.append(changed)
    return found


def _elsewhere(node: nodes.Node, path: str) -> nodes.Node:
    """The statement of a file among those of another."""
    found = copy.copy(node)
    found.path = path  # type: ignore[attr-defined]
    return found
