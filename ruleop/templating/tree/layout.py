"""Template output as one text, to be parsed as YAML, in which each slot is a short mark.

Marks are made of characters that are no characters (U+FDD0..U+FDD2, which Unicode reserves for a program's inside). A template that holds
one is refused at load, and values never are in the text, so a mark can only be ours. There are three forms:

- a value, wherever it stands: it has the shape of a plain word, so it is a scalar, or a part of one;
- entries or items to be spread, alone on a line: a key with a value, or an item, so that it fits among its neighbours;
- nothing, alone on a line: a comment to YAML. In a block scalar it turns out to be text, and what has no text is an error there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ruleop.errors import Site
from ruleop.templating.values.budget import MAX_OUTPUT, METER, NODE, Exhausted, weigh
from ruleop.templating.values.data import plain_and_weight
from ruleop.templating.values.faults import Fault
from ruleop.templating.values.text import Dump, Lit, Part, Slot, Text
from ruleop.templating.values.undefined import OMIT, Absent, Broken

OPEN, CLOSE, ALONE = "\ufdd0", "\ufdd1", "\ufdd2"
RESERVED = re.compile("[\ufdd0-\ufdd2]")
VALUE = re.compile(f"{OPEN}([0-9]+){CLOSE}")
SPREAD = re.compile(f"(?:- |#)?{ALONE}([0-9]+){CLOSE}(?:: 0)?")
_VALUE_FORM, _KEYS_FORM, _ITEM_FORM, _NOTHING_FORM = f"{OPEN}%d{CLOSE}", f"{ALONE}%d{CLOSE}: 0", f"- {ALONE}%d{CLOSE}", f"#{ALONE}%d{CLOSE}"
_MARKS = [_VALUE_FORM % number for number in range(512)]
_BLANK_TO_END = re.compile(r"[ \t]*(\n|#[^\n]*|\Z)")
_NUMBERS = frozenset({int, float, bool})


@dataclass(frozen=True, slots=True)
class Inserted:
    """Captured text that was laid out in the middle of other text: where each of its lines comes from."""

    sites: tuple[Site | None, ...]


@dataclass(slots=True)
class Layout:
    """`origins` says for each of the pieces of the text what it came from."""

    text: str
    slots: list[Slot]
    lost: list[Slot]  # alone on their lines and without a value: there is nothing to lay out
    pieces: list[str]
    origins: list[Part | Inserted]

    def sites(self) -> list[Site | None]:
        """Where in the templates each line of the text comes from."""
        return _sites_of(self.pieces, self.origins)

    def alone_on_line(self, line: int) -> Slot | None:
        """The slot that is all there is on a line (from 1) of the text."""
        lines = self.text.split("\n")
        text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
        match = VALUE.fullmatch(text) or SPREAD.fullmatch(text)
        return self.slots[int(match[1])] if match else None


def lay_out(parts: Sequence[Part]) -> Layout:
    pen = _Pen()
    pen.write(parts)
    if pen.weight[0] > MAX_OUTPUT:
        raise Exhausted(f"the values printed amount to more than {MAX_OUTPUT:,} characters")
    return Layout("".join(pen.out), pen.slots, pen.lost, pen.out, pen.origins)


class _Pen:
    def __init__(self, around: _Pen | None = None) -> None:
        self.out: list[str] = []
        self.origins: list[Part | Inserted] = []
        self.slots: list[Slot] = around.slots if around else []
        self.lost: list[Slot] = around.lost if around else []
        self.weight: list[int] = around.weight if around else [0]
        self.swallow = False  # the rest of this line vanishes with what stood alone on it

    def write(self, parts: Sequence[Part]) -> None:
        out, origins, slots, weight = self.out, self.origins, self.slots, 0
        for number, part in enumerate(parts):
            if type(part) is not Slot:
                text = self._after_vanished(part) if self.swallow and part else part
                out.append(text)
                origins.append(text)
                continue
            if self.swallow:
                continue  # it stands in the comment behind what vanished
            kind = type(part.value)
            if kind is str:
                weight += len(part.value)
            elif kind not in _NUMBERS:
                if part.place.alone and self._alone(part, parts, number):
                    continue
                self._settle(part)
            index = len(slots)
            slots.append(part)
            out.append(_MARKS[index] if index < 512 else _VALUE_FORM % index)
            origins.append(part)
        METER.spend(len(parts) >> 2)
        self.weight[0] += weight

    def _alone(self, slot: Slot, parts: Sequence[Part], number: int) -> bool:
        """Lays out a slot that is no plain scalar if it stands alone on its line. The template alone does not say whether it does: a loop
        may print several slots on one line."""
        indentation = self._indentation()
        if indentation is None or not _ends_here(parts, number):
            return False
        if isinstance(slot.value, Text):
            self._insert(slot.value, slot, indentation)
            return True
        self._settle(slot)
        value = slot.value.data if isinstance(slot.value, Dump) else slot.value
        if isinstance(value, Mapping):
            self._spread(slot, value, _KEYS_FORM, len(indentation), parts, number)
        elif isinstance(value, list):
            self._spread(slot, value, _ITEM_FORM, len(indentation), parts, number)
        elif value is None or value is OMIT:
            self._mark(slot, _NOTHING_FORM)
        elif isinstance(value, Absent):
            self.lost.append(slot)
            self._mark(slot, _NOTHING_FORM)
        else:
            self._mark(slot, _VALUE_FORM)
        return True

    def _settle(self, slot: Slot) -> None:
        """What a template made becomes plain data, and is weighed. If it cannot, that shows when somebody uses it."""
        value = slot.value
        if value is None or isinstance(value, Absent):
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

    def _mark(self, slot: Slot, form: str) -> None:
        self.slots.append(slot)
        self.out.append(form % (len(self.slots) - 1))
        self.origins.append(slot)

    def _spread(self, slot: Slot, value: Any, form: str, column: int, parts: Sequence[Part], number: int) -> None:
        """An empty one adds nothing, and so fits among entries of either kind; where it is all there is, it is the value."""
        if not len(value):
            among_others = self._follows(column, a_list=form is _ITEM_FORM)
            if among_others is None:
                among_others = _is_followed(column, parts, number)
            form = _NOTHING_FORM if among_others else form
        self._mark(slot, form)

    def _insert(self, text: Text, slot: Slot, indentation: str) -> None:
        inner = _Pen(self)
        inner.write(text.parts)
        lines = "".join(inner.out).split("\n")
        METER.spend(4 * len(lines))
        sites = _sites_of(inner.out, inner.origins)
        first = next((number for number, line in enumerate(lines) if line.strip()), None)
        if first is None:
            self._vanish(indentation)
            return
        last = max(number for number, line in enumerate(lines) if line.strip())
        lines, sites = lines[first : last + 1], sites[first : last + 1]
        cut = min(len(line) - len(line.lstrip(" ")) for line in lines if line.strip())
        laid = [(indentation if number else "") + line[cut:] if line.strip() else "" for number, line in enumerate(lines)]
        self.out.append("\n".join(laid))
        self.origins.append(Inserted(tuple(site or slot.place.site for site in sites)))

    def _indentation(self) -> str | None:
        """The blanks before this point on its line, None if something else is before it."""
        tail = ""
        for piece in reversed(self.out):
            cut = piece.rfind("\n")
            tail = piece[cut + 1 :] + tail
            if tail.strip(" "):
                return None
            if cut >= 0:
                break
        return tail

    def _vanish(self, indentation: str) -> None:
        left = len(indentation)
        while left:
            piece = self.out[-1]
            kept = piece[: max(0, len(piece) - left)]
            left -= len(piece) - len(kept)
            self.out[-1] = kept
            if left:
                self.out.pop()
                self.origins.pop()
        self.swallow = True

    def _after_vanished(self, part: str) -> str:
        """Literal text behind something that vanished with its line."""
        cut = part.find("\n")
        if cut < 0:
            return ""
        self.swallow = False
        rest = part[cut + 1 :]
        return Lit(rest, Site(part.site.path, part.site.line + 1)) if isinstance(part, Lit) else rest

    def _follows(self, column: int, *, a_list: bool) -> bool | None:
        """Whether an entry at this column stands before; None if that does not decide it."""
        deeper = False
        for line in self._lines_before():
            body = line.lstrip(" ")
            depth = len(line) - len(body)
            if not body or body.startswith("#") or depth > column:
                deeper = deeper or (bool(body) and not body.startswith("#"))
                continue
            if depth == column:
                # A list may stand at the column of its key. It is the key's value then, not its neighbour.
                return deeper or not (a_list and body.rstrip().endswith(":"))
            return True if body.startswith("- ") and len(line) - len(body[1:].lstrip(" ")) == column else None
        return None

    def _lines_before(self) -> Iterator[str]:
        """The lines above this one, from below."""
        tail, here = "", True
        for piece in reversed(self.out):
            METER.spend(1 + (len(piece) >> 6))
            *lines, first = reversed((piece + tail).split("\n"))
            for line in lines:
                if not here:
                    yield line
                here = False
            tail = first
        if not here:
            yield tail


def _ends_here(parts: Sequence[Part], number: int) -> bool:
    """Whether nothing but a comment is behind a slot on its line."""
    rest = ""
    for index in range(number + 1, len(parts)):
        part = parts[index]
        if isinstance(part, Slot):
            return rest.lstrip(" \t").startswith("#")
        rest += part
        if rest.strip(" \t"):
            break
    return _BLANK_TO_END.match(rest) is not None


def _is_followed(column: int, parts: Sequence[Part], number: int) -> bool:
    """Whether an entry at this column comes next."""
    line, here = "", True
    for index in range(number + 1, len(parts)):
        part = parts[index]
        METER.spend(1)
        pieces = [OPEN] if isinstance(part, Slot) else part.split("\n")
        for piece in pieces[:-1]:
            line += piece
            if not here and line.strip() and not line.lstrip().startswith("#"):
                return len(line) - len(line.lstrip(" ")) == column
            line, here = "", False
        line += pieces[-1]
        if not here and line.strip() and not line.lstrip().startswith("#"):
            return len(line) - len(line.lstrip(" ")) == column
    return False


def _sites_of(pieces: Sequence[str], origins: Sequence[Part | Inserted]) -> list[Site | None]:
    """For each line the place of the first literal that shows on it, else of a slot."""
    sites: list[Site | None] = [None]
    shown = False
    for piece, origin in zip(pieces, origins, strict=True):
        for number, line in enumerate(piece.split("\n")):
            if number:
                sites.append(None)
                shown = False
            if shown:
                continue
            if isinstance(origin, Inserted):
                sites[-1], shown = origin.sites[number], True
            elif isinstance(origin, Slot):
                sites[-1] = origin.place.site
            elif isinstance(origin, Lit) and (sites[-1] is None or line.strip()):
                sites[-1], shown = Site(origin.site.path, origin.site.line + number), bool(line.strip())
    return sites
