"""Filters of text, and the test `version`.

The order of versions is Ansible's, loose or by the rules of SemVer. Loosely, a version is its numbers and the texts
between them: 1.9 is before 1.10, and 1.2 before 1.2.0. The `v` of a tag does not count.
"""

from __future__ import annotations

import io
import operator as operators
import posixpath
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from textwrap import TextWrapper
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote as percent_encoded
from urllib.parse import urlencode as form_encoded

from ruleop.language.templates.declarations import Filters, Trait
from ruleop.language.templates.filters.list_filters import SIZED
from ruleop.language.templates.values.cost import MAX_STEPS, Exhausted, check_items, check_text, exceeded
from ruleop.language.templates.values.cost import width as bounded_width
from ruleop.language.templates.values.data import noun, plain, scalar_text
from ruleop.language.templates.values.faults import Fault
from ruleop.language.templates.values.operators import METHODS, joined_by, reach
from ruleop.language.templates.values.text import Dump, Indent, Text
from ruleop.language.templates.values.undefined import UndefinedValue
from ruleop.patterns import InvalidPatternError, compile_re2

if TYPE_CHECKING:
    from collections.abc import Callable

FILTERS: Final = Filters()


@FILTERS.declare("indent", "scalar", "string", Trait.KEEPS_TEXT)
def indent(value: Any, width: Any = 4, first: bool = False, blank: bool = False) -> Any:
    by = width if isinstance(width, str) else " " * bounded_width(width, "an indentation")
    bounded_width(len(by), "an indentation")
    indentation = Indent(by, bool(first), bool(blank))
    return value.indented(indentation) if isinstance(value, (Text, Dump)) else indentation.apply(scalar_text(value))


@FILTERS.declare("trim", "scalar", "string", Trait.KEEPS_TEXT | Trait.SAME_TRUTH)
def trim(value: Any, chars: str | None = None) -> Any:
    if isinstance(value, Text):
        return value.trimmed(chars)
    text = scalar_text(value)
    return text.strip(chars)


@FILTERS.declare("join", SIZED, "string", Trait.TAKES_ATTRIBUTE)
def join(value: Any, d: str = "", attribute: Any = None) -> str:
    """The items joined into text; with `attribute`, the attributes of the items that have it."""
    if attribute is not None:
        value = [found for item in value if not isinstance(found := reach(item, attribute), UndefinedValue)]
    return joined_by(d, value)


@FILTERS.declare("center", "scalar", "string")
def center(value: Any, width: int = 80) -> str:
    return scalar_text(value).center(bounded_width(width, "a width"))


@FILTERS.declare("wordwrap", gives="string")
def wordwrap(
    value: Any, width: int = 79, break_long_words: bool = True, wrapstring: str = "\n", break_on_hyphens: bool = True
) -> str:
    text = scalar_text(value)
    lines, columns = text.splitlines(), int(width)
    wrapper = TextWrapper(
        width=columns,
        expand_tabs=False,
        replace_whitespace=False,
        break_long_words=break_long_words,
        break_on_hyphens=break_on_hyphens,
    )
    return joined_by(wrapstring, [piece for line in lines for piece in wrapper.wrap(line) or [""]])


@FILTERS.declare("split", "scalar", "list of string", example=("'a,b' | split(',')", "[a, b]"))
def split(value: Any, separator: str | None = None, maxsplit: int = -1) -> list[str]:
    """The parts between the separators, or between white space."""
    found: list[str] = METHODS["text", "split"].call(scalar_text(value), separator, maxsplit)
    return found


@FILTERS.declare("quote", gives="string", example=("spec.size | quote", '"3"'))
def quote(value: Any) -> str:
    """Converts to a string; adds no quotes."""
    return scalar_text(value)


@FILTERS.declare("shell_quote", gives="string", example=("'a b' | shell_quote", "\"'a b'\""))
def shell_quote(value: Any) -> str:
    """Quotes for a shell."""
    text = scalar_text(value)
    if "\0" in text:
        raise Fault("shell_quote: the text contains a NUL character")
    return shlex.quote(text)


