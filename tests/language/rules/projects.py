"""Small projects in memory, and what loading says about them."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from ruleop.language.rules import Project, ProjectErrors, Rule, RuleFiles
from ruleop.language.rules.checking import build_project
from ruleop.language.rules.loading import build_unchecked
from ruleop.language.rules.transfer import from_parts, to_parts
from tests.definitions import definition

if TYPE_CHECKING:
    from collections.abc import Callable

SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n"
HEAD = "- group: example.com\n  version: v1\n  kind: App\n"
CRD = definition()


def watch(body: str = "") -> str:
    """A watch of App; its body begins on line 4, two columns in."""
    return HEAD + textwrap.indent(textwrap.dedent(body).strip("\n"), "  ") + "\n"


def load(watches: str, files: dict[str, str] | None = None, environ: dict[str, str] | None = None) -> Project:
    """A project of this watches.yaml, with a Service in templates/a.yaml and App's CRD. The operator builds the same
    rules without checks, or refuses them."""
    everything = {"watches.yaml": watches, "templates/a.yaml": SERVICE, "crds/apps.yaml": CRD, **(files or {})}
    checked = _outcome(lambda: build_project(everything, root="/project", environ=environ or {}))
    of = RuleFiles("/project", everything)
    unchecked = _outcome(lambda: from_parts(to_parts(build_unchecked(of, environ=environ or {}))))
    if isinstance(checked, ProjectErrors):
        raise checked
    assert isinstance(unchecked, Project)
    assert [each.digest for each in unchecked.rules] == [each.digest for each in checked.rules]
    assert (unchecked.digest, unchecked.revision) == (checked.digest, checked.revision)
    return checked


def _outcome(build: Callable[[], Project]) -> Project | ProjectErrors:
    try:
        return build()
    except ProjectErrors as errors:
        return errors


def rule(body: str, files: dict[str, str] | None = None, environ: dict[str, str] | None = None) -> Rule:
    (only,) = load(watch(body), files, environ).rules
    return only


def said(watches: str, files: dict[str, str] | None = None, environ: dict[str, str] | None = None) -> list[str]:
    """All that loading has to say: mistakes, and warnings without those of unused templates."""
    try:
        found = load(watches, files, environ).findings
    except ProjectErrors as error:
        found = error.findings
    return [str(finding) for finding in found if finding.code != "unused-template"]


@dataclass(frozen=True)
class Row:
    """A project, and all that loading says about it."""

    title: str
    watches: str
    said: list[str]
    files: dict[str, str] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=dict)


def rows(text: str) -> tuple[Row, ...]:
    """Rows as text: `== title`, the body of a watch, `>>` before each line that loading says. `-- path` begins a file;
    `-- watches.yaml` stands for the watch.
    """
    return tuple(map(_row, re.split("^== ", text, flags=re.MULTILINE)[1:]))


def _row(text: str) -> Row:
    title, _, rest = text.strip("\n").partition("\n")
    files, path, said = {"": ""}, "", []
    for line in rest.split("\n"):
        mark, _, value = line.partition(" ")
        if mark == ">>":
            said.append(value)
        elif mark == "--":
            path = value
            files[path] = ""
        else:
            files[path] += f"{line}\n"
    body = files.pop("")
    return Row(title, files.pop("watches.yaml") if "watches.yaml" in files else watch(body), said, files)


def table(*rows: Row) -> pytest.MarkDecorator:
    """Runs a test once for each row."""
    return pytest.mark.parametrize("row", rows, ids=[row.title for row in rows])
