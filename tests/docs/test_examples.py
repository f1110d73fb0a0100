"""The examples of the pages are real: each loads without a remark, and what is shown as output is the output."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ruleop.language.rules.checking import load_project
from ruleop.language.rules.keys import watches_yaml as language
from ruleop.language.rules.keys.tables import Table, keys
from ruleop.language.rules.keys.value_types import (
    BareExpression,
    ListOf,
    Loops,
    MapOf,
    TemplateFile,
    TemplateTree,
    TemplateValue,
)
from tests.docs.examples import define, examples, make_live, transcript, write
from tests.docs.messages import ROOT
from tests.docs.read_names import WATCH
from tests.docs.reference import EXAMPLES as PAGES
from tests.docs.reference import REFERENCES, TABLES, with_table, written

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


@pytest.mark.parametrize(("page", "tables", "level"), REFERENCES, ids=["rules", "tests"])
def test_a_reference_is_generated_from_the_tables(page: Path, tables: Iterable[type[Table]], level: str) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == written(text, tables, level), (
        f"{page} is out of date: run `python -m tests.docs.reference`, and look at the difference"
    )
    assert [key.name for table in tables for _, key in keys(table) if f"| `{key.name}` |" not in text] == []


@pytest.mark.parametrize("page", TABLES, ids=lambda page: page.name)
def test_a_generated_table_agrees_with_the_code(page: Path) -> None:
    name, made = TABLES[page]
    text = page.read_text(encoding="utf-8")
    assert text == with_table(text, name, made()), f"{page} is out of date: run `python -m tests.docs.reference`"


def test_the_table_of_names_has_all_keys_with_expressions_and_templates() -> None:
    kinds = (
        BareExpression,
        TemplateValue,
        TemplateTree,
        TemplateFile,
        Loops,
        language.GivenObjectsType,
        language.StatusType,
    )
    found = {key.name for table in language.TABLES for _, key in keys(table) if isinstance(_inner(key.type), kinds)}
    of_other_values = {"matchLabels", "values", "selector"}  # of a selector; that of a watch is plain
    assert [name for name in sorted(found - of_other_values) if f"{name}:" not in WATCH] == []


def _inner(type_: Any) -> Any:
    return (
        _inner(type_.item if isinstance(type_, ListOf) else type_.member)
        if isinstance(type_, ListOf | MapOf)
        else type_
    )


def test_names_of_examples_differ_between_pages() -> None:
    assert len(EXAMPLES) == sum(len(examples(page)) for page in PAGES)


def test_the_list_of_pages_is_complete() -> None:
    docs = ROOT / "docs"
    listed = (docs / "README.md").read_text(encoding="utf-8")
    pages = [page.relative_to(docs).as_posix() for page in docs.rglob("*.md")]
    pages = [page for page in pages if not page.startswith("contributing/decisions/")]  # test_decisions.py
    assert [page for page in pages if page != "README.md" and f"({page})" not in listed] == []
