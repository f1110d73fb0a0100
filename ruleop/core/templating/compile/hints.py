"""Messages about mistakes in templates that are found before rendering, with hints for users of Helm and Ansible."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import jinja2
from jinja2 import nodes

from ruleop.core.errors import RuleError, Site
from ruleop.core.kinds import Kind
from ruleop.core.schema.nearest import did_you_mean
from ruleop.core.templating.compile.node_index import nodes_of
from ruleop.core.templating.compile.other_tools import (
    LOOKUPS,
    NOT_OFFERED,
    TESTS,
    go_keyword_hint,
    other_filter,
    syntax_hint,
)
from ruleop.core.templating.template_tree.kinds import PLAIN_TEXT, options_of, pairs_of
from ruleop.core.templating.template_tree.parser import parse_value
from ruleop.core.templating.tree.marks import RESERVED
from ruleop.core.templating.values.faults import mistake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ruleop.core.templating.tree.yaml_node import YamlNode

MAX_BITS: Final = 512  # of an integer literal
_TAG = re.compile(r"Encountered unknown tag '(\w+)'")


def has_templates(text: str) -> bool:
    return "{{" in text or "{%" in text or "{#" in text


def check_reserved(text: str, site: Site, *, lines: bool = False) -> None:
    if reserved := RESERVED.search(text):
        at = Site(site.path, text.count("\n", 0, reserved.start()) + 1) if lines else site
        raise mistake(
            f"the character U+{ord(reserved[0]):04X} is reserved (it is none that text may hold): remove it", at
        )
    if lines and (position := text.find("\0")) >= 0:
        message = "not YAML: a NUL character is not allowed here; write \\0 in double quotes"
        raise mistake(message, Site(site.path, text.count("\n", 0, position) + 1))


def unsupported_tags(tree: nodes.Template) -> Iterator[tuple[int, str]]:
    """The line and message of each tag that Jinja parses but that does not work, or is not offered."""
    for tag in nodes_of(tree, nodes.ScopedEvalContextModifier):
        yield tag.lineno, "the tag autoescape is not offered: it is for HTML"
    for block in nodes_of(tree, nodes.AssignBlock):
        if block.filter is not None and _names_in_arguments(block.filter):
            yield (
                block.lineno,
                (
                    "the arguments of the filter of a set block cannot contain names (Jinja does not resolve them): "
                    "set the text first, then filter it"
                ),
            )


def unsupported_expressions(tree: nodes.Template) -> Iterator[tuple[int, str]]:
    """The line and message of each expression that Jinja parses but that is not offered."""
    for constant in nodes_of(tree, nodes.Const):
        value = constant.value
        if isinstance(value, int) and value.bit_length() > MAX_BITS:
            yield constant.lineno, "template syntax: number too large"
    for comparison in nodes_of(tree, nodes.Compare):
        if len(comparison.ops) > 1 and any(each.op in {"in", "notin"} for each in comparison.ops):
            message = "`in` cannot be chained with another comparison; join two with `and`"
            yield comparison.lineno, f"template syntax: {message}"


def _names_in_arguments(node: nodes.Filter) -> bool:
    inner = isinstance(node.node, nodes.Filter) and _names_in_arguments(node.node)
    return inner or any(
        isinstance(argument, nodes.Name) or argument.find(nodes.Name) is not None
        for argument in node.iter_child_nodes(exclude=("node",))
    )


def go_keywords(tree: nodes.Template) -> Iterator[tuple[int, str]]:
    """The line and message of each keyword of Go templates that Jinja parses as a name: `{{ if .x }}`, `{{ else }}`."""
    for name in nodes_of(tree, nodes.Name):
        if name.ctx == "load" and (instead := go_keyword_hint(name.name)):
            yield name.lineno, f"template syntax: {instead}"
    for field in nodes_of(tree, nodes.Getattr):
        if (
            isinstance(field.node, nodes.Name) and field.node.name == "range" and field.attr[:1].isupper()
        ):  # `range .Values.x`
            yield field.lineno, f"template syntax: {go_keyword_hint('range', always=True)}"


def unknown_functions(
    tree: nodes.Template, filters: Mapping[str, Any], tests: Mapping[str, Any]
) -> Iterator[tuple[int, str]]:
    """The line and message of each unknown filter and test."""
    for filter_ in nodes_of(tree, nodes.Filter):
        yield from _unknown_name("filter", filter_.name, filter_.lineno, filters)
    for test in nodes_of(tree, nodes.Test):
        yield from _unknown_name("test", test.name, test.lineno, tests)


def other_lookups(tree: nodes.Template) -> Iterator[tuple[int, str]]:
    """The line and message of each of Ansible's lookups, unless the file has a macro of that name."""
    own = {macro.name for macro in nodes_of(tree, nodes.Macro)}
    for call in nodes_of(tree, nodes.Call):
        name = call.node.name if isinstance(call.node, nodes.Name) else ""
        first = call.args[0].value if call.args and isinstance(call.args[0], nodes.Const) else ""
        if name in {"lookup", "query", "q"} - own and (hint := LOOKUPS.get(str(first).rpartition(".")[2])):
            yield call.lineno, f"unknown function {name}('{first}'): {hint}"


def _unknown_name(what: str, name: str, line: int, known: Iterable[str]) -> Iterator[tuple[int, str]]:
    if name in known:
        return
    last = name.rpartition(".")[2]  # Ansible's names may have the prefix of a collection
    if replacement := last if last in known else (TESTS.get(last) if what == "test" else None) or other_filter(last):
        yield line, f"unknown {what} {name}; use {replacement}"
    elif what == "filter" and name in NOT_OFFERED:
        yield line, f"the filter {name} is not offered: {NOT_OFFERED[name]}"
    else:
        yield line, f"unknown {what} {name}{did_you_mean(name, (each for each in known if each.isidentifier()))}"


def syntax_message(error: jinja2.TemplateSyntaxError, text: str = "") -> str:
    """The message for a text that cannot be parsed, with what to write instead."""
    message = str(error.message or "").rstrip(".")
    if instead := syntax_hint(text, error.lineno):
        return f"template syntax: {instead}"
    if match := _TAG.match(message):
        return f"unknown tag {{% {match[1]} %}}" + (": " + message.split(". ", 1)[1] if ". " in message else "")
    return f"template syntax: {message}"


def kinds_of(node: YamlNode, parse: Callable[[str], nodes.Template]) -> tuple[frozenset[Kind], RuleError | None]:
    """The kinds of an object in watches.yaml, or the mistake in them."""
    if not isinstance(node.value, dict):
        return frozenset(), RuleError("an object is a mapping with apiVersion, kind and metadata", node.site)
    fields = {}
    for key in ("apiVersion", "kind"):
        member = node.value.get(key)
        if member is None or not isinstance(member.value, str) or not member.value:
            return frozenset(), RuleError(f"an object needs {key}, in plain text", node.site)
        fields[key] = member.value
    if not any(map(has_templates, fields.values())):
        return frozenset({Kind.parse(fields["apiVersion"], fields["kind"])}), None
    options = {}
    for key, text in fields.items():
        site = node.value[key].site
        written = parse_value(parse(text).body, site.path, site.line)
        options[key] = options_of(written) if written is not None else []
        if not options[key]:
            return frozenset(), RuleError(PLAIN_TEXT.format(key), site)
    return pairs_of(options["apiVersion"], options["kind"]), None
