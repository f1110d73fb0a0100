"""The bodies of children before anything is rendered: YAML in which each `{{ ... }}` is a mark.

A template with branches has several bodies: in each, every condition has one outcome, the same wherever it is tested,
and together they show every branch. A loop shows one pass. Calls of macros, includes and captured text are shown where
they are printed. A body that cannot be read, because its branches exclude each other by different conditions, is left
out; so what is not found in a body may exist nevertheless.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from jinja2 import nodes

from ruleop.checking.body_writer import Choices, Printed, Writer, as_text
from ruleop.errors import Site
from ruleop.kinds import Kind
from ruleop.templating import TextTemplate, YamlNode, read_yaml
from ruleop.templating.tree.layout import SPREAD, VALUE, Layout, lay_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.checking.body_writer import StandIn
    from ruleop.rules.checks.scopes import Part
    from ruleop.templating import Library

Step = str | int
FieldPath = tuple[Step, ...]

MAX_BODIES: Final = 16
_MARK = re.compile(f"{VALUE.pattern}|{SPREAD.pattern}")


@dataclass(frozen=True, slots=True)
class Field:
    """One scalar of a body, or one value that is spread among the entries of a mapping or the items of a list."""

    path: FieldPath  # a key with a slot in it is "*"
    pieces: tuple[str | Printed, ...]  # none, of a literal number, boolean or null
    value: Any  # the literal, if there are no slots
    site: Site
    whole: bool = False  # one slot that keeps its type
    spread: bool = False

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

    @property
    def kind(self) -> Kind:
        data = self.document.value if isinstance(self.document.value, dict) else {}
        version, kind = (data[key].value if key in data else "" for key in ("apiVersion", "kind"))
        return Kind.parse(str(version), str(kind))

    def pieces(self, text: str) -> tuple[str | Printed, ...]:
        found: list[str | Printed] = []
        at = 0
        for match in _MARK.finditer(text):
            found += [text[at : match.start()]] if match.start() > at else []
            found.append(self.printed[int(match[1] or match[2])])
            at = match.end()
        return (*found, text[at:]) if at < len(text) else tuple(found)

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
            yield Field(outer, pieces, value, node.site, whole=whole, spread=slot is not None)
        else:
            yield Field(path, (), value, node.site)

    def _member(self, key: str, member: YamlNode, site: Site, path: FieldPath) -> Iterator[Field]:
        slot = self.spread(key)
        if slot is not None:
            yield Field(path, (slot,), None, site, spread=True)
            return
        yield from self._fields(member, (*path, "*" if _MARK.search(key) else key))


def bodies(part: Part, library: Library, stand_in: StandIn = as_text) -> tuple[Body, ...]:
    """The bodies of a child; of a template with several documents, those of each. `stand_in`: a value for a printed
    node, of the type that it prints if that is known: a mapping alone on its line is spread."""
    if isinstance(part.compiled, TextTemplate):
        return tuple(bodies_of_file(part.compiled.name, library, stand_in))
    return (_Marker(library).body(part.node),)


# -- objects of watches.yaml -------------------------------------------------------------------------------------------


class _Marker:
    """Replaces the templates in the strings of an object by marks."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.printed: list[Printed] = []

    def body(self, node: YamlNode) -> Body:
        return Body(self._node(node), tuple(self.printed))

    def _node(self, node: YamlNode) -> YamlNode:
        value = node.value
        if isinstance(value, str):
            text, alone = self._text(value, node.site)
            return YamlNode(text, node.site, plain=alone)
        if isinstance(value, list):
            return YamlNode([self._node(item) for item in value], node.site)
        if isinstance(value, dict):
            members, sites = {}, {}
            for key, member in value.items():
                text, alone = self._text(key, node.key_sites[key])
                if alone and member.value is None:
                    text = VALUE.sub("\ufdd2\\1\ufdd1: 0", text)
                members[text], sites[text] = self._node(member), node.key_sites[key]
            return YamlNode(members, node.site, sites)
        return node

    def _text(self, text: str, site: Site) -> tuple[str, bool]:
        """The text with marks, and whether it is one slot, which keeps its type."""
        if "{{" not in text and "{%" not in text:
            return text, False
        writer = Writer(self.library, site.path, Choices())
        with self.library.renderer:
            layout = lay_out(writer.parts(self.library.written_string(text, site).body, {}))
        first = len(self.printed)
        self.printed += (writer.of_slot[id(slot)] for slot in layout.slots)
        marked = VALUE.sub(lambda match: f"\ufdd0{int(match[1]) + first}\ufdd1", layout.text)
        return marked, VALUE.fullmatch(marked) is not None


