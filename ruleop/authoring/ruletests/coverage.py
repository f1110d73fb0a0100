"""The lines and branches of the rules that were exercised.

A probe changes the parsed templates before they are compiled: each block of lines begins with a call that counts, and
so does each condition with its outcome. Without a probe templates are compiled as always, so the operator pays nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from jinja2 import nodes

from ruleop.core.errors import Site
from ruleop.core.templating import UndefinedValue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.rules import Project
    from ruleop.core.templating import Expression

_BLOCK: Final = " block"  # names of filters, which templates cannot write because of the space
_BRANCH: Final = " branch"

Key = tuple[str, int, int]  # path, line, number among those of the same template or string


@dataclass(frozen=True, slots=True)
class Branch:
    """A condition, and how often it was true and false."""

    path: str
    line: int
    column: int
    what: str  # if, inline if, when, waitFor, validate, ...
    true: int
    false: int

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(word for word, count in (("true", self.true), ("false", self.false)) if not count)


@dataclass(frozen=True, slots=True)
class FileCoverage:
    path: str
    lines: dict[int, int]  # line -> how often it was rendered
    branches: tuple[Branch, ...]

    @property
    def covered(self) -> int:
        return sum(1 for count in self.lines.values() if count)

    @property
    def outcomes(self) -> tuple[int, int]:
        """The number of outcomes of conditions that were exercised, and of all."""
        return sum(2 - len(each.missing) for each in self.branches), 2 * len(self.branches)


@dataclass(slots=True)
class Probe:
    """The exercised lines and branches of all projects that were loaded with the probe."""

    blocks: dict[Key, tuple[int, ...]] = field(default_factory=dict)  # the lines of each block
    conditions: dict[Key, str] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)  # templates that were rendered since this was cleared
    hits: Counter[Key] = field(default_factory=Counter)
    true: Counter[Key] = field(default_factory=Counter)
    false: Counter[Key] = field(default_factory=Counter)

    @property
    def filters(self) -> dict[str, Any]:
        """The functions that instrumented templates call."""
        return {_BLOCK: self._count_block, _BRANCH: self._count_branch}

    def _count_block(self, _value: Any, *key: Any) -> None:
        self.hits[key] += 1
        self.touched.add(key[0])

    def _count_branch(self, value: Any, *key: Any) -> Any:
        if isinstance(value, UndefinedValue):
            self.false[key] += 1
        else:
            (self.true if value else self.false)[key] += 1
        return value

    def instrument(self, tree: nodes.Template, where: str | Site) -> None:
        """Changes the tree of a template file, or of a string of watches.yaml."""
        if isinstance(where, str):
            _Instrumenter(self, where).block(tree.body, 1)
        else:
            _Instrumenter(self, where.path, where).string(tree)

    def files(self, project: Project) -> list[FileCoverage]:
        """The coverage of each template, and of the strings and expressions in files of watches."""
        lines: dict[str, dict[int, int]] = {f"templates/{name}": {} for name in project.templates}
        for key, numbers in self.blocks.items():
            for line in numbers:
                found = lines.setdefault(key[0], {})
                found[line] = found.get(line, 0) + self.hits[key]
        branches: dict[str, list[Branch]] = {}
        named = {expression.site: what for expression, what in _expressions(project)}
        for key, what in sorted(self.conditions.items()):
            path, line, number = key
            branch = Branch(path, line, 0, what, self.true[key], self.false[key])
            if what == "":  # the whole of an expression: its site has a column
                site = Site(path, line, number)
                if site not in named:
                    continue
                branch = Branch(path, line, number, named[site], self.true[key], self.false[key])
            branches.setdefault(path, []).append(branch)
        return [
            FileCoverage(path, lines.get(path, {}), tuple(branches.get(path, ())))
            for path in sorted({*lines, *branches})
        ]


def _expressions(project: Project) -> Iterator[tuple[Expression, str]]:
    """The expressions of watches.yaml whose both outcomes are to be exercised."""
    for rule in project.rules:
        for child in rule.every_child():
            for expression, what in (
                (child.when, "when"),
                (child.wait_for, "waitFor"),
                (child.ready_when, "readyWhen"),
            ):
                if expression is not None:
                    yield expression, what
        for validation in rule.validate:
            yield validation.rule, "validate"
        for condition in rule.conditions:
            yield condition.status, f"condition {condition.type}"


@dataclass(slots=True)
class _Instrumenter:
    """Changes one tree. Conditions of a string have the string's line."""

    probe: Probe
    path: str
    site: Site | None = None
    number: int = 0

    def _key(self, line: int) -> Key:
        self.number += 1
        return (self.path, self.site.line if self.site else line, 1000 + self.number)

    def block(self, body: list[nodes.Node], line: int) -> None:
        """Counts a list of statements that are rendered together."""
        lines: set[int] = set()
        for node in body:
            self._statement(node, lines)
        if self.site is None and lines:
            key = self._key(line)
            self.probe.blocks[key] = tuple(sorted(lines))
            body.insert(0, nodes.ExprStmt(_call(nodes.Const(None), _BLOCK, key), lineno=line))

    def string(self, tree: nodes.Template) -> None:
        """Counts a string, the conditions in it, and the outcome of one that is a single expression."""
        self.block(tree.body, 0)
        assert self.site is not None
        key = (self.path, self.site.line, self.site.column)
        outputs = [node for node in tree.body if isinstance(node, nodes.Output)]
        self.probe.blocks[key] = (self.site.line,)
        tree.body.insert(0, nodes.ExprStmt(_call(nodes.Const(None), _BLOCK, key), lineno=1))
        if len(outputs) != 1 or len(outputs[0].nodes) != 1 or isinstance(outputs[0].nodes[0], nodes.TemplateData):
            return
        self.probe.conditions[key] = ""
        only = outputs[0].nodes[0]
        outputs[0].nodes[0] = _call(only, _BRANCH, key)
        outputs[0].nodes[0].place = only.place  # type: ignore[attr-defined]

    def _statement(self, node: nodes.Node, lines: set[int]) -> None:
        if isinstance(node, nodes.Output):
            for child in node.nodes:
                if isinstance(child, nodes.TemplateData):
                    texts = child.data.split("\n")
                    lines.update(child.lineno + at for at, text in enumerate(texts) if text.strip())
                else:
                    lines.add(_line(child))
                    self._inline(child)
            return
        lines.add(node.lineno)
        if isinstance(node, nodes.If):
            self._if(node)
        elif isinstance(node, nodes.For):
            self._inline(node.iter)
            self.block(node.body, node.lineno)
            self.block(node.else_, node.lineno)
        elif isinstance(node, (nodes.Macro, nodes.Block)):
            self.block(node.body, node.lineno)
        else:
            inner = getattr(node, "body", None)
            for each in inner if isinstance(inner, list) else ():
                self._statement(each, lines)
            for each in node.iter_child_nodes():
                if isinstance(each, nodes.Expr):
                    self._inline(each)

    def _if(self, node: nodes.If) -> None:
        for each in (node, *node.elif_):
            assert isinstance(each, nodes.If)
            self._inline(each.test)
            each.test = self._condition(each.test, each.lineno, "if" if each is node else "elif")
            self.block(each.body, each.lineno)
        self.block(node.else_, node.lineno)

    def _inline(self, node: nodes.Node) -> None:
        """Counts `a if b else c` anywhere in an expression."""
        for each in [node, *node.find_all(nodes.CondExpr)]:
            if isinstance(each, nodes.CondExpr):
                each.test = self._condition(each.test, _line(node), "inline if")

    def _condition(self, test: nodes.Node, line: int, what: str) -> nodes.Expr:
        key = self._key(line)
        self.probe.conditions[key] = what
        return _call(test, _BRANCH, key)


def _line(node: nodes.Node) -> int:
    place = getattr(node, "place", None)
    return place.site.line if place is not None else node.lineno


def _call(value: nodes.Node, name: str, key: Key) -> nodes.Filter:
    arguments: list[nodes.Expr] = [nodes.Const(part) for part in key]
    return nodes.Filter(value, name, arguments, [], None, None, lineno=value.lineno or 1)
