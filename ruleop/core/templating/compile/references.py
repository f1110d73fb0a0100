"""Static analysis of templates and expressions: the names that they read, the chains of fields below them, and the
functions they use.

`ruleop.core.rules` rejects unknown names and finds the children to which a template refers; `check` types the chains
against the schema of the CRD.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from jinja2 import nodes
from jinja2.meta import TrackingCodeGenerator

from ruleop.core.errors import Site
from ruleop.core.templating.filters.declarations import Trait
from ruleop.core.templating.filters.registry import filters_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Path = tuple[str | None, ...]
Known = dict[str, Path | None]
"""The chain that a local name stands for; None if it is unknown."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A chain of fields from a free name, such as ("credentials", "data", "password"). A computed step is None."""

    path: Path
    site: Site
    passes: bool = False  # a list that a loop iterates over; what is read of its items is recorded with the items

    @property
    def name(self) -> str:
        return self.path[0] or ""


@dataclass(frozen=True, slots=True)
class Reads:
    names: frozenset[str] = frozenset()
    references: tuple[Reference, ...] = ()
    calls: tuple[tuple[str, Site], ...] = ()
    assigned: tuple[tuple[str, Site], ...] = ()

    @classmethod
    def joined(cls, all_reads: Iterable[Reads]) -> Reads:
        reads = list(all_reads)
        return cls(
            frozenset().union(*(each.names for each in reads)),
            tuple(reference for each in reads for reference in each.references),
            tuple(call for each in reads for call in each.calls),
            tuple(name for each in reads for name in each.assigned),
        )


def _undeclared(tree: nodes.Template) -> frozenset[str]:
    """The names that a template reads and does not set. As Jinja's `find_undeclared_variables`, but nothing is
    evaluated: an expression of constants may fail."""
    assert tree.environment is not None
    generator = TrackingCodeGenerator(tree.environment)
    generator.optimizer = None
    generator.visit(tree)
    return frozenset(generator.undeclared_identifiers)


def read_tree(tree: nodes.Template, path: str, first_line: int) -> Reads:
    names = _undeclared(tree)
    walker = _Walker(path, first_line, names)
    walker.block(tree.body, {})
    return Reads(names, tuple(walker.references), tuple(walker.calls), tuple(walker.assigned))


_ATTRIBUTE_FILTERS = filters_with(Trait.TAKES_ATTRIBUTE)
SAME_ITEMS = filters_with(Trait.SAME_ITEMS)
_ITEM: str | None = None


@dataclass(slots=True)
class _Walker:
    path: str
    first_line: int
    free: frozenset[str]
    references: list[Reference] = field(default_factory=list)
    calls: list[tuple[str, Site]] = field(default_factory=list)
    assigned: list[tuple[str, Site]] = field(default_factory=list)

    def site(self, node: nodes.Node) -> Site:
        return Site(self.path, (node.lineno or 1) + self.first_line - 1)

    def block(self, body: list[Any], known: Known) -> None:
        for node in body:
            self.statement(node, known)

    def statement(self, node: nodes.Node, known: Known) -> None:
        visit = _STATEMENTS.get(type(node))
        if visit is not None:
            visit(self, node, known)
            return
        for child in node.iter_child_nodes():
            if isinstance(child, nodes.Expr):
                self.expression(child, known)
            else:
                self.statement(child, known)

    def assign(self, node: nodes.Node, name: str, chain: Path | None, known: Known) -> None:
        self.assigned.append((name, self.site(node)))
        known[name] = chain

    def loop(self, node: nodes.For, known: Known) -> None:
        before = len(self.references)
        chain = self.expression(node.iter, known)
        if (
            chain
            and isinstance(node.target, nodes.Name)
            and _keeps_items(node.iter)
            and not _reads_items_elsewhere(node)
        ):
            self.references[before:] = [replace(each, passes=each.path == chain) for each in self.references[before:]]
        inner = dict(known)
        for name in target_names(node.target):
            self.assign(node, name, None, inner)
        if isinstance(node.target, nodes.Name):
            inner[node.target.name] = (*chain, _ITEM) if chain else None
        inner["loop"] = None
        if node.test is not None:
            self.expression(node.test, inner)
        self.block(node.body, inner)
        self.block(node.else_, dict(known))

    def assignment(self, node: nodes.Assign, known: Known) -> None:
        chain = self.expression(node.node, known)
        for name in target_names(node.target):
            self.assign(node, name, chain if isinstance(node.target, nodes.Name) else None, known)

    def block_assignment(self, node: nodes.AssignBlock, known: Known) -> None:
        for name in target_names(node.target):
            self.assign(node, name, None, known)
        if node.filter is not None:
            self.expression(node.filter, known)
        self.block(node.body, dict(known))

    def macro(self, node: nodes.Macro, known: Known) -> None:
        self.assign(node, node.name, None, known)
        self.body_with_arguments(node, known)

    def call_block(self, node: nodes.CallBlock, known: Known) -> None:
        self.expression(node.call, known)
        self.body_with_arguments(node, known)

    def body_with_arguments(self, node: nodes.Macro | nodes.CallBlock, known: Known) -> None:
        inner = {**known, **{arg.name: None for arg in node.args}, **dict.fromkeys(("caller", "varargs", "kwargs"))}
        for default in node.defaults:
            self.expression(default, known)
        self.block(node.body, inner)

    def with_block(self, node: nodes.With, known: Known) -> None:
        inner = dict(known)
        for target, value in zip(node.targets, node.values, strict=True):
            chain = self.expression(value, known)
            for name in target_names(target):
                inner[name] = chain if isinstance(target, nodes.Name) else None
        self.block(node.body, inner)

    def imported(self, node: nodes.Import | nodes.FromImport, known: Known) -> None:
        for name in _imported_names(node):
            self.assign(node, name, None, known)

    def expression(self, node: nodes.Node, known: Known) -> Path | None:
        """Records the reads of an expression, and returns its chain if it is one."""
        chain = self._chain(node, known)
        if chain is not None:
            return chain
        if isinstance(node, nodes.Filter):
            return self._filter(node, known)
        if isinstance(node, nodes.Test):
            self.calls.append((node.name, self.site(node)))
            if node.name in {"defined", "undefined"}:
                self._presence(node.node, known)
            else:
                self.expression(node.node, known)
            self._arguments(node, known)
            return None
        if isinstance(node, nodes.Call):
            if isinstance(node.node, nodes.Name):
                self.calls.append((node.node.name, self.site(node)))
            elif isinstance(node.node, nodes.Getattr):
                self.calls.append((f".{node.node.attr}", self.site(node)))
                self.expression(node.node.node, known)
            else:
                self.expression(node.node, known)
            self._arguments(node, known)
            return None
        for child in node.iter_child_nodes():
            self.expression(child, known)
        return None

    def _filter(self, node: nodes.Filter, known: Known) -> Path | None:
        if node.name.strip() != node.name:  # a filter of the generated code, around the list of a loop
            return self.expression(node.node, known) if node.node is not None else None
        self.calls.append((node.name, self.site(node)))
        attribute = attribute_name(node) if node.name in _ATTRIBUTE_FILTERS else None
        before = len(self.references)
        chain = None
        if node.node is not None:
            chain = (
                self._presence(node.node, known)
                if node.name in {"length", "count"}
                else self.expression(node.node, known)
            )
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

    def _arguments(self, node: nodes.Node, known: Known) -> None:
        """Records the reads of the arguments of a filter, a test or a call."""
        for argument in node.iter_child_nodes(exclude=("node",)):
            self.expression(argument, known)

    def _presence(self, node: nodes.Node, known: Known) -> Path | None:
        """Records a value of which only the presence or size matters: its chain ends with the step `?`."""
        before = len(self.references)
        chain = self.expression(node, known)
        if chain is not None and len(self.references) > before:
            found = self.references[-1]
            self.references[-1] = Reference((*found.path, "?"), found.site)
        return chain

    def _chain(self, node: nodes.Node, known: Known) -> Path | None:
        steps: list[str | None] = []
        at: nodes.Node = node
        while isinstance(at, (nodes.Getattr, nodes.Getitem)):
            if isinstance(at, nodes.Getattr):
                steps.append(at.attr)
            elif isinstance(at.arg, nodes.Const) and isinstance(at.arg.value, str):
                steps.append(at.arg.value)
            else:
                if not isinstance(at.arg, nodes.Const):
                    self.expression(at.arg, known)
                steps.append(_ITEM)
            at = at.node
        if not isinstance(at, nodes.Name):
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
            self.references.append(Reference(path, self.site(node)))
        return path


