"""Writes what a template would yield before anything is rendered: one of its bodies, with a slot for each value."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jinja2 import nodes

from ruleop.core.errors import Site
from ruleop.core.templating.bodies.branch_conditions import (
    Atom,
    Both,
    Bound,
    Conditions,
    Formula,
    Loop,
    Outcomes,
    Place,
    Scope,
)
from ruleop.core.templating.compile.references import target_names
from ruleop.core.templating.values.text import Lit, Slot, SlotPlace, Text

if TYPE_CHECKING:
    from ruleop.core.templating.compile.library import Library

StandIn = Callable[[nodes.Node], Any]
Trees = Callable[[str], nodes.Template]

MAX_FRAME: Final = 60  # entries of calls, files and passes in each other
MAX_NESTED: Final = 2  # calls of one macro inside itself
MAX_STATEMENTS: Final = 20_000


class TooLarge(Exception):  # noqa: N818 - describes the template
    """A body that no pass could render."""


@dataclass(frozen=True, slots=True)
class Printed:
    """One `{{ ... }}`."""

    place: SlotPlace
    node: nodes.Node
    captured: tuple[str | Printed, ...] | None = None  # what a macro prints in the middle of a line


class Branch(NamedTuple):
    """The body of an `if`, an `elif`, an `else` or a loop that was written."""

    statement: int  # the id of its node
    number: int


class Option(NamedTuple):
    """One way to continue at a statement, with the outcomes of its conditions. An empty branch is none."""

    branch: Branch | None
    requirements: tuple[tuple[Formula, bool], ...]


def as_text(_: nodes.Node) -> Any:
    return ""


@dataclass(frozen=True, slots=True)
class _Macro:
    node: nodes.Macro
    path: str
    scope: Scope


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of a template with those that it overrides."""

    node: nodes.Block
    path: str
    parent: _Block | None


class _Module(dict[str, Bound]):
    """The names that an imported file defines."""


