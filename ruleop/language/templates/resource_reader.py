"""Reads files of objects as kubectl does: custom resources, CRDs, objects of a cluster.

Tools write these files, so JSON is read as JSON, and anchors, aliases and merge keys are supported. Everything else is
as strict as in the rules: ambiguous YAML is an error.

JSON is read with the place of every value. Most JSON is also YAML, but a character above U+FFFF as two escapes, and a
key of more than 1,024 characters, are not, and tools write both."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from ruleop.errors import RuleError, Site
from ruleop.language.templates.yaml_reader import (
    MAX_DEPTH,
    MAX_NODES,
    MAX_SHOWN,
    Anchors,
    NotJson,
    YamlNode,
    read_yaml,
    repeated_key,
    resolve_scalar,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_BLANKS = re.compile(r"[ \t\r\n]*+")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?[0-9]++)?+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS = {"true": True, "false": False, "null": None}
_WORD = re.compile("true|false|null")


class NotJsonText(Exception):  # noqa: N818 - not an error: the text may be YAML
    """The text is not JSON at this place. It may be YAML."""

    def __init__(self, site: Site) -> None:
        super().__init__(str(site))
        self.site = site


class _StopError(Exception):
    """Stops the reader after a recorded mistake."""


def line_starts(text: str) -> list[int]:
    """The start of each line."""
    return [0, *(match.end() for match in re.finditer("\n", text))]


def read_json(
    text: str, start: int, end: int, lines: list[int], locate: Callable[[int, int], Site]
) -> tuple[list[YamlNode], list[RuleError]]:
    """The consecutive values in a part of a text, and the mistakes in them. `lines`: the start of each line of the
    whole text. Raises NotJsonText."""
    reader = _Reader(text, end, lines, locate)
    found: list[YamlNode] = []
    at = reader.skip_blanks(start)
    try:
        while at < end:
            node, at = reader.value(at, 1)
            found.append(node)
            at = reader.skip_blanks(at)
    except _StopError:
        pass
    return found, reader.mistakes


class _Reader:
    def __init__(self, text: str, end: int, lines: list[int], locate: Callable[[int, int], Site]) -> None:
        self.text, self.end, self.lines, self.locate = text, end, lines, locate
        self.mistakes: list[RuleError] = []
        self.count = 0

    def stop(self, message: str, at: int) -> _StopError:
        self.mistakes.append(RuleError(message, self.site(at)))
        return _StopError()

    def site(self, at: int) -> Site:
        line = bisect_right(self.lines, at)
        return self.locate(line, at - self.lines[line - 1] + 1)

    def skip_blanks(self, at: int) -> int:
        match = _BLANKS.match(self.text, at, self.end)
        assert match is not None
        return match.end()

    def value(self, at: int, depth: int) -> tuple[YamlNode, int]:
        self.count += 1
        char = self.text[at : at + 1]
        if self.count > MAX_NODES:
            raise self.stop(f"more than {MAX_NODES:,} values", at)
        if char in ("{", "[") and depth > MAX_DEPTH:
            raise self.stop(f"nested deeper than {MAX_DEPTH} levels", at)
        if char == "{":
            return self.mapping(at, depth)
        if char == "[":
            return self.items(at, depth)
        if char == '"':
            text, end = self.string(at)
            return YamlNode(text, self.site(at)), end
        return self.scalar(at)

    def mapping(self, start: int, depth: int) -> tuple[YamlNode, int]:
        members: dict[str, YamlNode] = {}
        key_sites: dict[str, Site] = {}
        at = self.skip_blanks(start + 1)
        more = self.text[at : at + 1] != "}"
        while more:
            site = self.site(at)
            key, at = self.string(at)
            node, at = self.value(self.skip_blanks(self.expect(at, ":")), depth + 1)
            if key in members:
                self.mistakes.append(RuleError(repeated_key(key, key_sites[key], site), site))
            else:
                members[key], key_sites[key] = node, site
            at = self.skip_blanks(at)
            if more := self.text[at : at + 1] == ",":
                at = self.skip_blanks(at + 1)
        return YamlNode(members, self.site(start), key_sites, flow=True), self.expect(at, "}")

    def items(self, start: int, depth: int) -> tuple[YamlNode, int]:
        found: list[YamlNode] = []
        at = self.skip_blanks(start + 1)
        more = self.text[at : at + 1] != "]"
        while more:
            node, at = self.value(at, depth + 1)
            found.append(node)
            at = self.skip_blanks(at)
            if more := self.text[at : at + 1] == ",":
                at = self.skip_blanks(at + 1)
        return YamlNode(found, self.site(start), flow=True), self.expect(at, "]")

    def expect(self, at: int, char: str) -> int:
        """The position after a required character."""
        at = self.skip_blanks(at)
        if at >= self.end or self.text[at] != char:
            raise NotJsonText(self.site(at))
        return at + 1

    def string(self, at: int) -> tuple[str, int]:
        match = _STRING.match(self.text, at, self.end)
        if match is None:
            raise NotJsonText(self.site(at))
        text: str = json.loads(match[0])
        if _SURROGATE.search(text):
            self.mistakes.append(RuleError("unpaired surrogate in this string", self.site(at)))
        return text, match.end()

    def scalar(self, at: int) -> tuple[YamlNode, int]:
        value: Any
        if match := _WORD.match(self.text, at, self.end):
            value = _WORDS[match[0]]
        elif match := _NUMBER.match(self.text, at, self.end):
            try:
                value = resolve_scalar(match[0])
            except NotJson:
                number = match[0] if len(match[0]) <= MAX_SHOWN else f"{match[0][:MAX_SHOWN]}..."
                self.mistakes.append(RuleError(f"{number} is a number that JSON cannot represent", self.site(at)))
                value = None
        else:
            raise NotJsonText(self.site(at))
        return YamlNode(value, self.site(at), plain=True), match.end()


_SEPARATOR = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_LOOKS_LIKE_JSON = re.compile(r"(?:---)?(?:[ \t\r\n]++|#[^\n]*+)*+(?=[{\[])")  # comments may precede it


def read_resources(text: str, path: str) -> tuple[list[YamlNode], list[RuleError]]:
    """The documents of a text, each JSON or YAML, without empty ones; and the mistakes in it."""
    anchors = Anchors(max_depth=MAX_DEPTH)  # the bounds apply to the whole file
    starts = [0, *(match.start() for match in _SEPARATOR.finditer(text))]
    parts = list(zip(starts, [*starts[1:], len(text)], strict=True))
    if not any(_LOOKS_LIKE_JSON.match(text, start, end) for start, end in parts):
        return read_yaml(text, path, anchors=anchors)
    documents: list[YamlNode] = []
    mistakes: list[RuleError] = []
    lines = line_starts(text)
    for start, end in parts:
        found, part_mistakes = _read_part(text, path, start, end, lines, anchors)
        documents += found
        mistakes += part_mistakes
    return documents, mistakes


def _read_part(
    text: str, path: str, start: int, end: int, lines: list[int], anchors: Anchors
) -> tuple[list[YamlNode], list[RuleError]]:
    lines_before = bisect_right(lines, start) - 1

    def as_yaml() -> tuple[list[YamlNode], list[RuleError]]:
        return read_yaml(
            text[start:end], path, locate=lambda line, column: Site(path, line + lines_before, column), anchors=anchors
        )

    like_json = _LOOKS_LIKE_JSON.match(text, start, end)
    if like_json is None:
        return as_yaml()
    try:
        return read_json(text, like_json.end(), end, lines, lambda line, column: Site(path, line, column))
    except NotJsonText as error:
        documents, mistakes = as_yaml()  # {a: b} is valid YAML
        first = mistakes[0].site if mistakes else None
        if first is not None and (first.line, first.column) < (error.site.line, error.site.column):
            # The JSON reader got further than the YAML reader, so the text is meant to be JSON.
            message = (
                "not JSON: a value, comma, colon or bracket is missing or unexpected here, or a string is not closed"
            )
            return documents, [RuleError(message, error.site)]
        return documents, mistakes
