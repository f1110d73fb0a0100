"""Reads YAML strictly, with the scalar types of kubectl and the place of every value.

PyYAML's loaders are unsuitable: they parse `2026-01-01` as a date and `12:30:45` as 45045, silently keep the last of
two equal keys, and expand anchors (a document of 300 bytes can describe a billion nodes). So only PyYAML's parser
(libyaml) is used, and its events are built into `YamlNode`s here, with the scalar rules of kubectl's YAML library.

Errors, with line and column, are: anchors, aliases and merge keys (except in files that tools write), tags, duplicate
keys, keys that are not strings, values that JSON cannot represent, and nesting deeper than 64. A syntax error ends the
reading of a file, because the rest is unreliable; all other mistakes are collected."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from dataclasses import field
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import yaml
from yaml.cyaml import CParser  # type: ignore[attr-defined]  # the stubs hide it

from ruleop.errors import RuleError, Site
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.kubernetes.kinds import JSON


# -- nodes ---------------------------------------------------------------------------------------------------------

_NO_KEYS: Final[Mapping[str, Site]] = MappingProxyType({})

Scalar: TypeAlias = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class YamlNode:
    """A YAML value with its site."""

    value: Scalar | list[YamlNode] | dict[str, YamlNode]
    site: Site
    key_sites: Mapping[str, Site] = field(default_factory=lambda: _NO_KEYS)
    plain: bool = False  # an unquoted scalar
    flow: bool = False  # a mapping or list in braces or brackets

    def member(self, *names: str) -> YamlNode | None:
        """The value of a field, or of one in nested mappings; None if there is none."""
        node: YamlNode | None = self
        for name in names:
            node = node.value.get(name) if node is not None and isinstance(node.value, dict) else None
        return node

    def place(self, offset: int) -> Site:
        """The place of a character of a string that is on one line."""
        return Site(self.site.path, self.site.line, self.site.column + offset + (0 if self.plain else 1))

    def data(self) -> JSON:
        """The value as plain data."""
        value = self.value
        if isinstance(value, dict):
            return {key: node.data() for key, node in value.items()}
        if isinstance(value, list):
            return [node.data() for node in value]
        return value

    def texts(self) -> Iterator[tuple[str, Site]]:
        """The strings that may contain a template, with their sites: all values, and keys with template syntax."""
        value = self.value
        if isinstance(value, str):
            yield value, self.site
        for key, site in self.key_sites.items():
            if "{{" in key or "{%" in key:
                yield key, site
        for node in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from node.texts()


# -- anchors -----------------------------------------------------------------------------------------------------------
#
# The anchors of a YAML document, in files that tools write: an alias is replaced by the value of its anchor, as in
# kubectl.
#
# An alias of a few characters may represent a whole document with more aliases: 300 bytes can describe a billion
# values. So the size of all expanded aliases of a file is counted and bounded before anything is copied.

MAX_VALUES: Final = 250_000
MAX_CHARACTERS: Final = 8 * 1024 * 1024


class AnchorError(Exception):
    """An invalid anchor, alias or merge key."""

    def __init__(self, message: str, *, final: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.final = final  # the rest of the file cannot be read


class _Size(NamedTuple):
    """The number of values and characters in a value, and its depth."""

    values: int
    characters: int
    depth: int


class Anchors:
    def __init__(self, *, max_depth: int) -> None:
        self.max_depth = max_depth
        self._known: dict[str, YamlNode | None] = {}  # None while the value is being read
        self._anchored: list[YamlNode] = []  # all anchored values, so that their ids are not reused
        self._sizes: dict[int, _Size] = {}
        self._values = self._characters = 0

    def new_document(self) -> None:
        """Clears the anchors, which are valid in one document. The bounds apply to the whole file."""
        self._known.clear()

    def begin(self, name: str) -> None:
        self._known[name] = None

    def end(self, name: str, node: YamlNode) -> None:
        self._known[name] = node
        self._anchored.append(node)
        self._sizes[id(node)] = self._size(node)

    def expand(self, name: str, depth: int) -> YamlNode:
        """The value of an alias at the given depth."""
        if name not in self._known:
            raise AnchorError(
                f"the alias *{name} has no anchor: write &{name} before a value earlier in the same document"
            )
        found = self._known[name]
        if found is None:
            raise AnchorError(f"the alias *{name} is inside the value of its own anchor")
        size = self._sizes[id(found)]
        self._values += size.values
        self._characters += size.characters
        if self._values > MAX_VALUES or self._characters > MAX_CHARACTERS:
            limits = f"{MAX_VALUES:,} values or {MAX_CHARACTERS // 1024 // 1024} MiB"
            raise AnchorError(
                f"the aliases of this file expand to more than {limits}: write the values out", final=True
            )
        if depth + size.depth - 1 > self.max_depth:
            raise AnchorError(f"the alias *{name} makes the document nested deeper than {self.max_depth} levels")
        return found

    def _size(self, node: YamlNode) -> _Size:
        """The size of a value. Anchored values are measured once."""
        if (known := self._sizes.get(id(node))) is not None:
            return known
        value = node.value
        if not isinstance(value, (dict, list)):
            return _Size(1, len(value) if isinstance(value, str) else 0, 1)
        inner = [self._size(each) for each in (value.values() if isinstance(value, dict) else value)]
        characters = sum(map(len, value)) if isinstance(value, dict) else 0
        return _Size(
            1 + sum(each.values for each in inner),
            characters + sum(each.characters for each in inner),
            1 + max((each.depth for each in inner), default=0),
        )


def merge_members(
    members: dict[str, YamlNode], key_sites: dict[str, Site], value: YamlNode
) -> tuple[dict[str, YamlNode], dict[str, Site]]:
    """The members of a mapping with those of its merge key, `<<: *base` or `<<: [*first, *second]`, of which the first
    wins.

    By the specification, members of the mapping override merged ones. In kubectl the order decides, so a case in which
    the two differ is an error.
    """
    sources = value.value if isinstance(value.value, list) else [value]
    found: dict[str, YamlNode] = {}
    sites: dict[str, Site] = {}
    for source in sources:
        if not isinstance(source.value, dict):
            raise AnchorError("the merge key << takes a mapping or a list of mappings")
        for key, member in source.value.items():
            if key in members:
                raise AnchorError(f'the merge key << comes after the key "{key}", which it also contains: put << first')
            found.setdefault(key, member)
            sites.setdefault(key, source.key_sites[key])
    return {**members, **found}, {**key_sites, **sites}


# -- yaml reader -------------------------------------------------------------------------------------------------------

MAX_DEPTH = 64
MAX_NODES = 250_000
MAX_SHOWN = 40  # characters of a number in a message

Locate: TypeAlias = Callable[[int, int], Site]
"""Maps a line and column (both from 1) of the text to a site in the user's files."""


