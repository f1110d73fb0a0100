"""The strings of watches.yaml as trees of Jinja's nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jinja2 import nodes

from ruleop.templating.compile.compiler import attach_places

if TYPE_CHECKING:
    from ruleop.errors import Site
    from ruleop.templating import Expression, Library


@dataclass(slots=True)
class Strings:
    """The parsed strings. Each is parsed once, so that its nodes have one identity."""

    library: Library
    _trees: dict[tuple[str, Site], nodes.Template] = field(default_factory=dict)

    def tree(self, text: str, site: Site) -> nodes.Template:
        key = (text, site)
        if key not in self._trees:
            environment = self.library.environment
            parse = environment._parse  # noqa: SLF001 - `parse` would rewrite the errors
            tree = parse(text, site.path, site.path)
            attach_places(tree, environment.printed(), site)
            self._trees[key] = tree
        return self._trees[key]

    def expression(self, part: Expression) -> nodes.Node:
        """The node of a bare expression."""
        (output,) = self.tree("{{ " + part.source + " }}", part.site).body
        assert isinstance(output, nodes.Output)
        return output.nodes[0]


def only_slot(tree: nodes.Template) -> nodes.Node | None:
    """The expression of a string that is a single slot, whose type the value keeps."""
    if len(tree.body) == 1 and isinstance(tree.body[0], nodes.Output) and len(tree.body[0].nodes) == 1:
        (node,) = tree.body[0].nodes
        return None if isinstance(node, nodes.TemplateData) else node
    return None
