"""Finds the fields from which the values of templates' slots come, such as data of Secrets, without rendering.

A value comes from a field if it is computed from it by any expression: a part of it, its encoding, a longer text.
Whether a value is defined does not count. Values are followed through variables, loops, macros, captured text and
included files. A name that holds such a value in one place holds it in all places, so the order of statements does not
matter. What a condition decides is not followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from jinja2 import nodes

from ruleop.core.templating.compile.node_index import nodes_of, nodes_of_any
from ruleop.core.templating.compile.picks import picked_names
from ruleop.core.templating.compile.places import printing_nodes
from ruleop.core.templating.compile.references import COUNTERS, SAME_ITEMS, attribute_name, target_names
from ruleop.core.templating.filters.declarations import Trait
from ruleop.core.templating.filters.registry import filters_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ruleop.core.templating.compile.references import Path
    from ruleop.core.templating.values.text import SlotPlace

FUNCTION: Final[Path] = ("", "function")
"""Stands for the result of one of the given functions."""

_COMPUTED: Final = "computed"
"""The first step of a path from which a value is computed, but which it is not: fields of the value are not its."""
_MAX_STEPS: Final = 8  # of a path; whether a field is public is decided by fewer
_ONE_ITEM = filters_with(Trait.ONE_ITEM)
_NOTHING: frozenset[Path] = frozenset()


def origins_of(
    trees: Iterable[nodes.Template],
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


def slots_from(origins: Mapping[SlotPlace, frozenset[Path]], is_source: Callable[[Path], bool]) -> frozenset[SlotPlace]:
    """The slots whose values come from functions, or from fields that `is_source` accepts."""
    accepted = {path: path == FUNCTION or is_source(path) for path in frozenset().union(*origins.values())}
    return frozenset(place for place, paths in origins.items() if any(map(accepted.__getitem__, paths)))


class _Flow:
    def __init__(
        self,
        trees: list[nodes.Template],
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
        self.macros = [macro for tree in trees for macro in nodes_of(tree, nodes.Macro)]
        blocks = [block for tree in trees for block in nodes_of(tree, nodes.CallBlock)]
        self.parameters = [arg.name for macro in self.macros for arg in macro.args]
        self.parameters += [arg.name for block in blocks for arg in block.args]
        self.recursive = [loop for tree in trees for loop in nodes_of(tree, nodes.For) if loop.recursive]
        self.text = _NOTHING  # what all files print
        self._solve()

    def origins(self) -> dict[SlotPlace, frozenset[Path]]:
        found: dict[SlotPlace, frozenset[Path]] = {}
        for tree in self.trees:
            for node in printing_nodes(tree):
                if not isinstance(node, nodes.Include):
                    paths = self._printed(node)
                    place = node.place  # type: ignore[attr-defined]
                    found[place] = frozenset(path[1:] if path[0] == _COMPUTED else path for path in paths)
        return found

    # -- statements ----------------------------------------------------------------------------------------------------

    def _solve(self) -> None:
        before: tuple[dict[str, frozenset[Path]], frozenset[Path]] | None = None
        while before != (self.values, self.text):
            before = dict(self.values), self.text
            for tree in self.trees:
                for node in nodes_of_any(tree, tuple(_STATEMENTS)):
                    _STATEMENTS[type(node)](self, node)
            self.text = self._mixed(
                node for tree in self.trees for output in nodes_of(tree, nodes.Output) for node in output.nodes
            )

    def _add(self, name: str, paths: frozenset[Path]) -> None:
        if paths:
            self.values[name] = self.values.get(name, _NOTHING) | paths

    def _assign(self, target: nodes.Node, paths: frozenset[Path]) -> None:
        if isinstance(target, nodes.Name):
            self._add(target.name, paths)
        elif isinstance(target, nodes.NSRef):
            self._add(target.name, _computed(paths))
        else:
            for name in target_names(target):
                self._add(name, _computed(paths))

    def assignment(self, node: nodes.Assign) -> None:
        self._assign(node.target, self.value(node.node))

    def block_assignment(self, node: nodes.AssignBlock) -> None:
        through = self._mixed([node.filter]) if node.filter is not None else _NOTHING
        self._assign(node.target, self._prints(node.body) | through)

    def loop(self, node: nodes.For) -> None:
        found = self.value(node.iter)
        self._assign(node.target, _below(found, None))
        self._add("loop", _computed(found))

    def with_block(self, node: nodes.With) -> None:
        for target, value in zip(node.targets, node.values, strict=True):
            self._assign(target, self.value(value))

    def macro(self, node: nodes.Macro) -> None:
        self._add(node.name, self._prints(node.body))
        for default in node.defaults:
            for arg in node.args:
                self._add(arg.name, self.value(default))

    def call_block(self, node: nodes.CallBlock) -> None:
        self._add("caller", self._prints(node.body))

    def call(self, node: nodes.Call) -> None:
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

    def _named_macros(self, node: nodes.Call) -> list[nodes.Macro]:
        called = node.node
        name = (
            called.name if isinstance(called, nodes.Name) else called.attr if isinstance(called, nodes.Getattr) else ""
        )
        if node.dyn_args is not None or node.dyn_kwargs is not None:
            return []
        return [macro for macro in self.macros if macro.name == name]

    def _give(self, macro: nodes.Macro, node: nodes.Call) -> None:
        for parameter, value in zip(macro.args, node.args, strict=False):
            self._add(parameter.name, self.value(value))
        for keyword in node.kwargs:
            self._add(keyword.key, self.value(keyword.value))
        for name in ("varargs", "kwargs"):
            self._add(name, _computed(self._given(node)))

    def imported(self, node: nodes.Import) -> None:
        for name in self._defined():
            self._add(node.target, _computed(self.values.get(name, _NOTHING)))

    def imported_names(self, node: nodes.FromImport) -> None:
        for name in node.names:
            if isinstance(name, tuple):
                self._add(name[1], self.values.get(name[0], _NOTHING))

    def _defined(self) -> Iterator[str]:
        yield from (macro.name for macro in self.macros)
        for tree in self.trees:
            targets = [node.target for node in nodes_of(tree, nodes.Assign)]
            for target in (*targets, *(node.target for node in nodes_of(tree, nodes.AssignBlock))):
                yield from target_names(target)

    def _prints(self, body: Iterable[nodes.Node]) -> frozenset[Path]:
        """What the statements print."""
        return _computed(_NOTHING.union(*(self._printed(node) for each in body for node in printing_nodes(each))))

    def _printed(self, node: nodes.Node) -> frozenset[Path]:
        if isinstance(node, nodes.Include):
            return self.text
        if isinstance(node, nodes.FilterBlock):
            return self._prints(node.body) | self._mixed([node.filter])
        if isinstance(node, nodes.CallBlock):
            return self._prints(node.body) | self._mixed([node.call])
        if isinstance(node, nodes.Filter) and node.node is not None and (names := picked_names(node)) is not None:
            given = self.value(node.node)
            return _NOTHING.union(*(_below(given, name) | _below(given, None, name) for name in names))
        return self.value(node)

    # -- expressions ---------------------------------------------------------------------------------------------------

    def value(self, node: nodes.Node) -> frozenset[Path]:
        """The fields that an expression may stand for, or from which it is computed."""
        visit = _EXPRESSIONS.get(type(node))
        return visit(self, node) if visit is not None else self._mixed(node.iter_child_nodes())

    def _mixed(self, operands: Iterable[nodes.Node]) -> frozenset[Path]:
        """The value of an operation on these operands."""
        return _computed(_NOTHING.union(*map(self.value, operands)))

    def _name(self, node: nodes.Name) -> frozenset[Path]:
        return self.values.get(node.name, _NOTHING)

    def _field(self, node: nodes.Getattr) -> frozenset[Path]:
        if isinstance(node.node, nodes.Name) and node.node.name == "loop" and node.attr in COUNTERS:
            return _NOTHING
        return _below(self.value(node.node), node.attr)

    def _item(self, node: nodes.Getitem) -> frozenset[Path]:
        step = node.arg.value if isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str) else None
        if isinstance(node.arg, nodes.Slice):
            return self.value(node.node) | self._mixed(node.arg.iter_child_nodes())
        return _below(self.value(node.node), step) | self._mixed([node.arg])

    def _either(self, node: nodes.BinExpr) -> frozenset[Path]:
        return self.value(node.left) | self.value(node.right)

    def _condition(self, node: nodes.CondExpr) -> frozenset[Path]:
        other = self.value(node.expr2) if node.expr2 is not None else _NOTHING
        return self.value(node.expr1) | other | self._mixed([node.test])

    def _filter(self, node: nodes.Filter) -> frozenset[Path]:
        if node.name in self.clean:
            return _NOTHING
        arguments = _arguments(node)
        given = self.value(node.node) if node.node is not None else _NOTHING
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

    def _test(self, node: nodes.Test) -> frozenset[Path]:
        return _NOTHING if node.name in {"defined", "undefined"} else self._mixed(node.iter_child_nodes())

    def _call(self, node: nodes.Call) -> frozenset[Path]:
        given = _computed(self._given(node))
        if isinstance(node.node, nodes.Getattr):
            on = self.value(node.node.node)
            if node.node.attr == "get" and node.args and isinstance(node.args[0], nodes.Const):
                return _below(on, str(node.args[0].value)) | given
            is_block = isinstance(node.node.node, nodes.Name) and node.node.node.name == "self"
            return _computed(on) | given | (self.text if is_block else _NOTHING)
        if isinstance(node.node, nodes.Name):
            if node.node.name in self.functions:
                return frozenset({FUNCTION})
            if node.node.name in {"render", "super"}:
                return self.text
        return _computed(self.value(node.node)) | given

    def _given(self, node: nodes.Call) -> frozenset[Path]:
        return _NOTHING.union(*map(self.value, _arguments(node)))


def _computed(paths: frozenset[Path]) -> frozenset[Path]:
    """What is computed from a value."""
    return frozenset(path if path[0] == _COMPUTED else (_COMPUTED, *path) for path in paths)


def _below(paths: frozenset[Path], *steps: str | None) -> frozenset[Path]:
    """A field or an item of a value."""
    return frozenset(path if path[0] == _COMPUTED else (*path, *steps)[:_MAX_STEPS] for path in paths)


def _arguments(node: Any) -> list[nodes.Node]:
    dynamic = [each for each in (node.dyn_args, node.dyn_kwargs) if each is not None]
    return [*node.args, *(keyword.value for keyword in node.kwargs), *dynamic]


_STATEMENTS: dict[type[nodes.Node], Callable[[_Flow, Any], None]] = {
    nodes.Assign: _Flow.assignment,
    nodes.AssignBlock: _Flow.block_assignment,
    nodes.For: _Flow.loop,
    nodes.With: _Flow.with_block,
    nodes.Macro: _Flow.macro,
    nodes.CallBlock: _Flow.call_block,
    nodes.Call: _Flow.call,
    nodes.Import: _Flow.imported,
    nodes.FromImport: _Flow.imported_names,
}
_EXPRESSIONS: dict[type[nodes.Node], Callable[[_Flow, Any], frozenset[Path]]] = {
    nodes.Name: _Flow._name,  # noqa: SLF001 - the table of this class
    nodes.Getattr: _Flow._field,  # noqa: SLF001 - the table of this class
    nodes.Getitem: _Flow._item,  # noqa: SLF001 - the table of this class
    nodes.Or: _Flow._either,  # noqa: SLF001 - the table of this class
    nodes.And: _Flow._either,  # noqa: SLF001 - the table of this class
    nodes.CondExpr: _Flow._condition,  # noqa: SLF001 - the table of this class
    nodes.Filter: _Flow._filter,  # noqa: SLF001 - the table of this class
    nodes.Test: _Flow._test,  # noqa: SLF001 - the table of this class
    nodes.Call: _Flow._call,  # noqa: SLF001 - the table of this class
}
