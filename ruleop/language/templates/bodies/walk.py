"""Walks over the tree of a template once, through all branches, and collects the values that it may give.

A loop has one pass. What macros and includes print is followed.
"""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeGuard

from ruleop.errors import RuleError, Site
from ruleop.language.templates import syntax
from ruleop.language.templates.bodies.body import (
    ALWAYS,
    BodyMembers,
    Fragment,
    Items,
    PossiblePart,
    PossibleText,
    Scalar,
    Shown,
    Sum,
    Value,
    scalar,
    value_of,
)
from ruleop.language.templates.bodies.conditions import (
    Assignment,
    Atom,
    Both,
    Bound,
    Conditions,
    Formula,
    Needs,
    Options,
    Scope,
    Solver,
    TooLarge,
    atoms,
)
from ruleop.language.templates.syntax import EFFECTS, PRINTING, bodies_of, names_set
from ruleop.language.templates.tree.nodes import (
    DATA,
    Block,
    BlockItem,
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
)
from ruleop.language.templates.tree.nodes import Value as WholeValue
from ruleop.language.templates.values.faults import RuleErrors
from ruleop.language.templates.yaml_reader import repeated_key
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from ruleop.language.templates.tree.nodes import Item
    from ruleop.language.templates.tree.templates import File

MAX_FRAME: Final = 60  # entries of calls and files in each other
MAX_NESTED: Final = 2  # calls of one macro inside itself
MAX_STATEMENTS: Final = 100_000
MAX_ROUTES: Final = 4  # to one branch
_SEPARATED: Final = "this has documents of its own (a line `---`), and cannot be a part of another document"
_NOUNS: Final[dict[type, str]] = {dict: "an entry of a mapping", list: "an item of a list", str: "a value of its own"}
_UNKNOWN: Final[Options] = (((), None),)
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9./-]*")  # text that YAML reads as a string


@dataclass(frozen=True, slots=True, eq=False)
class WalkedPiece:
    """A piece of a template with the names that it sees."""

    file: File
    body: syntax.Body
    scope: Scope
    frame: tuple[Hashable, ...]
    is_text: bool = False  # also if it is a mapping or a list


class TakenBranch(NamedTuple):
    """The body of an `if`, an `elif`, an `else` or a loop."""

    statement: int  # the id of its node
    number: int
    has_body: bool = True


class Clash(NamedTuple):
    """Two parts that cannot be together."""

    mistake: RuleError
    needs: Needs


class _Macro(NamedTuple):
    node: syntax.Macro
    file: File
    scope: Scope


@dataclass(slots=True, eq=False)
class _Total:
    """The parts of a sum that are found."""

    depth: int = 0  # how many needs there are around it
    is_stream: bool = False  # the documents of a file
    parts: list[PossiblePart] = field(default_factory=list)
    begin: int = 0  # of the last document, with the kinds and the keys in it
    kinds: set[type | None] = field(default_factory=set)
    keys: dict[str, list[PossiblePart]] = field(default_factory=dict)


class _Module(dict[str, Bound]):
    """The names that an imported file defines, or the blocks of a file."""


@dataclass(slots=True)
class Branches:
    """Those of a file, as they are walked over."""

    routes: dict[TakenBranch, dict[Needs, None]] = field(default_factory=dict)  # with all that is needed to come there
    clashes: list[Clash] = field(default_factory=list)
    assumed: Assignment = field(default_factory=dict)  # so that loops have a pass
    solver: Solver = field(default_factory=Solver)
    statements: int = 0


