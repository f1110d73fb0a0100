"""What a running template gives: literal text of the template's own, and slots for everything that it prints.

A printed value never becomes text on its way. It travels as a `Slot` beside the literals, and only `lay_out` turns the sequence into one
text, in which each slot is a short mark, to be parsed as YAML. Marks are made of characters that are no characters (U+FDD0..U+FDD2,
which Unicode reserves for a program's inside); a template that holds one is refused at load, and values never are in the text, so a mark
can only be ours.

Text that a template captures (a macro's result, a `set` block, a `filter` block) is a `Text`: still literals and slots. Printed alone on its
line it is laid out there, indented to that column. Anything else that is done to it sees the string that it amounts to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ruleop.errors import Site
from ruleop.templating.values import OMIT, Absent, Fault, NotThereYet, View, plain, scalar_text

OPEN, CLOSE, SPREAD = "\ufdd0", "\ufdd1", "\ufdd2"
RESERVED = re.compile("[\ufdd0-\ufdd2]")
MARK = re.compile("\ufdd0([0-9]+)\ufdd1")
SPREAD_MARK = re.compile("(?:- )?\ufdd2([0-9]+)\ufdd1(?:: 0)?")
_MARKS = [f"{OPEN}{number}{CLOSE}" for number in range(512)]
_BLANK_TO_END = re.compile(r"[ \t]*(\n|#[^\n]*|\Z)")


class Lit(str):
    """Literal text of a template, which knows where it stands."""

    site: Site

    def __new__(cls, text: str, site: Site) -> Lit:
        lit = super().__new__(cls, text)
        lit.site = site
        return lit


@dataclass(frozen=True, slots=True)
class Place:
    """A `{{ ... }}` in a template: where it is, what it says, and whether nothing else is printed on its line."""

    site: Site
    expression: str
    alone: bool = False


class Slot:
    """A value that was printed, and where."""

    __slots__ = ("place", "value")

    def __init__(self, value: Any, place: Place) -> None:
        self.value = value
        self.place = place


Part: TypeAlias = str | Slot


def flat(parts: Iterable[Any]) -> tuple[Part, ...]:
    """A recursive loop hands on what its inner passes captured, as it stands."""
    result = tuple(parts)
    if any(type(part) is Text for part in result):
        return tuple(piece for part in result for piece in (part.parts if type(part) is Text else (part,)))
    return result


class Text:
    """Captured template text: literals and slots."""

    __slots__ = ("_string", "indent_by", "parts")

    def __init__(self, parts: Iterable[Part], indent_by: tuple[str, bool, bool] | None = None) -> None:
        self.parts = flat(parts)
        self.indent_by = indent_by  # what the filter `indent` asked for; laid out alone on a line, the column decides instead
        self._string: str | None = None

    def as_text(self) -> str:
        """The string that it amounts to. A slot without a value raises its fault."""
        if self._string is None:
            pieces = []
            for part in self.parts:
                if not isinstance(part, Slot):
                    pieces.append(part)
                elif part.value is OMIT and not pieces and len(self.parts) == 1:
                    return ""
                else:
                    pieces.append(slot_text(part))
            text = "".join(pieces)
            self._string = indent_text(text, *self.indent_by) if self.indent_by else text
        return self._string

    def single(self) -> Slot | None:
        """Its slot, when it is nothing but one."""
        return self.parts[0] if len(self.parts) == 1 and isinstance(self.parts[0], Slot) else None

    def map_edges(self, change: Callable[[str, bool, bool], str]) -> Text:
        """The same text with its first and last literals changed; `change` gets the literal, and whether it is the first and the last."""
        last = len(self.parts) - 1
        return Text(
            Lit(change(part, number == 0, number == last), part.site) if isinstance(part, Lit) else part for number, part in enumerate(self.parts)
        )

    def __str__(self) -> str:
        return self.as_text()

    def __len__(self) -> int:
        return len(self.as_text())

    def __bool__(self) -> bool:
        return bool(self.as_text())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Absent):
            raise other.fault()
        return self.as_text() == (other.as_text() if isinstance(other, Text) else other)

    def __hash__(self) -> int:
        return hash(self.as_text())

    def __lt__(self, other: Any) -> bool:
        return self.as_text() < str(other)

    def __contains__(self, other: object) -> bool:
        return str(other) in self.as_text()

    def __iter__(self) -> Any:
        return iter(self.as_text())

    def __getitem__(self, index: Any) -> str:
        return self.as_text()[index]


class Dump:
    """What `to_yaml` and `to_json` give: text, which still knows the data that it was made of. Alone on its line it is that data."""

    __slots__ = ("_render", "_text", "data", "indent_by")

    def __init__(self, data: Any, render: Callable[[Any], str], indent_by: tuple[str, bool, bool] | None = None) -> None:
        self.data = data
        self.indent_by = indent_by
        self._render = render
        self._text: str | None = None

    def indented(self, by: tuple[str, bool, bool]) -> Dump:
        return Dump(self.data, self._render, by)

    def bare(self) -> str:
        if self._text is None:
            self._text = self._render(self.data)
        return self._text

    def as_text(self) -> str:
        return indent_text(self.bare(), *self.indent_by) if self.indent_by else self.bare()

    def __str__(self) -> str:
        return self.as_text()

    def __len__(self) -> int:
        return len(self.as_text())

    def __eq__(self, other: object) -> bool:
        return self.as_text() == (other.as_text() if isinstance(other, (Text, Dump)) else other)

    def __hash__(self) -> int:
        return hash(self.as_text())

    def __contains__(self, other: object) -> bool:
        return str(other) in self.as_text()


def indent_text(text: str, by: str, first: bool, blank: bool) -> str:
    """As Jinja's `indent`: all lines but the first, and but blank ones."""
    lines = text.split("\n")
    start = 0 if first else 1
    return "\n".join(by + line if number >= start and (line.strip() or blank) else line for number, line in enumerate(lines))