def read_yaml(
    text: str, path: str, *, locate: Locate | None = None, anchors: Anchors | None = None
) -> tuple[list[YamlNode], list[RuleError]]:
    """The documents of a text without empty ones, and the mistakes in it. With `anchors`, aliases and merge keys are
    expanded."""
    reader = _Reader(locate or (lambda line, column: Site(path, line, column)), anchors)
    reader.read(text)
    return reader.documents, reader.mistakes


# -- scalars -----------------------------------------------------------------------------------------------------------

_WORDS: dict[str, Scalar] = dict.fromkeys(("", "~", "null", "Null", "NULL"))
for _true, _false in (("true", "false"), ("yes", "no"), ("on", "off"), ("y", "n")):
    for _shape in (str.lower, str.capitalize, str.upper):
        _WORDS[_shape(_true)] = True
        _WORDS[_shape(_false)] = False
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_INT = re.compile(r"([-+]?)(?:0b([01]+)|0x([0-9a-fA-F]+)|0o?([0-7]+)|([0-9]+))\Z")
_NOT_JSON = re.compile(r"[-+]?\.(inf|Inf|INF)\Z|\.(nan|NaN|NAN)\Z")


class NotJson(ValueError):  # noqa: N818 - describes the scalar
    """A YAML scalar that JSON cannot represent."""


