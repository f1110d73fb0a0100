"""The output of a template: its literal text, and a slot for each printed value.

A printed value is not converted to text. It is a `Slot` among the literals until one text is needed.

Text that a template captures (the result of a macro, a `set` block, a `filter` block) is a `Text`, which still consists
of literals and slots. Printed alone on its line, it is inserted there and indented to the column. All other operations
use it as a string.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, final

from ruleop.errors import Site
from ruleop.language.templates.values.cost import MAX_TEXT, METER, NODE_BYTES, check_text, size_of
from ruleop.language.templates.values.data import scalar_text
from ruleop.language.templates.values.faults import Fault
from ruleop.language.templates.values.undefined import OMIT
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Indent(NamedTuple):
    """The arguments of the filter `indent`. Text alone on a line takes the column of that line instead."""

    by: str
    first: bool
    blank: bool

    def apply(self, text: str) -> str:
        """Indents all lines except the first and blank ones, as in Jinja."""
        check_text(len(text) + (text.count("\n") + 1) * len(self.by))
        lines = text.split("\n")
        start = 0 if self.first else 1
        return "\n".join(
            self.by + line if number >= start and (line.strip() or self.blank) else line
            for number, line in enumerate(lines)
        )


class Lit(str):  # noqa: SLOT000 - a variable-sized object can have no slots
    """Literal text of a template, with its site."""

    site: Site

    def __new__(cls, text: str, site: Site) -> Self:
        lit = super().__new__(cls, text)
        lit.site = site
        return lit


@dataclass(frozen=True, slots=True)
class SlotPlace:
    """A `{{ ... }}` in a template: its site and text, and whether it is alone on its line."""

    site: Site
    expression: str
    alone: bool = False


@final
class Slot:
    """A printed value and its place."""

    __slots__ = ("place", "value")

    def __init__(self, value: Any, place: SlotPlace) -> None:
        self.value = value
        self.place = place

    @property
    def text(self) -> str:
        """The value as a part of longer text. Raises Fault with the place if it is not a scalar."""
        try:
            return scalar_text(self.value)
        except Fault as error:
            raise self.with_place(error) from None

    def with_place(self, error: Fault) -> Fault:
        return error.at(self.place.site, self.place.expression)


Part: TypeAlias = str | Slot


def flatten_parts(parts: Iterable[Any]) -> tuple[Part, ...]:
    """The parts, with captured text of recursive loops replaced by its own parts."""
    result = tuple(parts)
    METER.charge(8 * len(result))  # the slots have been charged where they were printed
    if Text not in map(type, result):
        return result
    return tuple(piece for part in result for piece in (part.parts if type(part) is Text else (part,)))


class _Captured:
    """Text with additional information for the layout."""

    __slots__ = ("_string", "indent")

    def __init__(self, indent: Indent | None = None) -> None:
        self.indent = indent
        self._string: str | None = None

    def bare(self) -> str:
        """The string without indentation."""
        raise NotImplementedError

    def as_text(self) -> str:
        if self._string is None:
            text = self.bare()
            if self.indent:
                text = self.indent.apply(text)
                METER.text(text)
            self._string = text
        return self._string

    def __str__(self) -> str:
        return self.as_text()

    def __len__(self) -> int:
        return len(self.as_text())

    def __bool__(self) -> bool:
        return bool(self.as_text())

    def __eq__(self, other: object) -> bool:
        """Equality of the strings, so that captured text can be used as a key."""
        return self.as_text() == (other.as_text() if isinstance(other, _Captured) else other)

    def __hash__(self) -> int:
        return hash(self.as_text())


class Text(_Captured):
    """Captured template text: literals and slots."""

    __slots__ = ("parts",)

    def __init__(self, parts: Iterable[Part], indent: Indent | None = None) -> None:
        super().__init__(indent)
        self.parts = flatten_parts(parts)

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
        check_text(length)
        text = "".join(pieces)
        METER.text(text)
        return text

    def indented(self, indent: Indent) -> Text:
        return Text(self.parts, indent)

    def trimmed(self, chars: str | None) -> Text:
        """The text without white space in the literals at its ends."""
        last = len(self.parts) - 1
        parts = list(self.parts)
        for number in {0, last} if parts else ():
            part = parts[number]
            if isinstance(part, Lit):
                cut = part.lstrip(chars) if number == 0 else str(part)
                removed = part[: len(part) - len(cut)].count("\n")
                parts[number] = Lit(
                    cut.rstrip(chars) if number == last else cut, Site(part.site.path, part.site.line + removed)
                )
        return Text(parts)


class Dump(_Captured):
    """The result of `to_yaml` and `to_json`: text with its data. Alone on its line it is inserted as data."""

    __slots__ = ("_bare", "data", "render", "value_bytes")

    def __init__(
        self,
        data: Any,
        render: Callable[[Any], str],
        indent: Indent | None = None,
        *,
        value_bytes: int = NODE_BYTES,
    ) -> None:
        """`value_bytes`: what the rendering of a value takes."""
        super().__init__(indent)
        self.data = data
        self.render = render
        self.value_bytes = value_bytes
        self._bare: str | None = None

    def bare(self) -> str:
        if self._bare is None:
            size, values = size_of(self.data)
            METER.charge(2 * size + self.value_bytes * values)
            self._bare = self.render(self.data)
            METER.text(self._bare)
        return self._bare

    def indented(self, indent: Indent) -> Dump:
        return Dump(self.data, self.render, indent, value_bytes=self.value_bytes)
