"""The lines and branches of the rules that were exercised.

A probe counts the evaluations of each list of statements, and changes the parsed templates so that each condition
passes its outcome on. Without a probe nothing is counted, so the operator pays nothing.

Coverage is shown as a table, as an HTML page, and as lcov for editors and services.
"""

from __future__ import annotations

import html
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from jinja2 import nodes

from ruleop.authoring.report.spans import Line, Span, Tone
from ruleop.core.errors import Site
from ruleop.core.templating import UndefinedValue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ruleop.core.rules import Project
    from ruleop.core.templating import Expression

_BRANCH: Final = " branch"  # the name of a filter, which templates cannot write because of the space

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
    bodies: dict[int, tuple[Sequence[nodes.Node], list[Key]]] = field(default_factory=dict)  # by their ids

    @property
    def filters(self) -> dict[str, Any]:
        """The function that instrumented templates call."""
        return {_BRANCH: self._count_branch}

    def counter(self, body: Sequence[nodes.Node]) -> Callable[[], None] | None:
        keys = self.bodies.get(id(body), (None, ()))[1]
        if not keys:
            return None

        def count() -> None:
            for key in keys:
                self.hits[key] += 1
                self.touched.add(key[0])

        return count

    def note(self, body: Sequence[nodes.Node], key: Key, lines: Iterable[int]) -> None:
        """Notes the lines that an evaluation of these statements exercises."""
        self.blocks[key] = tuple(sorted(lines))
        self.bodies.setdefault(id(body), (body, []))[1].append(key)

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
        for child in rule.every_child:
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
            self.probe.note(body, self._key(line), lines)

    def string(self, tree: nodes.Template) -> None:
        """Counts a string, the conditions in it, and the outcome of one that is a single expression."""
        self.block(tree.body, 0)
        assert self.site is not None
        key = (self.path, self.site.line, self.site.column)
        outputs = [node for node in tree.body if isinstance(node, nodes.Output)]
        self.probe.note(tree.body, key, (self.site.line,))
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


def table(files: Sequence[FileCoverage]) -> Iterator[Line]:
    """Each file with its share of lines and branches, and what was not exercised."""
    rows = [(file.path, *_shares(file), _missing(file)) for file in files]
    lines = [sum(file.covered for file in files), sum(len(file.lines) for file in files)]
    outcomes = [sum(file.outcomes[at] for file in files) for at in (0, 1)]
    rows.append(("total", _share(*lines), _share(*outcomes), ""))
    wide = max(len(row[0]) for row in rows)
    yield (Span(f"{'coverage':<{wide}}    lines  branches  not exercised", Tone.TITLE),)
    for name, line_share, branch_share, missing in rows:
        tone = Tone.WAIT if missing else Tone.GOOD
        yield (
            Span(f"{name:<{wide}}  ", Tone.TITLE if name == "total" else Tone.PLAIN),
            Span(f"{line_share:>7}  {branch_share:>8}  ", Tone.PLAIN if name == "total" else tone),
            Span(missing),
        )


def _shares(file: FileCoverage) -> tuple[str, str]:
    return _share(file.covered, len(file.lines)), _share(*file.outcomes)


def _share(part: int, whole: int) -> str:
    if not whole:
        return "-"
    return f"{part * 100 // whole} %"  # rounded down: 100 % means all


def _missing(file: FileCoverage) -> str:
    parts = [_ranges([line for line, count in sorted(file.lines.items()) if not count])]
    parts += [f"{each.line}: {each.what} never {_words(each)}" for each in file.branches if each.missing]
    return "; ".join(filter(None, parts))


def _words(branch: Branch) -> str:
    return "evaluated" if len(branch.missing) == 2 else branch.missing[0]


def _ranges(lines: Sequence[int]) -> str:
    """Numbers as ranges: 3-5, 9."""
    found: list[list[int]] = []
    for line in lines:
        if found and found[-1][1] == line - 1:
            found[-1][1] = line
        else:
            found.append([line, line])
    return ", ".join(str(start) if start == end else f"{start}-{end}" for start, end in found)


def lcov(files: Iterable[FileCoverage]) -> str:
    """The tracefile format of lcov."""
    return "".join(f"{line}\n" for file in files for line in _record(file))


def _record(file: FileCoverage) -> Iterator[str]:
    yield "TN:ruleop"
    yield f"SF:{file.path}"
    for number, branch in enumerate(file.branches):
        evaluated = branch.true + branch.false
        for index, count in enumerate((branch.true, branch.false)):
            yield f"BRDA:{branch.line},{number},{index},{count if evaluated else '-'}"
    covered, whole = file.outcomes
    yield f"BRF:{whole}"
    yield f"BRH:{covered}"
    for line, count in sorted(file.lines.items()):
        yield f"DA:{line},{count}"
    yield f"LF:{len(file.lines)}"
    yield f"LH:{file.covered}"
    yield "end_of_record"


_STYLE: Final = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 72em; padding: 0 1em; color: #222 }
table { border-collapse: collapse } td, th { padding: .2em 1em .2em 0; text-align: left; vertical-align: top }
pre { font: 13px/1.4 ui-monospace, monospace; border: 1px solid #ddd; padding: .5em 0; overflow-x: auto }
pre span { display: block; padding: 0 1em } .yes { background: #e6f6e6 } .no { background: #fbe3e3 }
.part { background: #fdf3d0 } i { color: #888; display: inline-block; width: 3.5em }
b { color: #a60; font-weight: normal }
@media (prefers-color-scheme: dark) { body { background: #1b1b1b; color: #ddd } pre { border-color: #444 }
.yes { background: #17321b } .no { background: #472020 } .part { background: #44390f } }
"""


def page(files: Sequence[FileCoverage], source: Callable[[str], str]) -> str:
    """An HTML page with the table, and each file with its lines in colour. `source` reads a file of the project."""
    rows = "".join(
        f'<tr><td><a href="#{html.escape(file.path)}">{html.escape(file.path)}</a>'
        f"<td>{_shares(file)[0]}<td>{_shares(file)[1]}<td>{html.escape(_missing(file))}</tr>\n"
        for file in files
    )
    bodies = "".join(_source(file, source(file.path)) for file in files)
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Coverage of rules</title>\n'
        f"<style>{_STYLE}</style>\n<h1>Coverage of rules</h1>\n"
        f"<table>\n<tr><th>file<th>lines<th>branches<th>not exercised</tr>\n{rows}</table>\n{bodies}</html>\n"
    )


def _source(file: FileCoverage, text: str) -> str:
    notes: dict[int, list[str]] = {}
    for branch in file.branches:
        if branch.missing:
            notes.setdefault(branch.line, []).append(f"{branch.what} never {_words(branch)}")
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        count = file.lines.get(number)
        kind = "part" if number in notes else "" if count is None else "yes" if count else "no"
        note = f"  <b>{html.escape('; '.join(notes[number]))}</b>" if number in notes else ""
        lines.append(f'<span class="{kind}"><i>{number}</i>{html.escape(line) or " "}{note}</span>')
    return f'<h2 id="{html.escape(file.path)}">{html.escape(file.path)}</h2>\n<pre>{"".join(lines)}</pre>\n'