def resolve_scalar(text: str) -> Scalar:
    """The value of an unquoted scalar in kubectl: `yes` is true, 0777 is 511, 1_000 is 1000, and a date is a string."""
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if not (first.isdigit() or first in "+-."):
        return text
    digits = text.replace("_", "")
    if match := _INT.match(digits):
        sign, binary, hexadecimal, octal, decimal = match.groups()
        if binary is not None:
            number = int(binary, 2)
        elif hexadecimal is not None:
            number = int(hexadecimal, 16)
        elif octal is not None:
            number = int(octal, 8)
        elif len(decimal) > 20:
            return _float(digits, text)
        else:
            number = int(decimal)
        number = -number if sign == "-" else number
        return number if -(2**63) <= number < 2**64 else _float(number, text)
    if _FLOAT.match(digits):
        return _float(digits, text)
    if _NOT_JSON.match(text):
        raise NotJson(text)
    return text


def _float(number: str | int, text: str) -> float:
    try:
        value = float(number)
    except OverflowError:  # a string would become infinity instead
        raise NotJson(text) from None
    if math.isinf(value):
        raise NotJson(text)
    return value


# -- documents ---------------------------------------------------------------------------------------------------------


class _Merge(Enum):
    """The merge key. Not a string, because the same key in quotes is an ordinary key."""

    KEY = "<<"


class _SyntaxError(Exception):
    """Stops the reader after a recorded mistake."""


