"""The pictures of the documentation are what the commands show today: `make pictures` makes them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from bench.pictures import FOLDER, PICTURES
from tests.docs.messages import ROOT

STILL = ["check.svg", "graph.svg", "loading.svg"]
"""Pictures that need no cluster in memory."""


@pytest.mark.parametrize(
    "name", [name if name in STILL else pytest.param(name, marks=pytest.mark.slow) for name in PICTURES]
)
def test_a_picture_is_current(name: str) -> None:
    assert PICTURES[name]() == (FOLDER / name).read_text(), "run `make pictures`"


def test_each_picture_is_shown_and_each_that_is_shown_exists() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {name for page in pages for name in re.findall(r"!\[[^\]]+\]\([^)]*pictures/([^)]+)\)", page.read_text())}
    of_page = {f"page/{file.name}" for file in (FOLDER / "page").iterdir()}
    assert shown == set(PICTURES) | of_page
    assert set(PICTURES) == {file.name for file in FOLDER.iterdir() if file.is_file()}


@pytest.mark.parametrize("name", sorted(file.name for file in (FOLDER / "page").iterdir()))
def test_a_picture_of_the_page_is_small(name: str) -> None:
    """`make pictures` takes them in a browser. The film has several frames."""
    data = (FOLDER / "page" / name).read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) < (600_000 if name == "film.png" else 150_000)


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_xml_that_loads_nothing(name: str) -> None:
    text = (FOLDER / name).read_text()
    ET.fromstring(text)  # noqa: S314 - of this project
    assert "url(" not in text.replace("url(#", "")
    assert not re.search(r"(?:href|src)=", text)
