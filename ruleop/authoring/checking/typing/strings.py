"""The strings of watches.yaml as trees of Jinja's nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinja2 import nodes

if TYPE_CHECKING:
    from ruleop.core.templating import Expression, Library


def expression_node(library: Library, part: Expression) -> nodes.Node:
    """The node of a bare expression."""
    (output,) = library.written_string("{{ " + part.source + " }}", part.site).body
    assert isinstance(output, nodes.Output)
    return output.nodes[0]


def only_slot(tree: nodes.Template) -> nodes.Node | None:
    """The expression of a string that is a single slot, whose type the value keeps."""
    if len(tree.body) == 1 and isinstance(tree.body[0], nodes.Output) and len(tree.body[0].nodes) == 1:
        (node,) = tree.body[0].nodes
        return None if isinstance(node, nodes.TemplateData) else node
    return None
