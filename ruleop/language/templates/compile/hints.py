"""Messages about mistakes in templates that are found before rendering, with hints for users of Helm and Ansible."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ruleop.errors import RuleError, Site
from ruleop.language.templates import syntax
from ruleop.language.templates.filters.registry import FILTER_NAMES
from ruleop.language.templates.filters.registry import TESTS as TEST_NAMES
from ruleop.language.templates.syntax import bodies_of, find, names_in
from ruleop.language.templates.tree.parser import RESERVED
from ruleop.language.templates.values.faults import mistake
from ruleop.nearest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import jinja2


# -- other tools -------------------------------------------------------------------------------------------------------
#
# Names and syntax of Helm, Ansible and other languages, with the equivalents here.
#
# The hints end messages about unknown filters and tests, unknown names and functions, and text that Jinja cannot parse,
# such as `include "x" .`.

ALONE = "`{{ x }}` alone on its line, below the key: its fields or items are inserted there, indented as the line is"
FILTERS = {  # the equivalent: a filter, or an expression
    "toYaml": "to_yaml", "toJson": "to_json", "fromYaml": "from_yaml", "fromJson": "from_json",
    "toPrettyJson": "to_json", "to_nice_json": "to_json", "toRawJson": "to_json",
    "mustToJson": "to_json", "fromYamlArray": "from_yaml", "b64enc": "b64encode", "b64dec": "b64decode",
    "sha256sum": "sha256", "sha1sum": "sha1", "checksum": "sha1", "md5": "`x | hash('md5')`",
    "sha512sum": "`x | hash('sha512')`", "squote": "quote",
    "toString": "string", "regexMatch": "regex_match", "regexReplaceAll": "regex_replace", "regexFind": "regex_search",
    "regexFindAll": "regex_findall", "mergeOverwrite": "combine", "merge": "combine", "mustMerge": "combine",
    "kebabcase": "dns_label", "trunc": "truncate", "abbrev": "truncate", "mandatory": "required", "nindent": ALONE,
    "splitList": "split", "uniq": "unique", "sortAlpha": "sort", "without": "difference", "quantity_to_int": "quantity",
    "human_to_bytes": "quantity", "atoi": "int", "int64": "int", "float64": "float", "human_readable": "filesizeformat",
    "wrap": "wordwrap", "base": "basename", "dir": "dirname", "trimPrefix": "`x.removeprefix('a')`",
    "trimSuffix": "`x.removesuffix('a')`", "trimAll": "`x | trim('a')`", "keys": "`x.keys()`", "values": "`x.values()`",
    "compact": "`x | select`", "concat": "`x + y`", "add": "`x + 1`", "add1": "`x + 1`", "sub": "`x - 1`",
    "mul": "`x * 2`", "div": "`x // 2`", "mod": "`x % 2`", "repeat": "`x * 2`", "hasPrefix": "`x.startswith('a')`",
    "hasSuffix": "`x.endswith('a')`", "contains": "`'a' in x`", "has": "`'a' in x`", "empty": "`not x`",
    "len": "`x | length`", "extract": "`y[x]`", "password_hash": "`htpasswd('name', x)` in a create-only child",
    "json_query": "`map`, `selectattr` and `dict2items`", "omit": "remove_keys", "unset": "remove_keys",
    "regexQuoteMeta": "regex_escape", "ipaddr": "`x | ip_network`, `x | host(1)` or `x is ip_address`",
    "ipv4": "`x is ipv4_address`", "ipv6": "`x is ipv6_address`", "ipsubnet": "ip_network", "nthhost": "host",
    "network_in_network": "ip_in", "network_in_usable": "ip_in", "ipwrap": "`'[' ~ x ~ ']'`",
    "semver": "`x is version('1.2', '>=')`",
    "semverCompare": "`x is version('1.2', '>=')`", "version_compare": "`x is version('1.2', '>=')`",
    "path_join": "`x ~ '/' ~ y`", "splitext": "`x | regex_replace('[.][^.]*$', '')`", "win_basename": "basename",
    "win_dirname": "dirname", "pow": "`x ** 2`", "root": "`x ** 0.5`", "type_debug": "`x is mapping`",
    "dict": "`dict(x)`",
}  # fmt: skip
TESTS = {
    "regex": "`x is search('a')`", "any": "`x | select | list`", "all": "`not (x | reject | list)`", "truthy": "`x`",
    "falsy": "`not x`", "version_compare": "version", "semver": "version",
    "ip": "ip_address", "ipv4": "ipv4_address", "ipv6": "ipv6_address", "in_network": "ip_in", "null": "`x is none`",
    "empty": "`not x`", "list": "`x is sequence`",
    "dict": "`x is mapping`",
}  # fmt: skip
NOT_OFFERED = {
    "escape": "it makes HTML", "e": "it makes HTML", "forceescape": "it makes HTML", "safe": "it is for HTML",
    "urlize": "it makes HTML", "xmlattr": "it makes HTML", "striptags": "it is for HTML",
    "pprint": "it shows Python; use to_yaml or to_json", "attr": "use a['b'], which takes any key",
    "random": "it would differ at every render; use random_password in a create-only child",
    "shuffle": "it would differ at every render",
}  # fmt: skip

_MACRO = "write a macro and import it: `{% from 'macros.j2' import labels %}`, then `{{ labels() }}`"
_ON_ITS_LINE = "alone on its line, which is indented as the line is"
_OBSERVE = (
    "read objects of the cluster with `observe` in the watch, a file of templates/ with `file('x')`, "
    "the environment with `vars`"
)
_FAIL = "write a rule with its message under `validate` in the watch, or `x | required('message')`"
_PASSWORD = "write `random_password(24)`, in a create-only child"  # noqa: S105 - a name
FUNCTIONS = {  # hints
    "include": _MACRO, "template": _MACRO, "define": "write `{% macro labels() %}` and `{% endmacro %}`",
    "tpl": "write `render('file.j2')`; a value is never rendered as a template", "lookup": _OBSERVE, "query": _OBSERVE,
    "q": _OBSERVE, "fail": _FAIL, "assert": _FAIL, "hasKey": "write `'key' in x`, or `x.key is defined`",
    "get": "write `x.get('key')`", "dig": "write `x.a.b | default('c')`", "index": "write `x['key']` or `x[0]`",
    "set": "write `x | combine({'key': 1})`", "list": "write `[1, 2]`", "tuple": "write `[1, 2]`",
    "print": "write `x ~ y`", "printf": "write `'%s-%s' | format(x, y)`, or `x ~ '-' ~ y`",
    "cat": "write `x ~ ' ' ~ y`", "coalesce": "write `x | default(y, true)`", "until": "write `range(5)`",
    "seq": "write `range(1, 6)`", "eq": "write `x == y`", "ne": "write `x != y`", "lt": "write `x < y`",
    "le": "write `x <= y`", "gt": "write `x > y`", "ge": "write `x >= y`", "kindIs": "write `x is mapping`",
    "env": "read the environment in `vars`: `name: ${NAME}`", "randAlphaNum": _PASSWORD, "randAlpha": _PASSWORD,
    "randAscii": _PASSWORD, "randNumeric": _PASSWORD, "uuidv4": _PASSWORD, "derivePassword": _PASSWORD,
    "password": _PASSWORD, "toYaml": f"write {ALONE}; `x | to_yaml` is text",
    "age": "write `after(time, '2h')`, which is true once that has passed since the time",  # of a former version
}  # fmt: skip
LOOKUPS = {  # hints, by the first argument of Ansible's lookup and query
    "env": FUNCTIONS["env"], "k8s": "read objects of the cluster with `observe` in the watch",
    "file": "write `file('x')`, of a file of templates/", "template": "write `render('x.j2')`",
    "password": _PASSWORD, "random_string": _PASSWORD, "vars": "write `vars['x']`", "varnames": "write `vars.keys()`",
    "dict": "write `x | dict2items`", "sequence": "write `range(1, 6)`", "subelements": "write `x | subelements('y')`",
    "together": "write `x | zip(y)`", "nested": "write `x | product(y)`", "cartesian": "write `x | product(y)`",
    "flattened": "write `x | flatten`", "first_found": "write `{% include ['a.j2', 'b.j2'] %}`",
    "hashi_vault": "read a Secret of the cluster with `observe` in the watch",
    **dict.fromkeys(("pipe", "lines", "url", "dig", "csvfile", "ini"), "a template cannot read anything outside of "
    "its project and the cluster; what a rule needs is in `spec`, `vars` or `observe`"),
}  # fmt: skip
_NO_HOSTS = "ruleop has no inventory of hosts; what a rule needs is in `spec` or `vars`"
NAMES = {  # hints
    "Values": "write spec.x", "Release": "write metadata.name or metadata.namespace",
    "Chart": "write vars.x, with `vars` in watches.yaml", "Files": "write `file('x')`",
    "Template": "write the name out", "Capabilities": "write `has_kind('group/v1', 'Kind')`",
    "ansible_operator_meta": "write metadata.name and metadata.namespace", "hostvars": _NO_HOSTS, "groups": _NO_HOSTS,
    "inventory_hostname": _NO_HOSTS, "ansible_facts": _NO_HOSTS,
    "ansible_env": "read the environment in `vars`: `name: ${NAME}`",
    "ansible_date_time": "write `now()`, in a create-only child", "null": "write none", "nil": "write none",
    "undefined": "write `x is undefined`", "end": "blocks end with `{% endif %}`, `{% endfor %}` or `{% endmacro %}`",
}  # fmt: skip
_GO_KEYWORDS = {
    "if": "write `{% if x %}` and `{% endif %}`", "range": "write `{% for item in x %}` and `{% endfor %}`",
    "with": "write `{% set y = x %}`", "else": "write `{% else %}`", "and": "write `x and y`", "or": "write `x or y`",
    "define": FUNCTIONS["define"], "template": _MACRO, "block": _MACRO,
}  # fmt: skip
"""Keywords of Go templates at the start of braces."""


def other_filter(name: str) -> str:
    """The equivalent of another tool's filter; "" if unknown."""
    return FILTERS.get(name.rpartition(".")[2], "")


