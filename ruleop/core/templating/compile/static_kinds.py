"""The kinds that a template can render, from its plain text: they are watched, and roles are generated for them, before
rendering.

`apiVersion` and `kind` are searched at the outermost level of each document, in all branches. Included and imported
files count like the text itself. Rendered objects are checked against this set.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jinja2 import nodes

from ruleop.core.errors import RuleError, Site
from ruleop.core.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

SLOT = "\ufdd0"
_FIELD = re.compile(r"(apiVersion|kind)[ ]*:([^#\n]*)(?:#.*)?\Z")
_FLOW = re.compile(r"[{,][ ]*(apiVersion|kind)[ ]*:[ ]*([^,}\s]*)")
_VALUE = re.compile(r"""(["']?)([A-Za-z0-9./-]+)\1\Z""")


def kinds_in(files: Iterable[tuple[nodes.Template, str]], mistakes: list[RuleError]) -> tuple[frozenset[Kind], int]:
    """The kinds, and the number of documents in the source of the first file."""
    kinds: set[Kind] = set()
    documents = 1
    unpaired: dict[str, list[str]] = {"apiVersion": [], "kind": []}
    for number, (tree, path) in enumerate(files):
        found: dict[str, list[str]] = {"apiVersion": [], "kind": []}
        separators = 0
        for line, text in lines(tree):
            if text.startswith("---"):
                separators += 1
                _combine(found, kinds, unpaired)
                found = {"apiVersion": [], "kind": []}
                continue
            for key, value in _fields(text):
                if SLOT in value:
                    mistakes.append(
                        RuleError(
                            f"{key} must be plain text, so that ruleop knows what to watch before it renders",
                            Site(path, line),
                        )
                    )
                elif match := _VALUE.match(value):
                    found[key].append(match[2])
        _combine(found, kinds, unpaired)
        if number == 0 and (separators := separators - _starts_with_separator(tree)):
            documents = separators + 1
    if unpaired["apiVersion"] and unpaired["kind"]:
        kinds.update(Kind.parse(version, kind) for version in unpaired["apiVersion"] for kind in unpaired["kind"])
    if any(kind.kind == "List" for kind in kinds):
        mistakes.append(
            RuleError("`kind: List` is not supported: write its items as documents, separated by ---", Site(path, 1))
        )
    return frozenset(kinds), documents


_SILENT = (nodes.Import, nodes.FromImport, nodes.Assign, nodes.AssignBlock, nodes.Macro)


def _starts_with_separator(tree: nodes.Template) -> bool:
    """Whether a `---` precedes the first document, outside of a loop: it separates nothing."""
    for node in tree.body:
        if isinstance(node, _SILENT):
            continue
        first = node.nodes[0] if isinstance(node, nodes.Output) and node.nodes else None
        text = first.data.lstrip() if isinstance(first, nodes.TemplateData) else ""
        if text or not isinstance(node, nodes.Output):
            return text.startswith("---")
    return False


def _combine(found: dict[str, list[str]], kinds: set[Kind], unpaired: dict[str, list[str]]) -> None:
    """Combines the versions and kinds of a document. In branches, every version is combined with every kind unless
    there are as many of both."""
    versions, names = found["apiVersion"], found["kind"]
    if len(versions) == len(names):
        kinds.update(Kind.parse(version, name) for version, name in zip(versions, names, strict=True))
    elif versions and names:
        kinds.update(Kind.parse(version, name) for version in versions for name in names)
    else:
        unpaired["apiVersion"].extend(versions)
        unpaired["kind"].extend(names)


def _fields(text: str) -> Iterable[tuple[str, str]]:
    if match := _FIELD.match(text):
        yield match[1], match[2].strip(" ")
    elif text.startswith("{"):
        depth_one = re.sub(r"(?<=.)\{[^{}]*\}", "", text)
        for match in _FLOW.finditer(depth_one):
            yield match[1], match[2].strip("\"'") if SLOT not in match[2] else match[2]


def lines(tree: nodes.Template, *, captured: bool = True) -> list[tuple[int, str]]:
    """The literal text of the template by line, with a mark for each slot. A line in which branches join is returned
    once per branch. `captured`: include the text of macros and other captured blocks."""
    reader = _LineReader(captured)
    for line, text in reader.walk(tree.body, [(1, "")]):
        reader.lines.append((line, text))
    return reader.lines


_Open = list[tuple[int, str]]
"""The possible starts of the current line, each with its line number."""


class _LineReader:
    MAX_BRANCHES = 16

    def __init__(self, captured: bool) -> None:
        self.captured = captured
        self.lines: list[tuple[int, str]] = []

    def walk(self, body: Iterable[nodes.Node], starts: _Open) -> _Open:
        for node in body:
            starts = self.node(node, starts)[: self.MAX_BRANCHES]
        return starts

    def node(self, node: nodes.Node, starts: _Open) -> _Open:
        if isinstance(node, nodes.Output):
            for child in node.nodes:
                starts = (
                    self.text(child, starts) if isinstance(child, nodes.TemplateData) else self.add_mark(child, starts)
                )
            return starts
        if isinstance(node, nodes.If):
            branches = [node.body, *(branch.body for branch in node.elif_), node.else_]
            return list(dict.fromkeys(end for branch in branches for end in self.walk(branch, starts)))
        if isinstance(node, nodes.For):
            return list(dict.fromkeys([*self.walk(node.body, starts), *self.walk(node.else_, starts)]))
        if isinstance(node, (nodes.Macro, nodes.AssignBlock, nodes.CallBlock)):
            if self.captured:
                self.lines.extend(self.walk(node.body, [(node.lineno, "")]))
            return self.add_mark(node, starts) if isinstance(node, nodes.CallBlock) else starts
        if isinstance(node, nodes.Include):
            return self.add_mark(node, starts)
        return self.walk(getattr(node, "body", ()), starts)

    @staticmethod
    def add_mark(node: nodes.Node, starts: _Open) -> _Open:
        return [(line if text else node.lineno, text + SLOT) for line, text in starts]

    def text(self, node: nodes.TemplateData, starts: _Open) -> _Open:
        first, *rest = node.data.split("\n")
        starts = [(line if text else node.lineno, text + first) for line, text in starts]
        if not rest:
            return starts
        self.lines.extend(starts)
        number = node.lineno + 1
        for piece in rest[:-1]:
            self.lines.append((number, piece))
            number += 1
        return [(number, rest[-1])]
