"""Which fields of a status its template computes, found in its plain text.

A field that the rules leave out is removed, and what its name is must then be known without the value that it was made of. So the names of
the outermost fields are plain text. What macros give, and what is included, is not looked at: it may stand below a field.
"""

from __future__ import annotations

import re

from jinja2 import nodes

from ruleop.errors import RuleError, Site
from ruleop.templating.compile.static_kinds import SLOT, lines

COMPUTED = (
    "a field of the status has a computed name, and could not be removed when it is left out: put such fields below one with a fixed name"
)
_KEY = re.compile(r"[^\s#\-\[{|>][^:]*:(?: |\Z)")


def computed_fields(tree: nodes.Template, path: str, local: frozenset[str]) -> list[RuleError]:
    """`local`: the names that the template gives itself, which may stand for captured text."""
    found: dict[int, RuleError] = {}
    spread = {node.lineno for output in tree.find_all(nodes.Output) for node in output.nodes if _is_data(node, local)}
    for line, text in lines(tree, captured=False):
        key = _KEY.match(text)
        if SLOT in key[0] if key else text.rstrip() == SLOT and line in spread:
            found[line] = RuleError(COMPUTED, Site(path, line))
    return list(found.values())


def _is_data(node: nodes.Node | None, local: frozenset[str]) -> bool:
    while isinstance(node, (nodes.Filter, nodes.Getattr, nodes.Getitem)):
        node = node.node
    return isinstance(node, nodes.Dict) or (isinstance(node, nodes.Name) and node.name not in local)
