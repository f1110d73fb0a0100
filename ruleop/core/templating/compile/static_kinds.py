"""The kinds that a template can render, from its plain text: they are watched, and roles are generated for them, before
rendering.

`apiVersion` and `kind` are searched at the outermost level of each document, in all branches. A conditional expression
whose results are literals counts as branches, too: `kind: {{ 'Role' if spec.local else 'ClusterRole' }}`. Included and
imported files count like the text itself. Rendered objects are checked against this set.

In the template of a status, the names of the outermost fields must be plain text: a field that the rules stop setting
is removed, and its name must be known for that. The output of macros and includes is not checked: it may be below a
field.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from jinja2 import nodes

from ruleop.core.errors import RuleError, Site
from ruleop.core.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

SLOT = "\ufdd0"
_FIELD = re.compile(r"(apiVersion|kind)[ ]*:([^#\n]*)(?:#.*)?\Z")
_FLOW = re.compile(r"[{,][ ]*(apiVersion|kind)[ ]*:[ ]*([^,}\s]*)")
_VALUE = re.compile(r"""(["']?)([A-Za-z0-9./-]+)\1\Z""")
_BEFORE_VALUE = re.compile(r"""(?:\{(?:.*,)?[ ]*)?(?:apiVersion|kind)[ ]*:[ ]*["']?[A-Za-z0-9./-]*\Z""")
_LITERAL = re.compile(r"[A-Za-z][A-Za-z0-9./-]*")  # text that YAML reads as a string

PLAIN_TEXT = (
    "{} must be plain text, so that ruleop knows what to watch before it renders, or a choice of literals such as "
    "`{{{{ 'A' if spec.x else 'B' }}}}`"
)

Taken: TypeAlias = frozenset[tuple[str, int]]
"""The branches around a line or in it, by their conditions: equal conditions have the same outcome."""
_Found: TypeAlias = dict[str, list[tuple[str, Taken]]]
"""The values of `apiVersion` and `kind` of one document."""


class Line(NamedTuple):
    number: int
    text: str
    taken: Taken


def unfold_choices(tree: nodes.Template) -> None:
    """Makes an `if` of each conditional expression that chooses a literal for `apiVersion` or `kind`."""
    for parent in [tree, *tree.find_all((nodes.If, nodes.For, nodes.Macro, nodes.AssignBlock, nodes.CallBlock))]:
        for name in ("body", "else_"):
            if body := getattr(parent, name, None):
                body[:] = [each for node in body for each in _unfolded(node)]
    assert tree.environment is not None
    tree.set_environment(tree.environment)


def _unfolded(node: nodes.Node) -> Iterable[nodes.Node]:
    if not isinstance(node, nodes.Output):
        yield node
        return
    before = ""
    kept: list[nodes.Expr] = []
    for child in node.nodes:
        if isinstance(child, nodes.TemplateData):
            before = (before + child.data).rpartition("\n")[2]
        elif _BEFORE_VALUE.match(before) and _is_choice(child):
            yield nodes.Output(kept, lineno=node.lineno)
            yield _choice(child)
            before, kept = before + "x", []
            continue
        else:
            before += SLOT
        kept.append(child)
    yield nodes.Output(kept, lineno=node.lineno)


def _is_choice(node: nodes.Node | None) -> bool:
    if isinstance(node, nodes.CondExpr):
        return _is_choice(node.expr1) and _is_choice(node.expr2)
    return isinstance(node, nodes.Const) and isinstance(node.value, str) and _LITERAL.fullmatch(node.value) is not None


def _choice(node: nodes.Node) -> nodes.Node:
    if isinstance(node, nodes.CondExpr):
        assert node.expr2 is not None
        return nodes.If(node.test, [_choice(node.expr1)], [], [_choice(node.expr2)], lineno=node.lineno)
    assert isinstance(node, nodes.Const)
    return nodes.Output([nodes.TemplateData(node.value, lineno=node.lineno)], lineno=node.lineno)


def kinds_in(files: Iterable[tuple[nodes.Template, str]], mistakes: list[RuleError]) -> tuple[frozenset[Kind], int]:
    """The kinds, and the number of documents in the source of the first file."""
    kinds: set[Kind] = set()
    documents = 1
    unpaired: dict[str, list[str]] = {"apiVersion": [], "kind": []}
    for number, (tree, path) in enumerate(files):
        found: _Found = {"apiVersion": [], "kind": []}
        separators = 0
        for line, text, taken in lines(tree):
            if text.startswith("---"):
                separators += 1
                _combine(found, kinds, unpaired)
                found = {"apiVersion": [], "kind": []}
                continue
            for key, value in _fields(text):
                if SLOT in value:
                    mistakes.append(RuleError(PLAIN_TEXT.format(key), Site(path, line)))
                elif match := _VALUE.match(value):
                    found[key].append((match[2], taken))
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


def _combine(found: _Found, kinds: set[Kind], unpaired: dict[str, list[str]]) -> None:
    """Combines the versions and kinds of a document, unless they are in branches that exclude each other."""
    versions, names = found["apiVersion"], found["kind"]
    kinds.update(
        Kind.parse(version, name) for version, one in versions for name, two in names if _may_be_together(one, two)
    )
    if not versions or not names:
        unpaired["apiVersion"].extend(version for version, _ in versions)
        unpaired["kind"].extend(name for name, _ in names)


def _may_be_together(one: Taken, two: Taken) -> bool:
    branches = dict(one)
    return all(branches.get(condition, branch) == branch for condition, branch in two)


def _fields(text: str) -> Iterable[tuple[str, str]]:
    if match := _FIELD.match(text):
        yield match[1], match[2].strip(" ")
    elif text.startswith("{"):
        depth_one = re.sub(r"(?<=.)\{[^{}]*\}", "", text)
        for match in _FLOW.finditer(depth_one):
            yield match[1], match[2].strip("\"'") if SLOT not in match[2] else match[2]


def lines(tree: nodes.Template, *, captured: bool = True) -> list[Line]:
    """The literal text of the template by line, with a mark for each slot. A line in which branches join is returned
    once per branch. `captured`: include the text of macros and other captured blocks."""
    reader = _LineReader(captured)
    reader.lines.extend(reader.walk(tree.body, [Line(1, "", frozenset())]))
    return reader.lines


_CAPTURED = ""
"""The condition of captured text: that of different blocks is not together in one document."""


class _LineReader:
    MAX_BRANCHES = 16

    def __init__(self, captured: bool) -> None:
        self.captured = captured
        self.lines: list[Line] = []
        self.taken: Taken = frozenset()

    def walk(self, body: Iterable[nodes.Node], starts: list[Line]) -> list[Line]:
        """`starts`: the possible starts of the current line."""
        for node in body:
            starts = self.node(node, starts)[: self.MAX_BRANCHES]
        return starts

    def node(self, node: nodes.Node, starts: list[Line]) -> list[Line]:
        if isinstance(node, nodes.Output):
            for child in node.nodes:
                starts = (
                    self.text(child, starts) if isinstance(child, nodes.TemplateData) else self.add_mark(child, starts)
                )
            return starts
        if isinstance(node, nodes.If):
            conditions = repr([node.test, *(branch.test for branch in node.elif_)])
            return self.branches(conditions, [node.body, *(each.body for each in node.elif_), node.else_], starts)
        if isinstance(node, nodes.For):
            return self.branches(repr(node.iter), [node.body, node.else_], starts)
        if isinstance(node, (nodes.Macro, nodes.AssignBlock, nodes.CallBlock)):
            if self.captured:
                outer, self.taken = self.taken, frozenset({(_CAPTURED, node.lineno)})
                self.lines.extend(self.walk(node.body, [Line(node.lineno, "", self.taken)]))
                self.taken = outer
            return self.add_mark(node, starts) if isinstance(node, nodes.CallBlock) else starts
        if isinstance(node, nodes.Include):
            return self.add_mark(node, starts)
        return self.walk(getattr(node, "body", ()), starts)

    def branches(self, conditions: str, bodies: list[list[nodes.Node]], starts: list[Line]) -> list[Line]:
        outer, ends = self.taken, []
        for number, body in enumerate(bodies):
            own = frozenset({(conditions, number)})
            self.taken = outer | own
            begun = [each._replace(taken=each.taken | own) for each in starts if _may_be_together(each.taken, own)]
            ends += self.walk(body, begun)
        self.taken = outer
        return list(dict.fromkeys(end if end.text else end._replace(taken=outer) for end in ends))

    @staticmethod
    def add_mark(node: nodes.Node, starts: list[Line]) -> list[Line]:
        return [Line(line if text else node.lineno, text + SLOT, taken) for line, text, taken in starts]

    def text(self, node: nodes.TemplateData, starts: list[Line]) -> list[Line]:
        first, *rest = node.data.split("\n")
        starts = [Line(line if text else node.lineno, text + first, taken) for line, text, taken in starts]
        if not rest:
            return starts
        self.lines.extend(starts)
        number = node.lineno + 1
        for piece in rest[:-1]:
            self.lines.append(Line(number, piece, self.taken))
            number += 1
        return [Line(number, rest[-1], self.taken)]


COMPUTED = (
    "a field of the status has a computed name, so ruleop could not remove it later: "
    "put it below a field with a fixed name"
)
_KEY = re.compile(r"[^\s#\-\[{|>][^:]*:(?: |\Z)")


def computed_fields(tree: nodes.Template, path: str, local: frozenset[str]) -> list[RuleError]:
    """The mistakes. `local` are the names that the template sets, which may be captured text."""
    found: dict[int, RuleError] = {}
    spread = {node.lineno for output in tree.find_all(nodes.Output) for node in output.nodes if _is_data(node, local)}
    for line, text, _ in lines(tree, captured=False):
        key = _KEY.match(text)
        if SLOT in key[0] if key else text.rstrip() == SLOT and line in spread:
            found[line] = RuleError(COMPUTED, Site(path, line))
    return list(found.values())


def _is_data(node: nodes.Node | None, local: frozenset[str]) -> bool:
    while isinstance(node, (nodes.Filter, nodes.Getattr, nodes.Getitem)):
        node = node.node
    return isinstance(node, nodes.Dict) or (isinstance(node, nodes.Name) and node.name not in local)
