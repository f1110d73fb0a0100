"""The expressions of watches.yaml."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ruleop.language.templates import Expression, syntax
    from ruleop.language.templates.compile import Library


def expression_node(library: Library, part: Expression) -> syntax.Expr:
    """The node of a bare expression."""
    found = library.written_string("{{ " + part.source + " }}", part.site).only_value
    assert found is not None, "it is one expression"
    return found
