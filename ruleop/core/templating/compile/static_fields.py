"""Finds computed field names in the template of a status.

A status field that the rules stop setting is removed, and its name must be known for that. So the names of the
outermost fields must be plain text. The output of macros and includes is not checked: it may be below a field.
"""

from __future__ import annotations

import re

from jinja2 import nodes

from ruleop.core.errors import RuleError, Site
from ruleop.core.templating.compile.static_kinds import SLOT, lines

COMPUTED = (
    "a field of the status has a computed name, so ruleop could not remove it later: "
    "put it below a field with a fixed name"
)
_KEY = re.compile(r"[^\s#\-\[{|>][^:]*:(?: |\Z)")


def computed_fields(tree: nodes.Template, path: str, local: frozenset[str]) -> list[RuleError]:
    """The mistakes. `local` are the names that the template sets, which may be captured text."""
    found: dict[int, RuleError] = {}
    spread = {node.lineno for output in tree.find_all(nodes.Output) for node in output.nodes if _is_data(node, local)}
    for line, text, _ in lines(tree, captured=False):
        key = _KEY.match(text)
        if SLOT in key[0] if key else text.rstrip() == SLOT and line in spread:
            found[line] = RuleError(COMPUTED, Site(path, line))
    return list(found.values())


def _is_data(node: nodes.Node | None, local: frozenset[str]) -> bool:
    while isinstance(node, (nodes.Filter, nodes.Getattr, nodes.Getitem)):
        node = node.node
    return isinstance(node, nodes.Dict) or (isinstance(node, nodes.Name) and node.name not in local)
