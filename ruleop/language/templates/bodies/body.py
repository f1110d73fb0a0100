"""A body: one document that a template or an object of watches.yaml may give, with what is printed in it as it is
written; and the values that a template may give, from which bodies are made."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from ruleop.kubernetes.kinds import Kind
from ruleop.language.templates.bodies.conditions import Outcomes
from ruleop.language.templates.tree.writing import pieces_of
from ruleop.language.templates.values.text import Slot
from ruleop.language.templates.values.text import Text as Captured
from ruleop.language.templates.yaml_reader import NotJson, resolve_scalar
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import JSON
    from ruleop.language.templates import syntax
    from ruleop.language.templates.bodies.conditions import Needs
    from ruleop.language.templates.tree.nodes import TextBlock
    from ruleop.language.templates.values.text import Part as TextPart
    from ruleop.language.templates.values.text import SlotPlace

Step = str | int
FieldPath = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Printed:
    """One `{{ ... }}`."""

    place: SlotPlace
    node: syntax.Printed
    captured: tuple[Piece, ...] | None = None  # what a macro prints in the middle of a line


Piece: TypeAlias = str | Printed


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar. Text is in pieces: literals and what is printed between them."""

    pieces: tuple[Piece, ...]  # none, of a number, a boolean, null or no text
    value: Any  # the literal, if nothing is printed in it
    site: Site
    whole: bool = False  # one printed value that keeps its type
    chosen: bool = False  # a condition or a loop is in its text; this is one outcome

    @property
    def is_literal(self) -> bool:
        return self.value is not None or not self.pieces

    @property
    def only(self) -> Printed | None:
        """The printed value, if it is nothing else."""
        return self.pieces[0] if len(self.pieces) == 1 and isinstance(self.pieces[0], Printed) else None


@dataclass(frozen=True, slots=True)
class BodySpread:
    """A value alone on its line among entries or items: those that it gives."""

    printed: Printed
    site: Site


@dataclass(frozen=True, slots=True)
class BodyEntry:
    key: Scalar
    name: str | None  # the key; None of one in which something is printed
    value: Node


@dataclass(frozen=True)
class BodyMembers:
    """A mapping."""

    members: tuple[BodyEntry | BodySpread, ...]
    site: Site

    @cached_property
    def entries(self) -> dict[str, BodyEntry]:
        """The entries whose keys are known."""
        return {each.name: each for each in self.members if isinstance(each, BodyEntry) and each.name is not None}

    @property
    def is_open(self) -> bool:
        """Whether it may have other entries."""
        return any(isinstance(each, BodySpread) or each.name is None for each in self.members)


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    members: tuple[Node | BodySpread, ...]
    site: Site


Node: TypeAlias = Scalar | BodyMembers | Items


def member(node: Node | None, *names: str) -> Node | None:
    """The value of a field, or of one in nested mappings; None if there is none."""
    for name in names:
        entry = node.entries.get(name) if isinstance(node, BodyMembers) else None
        node = entry.value if entry is not None else None
    return node


def literal_data(node: Node) -> JSON:
    """The data that is written out. Text in which something is printed is empty, and what is spread is not there."""
    if isinstance(node, BodyMembers):
        return {name: literal_data(entry.value) for name, entry in node.entries.items()}
    if isinstance(node, Items):
        return [literal_data(each) for each in node.members if not isinstance(each, BodySpread)]
    found: JSON = node.value if node.is_literal else ""
    return found


@dataclass(frozen=True, slots=True)
class BodyField:
    """One scalar of a body, or one value that is spread among the entries of a mapping or the items of a list."""

    path: FieldPath  # a key in which something is printed is "*"
    pieces: tuple[Piece, ...]  # none, of a literal number, boolean or null
    value: Any  # the literal, if nothing is printed in it
    site: Site
    whole: bool = False  # one printed value that keeps its type
    spread: bool = False
    chosen: bool = False  # its text has a condition or a loop in it; this is one outcome

    @property
    def slots(self) -> Iterator[Printed]:
        return printed_in(self.pieces)


def printed_in(pieces: Iterable[Piece]) -> Iterator[Printed]:
    """The printed values, with those that macros print in them."""
    for piece in pieces:
        if isinstance(piece, Printed):
            yield piece
            yield from printed_in(piece.captured or ())


def as_written(pieces: Iterable[Piece]) -> str:
    """A text with its expressions."""
    return "".join(each if isinstance(each, str) else f"{{{{ {each.place.expression} }}}}" for each in pieces)


@dataclass(frozen=True)
class Body:
    document: Node
    variants: frozenset[int]  # of the template: the documents of one are rendered together

    @cached_property
    def kind(self) -> Kind:
        version, kind = (member(self.document, key) for key in ("apiVersion", "kind"))
        return Kind.parse(_text(version), _text(kind))

    @cached_property
    def fields(self) -> tuple[BodyField, ...]:
        found: list[BodyField] = []
        _add_fields(self.document, (), found)
        return tuple(found)