@dataclass(slots=True)
class Writer:
    """Writes the parts that a template would yield, with a slot for each value. A loop has one pass, or two if it asks
    for the first or the last."""

    library: Library
    path: str
    trees: Trees
    outcomes: Outcomes
    conditions: Conditions
    stand_in: StandIn = as_text
    of_slot: dict[int, Printed] = field(default_factory=dict)
    kept: list[Slot] = field(default_factory=list)  # so that no id is given out again
    choices: list[tuple[Option, ...]] = field(default_factory=list)
    taken: set[Branch] = field(default_factory=set)
    _blocks: dict[str, _Block] = field(default_factory=dict)
    _frame: tuple[Hashable, ...] = ()  # the calls, files and passes of loops around a statement
    _versions: dict[Hashable, Hashable] = field(default_factory=dict)  # of namespaces, after `set ns.x`
    statements: int = 0

    def file(self, name: str) -> list[Any]:
        return self._template(self.trees(name), {})

    def parts(self, body: Iterable[nodes.Node], scope: Scope) -> list[Any]:
        found: list[Any] = []
        for node in body:
            self.statements += 1
            if self.statements > MAX_STATEMENTS:
                raise TooLarge
            found += self._statement(node, scope)
        return found

    # -- statements ----------------------------------------------------------------------------------------------------

    def _statement(self, node: nodes.Node, scope: Scope) -> list[Any]:
        if isinstance(node, nodes.Output):
            return [part for child in node.nodes for part in self._printed(child, scope)]
        if isinstance(node, nodes.If):
            return self._branch(node, scope)
        if isinstance(node, nodes.For):
            return self._loop(node, scope)
        if isinstance(node, nodes.Macro):
            scope[node.name] = Bound(_Macro(node, self.path, scope), self._identity(node))
        elif isinstance(node, nodes.AssignBlock) and isinstance(node.target, nodes.Name):
            text = self._through(node.filter, Text(self.parts(node.body, {**scope})))
            scope[node.target.name] = Bound(text, self._identity(node))
        elif isinstance(node, nodes.Assign):
            self._assign(node.target, node.node, scope, scope)
        elif isinstance(node, (nodes.Import, nodes.FromImport)):
            self._import(node, scope)
        elif isinstance(node, nodes.Include):
            return self._text_or_slot(self._included(node, scope), node)
        elif isinstance(node, nodes.CallBlock):
            caller = Bound(Text(self.parts(node.body, self._opaque(node.args, node, scope))), self._identity(node))
            return self._text_or_slot(self._called(node.call, {**scope, "caller": caller}), node)
        elif isinstance(node, nodes.FilterBlock):
            return self._text_or_slot(self._through(node.filter, Text(self.parts(node.body, {**scope}))), node)
        elif isinstance(node, nodes.With):
            inner = {**scope}
            for target, value in zip(node.targets, node.values, strict=True):
                self._assign(target, value, inner, scope)
            return self.parts(node.body, inner)
        elif isinstance(node, nodes.Block):
            block = self._blocks.get(node.name)
            return self._override(block or _Block(node, self.path, None), scope)
        else:
            return self.parts(getattr(node, "body", ()), scope)
        return []

    def _identity(self, node: nodes.Node) -> Hashable:
        return id(node), self._frame

    def _opaque(self, targets: Iterable[nodes.Node], node: nodes.Node, scope: Scope) -> Scope:
        """The scope with variables of unknown values."""
        names = [name for target in targets for name in target_names(target)]
        return {**scope, **{name: Bound(None, (name, self._identity(node))) for name in names}}

    def _assign(self, target: nodes.Node, value: nodes.Node, scope: Scope, outer: Scope) -> None:
        if isinstance(target, nodes.NSRef):
            if target.name in scope:
                self._versions[scope[target.name].identity] = self._identity(target)
            return
        if isinstance(target, nodes.Name):
            captured = outer[value.name].value if isinstance(value, nodes.Name) and value.name in outer else None
            captured = captured or self._captured(value, outer)
            scope[target.name] = Bound(captured, self._identity(target))
            return
        scope.update(self._opaque([target], target, {}))

    def _choose(self, *options: Option) -> Option:
        """The option whose requirements the outcomes meet; exactly one does."""
        self.choices.append(options)
        truth = self.outcomes.truth
        chosen = next(
            each for each in options if all(truth(formula) is outcome for formula, outcome in each.requirements)
        )
        if chosen.branch is not None:
            self.taken.add(chosen.branch)
        return chosen

    def _formula(self, node: nodes.Node, scope: Scope) -> Formula:
        return self.conditions.formula(node, Place(scope, self._frame, self._versions))

    def _branch(self, node: nodes.If, scope: Scope) -> list[Any]:
        bodies = [(node.test, node.body), *((each.test, each.body) for each in node.elif_)]
        options: list[Option] = []
        refused: tuple[tuple[Formula, bool], ...] = ()
        for number, (test, body) in enumerate(bodies):
            formula = self._formula(test, scope)
            branch = Branch(id(node), number) if body else None
            options.append(Option(branch, (*refused, (formula, True))))
            refused = (*refused, (formula, False))
        options.append(Option(Branch(id(node), len(bodies)) if node.else_ else None, refused))
        chosen = options.index(self._choose(*options))
        return self.parts(bodies[chosen][1] if chosen < len(bodies) else node.else_, scope)

    def _loop(self, node: nodes.For, scope: Scope) -> list[Any]:
        """One pass, unless something else decides that there is none. Two passes if the loop asks for its first or last
        one."""
        some, again = self._formula(node.iter, scope), Atom("again", self._identity(node))
        if node.test is not None:
            some = Both(some, Atom("some", self._identity(node)))
        self.outcomes.assume(some)
        body, otherwise = Branch(id(node), 0), Branch(id(node), 1) if node.else_ else None
        none, once, twice = (some, False), (again, False), (again, True)
        options = [Option(otherwise, (none,)), Option(body, ((some, True), once)), Option(body, ((some, True), twice))]
        if not self.conditions.asks_for_place(node):
            options[1:] = [Option(body, ((some, True),))]
        passes = options.index(self._choose(*options))
        if not passes:
            return self.parts(node.else_, {**scope})
        found: list[Any] = []
        for number in range(passes):
            outer, self._frame = self._frame, (*self._frame, id(node), number)
            inner = self._opaque([node.target], node, scope)
            inner["loop"] = Bound(Loop(number == 0, number == passes - 1), self._identity(node))
            found += self.parts(node.body, inner)
            self._frame = outer
        return found

    # -- values --------------------------------------------------------------------------------------------------------

    def _printed(self, node: nodes.Node, scope: Scope) -> list[Any]:
        if isinstance(node, nodes.TemplateData):
            return [Lit(node.data, Site(self.path, node.lineno))]
        return self._text_or_slot(self._captured(node, scope), node)

    def _text_or_slot(self, text: Text | None, node: nodes.Node) -> list[Any]:
        if text is None:
            return [self._slot(node)]
        slot = self._slot(node)
        inner = tuple(self._pieces(text.trimmed(None)))
        self.of_slot[id(slot)] = Printed(slot.place, node, inner)
        if slot.place.alone or "\n" in "".join(part for part in text.parts if isinstance(part, str)).strip():
            slot.value = text
        return [slot]

    def _pieces(self, text: Text) -> Iterator[str | Printed]:
        for part in text.parts:
            if not isinstance(part, Slot):
                yield str(part)
            elif isinstance(part.value, Text):  # printed by another macro, alone on its line
                yield from self._pieces(part.value)
            else:
                yield self.of_slot[id(part)]

    def _slot(self, node: nodes.Node) -> Slot:
        place = getattr(node, "place", None) or SlotPlace(Site(self.path, node.lineno), "")
        slot = Slot(self.stand_in(node), place)
        self.of_slot[id(slot)] = Printed(place, node)
        self.kept.append(slot)
        return slot

    def _captured(self, node: nodes.Node | None, scope: Scope) -> Text | None:
        """The text that an expression prints, if it is captured text."""
        if isinstance(node, nodes.Filter) and node.node is not None:
            return self._through(node, self._captured(node.node, scope)) if _keeps_text(node) else None
        if isinstance(node, nodes.Call):
            return self._called(node, scope)
        if isinstance(node, nodes.CondExpr):
            return self._one_of(node, scope)
        found = self._named(node, scope)
        return found if isinstance(found, Text) else None

    def _through(self, filter_: nodes.Filter | None, text: Text | None) -> Text | None:
        """The text after a filter that keeps its lines; None after another one."""
        while filter_ is not None:
            if not _keeps_text(filter_):
                return None
            filter_ = filter_.node if isinstance(filter_.node, nodes.Filter) else None
        return text

    def _one_of(self, node: nodes.CondExpr, scope: Scope) -> Text | None:
        if not any(self._is_text(each, scope) for each in (node.expr1, node.expr2)):
            return None
        test = self._formula(node.test, scope)
        chosen = self._choose(Option(Branch(id(node), 0), ((test, True),)), Option(None, ((test, False),)))
        return self._captured(node.expr1 if chosen.branch is not None else node.expr2, scope)

    def _is_text(self, node: nodes.Node | None, scope: Scope) -> bool:
        while isinstance(node, nodes.Filter) and _keeps_text(node):
            node = node.node
        found = self._named(node.node if isinstance(node, nodes.Call) else node, scope)
        return isinstance(found, (Text, _Macro, _Block))

    def _named(self, node: nodes.Node | None, scope: Scope) -> Any:
        """The value of a name, or of a member."""
        if isinstance(node, nodes.Name):
            return scope[node.name].value if node.name in scope else None
        return self._attribute(node, scope) if isinstance(node, nodes.Getattr) else None

    def _attribute(self, node: nodes.Getattr, scope: Scope) -> Any:
        """A member of an imported file, or `self.NAME`, a block."""
        if not isinstance(node.node, nodes.Name):
            return None
        module = scope[node.node.name].value if node.node.name in scope else None
        if isinstance(module, _Module):
            return module[node.attr].value if node.attr in module else None
        return self._blocks.get(node.attr) if node.node.name == "self" else None

    def _called(self, node: nodes.Call, scope: Scope) -> Text | None:
        called = self._named(node.node, scope)
        if isinstance(called, Text):
            return called  # caller() or super()
        if isinstance(called, _Block):
            return Text(self._override(called, scope))
        if not isinstance(called, _Macro) or self._frame.count(id(called.node)) >= MAX_NESTED:
            return None
        given = dict(zip((arg.name for arg in called.node.args), node.args, strict=False))
        given |= {each.key: each.value for each in node.kwargs}
        inner = self._opaque(called.node.args, node, called.scope)
        for name, value in given.items():
            if name in inner and (text := self._captured(value, scope)) is not None:
                inner[name] = inner[name]._replace(value=text)
        if "caller" in scope:
            inner["caller"] = scope["caller"]
        return self._elsewhere(called.path, (id(node), id(called.node)), lambda: self.parts(called.node.body, inner))

    # -- other files ---------------------------------------------------------------------------------------------------

    def _elsewhere(self, path: str, frame: tuple[Hashable, ...], write: Callable[[], list[Any]]) -> Text | None:
        if len(self._frame) > MAX_FRAME:
            return None
        outer = self.path, self._frame
        self.path, self._frame = path, (*self._frame, *frame)
        try:
            return Text(write())
        finally:
            self.path, self._frame = outer

    def _template(self, tree: nodes.Template, scope: Scope) -> list[Any]:
        parent = next((node for node in tree.body if isinstance(node, nodes.Extends)), None)
        if parent is None:
            return self.parts(tree.body, scope)
        for block in tree.find_all(nodes.Block):
            known = self._blocks.get(block.name)
            self._blocks[block.name] = _overridden(known, _Block(block, self.path, None))
        self.parts([node for node in tree.body if not isinstance(node, _PRINTING)], scope)
        found = self._file(parent.template, scope, parent)
        return [] if found is None else [*found.parts]

    def _override(self, block: _Block, scope: Scope) -> list[Any]:
        inner = {**scope}
        if block.parent is not None:
            parent = block.parent
            inner["super"] = Bound(Text(self._override(parent, scope)), self._identity(block.node))
        text = self._elsewhere(block.path, (id(block.node),), lambda: self.parts(block.node.body, inner))
        return [] if text is None else [*text.parts]

    def _file(self, name: nodes.Node, scope: Scope, node: nodes.Node) -> Text | None:
        options = name.items if isinstance(name, (nodes.List, nodes.Tuple)) else [name]
        names = [each.value for each in options if isinstance(each, nodes.Const) and each.value in self.library.texts]
        if not names:
            return None
        tree = self.trees(names[0])
        return self._elsewhere(self.library.prefix + names[0], (id(node),), lambda: self._template(tree, scope))

    def _included(self, node: nodes.Include, scope: Scope) -> Text | None:
        found = self._file(node.template, {**scope}, node)
        return Text(()) if found is None and node.ignore_missing else found

    def _import(self, node: nodes.Import | nodes.FromImport, scope: Scope) -> None:
        module = _Module()
        self._file(node.template, module, node)
        if isinstance(node, nodes.Import):
            scope[node.target] = Bound(module, self._identity(node))
            return
        for each in node.names:
            original, local = each if isinstance(each, tuple) else (each, each)
            scope[local] = module.get(original) or Bound(None, (local, self._identity(node)))


_PRINTING: Final = (nodes.Extends, nodes.Block, nodes.Output, nodes.Include)


def _overridden(child: _Block | None, parent: _Block) -> _Block:
    """The block with one more that it overrides."""
    if child is None:
        return parent
    return _Block(child.node, child.path, _overridden(child.parent, parent))


def _keeps_text(filter_: nodes.Filter) -> bool:
    return filter_.name in ("indent", "trim")
