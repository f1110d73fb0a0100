"""Reads files of objects as kubectl does: custom resources, CRDs, objects of a cluster.

Tools write these files, so JSON is read as JSON, and anchors, aliases and merge keys are supported. Everything else is
as strict as in the rules: ambiguous YAML is an error.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from ruleop.core.errors import RuleError, Site
from ruleop.core.templating.tree.anchors import Anchors
from ruleop.core.templating.tree.json_reader import NotJsonText, line_starts, read_json
from ruleop.core.templating.tree.yaml_reader import MAX_DEPTH, read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.templating.tree.yaml_node import YamlNode

_SEPARATOR = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_LOOKS_LIKE_JSON = re.compile(r"(?:---)?(?:[ \t\r\n]++|#[^\n]*+)*+(?=[{\[])")  # comments may precede it


def read_resources(text: str, path: str) -> tuple[list[YamlNode], list[RuleError]]:
    """The documents of a text, each JSON or YAML, without empty ones; and the mistakes in it."""
    anchors = Anchors(max_depth=MAX_DEPTH)  # the bounds apply to the whole file
    parts = list(_parts(text))
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


def _parts(text: str) -> Iterator[tuple[int, int]]:
    """The start and end of each document. No line of a value starts with the separator in JSON or YAML."""
    starts = [0, *(match.start() for match in _SEPARATOR.finditer(text))]
    yield from zip(starts, [*starts[1:], len(text)], strict=True)


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
