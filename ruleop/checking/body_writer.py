"""Writes what a template would yield before anything is rendered: one of its bodies, with a slot for each value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from jinja2 import nodes

from ruleop.errors import Site
from ruleop.templating import SlotPlace
from ruleop.templating.values.text import Lit, Slot, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.templating import Library

StandIn = Callable[[nodes.Node], Any]

MAX_DEPTH: Final = 20  # of macros and includes in each other


@dataclass(frozen=True, slots=True)
class Printed:
    """One `{{ ... }}`."""

    place: SlotPlace
    node: nodes.Node
    captured: tuple[str | Printed, ...] | None = None  # what a macro prints in the middle of a line


def as_text(_: nodes.Node) -> Any:
    return ""


class Choices:
    """The branches of conditions. Each body takes those that were taken least."""

    def __init__(self) -> None:
        self.taken: dict[str, list[int]] = {}
        self.current: dict[str, int] = {}

    def begin(self) -> None:
        self.current = {}

    def of(self, condition: str, branches: int) -> int:
        if condition not in self.current:
            counts = self.taken.setdefault(condition, [0] * branches)
            self.current[condition] = counts.index(min(counts))
            counts[self.current[condition]] += 1
        return min(self.current[condition], branches - 1)

    @property
    def complete(self) -> bool:
        return all(all(counts) for counts in self.taken.values())


@dataclass(frozen=True, slots=True)
class _Macro:
    node: nodes.Macro
    path: str
    scope: Mapping[str, Any]


_Scope = dict[str, Any]  # macros, captured text, and modules, which are mappings of both


@dataclass(slots=True)
class Writer:
    """Writes the parts that a template would yield, with a slot for each value."""

    library: Library
    path: str
    choices: Choices
    stand_in: StandIn = as_text
    of_slot: dict[int, Printed] = field(default_factory=dict)
    kept: list[Slot] = field(default_factory=list)  # so that no id is given out again
    depth: int = 0

    def parts(self, body: Iterable[nodes.Node], scope: _Scope) -> list[Any]:
        found: list[Any] = []
        for node in body:
            found += self._statement(node, scope)
        return found

    def _statement(self, node: nodes.Node, scope: _Scope) -> list[Any]:
        if isinstance(node, nodes.Output):
            return [part for child in node.nodes for part in self._printed(child, scope)]
        if isinstance(node, nodes.If):
            return self._branch(node, scope)
        if isinstance(node, nodes.For):
            return self.parts(node.body, {**scope})
        if isinstance(node, nodes.Macro):
            scope[node.name] = _Macro(node, self.path, scope)
        elif isinstance(node, nodes.AssignBlock) and isinstance(node.target, nodes.Name) and node.filter is None:
            scope[node.target.name] = Text(self.parts(node.body, {**scope}))
        elif isinstance(node, nodes.Assign):
            if isinstance(node.target, nodes.Name):
                value = node.node
                scope[node.target.name] = scope.get(value.name) if isinstance(value, nodes.Name) else None
        elif isinstance(node, (nodes.Import, nodes.FromImport)):
            self._import(node, scope)
        elif isinstance(node, nodes.Include):
            return self._text_or_slot(self._included(node, scope), node)
        elif isinstance(node, nodes.CallBlock):
            inner = {**scope, "caller": Text(self.parts(node.body, {**scope}))}
            return self._text_or_slot(self._called(node.call, inner), node)
        elif isinstance(node, nodes.FilterBlock):
            return [self._slot(node)]
        elif isinstance(node, nodes.With):
            return self.parts(node.body, {**scope})
        else:
            return self.parts(getattr(node, "body", ()), scope)
        return []

    def _branch(self, node: nodes.If, scope: _Scope) -> list[Any]:
        tests = [node, *node.elif_]
        if len(tests) == 1 and isinstance(node.test, nodes.Not):
            chosen = self.choices.of(_source(node.test.node), 2)
            return self.parts(node.else_ if chosen == 0 else node.body, scope)
        condition = " / ".join(_source(each.test) for each in tests)
        chosen = self.choices.of(condition, len(tests) + 1)
        branches = [*(each.body for each in tests), node.else_]
        return self.parts(branches[chosen], scope)

    def _printed(self, node: nodes.Node, scope: _Scope) -> list[Any]:
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

    def _captured(self, node: nodes.Node | None, scope: _Scope) -> Text | None:
        """The text that an expression prints, if it is captured text."""
        if isinstance(node, nodes.Filter) and node.name in {"indent", "trim"}:
            return self._captured(node.node, scope)
        if isinstance(node, nodes.Name):
            value = scope.get(node.name)
            return value if isinstance(value, Text) else None
        if isinstance(node, nodes.Call):
            return self._called(node, scope)
        return None

    def _called(self, node: nodes.Call, scope: _Scope) -> Text | None:
        called: Any = None
        if isinstance(node.node, nodes.Name):
            called = scope.get(node.node.name)
        elif isinstance(node.node, nodes.Getattr) and isinstance(node.node.node, nodes.Name):
            module = scope.get(node.node.node.name)
            called = module.get(node.node.attr) if isinstance(module, dict) else None
        if isinstance(called, Text):
            return called  # caller()
        if not isinstance(called, _Macro) or self.depth >= MAX_DEPTH:
            return None
        inner = {**called.scope, **{arg.name: None for arg in called.node.args}}
        if "caller" in scope:
            inner["caller"] = scope["caller"]
        return self._elsewhere(called.path, called.node.body, inner)

    def _elsewhere(self, path: str, body: Iterable[nodes.Node], scope: _Scope) -> Text:
        outer, self.path = self.path, path
        self.depth += 1
        try:
            return Text(self.parts(body, scope))
        finally:
            self.path = outer
            self.depth -= 1

    def _included(self, node: nodes.Include, scope: _Scope) -> Text | None:
        name = node.template.value if isinstance(node.template, nodes.Const) else None
        if name not in self.library.texts or self.depth >= MAX_DEPTH:
            return None
        return self._elsewhere(self.library.prefix + name, self.library.written_tree(name).body, {**scope})

    def _import(self, node: nodes.Import | nodes.FromImport, scope: _Scope) -> None:
        name = node.template.value if isinstance(node.template, nodes.Const) else None
        if name not in self.library.texts or self.depth >= MAX_DEPTH:
            return
        module: _Scope = {}
        self._elsewhere(self.library.prefix + name, self.library.written_tree(name).body, module)
        if isinstance(node, nodes.Import):
            scope[node.target] = module
            return
        for each in node.names:
            original, local = each if isinstance(each, tuple) else (each, each)
            scope[local] = module.get(original)


def _source(node: nodes.Node) -> str:
    """A text that is the same for equal expressions."""
    return repr(node)
