"""Runs the statements of templates over types: every branch once, each with what its condition shows.

The body of a macro is run at each call, with the types of its arguments, so a macro that is only called where a field
is set may use that field.
"""

from __future__ import annotations

import re
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.checking.typing import narrowing
from ruleop.authoring.checking.typing.expressions import EXPRESSIONS
from ruleop.authoring.checking.typing.filters import items_of
from ruleop.authoring.checking.typing.inference import Inference, Report, TypeEnvironment, joined
from ruleop.authoring.checking.typing.types import (
    BOOLEAN,
    CAPTURED,
    CONTAINERS,
    INTEGER,
    MODULE,
    OTHER,
    STRING,
    UNKNOWN,
    Type,
    Undefined,
    join,
    misfit,
)
from ruleop.language.templates import syntax
from ruleop.language.templates.syntax import source_of
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ruleop.language.templates.compile import Library

_MAX_DEPTH: Final = 8  # of macros and files inside each other
_LOOP: Final = replace(
    OTHER,
    fields={
        **dict.fromkeys(("index", "index0", "revindex", "revindex0", "length", "depth", "depth0"), INTEGER),
        **dict.fromkeys(("first", "last"), BOOLEAN),
    },
)
_TEXT: Final = replace(STRING, code=CAPTURED)
_COMMENT: Final = re.compile(r"(?:^|\s)#")


@dataclass(frozen=True, slots=True, eq=False)
class TypedMacro:
    """A macro, or the body of a `call` block, with the names of its file."""

    node: syntax.Macro | syntax.CallBlock
    names: dict[str, Type]


@dataclass(slots=True)
class Runner:
    """Runs templates. `printed` has the type of each printed node, by the node's id."""

    library: Library
    inference: Inference
    printed: dict[int, Type] = field(default_factory=dict)
    depth: int = 0
    _running: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, library: Library, report: Report) -> Runner:
        runner = cls(library, Inference(report, EXPRESSIONS))
        runner.inference.run_macro = runner.call
        runner.inference.run_file = runner.file
        return runner

    # -- files ---------------------------------------------------------------------------------------------------------

    def file(self, name: str, env: TypeEnvironment) -> TypeEnvironment:
        """Runs a file of templates/, and returns what is known at its end."""
        if name not in self.library.texts or self._running.count(name) > 1 or self.depth > _MAX_DEPTH:
            return env
        self._running.append(name)
        self.depth += 1
        try:
            return self.block(self.library.templates.file(name).form.body, env)
        finally:
            self.depth -= 1
            self._running.pop()

    def block(self, body: Iterable[syntax.Stmt], env: TypeEnvironment) -> TypeEnvironment:
        before = ""  # the text of a line before what is printed in it
        for node in body:
            match node:
                case syntax.Data():
                    before = node.text.rpartition("\n")[2] if "\n" in node.text else before + node.text
                case syntax.Print() if _COMMENT.search(before, max(0, before.rfind("'"), before.rfind('"'))):
                    with self.inference.report.silence():  # it is not evaluated, or is part of a script
                        self._print(node.value, env)
                case syntax.Print():
                    self._print(node.value, env)
                    before += "x"
                case _:
                    env, before = _STATEMENTS[type(node)](self, node, env), ""
        return env

    # -- statements ----------------------------------------------------------------------------------------------------

    def _print(self, node: syntax.Expr, env: TypeEnvironment) -> None:
        found = self.inference.infer(node, env)
        self.record(node, found)
        self.inference.use(found, node, omits=True)

    def record(self, node: syntax.Node, found: Type) -> None:
        known = self.printed.get(id(node))
        self.printed[id(node)] = found if known is None else join((known, found))

    def branch(self, node: syntax.If, env: TypeEnvironment) -> TypeEnvironment:
        ends: list[TypeEnvironment] = []
        rest = env
        for each in node.branches:
            truth = self.inference.condition(each.test, rest)
            if truth is not False:
                ends.append(self.block(each.body, narrowing.assume(self.inference, each.test, rest, truth=True)))
            if truth is True:
                return joined(ends)
            rest = narrowing.assume(self.inference, each.test, rest, truth=False)
        ends.append(self.block(node.otherwise, rest))
        return joined(ends)

    def loop(self, node: syntax.For, env: TypeEnvironment) -> TypeEnvironment:
        inference = self.inference
        value = inference.used(node.iterable, env)
        self._check_loop(node, value)
        item = items_of(value.only({"mapping", "list"})) if value.kinds & {"mapping", "list"} else UNKNOWN
        inner = env.with_names({**_unpacked(node.target, item), "loop": _LOOP})
        iterated = node.iterable
        inner = (
            narrowing.assume(inference, iterated, inner, truth=True) if value.kinds <= {"list", "mapping"} else inner
        )
        if node.test is not None:
            inference.condition(node.test, inner)
            inner = narrowing.assume(inference, node.test, inner, truth=True)
        self.block(node.body, inner)
        self.block(node.otherwise, env)
        return env

    def _check_loop(self, node: syntax.For, value: Type) -> None:
        if not value.is_known or not value.kinds or "other" in value.kinds:
            return
        iterated = node.iterable
        what = source_of(iterated) or "this"
        wrong, possible = misfit(value.kinds, CONTAINERS)
        if wrong:
            message = f"{what} {wrong}: a loop needs a list or a mapping"
            self.inference.problem("type-mismatch", message, node.iterable, source_of(iterated), warn=possible)
        elif value.kinds == {"mapping"} and isinstance(node.target, syntax.Variables):
            names = ", ".join("..." if isinstance(each, syntax.Variables) else each.name for each in node.target.items)
            message = f"{what} is a mapping, whose loop has only its keys: write `for {names} in {what}.items()`"
            self.inference.problem("type-mismatch", message, node.iterable, source_of(iterated))

    def assignment(self, node: syntax.Set, env: TypeEnvironment) -> TypeEnvironment:
        value = self.inference.infer(node.value, env)
        return env.with_names(_unpacked(node.target, value))

    def block_assignment(self, node: syntax.SetBlock, env: TypeEnvironment) -> TypeEnvironment:
        self.block(node.body, env)
        if node.filter is not None:
            self.inference.infer(node.filter, env)
        if not isinstance(node.target, syntax.Variable):
            return env
        return env.with_names({node.target.name: _TEXT})

    def with_block(self, node: syntax.With, env: TypeEnvironment) -> TypeEnvironment:
        inner = env
        for target, value in zip(node.targets, node.values, strict=True):
            inner = inner.with_names(_unpacked(target, self.inference.infer(value, env)))
        self.block(node.body, inner)
        return env

    def macro(self, node: syntax.Macro, env: TypeEnvironment) -> TypeEnvironment:
        code = TypedMacro(node, {})
        return env.with_names({node.name: replace(OTHER, code=code)})

    def call_block(self, node: syntax.CallBlock, env: TypeEnvironment) -> TypeEnvironment:
        caller = replace(OTHER, code=TypedMacro(node, {}))
        self.inference.infer(node.call, env.with_names({"caller": caller}))
        self.record(node, _TEXT)
        return env

    def filter_block(self, node: syntax.FilterBlock, env: TypeEnvironment) -> TypeEnvironment:
        self.block(node.body, env)
        self.inference.infer(node.filter, env)
        self.record(node, _TEXT)
        return env

    def include(self, node: syntax.Include, env: TypeEnvironment) -> TypeEnvironment:
        for name in node.files:
            self.file(name, env if node.with_context else self.inference.base)
        self.record(node, _TEXT)
        return env

    def imported(self, node: syntax.Import, env: TypeEnvironment) -> TypeEnvironment:
        names = self._module(node, env)
        return env.with_names({node.target: replace(OTHER, code=MODULE, fields=names)})

    def imported_names(self, node: syntax.FromImport, env: TypeEnvironment) -> TypeEnvironment:
        names = self._module(node, env)
        return env.with_names({alias: names.get(name, UNKNOWN) for name, alias in node.names})

    def _module(self, node: syntax.Import | syntax.FromImport, env: TypeEnvironment) -> Mapping[str, Type]:
        with self.inference.report.silence():
            end = self.file(node.file, env if node.with_context else TypeEnvironment())
        found = {key: each for key, each in end.names.items() if env.names.get(key) is not each}
        for each in found.values():
            if isinstance(each.code, TypedMacro):
                each.code.names.update(found)
        return found

    def part(self, node: syntax.Block, env: TypeEnvironment) -> TypeEnvironment:
        self.block(node.body, env)
        return env

    # -- macros --------------------------------------------------------------------------------------------------------

    def call(self, code: Any, node: syntax.Call, env: TypeEnvironment) -> Type:
        """Runs the body of a macro with the types of the arguments, and returns the type of its result."""
        inference = self.inference
        if not isinstance(code, TypedMacro) or self.depth > _MAX_DEPTH:
            return UNKNOWN
        given = {**dict(_arguments(inference, code.node, node, env))}
        if isinstance(code.node, syntax.CallBlock):
            given["caller"] = env.names.get("caller", UNKNOWN)
        inner = env.with_names(code.names).with_names(given)
        self.depth += 1
        try:
            self.block(code.node.body, inner)
        finally:
            self.depth -= 1
        return _TEXT


