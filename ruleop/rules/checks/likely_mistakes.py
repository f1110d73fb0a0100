"""Strings that say something else than their author thinks: an expression without braces is text, and ${NAME} is one outside `vars`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ruleop.rules.language.environment import REFERENCE
from ruleop.templating import Expression, Library, RuleErrors, TextTemplate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.errors import Site
    from ruleop.rules.checks.scopes import Part, View
    from ruleop.rules.findings import Findings

_BEGINS_LIKE_ONE = re.compile(r"\s*(?:not\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*(?:[\[|]|\.([A-Za-z_][A-Za-z0-9_]*))")
_FIELDS = frozenset({"apiVersion", "kind", "metadata", "spec", "status", "data", "stringData", "type"})


def warn_of_looks(parts: Iterable[Part], library: Library, findings: Findings) -> None:
    for part in parts:
        if isinstance(part.compiled, TextTemplate):
            continue
        for text, site in part.node.texts():
            # In an object, ${NAME} is most often a shell's.
            if part.key != "object" and (match := REFERENCE.search(text)):
                findings.warning("elsewhere", f"{match[0]} is read from the environment only in `vars`: here it is plain text", site)
            if not isinstance(part.compiled, Expression) and _reads_like_one(text, part.view, library, site):
                message = f'"{text}" is plain text here, but reads like an expression: write "{{{{ {text.strip()} }}}}" if it is one'
                findings.warning("looks-like-expression", message, site)


def _reads_like_one(text: str, view: View, library: Library, site: Site) -> bool:
    match = _BEGINS_LIKE_ONE.match(text)
    if match is None or match[1] not in view.names or "{{" in text or "{%" in text:
        return False
    if match[2] and match[1] in view.children | view.observed and match[2] not in _FIELDS:
        return False  # app.example.com is a host, also where a child is called app
    try:
        return library.expression(text, site).names <= view.names
    except RuleErrors:
        return False  # a sentence that begins with a name
