"""Warns of unused templates."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ruleop.core.errors import Site
from ruleop.core.templating import TextTemplate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.core.rules.checks.scopes import Part
    from ruleop.core.rules.findings import Findings

_QUOTED = re.compile(r"""['"]([A-Za-z0-9._/-]+)['"]""")


def warn_of_unused(templates: Mapping[str, str], parts: Iterable[Part], findings: Findings) -> None:
    """A template is used if a watch names it, or if its name is in quotes in a used template, as in file()."""
    used: set[str] = set()
    pending: list[str] = []
    for part in parts:
        if isinstance(part.compiled, TextTemplate):
            pending += part.compiled.files
        else:
            pending += _named(" ".join(text for text, _ in part.node.texts()), templates)
    while pending:
        name = pending.pop()
        if name in templates and name not in used:
            used.add(name)
            pending += _named(templates[name], templates)
    for name in sorted(set(templates) - used):
        findings.warning("unused-template", "nothing uses this template", Site(f"templates/{name}"))


def _named(source: str, templates: Mapping[str, str]) -> Iterator[str]:
    for match in _QUOTED.finditer(source):
        if match[1] in templates:
            yield match[1]
