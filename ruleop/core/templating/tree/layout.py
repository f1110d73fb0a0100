"""Lays out the output of a template as YAML text with a short mark for each slot.

Marks consist of noncharacters (U+FDD0..U+FDD2, which Unicode reserves for internal use). A template that contains one
is rejected when it is loaded, and values are never part of the text, so every mark represents a slot. There are three
forms:

- a value, at any position: a plain word, so that it is parsed as a scalar or a part of one;
- entries or items to be spread, alone on a line: a key with a value, or an item, so that it matches its neighbours;
- nothing, alone on a line: a YAML comment. Inside a block scalar it is text, where a value without text is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ruleop.core.errors import Site
from ruleop.core.templating.values.cost import MAX_OUTPUT, METER, NODE, Exhausted, weigh
from ruleop.core.templating.values.data import plain_and_weight
from ruleop.core.templating.values.faults import Fault
from ruleop.core.templating.values.text import Dump, Lit, Part, Slot, Text
from ruleop.core.templating.values.undefined import OMIT, Broken, UndefinedValue

OPEN, CLOSE, ALONE = "\ufdd0", "\ufdd1", "\ufdd2"
RESERVED = re.compile("[\ufdd0-\ufdd2]")
VALUE = re.compile(f"{OPEN}([0-9]+){CLOSE}")
SPREAD = re.compile(f"(?:- |#)?{ALONE}([0-9]+){CLOSE}(?:: 0)?")
_VALUE_FORM, _KEYS_FORM, _ITEM_FORM, _NOTHING_FORM = (
    f"{OPEN}%d{CLOSE}",
    f"{ALONE}%d{CLOSE}: 0",
    f"- {ALONE}%d{CLOSE}",
    f"#{ALONE}%d{CLOSE}",
)
_MARKS = [_VALUE_FORM % number for number in range(512)]
_BLANK_TO_END = re.compile(r"[ \t]*(\n|#[^\n]*|\Z)")
_NUMBERS = frozenset({int, float, bool})


@dataclass(frozen=True, slots=True)
class Inserted:
    """Captured text that was inserted into other text, with the origin of each of its lines."""

    sites: tuple[Site | None, ...]


@dataclass(slots=True)
class Layout:
    """The text with its slots. `origins` has the source of each piece of the text."""

    text: str
    slots: list[Slot]
    undefined: list[Slot]  # undefined values alone on their lines
    pieces: list[str]
    origins: list[Part | Inserted]

    def sites(self) -> list[Site | None]:
        """The site in a template from which each line of the text comes."""
        return _line_sites(self.pieces, self.origins)

    def joined_lines(self, line: int) -> tuple[Site, int] | None:
        """The two lines of one template that are one line (counted from 1) of the text; None if there are not two."""
        number, first = 1, None
        for piece, origin in zip(self.pieces, self.origins, strict=True):
            for step, part in enumerate(piece.split("\n")):
                number += step > 0
                if number == line and isinstance(origin, Lit) and part.strip():
                    site = Site(origin.site.path, origin.site.line + step)
                    first = first or site
                    if first.path == site.path and first.line < site.line:
                        return first, site.line
        return None

    def alone_on_line(self, line: int) -> Slot | None:
        """The slot that is alone on a line (counted from 1) of the text."""
        lines = self.text.split("\n")
        text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
        match = VALUE.fullmatch(text) or SPREAD.fullmatch(text)
        return self.slots[int(match[1])] if match else None


def lay_out(parts: Sequence[Part]) -> Layout:
    writer = _Writer()
    writer.write(parts)
    if writer.weight[0] > MAX_OUTPUT:
        raise Exhausted(f"the printed values have more than {MAX_OUTPUT:,} characters")
    return Layout("".join(writer.out), writer.slots, writer.undefined, writer.out, writer.origins)


class _Writer:
    def __init__(self, outer: _Writer | None = None) -> None:
        self.out: list[str] = []
        self.origins: list[Part | Inserted] = []
        self.slots: list[Slot] = outer.slots if outer else []
        self.undefined: list[Slot] = outer.undefined if outer else []
        self.weight: list[int] = outer.weight if outer else [0]
        self.drop_line = False  # drop the rest of the line, after an empty value alone on it

    def write(self, parts: Sequence[Part]) -> None:
        out, origins, slots, weight = self.out, self.origins, self.slots, 0
        for number, part in enumerate(parts):
            if type(part) is not Slot:
                text = self._after_dropped_line(part) if self.drop_line and part else part
                out.append(text)
                origins.append(text)
                continue
            if self.drop_line:
                continue  # in a comment on a dropped line
            kind = type(part.value)
            if kind is str:
                weight += len(part.value)
            elif kind not in _NUMBERS:
                if part.place.alone and self._write_alone(part, parts, number):
                    continue
                self._convert(part)
            index = len(slots)
            slots.append(part)
            out.append(_MARKS[index] if index < 512 else _VALUE_FORM % index)
            origins.append(part)
        METER.keep(len(parts) * 60)
        METER.spend(len(parts))
        self.weight[0] += weight

    def _write_alone(self, slot: Slot, parts: Sequence[Part], number: int) -> bool:
        """Lays out a slot that is not a plain scalar, if it is alone on its line. The template does not show that: a
        loop may print several slots on one line."""
        indentation = self._indentation()
        if indentation is None or not _ends_line(parts, number):
            return False
        if isinstance(slot.value, Text):
            self._insert_text(slot.value, slot, indentation)
            return True
        self._convert(slot)
        value = slot.value.data if isinstance(slot.value, Dump) else slot.value
        if isinstance(value, Mapping):
            self._add_spread(slot, value, _KEYS_FORM, len(indentation), parts, number)
        elif isinstance(value, list):
            self._add_spread(slot, value, _ITEM_FORM, len(indentation), parts, number)
        elif value is None or value is OMIT:
            self._add_mark(slot, _NOTHING_FORM)
        elif isinstance(value, UndefinedValue):
            self.undefined.append(slot)
            self._add_mark(slot, _NOTHING_FORM)
        else:
            self._add_mark(slot, _VALUE_FORM)
        return True

    def _convert(self, slot: Slot) -> None:
        """Converts the value to plain data and adds its weight. A value that cannot be converted becomes `Broken`."""
        value = slot.value
        if value is None or isinstance(value, UndefinedValue):
            return
        try:
            if isinstance(value, Text):
                weight = len(value)
            elif isinstance(value, Dump):
                weight = weigh(value.data) if slot.place.alone else len(value)
            else:
                slot.value, weight = plain_and_weight(value)
        except Exhausted:
            raise
        except Fault as fault:
            slot.value, weight = Broken("", fault), NODE
        self.weight[0] += weight

    def _add_mark(self, slot: Slot, form: str) -> None:
        self.slots.append(slot)
        self.out.append(form % (len(self.slots) - 1))
        self.origins.append(slot)

    def _add_spread(self, slot: Slot, value: Any, form: str, column: int, parts: Sequence[Part], number: int) -> None:
        """Adds entries or items. An empty container is the value if it has no neighbours, and adds nothing
        otherwise."""
        if not len(value):
            among_others = self._has_previous_entry(column, a_list=form is _ITEM_FORM)
            if among_others is None:
                among_others = _has_next_entry(column, parts, number)
            form = _NOTHING_FORM if among_others else form
        self._add_mark(slot, form)

    def _insert_text(self, text: Text, slot: Slot, indentation: str) -> None:
        inner = _Writer(self)
        inner.write(text.parts)
        lines = "".join(inner.out).split("\n")
        METER.spend(4 * len(lines))
        sites = _line_sites(inner.out, inner.origins)
        first = next((number for number, line in enumerate(lines) if line.strip()), None)
        if first is None:
            self._drop_line(indentation)
            return
        last = max(number for number, line in enumerate(lines) if line.strip())
        lines, sites = lines[first : last + 1], sites[first : last + 1]
        cut = min(len(line) - len(line.lstrip(" ")) for line in lines if line.strip())
        indented = [
            (indentation if number else "") + line[cut:] if line.strip() else "" for number, line in enumerate(lines)
        ]
        self.out.append("\n".join(indented))
        self.origins.append(Inserted(tuple(site or slot.place.site for site in sites)))

    def _indentation(self) -> str | None:
        """The spaces before this point on its line; None if there is something else."""
        tail = ""
        for piece in reversed(self.out):
            cut = piece.rfind("\n")
            tail = piece[cut + 1 :] + tail
            if tail.strip(" "):
                return None
            if cut >= 0:
                break
        return tail

    def _drop_line(self, indentation: str) -> None:
        left = len(indentation)
        while left:
            piece = self.out[-1]
            kept = piece[: max(0, len(piece) - left)]
            left -= len(piece) - len(kept)
            self.out[-1] = kept
            if left:
                self.out.pop()
                self.origins.pop()
        self.drop_line = True

    def _after_dropped_line(self, part: str) -> str:
        """Literal text after a dropped line."""
        cut = part.find("\n")
        if cut < 0:
            return ""
        self.drop_line = False
        rest = part[cut + 1 :]
        return Lit(rest, Site(part.site.path, part.site.line + 1)) if isinstance(part, Lit) else rest

    def _has_previous_entry(self, column: int, *, a_list: bool) -> bool | None:
        """Whether an entry at this column precedes; None if the lines before do not decide it."""
        deeper = False
        for line in self._previous_lines():
            body = line.lstrip(" ")
            depth = len(line) - len(body)
            if not body or body.startswith("#") or depth > column:
                deeper = deeper or (bool(body) and not body.startswith("#"))
                continue
            if depth == column:
                # A list may have the column of its key. It is the value of the key then, not a neighbour.
                return deeper or not (a_list and body.rstrip().endswith(":"))
            return True if body.startswith("- ") and len(line) - len(body[1:].lstrip(" ")) == column else None
        return None

    def _previous_lines(self) -> Iterator[str]:
        """The previous lines, from the last to the first."""
        tail, on_this_line = "", True
        for piece in reversed(self.out):
            METER.spend(1 + (len(piece) >> 6))
            *lines, first = reversed((piece + tail).split("\n"))
            for line in lines:
                if not on_this_line:
                    yield line
                on_this_line = False
            tail = first
        if not on_this_line:
            yield tail


def _ends_line(parts: Sequence[Part], number: int) -> bool:
    """Whether a slot is followed only by a comment on its line."""
    rest = ""
    for index in range(number + 1, len(parts)):
        part = parts[index]
        if isinstance(part, Slot):
            return rest.lstrip(" \t").startswith("#")
        rest += part
        if rest.strip(" \t"):
            break
    return _BLANK_TO_END.match(rest) is not None


def _has_next_entry(column: int, parts: Sequence[Part], number: int) -> bool:
    """Whether the next entry is at this column."""
    line, on_this_line = "", True
    for index in range(number + 1, len(parts)):
        part = parts[index]
        pieces = [OPEN] if isinstance(part, Slot) else part.split("\n")
        for piece in pieces[:-1]:
            line += piece
            if not on_this_line and line.strip() and not line.lstrip().startswith("#"):
                return len(line) - len(line.lstrip(" ")) == column
            line, on_this_line = "", False
        line += pieces[-1]
        if not on_this_line and line.strip() and not line.lstrip().startswith("#"):
            return len(line) - len(line.lstrip(" ")) == column
    return False


def _line_sites(pieces: Sequence[str], origins: Sequence[Part | Inserted]) -> list[Site | None]:
    """For each line the site of its first visible literal, or else of a slot."""
    sites: list[Site | None] = [None]
    visible = False
    for piece, origin in zip(pieces, origins, strict=True):
        for number, line in enumerate(piece.split("\n")):
            if number:
                sites.append(None)
                visible = False
            if visible:
                continue
            if isinstance(origin, Inserted):
                sites[-1], visible = origin.sites[number], True
            elif isinstance(origin, Slot):
                sites[-1] = origin.place.site
            elif isinstance(origin, Lit) and (sites[-1] is None or line.strip()):
                sites[-1], visible = Site(origin.site.path, origin.site.line + number), bool(line.strip())
    return sites
