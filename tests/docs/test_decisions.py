"""Decisions stay few and short, so that people read them: one page each, and an index with all dependencies."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from tests.docs.links import links
from tests.docs.messages import ROOT

FOLDER = ROOT / "docs" / "contributing" / "decisions"
INDEX = FOLDER.with_suffix(".md").read_text(encoding="utf-8")
PAGES = sorted(FOLDER.iterdir())
MOST_WORDS = 150
MOST_WORDS_OF_ALL = 5000


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_decision_has_four_short_parts_under_a_plain_name(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*\.md", page.name)
    assert re.findall(r"^(?:- \*\*(\w+):\*\* |# ).+", text, re.MULTILINE) == [
        "",
        "Decided",
        "Expected",
        "Why",
        "Revisit",
    ]
    assert len(text.split()) <= MOST_WORDS


def test_the_index_lists_each_decision_once_by_its_title() -> None:
    listed = re.findall(r"^- \[(.+)\]\(decisions/(.+)\)$", INDEX, re.MULTILINE)
    titles = [(page.read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# "), page.name) for page in PAGES]
    assert Counter(listed) == Counter(titles)
    assert {f"decisions/{page.name}" for page in PAGES} <= {*links(INDEX)}


def test_the_decisions_can_be_read_at_one_sitting() -> None:
    assert sum(len(text.split()) for text in (INDEX, *(page.read_text(encoding="utf-8") for page in PAGES))) <= (
        MOST_WORDS_OF_ALL
    )


def test_each_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    groups = project["dependency-groups"].values()
    declared = [
        each
        for group in (project["project"]["dependencies"], *extras, *groups)
        for each in group
        if isinstance(each, str)
    ]
    names = {re.split(r"[^\w-]", each, maxsplit=1)[0] for each in declared}
    rows = "\n".join(re.findall(r"^\| (`.+?) \|", INDEX, re.MULTILINE))
    assert {*re.findall(r"`([\w-]+)`", rows)} == names