@dataclass(slots=True)
class BodyWalk:
    file: File  # of what is walked over
    branches: Branches = field(default_factory=Branches)
    _tested: set[Atom] = field(default_factory=set)
    _conditions: Conditions = field(default_factory=Conditions)
    _frame: tuple[Hashable, ...] = ()  # the calls and files around a statement
    _needs: Needs = ()  # of the branches around a statement
    _versions: dict[Hashable, Hashable] = field(default_factory=dict)  # of namespaces, after `set ns.x`
    _is_value: bool = field(init=False)  # of watches.yaml, where a piece is always text
    _chosen: bool = False  # whether a condition within a line decides about a value
    _is_kind: bool = False  # whether a value is an apiVersion or a kind, of which all texts count

    def __post_init__(self) -> None:
        self._is_value = self.file.what == "value"

    def documents(self) -> Sum:
        """The documents of the file, or the value of watches.yaml."""
        found = _Total(is_stream=True)
        try:
            self._members(self.file.form.documents, self._with_blocks(self.file, {}), found)
        except RuleErrors as errors:
            self.branches.clashes += (Clash(each, ()) for each in errors.mistakes)
        return Sum(None, tuple(found.parts))

    # -- documents and blocks ------------------------------------------------------------------------------------------

    def _parsed(self, piece: WalkedPiece) -> Documents | None:
        """A piece that is inserted; None if it is not YAML."""
        try:
            return piece.file.documents(piece.body)
        except RuleErrors as errors:
            self.branches.clashes += (Clash(each, self._needs) for each in errors.mistakes)
            return None

    @contextmanager
    def _within(self, piece: WalkedPiece) -> Iterator[None]:
        outer = self.file, self._frame
        self.file, self._frame = piece.file, piece.frame
        try:
            yield
        finally:
            self.file, self._frame = outer

    @contextmanager
    def _given(self, needs: Needs) -> Iterator[bool]:
        """Whether something is possible with further needs, which what follows then has."""
        outer, self._needs = self._needs, (*self._needs, *needs)
        try:
            yield not needs or self.branches.solver.may_hold(self._needs)
        finally:
            self._needs = outer

    def _members(self, documents: Documents, scope: Scope, stream: _Total) -> None:
        for each in documents.members:
            if isinstance(each, DocumentBlock):
                self._control(each.node, scope, partial(self._body_of, each, stream))
            else:
                self._add(each, scope, stream)
                self._end(stream)

    def _body_of(self, block: DocumentBlock, stream: _Total, number: int, scope: Scope) -> None:
        self._members(block.bodies[number], scope, stream)

    def _end(self, stream: _Total) -> None:
        """Ends a document."""
        stream.parts.append(PossiblePart(None, None, Site(""), self._needs))
        stream.begin, stream.kinds, stream.keys = len(stream.parts), set(), {}

    def _add(self, node: Node | None, scope: Scope, total: _Total) -> None:
        """Adds a value, or the body of a statement, to what is around it."""
        if isinstance(node, Mapping):
            self._add_entries(node, scope, total)
        elif isinstance(node, ListNode):
            start: Site | None = node.site
            for item in node.members:
                if isinstance(item, (Spread, SpreadKey, Statement)):
                    self._block(item, scope, total)
                else:
                    self._part(total, list, self._value(item, scope), item.site, start=start)
                start = None
        elif isinstance(node, Blocks):
            for block in node.members:
                self._block(block, scope, total)
        elif isinstance(node, WholeValue) and node.slot.place.alone:
            self._spread(node.slot, node.site, scope, total)
        elif isinstance(node, Choice):
            self._choice(node, scope, total)
        elif isinstance(node, WholeValue):
            self._whole(node, scope, total)
        elif node is not None and not (isinstance(node, Constant) and node.value is None):
            self._part(total, str, self._value(node, scope), node.site)

    def _add_entries(self, node: Mapping, scope: Scope, total: _Total) -> None:
        start = node.site if isinstance(node.members[0], Entry) else None
        before: Entry | Block | None = None
        for member in node.members:
            if isinstance(member, Entry):
                self._entry(member, scope, total, start)
            else:
                self._block(member, scope, total, below=before)
            start, before = None, member

    def _entry(self, entry: Entry, scope: Scope, total: _Total, start: Site | None) -> None:
        key: Scalar | PossibleText = (
            scalar((entry.key,) if entry.key else (), entry.site)
            if isinstance(entry.key, str)
            else self._text(entry.key, scope)
        )
        outer = self._chosen
        self._chosen |= isinstance(entry.key, Joined) and _is_chosen(entry.key)
        self._is_kind = entry.key in ("apiVersion", "kind")
        self._part(total, dict, self._value(entry.value, scope), entry.site, key=key, start=start)
        self._chosen, self._is_kind = outer, False

    def _literals(self, node: syntax.Node | None, scope: Scope) -> list[tuple[Needs, str]]:
        if isinstance(node, syntax.Conditional):
            test = self._formula(node.test, scope)
            sides = [self._literals(each, scope) for each in (node.then, node.otherwise)]
            if not all(sides):
                return []
            for number in (0, 1):
                self._reach(TakenBranch(id(node), number, has_body=False), ((test, not number),))
            return [(((test, not number), *needs), text) for number, side in enumerate(sides) for needs, text in side]
        is_text = isinstance(node, syntax.Const) and isinstance(node.value, str) and _PLAIN.fullmatch(node.value)
        return [((), node.value)] if is_text else []  # type: ignore[union-attr]

    def _block(self, block: Block, scope: Scope, total: _Total, below: Entry | Block | None = None) -> None:
        """`below`: the member before it. A list at the column of a key without a value is its value."""
        self._count()
        if isinstance(block, SpreadKey):
            key = self._text(block.key, scope)
            only = key.only if isinstance(key, Scalar) else None
            if only is not None:
                self._part(total, dict, Shown(only.place, only.node), block.site)
            else:
                self._part(total, dict, Scalar((), None, block.site), block.site, key=key)
        elif isinstance(block, Statement):
            if isinstance(block.node, EFFECTS):
                self._effect(block.node, scope)
            else:
                self._control(block.node, scope, lambda number, inner: self._add(block.bodies[number], inner, total))
        elif _has_no_value(below) and total.parts and (entry := total.parts[-1]).site == below.site:
            inner = _Total(len(self._needs))
            self._spread(block.slot, block.site, scope, inner)
            total.parts[-1] = entry._replace(below=tuple(each for each in inner.parts if each.kind in (list, None)))
            for part in inner.parts:
                if part.kind in (dict, str):
                    self._join(total, part._replace(needs=(*entry.needs, *part.needs)))
        else:
            self._spread(block.slot, block.site, scope, total)

    def _spread(self, slot: syntax.Printing, site: Site, scope: Scope, total: _Total) -> None:
        """Adds what is alone on its line: a piece, as if it were written there, or a value."""
        for piece in self._printed(slot.printed, scope):
            if piece is None:
                self._part(total, None, Shown(slot.place, slot.printed), site)
            elif isinstance(piece, str):
                self._part(total, str, scalar((piece,), site), site)
            elif (parsed := self._parsed(piece)) is not None:
                self._insert(parsed, piece, slot, total)

    def _insert(self, parsed: Documents, piece: WalkedPiece, slot: syntax.Printing, total: _Total) -> None:
        if parsed.separated and not total.is_stream:
            self.branches.clashes.append(Clash(RuleError(_SEPARATED, slot.place.site), self._needs))
            return
        with self._within(piece):
            if parsed.separated:
                self._end(total)
                self._members(parsed, piece.scope, total)
                return
            for each in parsed.members:
                assert not isinstance(each, DocumentBlock), "it has a line `---`"
                self._add(each, piece.scope, total)

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _part(
        self,
        total: _Total,
        kind: type | None,
        value: Value | Shown,
        site: Site,
        *,
        key: Scalar | PossibleText | None = None,
        start: Site | None = None,
    ) -> None:
        self._join(total, PossiblePart(kind, value, site, self._needs[total.depth :], key, start))

    def _join(self, total: _Total, part: PossiblePart) -> None:
        """Adds a part, and finds those that cannot be beside it."""
        around = self._needs[: total.depth]
        found: list[PossiblePart] = []
        name = part.key.value if isinstance(part.key, Scalar) else None
        of_same_key = total.keys.setdefault(name, []) if name is not None else []
        is_of_same_kind = part.kind is None or (part.kind is not str and total.kinds <= {part.kind})
        with suppress(TooLarge):  # only what is certain is reported
            for each in of_same_key if is_of_same_kind else total.parts[total.begin :]:
                self.branches.solver.spend(1 + len(found))
                message = _clash(each, part)
                if not message or any(each.needs[: len(one.needs)] == one.needs for one in found):
                    continue  # where this one is, one that is found is too
                needs = (*around, *each.needs, *part.needs)
                if self.branches.solver.solve(needs) is not None:
                    found.append(each)
                    self.branches.clashes.append(Clash(RuleError(message, part.site), needs))
        if not any(part.needs[: len(each.needs)] == each.needs for each in found):  # else it is never there
            total.parts.append(part)
            of_same_key.append(part)
            total.kinds |= {part.kind} - {None}

    # -- values --------------------------------------------------------------------------------------------------------

    def _value(self, node: Node | None, scope: Scope) -> Value:
        self._count()
        if isinstance(node, Constant):
            value, site = node.value, node.site
            if isinstance(value, (dict, list)):
                return BodyMembers((), site) if isinstance(value, dict) else Items((), site)
            pieces = (value,) if isinstance(value, str) and value else ()
            return Scalar(pieces, value, site, chosen=self._chosen)
        if isinstance(node, (TextBlock, Joined)):
            return self._text(node, scope)
        assert node is not None
        is_written = isinstance(node, ListNode) or (isinstance(node, Mapping) and isinstance(node.members[0], Entry))
        found = _Total(len(self._needs))
        self._add(node, scope, found)
        if not found.parts:
            return Scalar((), None, node.site, chosen=self._chosen)
        part = found.parts[0]
        is_whole = len(found.parts) == 1 and part.kind is str and not part.needs
        if is_whole and isinstance(part.value, (Scalar, PossibleText, Sum)):
            return part.value
        return value_of(found.parts, node.site if is_written else None)

    def _choice(self, node: Choice, scope: Scope, total: _Total) -> None:
        outer, self._chosen = self._chosen, True
        self._control(node.node, scope, lambda number, inner: self._add(node.branches[number], inner, total))
        self._chosen = outer

    def _whole(self, node: WholeValue, scope: Scope, total: _Total) -> None:
        """Adds a whole value. A piece that is a mapping or a list is data, one that is a single expression has its
        value, and any other is text."""
        for piece in self._printed(node.slot.printed, scope):
            if isinstance(piece, str):
                self._part(total, str, scalar((piece,), node.site), node.site)
            elif piece is not None and (data := self._data(piece)) is not None:
                with self._within(piece):
                    self._add(data, piece.scope, total)
            else:
                shown = Fragment(self._shown(node.slot, piece), ())
                text = PossibleText((shown,), node.site, own=True, chosen=self._chosen)
                self._part(total, str, _fixed(text), node.site)

    def _data(self, piece: WalkedPiece) -> Node | None:
        if piece.is_text or self._is_value:
            return None
        try:
            members = piece.file.documents(piece.body).members
        except RuleErrors:
            return None
        return members[0] if len(members) == 1 and isinstance(members[0], DATA) else None

    # -- text ----------------------------------------------------------------------------------------------------------

    def _text(self, node: Joined | TextBlock, scope: Scope) -> Scalar | PossibleText:
        chosen = self._chosen or _is_chosen(node)
        if isinstance(node, TextBlock):
            fragments = self._written(_parts_of(node.items), scope)
            return _fixed(PossibleText(fragments, node.site, block=node, chosen=chosen))
        fragments = self._written(node.parts, {**scope} if node.own else scope)
        is_plain = node.plain and not all(isinstance(part, (str, *PRINTING)) for part in node.parts)
        return _fixed(PossibleText(fragments, node.site, plain=is_plain, own=node.own, chosen=chosen))

    def _written(self, body: Iterable[Any], scope: Scope) -> tuple[Fragment, ...]:
        found: list[Fragment] = []
        self._write(body, scope, found, len(self._needs))
        return tuple(found)

    def _write(self, body: Iterable[Any], scope: Scope, found: list[Fragment], depth: int) -> None:
        """Writes statements, or parts of lines, as text."""
        for node in body:
            self._count()
            if isinstance(node, (str, syntax.Data)):
                found.append(Fragment(node if isinstance(node, str) else node.text, self._needs[depth:]))
            elif isinstance(node, PRINTING):
                for piece in self._printed(node.printed, scope):
                    what = piece if isinstance(piece, str) else self._shown(node, piece)
                    found.append(Fragment(what, self._needs[depth:]))
            elif isinstance(node, BlockItem):
                self._write([node.node], scope, found, depth)
            elif isinstance(node, EFFECTS):
                self._effect(node, scope)
            elif bodies := bodies_of(node):
                self._control(node, scope, lambda number, inner: self._write(bodies[number], inner, found, depth))

    def _shown(self, slot: syntax.Printing, piece: WalkedPiece | None) -> Shown:
        if piece is None:
            return Shown(slot.place, slot.printed)
        with self._within(piece):
            return Shown(slot.place, slot.printed, self._written(piece.body, piece.scope))

    def _count(self) -> None:
        self.branches.statements += 1
        if self.branches.statements > MAX_STATEMENTS:
            raise TooLarge

    # -- statements ----------------------------------------------------------------------------------------------------

    def _control(self, node: syntax.Node, scope: Scope, run: Callable[[int, Scope], None]) -> None:
        """Runs each body that may be taken, by its number among `bodies_of`."""
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
        frame = (*self._frame, id(block.body))
        return Bound((((), WalkedPiece(self.file, block.body, inner, frame)),), (id(block.body), self._frame))

    def _with_blocks(self, file: File, scope: Scope) -> Scope:
        """The scope with the blocks of a file as `self`."""
        blocks = _Module()
        for name, form in file.blocks.items():
            (block,) = form.body
            assert isinstance(block, syntax.Block), "it is the form of one"
            blocks[name] = self._level((block, *block.overridden), scope)
        return {**scope, "self": Bound((((), blocks),), "self")} if blocks else scope

    def _identity(self, node: syntax.Node) -> Hashable:
        return id(node), self._frame

    def _opaque(self, names: Iterable[str], node: syntax.Node, scope: Scope) -> Scope:
        """The scope with variables of unknown values."""
        return {**scope, **{name: Bound(_UNKNOWN, (name, self._identity(node))) for name in names}}

    def _formula(self, node: syntax.Expr, scope: Scope) -> Formula:
        found = self._conditions.formula(node, scope, self._frame, self._versions)
        self._tested.update(atoms(found))
        return found

    def _reach(self, branch: TakenBranch, needs: Needs) -> None:
        routes = self.branches.routes.setdefault(branch, {})
        if len(routes) < MAX_ROUTES:
            routes[(*self._needs, *needs)] = None

    def _if(self, node: syntax.If, scope: Scope, run: Callable[[int, Scope], None]) -> None:
        """Each branch begins with the names before; behind them, a name may be that of each."""
        before, versions = {**scope}, {**self._versions}
        ends: list[tuple[Needs, Scope, dict[Hashable, Hashable]]] = []
        refused: Needs = ()
        formulas = [self._formula(each.test, scope) for each in node.branches]
        for number, body in enumerate(bodies_of(node)):
            needs = (*refused, (formulas[number], True)) if number < len(formulas) else refused
            refused = (*refused, *((each, False) for each in formulas[number : number + 1]))
            self._reach(TakenBranch(id(node), number, bool(body)), needs)
            with self._given(needs) as is_possible:
                if is_possible:
                    run(number, scope)
                    ends.append((needs, {**scope}, self._versions))
            scope.clear()
            scope.update(before)
            self._versions = {**versions}
        identity = self._identity(node)
        for name in {name for _, end, _ in ends for name in end if end[name] is not before.get(name)}:
            options = tuple(
                ((*needs, *inner), value)
                for needs, end, _ in ends
                for inner, value in (end[name].options if name in end else _UNKNOWN)
            )
            is_known = any(value is not None for _, value in options)
            scope[name] = Bound(options if is_known else _UNKNOWN, (name, identity))
        for key in {key for _, _, end in ends for key in end if end[key] != versions.get(key)}:
            self._versions[key] = identity

    def _loop(self, node: syntax.For, scope: Scope, run: Callable[[int, Scope], None]) -> None:
        """One pass, unless something else decides that there is none."""
        known = {*self._tested}
        some = self._formula(node.iterable, scope)
        if node.test is not None:
            some = Both(some, self._conditions.special(self._identity(node)))
        for atom, outcome in (self.branches.solver.solve(((some, True),)) or {}).items():
            if atom not in known:
                self.branches.assumed.setdefault(atom, outcome)
        inner = {**self._opaque(names_set(node.target), node, scope), "loop": Bound(_UNKNOWN, self._identity(node))}
        for number, body in enumerate(bodies_of(node)):
            needs = ((some, not number),)
            if not number or body:
                self._reach(TakenBranch(id(node), number), needs)
            with self._given(needs) as is_possible:
                if is_possible:
                    run(number, {**scope} if number else inner)

    def _effect(self, node: syntax.Node, scope: Scope) -> None:
        match node:
            case syntax.Macro():
                scope[node.name] = Bound((((), _Macro(node, self.file, scope)),), self._identity(node))
            case syntax.SetBlock(target=syntax.Variable(name)):
                text = _through(node.filter, WalkedPiece(self.file, node.body, {**scope}, self._frame))
                scope[name] = Bound((((), text),), self._identity(node))
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
                scope[target.name] = Bound(self._values(value, outer), self._identity(target))
            case syntax.Variables():
                scope.update(self._opaque(names_set(target), target, {}))

    # -- pieces --------------------------------------------------------------------------------------------------------

    def _printed(self, node: syntax.Printed, scope: Scope) -> Iterator[WalkedPiece | str | None]:
        """The pieces that an expression prints, each with its needs; None for a value, and the texts of a kind."""
        for needs, found in (self._literals(node, scope) if self._is_kind else ()) or self._pieces(node, scope):
            with self._given(needs) as is_possible:
                if is_possible:
                    yield found

    def _pieces(self, node: syntax.Node | None, scope: Scope) -> Options:
        """The pieces that an expression may print; None where it prints a value."""
        found = self._values(node, scope)
        return tuple((needs, value if isinstance(value, WalkedPiece) else None) for needs, value in found)

    def _values(self, node: syntax.Node | None, scope: Scope) -> Options:
        """The same, with macros and modules."""
        match node:
            case syntax.Filter(value=syntax.Expr() as value):
                if not _keeps_text(node):
                    return _UNKNOWN
                return tuple((needs, _through(node, piece)) for needs, piece in self._pieces(value, scope))
            case syntax.Call():
                return self._called(node, scope)
            case syntax.Conditional():
                return self._one_of(node, scope)
            case syntax.Include():
                found = self._file(node.files, {**scope} if node.with_context else {}, node)
                return (((), WalkedPiece(self.file, (), {}, ()) if found is None and node.ignore_missing else found),)
            case syntax.CallBlock():
                body = WalkedPiece(self.file, node.body, self._opaque(node.params, node, scope), self._frame)
                return self._called(node.call, {**scope, "caller": Bound((((), body),), self._identity(node))})
            case syntax.FilterBlock():
                return (((), _through(node.filter, WalkedPiece(self.file, node.body, {**scope}, self._frame))),)
        return self._named(node, scope)

    def _one_of(self, node: syntax.Conditional, scope: Scope) -> Options:
        sides = [self._values(each, scope) for each in (node.then, node.otherwise)]
        are_known = [any(value is not None for _, value in side) for side in sides]
        if not any(are_known):
            return _UNKNOWN
        test = self._formula(node.test, scope)
        found: list[tuple[Needs, Any]] = []
        for number, side in enumerate(sides):
            if are_known[number]:
                self._reach(TakenBranch(id(node), number), ((test, not number),))
            found += ((((test, not number), *inner), value) for inner, value in side)
        return tuple(found)

    def _named(self, node: syntax.Node | None, scope: Scope) -> Options:
        """The values of a name, or of a member of an imported file or of `self`."""
        if isinstance(node, syntax.Name):
            return scope[node.name].options if node.name in scope else _UNKNOWN
        if not isinstance(node, syntax.Field):
            return _UNKNOWN
        return tuple(
            ((*needs, *inner), value)
            for needs, module in self._named(node.of, scope)
            for inner, value in (
                module[node.name].options if isinstance(module, _Module) and node.name in module else _UNKNOWN
            )
        )

    def _called(self, node: syntax.Call, scope: Scope) -> Options:
        return tuple((needs, self._call(called, node, scope)) for needs, called in self._named(node.function, scope))

    def _call(self, called: Any, node: syntax.Call, scope: Scope) -> WalkedPiece | None:
        if isinstance(called, WalkedPiece):
            return called  # caller(), super() or self.NAME()
        if not isinstance(called, _Macro) or self._frame.count(id(called.node)) >= MAX_NESTED:
            return None
        given = {**dict(zip(called.node.params, node.args, strict=False)), **node.kwargs}
        inner = self._opaque(called.node.params, node, called.scope)
        for name, value in given.items():
            if name in inner:
                inner[name] = inner[name]._replace(options=self._values(value, scope))
        if "caller" in scope:
            inner["caller"] = scope["caller"]
        return WalkedPiece(called.file, called.node.body, inner, (*self._frame, id(node), id(called.node)))

    def _file(self, files: Iterable[str], scope: Scope, node: syntax.Stmt) -> WalkedPiece | None:
        name = next(filter(self.file.templates.has, files), None)
        if name is None or len(self._frame) > MAX_FRAME:
            return None
        file = self.file.templates.file(name)
        return WalkedPiece(file, file.form.body, self._with_blocks(file, scope), (*self._frame, id(node)))

    def _import(self, node: syntax.Import | syntax.FromImport, scope: Scope) -> None:
        piece, module = self._file((node.file,), scope if node.with_context else {}, node), _Module()
        if piece is not None:
            with self._within(piece):
                module.update(piece.scope)
                self._written(piece.body, module)
        if isinstance(node, syntax.Import):
            scope[node.target] = Bound((((), module),), self._identity(node))
            return
        for original, local in node.names:
            scope[local] = module.get(original) or Bound(_UNKNOWN, (local, self._identity(node)))