@FILTERS.declare("urlencode", gives="string")
def urlencode(value: Any) -> str:
    data = plain(value)
    if isinstance(data, Mapping):
        return form_encoded({key: scalar_text(item) for key, item in data.items()}, quote_via=percent_encoded)
    return percent_encoded(scalar_text(data))


@FILTERS.declare("basename", "string", "string", example=("'/etc/app.conf' | basename", "app.conf"))
def basename(value: Any) -> str:
    """The last part of a path."""
    return posixpath.basename(_path("basename", value))


@FILTERS.declare("dirname", "string", "string", example=("'/etc/app.conf' | dirname", "/etc"))
def dirname(value: Any) -> str:
    """The path before its last part."""
    return posixpath.dirname(_path("dirname", value))


def _path(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise Fault(f"{name} takes text, not {noun(value)}")
    return value


# -- regular expressions: RE2, in which a match takes time linear in the text ------------------------------------------

_GROUP = re.compile(r"\\(?:g<(\w+)>|([0-9]{1,3}))")

MAX_PROGRAM: Final = 1 << 20
"""Bytes of a compiled pattern, and of the automaton that it builds as it reads text. RE2 slows down when it is full."""

MAX_PROGRAMS: Final = 24
"""Compiled patterns that are kept. A pattern may come from a custom resource."""


@lru_cache(MAX_PROGRAMS)
def _compiled(pattern: str) -> Any:
    try:
        return compile_re2(pattern, memory=MAX_PROGRAM)
    except InvalidPatternError:
        raise Fault(
            "not a valid RE2 regular expression (RE2 has no lookaround and no backreferences), or one that is too large"
        ) from None


def _matches(pattern: Any, text: str, *, ignorecase: bool, multiline: bool) -> Iterator[Any]:
    """The matches. `multiline`: ^ and $ match at each line. Nothing interrupts the search for one, so what it may take
    is bounded, by the slowest of RE2's ways: for each byte of the text a step of each instruction of the pattern, and
    of its groups. Many searches are ended by the guard of the plan."""
    letters = ("i" if ignorecase else "") + ("m" if multiline else "")
    source = (f"(?{letters})" if letters else "") + scalar_text(pattern)
    if len(source) > 4096:
        raise Exhausted("the regular expression has more than 4,096 characters")
    compiled = _compiled(source)
    steps = len(text.encode("utf-8", "surrogatepass")) * compiled.programsize * (200 + compiled.groups)
    if steps > MAX_STEPS:
        raise exceeded("up to {} steps of a regular expression for this text", steps, MAX_STEPS)
    yield from compiled.finditer(text)


@FILTERS.declare("regex_match", "scalar", "boolean", example=("spec.image | regex_match('^1[.]')", "true"))
def regex_match(value: Any, pattern: str, *, ignorecase: bool = False, multiline: bool = False) -> bool:
    """Whether the pattern matches anywhere in the text; anchor it with ^ and $."""
    return next(_matches(pattern, scalar_text(value), ignorecase=ignorecase, multiline=multiline), None) is not None


@FILTERS.declare(
    "regex_search", "scalar", "string or null or list", example=("spec.image | regex_search('[0-9]+$')", '"20"')
)
def regex_search(value: Any, pattern: str, *groups: Any, ignorecase: bool = False, multiline: bool = False) -> Any:
    r"""The first match, or null; with groups (`'\\1'`), a list of them."""
    references = [_GROUP.fullmatch(scalar_text(group)) for group in groups]
    if None in references:
        raise Fault(r"regex_search: after the pattern it takes groups, such as '\\1' or '\\g<name>'")
    match = next(_matches(pattern, scalar_text(value), ignorecase=ignorecase, multiline=multiline), None)
    if match is None or not references:
        return match and match.group()
    try:
        return [match.group(found[1] or int(found[2])) for found in references if found]
    except LookupError:
        raise Fault("regex_search: the pattern has no such group") from None


@FILTERS.declare("regex_replace", "scalar", "string", example=("spec.image | regex_replace('[.]', '-')", "1-20"))
def regex_replace(
    value: Any, pattern: str, replacement: str, *, ignorecase: bool = False, multiline: bool = False
) -> str:
    r"""Replaces all matches. The replacement may name groups: `'\\1'`."""
    text, new, found, at = scalar_text(value), scalar_text(replacement), io.StringIO(), 0
    names = (name or number for name, number in _GROUP.findall(new))
    groups = Counter(int(name) if name.isdecimal() else name for name in names)
    for match in _matches(pattern, text, ignorecase=ignorecase, multiline=multiline):
        try:
            size = len(new) + sum(times * len(match.group(group) or "") for group, times in groups.items())
            check_text(found.tell() + size)
            expanded = match.expand(new)
        except (LookupError, ValueError):
            raise Fault("regex_replace: the replacement names a group that the pattern does not have") from None
        found.write(text[at : match.start()])
        found.write(expanded)
        at = match.end()
    check_text(found.tell() + len(text) - at)
    found.write(text[at:])
    return found.getvalue()


@FILTERS.declare("regex_escape", "scalar", "string", example=("spec.image | regex_escape", "'1\\.20'"))
def regex_escape(value: Any) -> str:
    """A pattern that matches this text only."""
    return re.escape(scalar_text(value))


def matches_at_start(value: Any, pattern: str, *, ignorecase: bool = False, multiline: bool = False) -> bool:
    """Whether the text begins with a match, as in Ansible's test `match`."""
    return regex_match(value, f"\\A(?:{scalar_text(pattern)})", ignorecase=ignorecase, multiline=multiline)


@FILTERS.declare("regex_findall", "scalar", "list", example=("spec.image | regex_findall('[0-9]+')", '["1", "20"]'))
def regex_findall(value: Any, pattern: str, *, ignorecase: bool = False, multiline: bool = False) -> list[Any]:
    """All matches: the text of each, the text of its only group, or a list of its groups."""
    found: list[Any] = []
    pieces = length = 0
    for match in _matches(pattern, scalar_text(value), ignorecase=ignorecase, multiline=multiline):
        groups = match.groups(default="") or (match.group(),)
        pieces, length = pieces + len(groups), length + sum(map(len, groups))
        check_items(pieces)
        check_text(length)
        found.append(list(groups) if len(groups) > 1 else groups[0])
    return found


_LONGEST: Final = 256
_LOOSE_PART: Final = re.compile(r"([0-9]+|[a-z]+|\.)")
_NUMBER: Final = r"(0|[1-9][0-9]*)"
_SEMVER: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    r"(?:-((?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_OPERATORS: Final = {
    **dict.fromkeys(("==", "=", "eq"), operators.eq),
    **dict.fromkeys(("!=", "<>", "ne"), operators.ne),
    **dict.fromkeys(("<", "lt"), operators.lt),
    **dict.fromkeys(("<=", "le"), operators.le),
    **dict.fromkeys((">", "gt"), operators.gt),
    **dict.fromkeys((">=", "ge"), operators.ge),
}


