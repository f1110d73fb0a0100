"""Runs the statements of templates over types: every branch once, each with what its condition shows.

The body of a macro is run at each call, with the types of its arguments, so a macro that is only called where a field
is set may use that field.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from jinja2 import nodes

from ruleop.authoring.checking.typing import narrowing
from ruleop.authoring.checking.typing.environments import Environment, joined, text_of
from ruleop.authoring.checking.typing.expressions import EXPRESSIONS
from ruleop.authoring.checking.typing.filters import items_of
from ruleop.authoring.checking.typing.inference import Inference
from ruleop.authoring.checking.typing.type_findings import Report, Source
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
from ruleop.core.errors import Site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ruleop.core.templating import Library

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
class Macro:
    """A macro, or the body of a `call` block, with the names of its file."""

    node: nodes.Macro | nodes.CallBlock
    source: Source
    names: dict[str, Type]


@dataclass(slots=True)
class Runner:
    """Runs templates. `printed` has the type of each printed node, by the node's id."""

    library: Library
    inference: Inference
    printed: dict[int, Type] = field(default_factory=dict)
    depth: int = 0
    _blocks: dict[str, tuple[nodes.Block, Source]] = field(default_factory=dict)
    _running: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, library: Library, report: Report) -> Runner:
        runner = cls(library, Inference(report, EXPRESSIONS))
        runner.inference.run_macro = runner.call
        runner.inference.run_file = runner.file
        return runner

    # -- files ---------------------------------------------------------------------------------------------------------

    def file(self, name: str, env: Environment) -> Environment:
        """Runs a file of templates/, and returns what is known at its end."""
        if name not in self.library.texts or self._running.count(name) > 1 or self.depth > _MAX_DEPTH:
            return env
        self._running.append(name)
        self.depth += 1
        try:
            with self.inference.within(Source(Site(self.library.prefix + name, 1), is_file=True)):
                return self._template(self.library.written_tree(name), env)
        finally:
            self.depth -= 1
            self._running.pop()

    def _template(self, tree: nodes.Template, env: Environment) -> Environment:
        parent = next((node for node in tree.body if isinstance(node, nodes.Extends)), None)
        if parent is None:
            return self.block(tree.body, env)
        for node in tree.find_all(nodes.Block):
            self._blocks.setdefault(node.name, (node, self.inference.source))
        own = [node for node in tree.body if not isinstance(node, (nodes.Extends, nodes.Block, nodes.Output))]
        env = self.block(own, env)
        if isinstance(parent.template, nodes.Const):
            env = self.file(str(parent.template.value), env)
        return env

    def block(self, body: Iterable[nodes.Node], env: Environment) -> Environment:
        for node in body:
            env = self.statement(node, env)
        return env

    def statement(self, node: nodes.Node, env: Environment) -> Environment:
        run = _STATEMENTS.get(type(node))
        if run is not None:
            return run(self, node, env)
        for child in node.iter_child_nodes():
            if isinstance(child, nodes.Expr):
                self.inference.infer(child, env)
            else:
                self.statement(child, env)
        return env

    # -- statements ----------------------------------------------------------------------------------------------------

    def output(self, node: nodes.Output, env: Environment) -> Environment:
        before = ""
        for child in node.nodes:
            if isinstance(child, nodes.TemplateData):
                before = child.data.rpartition("\n")[2] if "\n" in child.data else before + child.data
                continue
            # A slot in a comment of YAML is not evaluated, or is part of a script.
            if _COMMENT.search(before, max(0, before.rfind("'"), before.rfind('"'))):
                with self.inference.report.silence():
                    self._print(child, env)
                continue
            self._print(child, env)
            before += "x"
        return env

    def _print(self, node: nodes.Node, env: Environment) -> None:
        found = self.inference.infer(node, env)
        self.record(node, found)
        self.inference.use(found, node, omits=True)

    def record(self, node: nodes.Node, found: Type) -> None:
        known = self.printed.get(id(node))
        self.printed[id(node)] = found if known is None else join((known, found))

    def branch(self, node: nodes.If, env: Environment) -> Environment:
        ends: list[Environment] = []
        rest = env
        for test, body in ((node.test, node.body), *((each.test, each.body) for each in node.elif_)):
            truth = self.inference.condition(test, rest)
            if truth is not False:
                ends.append(self.block(body, narrowing.assume(self.inference, test, rest, truth=True)))
            if truth is True:
                return joined(ends)
            rest = narrowing.assume(self.inference, test, rest, truth=False)
        ends.append(self.block(node.else_, rest))
        return joined(ends)

    def loop(self, node: nodes.For, env: Environment) -> Environment:
        inference = self.inference
        value = inference.used(node.iter, env)
        self._check_loop(node, value)
        item = items_of(value.only({"mapping", "list"})) if value.kinds & {"mapping", "list"} else UNKNOWN
        inner = env.with_names({**_unpacked(node.target, item), "loop": _LOOP})
        iterated = node.iter
        inner = (
            narrowing.assume(inference, iterated, inner, truth=True) if value.kinds <= {"list", "mapping"} else inner
        )
        if node.test is not None:
            inference.condition(node.test, inner)
            inner = narrowing.assume(inference, node.test, inner, truth=True)
        self.block(node.body, inner)
        self.block(node.else_, env)
        return env

    def _check_loop(self, node: nodes.For, value: Type) -> None:
        if not value.is_known or not value.kinds or "other" in value.kinds:
            return
        iterated = node.iter
        what = text_of(iterated) or "this"
        wrong, possible = misfit(value.kinds, CONTAINERS)
        if wrong:
            message = f"{what} {wrong}: a loop needs a list or a mapping"
            self.inference.problem("type-mismatch", message, node.iter, text_of(iterated), warn=possible)
        elif value.kinds == {"mapping"} and isinstance(node.target, nodes.Tuple):
            names = ", ".join(getattr(each, "name", "...") for each in node.target.items)
            message = f"{what} is a mapping, whose loop has only its keys: write `for {names} in {what}.items()`"
            self.inference.problem("type-mismatch", message, node.iter, text_of(iterated))

    def assignment(self, node: nodes.Assign, env: Environment) -> Environment:
        value = self.inference.infer(node.node, env)
        if isinstance(node.target, nodes.NSRef):
            return env
        return env.with_names(_unpacked(node.target, value))

    def block_assignment(self, node: nodes.AssignBlock, env: Environment) -> Environment:
        self.block(node.body, env)
        if node.filter is not None:
            self.inference.infer(node.filter, env)
        if not isinstance(node.target, nodes.Name):
            return env
        return env.with_names({node.target.name: _TEXT})

    def with_block(self, node: nodes.With, env: Environment) -> Environment:
        inner = env
        for target, value in zip(node.targets, node.values, strict=True):
            inner = inner.with_names(_unpacked(target, self.inference.infer(value, env)))
        self.block(node.body, inner)
        return env

    def macro(self, node: nodes.Macro, env: Environment) -> Environment:
        code = Macro(node, self.inference.source, {})
        return env.with_names({node.name: replace(OTHER, code=code)})

    def call_block(self, node: nodes.CallBlock, env: Environment) -> Environment:
        caller = replace(OTHER, code=Macro(node, self.inference.source, {}))
        self.inference.infer(node.call, env.with_names({"caller": caller}))
        self.record(node, _TEXT)
        return env

    def filter_block(self, node: nodes.FilterBlock, env: Environment) -> Environment:
        self.block(node.body, env)
        self.inference.infer(node.filter, env)
        self.record(node, _TEXT)
        return env

    def include(self, node: nodes.Include, env: Environment) -> Environment:
        for name in names_in(node.template):
            self.file(name, env if node.with_context else self.inference.base)
        self.record(node, _TEXT)
        return env

    def imported(self, node: nodes.Import, env: Environment) -> Environment:
        names = self._module(node, env)
        return env.with_names({node.target: replace(OTHER, code=MODULE, fields=names)})

    def imported_names(self, node: nodes.FromImport, env: Environment) -> Environment:
        names = self._module(node, env)
        pairs = [name if isinstance(name, tuple) else (name, name) for name in node.names]
        return env.with_names({alias: names.get(name, UNKNOWN) for name, alias in pairs})

    def _module(self, node: nodes.Import | nodes.FromImport, env: Environment) -> Mapping[str, Type]:
        found: dict[str, Type] = {}
        for name in names_in(node.template):
            with self.inference.report.silence():
                end = self.file(name, env if node.with_context else Environment())
            found.update({key: each for key, each in end.names.items() if env.names.get(key) is not each})
        for each in found.values():
            if isinstance(each.code, Macro):
                each.code.names.update(found)
        return found

    def override(self, node: nodes.Block, env: Environment) -> Environment:
        found, source = self._blocks.get(node.name, (node, self.inference.source))
        with self.inference.within(source):
            self.block(found.body, env)
        return env

    # -- macros --------------------------------------------------------------------------------------------------------

    def call(self, code: Any, node: nodes.Call, env: Environment) -> Type:
        """Runs the body of a macro with the types of the arguments, and returns the type of its result."""
        inference = self.inference
        if not isinstance(code, Macro) or self.depth > _MAX_DEPTH:
            return UNKNOWN
        given = {**dict(_arguments(inference, code.node, node, env))}
        if isinstance(code.node, nodes.CallBlock):
            given["caller"] = env.names.get("caller", UNKNOWN)
        inner = env.with_names(code.names).with_names(given)
        self.depth += 1
        try:
            with inference.within(code.source):
                self.block(code.node.body, inner)
        finally:
            self.depth -= 1
        return _TEXT


