"""Reads test files into cases, with all mistakes of a file at once.

A matrix is one case for each row of `cases:`, with its values in place of `${name}`.

Text that is only `${name}` becomes the value with its type; inside longer text the value is inserted. A row whose value
is never used is a mistake, because otherwise a misspelt name would go unnoticed.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

from ruleop.authoring.ruletests.format import CaseTable, StepTable
from ruleop.errors import RuleopError, Site
from ruleop.files import read_inside, read_regular, why_unreadable
from ruleop.language.rules import Findings
from ruleop.language.rules.keys.tables import TableOf
from ruleop.language.rules.keys.value_types import FileReading, wrong_type
from ruleop.language.templates import read_yaml, scalar_text
from ruleop.language.templates.compile import Library
from ruleop.language.templates.yaml_reader import MAX_DEPTH, Anchors
from ruleop.nearest import did_you_mean_quoted
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ruleop.language.rules import Finding
    from ruleop.language.templates import YamlNode

_USE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def expanded(case: YamlNode, findings: Findings) -> Iterator[YamlNode]:
    """The case for each row, without the key `cases`; the case itself if it has no rows."""
    members = case.value
    if not isinstance(members, dict) or "cases" not in members:
        yield case
        return
    rows = list(_rows(members["cases"]))
    if not rows:  # the table reports what is wrong with it
        yield case
        return
    rest = replace(case, value={name: member for name, member in members.items() if name != "cases"})
    used: set[str] = set()
    for row in rows:
        filling = _Filling(row)
        filled = filling.node(rest)
        used |= filling.used
        yield _named(filled, row, filling)
    for row in rows:
        for name, value in row.items():
            if name not in used:
                near = did_you_mean_quoted(name, _names_used(rest) - row.keys())
                findings.mistake("unknown-name", f"no ${{{name}}} uses this value of the row{near}", value.site)


def _rows(node: YamlNode) -> Iterator[dict[str, YamlNode]]:
    if isinstance(node.value, list):
        for item in node.value:
            if isinstance(item.value, dict) and item.value:
                yield item.value
    elif isinstance(node.value, dict):
        lists = [each.value if isinstance(each.value, list) else [] for each in node.value.values()]
        for values in itertools.product(*lists):
            yield dict(zip(node.value, values, strict=True))


def _named(case: YamlNode, row: dict[str, YamlNode], filling: _Filling) -> YamlNode:
    """The case with a name of its own. Where the name uses no value of the row, all of them are appended."""
    members = case.value
    name = members.get("name") if isinstance(members, dict) else None
    if name is None or not isinstance(name.value, str) or filling.named:
        return case
    values = ", ".join(f"{each}={_text(value)}" for each, value in row.items())
    assert isinstance(members, dict)
    return replace(case, value={**members, "name": replace(name, value=f"{name.value} [{values}]")})


def _text(node: YamlNode) -> str:
    value = node.value
    return "..." if isinstance(value, (dict, list)) else scalar_text(value) if value is not None else "null"


def _names_used(node: YamlNode) -> set[str]:
    value = node.value
    if isinstance(value, str):
        return set(_USE.findall(value))
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    keys = {name for key in (value if isinstance(value, dict) else ()) for name in _USE.findall(key)}
    return keys.union(*(_names_used(each) for each in inner))


@dataclass(slots=True)
class _Filling:
    """One row, and which of its values were used."""

    row: dict[str, YamlNode]
    used: set[str] = field(default_factory=set)
    named: bool = False  # the name of the case uses a value

    def node(self, node: YamlNode, key: str = "") -> YamlNode:
        value = node.value
        if isinstance(value, str):
            filled = self._text(node, value)
            self.named = self.named or (key == "name" and filled is not node)
            return filled
        if isinstance(value, list):
            return replace(node, value=[self.node(item) for item in value])
        if isinstance(value, dict):
            # The first level is the case itself: its name counts, and no other one.
            found = {self._key(name): self.node(member, name if not key else ".") for name, member in value.items()}
            sites = {self._key(name): site for name, site in node.key_sites.items()}
            return replace(node, value=found, key_sites=sites)
        return node

    def _key(self, name: str) -> str:
        return _USE.sub(self._inserted, name) if "${" in name else name

    def _text(self, node: YamlNode, text: str) -> YamlNode:
        if "${" not in text:
            return node
        whole = _USE.fullmatch(text)
        if whole is not None and whole[1] in self.row:
            self.used.add(whole[1])
            return replace(self.row[whole[1]], site=node.site)
        filled = _USE.sub(self._inserted, text)
        return node if filled == text else replace(node, value=filled)

    def _inserted(self, match: re.Match[str]) -> str:
        if match[1] not in self.row:
            return match[0]
        self.used.add(match[1])
        return _text(self.row[match[1]])


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
    reading = FileReading(Library({}), findings)
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


def read_test_file(file: Path, name: str) -> str:
    """Raises RuleopError. `name` is the file in messages."""
    try:
        return read_text(file, file)
    except OSError as error:
        raise RuleopError(f"{name}: {why_unreadable(error)}") from None
    except UnicodeDecodeError:
        raise RuleopError(f"{name}: not valid UTF-8") from None


def project_of(file: Path) -> Path | None:
    """The nearest folder above a test file that has a watches.yaml."""
    return next((folder for folder in file.absolute().parents if (folder / "watches.yaml").is_file()), None)
