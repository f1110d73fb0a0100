"""Reads test files into cases, with all mistakes of a file at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ruleop.authoring.ruletests.format import CaseTable, StepTable
from ruleop.authoring.ruletests.matrix import expanded
from ruleop.core.errors import Site
from ruleop.core.files import read_inside, read_regular
from ruleop.core.rules.findings import Findings
from ruleop.core.rules.language.tables import TableOf
from ruleop.core.rules.language.value_types import Reading, wrong_type
from ruleop.core.templating import Library, read_yaml
from ruleop.core.templating.tree.anchors import Anchors
from ruleop.core.templating.tree.yaml_reader import MAX_DEPTH

if TYPE_CHECKING:
    from pathlib import Path

    from ruleop.core.rules import Finding

SUFFIX: Final = ".test.yaml"
_CASE: Final = TableOf(CaseTable)


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a test file, as it is run."""

    name: str
    file: Path
    table: CaseTable

    @property
    def site(self) -> Site:
        return self.table.site

    @property
    def steps(self) -> tuple[CaseTable | StepTable, ...]:
        return (self.table, *self.table.then)

    @property
    def folder(self) -> Path:
        """The folder that file names are relative to."""
        return self.file.parent

    def step_name(self, number: int) -> str:
        """The name of a step for people; "" for the case itself."""
        step = self.steps[number]
        if not number:
            return ""
        return step.name.text if step.name is not None else f"step {number}"


@dataclass(frozen=True, slots=True)
class TestFile:
    """The cases of one file. With mistakes there are none."""

    __test__ = False  # not a class of tests, whatever pytest thinks of its name

    path: Path
    name: str  # as it is shown
    text: str
    cases: tuple[Case, ...]
    findings: tuple[Finding, ...]


def parse_file(path: Path, name: str, text: str) -> TestFile:
    """The cases in the text of a file. `name` is the file in messages."""
    findings = Findings({name: text})
    documents, mistakes = read_yaml(text, name, anchors=Anchors(max_depth=MAX_DEPTH))
    findings.take(mistakes, "yaml")
    reading = Reading(Library({}), {}, findings)
    cases: list[Case] = []
    for document in documents:
        if not isinstance(document.value, list):
            wrong_type(document, "a test file", "a list of cases, each starting with `- name:`", reading)
            continue
        for item in document.value:
            for node in expanded(item, findings):
                table = _CASE.read(node, "a case", reading)
                if table is not None and table.name is not None:
                    cases.append(Case(table.name.text, path, table))
    _check_names(cases, findings)
    found = findings.sorted()
    if not cases and not found:
        findings.mistake("missing-key", "the file has no cases", Site(name, 1))
        found = findings.sorted()
    return TestFile(path, name, text, () if findings.failed else tuple(cases), found)


def _check_names(cases: list[Case], findings: Findings) -> None:
    first: dict[str, Case] = {}
    for case in cases:
        other = first.setdefault(case.name, case)
        if other is not case:
            site = case.table.key_sites["name"]
            findings.mistake("conflict", f'the case of line {other.site.line} has the name "{case.name}" too', site)


def find_files(root: Path) -> list[Path]:
    """The test files of a project, without those of projects inside it."""
    found: list[Path] = []
    for entry in sorted(root.iterdir()):
        if entry.name.startswith((".", "__")) or entry.name.endswith("~"):
            continue
        if entry.is_dir():
            if not entry.is_symlink() and not (entry / "watches.yaml").exists():
                found += find_files(entry)
        elif entry.name.endswith(SUFFIX):
            found.append(entry)
    return found


def read_text(file: Path, test_file: Path) -> str:
    """The text of a test file, or of one that it names: a regular file inside its project. Raises OSError,
    UnicodeDecodeError."""
    root = project_of(test_file)
    return (read_regular(file) if root is None else read_inside(file, root)).decode("utf-8-sig")


def project_of(file: Path) -> Path | None:
    """The nearest folder above a test file that has a watches.yaml."""
    return next((folder for folder in file.absolute().parents if (folder / "watches.yaml").is_file()), None)
