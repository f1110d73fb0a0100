"""Writes one body of a template from its tree, with a mark for each value."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from ruleop.errors import RuleError, Site
from ruleop.language.templates import syntax
from ruleop.language.templates.bodies.body import Printed, pieces_of
from ruleop.language.templates.bodies.branch_conditions import (
    Atom,
    Both,
    Bound,
    Conditions,
    Formula,
    Needs,
    Outcomes,
    Scope,
)
from ruleop.language.templates.bodies.sources import Piece, Source, Sources
from ruleop.language.templates.bodies.sums import Added, Clash, Sum
from ruleop.language.templates.syntax import EFFECTS, PRINTING, bodies_of, names_set
from ruleop.language.templates.tree.lines import BlockItem
from ruleop.language.templates.tree.nodes import (
    DATA,
    Block,
    Blocks,
    Choice,
    Constant,
    DocumentBlock,
    Documents,
    Entry,
    Joined,
    ListNode,
    Mapping,
    Node,
    Spread,
    SpreadKey,
    Statement,
    TextBlock,
    Value,
)
from ruleop.language.templates.tree.writing import block_text, filled, marked
from ruleop.language.templates.values.faults import RuleErrors
from ruleop.language.templates.values.text import Part, Slot, Text
from ruleop.language.templates.yaml.marks import CLOSE, OPEN, VALUE
from ruleop.language.templates.yaml.yaml_node import YamlNode
from ruleop.language.templates.yaml.yaml_reader import NotJson, resolve_scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from ruleop.language.templates.tree.lines import Item

StandIn: TypeAlias = "Callable[[syntax.Printed], Any]"

MAX_FRAME: Final = 60  # entries of calls and files in each other
MAX_NESTED: Final = 2  # calls of one macro inside itself
MAX_STATEMENTS: Final = 20_000
_SEPARATED: Final = "this has documents of its own (a line `---`), and cannot be a part of another document"


class TooLarge(Exception):  # noqa: N818 - describes the template
    """A body that no pass could render."""


class Branch(NamedTuple):
    """The body of an `if`, an `elif`, an `else` or a loop that was written."""

    statement: int  # the id of its node
    number: int


class Option(NamedTuple):
    """One way to continue at a statement, with the outcomes of its conditions. An empty branch is none."""

    branch: Branch | None
    needs: Needs


class _Macro(NamedTuple):
    node: syntax.Macro
    path: str
    scope: Scope


class _Module(dict[str, Bound]):
    """The names that an imported file defines, or the blocks of a file."""


def as_text(_: syntax.Printed) -> Any:
    return ""


@dataclass(slots=True)
class Writer:
    """Walks over a template with the outcomes of its conditions. A loop has one pass."""

    sources: Sources
    path: str
    outcomes: Outcomes
    conditions: Conditions
    stand_in: StandIn = as_text
    printed: list[Printed] = field(default_factory=list)  # by the numbers of their marks
    taken: set[Branch] = field(default_factory=set)
    reached: list[Option] = field(default_factory=list)  # with all that is needed to come there
    clashes: list[Clash] = field(default_factory=list)
    chosen: set[Site] = field(default_factory=set)  # of the values whose text has a condition or a loop in it
    _frame: tuple[Hashable, ...] = ()  # the calls and files around a statement
    _needs: Needs = ()  # of the branches around a statement
    _versions: dict[Hashable, Hashable] = field(default_factory=dict)  # of namespaces, after `set ns.x`
    _statements: int = 0
    _is_value: bool = False  # of watches.yaml, where a piece is always text

    def file(self, source: Source) -> list[YamlNode]:
        """The documents of a file."""
        found: list[YamlNode] = []
        piece = Piece(source.body, source.path, self._with_blocks(source, {}), ())
        if (parsed := self._parsed(piece)) is not None:
            self._documents(parsed, piece, found)
        return found

    def value(self, node: Node) -> list[YamlNode]:
        """A value of watches.yaml."""
        self._is_value = True
        total = Sum(self.clashes, [])
        self._add(node, {}, total)
        self._end(total)
        assert total.documents is not None
        return total.documents

    # -- documents and blocks ------------------------------------------------------------------------------------------

    def _parsed(self, piece: Piece) -> Documents | None:
        """A piece that is inserted; None if it is not YAML."""
        try:
            return self.sources.documents(piece.body, piece.path)
        except RuleErrors as errors:
            self.clashes += (Clash(each, (*self._needs, *piece.needs)) for each in errors.mistakes)
            return None

    @contextmanager
    def _within(self, piece: Piece) -> Iterator[None]:
        outer = self.path, self._frame, self._needs
        self.path, self._frame, self._needs = piece.path, piece.frame, (*self._needs, *piece.needs)
        try:
            yield
        finally:
            self.path, self._frame, self._needs = outer

    def _documents(self, documents: Documents, piece: Piece, found: list[YamlNode]) -> None:
        with self._within(piece):
            self._members(documents, piece.scope, found)

    def _members(self, documents: Documents, scope: Scope, found: list[YamlNode]) -> None:
        for each in documents.members:
            if isinstance(each, DocumentBlock):
                self._control(each.node, scope, partial(self._body_of, each, found))
            else:
                total = Sum(self.clashes, found)
                self._add(each, scope, total)
                self._end(total)

    def _body_of(self, block: DocumentBlock, found: list[YamlNode], number: int, scope: Scope) -> None:
        self._members(block.bodies[number], scope, found)

    def _end(self, total: Sum) -> None:
        """Ends a document."""
        document = total.value(self._form(total))
        if document is not None and total.documents is not None:
            total.documents.append(document)
        total.clear()

    def _form(self, total: Sum) -> Any:
        """The stand-in for the first value that is alone on its line."""
        first = next((part.node for part in total.parts if isinstance(part.node, int)), None)
        return None if first is None else self.stand_in(self.printed[first].node)

    def _add(self, node: Node | None, scope: Scope, total: Sum) -> None:
        """Adds a value, or the body of a statement, to what is around it."""
        if isinstance(node, Mapping):
            self._add_entries(node, scope, total)
        elif isinstance(node, ListNode):
            total.site = total.site or node.site
            for item in node.members:
                if isinstance(item, (Spread, SpreadKey, Statement)):
                    self._block(item, scope, total)
                else:
                    value = self._value(item, scope)
                    total.add(Added(list, value, value.site, self._needs))
        elif isinstance(node, Blocks):
            for block in node.members:
                self._block(block, scope, total)
        elif isinstance(node, Value) and node.slot.place.alone:
            self._spread(node.slot, node.site, scope, total)
        elif node is not None:
            self._add_whole(self._value(node, scope), total)

    def _add_whole(self, value: YamlNode, total: Sum) -> None:
        if isinstance(value.value, dict) and value.value:
            total.site = total.site or value.site
            for key, member in value.value.items():
                total.add(Added(dict, member, value.key_sites[key], self._needs, key))
        elif isinstance(value.value, list) and value.value:
            total.site = total.site or value.site
            for item in value.value:
                total.add(Added(list, item, item.site, self._needs))
        elif value.value is not None:
            total.add(Added(str, value, value.site, self._needs))

    def _add_entries(self, node: Mapping, scope: Scope, total: Sum) -> None:
        if isinstance(node.members[0], Entry):
            total.site = total.site or node.site
        if any(isinstance(each, SpreadKey) for each in node.members):
            total.kind = total.kind or dict
        for before, member in zip((None, *node.members), node.members, strict=False):
            if not isinstance(member, Entry):
                self._block(member, scope, total, below=before)
                continue
            key = member.key if isinstance(member.key, str) else self._joined_text(member.key, scope)
            found = self._value(member.value, scope)
            if isinstance(member.key, Joined) and _is_chosen(member.key):
                self._note_chosen(found)
            if key in ("apiVersion", "kind") and isinstance(member.value, Value):
                chosen = self._literal(member.value.slot.printed, scope)
                found = found if chosen is None else YamlNode(chosen, member.value.site, plain=True)
            total.add(Added(dict, found, member.site, self._needs, key))

    def _literal(self, node: syntax.Node | None, scope: Scope) -> str | None:
        """The text of an expression that chooses one of several literals."""
        if isinstance(node, syntax.Conditional) and _is_literal(node):
            test = self._formula(node.test, scope)
            options = [Option(Branch(id(node), number), ((test, not number),)) for number in (0, 1)]
            with self._choose(*options) as chosen:
                return self._literal(node.otherwise if chosen else node.then, scope)
        return node.value if isinstance(node, syntax.Const) and isinstance(node.value, str) else None

    def _block(self, block: Block, scope: Scope, total: Sum, below: Any = None) -> None:
        """`below`: the member before it. A list at the column of a key without a value is its value."""
        self._count()
        if isinstance(block, SpreadKey):
            text = self._joined_text(block.key, scope)
            if alone := VALUE.fullmatch(text):
                total.add(Added(None, int(alone[1]), block.site, self._needs))
            else:
                nothing = YamlNode(None, block.site, plain=True)
                total.add(Added(dict, nothing, block.site, self._needs, text))
            return
        if isinstance(block, Statement):
            if isinstance(block.node, EFFECTS):
                self._effect(block.node, scope)
            else:
                self._control(block.node, scope, lambda number, inner: self._add(block.bodies[number], inner, total))
            return
        if not (isinstance(below, Entry) and isinstance(below.value, Constant) and below.value.value is None):
            self._spread(block.slot, block.site, scope, total)
            return
        inner = Sum(self.clashes)
        self._spread(block.slot, block.site, scope, inner)
        form = self._form(inner)
        is_list = inner.kind is list or (inner.kind is None and not isinstance(form, dict))
        if is_list and (items := inner.value([])) is not None:
            total.parts[-1] = total.parts[-1]._replace(node=items)
        else:
            for part in inner.parts:
                total.add(part)

    def _spread(self, slot: syntax.Printing, site: Site, scope: Scope, total: Sum) -> None:
        """Adds what is alone on its line: a piece, as if it were written there, or a value."""
        piece = self._piece(slot.printed, scope)
        if piece is None:
            total.add(Added(None, self._mark(slot), site, self._needs))
            return
        parsed = self._parsed(piece)
        if parsed is None:
            return
        if not parsed.separated:
            with self._within(piece):
                for each in parsed.members:
                    assert not isinstance(each, DocumentBlock), "it has a line `---`"
                    self._add(each, piece.scope, total)
        elif total.documents is not None:
            self._end(total)
            self._documents(parsed, piece, total.documents)
        else:
            self.clashes.append(Clash(RuleError(_SEPARATED, slot.place.site), (*self._needs, *piece.needs)))

    # -- values --------------------------------------------------------------------------------------------------------

    def _value(self, node: Node | None, scope: Scope) -> YamlNode:
        found = self._written(node, scope)
        if isinstance(node, (Choice, Joined, TextBlock)) and _is_chosen(node):
            self._note_chosen(found)
        return found

    def _note_chosen(self, node: YamlNode) -> None:
        self.chosen.add(node.site)
        value = node.value
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            self._note_chosen(each)

    def _written(self, node: Node | None, scope: Scope) -> YamlNode:
        self._count()
        if isinstance(node, Constant):
            return YamlNode(node.value, node.site, plain=True)
        if isinstance(node, TextBlock):
            return YamlNode(block_text(node, self._parts(_parts_of(node.items), scope)), node.site)
        if isinstance(node, Joined):
            return self._joined(node, scope)
        if isinstance(node, Value) and not node.slot.place.alone:
            return self._whole(node, scope)
        assert node is not None
        if isinstance(node, Choice):
            chosen: list[YamlNode] = []

            def choose(number: int, inner: Scope) -> None:
                if node.branches[number] is not None:
                    chosen.append(self._value(node.branches[number], inner))

            self._control(node.node, scope, choose)
            return chosen[0] if chosen else YamlNode(None, node.site, plain=True)
        total = Sum(self.clashes)
        self._add(node, scope, total)
        return total.value(self._form(total)) or YamlNode(None, node.site, plain=True)

    def _whole(self, node: Value, scope: Scope) -> YamlNode:
        """A piece that is a mapping or a list is data, one that is a single expression has its value, and any other is
        text."""
        piece = self._piece(node.slot.printed, scope)
        if piece is not None and not piece.is_text and not self._is_value:
            try:
                members = self.sources.documents(piece.body, piece.path).members
            except RuleErrors:
                members = ()
            if len(members) == 1 and isinstance(members[0], DATA):
                with self._within(piece):
                    return self._value(members[0], piece.scope)
        number = self._mark(node.slot, piece)
        return YamlNode(f"{OPEN}{number}{CLOSE}", node.site, plain=True)

    def _joined(self, node: Joined, scope: Scope) -> YamlNode:
        text = self._joined_text(node, scope)
        if node.own:
            return YamlNode(text, node.site, plain=VALUE.fullmatch(text) is not None)
        if not node.plain or all(isinstance(part, (str, *PRINTING)) for part in node.parts):
            return YamlNode(text, node.site)
        text = text.strip()
        try:
            value = text if OPEN in text else resolve_scalar(text)
        except NotJson:
            value = text
        return YamlNode(value, node.site, plain=True)

    # -- text ----------------------------------------------------------------------------------------------------------

    def _joined_text(self, node: Joined, scope: Scope) -> str:
        return self._text(node.parts, {**scope} if node.own else scope)

    def _text(self, parts: Iterable[Any], scope: Scope) -> str:
        slots: list[Slot] = []
        return filled(marked(self._parts(parts, scope), slots), slots)

    def _parts(self, body: Iterable[Any], scope: Scope) -> list[Part]:
        found: list[Part] = []
        self._write(body, scope, found)
        return found

    def _write(self, body: Iterable[Any], scope: Scope, parts: list[Part]) -> None:
        """Writes statements, or parts of lines, as text."""
        for node in body:
            self._count()
            if isinstance(node, str):
                parts.append(node)
            elif isinstance(node, syntax.Data):
                parts.append(node.text)
            elif isinstance(node, PRINTING):
                self._write_value(node, scope, parts)
            elif isinstance(node, BlockItem):
                self._write([node.node], scope, parts)
            elif isinstance(node, EFFECTS):
                self._effect(node, scope)
            elif bodies := bodies_of(node):
                self._control(node, scope, lambda number, inner: self._write(bodies[number], inner, parts))

    def _write_value(self, node: syntax.Printing, scope: Scope, parts: list[Part]) -> None:
        piece, place = self._piece(node.printed, scope), node.place
        if piece is not None and place.alone:
            with self._within(piece):
                parts.append(Slot(Text(self._parts(piece.body, piece.scope)), place))
        else:
            parts.append(Slot(f"{OPEN}{self._mark(node, piece)}{CLOSE}", place))

    def _mark(self, node: syntax.Printing, piece: Piece | None = None) -> int:
        """The number of a new mark. `piece`: what it prints as text."""
        captured = None
        if piece is not None:
            with self._within(piece):
                text = Text(self._parts(piece.body, piece.scope)).as_text()
            captured = pieces_of(text.strip(), self.printed)
        self.printed.append(Printed(node.place, node.printed, captured))
        return len(self.printed) - 1

    def _count(self) -> None:
        self._statements += 1
        if self._statements > MAX_STATEMENTS:
            raise TooLarge

    # -- statements ----------------------------------------------------------------------------------------------------

    def _control(self, node: syntax.Node, scope: Scope, run: Callable[[int, Scope], None]) -> None:
        """Runs the body that is taken, by its number among `bodies_of`."""
        if isinstance(node, syntax.If):
            self._if(node, scope, run)
        elif isinstance(node, syntax.For):
            self._loop(node, scope, run)
        else:
            inner = {**scope}
            if isinstance(node, syntax.With):
                for target, value in zip(node.targets, node.values, strict=True):
                    self._assign(target, value, inner, scope)
            elif isinstance(node, syntax.Block) and node.overridden:
                inner["super"] = self._level(node.overridden, scope)
            run(0, inner)

    def _level(self, levels: Sequence[syntax.Block], scope: Scope) -> Bound:
        """The content of a block, with those that it overrides."""
        block, *others = levels
        inner = {**scope, "super": self._level(others, scope)} if others else scope
        return Bound(
            Piece(block.body, block.path, inner, (*self._frame, id(block.body))), (id(block.body), self._frame)
        )

    def _with_blocks(self, source: Source, scope: Scope) -> Scope:
        """The scope with the blocks of a file as `self`."""
        blocks = _Module(
            {name: self._level((block, *block.overridden), scope) for name, block in source.blocks.items()}
        )
        return {**scope, "self": Bound(blocks, "self")} if blocks else scope

    def _identity(self, node: syntax.Node) -> Hashable:
        return id(node), self._frame

    def _opaque(self, names: Iterable[str], node: syntax.Node, scope: Scope) -> Scope:
        """The scope with variables of unknown values."""
        return {**scope, **{name: Bound(None, (name, self._identity(node))) for name in names}}

    def _formula(self, node: syntax.Expr, scope: Scope) -> Formula:
        return self.conditions.formula(node, scope, self._frame, self._versions)

    @contextmanager
    def _choose(self, *options: Option) -> Iterator[int]:
        """The number of the option whose conditions have their outcomes; exactly one has."""
        whole = [Option(each.branch, (*self._needs, *each.needs)) for each in options]
        self.reached += (each for each in whole if each.branch is not None)
        truth = self.outcomes.truth
        chosen = next(
            number for number, each in enumerate(options) if all(truth(formula) is true for formula, true in each.needs)
        )
        if (branch := options[chosen].branch) is not None:
            self.taken.add(branch)
        outer, self._needs = self._needs, whole[chosen].needs
        try:
            yield chosen
        finally:
            self._needs = outer

    def _if(self, node: syntax.If, scope: Scope, run: Callable[[int, Scope], None]) -> None:
        options: list[Option] = []
        refused: Needs = ()
        for number, each in enumerate(node.branches):
            formula = self._formula(each.test, scope)
            options.append(Option(Branch(id(node), number) if each.body else None, (*refused, (formula, True))))
            refused = (*refused, (formula, False))
        options.append(Option(Branch(id(node), len(options)) if node.otherwise else None, refused))
        with self._choose(*options) as chosen:
            run(chosen, scope)

    def _loop(self, node: syntax.For, scope: Scope, run: Callable[[int, Scope], None]) -> None:
        """One pass, unless something else decides that there is none."""
        some = self._formula(node.iterable, scope)
        if node.test is not None:
            some = Both(some, Atom("some", self._identity(node)))
        self.outcomes.assume(some)
        otherwise = Option(Branch(id(node), 1) if node.otherwise else None, ((some, False),))
        inner = {**self._opaque(names_set(node.target), node, scope), "loop": Bound(None, self._identity(node))}
        with self._choose(Option(Branch(id(node), 0), ((some, True),)), otherwise) as chosen:
            run(chosen, {**scope} if chosen else inner)

    def _effect(self, node: syntax.Node, scope: Scope) -> None:
        path = node.site.path
        match node:
            case syntax.Macro():
                scope[node.name] = Bound(_Macro(node, path, scope), self._identity(node))
            case syntax.SetBlock(target=syntax.Variable(name)):
                text = self._through(node.filter, Piece(node.body, path, {**scope}, self._frame, self._needs))
                scope[name] = Bound(text, self._identity(node))
            case syntax.Set():
                self._assign(node.target, node.value, scope, scope)
            case syntax.Import() | syntax.FromImport():
                self._import(node, scope)

    def _assign(self, target: syntax.Target, value: syntax.Expr, scope: Scope, outer: Scope) -> None:
        match target:
            case syntax.Attribute():
                if target.name in scope:
                    self._versions[scope[target.name].identity] = self._identity(target)
            case syntax.Variable():
                bound = outer[value.name].value if isinstance(value, syntax.Name) and value.name in outer else None
                scope[target.name] = Bound(bound or self._piece(value, outer), self._identity(target))
            case syntax.Variables():
                scope.update(self._opaque(names_set(target), target, {}))

    # -- pieces --------------------------------------------------------------------------------------------------------

    def _piece(self, node: syntax.Node | None, scope: Scope) -> Piece | None:
        """The piece that an expression prints; None if it prints a value."""
        match node:
            case syntax.Filter(value=syntax.Expr() as value):
                return self._through(node, self._piece(value, scope)) if _keeps_text(node) else None
            case syntax.Call():
                return self._called(node, scope)
            case syntax.Conditional():
                return self._one_of(node, scope)
            case syntax.Include():
                found = self._file(node.files, {**scope} if node.with_context else {}, node)
                return Piece((), self.path, {}, ()) if found is None and node.ignore_missing else found
            case syntax.CallBlock():
                body = Piece(node.body, self.path, self._opaque(node.params, node, scope), self._frame, self._needs)
                return self._called(node.call, {**scope, "caller": Bound(body, self._identity(node))})
            case syntax.FilterBlock():
                return self._through(node.filter, Piece(node.body, self.path, {**scope}, self._frame))
        named = self._named(node, scope)
        return named if isinstance(named, Piece) else None

    @staticmethod
    def _through(filter_: syntax.Filter | None, piece: Piece | None) -> Piece | None:
        """The piece after filters that keep its lines; None after another one."""
        while filter_ is not None and piece is not None:
            if not _keeps_text(filter_):
                return None
            piece = replace(piece, is_text=piece.is_text or filter_.name == "indent")
            filter_ = filter_.value if isinstance(filter_.value, syntax.Filter) else None
        return piece

    def _one_of(self, node: syntax.Conditional, scope: Scope) -> Piece | None:
        sides = [node.then, node.otherwise]
        if not any(self._is_piece(each, scope) for each in sides):
            return None
        test = self._formula(node.test, scope)
        branches = [
            Branch(id(node), number) if self._is_piece(each, scope) else None for number, each in enumerate(sides)
        ]
        with self._choose(Option(branches[0], ((test, True),)), Option(branches[1], ((test, False),))) as chosen:
            found = self._piece(sides[chosen], scope)
            return found and replace(found, needs=(*self._needs, *found.needs))

    def _is_piece(self, node: syntax.Node | None, scope: Scope) -> bool:
        while isinstance(node, syntax.Filter) and _keeps_text(node):
            node = node.value
        found = self._named(node.function if isinstance(node, syntax.Call) else node, scope)
        return isinstance(found, (Piece, _Macro))

    def _named(self, node: syntax.Node | None, scope: Scope) -> Any:
        """The value of a name, or of a member of an imported file or of `self`."""
        if isinstance(node, syntax.Name):
            return scope[node.name].value if node.name in scope else None
        if not isinstance(node, syntax.Field):
            return None
        module = self._named(node.of, scope)
        return module[node.name].value if isinstance(module, _Module) and node.name in module else None

    def _called(self, node: syntax.Call, scope: Scope) -> Piece | None:
        called = self._named(node.function, scope)
        if isinstance(called, Piece):
            return called  # caller(), super() or self.NAME()
        if not isinstance(called, _Macro) or self._frame.count(id(called.node)) >= MAX_NESTED:
            return None
        given = {**dict(zip(called.node.params, node.args, strict=False)), **node.kwargs}
        inner = self._opaque(called.node.params, node, called.scope)
        for name, value in given.items():
            if name in inner and (piece := self._piece(value, scope)) is not None:
                inner[name] = inner[name]._replace(value=piece)
        if "caller" in scope:
            inner["caller"] = scope["caller"]
        return Piece(called.node.body, called.path, inner, (*self._frame, id(node), id(called.node)))

    def _file(self, files: Iterable[str], scope: Scope, node: syntax.Stmt) -> Piece | None:
        names = [each for each in files if each in self.sources.library.texts]
        if not names or len(self._frame) > MAX_FRAME:
            return None
        source = self.sources.file(names[0])
        return Piece(source.body, source.path, self._with_blocks(source, scope), (*self._frame, id(node)))

    def _import(self, node: syntax.Import | syntax.FromImport, scope: Scope) -> None:
        piece, module = self._file((node.file,), scope if node.with_context else {}, node), _Module()
        if piece is not None:
            with self._within(piece):
                module.update(piece.scope)
                self._write(piece.body, module, [])
        if isinstance(node, syntax.Import):
            scope[node.target] = Bound(module, self._identity(node))
            return
        for original, local in node.names:
            scope[local] = module.get(original) or Bound(None, (local, self._identity(node)))


def _is_literal(node: syntax.Node | None) -> bool:
    if isinstance(node, syntax.Conditional):
        return _is_literal(node.then) and _is_literal(node.otherwise)
    return isinstance(node, syntax.Const) and isinstance(node.value, str)


def _keeps_text(filter_: syntax.Filter) -> bool:
    return filter_.name in ("indent", "trim")


def _is_chosen(node: Choice | Joined | TextBlock) -> bool:
    """Whether a condition or a loop is in the text of a value."""
    if isinstance(node, Choice):
        return True
    parts = node.parts if isinstance(node, Joined) else _parts_of(node.items)
    statements = (each.node if isinstance(each, BlockItem) else each for each in parts if not isinstance(each, str))
    return any(map(syntax.has_control, statements))


def _parts_of(items: Iterable[Item]) -> Iterator[Any]:
    """The lines and blocks of a text block as parts."""
    for item in items:
        if isinstance(item, BlockItem):
            yield item
        else:
            yield from item.parts
            yield item.end
