"""Reads what a writer wrote, with a form for each slot that is alone on its line.

What such a slot prints is not known: entries, items, a value, nothing, or captured text. The first form is that of its
neighbours; a text is not YAML only if it is none with any of the forms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jinja2 import nodes

from ruleop.core.errors import RuleError, Site
from ruleop.core.templating.bodies.body import MARK
from ruleop.core.templating.tree.layout import ALONE, CLOSE, OPEN, VALUE, Layout, lay_out
from ruleop.core.templating.tree.yaml_reader import read_yaml

if TYPE_CHECKING:
    from ruleop.core.templating.bodies.body_writer import Writer
    from ruleop.core.templating.compile.library import Library
    from ruleop.core.templating.tree.yaml_node import YamlNode
    from ruleop.core.templating.values.text import Slot

_ALONE: Final = re.compile(rf"^( *)(?:{OPEN}|- {ALONE}|{ALONE})([0-9]+){CLOSE}(?:: 0)?(?= *$)", re.MULTILINE)
_NOTHING, _VALUE, _OPEN_KEY = rf"\1#{ALONE}\2{CLOSE}", rf"\1{OPEN}\2{CLOSE}", rf"\1{ALONE}\2{CLOSE}:"
_RESOURCE: Final = frozenset({"cr", "metadata", "spec", "status", "vars"})
_KEEPS_TEXT: Final = frozenset({"indent", "trim", "default", "d"})


@dataclass(frozen=True, slots=True)
class Reading:
    """The text of a body as it was read: documents or, if it is not YAML, mistakes, of which the last is on a line of
    the text."""

    documents: tuple[YamlNode, ...]
    mistakes: tuple[RuleError, ...] = ()
    line: int = 0
    text: str = ""

    @property
    def prefix(self) -> str:
        """The text up to the last mistake: what follows does not matter."""
        return "\n".join(self.text.split("\n")[: self.line])

    @property
    def progress(self) -> tuple[bool, int]:
        """The point to which a text was read: only an error of syntax ends the reading."""
        return not self.mistakes[-1].message.startswith("not YAML"), self.line


Readings = dict[str, Reading]
"""By their texts: bodies that differ only in their types are read once."""


def read_parts(parts: list[Any], writer: Writer, known: Readings) -> tuple[Reading, list[Slot]]:
    """The documents, and the slots by the numbers of their marks."""
    layout = lay_out(parts)
    if _set_forms(layout):
        layout = lay_out(parts)
    found = _read(layout, layout.text, writer, known)
    if not found.mistakes or _ALONE.search(layout.text) is None:
        return found, layout.slots

    def open_key(match: re.Match[str]) -> str:
        """The form of captured text that ends with a key; data cannot."""
        slot = layout.slots[int(match[2])]
        return match.expand(_OPEN_KEY if may_be_text(writer.of_slot[id(slot)].node) else _VALUE)

    for form in (_NOTHING, _VALUE, open_key):
        other = _read(layout, _ALONE.sub(form, layout.text), writer, known)
        if not other.mistakes:
            return other, layout.slots
        if other.progress > found.progress:
            found = other
    return found, layout.slots


def may_be_text(node: nodes.Node | None) -> bool:
    """Whether an expression may result in captured text, or in text of a `let`, and not only in data."""
    while isinstance(node, nodes.Filter) and node.name in _KEEPS_TEXT:
        node = node.node
    is_data = isinstance(node, (nodes.Filter, nodes.Const, nodes.Dict, nodes.List))
    while isinstance(node, (nodes.Getattr, nodes.Getitem)):
        node = node.node
    return not (is_data or (isinstance(node, nodes.Name) and node.name in _RESOURCE))


def _read(layout: Layout, text: str, writer: Writer, known: Readings) -> Reading:
    found = known.get(text)
    if found is None:
        documents, mistakes = read_yaml(text, writer.path, locate=_Origins(layout, writer.path, writer.library).site)
        line = read_yaml(text, writer.path)[1][-1].site.line if mistakes else 0
        found = known[text] = Reading(tuple(documents), tuple(map(_without_marks, mistakes)), line, text)
    return found


def _without_marks(mistake: RuleError) -> RuleError:
    return RuleError(MARK.sub("{{ ... }}", mistake.message), mistake.site)


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


class _Origins:
    """The places of the text's values in the files that it comes from."""

    def __init__(self, layout: Layout, path: str, library: Library) -> None:
        self.path = path
        self.lines = layout.text.split("\n")
        self.sites = layout.sites()
        self.library = library
        self.written: dict[str, list[str]] = {}  # the lines of the files

    def site(self, line: int, column: int) -> Site:
        if line > len(self.sites) or (site := self.sites[line - 1]) is None:  # after the text, or not of a template
            return next((each for each in reversed(self.sites[: line - 1]) if each), Site(self.path, 1))
        source = self.written.get(site.path)
        if source is None:
            name = site.path.removeprefix(self.library.prefix)
            source = self.written[site.path] = self.library.texts.get(name, "").split("\n")
        text = self.lines[line - 1]
        if not 0 < site.line <= len(source):
            return site
        written, rest = source[site.line - 1], MARK.split(text[column - 1 :])[0].rstrip()
        if written[: column - 1] == text[: column - 1]:
            return Site(site.path, site.line, column)
        found = written.find(rest) if rest else -1
        return Site(site.path, site.line, found + 1)
