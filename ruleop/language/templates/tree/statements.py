"""The effects of Jinja's statements: the branch that is taken, the passes of a loop, and the names that are set. They
are the same for text and for documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from jinja2.runtime import LoopContext
from jinja2.utils import Namespace

from ruleop.language.templates import syntax
from ruleop.language.templates.syntax import bodies_of, names_in, source_of
from ruleop.language.templates.tree.pieces import Form, MacroValue, Piece, Result, Source, counted, snapshot
from ruleop.language.templates.tree.state import Scope
from ruleop.language.templates.values.data import ListView, noun
from ruleop.language.templates.values.faults import Fault, fault_in
from ruleop.language.templates.values.operators import Group, MappingEntry, given, passes
from ruleop.language.templates.values.undefined import UndefinedValue, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ruleop.errors import Site
    from ruleop.language.templates.tree.expressions import Compute, Expressions


# -- unpacking ---------------------------------------------------------------------------------------------------------
#
# Unpacking of values into several names: `{% for k, v in ... %}` and `{% set a, b = ... %}`.
#
# Python's own would fail with `not enough values to unpack` where `.items()` is missing, or split a key of two letters
# without an error. This allows messages with what to write instead.

_ENTRY: Final = {"key", "value"}
_PLAIN_ROWS: Final = frozenset({MappingEntry, Group, tuple})

Names: TypeAlias = tuple[Any, ...]
"""The target names; a tuple for names in brackets."""


def rows(found: Any, names: Names, source: str) -> list[tuple[Any, ...]]:
    """The items of a loop with several names."""
    if isinstance(found, Mapping):
        pair = names if len(names) == 2 and all(isinstance(name, str) for name in names) else ("key", "value")
        raise Fault(
            f"a loop over a mapping iterates over its keys: write `for {pair[0]}, {pair[1]} in {source}.items()`"
        )
    size = len(names) if all(isinstance(name, str) for name in names) else -1
    return [
        row if type(row) in _PLAIN_ROWS and len(row) == size else unpacked(row, names) for row in found
    ]  # the first case is by far the most common


def unpacked(value: Any, names: Names) -> tuple[Any, ...]:
    value = given(value)
    if isinstance(value, (list, tuple, range, ListView)):
        if len(value) == len(names):
            return tuple(
                unpacked(each, name) if isinstance(name, tuple) else each
                for each, name in zip(value, names, strict=True)
            )
        what = f"a list of {len(value)} item{'' if len(value) == 1 else 's'}"
    else:
        what = noun(value)
    raise Fault(
        f"{what} cannot be unpacked into `{', '.join(map(_format_name, names))}`: {_unpacking_hint(value, names)}"
    )


def _format_name(name: str | Names) -> str:
    return name if isinstance(name, str) else f"({', '.join(map(_format_name, name))})"


def _unpacking_hint(value: Any, names: Names) -> str:
    if not isinstance(value, Mapping):
        return f"a list of {len(names)} items is needed"
    return (
        "write `for item in ...` and read item.key, item.value"
        if set(value) == _ENTRY
        else "use one name and read its fields"
    )


# -- statements --------------------------------------------------------------------------------------------------------

_AGAIN: Final = " again"  # the items and the depth of a call of a recursive loop; no template can write the name
_SPECIAL: Final = frozenset({"caller", "varargs", "kwargs"})


class Statements:
    """Makes functions of a scope. Each is made once, and kept by its node."""

    def __init__(self, expressions: Expressions, file: Source) -> None:
        self.expressions, self.file = expressions, file

    def control(
        self, node: syntax.Stmt, bodies: Sequence[Callable[[Scope, Result], None]]
    ) -> Callable[[Scope, Result], None]:
        """The function that runs the body of the branch that is taken, of each pass, or of a block in its own scope.
        `bodies`: in the order of `bodies_of`."""
        counts = [self.file.counter(each) for each in bodies_of(node)]
        bodies = [counted(body, count) for body, count in zip(bodies, counts, strict=True)]
        if isinstance(node, syntax.If):
            choose = self.branch(node)
            return lambda scope, result: bodies[choose(scope)](scope, result)
        if isinstance(node, syntax.For):
            passes, place = self.passes(node), self.file.site_of(node)

            def loop(scope: Scope, result: Result, site: Site = place) -> None:  # noqa: ARG001
                # `site`: `template_line` reads it when the guard interrupts the loop
                some = False
                for inner in passes(scope):
                    some = True
                    bodies[0](inner, result)
                if not some:
                    bodies[1](scope, result)

            return loop
        assert isinstance(node, (syntax.With, syntax.Block))
        enter = self.inner_of(node) if isinstance(node, syntax.With) else self.block_of(node)
        return lambda scope, result: bodies[0](enter(scope), result)

    def branch(self, node: syntax.If) -> Callable[[Scope], int]:
        """The number of the branch that is taken, that of `else` if none is."""
        tests = [self._placed(self.expressions.condition(each.test), each) for each in node.branches]
        sites = [self.file.site_of(each) for each in node.branches]

        def choose(scope: Scope) -> int:
            for number, test in enumerate(tests):
                found = test(scope)
                if isinstance(found, UndefinedValue):
                    raise found.fault().at(sites[number], "")
                if found:
                    return number
            return len(tests)

        return choose

    def passes(self, node: syntax.For) -> Callable[[Scope], Iterator[Scope]]:
        """The scope of each pass."""
        iterable = self.expressions.compute(node.iterable)
        test = self.expressions.compute(node.test) if node.test is not None else None
        site = self.file.site_of(node)
        several, source = names_of(node.target), source_of(node.iterable) or "mapping"
        bind = binding(node.target)
        form = Form(self.file, (node,)) if node.recursive else None

        def items(scope: Scope, found: Any) -> list[Any]:
            found = passes(found)
            found = rows(found, several, source) if several else list(found)
            if test is None:
                return found  # type: ignore[no-any-return]
            kept = []
            for item in found:
                inner = scope.inner()
                bind(inner, item)
                if test(inner):
                    kept.append(item)
            return kept

        def run(scope: Scope) -> Iterator[Scope]:
            again = scope.names.get(_AGAIN)
            depth = 0 if again is None else again[1]

            def recurse(inner: Any, _recurse: Any, depth: int = 0) -> Piece:
                assert form is not None
                return Piece(form, scope.inner({_AGAIN: (inner, depth)}))

            try:
                kept = items(scope, iterable(scope) if again is None else again[0])
            except Exception as error:  # noqa: BLE001 - every error of an expression gets its place
                raise fault_in(error).at(site, "") from None
            context = LoopContext(kept, Unknown, recurse if form is not None else None, depth)  # type: ignore[arg-type]
            for item, loop in context:
                inner = Scope({"loop": loop}, scope)
                bind(inner, item)
                yield inner

        return run

    def effect(self, node: syntax.Stmt) -> Callable[[Scope], None]:
        if isinstance(node, syntax.Set):
            return self._assign(node)
        if isinstance(node, syntax.SetBlock):
            return self._assign_block(node)
        if isinstance(node, syntax.Macro):
            return self._macro(node)
        assert isinstance(node, (syntax.Import, syntax.FromImport))
        return self._import(node)

    def inner_of(self, node: syntax.With) -> Callable[[Scope], Scope]:
        """The scope of a `with` block. Its values see the names outside."""
        values = self.expressions.computed(node.values)
        binds = [binding(each) for each in node.targets]

        def enter(scope: Scope) -> Scope:
            inner = scope.inner()
            for bind, value in zip(binds, [each(scope) for each in values], strict=True):
                bind(inner, value)
            return inner

        return enter

    def block_of(self, node: syntax.Block) -> Callable[[Scope], Scope]:
        """The scope of a block of a file that others extend, with `super`."""
        if not node.overridden:
            return lambda scope: scope.inner()
        first, *others = node.overridden
        form = Form(self.file, (replace(first, overridden=tuple(others)),))
        return lambda scope: scope.inner({"super": MacroValue("super", (), (), frozenset(), form, scope)})

    def _assign(self, node: syntax.Set) -> Callable[[Scope], None]:
        value, bind = self._placed(self.expressions.compute(node.value), node), binding(node.target)
        site = self.file.site_of(node)

        def assign(scope: Scope) -> None:
            found = value(scope)
            try:
                bind(scope, found.frozen() if type(found) is Piece else found)
            except Fault as fault:
                raise fault.at(site, "") from None

        return assign

    def _placed(self, compute: Compute, tag: syntax.Node) -> Compute:
        """An expression of a tag: its errors have the line of the tag."""
        site = self.file.site_of(tag)

        def placed(scope: Scope) -> Any:
            try:
                return compute(scope)
            except Exception as error:  # noqa: BLE001 - every error of an expression gets its place
                raise fault_in(error).at(site, "") from None

        return placed

    def _assign_block(self, node: syntax.SetBlock) -> Callable[[Scope], None]:
        form, bind = Form(self.file, node.body), binding(node.target)
        name = " captured"
        through = (
            self.expressions.filtered(lambda scope: scope.get(name), node.filter) if node.filter is not None else None
        )

        def assign(scope: Scope) -> None:
            piece = Piece(form, snapshot(scope))
            bind(scope, piece if through is None else through(scope.inner({name: piece})))

        return assign

    def _macro(self, node: syntax.Macro) -> Callable[[Scope], None]:
        params, defaults = node.params, self.expressions.computed(node.defaults)
        form = Form(self.file, node.body)
        takes = _SPECIAL & {*params, *(name for each in node.body for name in names_in(each))}

        def define(scope: Scope) -> None:
            scope.names[node.name] = MacroValue(node.name, params, defaults, takes - {*params}, form, scope)

        return define

    def _import(self, node: syntax.Import | syntax.FromImport) -> Callable[[Scope], None]:
        file, with_context = node.file, node.with_context

        def load(scope: Scope) -> None:
            outer = scope if with_context else self.file.empty_scope()
            module = self.file.module(file, outer)
            if isinstance(node, syntax.Import):
                scope.names[node.target] = module
                return
            for name, here in node.names:
                scope.names[here] = module.get(
                    name, Unknown(f"the template {file!r} does not export the requested name {name!r}", name=name)
                )

        return load


def names_of(target: syntax.Target) -> Names:
    """The names of a target; () for a single name."""
    if not isinstance(target, syntax.Variables):
        return ()
    return tuple(names_of(each) if isinstance(each, syntax.Variables) else each.name for each in target.items)


def binding(target: syntax.Target) -> Callable[[Scope, Any], None]:
    """Sets the names of a target."""
    if isinstance(target, syntax.Attribute):
        return _attribute_binding(target)
    if isinstance(target, syntax.Variable):
        name = target.name

        def bind(scope: Scope, value: Any) -> None:
            scope.names[name] = value

        return bind
    names, binds = names_of(target), [binding(each) for each in target.items]

    def bind_several(scope: Scope, value: Any) -> None:
        for each, item in zip(binds, unpacked(value, names), strict=True):
            each(scope, item)

    return bind_several


def _attribute_binding(target: syntax.Attribute) -> Callable[[Scope, Any], None]:
    def bind(scope: Scope, value: Any) -> None:
        namespace = scope.get(target.name)
        if type(namespace) is not Namespace:
            raise Fault("cannot assign attribute on non-namespace object")
        namespace[target.attribute] = value

    return bind
