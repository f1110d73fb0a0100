"""Static analysis of templates and expressions: the names that they read and do not set, the chains of fields below
them, and the functions they use.

`rules` rejects unknown names and finds the children to which a template refers; `check` types the chains
against the schema of the CRD.

A name counts as set behind the statement that sets it; behind an `if`, if all branches set it. A loop, a macro and
every other block with names of its own also sees the names that are set behind it on its outside, because a macro is
called later.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

from ruleop.language.templates import syntax
from ruleop.language.templates.compiled import Path, Reads, Reference
from ruleop.language.templates.declarations import Trait
from ruleop.language.templates.filters.registry import filters_with
from ruleop.language.templates.syntax import find, names_set
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from ruleop.errors import Site

Chains = dict[str, Path | None]
"""The chain that a local name stands for; None if it is unknown."""


def read_tree(tree: syntax.Template, functions: Container[str] = ()) -> Reads:
    """`functions`: the names that are the same for all renders."""
    reader = _Reader(functions)
    reader.close(tree.body, _Scope({}, {"self"}))
    return Reads(frozenset(reader.names), tuple(reader.references), tuple(reader.calls), tuple(reader.assigned))


_ATTRIBUTE_FILTERS = filters_with(Trait.TAKES_ATTRIBUTE)
_PICKING = filters_with(Trait.PICKS_FIELDS)
SAME_ITEMS = filters_with(Trait.SAME_ITEMS)
_ITEM: str | None = None
_OF_CALLS: Final = ("caller", "varargs", "kwargs")


@dataclass(slots=True)
class _Scope:
    """The statements that share their names."""

    chains: Chains  # of the names that may be set, by it or around it
    names: set[str]  # those that are set so far


@dataclass(slots=True)
class _Reader:
    functions: Container[str]
    names: set[str] = field(default_factory=set)
    references: list[Reference] = field(default_factory=list)
    calls: list[tuple[str, Site]] = field(default_factory=list)
    assigned: list[tuple[str, Site]] = field(default_factory=list)
    inner: list[tuple[Chains, set[str], Iterable[str], tuple[syntax.Expr, ...], syntax.Body]] = field(
        default_factory=list
    )
    """Bodies with names of their own: the chains when they begin, the names that are set beside them at the end, their
    own, and the defaults of their parameters."""

    def close(self, body: syntax.Body, scope: _Scope) -> None:
        outer, self.inner = self.inner, []
        self.block(body, scope)
        for chains, beside, own, defaults, inner in self.inner:
            scope = _Scope(chains, {*beside, *own})
            for default in defaults:
                self.expression(default, scope)
            self.close(inner, scope)
        self.inner = outer

    def block(self, body: syntax.Body, scope: _Scope) -> None:
        for node in body:
            self.statement(node, scope)

    def within(
        self, body: syntax.Body, scope: _Scope, own: Chains | None = None, defaults: tuple[syntax.Expr, ...] = ()
    ) -> None:
        own = own or {}
        self.inner.append(({**scope.chains, **own}, scope.names, own, defaults, body))

    def set(self, node: syntax.Node, name: str, scope: _Scope, chain: Path | None = None) -> None:
        self.assigned.append((name, node.site))
        scope.chains[name] = chain
        scope.names.add(name)

    def statement(self, node: syntax.Stmt, scope: _Scope) -> None:
        match node:
            case syntax.Print():
                self.expression(node.value, scope)
            case syntax.If():
                self._if(node, scope)
            case syntax.For():
                self._loop(node, scope)
            case syntax.With():
                own: Chains = {}
                for target, value in zip(node.targets, node.values, strict=True):
                    chain = self.expression(value, scope)
                    for name in names_set(target):
                        own[name] = chain if isinstance(target, syntax.Variable) else None
                self.within(node.body, scope, own)
            case syntax.CallBlock():
                self.expression(node.call, scope)
                self.within(node.body, scope, dict.fromkeys((*node.params, *_OF_CALLS)), node.defaults)
            case syntax.FilterBlock():
                self.expression(node.filter, scope)
                self.within(node.body, scope)
            case syntax.Block():
                self.within(node.body, scope, {"super": None})
            case _:
                self._effect(node, scope)

    def _effect(self, node: syntax.Stmt, scope: _Scope) -> None:
        match node:
            case syntax.Set():
                chain = self.expression(node.value, scope)
                self.names |= {each.name for each in find(node.target, syntax.Attribute)} - scope.names
                for name in names_set(node.target):
                    self.set(node, name, scope, chain if isinstance(node.target, syntax.Variable) else None)
            case syntax.SetBlock():
                if node.filter is not None:
                    self.expression(node.filter, scope)
                for name in names_set(node.target):
                    self.set(node, name, scope)
                self.within(node.body, scope)
            case syntax.Macro():
                self.set(node, node.name, scope)
                self.within(node.body, scope, dict.fromkeys((*node.params, *_OF_CALLS)), node.defaults)
            case syntax.Import():
                self.set(node, node.target, scope)
            case syntax.FromImport():
                for _, name in node.names:
                    self.set(node, name, scope)

    def _if(self, node: syntax.If, scope: _Scope) -> None:
        for branch in node.branches:
            self.expression(branch.test, scope)
        ends = [_Scope(scope.chains, {*scope.names}) for _ in syntax.bodies_of(node)]
        for body, end in zip(syntax.bodies_of(node), ends, strict=True):
            self.block(body, end)
        scope.names |= set.intersection(*(end.names for end in ends))

    def _loop(self, node: syntax.For, scope: _Scope) -> None:
        before = len(self.references)
        chain = self.expression(node.iterable, scope)
        target = node.target.name if isinstance(node.target, syntax.Variable) else ""
        if chain and target and _keeps_items(node.iterable) and not _reads_items_elsewhere(node):
            self.references[before:] = [replace(each, passes=each.path == chain) for each in self.references[before:]]
        own: Chains = dict.fromkeys(names_set(node.target))
        self.assigned += ((name, node.site) for name in own)
        if target:
            own[target] = (*chain, _ITEM) if chain else None
        if node.test is not None:
            self.expression(node.test, _Scope({**scope.chains, **own, "loop": None}, {*scope.names, *own}))
        self.within(node.body, scope, {**own, "loop": None})
        self.within(node.otherwise, scope)

    def expression(self, node: syntax.Node, scope: _Scope) -> Path | None:
        """Records the reads of an expression, and returns its chain if it is one."""
        chain = self._chain(node, scope)
        if chain is not None:
            return chain
        match node:
            case syntax.Filter():
                return self._filter(node, scope)
            case syntax.Test():
                self.calls.append((node.name, node.site))
                if node.name in {"defined", "undefined"}:
                    self._presence(node.value, scope)
                else:
                    self.expression(node.value, scope)
                self._arguments(node, scope)
            case syntax.Call():
                if node.name:
                    self.calls.append((node.name, node.site))
                    self._read(node.name, scope)
                elif node.method is not None:
                    self.calls.append((f".{node.method.name}", node.site))
                    self.expression(node.method.of, scope)
                else:
                    self.expression(node.function, scope)
                self._arguments(node, scope)
            case _:
                for child in syntax.children(node):
                    self.expression(child, scope)
        return None

    def _filter(self, node: syntax.Filter, scope: _Scope) -> Path | None:
        self.calls.append((node.name, node.site))
        attribute = attribute_name(node) if node.name in _ATTRIBUTE_FILTERS else None
        before = len(self.references)
        chain = None
        if node.value is not None:
            read = self._presence if node.name in {"length", "count"} else self.expression
            chain = read(node.value, scope)
        if attribute is not None and chain and (index := self._index_of(chain, before)) is not None:
            steps = tuple(None if part.isdigit() else part for part in attribute.split("."))
            if node.name in {"selectattr", "rejectattr"} and literal_names(node.args[1:]) in _PRESENCE_TESTS:
                steps = (*steps, "?")
            of_items = Reference((*chain, _ITEM, *steps), self.references[index].site)
            if node.name in {"map", "sum", "join"}:
                self.references[index] = of_items
                chain = None
            else:
                self.references.append(of_items)
        self._arguments(node, scope)
        return chain if node.name in SAME_ITEMS else None

    def _arguments(self, node: syntax.WithArguments, scope: _Scope) -> None:
        for argument in node.arguments:
            self.expression(argument, scope)

    def _presence(self, node: syntax.Node, scope: _Scope) -> Path | None:
        """Records a value of which only the presence or size matters: its chain ends with the step `?`."""
        before = len(self.references)
        chain = self.expression(node, scope)
        if chain and (index := self._index_of(chain, before)) is not None:
            self.references[index] = Reference((*chain, "?"), self.references[index].site)
        return chain

    def _index_of(self, chain: Path, before: int) -> int | None:
        """Where the references since then have the chain itself; filters may have added fields of its items."""
        return next((n for n in range(before, len(self.references)) if self.references[n].path == chain), None)

    def _chain(self, node: syntax.Node, scope: _Scope) -> Path | None:
        steps: list[str | None] = []
        at = node
        while isinstance(at, (syntax.Field, syntax.Item, syntax.Slice)):
            steps.append(at.name if isinstance(at, syntax.Field) else _ITEM)
            if not isinstance(at, syntax.Field):
                for each in syntax.children(at)[1:]:
                    if not isinstance(each, syntax.Const):
                        self.expression(each, scope)
            at = at.of
        if not isinstance(at, syntax.Name):
            if steps:
                self.expression(at, scope)
            return () if steps else None
        steps.reverse()
        is_free = self._read(at.name, scope)
        base = scope.chains.get(at.name, (at.name,) if is_free else None)
        path = (*base, *steps) if base is not None else ()
        if path:
            self.references.append(Reference(path, node.site))
        return path

    def _read(self, name: str, scope: _Scope) -> bool:
        """Notes a name that is read. Whether it is one that the template leaves to others."""
        is_free = name not in scope.names and name not in self.functions
        if is_free:
            self.names.add(name)
        return is_free


COUNTERS = frozenset({"index", "index0", "revindex", "revindex0", "first", "last", "length"})
_PRESENCE_TESTS = (["defined"], ["undefined"])
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


def picked_names(node: syntax.Node) -> tuple[str, ...] | None:
    """The fields that an expression picks by name, `spec | pick('cpu', 'memory')`, if all names are literals; None for
    other expressions."""
    if not isinstance(node, syntax.Filter) or node.name not in _PICKING or node.kwargs or node.more_args:
        return None
    names = literal_names(node.args)
    return None if None in names else tuple(name for name in names if name is not None)


def literal_names(arguments: Iterable[syntax.Expr]) -> list[str | None]:
    """The names that are arguments, or items of a list that is one; None for each that is computed."""
    parts = (part for each in arguments for part in (each.items if isinstance(each, syntax.List) else [each]))
    return [each.value if isinstance(each, syntax.Const) and isinstance(each.value, str) else None for each in parts]
