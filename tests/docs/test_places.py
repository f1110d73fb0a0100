"""Files and folders that the pages name exist: a reader goes where a page sends them."""

from __future__ import annotations

import re

import pytest

from tests.docs.messages import ROOT

WINGS = sorted((ROOT / "ruleop").glob("*/README.md"))
PAGES = [
    *sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")]),
    *WINGS,
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_paths_on_a_page_exist(page):
    named = re.findall(r"`((?:ruleop|tests|bench)/[\w./-]*)`", page.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []


def ends(folder: str) -> list[str]:
    parts = ["ruleop", *folder.split("/")]
    return ["/".join(parts[number:]) for number in range(len(parts))]


@pytest.mark.parametrize("page", WINGS, ids=lambda page: page.parent.name)
def test_rooms_that_the_page_of_a_wing_names_exist(page):
    rooms = [
        name
        for row in re.findall(r"^\| (`.*?`) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
        for name in row.split(", ")
    ]
    assert len(rooms) > 2
    assert [room for room in rooms if not (page.parent / room.strip("`")).exists()] == []


def test_the_pages_of_the_wings_name_every_folder_of_the_package():
    text = "".join(page.read_text(encoding="utf-8") for page in [ROOT / "CONTRIBUTING.md", *WINGS])
    folders = {file.parent.relative_to(ROOT / "ruleop").as_posix() for file in (ROOT / "ruleop").rglob("*.py")} - {"."}
    inner = {folder for folder in folders if any(other.startswith(f"{folder}/") for other in folders)}
    missing = [folder for folder in sorted(folders - inner) if not any(f"`{end}/`" in text for end in ends(folder))]
    assert missing == []


def test_pages_that_the_source_names_exist():
    """In comments, messages, remedies of alerts."""
    files = [file for folder in ("ruleop", "bench") for file in sorted((ROOT / folder).rglob("*.py"))]
    named = {
        (name, file.relative_to(ROOT).as_posix())
        for file in files
        for name in re.findall(r"\b(?:docs|reference)/[\w/-]+\.md", file.read_text(encoding="utf-8"))
    }
    missing = {each for each in named if not any((base / each[0]).exists() for base in (ROOT, ROOT / "docs"))}
    assert missing == set()
