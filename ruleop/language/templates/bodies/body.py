"""A body: one document that a template or an object of watches.yaml may give, with what is printed in it as it is
written."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from ruleop.kubernetes.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import JSON
    from ruleop.language.templates import syntax
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
        return tuple(_fields(self.document, ()))


def _text(node: Node | None) -> str:
    return str(node.value) if isinstance(node, Scalar) and node.is_literal else ""


def _fields(node: Node | BodySpread, path: FieldPath) -> Iterator[BodyField]:
    if isinstance(node, Scalar):
        yield BodyField(path, node.pieces, node.value, node.site, whole=node.whole, chosen=node.chosen)
    elif isinstance(node, BodySpread):
        yield BodyField(path, (node.printed,), None, node.site, spread=True)
    elif isinstance(node, Items):
        for number, item in enumerate(node.members):
            yield from _fields(item, path if isinstance(item, BodySpread) else (*path, number))
    else:
        for each in node.members:
            if isinstance(each, BodySpread):
                yield from _fields(each, path)
            else:
                yield from _fields(each.value, (*path, each.name if each.name is not None else "*"))
