"""The examples of the pages are real: each loads without a remark, and what is shown as output is the output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from ruleop.rules import load_project
from ruleop.rules.language import TABLES
from ruleop.rules.tables import keys
from tests.docs.examples import blocks, define, examples, make_live, transcript, write
from tests.docs.messages import ROOT
from tests.docs.reference import written

if TYPE_CHECKING:
    from pathlib import Path

PAGE = ROOT / "docs" / "rules.md"
EXAMPLES = examples(PAGE)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_what_the_page_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    example = EXAMPLES[name]
    for step in example.steps:
        if step.what == "file":
            write(tmp_path, step)
            continue
        define(tmp_path)
        if step.what == "live":
            make_live(tmp_path, step)
        else:
            assert transcript(tmp_path, step.text) == step.text, (
                f"docs/rules.md:{step.line}: `python -m tests.docs.reference` writes it anew"
            )
    define(tmp_path)
    project = load_project(tmp_path, environ={})
    assert [str(warning) for warning in project.warnings] == []


def test_the_reference_is_that_of_the_tables() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == written(text), "docs/rules.md is out of date: run `python -m tests.docs.reference`, and look at the difference"


def test_the_reference_has_every_key() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [key.name for table in TABLES for _, key in keys(table) if f"| `{key.name}` |" not in text] == []


def test_every_block_is_an_example() -> None:
    assert {line: before for line, before in blocks(PAGE).items() if not before.startswith("<!-- ")} == {}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_files_of_an_example_are_yaml(name: str) -> None:
    for path, text in EXAMPLES[name].files.items():
        if path.endswith(".yaml"):
            list(yaml.safe_load_all(text))
