"""Projects that work have no findings: those of this repository, and the examples of its pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ruleop.authoring.checking import check_project
from ruleop.language.rules import REFUSED_METADATA, ProjectErrors
from ruleop.language.rules.check_ids import id_of
from ruleop.language.rules.checking import build_with_sources, load_with_sources
from tests.authoring.checking.test_desired_objects import MANIFESTS, without_nulls
from tests.definitions import definition
from tests.docs.examples import examples
from tests.docs.messages import ROOT

PROJECTS = sorted(
    file.parent.relative_to(ROOT).as_posix()
    for pattern in ("watches.yaml", "examples/*/watches.yaml", "tests/projects/*/watches.yaml")
    for file in ROOT.glob(pattern)
)
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
NO_CRD = "RO401"
EXAMPLES = [
    pytest.param(page, name, id=f"{page.stem}-{name}")
    for page in PAGES
    for name, example in examples(page).items()
    if "watches.yaml" in example.files
]


@pytest.mark.slow
@pytest.mark.parametrize("project", PROJECTS)
def test_a_project_that_works_has_no_findings(project: str) -> None:
    assert [str(each) for each in check_project(load_with_sources(ROOT / project, environ={}))] == []


@pytest.mark.parametrize(("page", "name"), EXAMPLES)
def test_an_example_of_a_page_has_no_findings(page: Path, name: str) -> None:
    files = examples(page)[name].files
    try:
        loaded = build_with_sources(files, root="/project", environ={})
    except ProjectErrors:
        return  # a page shows how a mistake is reported
    found = [each for each in check_project(loaded) if id_of(each.code) != NO_CRD]
    assert [str(each) for each in found] == []


@pytest.mark.slow
def test_a_child_that_the_api_server_accepts_has_no_findings_by_its_schema() -> None:
    files = {"crds/apps.yaml": definition()}
    children = {}
    for number, manifest in enumerate(map(without_nulls, MANIFESTS)):
        manifest["metadata"] = {"name": f"{number}", **manifest["metadata"]}
        for name in (*REFUSED_METADATA, "generateName"):
            manifest["metadata"].pop(name, None)
        files[f"templates/{number}.yaml"] = "".join(
            f"{key}: {value if key in ('apiVersion', 'kind') else json.dumps(value)}\n"
            for key, value in manifest.items()
        )
        children[f"c{number}"] = {"template": f"{number}.yaml"}
    files["watches.yaml"] = json.dumps(
        [{"group": "example.com", "version": "v1", "kind": "App", "reach": "cluster", "children": children}]
    )
    found = check_project(build_with_sources(files, root="/nowhere", environ={}))
    of_rules = {
        "name-collision",
        "runs-again",
        "missing-reference",
        "unmatched-selector",
    }  # the API server accepts them
    assert [str(each) for each in found if each.code not in of_rules] == []
