"""Reads JSON, every value with its place. Most JSON is YAML, but not all of it: a character above U+FFFF as two escapes, and a key of more
than 1,024 characters, are JSON only, and tools write both."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from ruleop.errors import RuleError, Site
from ruleop.templating.tree.yaml_reader import MAX_DEPTH, MAX_NODES, MOST_SHOWN, NotJson, YamlNode, repeated_key, resolve_scalar

if TYPE_CHECKING:
    from collections.abc import Callable

_BLANKS = re.compile(r"[ \t\r\n]*+")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?[0-9]++)?+")
_HALF = re.compile("[\ud800-\udfff]")
_WORDS = {"true": True, "false": False, "null": None}
_WORD = re.compile("true|false|null")


class NotJsonText(Exception):  # noqa: N818 - says what the text is
    """At this place the text is not JSON. Perhaps it is YAML."""

    def __init__(self, site: Site) -> None:
        super().__init__(str(site))
        self.site = site


class _StopError(Exception):
    """Reading ends here: the mistake is recorded."""


def read_json(text: str, start: int, end: int, locate: Callable[[int, int], Site]) -> tuple[list[YamlNode], list[RuleError]]:
    """The values in a part of a text, one after the other, and the mistakes in them. Raises NotJsonText."""
    reader = _Reader(text, end, locate)
    found: list[YamlNode] = []
    at = reader.blanks(start)
    try:
        while at < end:
            node, at = reader.value(at, 1)
            found.append(node)
            at = reader.blanks(at)
    except _StopError:
        pass
    return found, reader.mistakes


class _Reader:
    def __init__(self, text: str, end: int, locate: Callable[[int, int], Site]) -> None:
        self.text, self.end, self.locate = text, end, locate
        self.lines = [0, *(match.end() for match in re.finditer("\n", text))]  # where each begins
        self.mistakes: list[RuleError] = []
        self.count = 0

    def stop(self, message: str, at: int) -> _StopError:
        self.mistakes.append(RuleError(message, self.site(at)))
        return _StopError()

    def site(self, at: int) -> Site:
        line = bisect_right(self.lines, at)
        return self.locate(line, at - self.lines[line - 1] + 1)

    def blanks(self, at: int) -> int:
        match = _BLANKS.match(self.text, at, self.end)
        assert match is not None
        return match.end()

    def value(self, at: int, depth: int) -> tuple[YamlNode, int]:
        self.count += 1
        sign = self.text[at : at + 1]
        if self.count > MAX_NODES:
            raise self.stop(f"more than {MAX_NODES:,} values", at)
        if sign in ("{", "[") and depth > MAX_DEPTH:
            raise self.stop(f"nested deeper than {MAX_DEPTH} levels", at)
        if sign == "{":
            return self.mapping(at, depth)
        if sign == "[":
            return self.items(at, depth)
        if sign == '"':
            text, end = self.string(at)
            return YamlNode(text, self.site(at)), end
        return self.scalar(at)

    def mapping(self, start: int, depth: int) -> tuple[YamlNode, int]:
        members: dict[str, YamlNode] = {}
        key_sites: dict[str, Site] = {}
        at = self.blanks(start + 1)
        more = self.text[at : at + 1] != "}"
        while more:
            site = self.site(at)
            key, at = self.string(at)
            node, at = self.value(self.blanks(self.sign(at, ":")), depth + 1)
            if key in members:
                self.mistakes.append(RuleError(repeated_key(key, key_sites[key], site), site))
            else:
                members[key], key_sites[key] = node, site
            at = self.blanks(at)
            if more := self.text[at : at + 1] == ",":
                at = self.blanks(at + 1)
        return YamlNode(members, self.site(start), key_sites, flow=True), self.sign(at, "}")

    def items(self, start: int, depth: int) -> tuple[YamlNode, int]:
        found: list[YamlNode] = []
        at = self.blanks(start + 1)
        more = self.text[at : at + 1] != "]"
        while more:
            node, at = self.value(at, depth + 1)
            found.append(node)
            at = self.blanks(at)
            if more := self.text[at : at + 1] == ",":
                at = self.blanks(at + 1)
        return YamlNode(found, self.site(start), flow=True), self.sign(at, "]")

    def sign(self, at: int, sign: str) -> int:
        """The place behind a sign that must stand here."""
        at = self.blanks(at)
        if at >= self.end or self.text[at] != sign:
            raise NotJsonText(self.site(at))
        return at + 1

    def string(self, at: int) -> tuple[str, int]:
        match = _STRING.match(self.text, at, self.end)
        if match is None:
            raise NotJsonText(self.site(at))
        text: str = json.loads(match[0])
        if _HALF.search(text):
            self.mistakes.append(RuleError("half of a surrogate pair in this text: only both together are a character", self.site(at)))
        return text, match.end()

    def scalar(self, at: int) -> tuple[YamlNode, int]:
        value: Any
        if match := _WORD.match(self.text, at, self.end):
            value = _WORDS[match[0]]
        elif match := _NUMBER.match(self.text, at, self.end):
            try:
                value = resolve_scalar(match[0])
            except NotJson:
                shown = match[0] if len(match[0]) <= MOST_SHOWN else f"{match[0][:MOST_SHOWN]}..."
                self.mistakes.append(RuleError(f"{shown} is a number that JSON cannot hold", self.site(at)))
                value = None
        else:
            raise NotJsonText(self.site(at))
        return YamlNode(value, self.site(at), plain=True), match.end()
