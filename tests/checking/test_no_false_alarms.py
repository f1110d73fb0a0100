"""Projects that work have no findings: those of this repository, and the examples of its pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ruleop.checking.typing.watches import check_types
from ruleop.rules import Findings, ProjectErrors, build_with_sources, load_with_sources
from tests.docs.examples import examples
from tests.projects.snapshots import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PROJECTS = sorted(
    file.parent.relative_to(ROOT).as_posix()
    for pattern in ("watches.yaml", "examples/*/watches.yaml", "tests/projects/*/watches.yaml")
    for file in ROOT.glob(pattern)
)
PAGES = [*(page for page in sorted((ROOT / "docs").glob("*.md")) if page.stem != "checks"), ROOT / "README.md"]
EXAMPLES = [
    pytest.param(page, name, id=f"{page.stem}-{name}")
    for page in PAGES
    for name, example in examples(page).items()
    if "watches.yaml" in example.files
]


@pytest.mark.parametrize("project", PROJECTS)
def test_a_project_that_works_has_no_findings(project: str) -> None:
    loaded = load_with_sources(ROOT / project, environ={})
    found = Findings(loaded.files)
    check_types(loaded, found)
    assert [str(each) for each in found.sorted()] == []


@pytest.mark.parametrize(("page", "name"), EXAMPLES)
def test_an_example_of_a_page_has_no_findings(page: Path, name: str) -> None:
    files = examples(page)[name].files
    try:
        loaded = build_with_sources(files, root="/project", environ={})
    except ProjectErrors:
        return  # a page shows how a mistake is reported
    found = Findings(loaded.files)
    check_types(loaded, found)
    assert [str(each) for each in found.sorted()] == []
