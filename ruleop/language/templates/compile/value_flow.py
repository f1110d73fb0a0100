"""Finds the fields from which the values of templates' slots come, such as data of Secrets, without rendering.

A value comes from a field if it is computed from it by any expression: a part of it, its encoding, a longer text.
Whether a value is defined does not count. Values are followed through variables, loops, macros, captured text and
included files. A name that holds such a value in one place holds it in all places, so the order of statements does not
matter. What a condition decides is not followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.language.templates import syntax
from ruleop.language.templates.compile.references import COUNTERS, SAME_ITEMS, attribute_name, picked_names
from ruleop.language.templates.declarations import Trait
from ruleop.language.templates.filters.registry import filters_with
from ruleop.language.templates.syntax import PRINTING, children, find, names_set

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ruleop.language.templates.compiled import Path
    from ruleop.language.templates.values.text import SlotPlace

FUNCTION: Final[Path] = ("", "function")
"""Stands for the result of one of the given functions."""
_PUBLIC: Final = ("Cert",)
"""The field of a result that anybody may read: certificates are made to be shown."""

_COMPUTED: Final = "computed"
"""The first step of a path from which a value is computed, but which it is not: fields of the value are not its."""
_MAX_STEPS: Final = 8  # of a path; whether a field is public is decided by fewer
_ONE_ITEM = filters_with(Trait.ONE_ITEM)
_NOTHING: frozenset[Path] = frozenset()
_FLOWING: Final[tuple[type[syntax.Node], ...]] = (
    syntax.Set,
    syntax.SetBlock,
    syntax.For,
    syntax.With,
    syntax.Macro,
    syntax.CallBlock,
    syntax.Call,
    syntax.Import,
    syntax.FromImport,
)
"""The nodes that give a name a value."""


def origins_of(
    trees: Iterable[syntax.Template],
    names: Mapping[str, Iterable[Path]],
    *,
    clean: frozenset[str] = frozenset(),
    functions: frozenset[str] = frozenset(),
    by_name: bool = True,
) -> dict[SlotPlace, frozenset[Path]]:
    """The fields from which the value of each slot comes, and FUNCTION for the results of functions. `names`: the
    fields that free names stand for. `clean`: filters after which a value does not count as coming from them.
    `by_name`: arguments flow only into the macros that a call can name, which Secrets cannot rely on: a macro may be
    called by another name."""
    return _Flow(list(trees), names, functions, clean, by_name=by_name).origins()


def is_made(path: Path) -> bool:
    """Whether a path is that of a function's result, or of a field of it."""
    return path[: len(FUNCTION)] == FUNCTION


def slots_from(origins: Mapping[SlotPlace, frozenset[Path]], is_source: Callable[[Path], bool]) -> frozenset[SlotPlace]:
    """The slots whose values come from functions, or from fields that `is_source` accepts."""
    accepted = {path: _is_result(path) or is_source(path) for path in frozenset().union(*origins.values())}
    return frozenset(place for place, paths in origins.items() if any(map(accepted.__getitem__, paths)))


def _is_result(path: Path) -> bool:
    return is_made(path) and path[len(FUNCTION) : len(FUNCTION) + 1] != _PUBLIC