def _text(node: Node | None) -> str:
    return str(node.value) if isinstance(node, Scalar) and node.is_literal else ""


def _add_fields(node: Node | BodySpread, path: FieldPath, found: list[BodyField]) -> None:
    if isinstance(node, Scalar):
        found.append(BodyField(path, node.pieces, node.value, node.site, whole=node.whole, chosen=node.chosen))
    elif isinstance(node, BodySpread):
        found.append(BodyField(path, (node.printed,), None, node.site, spread=True))
    elif isinstance(node, Items):
        for number, item in enumerate(node.members):
            _add_fields(item, path if isinstance(item, BodySpread) else (*path, number), found)
    else:
        for each in node.members:
            if isinstance(each, BodySpread):
                _add_fields(each, path, found)
            else:
                _add_fields(each.value, (*path, each.name if each.name is not None else "*"), found)


# -- all bodies at once ------------------------------------------------------------------------------------------------
#
# The values that a template may give, as one tree: each part has the outcomes of conditions with which it is there.
# Needs are those beyond the ones of what is around a part.

StandIn: TypeAlias = "Callable[[syntax.Printed], Any]"
"""A value of the type that is printed: a mapping alone on its line is entries, a list items."""


def as_text(_: syntax.Printed) -> Any:
    return ""


class Shown(NamedTuple):
    """A printed value. `captured`: what a macro prints, in the middle of a line or alone on a line of text."""

    place: SlotPlace
    node: syntax.Printed
    captured: tuple[Fragment, ...] | None = None


class Fragment(NamedTuple):
    """A part of a text."""

    what: str | Shown
    needs: Needs


@dataclass(frozen=True, slots=True, eq=False)
class PossibleText:
    fragments: tuple[Fragment, ...]
    site: Site
    block: TextBlock | None = None
    plain: bool = False  # text with control flow in it and without quotes: it may be a number, a boolean or null
    own: bool = False  # of watches.yaml: a single value keeps its type
    chosen: bool = False


class PossiblePart(NamedTuple):
    """An entry, an item, a whole value, or what is spread, of which the neighbours decide what it is."""

    kind: type | None  # dict, list, str; None of what is spread
    value: Value | Shown | None  # None: the end of a document
    site: Site
    needs: Needs
    key: Scalar | PossibleText | None = None
    start: Site | None = None  # of the mapping or list that begins with it
    below: tuple[PossiblePart, ...] = ()  # what follows a key without a value at its column, and may be its list


class Sum(NamedTuple):
    """A mapping, a list or a scalar, by the parts that are there; or the documents of a file."""

    site: Site | None  # None: that of its first part
    parts: tuple[PossiblePart, ...] = ()


Value: TypeAlias = Scalar | Items | BodyMembers | PossibleText | Sum


