"""The other files of templates/ that a template names. The names are literal text, so that ruleop knows before it starts what belongs to a
rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jinja2 import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Named:
    name: str
    line: int
    optional: bool = False  # it may be missing
    is_run: bool = True  # it is a template too; `file` takes it as it is
    hides_names: bool = False  # an import `without context`
    is_laid: bool = True  # its text may become a part of the document; `render` makes a string of it


_TAGS = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)


def named_templates(tree: nodes.Template) -> Iterator[Named]:
    for tag in tree.find_all(_TAGS):
        options = _options(tag)
        optional = len(options) > 1 or bool(getattr(tag, "ignore_missing", False))
        hides_names = isinstance(tag, (nodes.Import, nodes.FromImport)) and not tag.with_context
        for option in options:
            if isinstance(option, nodes.Const):
                yield Named(str(option.value), tag.lineno, optional, hides_names=hides_names)
    for word, call in _calls(tree):
        for arg in call.args[:1]:
            if isinstance(arg, nodes.Const):
                yield Named(str(arg.value), call.lineno, is_run=word == "render", is_laid=False)


def check_dynamic_names(tree: nodes.Template) -> Iterator[tuple[int, str]]:
    """The line and words for each include, import, extends or render whose name is not literal text."""
    for tag in tree.find_all(_TAGS):
        if not all(isinstance(option, nodes.Const) and isinstance(option.value, str) for option in _options(tag)):
            yield _refused(tag.lineno, type(tag).__name__.lower().replace("fromimport", "import"))
    for word, call in _calls(tree):
        if word == "render" and not (len(call.args) == 1 and isinstance(call.args[0], nodes.Const) and isinstance(call.args[0].value, str)):
            yield _refused(call.lineno, word)


def _refused(line: int, word: str) -> tuple[int, str]:
    return line, f"the name in {word} must be literal text, so that ruleop knows what belongs to a rule"


def _options(tag: Any) -> list[nodes.Expr]:
    return tag.template.items if isinstance(tag.template, (nodes.List, nodes.Tuple)) else [tag.template]


def _calls(tree: nodes.Template) -> Iterator[tuple[str, nodes.Call]]:
    for call in tree.find_all(nodes.Call):
        if isinstance(call.node, nodes.Name) and call.node.name in {"file", "render"}:
            yield call.node.name, call
