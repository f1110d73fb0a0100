"""A digest of each rule: of everything that a plan made by it can depend on, and of nothing else.

By it a reload tells the rules that an edit touches from those that it leaves alone. Where something stands is no part of it, so a line put
in front of a watch touches nothing. The text of a template counts with that of every template it can reach.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from typing import TYPE_CHECKING, Any

from ruleop.templating import Expression, StringTemplate, TextTemplate, Tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.rules.language.model import Rule

_QUOTED = re.compile(r"""['"]([A-Za-z0-9._/-]+)['"]""")
_COMPUTED = re.compile(r"""\bfile\s*\(\s*(?!(['"])[A-Za-z0-9._/-]+\1\s*\))""")
"""`file` takes a computed name too; then it can reach every file."""
_PLACES = frozenset({"site", "digest"})


def digest(rule: Rule, templates: Mapping[str, str]) -> str:
    said = list(_said(rule))
    names = sorted(_reached((text for text in said if isinstance(text, str)), templates))
    parts = [repr(each) for each in said] + [repr((name, templates[name])) for name in names]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _said(value: Any) -> Iterator[Any]:
    """What a value consists of, in order: names, texts, numbers, and how many members follow."""
    match value:
        case Expression() | StringTemplate():
            yield from (type(value).__name__, value.source)
        case TextTemplate():
            yield from ("TextTemplate", f"'{value.name}'", *(f"'{name}'" for name in sorted(value.files)))
        case Tree():
            yield "Tree"
            yield from _said(value.built)
        case frozenset():
            yield (len(value), *sorted(value))
        case tuple() | list():
            yield (type(value).__name__, len(value))
            for item in value:
                yield from _said(item)
        case _ if hasattr(value, "items"):
            yield ("mapping", len(value))
            for key, member in value.items():
                yield key
                yield from _said(member)
        case _ if dataclasses.is_dataclass(value):
            yield type(value).__name__
            for field in dataclasses.fields(value):
                if field.name not in _PLACES:
                    yield from _said(getattr(value, field.name))
        case _:
            yield value


def _reached(texts: Iterable[str], templates: Mapping[str, str]) -> set[str]:
    """The templates whose names stand in quotes in these texts, or in the templates that are reached."""
    found: set[str] = set()
    pending = list(texts)
    while pending:
        text = pending.pop()
        if _COMPUTED.search(text):
            return set(templates)
        for match in _QUOTED.finditer(text):
            if match[1] in templates and match[1] not in found:
                found.add(match[1])
                pending.append(templates[match[1]])
    return found
