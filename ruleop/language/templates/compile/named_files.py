"""The other files of templates/ to which a template refers. Names must be literal text, so that the files of a rule are
known when it is loaded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ruleop.language.templates import syntax
from ruleop.language.templates.syntax import find, names_in
from ruleop.reachable import reached

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator


@dataclass(frozen=True, slots=True)
class Named:
    name: str
    line: int
    optional: bool = False  # the file may be missing
    is_run: bool = True  # the file is a template; `file` reads it as text
    hides_names: bool = False  # an import `without context`
    is_part_of_document: bool = True  # its text may become a part of the document; `render` returns a string
    imported: frozenset[str] | None = None  # the macros that are imported; None: the whole file is run


def named_templates(tree: syntax.Template) -> Iterator[Named]:
    for tag in find(tree, syntax.Include):
        optional = len(tag.files) > 1 or tag.ignore_missing
        yield from (Named(file, tag.site.line, optional) for file in tag.files)
    for import_ in find(tree, syntax.Import):
        yield Named(import_.file, import_.site.line, hides_names=not import_.with_context)
    for from_import in find(tree, syntax.FromImport):
        imported = frozenset(name for name, _ in from_import.names)
        hides_names = not from_import.with_context
        yield Named(from_import.file, from_import.site.line, hides_names=hides_names, imported=imported)
    for extends in find(tree, syntax.Extends):
        yield Named(extends.file, extends.site.line)
    for call in find(tree, syntax.Call):
        first = call.args[0] if call.args else None
        if call.name in {"file", "render"} and isinstance(first, syntax.Const):
            is_run = call.name == "render"
            yield Named(str(first.value), call.site.line, is_run=is_run, is_part_of_document=False)


def without_unused_macros(tree: syntax.Template, imported: Iterable[str]) -> syntax.Template:
    """The tree of a file without the macros that are neither imported nor called by what is run."""
    macros = {node.name: node for node in tree.body if isinstance(node, syntax.Macro)}
    named = {name for node in tree.body if not isinstance(node, syntax.Macro) for name in names_in(node)}
    used = reached(macros.keys() & {*imported, *named}, lambda name: macros.keys() & names_in(macros[name]))
    body = tuple(node for node in tree.body if not isinstance(node, syntax.Macro) or node.name in used)
    return tree if len(body) == len(tree.body) else syntax.Template(body, site=tree.site)


_QUOTED = re.compile(r"""['"]([A-Za-z0-9._/-]+)['"]""")


def quoted_names(text: str, templates: Container[str]) -> Iterator[str]:
    """The names of templates that are in quotes in a text."""
    return (match[1] for match in _QUOTED.finditer(text) if match[1] in templates)