class _Flow:
    def __init__(
        self,
        trees: list[syntax.Template],
        names: Mapping[str, Iterable[Path]],
        functions: frozenset[str],
        clean: frozenset[str],
        *,
        by_name: bool,
    ) -> None:
        self.trees = trees
        self.by_name = by_name
        self.functions = functions
        self.clean = clean
        self.values: dict[str, frozenset[Path]] = {name: frozenset(paths) for name, paths in names.items()}
        self.macros = [macro for tree in trees for macro in find(tree, syntax.Macro)]
        self.parameters = [name for macro in self.macros for name in macro.params]
        self.parameters += [name for tree in trees for block in find(tree, syntax.CallBlock) for name in block.params]
        self.recursive = [loop for tree in trees for loop in find(tree, syntax.For) if loop.recursive]
        self.text = _NOTHING  # what all files print, if something may print it again
        self.statements = [node for tree in trees for node in find(tree, *_FLOWING)]
        self._solve()

    def origins(self) -> dict[SlotPlace, frozenset[Path]]:
        return {
            node.place: frozenset(path[1:] if path[0] == _COMPUTED else path for path in self._printed(node))
            for tree in self.trees
            for node in find(tree, *PRINTING)
            if not isinstance(node, syntax.Include)
        }

    # -- statements ----------------------------------------------------------------------------------------------------

    def _solve(self) -> None:
        is_printed_again = any(True for tree in self.trees for _ in find(tree, syntax.Include, syntax.Call))
        before: tuple[dict[str, frozenset[Path]], frozenset[Path]] | None = None
        while (self.statements or is_printed_again) and before != (self.values, self.text):
            before = dict(self.values), self.text
            for node in self.statements:
                self._statement(node)
            if is_printed_again:
                self.text = self._mixed(printed.value for tree in self.trees for printed in find(tree, syntax.Print))

    def _add(self, name: str, paths: frozenset[Path]) -> None:
        if paths:
            self.values[name] = self.values.get(name, _NOTHING) | paths

    def _assign(self, target: syntax.Target, paths: frozenset[Path]) -> None:
        match target:
            case syntax.Variable():
                self._add(target.name, paths)
            case syntax.Attribute():
                self._add(target.name, _computed(paths))
            case syntax.Variables():
                for name in names_set(target):
                    self._add(name, _computed(paths))

    def _statement(self, node: syntax.Node) -> None:
        match node:
            case syntax.Set():
                self._assign(node.target, self.value(node.value))
            case syntax.SetBlock():
                through = self._mixed([node.filter]) if node.filter is not None else _NOTHING
                self._assign(node.target, self._prints(node.body) | through)
            case syntax.For():
                found = self.value(node.iterable)
                self._assign(node.target, _below(found, None))
                self._add("loop", _computed(found) | (self._prints(node.body) if node.recursive else _NOTHING))
            case syntax.With():
                for target, value in zip(node.targets, node.values, strict=True):
                    self._assign(target, self.value(value))
            case syntax.Macro():
                self._add(node.name, self._prints(node.body))
                defaults = _NOTHING.union(*map(self.value, node.defaults))
                for name in node.params:
                    self._add(name, defaults)
            case syntax.CallBlock():
                self._add("caller", self._prints(node.body))
            case syntax.Call():
                self._arguments(node)
            case syntax.Import():
                self._add(node.target, _computed(_NOTHING.union(*map(self._named, self._defined()))))
            case syntax.FromImport():
                for name, here in node.names:
                    self._add(here, self._named(name))

    def _named(self, name: str) -> frozenset[Path]:
        return self.values.get(name, _NOTHING)

    def _arguments(self, node: syntax.Call) -> None:
        """Arguments flow into the parameters of every macro, and those of `caller` into those of every call block: a
        macro may be called by another name."""
        given = self._given(node)
        if not given:
            return
        if self.by_name and (named := self._named_macros(node)):
            for macro in named:
                self._give(macro, node)
            return
        for parameter in self.parameters:
            self._add(parameter, given)
        for loop in self.recursive:
            self._assign(loop.target, _below(given, None))
        for name in ("varargs", "kwargs"):
            self._add(name, _computed(given))

    def _named_macros(self, node: syntax.Call) -> list[syntax.Macro]:
        name = node.method.name if node.method is not None else node.name
        return [] if node.is_dynamic else [macro for macro in self.macros if macro.name == name]

    def _give(self, macro: syntax.Macro, node: syntax.Call) -> None:
        for parameter, value in (*zip(macro.params, node.args, strict=False), *node.kwargs.items()):
            self._add(parameter, self.value(value))
        for name in ("varargs", "kwargs"):
            self._add(name, _computed(self._given(node)))

    def _defined(self) -> Iterator[str]:
        yield from (macro.name for macro in self.macros)
        for tree in self.trees:
            targets = [*(each.target for each in find(tree, syntax.Set))]
            targets += (each.target for each in find(tree, syntax.SetBlock))
            for target in targets:
                yield from names_set(target)

    def _prints(self, body: syntax.Body) -> frozenset[Path]:
        """The value of all that the statements print."""
        return _computed(_NOTHING.union(*(self._printed(node) for each in body for node in find(each, *PRINTING))))

    def _printed(self, node: syntax.Printing) -> frozenset[Path]:
        match node:
            case syntax.Include():
                return self.text
            case syntax.FilterBlock():
                return self._prints(node.body) | self._mixed([node.filter])
            case syntax.CallBlock():
                return self._prints(node.body) | self._mixed([node.call])
            case syntax.Print(value=syntax.Filter(value=syntax.Expr() as picked) as through) if (
                names := picked_names(through)
            ) is not None:
                given = self.value(picked)
                return _NOTHING.union(*(_below(given, name) | _below(given, None, name) for name in names))
        return self.value(node.value)

    # -- expressions ---------------------------------------------------------------------------------------------------

    def value(self, node: syntax.Node) -> frozenset[Path]:
        """The fields that an expression may stand for, or from which it is computed."""
        match node:
            case syntax.Name():
                return self._named(node.name)
            case syntax.Field(of=syntax.Name("loop"), name=name) if name in COUNTERS:
                return _NOTHING
            case syntax.Field():
                return _below(self.value(node.of), node.name)
            case syntax.Filter():
                return self._filter(node)
            case syntax.Call():
                return self._call(node)
            case syntax.Item():
                return _below(self.value(node.of), None) | self._mixed([node.key])
            case syntax.Slice():
                of, *bounds = children(node)
                return self.value(of) | self._mixed(bounds)
            case syntax.And() | syntax.Or():
                return self.value(node.left) | self.value(node.right)
            case syntax.Conditional():
                other = self.value(node.otherwise) if node.otherwise is not None else _NOTHING
                return self.value(node.then) | other | self._mixed([node.test])
            case syntax.Test(name="defined" | "undefined"):
                return _NOTHING
        return self._mixed(children(node))

    def _mixed(self, operands: Iterable[syntax.Node]) -> frozenset[Path]:
        """The value of an operation on these operands."""
        return _computed(_NOTHING.union(*map(self.value, operands)))

    def _filter(self, node: syntax.Filter) -> frozenset[Path]:
        if node.name in self.clean:
            return _NOTHING
        arguments = node.arguments
        given = self.value(node.value) if node.value is not None else _NOTHING
        if node.name in SAME_ITEMS:
            more = _NOTHING.union(*(self.value(each) for each in arguments))
            return given | (more if node.name in {"default", "d"} else _computed(more))
        if node.name in _ONE_ITEM and not arguments:
            return _below(given, None)
        attribute = attribute_name(node)
        if node.name == "map" and attribute is not None and len(arguments) == 1:
            steps = (None if part.isdigit() else part for part in attribute.split("."))
            return _below(given, None, *steps)
        return _computed(given) | self._mixed(arguments)

    def _call(self, node: syntax.Call) -> frozenset[Path]:
        given = _computed(self._given(node))
        if (method := node.method) is not None:
            on = self.value(method.of)
            if method.name == "get" and node.args and isinstance(node.args[0], syntax.Const):
                return _below(on, str(node.args[0].value)) | given
            is_block = isinstance(method.of, syntax.Name) and method.of.name == "self"
            return _computed(on) | given | (self.text if is_block else _NOTHING)
        if node.name in self.functions:
            return frozenset({FUNCTION})
        if node.name in {"render", "super"}:
            return self.text
        return _computed(self.value(node.function)) | given

    def _given(self, node: syntax.Call) -> frozenset[Path]:
        return _NOTHING.union(*map(self.value, node.arguments))


def _computed(paths: frozenset[Path]) -> frozenset[Path]:
    """The value of something that is computed from another."""
    return frozenset(path if path[0] == _COMPUTED else (_COMPUTED, *path) for path in paths)


def _below(paths: frozenset[Path], *steps: str | None) -> frozenset[Path]:
    """A field or an item of a value."""
    return frozenset(path if path[0] == _COMPUTED else (*path, *steps)[:_MAX_STEPS] for path in paths)