def version(value: Any, other: Any, operator: str = "eq", *, version_type: str = "loose") -> bool:
    """Whether the version is before, after or the same as the other, as the operator asks."""
    if operator not in _OPERATORS:
        raise Fault("version takes one of the operators ==, !=, <, <=, > and >=")
    if version_type not in _READERS:
        raise Fault("version: version_type is 'loose' or 'semver'")
    read = _READERS[version_type]
    try:
        return bool(_OPERATORS[operator](read(value), read(other)))
    except TypeError:
        raise Fault("version: one version has a number where the other has text, so they have no order") from None


def _text(value: Any) -> str:
    text = scalar_text(value)
    if not 0 < len(text) <= _LONGEST:
        raise Fault(f"version takes versions of 1 to {_LONGEST} characters")
    return text[1:] if text[0] == "v" and text[1:2].isdecimal() else text


def _loose(value: Any) -> list[int | str]:
    parts = (part for part in _LOOSE_PART.split(_text(value)) if part not in {"", "."})
    return [int(part) if part.isdecimal() else part for part in parts]


def _semver(value: Any) -> tuple[Any, ...]:
    match = _SEMVER.fullmatch(_text(value))
    if match is None:
        raise Fault("version: not a version by SemVer, such as 1.2.3 or 1.2.3-rc.1")
    *core, early = match.groups()
    parts = [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in early.split(".")] if early else []
    return (*map(int, core), not early, parts)


_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {"loose": _loose, "semver": _semver, "semantic": _semver}
