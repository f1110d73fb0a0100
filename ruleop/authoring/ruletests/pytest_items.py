"""Test files as pytest runs them: each case is an item, with its file, its line and a diff of what it expects.

`ruleop test` and the pytest plugin share this. With pytest-xdist the cases run in other processes, which send what they
have collected at their end.
"""

from __future__ import annotations

import os
import re
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from ruleop.authoring.report import Span, excerpt, mistake, styled
from ruleop.authoring.ruletests.cases import parse_file, project_of, read_test_file
from ruleop.authoring.ruletests.coverage import Probe
from ruleop.authoring.ruletests.results import case_json, failure_lines, mistake_json
from ruleop.authoring.ruletests.runner import Projects, Runner, Snapshots
from ruleop.errors import RuleopError, Site
from ruleop.language.rules import ProjectErrors
from ruleop.language.rules.operator_choices import read_choices
from ruleop.printable import printable
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.authoring.report import Line
    from ruleop.authoring.ruletests.cases import Case
    from ruleop.authoring.ruletests.results import CaseResult

_NOT_IN_KEYWORDS: Final = re.compile(r"[^\w:+\-.\[\]\\/]+")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The options of a run. `root`: the project of all test files; without it, each file has its own."""

    root: str = ""
    update: bool = False
    measures: bool = False


class RuleTests:
    """A run of test files: what its cases share, and the results."""

    __name__ = "ruleop-tests"  # pluggy registers a plugin by this

    def __init__(self, settings: RunSettings) -> None:
        self.settings = settings
        self.snapshots = Snapshots(update=settings.update, ci=bool(os.environ.get("CI")))
        self.probe = Probe() if settings.measures else None
        self.projects: dict[Path, Projects] = {}
        self.folders: set[Path] = set()  # of the test files
        self.cases: list[dict[str, Any]] = []
        self.mistakes: list[dict[str, Any]] = []
        self.stale: list[str] = []  # snapshots that no case uses
        self.written = self.deselected = 0
        self.interrupted = False

    def root_of(self, file: Path) -> Path:
        root = Path(self.settings.root) if self.settings.root else project_of(file)
        assert root is not None, "the plugin collects only files of projects"
        return root

    def run(self, case: Case, root: Path) -> CaseResult:
        if root not in self.projects:
            self.projects[root] = Projects(root, {**read_choices(root).env, **os.environ}, self.probe)
        result = Runner(self.projects[root], self.snapshots).run(case)
        self.written += len(result.written)
        return result

    # -- hooks ---------------------------------------------------------------------------------------------------------

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self.deselected += len(items)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self.interrupted = excinfo.type is KeyboardInterrupt  # -x of pytest-xdist has a type of its own

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.folders:
            self.stale = [shown(file) for file in self.snapshots.stale(self.folders)]
        if hasattr(session.config, "workeroutput"):
            counts = self.probe.counts() if self.probe is not None else None
            found = (self.cases, self.written, self.mistakes, self.stale, self.deselected, counts)
            session.config.workeroutput["ruleop"] = found

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.written:
            terminalreporter.write_line(f"{self.written} snapshot{'s' if self.written > 1 else ''} written")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["ruleop"] = asdict(self.settings)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        if (found := getattr(node, "workeroutput", {}).get("ruleop")) is None:
            return  # the process has crashed
        cases, written, self.mistakes, self.stale, self.deselected, counts = found  # each process collects all files
        self.cases += cases
        self.written += written
        if self.probe is not None:
            self.probe.add(counts)


class RuleTestFile(pytest.File):
    """A test file."""

    def __init__(self, *, run: RuleTests, **more: Any) -> None:
        super().__init__(**more)
        self.run = run

    def collect(self) -> Iterator[pytest.Item]:
        name = shown(self.path)
        try:
            text = read_test_file(self.path, name)
        except RuleopError as error:
            raise self.CollectError(str(error)) from None
        file = parse_file(self.path, name, text)
        if file.findings:
            self.run.mistakes += map(mistake_json, file.findings)
            lines = ((*mistake(str(each.site), each.message), *excerpt(text, each.site)) for each in file.findings)
            raise CaseFailed(ReportText(tuple(chain.from_iterable(lines)), str(file.findings[0])))
        self.run.folders.add(self.path.parent)
        for case in file.cases:
            self.run.snapshots.add(case)
            yield RuleTestCase.from_parent(self, name=printable(case.name), case=case, run=self.run)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:  # noqa: ARG002 - of pytest
        return excinfo.value.text if isinstance(excinfo.value, CaseFailed) else super().repr_failure(excinfo)


class RuleTestCase(pytest.Item):
    """A case."""

    def __init__(self, *, case: Case, run: RuleTests, **more: Any) -> None:
        super().__init__(**more)
        self.case, self.run, self.root = case, run, run.root_of(case.file)
        self.extra_keyword_matches.add(keyword(f"{case.site.path} {case.name}"))

    def runtest(self) -> None:
        try:
            result = self.run.run(self.case, self.root)
        except ProjectErrors as errors:
            raise CaseFailed(ReportText(tuple((Span(str(each)),) for each in errors.findings), str(errors))) from None
        self.run.cases.append(case_json(result, place=self.place))
        if not result.passed:
            first = result.failures[0]
            lines = failure_lines(result, place=self.place)
            raise CaseFailed(ReportText(tuple(lines), f"{first.what}: {first.message}"))

    def place(self, site: Site) -> str:
        """A place in the files of the project, relative to the current folder."""
        return str(Site(shown(self.root / site.path), site.line, site.column))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return excinfo.value.text if isinstance(excinfo.value, CaseFailed) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.case.site.line - 1, printable(f"{self.case.site}: {self.case.name}")


class CaseFailed(Exception):  # noqa: N818 - pytest's word
    """A case that has failed, or a file with mistakes."""

    def __init__(self, text: ReportText) -> None:
        super().__init__(text.message)
        self.text = text


@dataclass(frozen=True, slots=True)
class ReportText:
    """The lines of a failure, in colours on a terminal, and a sentence for JUnit and summaries."""

    lines: tuple[Line, ...]
    message: str

    @property
    def reprcrash(self) -> ReportText:
        """Where pytest looks for the sentence."""
        return self

    def toterminal(self, writer: Any) -> None:
        writer.write(styled(self.lines, colour=writer.hasmarkup))

    def __str__(self) -> str:
        return styled(self.lines, colour=False)


def keyword(text: str) -> str:
    """The text as one word of `-k`: pytest reads no blanks there."""
    return _NOT_IN_KEYWORDS.sub("_", text)


def shown(path: Path) -> str:
    """A path relative to the current folder."""
    return Path(os.path.relpath(path)).as_posix()
