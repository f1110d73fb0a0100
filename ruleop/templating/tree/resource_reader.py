"""Reads files of objects as kubectl does: custom resources, definitions, what a cluster holds.

Tools write these files, so JSON is read as JSON, and anchors, aliases and merge keys are followed. All else is as strict as in the rules:
nothing is read that could be read in two ways."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ruleop.errors import RuleError, Site
from ruleop.templating.tree.anchors import Anchors
from ruleop.templating.tree.json_reader import NotJsonText, read_json
from ruleop.templating.tree.yaml_reader import MAX_DEPTH, read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.templating.tree.yaml_reader import YamlNode

_SEPARATOR = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_LOOKS_LIKE_JSON = re.compile(r"(?:---)?(?:[ \t\r\n]++|#[^\n]*+)*+(?=[{\[])")  # comments may stand before it


def read_resources(text: str, path: str) -> tuple[list[YamlNode], list[RuleError]]:
    """The documents of a text, each JSON or YAML, empty ones left out; and the mistakes in it."""
    anchors = Anchors(max_depth=MAX_DEPTH)  # its bounds are those of the file
    parts = list(_parts(text))
    if not any(_LOOKS_LIKE_JSON.match(text, start, end) for start, end in parts):
        return read_yaml(text, path, anchors=anchors)
    documents: list[YamlNode] = []
    mistakes: list[RuleError] = []
    for start, end in parts:
        found, wrong = _part(text, path, start, end, anchors)
        documents += found
        mistakes += wrong
    return documents, mistakes


def _parts(text: str) -> Iterator[tuple[int, int]]:
    """Where each document begins and ends. In neither language does a line of a value begin with the separator."""
    starts = [0, *(match.start() for match in _SEPARATOR.finditer(text))]
    yield from zip(starts, [*starts[1:], len(text)], strict=True)


def _part(text: str, path: str, start: int, end: int, anchors: Anchors) -> tuple[list[YamlNode], list[RuleError]]:
    above = text.count("\n", 0, start)

    def as_yaml() -> tuple[list[YamlNode], list[RuleError]]:
        return read_yaml(text[start:end], path, locate=lambda line, column: Site(path, line + above, column), anchors=anchors)

    like_json = _LOOKS_LIKE_JSON.match(text, start, end)
    if like_json is None:
        return as_yaml()
    try:
        return read_json(text, like_json.end(), end, lambda line, column: Site(path, line, column))
    except NotJsonText as error:
        documents, mistakes = as_yaml()  # {a: b} is YAML, and no mistake
        first = mistakes[0].site if mistakes else None
        if first is not None and (first.line, first.column) < (error.site.line, error.site.column):
            # It is JSON as far as the one reader came, and YAML not even so far.
            message = "not JSON: a value, a comma, a colon or a bracket is missing or too many here, or a text is not closed"
            return documents, [RuleError(message, error.site)]
        return documents, mistakes
