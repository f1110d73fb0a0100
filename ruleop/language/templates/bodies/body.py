"""A body of a template or of an object of watches.yaml: YAML in which each `{{ ... }}` is a mark."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.kinds import Kind
from ruleop.language.templates.yaml.marks import SPREAD, VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ruleop.errors import Site
    from ruleop.language.templates import syntax
    from ruleop.language.templates.values.text import SlotPlace
    from ruleop.language.templates.yaml.yaml_node import YamlNode

Step = str | int
FieldPath = tuple[Step, ...]

MARK: Final = re.compile(f"{VALUE.pattern}|{SPREAD.pattern}")


@dataclass(frozen=True, slots=True)
class Printed:
    """One `{{ ... }}`."""

    place: SlotPlace
    node: syntax.Printed
    captured: tuple[str | Printed, ...] | None = None  # what a macro prints in the middle of a line


def pieces_of(text: str, printed: Sequence[Printed]) -> tuple[str | Printed, ...]:
    """The literals of a text and what its marks stand for."""
    found: list[str | Printed] = []
    at = 0
    for match in MARK.finditer(text):
        found += [text[at : match.start()]] if match.start() > at else []
        found.append(printed[int(match[1] or match[2])])
        at = match.end()
    return (*found, text[at:]) if at < len(text) else tuple(found)


@dataclass(frozen=True, slots=True)
class Field:
    """One scalar of a body, or one value that is spread among the entries of a mapping or the items of a list."""

    path: FieldPath  # a key with a slot in it is "*"
    pieces: tuple[str | Printed, ...]  # none, of a literal number, boolean or null
    value: Any  # the literal, if there are no slots
    site: Site
    whole: bool = False  # one slot that keeps its type
    spread: bool = False
    chosen: bool = False  # its text has a condition or a loop in it; this is one outcome

    @property
    def slots(self) -> Iterator[Printed]:
        return _slots_in(self.pieces)


def _slots_in(pieces: Iterable[str | Printed]) -> Iterator[Printed]:
    for piece in pieces:
        if isinstance(piece, Printed):
            yield piece
            yield from _slots_in(piece.captured or ())


@dataclass(frozen=True)
class Body:
    """One document. Its strings and keys contain marks, which `pieces` replaces."""

    document: YamlNode
    printed: tuple[Printed, ...]
    chosen: frozenset[Site]  # of the values whose text has a condition or a loop in it

    @property
    def kind(self) -> Kind:
        data = self.document.value if isinstance(self.document.value, dict) else {}
        version, kind = (data[key].value if key in data else "" for key in ("apiVersion", "kind"))
        return Kind.parse(str(version), str(kind))

    def pieces(self, text: str) -> tuple[str | Printed, ...]:
        return pieces_of(text, self.printed)

    def spread(self, text: str) -> Printed | None:
        """The slot whose entries or items are inserted at this key or item."""
        match = SPREAD.fullmatch(text)
        return self.printed[int(match[1])] if match else None

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return tuple(self._fields(self.document, ()))

    def _fields(self, node: YamlNode, path: FieldPath) -> Iterator[Field]:
        value = node.value
        if isinstance(value, dict):
            for key, member in value.items():
                yield from self._member(key, member, node.key_sites[key], path)
        elif isinstance(value, list):
            for number, item in enumerate(value):
                yield from self._fields(item, (*path, number))
        elif isinstance(value, str):
            slot = self.spread(value)
            pieces = (slot,) if slot is not None else self.pieces(value)
            whole = node.plain and len(pieces) == 1 and slot is None and not isinstance(pieces[0], str)
            outer = path[:-1] if slot is not None else path
            chosen = node.site in self.chosen
            yield Field(outer, pieces, value, node.site, whole=whole, spread=slot is not None, chosen=chosen)
        else:
            yield Field(path, (), value, node.site, chosen=node.site in self.chosen)

    def _member(self, key: str, member: YamlNode, site: Site, path: FieldPath) -> Iterator[Field]:
        slot = self.spread(key)
        if slot is not None:
            yield Field(path, (slot,), None, site, spread=True)
            return
        yield from self._fields(member, (*path, "*" if MARK.search(key) else key))
