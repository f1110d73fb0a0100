"""What a running template gives: literal text of the template's own, and slots for everything that it prints.

A printed value never becomes text on its way. It travels as a `Slot` beside the literals, and only `lay_out` turns the sequence into one
text.

Text that a template captures (a macro's result, a `set` block, a `filter` block) is a `Text`: still literals and slots. Printed alone on
its line it is laid out there, indented to that column. Anything else that is done to it sees the string that it amounts to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, final

from ruleop.errors import Site
from ruleop.templating.values.budget import MAX_TEXT, METER
from ruleop.templating.values.data import scalar_text
from ruleop.templating.values.faults import Fault
from ruleop.templating.values.undefined import OMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Indent(NamedTuple):
    """What the filter `indent` was asked for. Text that is laid out alone on a line takes that line's column instead."""

    by: str
    first: bool
    blank: bool

    def apply(self, text: str) -> str:
        """As Jinja's: all lines but the first, and but blank ones."""
        METER.text(len(text) + (text.count("\n") + 1) * len(self.by))
        lines = text.split("\n")
        start = 0 if self.first else 1
        return "\n".join(self.by + line if number >= start and (line.strip() or self.blank) else line for number, line in enumerate(lines))


class Lit(str):  # noqa: SLOT000 - a variable-sized object can have no slots
    """Literal text of a template, which knows where it stands."""

    site: Site

    def __new__(cls, text: str, site: Site) -> Self:
        lit = super().__new__(cls, text)
        lit.site = site
        return lit


@dataclass(frozen=True, slots=True)
class Place:
    """A `{{ ... }}` in a template: where it is, what it says, and whether nothing else is printed on its line."""

    site: Site
    expression: str
    alone: bool = False


@final
class Slot:
    """A value that was printed, and where."""

    __slots__ = ("place", "value")

    def __init__(self, value: Any, place: Place) -> None:
        self.value = value
        self.place = place

    @property
    def text(self) -> str:
        """The value as it stands in longer text. One that has no such form raises its fault, with its place."""
        try:
            return scalar_text(self.value)
        except Fault as error:
            raise self.placed(error) from None

    def placed(self, error: Fault) -> Fault:
        return error.at(self.place.site, self.place.expression)


Part: TypeAlias = str | Slot


def flat(parts: Iterable[Any]) -> tuple[Part, ...]:
    """A recursive loop hands on what its inner passes captured, as it stands."""
    result = tuple(parts)
    if Text not in map(type, result):
        return result
    result = tuple(piece for part in result for piece in (part.parts if type(part) is Text else (part,)))
    METER.spend(len(result))
    return result


class _Captured:
    """Something that is text to whoever looks at it, whatever else it is to the layout."""

    __slots__ = ("_string", "indent")

    def __init__(self, indent: Indent | None = None) -> None:
        self.indent = indent
        self._string: str | None = None

    def bare(self) -> str:
        """The string that it amounts to, not indented."""
        raise NotImplementedError

    def as_text(self) -> str:
        if self._string is None:
            text = self.bare()
            self._string = self.indent.apply(text) if self.indent else text
        return self._string

    def __str__(self) -> str:
        return self.as_text()

    def __len__(self) -> int:
        return len(self.as_text())

    def __bool__(self) -> bool:
        return bool(self.as_text())

    def __eq__(self, other: object) -> bool:
        """As a key of a mapping it is the key that its string is."""
        return self.as_text() == (other.as_text() if isinstance(other, _Captured) else other)

    def __hash__(self) -> int:
        return hash(self.as_text())


class Text(_Captured):
    """Captured template text: literals and slots."""

    __slots__ = ("parts",)

    def __init__(self, parts: Iterable[Part], indent: Indent | None = None) -> None:
        super().__init__(indent)
        self.parts = flat(parts)

    def bare(self) -> str:
        parts = self.parts
        if len(parts) == 1 and isinstance(parts[0], Slot) and parts[0].value is OMIT:
            return ""
        pieces, length = [], 0
        for part in parts:
            piece = part.text if isinstance(part, Slot) else part
            length += len(piece)
            if length > MAX_TEXT:
                break
            pieces.append(piece)
        METER.spend(len(parts))
        METER.text(length)
        return "".join(pieces)

    def indented(self, indent: Indent) -> Text:
        return Text(self.parts, indent)

    def trimmed(self, chars: str | None) -> Text:
        """Without blanks at its ends, where they are the template's own."""
        last = len(self.parts) - 1
        parts = list(self.parts)
        for number in {0, last} if parts else ():
            part = parts[number]
            if isinstance(part, Lit):
                cut = part.lstrip(chars) if number == 0 else str(part)
                gone = part[: len(part) - len(cut)].count("\n")
                parts[number] = Lit(cut.rstrip(chars) if number == last else cut, Site(part.site.path, part.site.line + gone))
        return Text(parts)


class Dump(_Captured):
    """What `to_yaml` and `to_json` give: text, which still knows the data that it was made of. Alone on its line it is that data."""

    __slots__ = ("_bare", "_render", "data")

    def __init__(self, data: Any, render: Callable[[Any], str], indent: Indent | None = None) -> None:
        super().__init__(indent)
        self.data = data
        self._render = render
        self._bare: str | None = None

    def bare(self) -> str:
        if self._bare is None:
            self._bare = self._render(self.data)
        return self._bare

    def indented(self, indent: Indent) -> Dump:
        return Dump(self.data, self._render, indent)
