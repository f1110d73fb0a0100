"""Messages about mistakes in templates that are found before rendering, with hints for users of Helm and Ansible."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ruleop.errors import RuleError, Site
from ruleop.language.templates import syntax
from ruleop.language.templates.compile.other_tools import (
    LOOKUPS,
    NOT_OFFERED,
    TESTS,
    go_keyword_hint,
    other_filter,
    syntax_hint,
)
from ruleop.language.templates.syntax import bodies_of, find, names_in
from ruleop.language.templates.tree.parser import RESERVED
from ruleop.language.templates.values.faults import mistake
from ruleop.nearest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import jinja2

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


def mistakes_in(tree: syntax.Template, filters: Mapping[str, Any], tests: Mapping[str, Any]) -> Iterator[RuleError]:
    """The mistakes in the statements and expressions of a text that Jinja parses."""
    yield from _unknown_functions(tree, filters, tests)
    yield from _other_lookups(tree)
    yield from _unsupported_tags(tree)
    yield from _unsupported_expressions(tree)
    yield from _go_keywords(tree)


def _unsupported_tags(tree: syntax.Template) -> Iterator[RuleError]:
    """The mistake in each tag that Jinja parses but that does not work."""
    for block in find(tree, syntax.SetBlock):
        if block.filter is not None and _has_names_in_arguments(block.filter):
            message = (
                "the arguments of the filter of a set block cannot contain names (Jinja does not resolve them): "
                "set the text first, then filter it"
            )
            yield RuleError(message, block.site)
    for node, message in _misplaced(tree):
        yield RuleError(f"template syntax: {message}", node.site)


def _misplaced(tree: syntax.Template) -> Iterator[tuple[syntax.Node, str]]:
    """The tags that Jinja refuses after it has parsed them, with its message."""
    called: list[syntax.Macro | syntax.CallBlock] = [*find(tree, syntax.Macro), *find(tree, syntax.CallBlock)]
    for each in called:
        is_required = "caller" in each.params[: len(each.params) - len(each.defaults)]
        if is_required and any("caller" in names_in(inner) for inner in each.body):
            message = 'the special "caller" argument must be omitted or be given a default'
            yield each, f"When defining macros or call blocks {message}"
    seen: set[str] = set()
    for block in find(tree, syntax.Block):
        if block.name in seen:
            yield block, f"block {block.name!r} defined twice"
        seen.add(block.name)
    outermost = set(_outermost(tree.body))
    for extends in find(tree, syntax.Extends):
        if extends not in outermost:
            yield extends, "cannot use extend from a non top-level scope"
    for loop in find(tree, syntax.For):
        for target in find(loop, syntax.Variable):
            if target.name == "loop":
                yield target, "Can't assign to special loop variable in for-loop target"


def _outermost(body: syntax.Body) -> Iterator[syntax.Stmt]:
    """The statements of a file that are in no other than an `if`."""
    for each in body:
        yield each
        if isinstance(each, syntax.If):
            for inner in bodies_of(each):
                yield from _outermost(inner)


def _unsupported_expressions(tree: syntax.Template) -> Iterator[RuleError]:
    """The mistake in each expression that Jinja parses but that is not offered."""
    for constant in find(tree, syntax.Const):
        value = constant.value
        if isinstance(value, int) and value.bit_length() > MAX_BITS:
            yield RuleError("template syntax: number too large", constant.site)
    for comparison in find(tree, syntax.Compare):
        if len(comparison.others) > 1 and any(each.operator in {"in", "notin"} for each in comparison.others):
            message = "`in` cannot be chained with another comparison; join two with `and`"
            yield RuleError(f"template syntax: {message}", comparison.site)


def _has_names_in_arguments(node: syntax.Filter) -> bool:
    inner = isinstance(node.value, syntax.Filter) and _has_names_in_arguments(node.value)
    return inner or any(map(names_in, node.arguments))


def _go_keywords(tree: syntax.Template) -> Iterator[RuleError]:
    """The mistake in each keyword of Go templates that Jinja parses as a name: `{{ if .x }}`, `{{ else }}`."""
    for name in find(tree, syntax.Name):
        if instead := go_keyword_hint(name.name):
            yield RuleError(f"template syntax: {instead}", name.site)
    for field in find(tree, syntax.Field):
        if isinstance(field.of, syntax.Name) and field.of.name == "range" and field.name[:1].isupper():
            yield RuleError(
                f"template syntax: {go_keyword_hint('range', always=True)}", field.site
            )  # `range .Values.x`


def _unknown_functions(
    tree: syntax.Template, filters: Mapping[str, Any], tests: Mapping[str, Any]
) -> Iterator[RuleError]:
    """The mistake in each unknown filter and test."""
    for filter_ in find(tree, syntax.Filter):
        if filter_.name not in filters:
            yield RuleError(_unknown_name("filter", filter_.name, filters), filter_.site)
    for test in find(tree, syntax.Test):
        if test.name not in tests:
            yield RuleError(_unknown_name("test", test.name, tests), test.site)


def _other_lookups(tree: syntax.Template) -> Iterator[RuleError]:
    """The mistake in each of Ansible's lookups, unless the file has a macro of that name."""
    own = {macro.name for macro in find(tree, syntax.Macro)}
    for call in find(tree, syntax.Call):
        first = call.args[0].value if call.args and isinstance(call.args[0], syntax.Const) else ""
        if call.name in {"lookup", "query", "q"} - own and (hint := LOOKUPS.get(str(first).rpartition(".")[2])):
            yield RuleError(f"unknown function {call.name}('{first}'): {hint}", call.site)


def _unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    last = name.rpartition(".")[2]  # Ansible's names may have the prefix of a collection
    if replacement := last if last in known else (TESTS.get(last) if what == "test" else None) or other_filter(last):
        return f"unknown {what} {name}; use {replacement}"
    if what == "filter" and name in NOT_OFFERED:
        return f"the filter {name} is not offered: {NOT_OFFERED[name]}"
    return f"unknown {what} {name}{did_you_mean(name, (each for each in known if each.isidentifier()))}"


def syntax_message(error: jinja2.TemplateSyntaxError, text: str = "") -> str:
    """The message for a text that cannot be parsed, with what to write instead."""
    message = str(error.message or "").rstrip(".")
    if instead := syntax_hint(text, error.lineno):
        return f"template syntax: {instead}"
    if match := _TAG.match(message):
        return f"unknown tag {{% {match[1]} %}}" + (": " + message.split(". ", 1)[1] if ". " in message else "")
    return f"template syntax: {message}"