def _arguments(
    inference: Inference, macro: nodes.Macro | nodes.CallBlock, call: nodes.Call, env: Environment
) -> Iterator[tuple[str, Type]]:
    """The types of the parameters of a macro at a call."""
    names = [each.name for each in macro.args]
    is_dynamic = call.dyn_args is not None or call.dyn_kwargs is not None
    given = dict(zip(names, call.args, strict=False)) | {each.key: each.value for each in call.kwargs}
    defaults = dict(zip(reversed(names), reversed(macro.defaults), strict=False))
    for name in names:
        if name in given:
            yield name, inference.quiet(given[name], env)
        elif is_dynamic:
            yield name, UNKNOWN
        elif name in defaults:
            yield name, inference.quiet(defaults[name], env)
        else:
            yield name, Type(frozenset(), undefined=Undefined("unset", name))
    yield from (("varargs", UNKNOWN), ("kwargs", UNKNOWN))


def names_in(template: nodes.Node) -> Iterator[str]:
    """The file names in an include or import."""
    options = template.items if isinstance(template, (nodes.List, nodes.Tuple)) else [template]
    yield from (str(each.value) for each in options if isinstance(each, nodes.Const))


def _unpacked(target: nodes.Node, value: Type) -> dict[str, Type]:
    """The names of a target with their types."""
    if isinstance(target, nodes.Name):
        return {target.name: value}
    if not isinstance(target, (nodes.Tuple, nodes.List)):
        return {}
    elements = value.elements if value.elements is not None and len(value.elements) == len(target.items) else None
    found: dict[str, Type] = {}
    for number, each in enumerate(target.items):
        found |= _unpacked(each, elements[number] if elements is not None else UNKNOWN)
    return found


_STATEMENTS: dict[type[nodes.Node], Callable[[Runner, Any, Environment], Environment]] = {
    nodes.Output: Runner.output,
    nodes.If: Runner.branch,
    nodes.For: Runner.loop,
    nodes.Assign: Runner.assignment,
    nodes.AssignBlock: Runner.block_assignment,
    nodes.With: Runner.with_block,
    nodes.Macro: Runner.macro,
    nodes.CallBlock: Runner.call_block,
    nodes.FilterBlock: Runner.filter_block,
    nodes.Include: Runner.include,
    nodes.Import: Runner.imported,
    nodes.FromImport: Runner.imported_names,
    nodes.Block: Runner.override,
}