# -- files of templates/ -----------------------------------------------------------------------------------------------


def bodies_of_file(name: str, library: Library, stand_in: StandIn = as_text) -> Iterator[Body]:
    tree = library.written_tree(name)
    if tree.find(nodes.Extends) is not None:
        return
    choices = Choices()
    seen: set[str] = set()
    for _ in range(MAX_BODIES):
        choices.begin()
        with library.renderer:
            writer = Writer(library, library.prefix + name, choices, stand_in)
            found = _read(writer.parts(tree.body, {}), writer)
        for body in found:
            text = repr(body.document.data())
            if text not in seen:
                seen.add(text)
                yield body
        if choices.complete:
            return


# -- reading -----------------------------------------------------------------------------------------------------------


def _read(parts: list[Any], writer: Writer) -> list[Body]:
    layout = lay_out(parts)
    if _set_forms(layout):
        layout = lay_out(parts)
    place = _Place(layout, writer.library)
    documents, mistakes = read_yaml(layout.text, writer.path, locate=place.of)
    if mistakes:
        return []
    printed = tuple(writer.of_slot[id(slot)] for slot in layout.slots)
    return [Body(document, printed) for document in documents]


def _set_forms(layout: Layout) -> bool:
    """Gives slots that are alone on their lines the form of their neighbours: entries or items. Returns whether there
    are any."""
    lines = layout.text.split("\n")
    changed = False
    for number, line in enumerate(lines):
        match = VALUE.fullmatch(line.strip())
        if match is None:
            continue
        form = _form(lines, number)
        if form is not None:
            layout.slots[int(match[1])].value = form
            changed = True
    return changed


def _form(lines: list[str], number: int) -> dict[str, int] | list[int] | None:
    column = _column(lines[number])
    deeper = False
    for line in reversed(lines[:number]):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        depth = _column(line)
        if depth > column:
            deeper = True
        elif depth < column:
            if line.lstrip().startswith("- ") and depth + 2 == column:
                return {"": 0}
            break
        elif not VALUE.fullmatch(line.strip()):
            return [0] if line.lstrip().startswith("-") or (line.rstrip().endswith(":") and not deeper) else {"": 0}
    for line in lines[number + 1 :]:
        if line.strip() and not line.lstrip().startswith("#") and _column(line) <= column:
            if _column(line) < column or VALUE.fullmatch(line.strip()):
                return None
            return [0] if line.lstrip().startswith("-") else {"": 0}
    return None


def _column(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


class _Place:
    """The places of the text's values in the files that it comes from."""

    def __init__(self, layout: Layout, library: Library) -> None:
        self.lines = layout.text.split("\n")
        self.sites = layout.sites()
        self.library = library
        self.written: dict[str, list[str]] = {}  # the lines of the files

    def of(self, line: int, column: int) -> Site:
        site = self.sites[line - 1] if line <= len(self.sites) else None
        if site is None:
            return Site("")
        source = self.written.get(site.path)
        if source is None:
            name = site.path.removeprefix(self.library.prefix)
            source = self.written[site.path] = self.library.texts.get(name, "").split("\n")
        text = self.lines[line - 1]
        if not 0 < site.line <= len(source):
            return site
        written, rest = source[site.line - 1], _MARK.split(text[column - 1 :])[0].rstrip()
        if written[: column - 1] == text[: column - 1]:
            return Site(site.path, site.line, column)
        found = written.find(rest) if rest else -1
        return Site(site.path, site.line, found + 1)
