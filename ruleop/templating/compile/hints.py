"""What can be said about a template's mistakes before it runs, in words for people who come from Helm or Ansible."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import jinja2
from jinja2 import nodes

from ruleop.errors import RuleError, Site
from ruleop.kinds import Kind
from ruleop.schema.nearest import did_you_mean
from ruleop.templating.compile.other_tools import REFUSED, TESTS, instead_of_text, misplaced, other_filter
from ruleop.templating.tree.layout import RESERVED
from ruleop.templating.values.faults import mistake

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.templating.tree.yaml_reader import YamlNode

_TAG = re.compile(r"Encountered unknown tag '(\w+)'")


def has_templates(text: str) -> bool:
    return "{{" in text or "{%" in text or "{#" in text


def check_reserved(text: str, site: Site, *, lines: bool = False) -> None:
    if reserved := RESERVED.search(text):
        at = Site(site.path, text.count("\n", 0, reserved.start()) + 1) if lines else site
        raise mistake(f"the character U+{ord(reserved[0]):04X} is reserved (it is none that text may hold): remove it", at)


def refused_tags(tree: nodes.Template) -> Iterator[tuple[int, str]]:
    """The line and words for what Jinja parses but cannot do, or not for us."""
    for tag in tree.find_all(nodes.ScopedEvalContextModifier):
        yield tag.lineno, "the tag autoescape is not offered: it is for HTML"
    for block in tree.find_all(nodes.AssignBlock):
        if block.filter is not None and _names_in_arguments(block.filter):
            yield (
                block.lineno,
                "the filter of a set block can take no names (Jinja does not look for them there): set the text first, then filter it",
            )


def _names_in_arguments(node: nodes.Filter) -> bool:
    arguments = [*node.args, *node.kwargs, *filter(None, [node.dyn_args, node.dyn_kwargs])]
    inner = node.node is not None and isinstance(node.node, nodes.Filter) and _names_in_arguments(node.node)
    return inner or any(isinstance(argument, nodes.Name) or argument.find(nodes.Name) is not None for argument in arguments)


def misplaced_words(tree: nodes.Template) -> Iterator[tuple[int, str]]:
    """The line and words for what Jinja takes for a name, and Go for the beginning of a block: `{{ if .x }}`, `{{ else }}`."""
    for name in tree.find_all(nodes.Name):
        if name.ctx == "load" and (instead := misplaced(name.name)):
            yield name.lineno, f"template syntax: {instead}"
    for field in tree.find_all(nodes.Getattr):
        if isinstance(field.node, nodes.Name) and field.node.name == "range" and field.attr[:1].isupper():  # `range .Values.x`
            yield field.lineno, f"template syntax: {misplaced('range', always=True)}"


def unknown_functions(tree: nodes.Template, filters: Mapping[str, Any], tests: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """The line and words for each filter and test that there is not."""
    for found in tree.find_all(nodes.Filter):
        yield from _unknown("filter", found.name, found.lineno, filters)
    for test in tree.find_all(nodes.Test):
        yield from _unknown("test", test.name, test.lineno, tests)


def _unknown(what: str, name: str, line: int, known: Iterable[str]) -> Iterator[tuple[int, str]]:
    if name in known:
        return
    last = name.rpartition(".")[2]  # Ansible's names may have their collection before them
    if ours := last if last in known else (TESTS.get(last) if what == "test" else None) or other_filter(last):
        yield line, f"there is no {what} {name}; here it is {ours}"
    elif what == "filter" and name in REFUSED:
        yield line, f"the filter {name} is not offered: {REFUSED[name]}"
    else:
        yield line, f"there is no {what} {name}{did_you_mean(name, (each for each in known if each.isidentifier()))}"


def syntax(error: jinja2.TemplateSyntaxError, text: str = "") -> str:
    """What is wrong with a text that cannot be parsed, and what to write instead."""
    message = str(error.message or "").rstrip(".")
    if instead := instead_of_text(text, error.lineno):
        return f"template syntax: {instead}"
    if match := _TAG.match(message):
        return f"there is no tag {{% {match[1]} %}}" + (": " + message.split(". ", 1)[1] if ". " in message else "")
    return f"template syntax: {message}"


def kind_of(node: YamlNode) -> tuple[Kind | None, RuleError | None]:
    """The kind of an object that is written in watches.yaml."""
    if not isinstance(node.value, dict):
        return None, RuleError("an object is a mapping with apiVersion, kind and metadata", node.site)
    found = {}
    for key in ("apiVersion", "kind"):
        member = node.value.get(key)
        if member is None or not isinstance(member.value, str) or not member.value:
            return None, RuleError(f"an object needs {key}, in plain text", node.site)
        if has_templates(member.value):
            return None, RuleError(f"{key} must be plain text, so that ruleop knows before it starts what to watch", member.site)
        found[key] = member.value
    return Kind.parse(found["apiVersion"], found["kind"]), None
