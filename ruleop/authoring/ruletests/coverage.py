"""The lines and branches of the rules that were exercised.

A probe counts the evaluations of each list of statements, and the outcomes of each condition. Without a probe nothing
is counted, so the operator pays nothing.

Coverage is shown as a table, as an HTML page, and as lcov for editors and services.
"""

from __future__ import annotations

import html
from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.report import Line, Span, Tone
from ruleop.language.templates import UndefinedValue, syntax
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ruleop.errors import Site
    from ruleop.language.rules import Project
    from ruleop.language.templates import Expression

Key = tuple[str, int, int]  # path, line, number among those of the same template or string


@dataclass(frozen=True, slots=True)
class CoveredBranch:
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
    branches: tuple[CoveredBranch, ...]

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
    hits: Counter[Key] = field(default_factory=Counter)
    true: Counter[Key] = field(default_factory=Counter)
    false: Counter[Key] = field(default_factory=Counter)
    templates: set[str] = field(default_factory=set)
    expressions: dict[Key, str] = field(default_factory=dict)  # of watches.yaml; both outcomes are to be exercised
    bodies: dict[int, tuple[syntax.Body, list[Key]]] = field(default_factory=dict)  # by their ids
    tests: dict[syntax.Expr, Key] = field(default_factory=dict)  # of the conditions

    def counter(self, bodies: Sequence[syntax.Body]) -> Callable[[], None] | None:
        keys = [key for body in bodies for key in self.bodies.get(id(body), (None, ()))[1]]
        if not keys:
            return None

        def count() -> None:
            for key in keys:
                self.hits[key] += 1

        return count

    def note(self, body: syntax.Body, key: Key, lines: Iterable[int]) -> None:
        """Notes the lines that an evaluation of these statements exercises."""
        self.blocks[key] = tuple(sorted(lines))
        self.bodies.setdefault(id(body), (body, []))[1].append(key)

    def outcome(self, condition: syntax.Expr) -> Callable[[Any], None] | None:
        key = self.tests.get(condition)
        if key is None:
            return None

        def count(value: Any) -> None:
            is_true = not isinstance(value, UndefinedValue) and bool(value)
            (self.true if is_true else self.false)[key] += 1

        return count

    def observe(self, tree: syntax.Template, where: str | Site) -> None:
        """Notes the lines and conditions of a template file, or of a string of watches.yaml."""
        if isinstance(where, str):
            _Observer(self, where).block(tree.body)
        else:
            _Observer(self, where.path, where).string(tree)

    def observe_value(self, bodies: Sequence[syntax.Body], site: Site) -> None:
        """Notes the lines and conditions of a value of watches.yaml. `bodies`: of each member."""
        observer = _Observer(self, site.path, number=site.column * 1000)
        for body in bodies:
            observer.block(body)

    def add_project(self, project: Project) -> None:
        """Notes what else a loaded project has: templates that nothing uses, and the keys of its expressions."""
        self.templates.update(f"templates/{name}" for name in project.templates)
        for expression, what in _expressions(project):
            site = expression.site
            self.expressions[site.path, site.line, site.column] = what

    def counts(self) -> dict[str, Any]:
        """The counts, as data for another process."""
        names = ("blocks", "conditions", "hits", "true", "false", "expressions")
        return {"templates": sorted(self.templates), **{name: dict(getattr(self, name)) for name in names}}

    def add(self, counts: Mapping[str, Any]) -> None:
        """Adds the counts of another process."""
        for name, found in counts.items():
            getattr(self, name).update(found)  # which adds the numbers of a Counter

    def files(self) -> list[FileCoverage]:
        """The coverage of each template, and of the strings and expressions in files of watches."""
        lines: dict[str, dict[int, int]] = {path: {} for path in self.templates}
        for key, numbers in self.blocks.items():
            for line in numbers:
                found = lines.setdefault(key[0], {})
                found[line] = found.get(line, 0) + self.hits[key]
        branches: dict[str, list[CoveredBranch]] = {}
        for key, what in sorted(self.conditions.items()):
            path, line, number = key
            # A whole expression has the column of its site, and no name of its own.
            name, column = (what, 0) if what else (self.expressions.get(key, ""), number)
            if name:
                branches.setdefault(path, []).append(
                    CoveredBranch(path, line, column, name, self.true[key], self.false[key])
                )
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
        for condition in rule.status.conditions:
            yield condition.status, f"condition {condition.type}"


@dataclass(slots=True)
class _Observer:
    """Notes one tree. Conditions of a string have the string's line."""

    probe: Probe
    path: str
    site: Site | None = None
    number: int = 0

    def _key(self, line: int) -> Key:
        self.number += 1
        return (self.path, self.site.line if self.site else line, 1000 + self.number)

    def block(self, body: syntax.Body) -> None:
        """Notes a list of statements that are rendered together."""
        lines: set[int] = set()
        for node in body:
            self._statement(node, lines)
        if self.site is None and lines:
            self.probe.note(body, self._key(body[0].site.line), lines)

    def string(self, tree: syntax.Template) -> None:
        """Notes a string, the conditions in it, and the outcome of one that is a single expression."""
        self.block(tree.body)
        assert self.site is not None
        key = (self.path, self.site.line, self.site.column)
        self.probe.note(tree.body, key, (self.site.line,))
        if tree.only_value is not None:
            self.probe.conditions[key] = ""
            self.probe.tests[tree.only_value] = key

    def _statement(self, node: syntax.Stmt, lines: set[int]) -> None:
        match node:
            case syntax.Data():
                texts = node.text.split("\n")
                lines.update(node.site.line + at for at, text in enumerate(texts) if text.strip())
            case syntax.Print():
                lines.add(node.place.site.line)
                self._inline(node.value, node.place.site.line)
            case syntax.If():
                self._if(node, lines)
            case syntax.For():
                lines.add(node.site.line)
                self._inline(node.iterable, node.iterable.site.line)
                self.block(node.body)
                self.block(node.otherwise)
            case syntax.Macro() | syntax.Block():
                lines.add(node.site.line)
                self.block(node.body)
            case _:
                lines.add(node.site.line)
                for each in syntax.children(node):
                    if isinstance(each, syntax.Stmt):
                        self._statement(each, lines)
                    elif isinstance(each, syntax.Expr):
                        self._inline(each, each.site.line)

    def _if(self, node: syntax.If, lines: set[int]) -> None:
        lines.add(node.site.line)
        for number, each in enumerate(node.branches):
            self._inline(each.test, each.test.site.line)
            self._condition(each.test, each.site.line, "elif" if number else "if")
            self.block(each.body)
        self.block(node.otherwise)

    def _inline(self, node: syntax.Expr, line: int) -> None:
        """Notes `a if b else c` anywhere in an expression."""
        for each in syntax.find(node, syntax.Conditional):
            self._condition(each.test, line, "inline if")

    def _condition(self, test: syntax.Expr, line: int, what: str) -> None:
        key = self._key(line)
        self.probe.conditions[key] = what
        self.probe.tests[test] = key


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


def _words(branch: CoveredBranch) -> str:
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
