"""docs/tutorial.md works as it is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.reader import Reader, blocks

BLOCKS = blocks("tutorial.md")


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    found = Reader(tmp_path)
    yield found
    found.stop()


@pytest.mark.slow
def test_the_tutorial_works_as_it_is_written(reader: Reader) -> None:
    for block in BLOCKS:
        reader.follow(block)


def test_every_block_of_the_tutorial_is_a_file_a_change_or_commands() -> None:
    known = {"", "needs kubectl", "in the background"}
    assert [
        block.mark for block in BLOCKS if not (block.mark in known or block.change or block.mark.startswith("file "))
    ] == []
    assert [block.text for block in BLOCKS if not block.mark and block.language != "console"] == []
    assert sum(block.language == "console" for block in BLOCKS) > 20


def test_a_part_of_a_file_that_the_tutorial_shows_is_in_it() -> None:
    for block in BLOCKS:
        if block.change and block.change["word"] == "edit":
            new = block.change["new"].replace("\\n", "\n").split("\n")
            assert set(new) & set(block.text.split("\n")), block.mark