def _has_no_value(member: Entry | Block | None) -> TypeGuard[Entry]:
    return isinstance(member, Entry) and isinstance(member.value, Constant) and member.value.value is None


def _clash(one: PossiblePart, other: PossiblePart) -> str:
    """The reason that two parts cannot be together; "" if there is none."""
    if one.kind is None or other.kind is None:
        return ""
    if one.kind is not other.kind or other.kind is str:
        return (
            f"not YAML: {_NOUNS[other.kind]} beside {_NOUNS[one.kind]} {_at(one.site, other.site)}; "
            "check the indentation and the dashes"
        )
    key = other.key.value if isinstance(other.key, Scalar) else None
    if key is None or not isinstance(one.key, Scalar) or one.key.value != key or _is_null(one) or _is_null(other):
        return ""
    return repeated_key(key, one.site, other.site)


def _is_null(entry: PossiblePart) -> bool:
    """An entry that is null is omitted, so another one may have its key."""
    return isinstance(entry.value, Scalar) and not entry.value.pieces and entry.value.value is None


def _at(site: Site, from_site: Site) -> str:
    return f"on line {site.line}" if site.path == from_site.path else f"at {site}"


def _through(filter_: syntax.Filter | None, piece: WalkedPiece | None) -> WalkedPiece | None:
    """The piece after filters that keep its lines; None after another one."""
    while filter_ is not None and piece is not None:
        if not _keeps_text(filter_):
            return None
        piece = replace(piece, is_text=piece.is_text or filter_.name == "indent")
        filter_ = filter_.value if isinstance(filter_.value, syntax.Filter) else None
    return piece


def _keeps_text(filter_: syntax.Filter) -> bool:
    return filter_.name in ("indent", "trim")


def _fixed(text: PossibleText) -> Scalar | PossibleText:
    """The text as it always is, if no condition is in it."""
    return ALWAYS.text(text) if _are_fixed(text.fragments) else text


def _are_fixed(fragments: Iterable[Fragment]) -> bool:
    return all(not needs and (isinstance(what, str) or _are_fixed(what.captured or ())) for what, needs in fragments)


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
