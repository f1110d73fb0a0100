"""Evaluates a template's tree to objects.

Each node becomes a function of a scope. What is omitted, because it is null, `omit` or not available yet in a lenient
evaluation, is `NOTHING`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ruleop.errors import Site
from ruleop.language.templates.syntax import EFFECTS, PRINTING
from ruleop.language.templates.tree.nodes import (
    DATA,
    Blocks,
    Choice,
    Constant,
    DocumentBlock,
    Documents,
    Entry,
    Joined,
    ListNode,
    Mapping,
    Spread,
    SpreadKey,
    Statement,
    TextBlock,
    Value,
)
from ruleop.language.templates.tree.pieces import Piece
from ruleop.language.templates.tree.state import charge_render
from ruleop.language.templates.tree.writing import block_text, filled, marked
from ruleop.language.templates.values.cost import ITEM_BYTES, NODE, ROW_BYTES, Exhausted
from ruleop.language.templates.values.data import json_number, noun, plain_and_weight, scalar_text
from ruleop.language.templates.values.faults import Fault, NotThereYet, RuleErrors, fault_in
from ruleop.language.templates.values.text import Dump, Slot, SlotPlace, flatten_parts
from ruleop.language.templates.values.undefined import OMIT, Broken, UndefinedValue
from ruleop.language.templates.yaml_reader import NotJson, repeated_key, resolve_scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ruleop.kubernetes.kinds import JSON
    from ruleop.language.templates import syntax
    from ruleop.language.templates.tree.nodes import Block, Node
    from ruleop.language.templates.tree.nodes import Part as LinePart
    from ruleop.language.templates.tree.state import Places, Scope, State
    from ruleop.language.templates.tree.writing import Writer
    from ruleop.language.templates.values.text import Part

NOTHING: Final = object()
MAX_DOCUMENTS: Final = 5000
_NOWHERE: Final = SlotPlace(Site(""), "")
Evaluate: TypeAlias = "Callable[[Scope], Any]"
Add: TypeAlias = "Callable[[Scope, Collected], None]"


class Collected:
    """The sum of blocks: a mapping, a list, or one scalar. Static entries make it one, also if all are omitted."""

    __slots__ = ("documents", "empty", "sites", "value")

    def __init__(self, value: Any = NOTHING, documents: list[JSON] | None = None) -> None:
        """`documents`: of a whole document, those before it."""
        self.value, self.documents = value, documents
        self.sites: dict[str, Site] = {}  # of the keys that are written out
        self.empty: Any = NOTHING  # an empty mapping or list that was spread

    def mapping(self, place: SlotPlace | None = None) -> dict[str, Any]:
        if self.value is NOTHING:
            self.value = {}
        if type(self.value) is not dict:
            raise _mixed("a mapping", place)
        return self.value

    def items(self, place: SlotPlace | None = None) -> list[Any]:
        if self.value is NOTHING:
            self.value = []
        if type(self.value) is not list:
            raise _mixed("a list", place)
        return self.value

    def whole(self, value: Any, place: SlotPlace | None) -> None:
        if self.value is not NOTHING:
            raise _mixed(noun(value), place)
        self.value = value

    def end(self) -> list[JSON]:
        """Ends a document, for others that are included."""
        assert self.documents is not None, "it is a whole document"
        if self.value is not NOTHING and self.value:
            self.documents.append(self.value)
        self.value, self.sites, self.empty = NOTHING, {}, NOTHING
        return self.documents

    def result(self) -> Any:
        return self.empty if self.value is NOTHING else self.value


def _mixed(what: str, place: SlotPlace | None) -> Fault:
    if place is None or not place.expression:
        fault = Fault(f"this is {what} among values of another type: only entries can be together, or items of a list")
    else:
        fault = Fault(
            f"{{{{ {place.expression} }}}} is alone on its line among entries of another type: it is {what} here; a "
            "mapping can be spread among keys and a list among items, and captured text must fit its position"
        )
    return fault if place is None else fault.at(place.site, "")


def _sum(adds: Sequence[Add], size: int, begin: Callable[[], Collected]) -> Evaluate:
    """The function that adds up the members of a mapping or a list."""

    def evaluate(scope: Scope) -> Any:
        charge_render(size)
        collected = begin()
        for add in adds:
            add(scope, collected)
        return collected.result()

    return evaluate


def _bytes(members: Sequence[object]) -> int:
    """The bytes of a mapping or a list, without what is in it."""
    return ROW_BYTES + ITEM_BYTES * max(0, len(members) - 2)


def _repeated(key: str, collected: Collected, site: Site) -> Fault:
    if key in collected.sites:
        return Fault(repeated_key(key, collected.sites[key], site)).at(site, "")
    advice = "the mapping that is spread above adds it too; merge the two with `combine`"
    return Fault(f'duplicate key "{key}": {advice}', redacted=f"duplicate key: {advice}").at(site, "")


def _stripped(parts: Sequence[Part]) -> list[Part]:
    """Without the white space of the template at both ends, which YAML does not read."""
    found = list(parts)
    for at, strip in ((0, str.lstrip), (-1, str.rstrip)):
        while found and not isinstance(found[at], Slot) and not strip(str(found[at])):
            found.pop(at)
        if found and not isinstance(found[at], Slot):
            found[at] = strip(str(found[at]))
    return found


def takes_items(member: Entry | Block) -> bool:
    """Whether items at the column of the key would belong to it: it has no value, or a list that may be there."""
    if not isinstance(member, Entry) or not isinstance(member.key, str):
        return False
    value = member.value
    return isinstance(value, (ListNode, Blocks)) or (isinstance(value, Constant) and value.value is None)


def _is_one_of(piece: Piece, kinds: tuple[type, ...]) -> bool:
    """Whether a piece is one document of these kinds. Text such as a script need not be YAML."""
    try:
        documents = piece.form.documents.members
    except RuleErrors:
        return False
    return len(documents) == 1 and isinstance(documents[0], kinds)


def _is_separated(piece: Piece) -> bool:
    """Whether a piece has documents of its own."""
    try:
        return piece.form.documents.separated
    except RuleErrors:
        return False


def _without_nulls(value: Any) -> Any:
    """A value alone on its line is spread: nulls in it are omitted, as everywhere."""
    if isinstance(value, dict):
        return {key: member for key, member in value.items() if member is not None} if None in value.values() else value
    return [each for each in value if each is not None] if isinstance(value, list) and None in value else value


def _scalar_of(node: Node) -> Any:
    """The value of a scalar without expressions; NOTHING of any other node."""
    return node.value if isinstance(node, Constant) and not isinstance(node.value, (dict, list)) else NOTHING


def _nothing(_: Scope) -> Any:
    return NOTHING


def _site_of(value: Node, key: Site) -> Site:
    """The line of an entry: of the `{{ }}` that prints its value, or else of its key."""
    if isinstance(value, Value):
        return value.slot.place.site
    printed = (each for each in value.parts if isinstance(each, PRINTING)) if isinstance(value, Joined) else ()
    return next((each.place.site for each in printed), Site(key.path, key.line))


def _site_of_item(item: Node) -> Site | None:
    if isinstance(item, Mapping) and isinstance(item.members[0], Entry):
        first = item.members[0].site
        return Site(first.path, first.line)
    found = _site_of(item, _NOWHERE.site)
    return found if found.path else None


class Evaluator:
    """Makes the functions of one file."""

    def __init__(self, writer: Writer, state: State, *, is_value: bool = False) -> None:
        """`is_value`: of watches.yaml. An entry has the place of its key, an item that of its start, and a piece is
        always text: all strings are in quotes there."""
        self.is_value = is_value
        self.writer, self.statements, self.state = writer, writer.statements, state
        self.site_of: Callable[[Node, Site], Site] = (lambda _, key: key) if is_value else _site_of
        self.site_of_item: Callable[[Node], Site | None] = (lambda item: item.site) if is_value else _site_of_item

    @property
    def lenient(self) -> bool:
        return self.state.lenient

    # -- documents -----------------------------------------------------------------------------------------------------

    def documents(self, documents: Documents) -> Callable[[Scope, list[JSON]], None]:
        made = [self._document(each) for each in documents.members]

        def evaluate(scope: Scope, found: list[JSON]) -> None:
            for each in made:
                each(scope, found)
            if len(found) > MAX_DOCUMENTS:
                raise Exhausted(f"more than {MAX_DOCUMENTS:,} documents; {MAX_DOCUMENTS:,} are allowed")

        return evaluate

    def _document(self, member: Node | DocumentBlock) -> Callable[[Scope, list[JSON]], None]:
        if isinstance(member, DocumentBlock):
            return self._document_block(member)
        if isinstance(member, Value):
            return self._inserted_documents(member.slot)
        if isinstance(member, (Mapping, Blocks)) and not all(isinstance(each, Entry) for each in member.members):
            return self._with_insertions(member)
        value = self.node(member)

        def evaluate(scope: Scope, found: list[JSON]) -> None:
            document = value(scope)
            if document is not NOTHING:
                found.append(document)

        return evaluate

    def _inserted_documents(self, slot: syntax.Printing) -> Callable[[Scope, list[JSON]], None]:
        """An include or a macro may give several documents."""
        compute, place = self.writer.value(slot), slot.place

        def evaluate(scope: Scope, found: list[JSON]) -> None:
            value = self._computed(compute, scope, place)
            if type(value) is Piece:
                value.form.evaluate(value.scope, found)
                return
            document = self._plain(value, place, alone=True)
            if document is not NOTHING:
                found.append(document)

        return evaluate

    def _with_insertions(self, node: Mapping | Blocks) -> Callable[[Scope, list[JSON]], None]:
        """A document among whose entries others may be included, each behind its own line `---`."""
        adds, size = self._adds(node.members), _bytes(node.members)

        def evaluate(scope: Scope, found: list[JSON]) -> None:
            charge_render(size)
            collected = Collected({} if isinstance(node, Mapping) else NOTHING, found)
            for add in adds:
                add(scope, collected)
            document = collected.result()
            if document is not NOTHING:
                found.append(document)

        return evaluate

    def addition(self, documents: Documents) -> Add:
        """The function that adds the documents of a piece to the collection around it."""
        if documents.separated:
            raise Fault("this has documents of its own (a line `---`), and cannot be a part of another document")
        members = [self._body(each) for each in documents.members if not isinstance(each, DocumentBlock)]
        return members[0] if members else lambda *_: None

    def _document_block(self, block: DocumentBlock) -> Callable[[Scope, list[JSON]], None]:
        bodies = [self.documents(each) for each in block.bodies]
        return self.statements.control(block.node, bodies)

    # -- values --------------------------------------------------------------------------------------------------------

    def node(self, node: Node | None) -> Evaluate:
        if node is None:
            return lambda _: NOTHING
        make = getattr(self, f"_{type(node).__name__.lower()}")
        made: Evaluate = make(node)
        return made

    def _constant(self, node: Constant) -> Evaluate:
        value = node.value
        if value is None:
            return lambda _: NOTHING
        if isinstance(value, dict):
            return lambda _: {}
        return (lambda _: []) if isinstance(value, list) else lambda _: value

    def _value(self, node: Value) -> Evaluate:
        compute, place, state = self.writer.value(node.slot), node.slot.place, self.state
        alone = place.alone

        def evaluate(scope: Scope) -> Any:
            try:
                value = compute(scope)
            except Exception as error:  # noqa: BLE001 - every error of an expression gets its place
                value = self._failed(error, place)
            if type(value) is str:
                state.weigh(len(value))
                return value
            return self._plain(value, place, alone=alone)

        return evaluate

    def _computed(self, compute: Evaluate, scope: Scope, place: SlotPlace) -> Any:
        try:
            return compute(scope)
        except Exception as error:  # noqa: BLE001 - every error of an expression gets its place
            return self._failed(error, place)

    def _failed(self, error: Exception, place: SlotPlace) -> Broken:
        """The value of an expression that is not there yet, leniently; else the error is raised with its place."""
        fault = fault_in(error)
        if self.lenient and isinstance(fault, NotThereYet):
            return Broken("", fault)
        raise fault.at(place.site, place.expression) from None

    def _plain(self, value: Any, place: SlotPlace, *, alone: bool) -> Any:
        """A whole value as JSON."""
        kind = type(value)
        if kind is str:
            self.state.weigh(len(value))
            return value
        if kind is bool:
            return value
        if value is None or value is OMIT:
            return NOTHING
        try:
            if kind is int:
                self.state.weigh(NODE)
                return json_number(value)
            if kind is Piece:
                return self._whole_piece(value, alone=alone)
            if kind is Dump and alone:
                value = value.data
            if isinstance(value, UndefinedValue):
                raise value.fault()
            found, weight = plain_and_weight(value)
            self.state.weigh(weight)
            return _without_nulls(found) if alone else found
        except NotThereYet as error:
            if self.lenient:
                return NOTHING
            raise error.at(place.site, place.expression) from None
        except Fault as fault:
            raise fault.at(place.site, place.expression) from None

    def _whole_piece(self, piece: Piece, *, alone: bool) -> Any:
        """A piece that is a mapping or a list is data, one that is a single expression has its value, and any other is
        text. Alone on its line it is what it would be if it were written there."""
        if not self.is_value and (alone or (piece.indent is None and _is_one_of(piece, DATA))):
            found: list[JSON] = []
            piece.form.evaluate(piece.scope, found)
            return found[0] if found else NOTHING
        return piece.as_text()

    def _joined(self, node: Joined) -> Evaluate:
        only = node.parts[0]
        if len(node.parts) == 1 and isinstance(only, PRINTING):
            compute, place = self.writer.value(only), only.place

            def one(scope: Scope) -> Any:
                value = self._computed(compute, scope, place)
                if type(value) is str:
                    return value
                return NOTHING if value is None or value is OMIT else self._text([Slot(value, place)])

            return one
        has_statements = any(not isinstance(each, (str, *PRINTING)) for each in node.parts)
        if not has_statements and not any(isinstance(each, PRINTING) and each.place.alone for each in node.parts):
            return self._line(node.parts)
        write = self._parts(node)

        def join(scope: Scope) -> Any:
            parts = write(scope)
            if has_statements and node.plain:
                return self._plain_scalar(parts)
            if node.own and len(parts) == 1 and isinstance(parts[0], Slot):
                return self._plain(parts[0].value, parts[0].place, alone=False)
            if len(parts) == 1 and isinstance(parts[0], Slot) and (parts[0].value is None or parts[0].value is OMIT):
                return NOTHING
            return self._text(parts)

        return join

    def _line(self, parts: Sequence[LinePart]) -> Evaluate:
        """Text of which no value is alone on its line: each value is written as it is."""
        pieces: list[tuple[str, Evaluate, SlotPlace]] = [
            ("", self.writer.value(each), each.place) if isinstance(each, PRINTING) else (str(each), _nothing, _NOWHERE)
            for each in parts
        ]
        state = self.state

        def join(scope: Scope) -> Any:
            text = ""
            for literal, compute, place in pieces:
                if literal:
                    text += literal
                    continue
                value = self._computed(compute, scope, place)
                if type(value) is not str:
                    try:
                        value = scalar_text(value)
                    except NotThereYet as error:
                        if state.lenient:
                            return NOTHING
                        raise error.at(place.site, place.expression) from None
                    except Fault as fault:
                        raise fault.at(place.site, place.expression) from None
                text += value
            state.made(text)
            return text

        return join

    def _parts(self, node: Joined) -> Callable[[Scope], Sequence[Part]]:
        writes, own = [self.writer.part(each) for each in node.parts], node.own

        def written(scope: Scope) -> Sequence[Part]:
            inner = scope.inner() if own else scope
            parts: list[Part] = []
            for write in writes:
                write(inner, parts)
            return flatten_parts(parts) if own else parts

        return written

    def _key(self, key: Joined) -> Evaluate:
        """The text of a key. In a template nothing omits it but a value that is not available yet."""
        write = self._parts(key)

        def join(scope: Scope) -> Any:
            parts = write(scope)
            if key.own and len(parts) == 1 and isinstance(parts[0], Slot):
                only = self._plain(parts[0].value, parts[0].place, alone=False)
                return only if only is NOTHING else self._text([Slot(only, parts[0].place)])
            return self._text(parts)

        return join

    def _text(self, parts: Sequence[Part]) -> Any:
        slots: list[Slot] = []
        text = marked(parts, slots)
        try:
            text = filled(text, slots) if slots else text
        except NotThereYet:
            if self.lenient:
                return NOTHING
            raise
        self.state.made(text)
        return text

    def _plain_scalar(self, parts: Sequence[Part]) -> Any:
        """A scalar without quotes whose text depends on statements."""
        slots = [part for part in parts if isinstance(part, Slot)]
        literal = "".join(part for part in parts if not isinstance(part, Slot)).strip()
        if slots:
            if len(slots) == 1 and not literal:
                return self._plain(slots[0].value, slots[0].place, alone=False)
            return self._text(_stripped(parts))
        try:
            value = resolve_scalar(literal)
        except NotJson:
            raise Fault(f"{literal} is a number that JSON cannot represent") from None
        return NOTHING if value is None else value

    def _textblock(self, node: TextBlock) -> Evaluate:
        write = self.writer.items(node.items)

        def evaluate(scope: Scope) -> Any:
            parts: list[Part] = []
            write(scope, parts)
            try:
                text = block_text(node, parts)
            except NotThereYet:
                if self.lenient:
                    return NOTHING
                raise
            self.state.made(text)
            return text

        return evaluate

    def _choice(self, node: Choice) -> Evaluate:
        choose, branches = self.statements.branch(node.node), [self.node(each) for each in node.branches]
        return lambda scope: branches[choose(scope)](scope)

    # -- mappings and lists --------------------------------------------------------------------------------------------

    def _mapping(self, node: Mapping) -> Evaluate:
        if all(isinstance(each, Entry) and isinstance(each.key, str) for each in node.members):
            written = {str(each.key): each.value for each in node.members if isinstance(each, Entry)}
            nulls = {key for key, value in written.items() if isinstance(value, Constant) and value.value is None}
            # What is the same in each render is copied, in the order of the entries.
            same = {key: _scalar_of(value) for key, value in written.items() if key not in nulls}
            others = [(key, self.node(written[key])) for key, value in same.items() if value is NOTHING]
            sites: Places = {
                str(each.key): self.site_of(each.value, each.site) for each in node.members if isinstance(each, Entry)
            }
            state, size = self.state, _bytes(node.members)

            def static(scope: Scope) -> Any:
                charge_render(size)
                result = same.copy()
                for key, value in others:
                    found = value(scope)
                    if found is NOTHING:
                        del result[key]
                    else:
                        result[key] = found
                if state.sites is not None:
                    state.sites.note(result, sites)
                return result

            return static
        return _sum(self._adds(node.members), _bytes(node.members), lambda: Collected({}))

    def _listnode(self, node: ListNode) -> Evaluate:
        plain = [each for each in node.members if not isinstance(each, (Spread, SpreadKey, Statement))]
        if len(plain) < len(node.members):
            return _sum([self._item(each) for each in node.members], _bytes(node.members), lambda: Collected([]))
        items = [(self.node(each), self.site_of_item(each)) for each in plain]
        state, size = self.state, _bytes(node.members)

        def static(scope: Scope) -> Any:
            result: list[Any] = []
            charge_render(size)
            for value, site in items:
                found = value(scope)
                if found is not NOTHING:
                    if site is not None and state.sites is not None:
                        state.note(result, len(result), site)
                    result.append(found)
            return result

        return static

    def _blocks(self, node: Blocks) -> Evaluate:
        return _sum([self._block(each) for each in node.members], _bytes(node.members), Collected)

    def _adds(self, members: Sequence[Entry | Block]) -> list[Add]:
        adds = [self._member(each) for each in members]
        for number, (before, each) in enumerate(pairwise(members)):
            if isinstance(each, Spread) and takes_items(before):
                adds[number + 1] = self._spread(each, below=str(before.key))  # type: ignore[union-attr]
        return adds

    def _member(self, member: Entry | Block) -> Add:
        return self._entry(member) if isinstance(member, Entry) else self._block(member)

    def _item(self, member: Node | Block) -> Add:
        if isinstance(member, (Spread, SpreadKey, Statement)):
            return self._block(member)
        value, site, state = self.node(member), self.site_of_item(member), self.state

        def add(scope: Scope, collected: Collected) -> None:
            found = value(scope)
            items = collected.items()
            if found is not NOTHING:
                if site is not None and state.sites is not None:
                    state.note(items, len(items), site)
                items.append(found)

        return add

    def _entry(self, entry: Entry) -> Add:
        value, site, state = self.node(entry.value), entry.site, self.state
        value_site = self.site_of(entry.value, site)
        if isinstance(entry.key, str):
            key = entry.key

            def add(scope: Scope, collected: Collected) -> None:
                found = value(scope)
                result = collected.mapping()
                if found is NOTHING:
                    return
                if key in result:
                    raise _repeated(key, collected, site)
                result[key], collected.sites[key] = found, site
                if state.sites is not None:
                    state.note(result, key, value_site)

            return add
        name = self._key(entry.key)
        places = [part.place for part in entry.key.parts if isinstance(part, PRINTING)]

        def add_computed(scope: Scope, collected: Collected) -> None:
            key = name(scope)
            result = collected.mapping()
            if key is NOTHING:
                return
            found = value(scope)
            if found is NOTHING:
                return
            state.note(result, key, value_site)
            if key in result:
                fault = Fault("this results in a duplicate key")
                raise fault.at(places[0].site, places[0].expression) if places else fault.at(site, "")
            result[key] = found

        return add_computed

    def _block(self, block: Block) -> Add:
        if isinstance(block, SpreadKey):
            return self._spread_key(block)
        return self._spread(block) if isinstance(block, Spread) else self._statement(block)

    def _spread_key(self, block: SpreadKey) -> Add:
        write = self._parts(block.key)

        def add(scope: Scope, collected: Collected) -> None:
            parts = write(scope)
            if len(parts) != 1 or not isinstance(parts[0], Slot):
                self._text(parts)  # an ordinary key, of which the errors count
                return
            place = parts[0].place
            value = self._plain(parts[0].value, place, alone=True)
            if value is NOTHING:
                return
            if not isinstance(value, dict):
                message = f"a key without a value spreads a mapping, and this is {noun(value)}"
                raise Fault(message).at(place.site, place.expression)
            self._insert(value, collected, place)

        return add

    def _spread(self, block: Spread, below: str = "") -> Add:
        """`below`: the key before it, whose items may be at its column."""
        compute, place = self.writer.value(block.slot), block.slot.place

        def add(scope: Scope, collected: Collected) -> None:
            value = self._computed(compute, scope, place)
            if type(value) is Piece and not (below and _is_one_of(value, (ListNode, Value))):
                self._insert_piece(value, collected, place)
                return
            found = self._plain(value, place, alone=True)
            if isinstance(found, list) and below and isinstance(collected.value, dict):
                self._insert(found, Collected(collected.value.setdefault(below, [])), place)
                self.state.note(collected.value, below, place.site)
            elif found is not NOTHING:
                self._insert(found, collected, place)

        return add

    def _insert_piece(self, piece: Piece, collected: Collected, place: SlotPlace) -> None:
        """Inserts the piece as if it were written here."""
        try:
            if collected.documents is not None and _is_separated(piece):
                piece.form.evaluate(piece.scope, collected.end())
            else:
                piece.form.add(piece.scope, collected)
        except NotThereYet:
            if not self.lenient:
                raise
        except Fault as fault:
            raise fault.at(place.site, place.expression) from None

    def _insert(self, value: Any, collected: Collected, place: SlotPlace) -> None:
        if isinstance(value, dict):
            if not value:
                collected.empty = {}
                return
            result = collected.mapping(place)
            for name, member in value.items():
                if member is None:
                    continue
                if name in result:  # a value can add a field to a mapping, but never replace one
                    advice = "merge the two with `combine`"
                    raise Fault(
                        f'spreading this adds the duplicate key "{name}"; {advice}',
                        redacted=f"spreading this adds a duplicate key; {advice}",
                    ).at(place.site, place.expression)
                result[name] = member
            if self.state.sites is not None:
                for key in value:
                    self.state.note(result, key, place.site)
        elif isinstance(value, list):
            if not value:
                collected.empty = []
                return
            items = collected.items(place)
            first = len(items)
            items.extend(each for each in value if each is not None)
            if self.state.sites is not None:
                for number in range(first, len(items)):
                    self.state.note(items, number, place.site)
        else:
            collected.whole(value, place)

    def _statement(self, block: Statement) -> Add:
        node = block.node
        if isinstance(node, EFFECTS):
            effect = self.statements.effect(node)
            return lambda scope, _: effect(scope)
        run = self.statements.control(node, [self._body(each) for each in block.bodies])

        def add(scope: Scope, collected: Collected) -> None:
            try:
                run(scope, collected)
            except NotThereYet:  # the list of a loop, or a condition: values in the bodies are omitted by themselves
                if not self.lenient:
                    raise

        return add

    def _body(self, node: Node | None) -> Add:
        """The function that adds the body of a statement to the collection around it."""
        if node is None:
            return lambda *_: None
        if isinstance(node, Mapping):
            members = self._adds(node.members)
        elif isinstance(node, ListNode):
            members = [self._item(each) for each in node.members]
        elif isinstance(node, Blocks):
            members = [self._block(each) for each in node.members]
        elif isinstance(node, Value) and node.slot.place.alone:
            members = [self._spread(Spread(node.slot, node.site))]
        else:
            value, whole = self.node(node), SlotPlace(node.site, "") if self.is_value else None
            place = node.slot.place if isinstance(node, Value) else whole or _NOWHERE

            def add_whole(scope: Scope, collected: Collected) -> None:
                found = value(scope)
                if found is not NOTHING:
                    if isinstance(found, (dict, list)):
                        self._insert(found, collected, place)
                    else:
                        collected.whole(found, whole)

            return add_whole

        size = ITEM_BYTES * len(members)

        def add(scope: Scope, collected: Collected) -> None:
            charge_render(size)
            for each in members:
                each(scope, collected)

        return add