class _Reader:
    """Builds nodes from events. PyYAML has two types of events and marks, of C and of Python; both are `Any` here."""

    def __init__(self, locate: Locate, anchors: Anchors | None) -> None:
        self.locate = locate
        self.anchors = anchors
        self.documents: list[YamlNode] = []
        self.mistakes: list[RuleError] = []
        self.count = 0
        self.braces = -1  # the line of a value that starts with {{

    def read(self, text: str) -> None:
        try:
            parser = CParser(text)
        except UnicodeEncodeError as error:
            self.mistakes.append(
                RuleError("not YAML: unpaired surrogate", self.locate(*_line_and_column(text, error.start)))
            )
            return
        try:
            self._documents(parser)
        except _SyntaxError:
            pass
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            if mark is None or mark.line != self.braces:  # else it is what follows the braces
                self.mistakes.append(self._syntax_error(error, text))
        except yaml.YAMLError as error:  # an invalid character; the error has its offset, not its line
            at = self.locate(*_line_and_column(text, getattr(error, "position", 0) or 0))
            self.mistakes.append(RuleError(f"not YAML: {getattr(error, 'reason', error)}", at))
        finally:
            parser.dispose()

    def _documents(self, parser: Any) -> None:
        while True:
            event = parser.get_event()
            if isinstance(event, yaml.StreamEndEvent) or event is None:
                return
            if isinstance(event, yaml.DocumentStartEvent):
                if self.anchors is not None:
                    self.anchors.new_document()
                if event.version or event.tags:
                    self._mistake("%YAML and %TAG directives are not allowed: remove the line", event.start_mark)
                node = self._node(parser, parser.get_event(), 1)
                if node.value is not None:
                    self.documents.append(node)

    def _node(self, parser: Any, event: Any, depth: int) -> YamlNode:
        site = self._site(event.start_mark)
        self.count += 1
        if self.count > MAX_NODES:
            self._mistake(f"more than {MAX_NODES:,} values", event.start_mark)
            raise _SyntaxError
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, site, depth)
        if event.anchor and self.anchors is not None:
            self.anchors.begin(event.anchor)
            node = self._value(parser, event, site, depth)
            self.anchors.end(event.anchor, node)
            return node
        if event.anchor:
            self._mistake(
                f"anchors are not allowed (&{event.anchor}): define a repeated value once under `vars` or `let`",
                event.start_mark,
            )
        return self._value(parser, event, site, depth)

    def _alias(self, event: Any, site: Site, depth: int) -> YamlNode:
        if self.anchors is None:
            hint = "write the value out, or define it once under `vars` or `let`"
            message = f"aliases are not allowed (*{event.anchor}): {hint}"
            self._mistake(message, event.start_mark)
            return YamlNode(None, site)
        try:
            return self.anchors.expand(event.anchor, depth)
        except AnchorError as error:
            self._mistake(error.message, event.start_mark)
            if error.final:
                raise _SyntaxError from None
            return YamlNode(None, site)

    def _value(self, parser: Any, event: Any, site: Site, depth: int) -> YamlNode:
        if event.tag:
            self._mistake(
                f"tags are not allowed ({event.tag}): write the value without it, in quotes if it is a string",
                event.start_mark,
            )
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, site)
        if depth > MAX_DEPTH:
            self._mistake(f"nested deeper than {MAX_DEPTH} levels", event.start_mark)
            raise _SyntaxError
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[YamlNode] = []
            while not isinstance(next_event := parser.get_event(), yaml.SequenceEndEvent):
                items.append(self._node(parser, next_event, depth + 1))
            return YamlNode(items, site, flow=bool(event.flow_style))
        return self._mapping(parser, event, site, depth)

    def _mapping(self, parser: Any, event: Any, site: Site, depth: int) -> YamlNode:
        members: dict[str, YamlNode] = {}
        key_sites: dict[str, Site] = {}
        own_keys: dict[str | _Merge, Site] = {}  # the keys of the mapping itself
        while not isinstance(key_event := parser.get_event(), yaml.MappingEndEvent):
            key = self._key(parser, key_event, depth)
            value = self._node(parser, parser.get_event(), depth + 1)
            if key is None:
                continue
            key_site = self._site(key_event.start_mark)
            if key in own_keys:
                self._mistake(repeated_key(key_event.value, own_keys[key], key_site), key_event.start_mark)
                continue
            own_keys[key] = key_site
            if key is _Merge.KEY:
                members, key_sites = self._merge(members, key_sites, value, key_event)
                continue
            members[key] = value
            key_sites[key] = key_site
        return YamlNode(members, site, key_sites, flow=bool(getattr(event, "flow_style", False)))

    def _merge(
        self, members: dict[str, YamlNode], key_sites: dict[str, Site], value: YamlNode, key_event: Any
    ) -> tuple[dict[str, YamlNode], dict[str, Site]]:
        try:
            return merge_members(members, key_sites, value)
        except AnchorError as error:
            self._mistake(error.message, key_event.start_mark)
            return members, key_sites

    def _key(self, parser: Any, event: Any, depth: int) -> str | _Merge | None:
        if not isinstance(event, yaml.ScalarEvent):
            inner = self._node(parser, event, depth + 1)
            hint = ""
            if isinstance(inner.value, dict) and inner.flow:
                hint = ": a value that starts with {{ must be in quotes"
                self.braces = event.start_mark.line
            self._mistake(f"a key must be a string{hint}", event.start_mark)
            return None
        node = self._scalar(event, self._site(event.start_mark))
        if node.plain and event.value == "<<" and self.anchors is not None:
            return _Merge.KEY
        if node.plain and event.value == "<<":
            self._mistake(
                "the merge key << is not allowed: write the members out, or define them once under `vars` or `let`",
                event.start_mark,
            )
            return None
        if not isinstance(node.value, str):
            self._mistake(
                f'the key {event.value or "(empty)"} is not a string in YAML: put it in quotes, "{event.value}"',
                event.start_mark,
            )
            return None
        return sys.intern(node.value)  # most are names of fields

    def _scalar(self, event: yaml.ScalarEvent, site: Site) -> YamlNode:
        if not event.implicit[0]:
            return YamlNode(event.value, site)
        try:
            return YamlNode(resolve_scalar(event.value), site, plain=True)
        except NotJson:
            number = event.value if len(event.value) <= MAX_SHOWN else f"{event.value[:MAX_SHOWN]}..."
            self._mistake(f"{number} is a number that JSON cannot represent", event.start_mark)
            return YamlNode(None, site, plain=True)

    def _syntax_error(self, error: yaml.MarkedYAMLError, text: str) -> RuleError:
        """The mistake, at the line that is wrong, where libyaml notices it later."""
        mark = error.problem_mark or error.context_mark
        problem = str(error.problem)
        if mark is not None and "mapping values are not allowed" in problem:
            before = text.split("\n")[: mark.line]
            number = next((number for number in reversed(range(len(before))) if _has_content(before[number])), None)
            if number is not None and _BARE_ITEM.fullmatch(before[number]):
                return RuleError(_ITEM_WITH_KEYS, self.locate(number + 1, 1))
            if number is not None and _BARE_WORDS.fullmatch(before[number]):
                column = len(before[number]) - len(before[number].lstrip())
                return RuleError(_NO_COLON, self.locate(number + 1, column + 1))
        if "could not find expected ':'" in problem or "scanning a quoted scalar" in str(error.context):
            mark = error.context_mark or mark
        return RuleError(_explain(error, text), self._site(mark))

    def _site(self, mark: Any) -> Site:
        return self.locate(mark.line + 1, mark.column + 1) if mark else self.locate(1, 1)

    def _mistake(self, message: str, mark: Any) -> None:
        self.mistakes.append(RuleError(message, self._site(mark)))


