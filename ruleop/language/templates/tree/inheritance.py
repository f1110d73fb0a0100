"""Files that extend others: their statements are those of the outermost one, with the blocks that are in force."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from ruleop.language.templates import syntax
from ruleop.language.templates.syntax import EFFECTS, find

if TYPE_CHECKING:
    from collections.abc import Callable

S = TypeVar("S", bound=syntax.Stmt)


@dataclass(slots=True)
class Inherited:
    """The statements of a file and its blocks, each with those that it overrides."""

    path: str  # of the outermost file
    body: syntax.Body = ()
    blocks: dict[str, syntax.Block] = field(default_factory=dict)
    origins: dict[int, tuple[syntax.Body, ...]] = field(default_factory=dict)
    """By the ids of bodies that were put together: what they are made of, for coverage."""

    @classmethod
    def of(cls, tree: syntax.Template, parent_of: Callable[[str], syntax.Template | None]) -> Inherited:
        """`parent_of`: the file of a name, None if there is none. Raises RecursionError for files that extend each
        other."""
        trees = [tree]
        while (extends := next(find(trees[-1], syntax.Extends), None)) is not None:
            if (parent := parent_of(extends.file)) is None:
                break
            if parent in trees:
                raise RecursionError
            trees.append(parent)
        levels: dict[str, list[syntax.Block]] = {}
        for block in (block for each in trees for block in find(each, syntax.Block)):
            levels.setdefault(block.name, []).append(block)
        if not levels and len(trees) == 1:
            return cls(tree.site.path, tree.body)
        found = cls(trees[-1].site.path)
        for name in levels:
            found.block(name, levels)
        *inner, outermost = (each.body for each in trees)
        effects = [each for body in inner for each in body if isinstance(each, EFFECTS)]
        found.body = (*effects, *found.filled(outermost, levels))
        found.origins[id(found.body)] = (*inner, outermost)
        return found

    def block(self, name: str, levels: dict[str, list[syntax.Block]]) -> syntax.Block:
        """The block in force."""
        if name not in self.blocks:
            first, *others = (replace(each, body=self.filled(each.body, levels)) for each in levels[name])
            self.blocks[name] = replace(first, overridden=tuple(others))
        return self.blocks[name]

    def filled(self, body: syntax.Body, levels: dict[str, list[syntax.Block]]) -> syntax.Body:
        """The statements, with the blocks in force in the places of those that they override."""
        if not any(next(find(each, syntax.Block), None) for each in body):
            return body
        found = tuple(self._statement(each, levels) for each in body)
        self.origins[id(found)] = (body,)
        return found

    def _statement(self, node: S, levels: dict[str, list[syntax.Block]]) -> S | syntax.Block:
        match node:
            case syntax.Block():
                return replace(self.block(node.name, levels), site=node.site)
            case syntax.If():
                branches = tuple(replace(each, body=self.filled(each.body, levels)) for each in node.branches)
                return replace(node, branches=branches, otherwise=self.filled(node.otherwise, levels))
            case syntax.For():
                body, otherwise = self.filled(node.body, levels), self.filled(node.otherwise, levels)
                return replace(node, body=body, otherwise=otherwise)
            case syntax.With() | syntax.SetBlock() | syntax.Macro() | syntax.CallBlock() | syntax.FilterBlock():
                return replace(node, body=self.filled(node.body, levels))
        return node
