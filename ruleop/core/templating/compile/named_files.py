"""The other files of templates/ to which a template refers. Names must be literal text, so that the files of a rule are
known when it is loaded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jinja2 import nodes

from ruleop.core.reachable import reached
from ruleop.core.templating.compile.node_index import nodes_of, nodes_of_any

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


_TAGS = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)


def named_templates(tree: nodes.Template) -> Iterator[Named]:
    for tag in nodes_of_any(tree, _TAGS):
        options = _options(tag)
        optional = len(options) > 1 or bool(getattr(tag, "ignore_missing", False))
        hides_names = isinstance(tag, (nodes.Import, nodes.FromImport)) and not tag.with_context
        imported = None
        if isinstance(tag, nodes.FromImport):
            imported = frozenset(each if isinstance(each, str) else each[0] for each in tag.names)
        for option in options:
            if isinstance(option, nodes.Const):
                yield Named(str(option.value), tag.lineno, optional, hides_names=hides_names, imported=imported)
    for word, call in _calls(tree):
        for arg in call.args[:1]:
            if isinstance(arg, nodes.Const):
                yield Named(str(arg.value), call.lineno, is_run=word == "render", is_part_of_document=False)


def without_unused_macros(tree: nodes.Template, imported: Iterable[str]) -> nodes.Template:
    """The tree of a file without the macros that are neither imported nor called by what is run."""
    macros = {node.name: node for node in tree.body if isinstance(node, nodes.Macro)}
    named = {name for node in tree.body if not isinstance(node, nodes.Macro) for name in _names(node)}
    used = reached(macros.keys() & {*imported, *named}, lambda name: macros.keys() & _names(macros[name]))
    body = [node for node in tree.body if not isinstance(node, nodes.Macro) or node.name in used]
    if len(body) == len(tree.body):
        return tree
    assert tree.environment is not None
    found = nodes.Template(body, lineno=1)
    found.set_environment(tree.environment)
    return found


def _names(node: nodes.Node) -> set[str]:
    return {each.name for each in node.find_all(nodes.Name)}


_QUOTED = re.compile(r"""['"]([A-Za-z0-9._/-]+)['"]""")


def quoted_names(text: str, templates: Container[str]) -> Iterator[str]:
    """The names of templates that are in quotes in a text."""
    return (match[1] for match in _QUOTED.finditer(text) if match[1] in templates)


def check_dynamic_names(tree: nodes.Template) -> Iterator[tuple[int, str]]:
    """The line and message of each include, import, extends or render whose name is not literal text."""
    for tag in nodes_of_any(tree, _TAGS):
        if not all(isinstance(option, nodes.Const) and isinstance(option.value, str) for option in _options(tag)):
            yield _dynamic_name(tag.lineno, type(tag).__name__.lower().replace("fromimport", "import"))
    for word, call in _calls(tree):
        if word == "render" and not (
            len(call.args) == 1 and isinstance(call.args[0], nodes.Const) and isinstance(call.args[0].value, str)
        ):
            yield _dynamic_name(call.lineno, word)


def _dynamic_name(line: int, word: str) -> tuple[int, str]:
    return line, f"the name in {word} must be literal text, so that the files of a rule are known before rendering"


def _options(tag: Any) -> list[nodes.Expr]:
    return tag.template.items if isinstance(tag.template, (nodes.List, nodes.Tuple)) else [tag.template]


def _calls(tree: nodes.Template) -> Iterator[tuple[str, nodes.Call]]:
    for call in nodes_of(tree, nodes.Call):
        if isinstance(call.node, nodes.Name) and call.node.name in {"file", "render"}:
            yield call.node.name, call
