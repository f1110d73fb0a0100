"""The fields that an expression picks by name: `spec | pick('cpu', 'memory')`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.language.templates import syntax
from ruleop.language.templates.filters.declarations import Trait
from ruleop.language.templates.filters.registry import filters_with

if TYPE_CHECKING:
    from collections.abc import Sequence

_PICKING = filters_with(Trait.PICKS_FIELDS)


def picked_names(node: syntax.Node) -> tuple[str, ...] | None:
    """The names, if all of them are literals; None for other expressions."""
    if not isinstance(node, syntax.Filter) or node.name not in _PICKING or node.kwargs or node.more_args:
        return None
    names = literal_names(node.args)
    return None if None in names else tuple(name for name in names if name is not None)


def literal_names(arguments: Sequence[syntax.Expr]) -> list[str | None]:
    """The names that are arguments, or items of a list that is one; None for each that is computed."""
    parts = (part for each in arguments for part in (each.items if isinstance(each, syntax.List) else [each]))
    return [each.value if isinstance(each, syntax.Const) and isinstance(each.value, str) else None for each in parts]
