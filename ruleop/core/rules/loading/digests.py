"""The digest of a rule: of everything that its plans depend on, and nothing else.

A reload compares digests to find the rules that an edit changes. Sites are not part of it, so a line inserted before a
watch changes nothing. The text of a template counts together with all templates that it can use.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from typing import TYPE_CHECKING, Any

from ruleop.core.templating import Expression, StringTemplate, TextTemplate, Tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.core.rules.language.model import Rule

_QUOTED = re.compile(r"""['"]([A-Za-z0-9._/-]+)['"]""")
_COMPUTED = re.compile(r"""\bfile\s*\(\s*(?!(['"])[A-Za-z0-9._/-]+\1\s*\))""")
"""A call of `file` with a computed name, which can read every file."""
_IGNORED_FIELDS = frozenset({"site", "digest", "slots", "words", "rbac", "rollout", "revision"})


def digest(rule: Rule, templates: Mapping[str, str]) -> str:
    content = list(_content(rule))
    names = sorted(_used_templates((text for text in content if isinstance(text, str)), templates))
    parts = [repr(each) for each in content] + [repr((name, templates[name])) for name in names]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _content(value: Any) -> Iterator[Any]:
    """The content of a value in order: names, texts, numbers, and sizes of containers."""
    match value:
        case Expression() | StringTemplate():
            yield from (type(value).__name__, value.source)
        case TextTemplate():
            yield from ("TextTemplate", f"'{value.name}'", *(f"'{name}'" for name in sorted(value.files)))
        case Tree():
            yield "Tree"
            yield from _content(value.built)
        case frozenset():
            yield (len(value), *sorted(value))
        case tuple() | list():
            yield (type(value).__name__, len(value))
            for item in value:
                yield from _content(item)
        case _ if hasattr(value, "items"):
            yield ("mapping", len(value))
            for key, member in value.items():
                yield key
                yield from _content(member)
        case _ if dataclasses.is_dataclass(value):
            yield type(value).__name__
            for field in dataclasses.fields(value):
                if field.name not in _IGNORED_FIELDS:
                    yield from _content(getattr(value, field.name))
        case _:
            yield value


def _used_templates(texts: Iterable[str], templates: Mapping[str, str]) -> set[str]:
    """The templates whose names are in quotes in these texts, or in templates that are used."""
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