def faulty(error: Fault, place: Place) -> Fault:
    """The fault, said to be at `place` unless it knows better."""
    if getattr(error, "site", None) is None:
        error.site = place.site  # type: ignore[attr-defined]
        error.expression = place.expression  # type: ignore[attr-defined]
    return error


def slot_text(slot: Slot) -> str:
    try:
        return scalar_text(slot.value)
    except Fault as error:
        raise faulty(error, slot.place) from None


# -- laying out --------------------------------------------------------------------------------------------------------------------------

_SCALARS = frozenset({str, int, float, bool})


@dataclass(slots=True)
class Layout:
    """Template output as one text with marks. `origins` says for each piece of it which literal or slot it came from."""

    text: str
    slots: list[Slot]
    lost: list[Slot] = field(default_factory=list)  # alone on their lines and without a value: there is nothing to lay out
    origins: list[tuple[str, Part]] = field(default_factory=list)

    def site_of_line(self, line: int) -> Site | None:
        """Where in the templates a line (from 1) of the text comes from."""
        at, site = 1, None
        for piece, origin in self.origins:
            breaks = piece.count("\n")
            if at <= line <= at + breaks:
                if isinstance(origin, Slot):
                    site = origin.place.site
                elif isinstance(origin, Lit) and (site is None or piece.split("\n")[line - at].strip()):
                    site = Site(origin.site.path, origin.site.line + line - at)
            at += breaks
            if at > line:
                break
        return site

    def alone_on_line(self, line: int) -> Slot | None:
        """The slot that is all there is on a line of the text."""
        lines = self.text.split("\n")
        text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
        match = MARK.fullmatch(text) or SPREAD_MARK.fullmatch(text)
        return self.slots[int(match[1])] if match else None


def lay_out(parts: Sequence[Part]) -> Layout:
    pen = _Pen()
    pen.write(parts)
    return Layout("".join(pen.out), pen.slots, pen.lost, list(zip(pen.out, pen.origins, strict=True)))


