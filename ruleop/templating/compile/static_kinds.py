"""Which kinds a template can render, found in its plain text. The engine watches them, and a role is written for them, before anything is
rendered.

`apiVersion` and `kind` are looked for at the outermost level of each document, whatever branch they stand in. A file that is included or
imported counts like the text itself. What a render gives is checked against this set.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jinja2 import nodes

from ruleop.errors import RuleError, Site
from ruleop.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

SLOT = "\ufdd0"
_FIELD = re.compile(r"(apiVersion|kind)[ ]*:[ ]*(.*?)[ ]*(?:#.*)?\Z")
_FLOW = re.compile(r"[{,][ ]*(apiVersion|kind)[ ]*:[ ]*([^,}\s]*)")
_VALUE = re.compile(r"""(["']?)([A-Za-z0-9./-]+)\1\Z""")


def kinds_in(files: Iterable[tuple[nodes.Template, str]], mistakes: list[RuleError]) -> tuple[frozenset[Kind], int]:
    """The kinds, and how many documents the first file's source holds."""
    kinds: set[Kind] = set()
    documents = 1
    loose: dict[str, list[str]] = {"apiVersion": [], "kind": []}
    for number, (tree, path) in enumerate(files):
        found: dict[str, list[str]] = {"apiVersion": [], "kind": []}
        separators = 0
        for line, text in lines(tree):
            if text.startswith("---"):
                separators += 1
                _pair(found, kinds, loose)
                found = {"apiVersion": [], "kind": []}
                continue
            for key, value in _fields(text):
                if SLOT in value:
                    mistakes.append(
                        RuleError(f"{key} must be plain text, so that ruleop knows before it starts what to watch", Site(path, line))
                    )
                elif match := _VALUE.match(value):
                    found[key].append(match[2])
        _pair(found, kinds, loose)
        if number == 0 and (separators := separators - _begins_with_a_mark(tree)):
            documents = separators + 1
    if loose["apiVersion"] and loose["kind"]:
        kinds.update(Kind.parse(version, kind) for version in loose["apiVersion"] for kind in loose["kind"])
    if any(kind.kind == "List" for kind in kinds):
        mistakes.append(RuleError("`kind: List` is refused: write its items as documents, with --- between them", Site(path, 1)))
    return frozenset(kinds), documents


_SILENT = (nodes.Import, nodes.FromImport, nodes.Assign, nodes.AssignBlock, nodes.Macro)


def _begins_with_a_mark(tree: nodes.Template) -> bool:
    """A `---` before the first document separates nothing, as long as no loop repeats it."""
    for node in tree.body:
        if isinstance(node, _SILENT):
            continue
        first = node.nodes[0] if isinstance(node, nodes.Output) and node.nodes else None
        text = first.data.lstrip() if isinstance(first, nodes.TemplateData) else ""
        if text or not isinstance(node, nodes.Output):
            return text.startswith("---")
    return False


def _pair(found: dict[str, list[str]], kinds: set[Kind], loose: dict[str, list[str]]) -> None:
    """Both in one document belong together; in branches, each version may go with each kind unless they come in pairs."""
    versions, names = found["apiVersion"], found["kind"]
    if len(versions) == len(names):
        kinds.update(Kind.parse(version, name) for version, name in zip(versions, names, strict=True))
    elif versions and names:
        kinds.update(Kind.parse(version, name) for version in versions for name in names)
    else:
        loose["apiVersion"].extend(versions)
        loose["kind"].extend(names)


def _fields(text: str) -> Iterable[tuple[str, str]]:
    if match := _FIELD.match(text):
        yield match[1], match[2]
    elif text.startswith("{"):
        depth_one = re.sub(r"(?<=.)\{[^{}]*\}", "", text)
        for match in _FLOW.finditer(depth_one):
            yield match[1], match[2].strip("\"'") if SLOT not in match[2] else match[2]


def lines(tree: nodes.Template, *, captured: bool = True) -> list[tuple[int, str]]:
    """The template's own text, line by line, with a mark for each slot. Where branches meet in one line there is a line for each.
    `captured`: also that of macros and the like, wherever it comes to stand."""
    reader = _LineReader(captured)
    for line, text in reader.walk(tree.body, [(1, "")]):
        reader.lines.append((line, text))
    return reader.lines


_Open = list[tuple[int, str]]
"""The beginnings that the line at hand may have, each with its line number."""


class _LineReader:
    MAX_BRANCHES = 16

    def __init__(self, captured: bool) -> None:
        self.captured = captured
        self.lines: list[tuple[int, str]] = []

    def walk(self, body: Iterable[nodes.Node], begun: _Open) -> _Open:
        for node in body:
            begun = self.node(node, begun)[: self.MAX_BRANCHES]
        return begun

    def node(self, node: nodes.Node, begun: _Open) -> _Open:
        if isinstance(node, nodes.Output):
            for child in node.nodes:
                begun = self.text(child, begun) if isinstance(child, nodes.TemplateData) else self.mark(child, begun)
            return begun
        if isinstance(node, nodes.If):
            branches = [node.body, *(branch.body for branch in node.elif_), node.else_]
            return list(dict.fromkeys(end for branch in branches for end in self.walk(branch, begun)))
        if isinstance(node, nodes.For):
            return list(dict.fromkeys([*self.walk(node.body, begun), *self.walk(node.else_, begun)]))
        if isinstance(node, (nodes.Macro, nodes.AssignBlock, nodes.CallBlock)):
            if self.captured:
                self.lines.extend(self.walk(node.body, [(node.lineno, "")]))
            return self.mark(node, begun) if isinstance(node, nodes.CallBlock) else begun
        if isinstance(node, nodes.Include):
            return self.mark(node, begun)
        return self.walk(getattr(node, "body", ()), begun)

    @staticmethod
    def mark(node: nodes.Node, begun: _Open) -> _Open:
        return [(line if text else node.lineno, text + SLOT) for line, text in begun]

    def text(self, node: nodes.TemplateData, begun: _Open) -> _Open:
        first, *rest = node.data.split("\n")
        begun = [(line if text else node.lineno, text + first) for line, text in begun]
        if not rest:
            return begun
        self.lines.extend(begun)
        number = node.lineno + 1
        for piece in rest[:-1]:
            self.lines.append((number, piece))
            number += 1
        return [(number, rest[-1])]
