"""Warns of plain text that is probably meant otherwise: expressions without braces, and ${NAME} outside of `vars`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ruleop.core.rules.language.env_vars import REFERENCE
from ruleop.core.templating import Expression, Library, RuleErrors, TextTemplate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.core.errors import Site
    from ruleop.core.rules.checks.scopes import Part, View
    from ruleop.core.rules.findings import Findings
    from ruleop.core.templating import YamlNode

_EXPRESSION_START = re.compile(r"\s*(?:not\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*(?:[\[|]|\.([A-Za-z_][A-Za-z0-9_]*))")
_FIELDS = frozenset({"apiVersion", "kind", "metadata", "spec", "status", "data", "stringData", "type"})


def warn_of_plain_text(parts: Iterable[Part], library: Library, findings: Findings) -> None:
    for part in parts:
        if isinstance(part.compiled, TextTemplate):
            continue
        field_paths = set(_field_paths(part.node)) if part.key == "object" else set()
        for text, site in part.node.texts():
            # In an object, ${NAME} is usually shell syntax.
            if part.key != "object" and (match := REFERENCE.search(text)):
                findings.warning(
                    "elsewhere", f"{match[0]} is read from the environment only in `vars`: here it is plain text", site
                )
            if site in field_paths:
                continue
            if not isinstance(part.compiled, Expression) and _resembles_expression(text, part.view, library, site):
                instead = f'write "{{{{ {text.strip()} }}}}" if it is one'
                message = f'"{text}" is plain text here, but looks like an expression: {instead}'
                findings.warning("looks-like-expression", message, site)


def _field_paths(node: YamlNode) -> Iterator[Site]:
    """The values of `fieldPath`, by which a container reads fields of its own Pod (spec.nodeName), and the keys of
    `matchFields`."""
    if isinstance(node.value, dict):
        for key, member in node.value.items():
            if key == "fieldPath" or (key == "key" and "operator" in node.value):
                yield member.site
            yield from _field_paths(member)
    elif isinstance(node.value, list):
        for member in node.value:
            yield from _field_paths(member)


def _resembles_expression(text: str, view: View, library: Library, site: Site) -> bool:
    match = _EXPRESSION_START.match(text)
    if match is None or match[1] not in view.names or "{{" in text or "{%" in text:
        return False
    if match[2] and match[1] in view.children | view.observed and match[2] not in _FIELDS:
        return False  # app.example.com is a host, even if a child has the id app
    try:
        return library.expression(text, site).names <= view.names
    except RuleErrors:
        return False  # a sentence that starts with a name
