"""Static analysis of templates and expressions: the names that they read, the chains of fields below them, and the
functions they use.

`rules` rejects unknown names and finds the children to which a template refers; `check` types the chains
against the schema of the CRD.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ruleop.language.templates import syntax
from ruleop.language.templates.compile.free_names import free_names
from ruleop.language.templates.filters.declarations import Trait
from ruleop.language.templates.filters.registry import filters_with
from ruleop.language.templates.reads import Path, Reads, Reference
from ruleop.language.templates.syntax import find, names_set

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from ruleop.errors import Site

Known = dict[str, Path | None]
"""The chain that a local name stands for; None if it is unknown."""


def read_tree(tree: syntax.Template, functions: Container[str]) -> Reads:
    """`functions`: the names that are the same for all renders."""
    names = frozenset(name for name in free_names(tree) if name not in functions)
    walker = _Walker(names)
    walker.block(tree.body, {})
    return Reads(names, tuple(walker.references), tuple(walker.calls), tuple(walker.assigned))


_ATTRIBUTE_FILTERS = filters_with(Trait.TAKES_ATTRIBUTE)
SAME_ITEMS = filters_with(Trait.SAME_ITEMS)
_ITEM: str | None = None


@dataclass(slots=True)
class _Walker:
    free: frozenset[str]
    references: list[Reference] = field(default_factory=list)
    calls: list[tuple[str, Site]] = field(default_factory=list)
    assigned: list[tuple[str, Site]] = field(default_factory=list)

    def block(self, body: syntax.Body, known: Known) -> None:
        for node in body:
            self.statement(node, known)

    def statement(self, node: syntax.Node, known: Known) -> None:
        visit = _STATEMENTS.get(type(node))
        if visit is not None:
            visit(self, node, known)
            return
        for child in syntax.children(node):
            if isinstance(child, syntax.Expr):
                self.expression(child, known)
            else:
                self.statement(child, known)

    def assign(self, node: syntax.Node, name: str, chain: Path | None, known: Known) -> None:
        self.assigned.append((name, node.site))
        known[name] = chain

    def loop(self, node: syntax.For, known: Known) -> None:
        before = len(self.references)
        chain = self.expression(node.iterable, known)
        target = node.target.name if isinstance(node.target, syntax.Variable) else ""
        if chain and target and _keeps_items(node.iterable) and not _reads_items_elsewhere(node):
            self.references[before:] = [replace(each, passes=each.path == chain) for each in self.references[before:]]
        inner = dict(known)
        for name in names_set(node.target):
            self.assign(node, name, None, inner)
        if target:
            inner[target] = (*chain, _ITEM) if chain else None
        inner["loop"] = None
        if node.test is not None:
            self.expression(node.test, inner)
        self.block(node.body, inner)
        self.block(node.otherwise, dict(known))

    def assignment(self, node: syntax.Set, known: Known) -> None:
        chain = self.expression(node.value, known)
        for name in names_set(node.target):
            self.assign(node, name, chain if isinstance(node.target, syntax.Variable) else None, known)

    def block_assignment(self, node: syntax.SetBlock, known: Known) -> None:
        for name in names_set(node.target):
            self.assign(node, name, None, known)
        if node.filter is not None:
            self.expression(node.filter, known)
        self.block(node.body, dict(known))

    def macro(self, node: syntax.Macro, known: Known) -> None:
        self.assign(node, node.name, None, known)
        self.body_with_parameters(node, known)

    def call_block(self, node: syntax.CallBlock, known: Known) -> None:
        self.expression(node.call, known)
        self.body_with_parameters(node, known)

    def body_with_parameters(self, node: syntax.Macro | syntax.CallBlock, known: Known) -> None:
        inner = {**known, **dict.fromkeys((*node.params, "caller", "varargs", "kwargs"))}
        for default in node.defaults:
            self.expression(default, known)
        self.block(node.body, inner)

    def with_block(self, node: syntax.With, known: Known) -> None:
        inner = dict(known)
        for target, value in zip(node.targets, node.values, strict=True):
            chain = self.expression(value, known)
            for name in names_set(target):
                inner[name] = chain if isinstance(target, syntax.Variable) else None
        self.block(node.body, inner)

    def imported(self, node: syntax.Import, known: Known) -> None:
        self.assign(node, node.target, None, known)

    def imported_names(self, node: syntax.FromImport, known: Known) -> None:
        for _, name in node.names:
            self.assign(node, name, None, known)

    def expression(self, node: syntax.Node, known: Known) -> Path | None:
        """Records the reads of an expression, and returns its chain if it is one."""
        chain = self._chain(node, known)
        if chain is not None:
            return chain
        match node:
            case syntax.Filter():
                return self._filter(node, known)
            case syntax.Test():
                self.calls.append((node.name, node.site))
                if node.name in {"defined", "undefined"}:
                    self._presence(node.value, known)
                else:
                    self.expression(node.value, known)
                self._arguments(node, known)
            case syntax.Call():
                if node.name:
                    self.calls.append((node.name, node.site))
                elif node.method is not None:
                    self.calls.append((f".{node.method.name}", node.site))
                    self.expression(node.method.of, known)
                else:
                    self.expression(node.function, known)
                self._arguments(node, known)
            case _:
                for child in syntax.children(node):
                    self.expression(child, known)
        return None

    def _filter(self, node: syntax.Filter, known: Known) -> Path | None:
        self.calls.append((node.name, node.site))
        attribute = attribute_name(node) if node.name in _ATTRIBUTE_FILTERS else None
        before = len(self.references)
        chain = None
        if node.value is not None:
            read = self._presence if node.name in {"length", "count"} else self.expression
            chain = read(node.value, known)
        if attribute is not None and chain is not None and len(self.references) > before:
            steps = tuple(None if part.isdigit() else part for part in attribute.split("."))
            found = self.references[-1]
            if node.name in {"map", "sum", "join"}:
                self.references[-1] = Reference((*found.path, _ITEM, *steps), found.site)
                chain = None
            else:
                self.references.append(Reference((*found.path, _ITEM, *steps), found.site))
        self._arguments(node, known)
        return chain if node.name in SAME_ITEMS else None

    def _arguments(self, node: syntax.WithArguments, known: Known) -> None:
        for argument in node.arguments:
            self.expression(argument, known)

    def _presence(self, node: syntax.Node, known: Known) -> Path | None:
        """Records a value of which only the presence or size matters: its chain ends with the step `?`."""
        before = len(self.references)
        chain = self.expression(node, known)
        if chain is not None and len(self.references) > before:
            found = self.references[-1]
            self.references[-1] = Reference((*found.path, "?"), found.site)
        return chain

    def _chain(self, node: syntax.Node, known: Known) -> Path | None:
        steps: list[str | None] = []
        at = node
        while isinstance(at, (syntax.Field, syntax.Item, syntax.Slice)):
            steps.append(at.name if isinstance(at, syntax.Field) else _ITEM)
            if not isinstance(at, syntax.Field):
                for each in syntax.children(at)[1:]:
                    if not isinstance(each, syntax.Const):
                        self.expression(each, known)
            at = at.of
        if not isinstance(at, syntax.Name):
            if steps:
                self.expression(at, known)
            return () if steps else None
        steps.reverse()
        if at.name in known:
            base = known[at.name]
            if base is None:
                return ()
            path: Path = (*base, *steps)
        elif at.name in self.free:
            path = (at.name, *steps)
        else:
            return ()
        if path:
            self.references.append(Reference(path, node.site))
        return path


COUNTERS = frozenset({"index", "index0", "revindex", "revindex0", "first", "last", "length"})
_CONTEXT = (syntax.Include, syntax.Import, syntax.FromImport, syntax.Block)


def _keeps_items(node: syntax.Expr | None) -> bool:
    """Whether the list of a loop is a chain, possibly with filters that read at most one named attribute of its
    items."""
    while isinstance(node, syntax.Filter):
        by_attribute = node.name in {"sort", "unique", "selectattr", "rejectattr"} and attribute_name(node) is not None
        if not by_attribute and node.name not in {"list", "reverse", "default", "d"}:
            return False
        node = node.value
    return isinstance(node, (syntax.Name, syntax.Field, syntax.Item, syntax.Slice))


def _reads_items_elsewhere(loop: syntax.For) -> bool:
    """Whether the items can be read in ways that are not recorded: by another template, or through `loop.previtem`."""
    if next(find(loop, *_CONTEXT), None) is not None or any(call.name == "render" for call in find(loop, syntax.Call)):
        return True
    counted = (at.of for at in find(loop, syntax.Field) if at.name in COUNTERS and isinstance(at.of, syntax.Name))
    return sum(node.name == "loop" for node in counted) != sum(each.name == "loop" for each in find(loop, syntax.Name))


def attribute_name(node: syntax.Filter) -> str | None:
    given = node.kwargs.get("attribute")
    if isinstance(given, syntax.Const):
        return str(given.value)
    if node.name in {"selectattr", "rejectattr", "groupby"} and node.args and isinstance(node.args[0], syntax.Const):
        return str(node.args[0].value)
    return None


_STATEMENTS: dict[type[syntax.Node], Callable[[_Walker, Any, Known], None]] = {
    syntax.For: _Walker.loop,
    syntax.Set: _Walker.assignment,
    syntax.SetBlock: _Walker.block_assignment,
    syntax.Macro: _Walker.macro,
    syntax.CallBlock: _Walker.call_block,
    syntax.With: _Walker.with_block,
    syntax.Import: _Walker.imported,
    syntax.FromImport: _Walker.imported_names,
}
