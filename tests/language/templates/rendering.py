"""How the tests of this room render: a text, some names, what comes out."""

from __future__ import annotations

from typing import Any

from ruleop.errors import RuleError, Site
from ruleop.language.templates import Lazy, TemplateFunction, YamlNode, read_yaml, view
from ruleop.language.templates.compile import Library

Read = tuple[list[YamlNode], list[RuleError]]
HERE = Site("watches.yaml", 7, 11)


def data_of(found: Read) -> list[Any]:
    """The documents of a text that was read without a mistake."""
    nodes, mistakes = found
    assert not mistakes, mistakes[0]
    return [node.data() for node in nodes]


def mistakes_of(found: Read) -> list[tuple[int, int, str]]:
    """The mistakes in a text that was read, with line and column."""
    return [(mistake.site.line, mistake.site.column, mistake.message) for mistake in found[1]]


def scope(names: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value if isinstance(value, (Lazy, TemplateFunction)) else view(name, value)
        for name, value in names.items()
    }


def library(main: str = "", files: dict[str, str] | None = None) -> Library:
    return Library({"main.j2": main, **(files or {})})


def documents(main: str, files: dict[str, str] | None = None, lenient: bool = False, **names: Any) -> list[Any]:
    return library(main, files).text_mapping("main.j2").render(scope(names), lenient=lenient)


def render(main: str, files: dict[str, str] | None = None, lenient: bool = False, **names: Any) -> Any:
    """The one document of a template."""
    (document,) = documents(main, files, lenient, **names)
    return document


def tree(source: str, **names: Any) -> Any:
    """A value of watches.yaml with templates in its strings."""
    (node,), mistakes = read_yaml(source, "watches.yaml")
    assert not mistakes
    return library().tree(node).evaluate(scope(names))


def evaluate(expression: str, **names: Any) -> Any:
    return library().expression(expression, HERE).evaluate(scope(names))


def paths_read(source: str, files: dict[str, str] | None = None) -> set[tuple[str | None, ...]]:
    """What a template is known to read, without running it."""
    template = library(source, files).text_mapping("main.j2")
    return {tuple(reference.path) for reference in template.references}
