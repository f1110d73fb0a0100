"""Pages are wrapped at 120 columns, so that they read well in an editor and differ by few lines after an edit."""

from __future__ import annotations

import re

import pytest

from tests.docs.messages import ROOT

WIDTH = 120
PAGES = [
    file.relative_to(ROOT).as_posix()
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "ruleop/**/*.md",
        "examples/**/*.md",
        "requirements/*.md",
        "tests/controlplane/*.md",
    )
    for file in sorted(ROOT.glob(pattern))
]


def long_lines(text: str) -> list[int]:
    """The numbers of lines that can be wrapped. Tables, code blocks, headings, directives of tests and long links
    cannot."""
    text = re.sub(
        r"^( *)```.*?^ *```$", lambda match: "\n" * match.group().count("\n"), text, flags=re.MULTILINE | re.DOTALL
    )
    return [
        number
        for number, line in enumerate(text.split("\n"), 1)
        if len(line) > WIDTH
        and not line.startswith(("|", "#", "    ", "<!--"))
        and " " in re.sub(r"\[.*?\]\(.*?\)", "", line.strip(" -"))
    ]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_wrapped_at_120_columns(page: str) -> None:
    assert long_lines((ROOT / page).read_text(encoding="utf-8")) == []


def test_long_lines_are_found_outside_of_tables_code_and_links() -> None:
    long = "word " * 30
    assert long_lines(f"short\n{long}\n") == [2]
    assert long_lines(f"```\n{long}\n```\n\n{long}\n") == [5]
    assert long_lines(f"| {long} |\n# {long}\n- [{long}](page.md)\n") == []