@dataclass(frozen=True, slots=True)
class Variant:
    """The parts that are there with some outcomes."""

    outcomes: Outcomes
    stand_in: StandIn

    def documents(self, stream: Sum) -> Iterator[Node]:
        document: list[PossiblePart] = []
        for part in self._there(stream.parts):
            if part.value is not None:
                document.append(part)
                continue
            if (found := self.sum(document, None)) is not None:
                yield found
            document = []
        if (found := self.sum(document, None)) is not None:
            yield found

    def _there(self, parts: Iterable[PossiblePart]) -> list[PossiblePart]:
        return [part for part in parts if not part.needs or self.outcomes.are(part.needs)]

    # -- mappings and lists --------------------------------------------------------------------------------------------

    def _value(self, value: Value, site: Site) -> Node:
        """`site`: of a value that is missing, and so null."""
        if isinstance(value, (Scalar, Items, BodyMembers)):
            return value
        if isinstance(value, PossibleText):
            return self.text(value)
        return self.sum(self._there(value.parts), value.site) or Scalar((), None, value.site or site)

    def sum(self, parts: list[PossiblePart], site: Site | None) -> Node | None:
        parts = [each for part in parts for each in self._with_below(part)]
        if not parts:
            return None
        site = site or parts[0].start or parts[0].site
        kind = next((part.kind for part in parts if part.kind is not None), None) or self._form(parts)
        if kind is None and len(parts) > 1:
            kind = dict
        if kind is dict:
            return BodyMembers(tuple(self._entry(part) for part in parts if part.kind in (dict, None)), site)
        if kind is list:
            return Items(tuple(self._item(part) for part in parts if part.kind in (list, None)), site)
        whole = next((part for part in parts if part.kind is str), parts[0])
        if isinstance(whole.value, Shown):
            return Scalar((self._printed(whole.value),), None, whole.site, whole=True)
        assert whole.value is not None, "an end has no value"
        return self._value(whole.value, whole.site)

    def _form(self, parts: Sequence[PossiblePart]) -> type | None:
        """The type of values alone on their lines, by the stand-in for the first one: a mapping, a list, or neither."""
        first = next((part.value for part in parts if isinstance(part.value, Shown)), None)
        form = type(self.stand_in(first.node)) if first is not None else None
        return form if form in (dict, list) else None

    def _with_below(self, part: PossiblePart) -> Iterator[PossiblePart]:
        """The part with what is below it, if that is its list, or else what is below it as parts behind it."""
        below = self._there(part.below)
        if below and (any(each.kind is list for each in below) or self._form(below) is not dict):
            yield part._replace(value=Items(tuple(map(self._item, below)), below[0].start or below[0].site))
        else:
            yield part
            yield from below

    def _entry(self, part: PossiblePart) -> BodyEntry | BodySpread:
        if isinstance(part.value, Shown):
            return BodySpread(self._printed(part.value), part.site)
        assert part.value is not None, "an end has no value"
        assert part.key is not None, "it is an entry"
        key = part.key if isinstance(part.key, Scalar) else self.text(part.key)
        return BodyEntry(key, str(key.value) if key.is_literal else None, self._value(part.value, part.site))

    def _item(self, part: PossiblePart) -> Node | BodySpread:
        if isinstance(part.value, Shown):
            return BodySpread(self._printed(part.value), part.site)
        assert part.value is not None, "an end has no value"
        return self._value(part.value, part.site)

    # -- text ----------------------------------------------------------------------------------------------------------

    def text(self, text: PossibleText) -> Scalar:
        pieces = _joined(pieces_of(self._parts(text.fragments), text.block))
        is_plain = text.plain or (text.own and len(pieces) == 1)
        if text.plain:
            pieces = _stripped(pieces)
        found = scalar(pieces, text.site, chosen=text.chosen, whole=is_plain)
        if text.plain and isinstance(found.value, str):
            try:
                value = resolve_scalar(found.value)
            except NotJson:
                return found
            return found if isinstance(value, str) else Scalar((), value, text.site, chosen=text.chosen)
        return found

    def _parts(self, fragments: Iterable[Fragment]) -> list[TextPart]:
        found: list[TextPart] = []
        for what, needs in fragments:
            if needs and not self.outcomes.are(needs):
                continue
            if isinstance(what, str):
                found.append(what)
            elif what.captured is not None and what.place.alone:
                found.append(Slot(Captured(self._parts(what.captured)), what.place))
            else:
                found.append(Slot(self._printed(what), what.place))
        return found

    def _printed(self, shown: Shown) -> Printed:
        if shown.captured is None:
            return Printed(shown.place, shown.node)
        return Printed(shown.place, shown.node, _stripped(_joined(self._parts(shown.captured))))


def scalar(pieces: tuple[Piece, ...], site: Site, *, chosen: bool = False, whole: bool = False) -> Scalar:
    """`whole`: if one printed value is all, it keeps its type."""
    if not all(isinstance(piece, str) for piece in pieces):
        return Scalar(pieces, None, site, whole=whole and len(pieces) == 1, chosen=chosen)
    return Scalar(pieces, "".join(map(str, pieces)), site, chosen=chosen)


def value_of(parts: Sequence[PossiblePart], site: Site | None) -> Node | Sum:
    """The value of these parts, as it always is if each of them is always there."""
    return (ALWAYS.sum([*parts], site) if all(map(_is_fixed, parts)) else None) or Sum(site, tuple(parts))


def _is_fixed(part: PossiblePart) -> bool:
    return (
        isinstance(part.value, (Scalar, Items, BodyMembers))
        and not part.needs
        and part.kind is not None
        and not part.below
        and not isinstance(part.key, PossibleText)
    )


ALWAYS: Final = Variant(Outcomes({}, bool), as_text)
"""Of values without conditions."""


def _joined(parts: Iterable[TextPart]) -> tuple[Piece, ...]:
    """The pieces of a text, of which no literal follows another."""
    found: list[Piece] = []
    for each in parts:
        value = each.value if isinstance(each, Slot) else str(each)
        for piece in _joined(value.parts) if isinstance(value, Captured) else (value,):
            if isinstance(piece, str) and found and isinstance(found[-1], str):
                found[-1] += piece
            elif piece != "":
                found.append(piece)
    return tuple(found)


def _stripped(pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """Without white space at both ends."""
    found = [*pieces]
    if found and isinstance(found[0], str):
        found[0] = found[0].lstrip()
    if found and isinstance(found[-1], str):
        found[-1] = found[-1].rstrip()
    return tuple(piece for piece in found if piece != "")