def _arguments(
    inference: Inference, macro: syntax.Macro | syntax.CallBlock, call: syntax.Call, env: TypeEnvironment
) -> Iterator[tuple[str, Type]]:
    """The types of the parameters of a macro at a call."""
    given = {**dict(zip(macro.params, call.args, strict=False)), **call.kwargs}
    defaults = dict(zip(reversed(macro.params), reversed(macro.defaults), strict=False))
    for name in macro.params:
        if name in given:
            yield name, inference.quiet(given[name], env)
        elif call.is_dynamic:
            yield name, UNKNOWN
        elif name in defaults:
            yield name, inference.quiet(defaults[name], env)
        else:
            yield name, Type(frozenset(), undefined=Undefined("unset", name))
    yield from (("varargs", UNKNOWN), ("kwargs", UNKNOWN))


def _unpacked(target: syntax.Target, value: Type) -> dict[str, Type]:
    """The names of a target with their types."""
    if isinstance(target, syntax.Variable):
        return {target.name: value}
    if not isinstance(target, syntax.Variables):
        return {}
    elements = value.elements if value.elements is not None and len(value.elements) == len(target.items) else None
    found: dict[str, Type] = {}
    for number, each in enumerate(target.items):
        found |= _unpacked(each, elements[number] if elements is not None else UNKNOWN)
    return found


_STATEMENTS: dict[type[syntax.Node], Callable[[Runner, Any, TypeEnvironment], TypeEnvironment]] = {
    syntax.If: Runner.branch,
    syntax.For: Runner.loop,
    syntax.Set: Runner.assignment,
    syntax.SetBlock: Runner.block_assignment,
    syntax.With: Runner.with_block,
    syntax.Macro: Runner.macro,
    syntax.CallBlock: Runner.call_block,
    syntax.FilterBlock: Runner.filter_block,
    syntax.Include: Runner.include,
    syntax.Import: Runner.imported,
    syntax.FromImport: Runner.imported_names,
    syntax.Block: Runner.part,
}