class _Pen:
    def __init__(self, slots: list[Slot] | None = None, lost: list[Slot] | None = None) -> None:
        self.out: list[str] = []
        self.origins: list[Part] = []
        self.slots = [] if slots is None else slots
        self.lost = [] if lost is None else lost
        self.swallow = False  # the rest of this line vanishes with what stood alone on it

    def write(self, parts: Sequence[Part]) -> None:
        out, origins, slots = self.out, self.origins, self.slots
        for number, part in enumerate(parts):
            if type(part) is not Slot:
                text = part
                if self.swallow and text:
                    self.swallow = False
                    text = text[text.find("\n") + 1 :] if "\n" in text else ""
                out.append(text)
                origins.append(part)
            elif not part.place.alone or type(part.value) in _SCALARS:
                index = len(slots)
                slots.append(part)
                out.append(_MARKS[index] if index < 512 else f"{OPEN}{index}{CLOSE}")
                origins.append(part)
            else:
                self._alone(part, parts, number)

    def _alone(self, slot: Slot, parts: Sequence[Part], number: int) -> None:
        """A slot that is not a plain scalar, and that the template says stands alone on its line. Whether it does was not decided until
        now: a loop may print several slots on one line."""
        indentation = self._indentation()
        if indentation is None or not self._ends_here(parts, number):
            self._mark(slot, f"{OPEN}{{}}{CLOSE}")
            return
        value = slot.value
        if isinstance(value, Text):
            self._insert(value, slot, indentation)
            return
        if isinstance(value, Dump):
            value = value.data
        if value is None or value is OMIT:
            self._vanish(indentation)
        elif isinstance(value, Absent):
            self.lost.append(slot)
            self._vanish(indentation)
        elif isinstance(value, Mapping):
            self._spread(slot, value, f"{SPREAD}{{}}{CLOSE}: 0", indentation, parts, number)
        elif isinstance(value, (str, int, float)):
            self._mark(slot, f"{OPEN}{{}}{CLOSE}")
        else:
            slot.value = value = value if isinstance(value, (View, list, tuple, Dump)) else plain(value)
            self._spread(slot, value, f"- {SPREAD}{{}}{CLOSE}", indentation, parts, number)

    def _mark(self, slot: Slot, form: str) -> None:
        self.slots.append(slot)
        self.out.append(form.format(len(self.slots) - 1))
        self.origins.append(slot)

    def _spread(self, slot: Slot, value: Any, form: str, indentation: str, parts: Sequence[Part], number: int) -> None:
        """An empty one adds nothing, and so fits among entries of either kind; where it is all there is, it is the value."""
        if not len(value) and self._has_siblings(len(indentation), parts, number):
            self._vanish(indentation)
        else:
            self._mark(slot, form)

    def _insert(self, text: Text, slot: Slot, indentation: str) -> None:
        inner = _Pen(self.slots, self.lost)
        inner.write(text.parts)
        lines = _dedented("".join(inner.out).split("\n"))
        while lines and not lines[-1].strip():
            lines.pop()
        if not lines:
            self._vanish(indentation)
            return
        laid = ("\n" + indentation).join(lines)
        laid = re.sub(r"(?m)^[ \t]+$", "", laid)
        self.out.append(laid)
        self.origins.append(slot)

    def _indentation(self) -> str | None:
        """The blanks before this point on its line, None if something else is before it."""
        tail = ""
        for piece in reversed(self.out):
            cut = piece.rfind("\n")
            tail = piece[cut + 1 :] + tail
            if cut >= 0:
                break
        return None if tail.strip(" ") else tail

    @staticmethod
    def _ends_here(parts: Sequence[Part], number: int) -> bool:
        rest = ""
        for part in parts[number + 1 :]:
            if isinstance(part, Slot):
                return bool(rest.strip()) and rest.lstrip().startswith("#")
            rest += part
            if "\n" in rest:
                break
        return _BLANK_TO_END.match(rest) is not None

    def _vanish(self, indentation: str) -> None:
        left = len(indentation)
        while left and self.out:
            piece = self.out[-1]
            kept = piece[: max(0, len(piece) - left)]
            left -= len(piece) - len(kept)
            self.out[-1] = kept
            if left:
                self.out.pop()
                self.origins.pop()
        self.swallow = True

    def _has_siblings(self, column: int, parts: Sequence[Part], number: int) -> bool:
        """Whether other entries stand at this column, before or behind."""
        before = "".join(self.out)
        for line in reversed(before[: before.rfind("\n") + 1].split("\n")):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            depth = len(line) - len(line.lstrip(" "))
            if depth < column and not (line.lstrip(" ").startswith("- ") and self._item_column(line) == column):
                break
            if depth <= column:
                return True
        behind = "".join(OPEN if isinstance(part, Slot) else part for part in parts[number + 1 :])
        for line in behind.split("\n")[1:]:
            if line.strip() and not line.lstrip().startswith("#"):
                return len(line) - len(line.lstrip(" ")) == column
        return False

    @staticmethod
    def _item_column(line: str) -> int:
        """Where the first entry stands in `- key: value`."""
        body = line.lstrip(" ")
        return len(line) - len(body[1:].lstrip(" "))


def _dedented(lines: list[str]) -> list[str]:
    while lines and not lines[0].strip():
        lines = lines[1:]
    depths = [len(line) - len(line.lstrip(" ")) for line in lines if line.strip()]
    cut = min(depths, default=0)
    return [line[cut:] for line in lines]


def waits_or_fails(slot: Slot) -> Fault | None:
    """The fault of a slot that has no value; None if it may be left out."""
    if isinstance(slot.value, Absent) and slot.value is not OMIT:
        return faulty(slot.value.fault(), slot.place)
    return None


__all__ = ["Dump", "Layout", "Lit", "MARK", "NotThereYet", "Place", "RESERVED", "SPREAD_MARK", "Slot", "Text", "lay_out", "slot_text", "waits_or_fails"]
