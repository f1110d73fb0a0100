"""The texts of a template in its variants: with each of its conditions true, and with each of them false.

Which text a template yields depends on the custom resource. Trying all combinations is not possible, and some of them
no resource leads to. So a few combinations cover each branch, equal conditions are decided equally, and a finding has
to hold in all variants that have its line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from jinja2 import nodes

from ruleop.checking.typing import bodies
from ruleop.checking.typing.environments import canonical, text_of
from ruleop.checking.typing.statements import names_in, unfiltered
from ruleop.checking.typing.types import SCALARS, UNKNOWN, Type
from ruleop.errors import RuleopError, Site
from ruleop.templating.tree.layout import lay_out
from ruleop.templating.tree.yaml_reader import YamlNode, read_yaml
from ruleop.templating.values.faults import Fault
from ruleop.templating.values.text import Lit, Part, SlotPlace, Text
from ruleop.templating.values.text import Slot as Printed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ruleop.templating import Library

_MAX_VARIANTS: Final = 16
_MAX_DEPTH: Final = 8
_KEEPS_TEXT: Final = frozenset({"indent", "trim"})
_STAND_INS: Final[Mapping[str, Any]] = {"mapping": {"key": "value"}, "list": ["item"], "string": "text"}


@dataclass(frozen=True, slots=True)
class Variant:
    """The documents of a variant, and the slots in them by number."""

    documents: tuple[YamlNode, ...]
    slots: tuple[bodies.Slot, ...]

    def bodies(self) -> Iterator[bodies.Body]:
        for document in self.documents:
            yield bodies.body_of_layout(document, lambda number: self.slots[number])


def variants(library: Library, name: str, printed: Mapping[int, Type]) -> Iterator[Variant]:
    """The variants of a template that are YAML."""
    pending: list[dict[str, bool]] = [{}]
    tried: set[frozenset[tuple[str, bool]]] = set()
    defaults = (True, False)
    seen: dict[str, None] = {}
    for default in defaults:
        writer = _Writer(library, printed, {}, default)
        if (found := writer.variant(name)) is not None:
            yield found
        seen.update(dict.fromkeys(writer.decided))
        tried.add(frozenset(writer.decided.items()))
    pending = [{key: False} for key in seen]
    for decisions in pending[: _MAX_VARIANTS - 2]:
        writer = _Writer(library, printed, decisions, True)
        found = writer.variant(name)
        decided = frozenset(writer.decided.items())
        if found is not None and decided not in tried:
            yield found
        tried.add(decided)


@dataclass(slots=True)
class _Captured:
    """A name that stands for text: a macro, or the text of a `set` block."""

    body: list[nodes.Node]
    path: str
    names: dict[str, _Captured]
    caller: _Captured | None = None


@dataclass(slots=True)
class _Writer:
    """Writes one variant."""

    library: Library
    printed: Mapping[int, Type]
    decisions: Mapping[str, bool]
    default: bool
    decided: dict[str, bool] = field(default_factory=dict)
    types: dict[int, bodies.Slot] = field(default_factory=dict)  # by the id of the printed slot
    kept: list[Printed] = field(default_factory=list)
    names: dict[str, _Captured] = field(default_factory=dict)
    modules: dict[str, dict[str, _Captured]] = field(default_factory=dict)
    blocks: dict[str, tuple[nodes.Block, str]] = field(default_factory=dict)
    path: str = ""
    depth: int = 0
    form: str = "mapping"  # of a value of unknown type that is alone on its line

    def variant(self, name: str) -> Variant | None:
        for form in _STAND_INS:
            self.form = form
            self.types, self.kept, self.names, self.modules, self.blocks = {}, [], {}, {}, {}
            with self.library.renderer:
                try:
                    layout = lay_out(self.file(name))
                except (RuleopError, Fault):
                    continue
                sites = layout.sites()
            start = Site(self.library.source(name).path)

            def locate(line: int, _column: int, sites: list[Site | None] = sites, start: Site = start) -> Site:
                return (sites[line - 1] if line <= len(sites) else None) or start

            documents, mistakes = read_yaml(layout.text, name, locate=locate)
            if not mistakes:
                slots = tuple(self.types[id(each)] for each in layout.slots)
                return Variant(tuple(documents), slots)
        return None

    # -- files ---------------------------------------------------------------------------------------------------------

    def file(self, name: str) -> list[Part]:
        if name not in self.library.texts or self.depth > _MAX_DEPTH:
            return []
        source = self.library.source(name)
        outer, self.path = self.path, source.path
        self.depth += 1
        parent = next((node for node in source.tree.body if isinstance(node, nodes.Extends)), None)
        try:
            if parent is None:
                return self.write(source.tree.body)
            for block in source.tree.find_all(nodes.Block):
                self.blocks.setdefault(block.name, (block, self.path))
            self.write([node for node in source.tree.body if not isinstance(node, (nodes.Block, nodes.Extends))])
            return [part for each in names_in(parent.template) for part in self.file(each)]
        finally:
            self.path = outer
            self.depth -= 1

    def write(self, body: list[nodes.Node]) -> list[Part]:
        return [part for node in body for part in self.statement(node)]

    def statement(self, node: nodes.Node) -> list[Part]:
        run = _STATEMENTS.get(type(node))
        return run(self, node) if run is not None else []

    # -- statements ----------------------------------------------------------------------------------------------------

    def output(self, node: nodes.Output) -> list[Part]:
        parts: list[Part] = []
        for child in node.nodes:
            if isinstance(child, nodes.TemplateData):
                parts.append(Lit(child.data, Site(self.path, child.lineno or node.lineno)))
            else:
                parts.append(self.slot(child, self.captured(child)))
        return parts

    def slot(self, node: nodes.Node, text: list[Part] | None) -> Part:
        place = getattr(node, "place", None) or SlotPlace(Site(self.path, node.lineno), text_of(node))
        found = self.printed.get(id(node), UNKNOWN)
        if text is not None:
            part = Printed(Text(text), place)
        else:
            part = Printed(self.stand_in(found), place)
        self.types[id(part)] = bodies.Slot(UNKNOWN if text is not None else found, place.expression, place.site)
        self.kept.append(part)
        return part

    def stand_in(self, found: Type) -> Any:
        """A value with which the layout treats the slot as it would treat values of its type."""
        if isinstance(found.code, tuple) and found.code[0] == "dump":
            found = found.code[1]
        kinds = found.kinds - {"null"}
        if not found.is_known or not kinds or "other" in kinds:
            return _STAND_INS[self.form]
        if kinds <= SCALARS:
            return _STAND_INS["string"]
        options = [form for form in ("mapping", "list") if form in kinds]
        return _STAND_INS[options[0] if len(options) == 1 else self.form]

    def captured(self, node: nodes.Node | None) -> list[Part] | None:
        """The parts of an expression that stands for text of a template; None for any other."""
        while isinstance(node, nodes.Filter) and node.name in _KEEPS_TEXT:
            node = node.node
        found: _Captured | None = None
        if isinstance(node, nodes.Name):
            found = self.names.get(node.name)
        elif isinstance(node, nodes.Call) and isinstance(node.node, nodes.Name):
            found = self.names.get(node.node.name)
        elif (
            isinstance(node, nodes.Call)
            and isinstance(node.node, nodes.Getattr)
            and isinstance(node.node.node, nodes.Name)
        ):
            found = self.modules.get(node.node.node.name, {}).get(node.node.attr)
        return None if found is None else self.run(found)

    def run(self, found: _Captured) -> list[Part]:
        if self.depth > _MAX_DEPTH:
            return []
        outer = self.names, self.path
        self.names, self.path = {**self.names, **found.names}, found.path
        if found.caller is not None:
            self.names["caller"] = found.caller
        self.depth += 1
        try:
            return self.write(found.body)
        finally:
            self.names, self.path = outer
            self.depth -= 1

    def branch(self, node: nodes.If) -> list[Part]:
        for test, body in ((node.test, node.body), *((each.test, each.body) for each in node.elif_)):
            if self.decide(test):
                return self.write(body)
        return self.write(node.else_)

    def decide(self, test: nodes.Node) -> bool:
        if isinstance(test, nodes.Not):
            return not self.decide(test.node)
        key = canonical(test)
        if key not in self.decided:
            self.decided[key] = self.decisions.get(key, self.default)
        return self.decided[key]

    def loop(self, node: nodes.For) -> list[Part]:
        if not self.decide(unfiltered(node.iter)):
            return self.write(node.else_)
        return self.scoped(node.body)

    def scoped(self, body: list[nodes.Node]) -> list[Part]:
        outer = dict(self.names)
        try:
            return self.write(body)
        finally:
            self.names = outer

    def assignment(self, node: nodes.Assign) -> list[Part]:
        if isinstance(node.target, nodes.Name):
            value = self.captured(node.node)
            self.names.pop(node.target.name, None)
            if value is not None and isinstance(node.node, nodes.Call):
                self.names[node.target.name] = self.names.get(text_of(node.node.node)) or _Captured([], self.path, {})
        return []

    def block_assignment(self, node: nodes.AssignBlock) -> list[Part]:
        if isinstance(node.target, nodes.Name):
            keeps = node.filter is None or node.filter.name in _KEEPS_TEXT
            self.names.pop(node.target.name, None)
            if keeps:
                self.names[node.target.name] = _Captured(node.body, self.path, dict(self.names))
        return []

    def macro(self, node: nodes.Macro) -> list[Part]:
        hidden = {each.name for each in node.args}
        names = {name: each for name, each in self.names.items() if name not in hidden}
        self.names[node.name] = _Captured(node.body, self.path, names)
        return []

    def call_block(self, node: nodes.CallBlock) -> list[Part]:
        called = self.names.get(text_of(node.call.node))
        if called is None and isinstance(node.call.node, nodes.Getattr):
            called = self.modules.get(text_of(node.call.node.node), {}).get(node.call.node.attr)
        if called is None:
            return [self.slot(node, None)]
        caller = _Captured(node.body, self.path, dict(self.names))
        return [self.slot(node, self.run(_Captured(called.body, called.path, called.names, caller)))]

    def filter_block(self, node: nodes.FilterBlock) -> list[Part]:
        return [self.slot(node, self.scoped(node.body) if node.filter.name in _KEEPS_TEXT else None)]

    def include(self, node: nodes.Include) -> list[Part]:
        outer = dict(self.names)
        try:
            name = next((each for each in names_in(node.template) if each in self.library.texts), None)
            return [self.slot(node, self.file(name) if name is not None else [])]
        finally:
            self.names = outer

    def imported(self, node: nodes.Import) -> list[Part]:
        self.modules[node.target] = self.module(node)
        return []

    def imported_names(self, node: nodes.FromImport) -> list[Part]:
        found = self.module(node)
        for name in node.names:
            original, alias = name if isinstance(name, tuple) else (name, name)
            if original in found:
                self.names[alias] = found[original]
        return []

    def module(self, node: nodes.Import | nodes.FromImport) -> dict[str, _Captured]:
        outer, self.names = self.names, {}
        try:
            for name in names_in(node.template):
                self.file(name)
            found = self.names
            for each in found.values():
                each.names.update({name: other for name, other in found.items() if other is not each})
            return found
        finally:
            self.names = outer

    def override(self, node: nodes.Block) -> list[Part]:
        found, path = self.blocks.get(node.name, (node, self.path))
        outer, self.path = self.path, path
        try:
            return self.scoped(found.body)
        finally:
            self.path = outer


_STATEMENTS: dict[type[nodes.Node], Callable[[_Writer, Any], list[Part]]] = {
    nodes.Output: _Writer.output,
    nodes.If: _Writer.branch,
    nodes.For: _Writer.loop,
    nodes.Assign: _Writer.assignment,
    nodes.AssignBlock: _Writer.block_assignment,
    nodes.Macro: _Writer.macro,
    nodes.CallBlock: _Writer.call_block,
    nodes.FilterBlock: _Writer.filter_block,
    nodes.Include: _Writer.include,
    nodes.Import: _Writer.imported,
    nodes.FromImport: _Writer.imported_names,
    nodes.Block: _Writer.override,
    nodes.With: lambda writer, node: writer.scoped(node.body),
    nodes.Scope: lambda writer, node: writer.scoped(node.body),
}
