"""The examples of the pages are real: each loads without a remark, and what is shown as output is the output."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import yaml

from ruleop.rules import load_project
from ruleop.rules.language.tables import keys
from ruleop.rules.language.watches_yaml import TABLES
from ruleop.ruletests import format as rule_tests
from tests.docs.examples import blocks, define, examples, make_live, transcript, write
from tests.docs.messages import ROOT
from tests.docs.reference import written

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ruleop.rules.language.tables import Table

PAGE = ROOT / "docs" / "rules.md"
TESTING = ROOT / "docs" / "testing.md"
PAGES = [PAGE, ROOT / "docs" / "errors.md", TESTING]
EXAMPLES = {name: (page, example) for page in PAGES for name, example in examples(page).items()}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_the_page_shows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page, example = EXAMPLES[name]
    for step in example.steps:
        if step.what == "file":
            write(tmp_path, step)
            continue
        define(tmp_path)
        if step.what == "live":
            make_live(tmp_path, step)
        else:
            assert transcript(tmp_path, step.text) == step.text, (
                f"docs/{page.name}:{step.line}: `python -m tests.docs.reference` updates it"
            )
    define(tmp_path)
    if not name.endswith("-broken"):
        assert [str(warning) for warning in load_project(tmp_path, environ={}).findings] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_links_between_pages_have_targets(page: Path) -> None:
    """Of the pages that are there: within the page, and to the others."""
    for file, anchor in re.findall(r"\]\(([a-z]*(?:\.md)?)#([^)]+)\)", page.read_text(encoding="utf-8")):
        target = page.parent / file if file else page
        if target.exists():
            titles = re.findall(r"(?m)^#+ (.+)$", target.read_text(encoding="utf-8"))
            assert anchor in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}, (
                f"{page.name}: {file}#{anchor}"
            )


def test_the_reference_is_generated_from_the_tables() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == written(text), (
        "docs/rules.md is out of date: run `python -m tests.docs.reference`, and look at the difference"
    )


def test_the_reference_of_test_files_is_generated_from_the_tables() -> None:
    text = TESTING.read_text(encoding="utf-8")
    assert text == written(text, rule_tests.TABLES), (
        "docs/testing.md is out of date: run `python -m tests.docs.reference`, and look at the difference"
    )


@pytest.mark.parametrize(("page", "tables"), [(PAGE, TABLES), (TESTING, rule_tests.TABLES)], ids=["rules", "tests"])
def test_the_reference_has_every_key(page: Path, tables: Iterable[type[Table]]) -> None:
    text = page.read_text(encoding="utf-8")
    assert [key.name for table in tables for _, key in keys(table) if f"| `{key.name}` |" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_is_an_example(page: Path) -> None:
    assert {line: before for line, before in blocks(page).items() if not before.startswith("<!-- ")} == {}


def test_names_of_examples_are_unique() -> None:
    assert len(EXAMPLES) == sum(len(examples(page)) for page in PAGES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_files_of_an_example_are_yaml(name: str) -> None:
    for path, text in EXAMPLES[name][1].files.items():
        if path.endswith(".yaml"):
            list(yaml.safe_load_all(text))


def test_the_list_of_pages_is_complete() -> None:
    listed = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert [
        page.name
        for page in (ROOT / "docs").glob("*.md")
        if page.name != "README.md" and f"({page.name})" not in listed
    ] == []