def go_keyword_hint(name: str, *, always: bool = False) -> str:
    """The hint for a keyword of Go templates that Jinja parses as a name; "" if it may be a name."""
    return _GO_KEYWORDS.get(name, "") if always or name in {"if", "else", "with", "and", "or"} else ""


def instead_of(name: str) -> str:
    """The hint for an unknown name or function; "" if there is none."""
    if name in NAMES or name in FUNCTIONS:
        return NAMES.get(name) or FUNCTIONS[name]
    known = FILTERS.get(name, name)
    if known in FILTER_NAMES:
        return f"write `x | {known}{_ARGUMENT.get(known, '')}`"
    return f"write {known}" if name in FILTERS else ""


_ARGUMENT = {
    "default": "('a')",
    "required": "('message')",
    "indent": "(4)",
    "replace": "('a', 'b')",
    "join": "(',')",
    "split": "(',')",
}

# -- text that Jinja cannot parse --------------------------------------------------------------------------------------

_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_IN_BRACES = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_FIRST_WORD = re.compile(r"\{\{-?\s*([A-Za-z]\w*)(?=[\s(]+[\"$.\w(]|\s*-?\}\})")
_NO_WORD = r"(?!(?:if|else|and|or|in|is|not|for)\b)"
_WORD_AND_VALUE = re.compile(rf"(?<![\w.])([A-Za-z]\w*)\s+{_NO_WORD}(?=[\"$(.\w])")
_ANY_TAG = re.compile(r"\{%[-+]?\s*\w+")
_INDENTED = re.compile(r"\|\s*n?indent\s+\d")
_INCLUDED = re.compile(r"\b(?:include|template)\s+\"")
_PIPED_WITH_VALUE = re.compile(rf"\|\s*([A-Za-z]\w*)\s+{_NO_WORD}(?=[\"$(.\w])")
_FOREIGN_SYNTAX = (
    (r"/\*", "write a comment as `{# ... #}`"),
    (r":=", "write `{% set x = y %}`, not `$x := y`"),
    (r"\.Release\.Name\b", "write metadata.name, not .Release.Name"),
    (r"\.Release\.Namespace\b", "write metadata.namespace, not .Release.Namespace"),
    (r"\.Release\b", f"{NAMES['Release']}; a custom resource has no release"),
    (r"\.Chart\b", f"{NAMES['Chart']}, not .Chart.x"),
    (r"\.Files\b", f"{NAMES['Files']}, not .Files.Get"),
    (r"\.Capabilities\b", f"{NAMES['Capabilities']}, not .Capabilities"),
    (r"\$", "$ is not valid in an expression: write spec.x, not $x or .Values.x"),
    (r"\?\.", "write `x.y | default('')`, not `x?.y`"),
    (r"(?<![\w\])\"])\.\s*[A-Za-z]", "a name cannot start with a dot: write spec.x, not .Values.x"),
    (r"&&", "write `x and y`, not `x && y`"),
    (r"\|\|", "write `x or y`, not `x || y`"),
    (r"!==", "write `x != y`, not `x !== y`"),
    (r"===", "write `x == y`, not `x === y`"),
    (r"<>", "write `x != y`, not `x <> y`"),
    (r"!(?!=)", "write `not x`, not `!x`"),
    (r"\?\?", "write `x | default(y)`, not `x ?? y`"),
    (r"\?", "write `y if x else z`, not `x ? y : z`"),
    (r"[\[(][^\])]*\bfor\b", "write `list | map(...)` or `list | select(...)`, not `[x for x in list]`"),
    (r"%\s*else\s+if\b", "write `{% elif x %}`, not `{% else if x %}`"),
    (r"(?<![=!<>])=(?!=)", "write `x == y` to compare, and `{% set x = y %}` to give a value a name"),
)


