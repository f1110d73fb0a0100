"""Checks the use of random functions. Everything except a create-only child must render the same each time, or ruleop
would write on every pass."""

from __future__ import annotations

import importlib.util
import re
from typing import TYPE_CHECKING

from ruleop.core.errors import Site
from ruleop.core.templating import NONDETERMINISTIC, TextTemplate, YamlNode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.core.rules.checks.scopes import Part
    from ruleop.core.rules.findings import Findings

_PRINTED = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEY_LINE = re.compile(r"( *)(?:- )?([A-Za-z]+): *(.*)")
_INLINE = {
    field: re.compile(
        r"metadata: *\{(?:\{\{.*?\}\}|\{(?:\{\{.*?\}\}|[^{}])*\}|[^{}])*?\b" + field + r": *((?:\{\{.*?\}\}|[^,}])*)"
    )
    for field in ("name", "namespace")
}

_EXTRAS = {**dict.fromkeys(("genCA", "genSignedCert", "genSelfSignedCert"), "cryptography"), "htpasswd": "bcrypt"}


def check_random(parts: Iterable[Part], templates: Mapping[str, str], findings: Findings) -> None:
    for part in parts:
        calls = [(name, site) for name, site in part.compiled.calls if name in NONDETERMINISTIC]
        if not calls:
            continue
        if not (part.body and part.child is not None and part.child.create_only):
            for name, site in calls:
                message = (
                    f"`{name}` is random: only the body of a child with `apply: {{strategy: create-only}}` may use it"
                )
                findings.mistake("random", message, site, word=name, start=part.site)
            continue
        for name, site in calls:
            if name in _EXTRAS and importlib.util.find_spec(_EXTRAS[name]) is None:
                message = (
                    f"`{name}` needs the Python package {_EXTRAS[name]}, which is not installed: "
                    "pip install 'ruleop[certificates]'"
                )
                findings.mistake("template", message, site, word=name, start=part.site)
        for name, site in _random_names(part, templates):
            message = f"`{name}` in metadata.name would create another object each time: derive the name from the CR"
            findings.mistake("random", message, site, word=name, start=part.site)


def _random_names(part: Part, templates: Mapping[str, str]) -> Iterator[tuple[str, Site]]:
    """The random functions in metadata.name. In the text of a template this is a guess by its lines; planning checks
    the rendered name."""
    if isinstance(part.compiled, TextTemplate):
        path = str(part.node.value)
        for number, text in metadata_lines(templates[path], "name"):
            yield from ((name, Site(f"templates/{path}", number)) for name in _random_functions(text))
        return
    name_node = _member(_member(part.node, "metadata"), "name")
    if name_node is not None and isinstance(name_node.value, str):
        yield from ((name, name_node.site) for name in _random_functions(name_node.value))


def _member(node: YamlNode | None, name: str) -> YamlNode | None:
    return node.value.get(name) if node is not None and isinstance(node.value, dict) else None


def metadata_lines(source: str, field: str) -> Iterator[tuple[int, str]]:
    """The numbers of the lines that set metadata.name or metadata.namespace of a document, with their values."""
    in_metadata = False
    for number, line in enumerate(source.splitlines(), 1):
        if inline := _INLINE[field].match(line):
            yield number, inline[1]
        elif match := _KEY_LINE.match(line):
            if not match[1]:
                in_metadata = match[2] == "metadata"
            elif in_metadata and match[2] == field and len(match[1]) <= 4:
                yield number, match[3]


def _random_functions(text: str) -> Iterator[str]:
    words = {word for printed in _PRINTED.findall(text) for word in _WORD.findall(printed)}
    yield from sorted(words & NONDETERMINISTIC)
