"""Test files as items of pytest: each case is one, with its file and line, and fails with the text of `ruleop test`."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ruleop.authoring.ruletests.cases import parse_file, project_of, read_text
from ruleop.authoring.ruletests.projects import Projects
from ruleop.authoring.ruletests.running.runner import Runner
from ruleop.authoring.ruletests.snapshots import Snapshots
from ruleop.authoring.ruletests.test_report import failure_text
from ruleop.core.errors import Site
from ruleop.core.files import why_unreadable
from ruleop.core.rules import ProjectErrors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.authoring.ruletests.cases import Case


class RuleTestFile(pytest.File):
    """A *.test.yaml below a project."""

    def collect(self) -> Iterator[pytest.Item]:
        root = project_of(self.path)
        assert root is not None, "the plugin collects only files of projects"
        try:
            file = parse_file(self.path, _shown(self.path), read_text(self.path, self.path))
        except OSError as error:
            raise self.CollectError(f"{_shown(self.path)}: {why_unreadable(error)}") from None
        except UnicodeDecodeError:
            raise self.CollectError(f"{_shown(self.path)}: not valid UTF-8") from None
        if file.findings:
            raise self.CollectError("\n".join(map(str, file.findings)))
        for case in file.cases:
            yield RuleTestCase.from_parent(self, name=case.name, case=case, root=root)


class RuleTestCase(pytest.Item):
    def __init__(self, *, case: Case, root: Path, **more: Any) -> None:
        super().__init__(**more)
        self.case, self.root = case, root

    def runtest(self) -> None:
        runner = Runner(_projects(self.root), Snapshots(ci=bool(os.environ.get("CI"))))
        try:
            result = runner.run(self.case)
        except ProjectErrors as errors:
            raise _Failed(str(errors)) from None
        if not result.passed:
            raise _Failed(failure_text(result, place=self._place))

    def _place(self, site: Site) -> str:
        return str(Site(_shown(self.root / site.path), site.line, site.column))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return str(excinfo.value) if isinstance(excinfo.value, _Failed) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.case.site.line - 1, self.case.name


class _Failed(Exception):  # noqa: N818 - pytest's word
    """A case that has failed, as text."""


def _shown(path: Path) -> str:
    """A path relative to the folder that pytest was started in."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


@cache
def _projects(root: Path) -> Projects:
    """The projects of this session, each loaded once."""
    return Projects(root, dict(os.environ))