def syntax_hint(source: str, line: int) -> str:
    """The hint for the braces on a line that cannot be parsed; "" if there is none."""
    return next((hint for text in _texts_in_braces(source, line) if (hint := _find_hint(text))), "")


def _texts_in_braces(source: str, line: int) -> Iterator[str]:
    """The text in braces on a line, with empty quotes."""
    for found in _IN_BRACES.finditer(source):
        first = source.count("\n", 0, found.start()) + 1
        if first <= line <= first + found[0].count("\n"):
            yield _QUOTED.sub('""', found[0])


def _find_hint(text: str) -> str:
    if _INDENTED.search(text):
        return f"{_MACRO} {_ON_ITS_LINE}" if _INCLUDED.search(text) else f"write {ALONE}"
    if (first := _FIRST_WORD.match(text)) and first[1] in _GO_KEYWORDS:
        return _GO_KEYWORDS[first[1]]
    if (piped := _PIPED_WITH_VALUE.search(text)) and (name := FILTERS.get(piped[1], piped[1])) in FILTER_NAMES:
        return f"the arguments of a filter must be in brackets: write `x | {name}{_ARGUMENT.get(name, '(y)')}`"
    for word in _WORD_AND_VALUE.finditer(_ANY_TAG.sub("", text)):
        if hint := instead_of(word[1]):
            return (
                f"unknown function {word[1]}: {hint}"
                if word[1] not in FILTER_NAMES
                else f"{word[1]} is a filter: {hint}"
            )
    return next((hint for sign, hint in _FOREIGN_SYNTAX if re.search(sign, text)), "")


# -- hints -------------------------------------------------------------------------------------------------------------

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


def mistakes_in(tree: syntax.Template) -> Iterator[RuleError]:
    """The mistakes in the statements and expressions of a text that Jinja parses."""
    yield from _unknown_functions(tree)
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


def _unknown_functions(tree: syntax.Template) -> Iterator[RuleError]:
    """The mistake in each unknown filter and test."""
    for filter_ in find(tree, syntax.Filter):
        if filter_.name not in FILTER_NAMES:
            yield RuleError(_unknown_name("filter", filter_.name, FILTER_NAMES), filter_.site)
    for test in find(tree, syntax.Test):
        if test.name not in TEST_NAMES:
            yield RuleError(_unknown_name("test", test.name, TEST_NAMES), test.site)


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
