"""The live tree of `ruleop dev` is painted over, whatever its lines hold."""

from __future__ import annotations

import io
import os
import re
import shutil
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.authoring.report.spans import Span, Tone
from ruleop.cli.terminal import Picture

WIDTH, HEIGHT = 20, 8


def screen(written: str) -> list[str]:
    """The rows of a terminal that wraps at its width. Its history is not kept: a picture that scrolls is not found."""
    rows, cells = [""], [0]
    for part in re.split(r"(\x1b\[[0-9;]*[A-Za-z]|\n)", written):
        if part.startswith("\x1b["):
            if part.endswith("F"):
                up = int(part[2:-1])
                assert up < HEIGHT, "it was still on the screen"
                del rows[len(rows) - up :], cells[len(cells) - up :]
                rows[-1], cells[-1] = "", 0
        elif part == "\n":
            rows.append("")
            cells.append(0)
        else:
            for character in part:
                wide = 2 if unicodedata.east_asian_width(character) in "WF" else 1
                if cells[-1] + wide > WIDTH:
                    rows.append("")
                    cells.append(0)
                rows[-1] += character
                cells[-1] += wide
    return rows[:-1]


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    monkeypatch.setattr(shutil, "get_terminal_size", lambda *_, **__: os.terminal_size((WIDTH, HEIGHT)))


def line(text):
    return (Span(text[:5], Tone.TITLE), Span(text[5:], Tone.PLAIN))


def painted(*pictures, above=()):
    stream = io.StringIO()
    picture = Picture(stream)
    for number, texts in enumerate(pictures):
        picture.paint([line(each) for each in texts])
        if number == 0 and above:
            picture.print_above([line(each) for each in above])
    return screen(stream.getvalue())


def test_a_picture_replaces_the_one_before():
    assert painted(["one", "two", "three"], ["four"]) == ["four"]
    assert painted([], ["one"]) == ["one"]
    assert painted(["one"], []) == []


def test_lines_that_wrap_are_replaced_as_a_whole():
    assert painted(["x" * 45, "y"], ["z"]) == ["z"]
    assert painted(["\N{CJK UNIFIED IDEOGRAPH-4E00}" * 15], ["z"]) == ["z"]


def test_a_line_that_ends_with_a_control_character_is_replaced_as_a_whole():
    assert painted(["0" * 19 + "\x0c"], ["z"]) == ["z"]


def test_lines_above_stay():
    assert painted(["one"], ["two"], above=["Warning: a", "Warning: b"]) == ["Warning: a", "Warning: b", "two"]


def test_a_picture_that_is_taller_than_the_terminal_ends_with_the_number_of_lines_left():
    assert painted([str(each) for each in range(20)]) == ["0", "1", "2", "3", "4", "5", "... 14 more lines"]
    assert painted([str(each) for each in range(20)], ["z"]) == ["z"]


TEXTS = st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["M"]), max_size=70), max_size=12)


@given(TEXTS, TEXTS)
def test_nothing_is_left_of_any_picture(first, second):
    assert painted(first, second) == painted(second)
