"""The fields of an object whose values a template computed from a Secret, by any expression.

They are found by rendering the template again with marks in the slots of such values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ruleop.core.errors import RenderError
from ruleop.core.secrets.secret_values import leaves_of
from ruleop.core.templating import UndefinedValue, plain
from ruleop.core.templating.values.text import Dump, Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import JSON
    from ruleop.core.templating import SlotPlace, TextTemplate, Tree

_MARK: Final = "\ufdd3"  # a noncharacter, which no value of a template is expected to contain


class Whole(Enum):
    VALUE = "value"
    NAMED = "named"  # and the name of the field comes from a Secret too


Hidden: TypeAlias = "Whole | dict[str, Hidden] | HiddenItems"
"""The fields of an object whose values come from a Secret."""


@dataclass(frozen=True, slots=True)
class HiddenItems:
    items: tuple[tuple[Any, Hidden | None], ...]  # the rendered item, and what is hidden in it


def hidden_fields(
    body: TextTemplate | Tree, scope: Mapping[str, Any], places: frozenset[SlotPlace], rendered: list[JSON]
) -> list[Hidden | None]:
    """The hidden fields of each rendered document of a body. `places`: the slots whose values come from Secrets. All
    is hidden if no document can be rendered with marks, for example because they would name a field twice."""
    state = body.templates.state
    state.hide = partial(_hidden, places)
    try:
        marked = body.render(scope)
    except RenderError:
        marked = []
    finally:
        state.hide = None
    if len(marked) != len(rendered):
        return [Whole.VALUE] * len(rendered)
    return [_differing(document, other) for document, other in zip(rendered, marked, strict=True)]


def _differing(rendered: Any, marked: Any) -> Hidden | None:
    """The fields that differ between a rendered value and the same with marks."""
    if isinstance(rendered, Mapping) and isinstance(marked, Mapping):
        found: dict[str, Hidden] = {}
        for name, value in rendered.items():
            inner = _differing(value, marked[name]) if name in marked else Whole.NAMED
            if inner is not None:
                found[name] = inner
        return found or None
    if isinstance(rendered, list) and isinstance(marked, list) and len(rendered) == len(marked):
        items = tuple((item, _differing(item, other)) for item, other in zip(rendered, marked, strict=True))
        return HiddenItems(items) if any(hidden is not None for _, hidden in items) else None
    return None if rendered == marked else Whole.VALUE


def hidden_texts(rendered: Any, hidden: Hidden) -> Iterator[str]:
    """The strings of a rendered object that are hidden."""
    if isinstance(hidden, Whole):
        yield from leaves_of(rendered)
    elif isinstance(hidden, HiddenItems):
        for item, inner in hidden.items:
            if inner is not None:
                yield from hidden_texts(item, inner)
    else:
        for name, inner in hidden.items():
            if inner is Whole.NAMED:
                yield name
            yield from hidden_texts(rendered[name], inner)


# -- marks -------------------------------------------------------------------------------------------------------------


def _hidden(places: frozenset[SlotPlace], value: Any, place: SlotPlace) -> Any:
    """The value that a `{{ }}` prints, with marks. The slots of captured text are among the places themselves."""
    return _marked_value(value) if place in places and not isinstance(value, Text) else value


def _marked_value(value: Any) -> Any:
    if value is None or isinstance(value, UndefinedValue):
        return value
    if isinstance(value, Dump):
        return Dump(_marked(value.data), value.render, value.indent)
    return _marked(plain(value))


def _marked(value: Any) -> Any:
    """A mark for each string, so that the document keeps its form."""
    if isinstance(value, Mapping):
        return {f"{_MARK}{number}": _marked(member) for number, member in enumerate(value.values())}
    return [_marked(item) for item in value] if isinstance(value, list) else _MARK