def repeated_key(key: str, first: Site, key_site: Site) -> str:
    """The message about a duplicate key."""
    where = f"on line {first.line}" if first.path == key_site.path else f"at {first}"
    return f'duplicate key "{key}": the first is {where}'


def _line_and_column(text: str, position: int) -> tuple[int, int]:
    """The line and column of a character."""
    return text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)


_NO_COLON = "not YAML: a line without `: ` among the entries of a mapping; add the colon, or check its indentation"
_ITEM_WITH_KEYS = (
    "not YAML: a value behind `- ` is the whole item, so keys cannot follow it: put the value on a line of its own, "
    "indented as the keys are"
)
_BARE_ITEM = re.compile(" *- +\ufdd0[0-9]+\ufdd1 *")
_BARE_WORDS = re.compile(r" *(?:- +)*(?![-\"'{\[|>&*!%@`#])(?:(?!: )[^#])*[^:#\s] *(?: #.*)?")
"""A line of plain text among the entries of a mapping."""


def _has_content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _explain(error: yaml.MarkedYAMLError, text: str) -> str:
    """The message for a syntax error: likely causes instead of what libyaml expected."""
    problem = str(error.problem or error)
    mark = error.problem_mark
    line = text.split("\n")[mark.line] if mark and mark.line < text.count("\n") + 1 else ""
    if "\t" in line[: len(line) - len(line.lstrip())] or ("cannot start any token" in problem and "\t" in line):
        return "not YAML: tabs are not allowed for indentation; use spaces"
    if "mapping values are not allowed" in problem:
        return "not YAML: a second `: ` in one value, or wrong indentation; put a value that contains `: ` in quotes"
    if any(words in problem for words in ("expected '-' indicator", "expected key", "expected <document start>")):
        return (
            "not YAML: this line does not match its neighbours; "
            "check its indentation, and look for unclosed quotes or braces above it"
        )
    if "could not find expected ':'" in problem:
        return _NO_COLON
    if "found unexpected end of stream" in problem and "scanning a quoted scalar" in str(error.context):
        return "not YAML: the quotes that open here are not closed"
    if "cannot start any token" in problem:
        return (
            f"not YAML: a value cannot start with {line[mark.column : mark.column + 1]!r}; put it in quotes"
            if mark
            else f"not YAML: {problem}"
        )
    if "did not find expected node content" in problem:
        return "not YAML: a value is missing here, or a bracket or brace is not closed"
    context = f" ({error.context})" if error.context else ""
    return f"not YAML: {problem}{context}"
