"""The pictures of the documentation are what the commands show today: `make pictures` makes them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from bench.pictures import FOLDER, PICTURES
from tests.docs.messages import ROOT

STILL = ["check.svg", "graph.svg"]
"""Pictures that need no cluster in memory."""


@pytest.mark.parametrize(
    "name", [name if name in STILL else pytest.param(name, marks=pytest.mark.slow) for name in PICTURES]
)
def test_a_picture_is_current(name: str) -> None:
    assert PICTURES[name]() == (FOLDER / name).read_text(), "run `make pictures`"


def test_each_picture_is_shown_and_each_that_is_shown_exists() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {name for page in pages for name in re.findall(r"!\[[^\]]+\]\([^)]*pictures/([^)]+)\)", page.read_text())}
    assert shown == set(PICTURES) == {file.name for file in FOLDER.iterdir()}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_xml_that_loads_nothing(name: str) -> None:
    text = (FOLDER / name).read_text()
    ET.fromstring(text)  # noqa: S314 - of this project
    assert "url(" not in text.replace("url(#", "")
    assert not re.search(r"(?:href|src)=", text)
