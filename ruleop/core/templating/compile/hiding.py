"""Renders a body with a mark in place of the values of some slots. Plans are masked where the mark is."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ruleop.core.templating.values.data import plain
from ruleop.core.templating.values.text import Dump, Slot, Text
from ruleop.core.templating.values.undefined import UndefinedValue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.core.kinds import JSON
    from ruleop.core.templating.compile.compiled import TextTemplate, Tree
    from ruleop.core.templating.values.text import Part, SlotPlace

HIDDEN: Final = "\ufdd3"
"""A noncharacter, which no value of a template is expected to contain."""


def render_hidden(
    body: TextTemplate | Tree, scope: Mapping[str, Any], places: frozenset[SlotPlace], *, lenient: bool = False
) -> list[JSON]:
    """The documents of a body whose slots at these places have a mark as their value. A mark is a string; a mapping or
    a list is replaced item by item, so that the documents keep their form."""
    renderer = body.renderer
    renderer.hide = partial(_hidden_parts, places=places)
    try:
        return body.render(scope, lenient=lenient)
    finally:
        renderer.hide = None


def _hidden_part(part: Part, places: frozenset[SlotPlace]) -> Part:
    if not isinstance(part, Slot):
        return part
    if isinstance(part.value, Text):  # its own slots are among the places
        return Slot(Text(_hidden_parts(part.value.parts, places), part.value.indent), part.place)
    return Slot(_hidden_value(part.value), part.place) if part.place in places else part


def _hidden_parts(parts: Iterable[Part], places: frozenset[SlotPlace]) -> tuple[Part, ...]:
    return tuple(_hidden_part(part, places) for part in parts)


def _hidden_value(value: Any) -> Any:
    if value is None or isinstance(value, UndefinedValue):
        return value
    if isinstance(value, Dump):
        return Dump(_marked(value.data), value.render, value.indent)
    return _marked(plain(value))


def _marked(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {f"{HIDDEN}{number}": _marked(member) for number, member in enumerate(value.values())}
    return [_marked(item) for item in value] if isinstance(value, list) else HIDDEN
