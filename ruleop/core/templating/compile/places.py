"""The place of each `{{ ... }}` of a template that was just parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinja2 import nodes

from ruleop.core.errors import Site
from ruleop.core.templating.values.text import SlotPlace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.templating.compile.tokens import Printed


def attach_places(tree: nodes.Template, printed: list[Printed], where: str | Site) -> None:
    """Sets the place of each printing node: a line of a file, or the site of a string. `printed` is in the order of the
    source."""
    for node, found in zip(printing_nodes(tree), printed, strict=True):
        site = where if isinstance(where, Site) else Site(where, found.line)
        node.place = SlotPlace(site, found.expression, found.alone)  # type: ignore[attr-defined]


def printing_nodes(tree: nodes.Node) -> Iterator[nodes.Node]:
    if isinstance(tree, nodes.Output):
        for node in tree.nodes:
            if not isinstance(node, nodes.TemplateData):
                yield node
        return
    if isinstance(tree, (nodes.Include, nodes.FilterBlock, nodes.CallBlock)):
        yield tree
    for child in tree.iter_child_nodes():
        yield from printing_nodes(child)