COUNTERS = frozenset({"index", "index0", "revindex", "revindex0", "first", "last", "length"})
_CONTEXT: tuple[type[nodes.Node], ...] = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Block)


def _keeps_items(node: nodes.Node | None) -> bool:
    """Whether the list of a loop is a chain, possibly with filters that read at most one named attribute of its
    items."""
    while isinstance(node, nodes.Filter):
        by_attribute = node.name in {"sort", "unique", "selectattr", "rejectattr"} and attribute_name(node) is not None
        if not by_attribute and node.name not in {"list", "reverse"} and node.name.strip() == node.name:
            return False
        node = node.node
    return isinstance(node, (nodes.Name, nodes.Getattr, nodes.Getitem))


def _reads_items_elsewhere(loop: nodes.For) -> bool:
    """Whether the items can be read in ways that are not recorded: by another template, or through `loop.previtem`."""
    if any(loop.find(kind) is not None for kind in _CONTEXT):
        return True
    if any(isinstance(call.node, nodes.Name) and call.node.name == "render" for call in loop.find_all(nodes.Call)):
        return True
    counted = (
        at.node for at in loop.find_all(nodes.Getattr) if at.attr in COUNTERS and isinstance(at.node, nodes.Name)
    )
    return sum(node.name == "loop" for node in counted) != sum(
        name.name == "loop" for name in loop.find_all(nodes.Name)
    )


def attribute_name(node: nodes.Filter) -> str | None:
    for keyword in node.kwargs:
        if keyword.key == "attribute" and isinstance(keyword.value, nodes.Const):
            return str(keyword.value.value)
    if node.name in {"selectattr", "rejectattr", "groupby"} and node.args and isinstance(node.args[0], nodes.Const):
        return str(node.args[0].value)
    return None


def target_names(node: nodes.Node) -> Iterator[str]:
    if isinstance(node, nodes.Name):
        yield node.name
    elif isinstance(node, (nodes.Tuple, nodes.List)):
        for item in node.items:
            yield from target_names(item)


def _imported_names(node: nodes.Import | nodes.FromImport) -> Iterator[str]:
    if isinstance(node, nodes.Import):
        yield node.target
    else:
        for name in node.names:
            yield name[1] if isinstance(name, tuple) else name


_STATEMENTS: dict[type[nodes.Node], Callable[[_Walker, Any, Known], None]] = {
    nodes.For: _Walker.loop,
    nodes.Assign: _Walker.assignment,
    nodes.AssignBlock: _Walker.block_assignment,
    nodes.Macro: _Walker.macro,
    nodes.CallBlock: _Walker.call_block,
    nodes.With: _Walker.with_block,
    nodes.Import: _Walker.imported,
    nodes.FromImport: _Walker.imported,
}
