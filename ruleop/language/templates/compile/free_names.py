"""The names that a template reads and does not set.

A name counts as set behind the statement that sets it; behind an `if`, if all branches set it. A loop, a macro and
every other block with names of its own also sees the names that are set behind it on its outside, because a macro is
called later.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ruleop.language.templates import syntax
from ruleop.language.templates.syntax import names_in, names_set

if TYPE_CHECKING:
    from collections.abc import Iterable

_OF_CALLS: Final = frozenset({"caller", "varargs", "kwargs"})
_OF_BLOCKS: Final = frozenset({"super"})


def free_names(tree: syntax.Template) -> frozenset[str]:
    found: set[str] = set()
    _Scope(found, {"self"}).close(tree.body)
    return frozenset(found)


@dataclass(slots=True)
class _Scope:
    """The statements that share their names. `known`: those that are set so far, by it or around it."""

    found: set[str]
    known: set[str]
    inner: list[tuple[set[str], frozenset[str], tuple[syntax.Expr, ...], syntax.Body]] = field(default_factory=list)
    """Bodies with names of their own, each with the names that are set beside it at the end, its own, and the defaults
    of its parameters."""

    def close(self, body: syntax.Body) -> None:
        self.statements(body)
        for beside, own, defaults, inner in self.inner:
            scope = _Scope(self.found, {*self.known, *beside, *own})
            scope.read(*defaults)
            scope.close(inner)

    def statements(self, body: syntax.Body) -> None:
        for each in body:
            self._statement(each)

    def read(self, *nodes: syntax.Node | None, own: Iterable[str] = ()) -> None:
        for each in nodes:
            if each is not None:
                self.found |= names_in(each) - self.known - {*own}

    def within(self, body: syntax.Body, own: Iterable[str] = (), defaults: tuple[syntax.Expr, ...] = ()) -> None:
        self.inner.append((self.known, frozenset(own), defaults, body))

    def _statement(self, node: syntax.Stmt) -> None:
        match node:
            case syntax.If():
                self._if(node)
            case syntax.For():
                own = frozenset(names_set(node.target))
                self.read(node.iterable)
                self.read(node.test, own=own)
                self.within(node.body, own | {"loop"})
                self.within(node.otherwise)
            case syntax.With():
                self.read(*node.values)
                self.within(node.body, (name for target in node.targets for name in names_set(target)))
            case syntax.Set():
                self.read(node.value)
                self._set(node.target)
            case syntax.SetBlock():
                self.read(node.filter)
                self._set(node.target)
                self.within(node.body)
            case syntax.Macro():
                self.known.add(node.name)
                self._with_parameters(node)
            case syntax.CallBlock():
                self.read(node.call)
                self._with_parameters(node)
            case syntax.FilterBlock():
                self.read(node.filter)
                self.within(node.body)
            case syntax.Block():
                self.within(node.body, _OF_BLOCKS)
            case syntax.Import():
                self.known.add(node.target)
            case syntax.FromImport():
                self.known |= {name for _, name in node.names}
            case _:
                self.read(node)

    def _set(self, target: syntax.Target) -> None:
        self.found |= {each.name for each in syntax.find(target, syntax.Attribute)} - self.known
        self.known |= {*names_set(target)}

    def _with_parameters(self, node: syntax.Macro | syntax.CallBlock) -> None:
        self.within(node.body, _OF_CALLS | {*node.params}, node.defaults)

    def _if(self, node: syntax.If) -> None:
        ends: list[set[str]] = []
        for branch in node.branches:
            self.read(branch.test)
        for body in syntax.bodies_of(node):
            end = _Scope(self.found, {*self.known}, self.inner)
            end.statements(body)
            ends.append(end.known)
        self.known |= set.intersection(*ends)
