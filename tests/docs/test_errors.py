"""docs/reference/errors.md has an entry for every message in the source."""

from __future__ import annotations

import html
import re

import pytest

from tests.docs.messages import ROOMS, ROOT, Message, complaints, constants, messages

PAGE = ROOT / "docs" / "reference" / "errors.md"


def plain(text: str) -> str:
    """Text without what Markdown adds, so that a message and its entry compare."""
    text = html.unescape(text.replace("`", "").replace("\\|", "|").replace("**", ""))
    return re.sub(r"\s+", " ", text).strip()


ENTRIES = plain(PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("room", ROOMS)
def test_every_message_has_an_entry(room: str) -> None:
    missing = [message for message in messages((room,)) if plain(message.telling) not in ENTRIES]
    assert missing == [], _missing_entries(missing)


def _missing_entries(missing: list[Message]) -> str:
    lines = "\n".join(f"  {message}\n    looked for: {plain(message.telling)}" for message in missing)
    return f"docs/reference/errors.md has no entry for these messages; add one for each, with its words:\n{lines}"


def test_messages_are_found_through_names_and_functions_of_their_module() -> None:
    found = {message.telling for message in messages(("core/rules",))}
    assert "set `reach: cluster` in the watch to allow that" in found  # a constant of the module
    assert ", which requires" in " ".join(found)  # what a constraint returns


def test_every_row_of_the_page_has_two_cells() -> None:
    rows = [
        line
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and not line.startswith("| message")
    ]
    assert [row for row in rows if not re.fullmatch(r"\|(?:[^|]|\\\|)+\|(?:[^|]|\\\|)*\|", row)] == []


@pytest.mark.slow
def test_every_entry_belongs_to_a_message() -> None:
    """The source contains some words of an entry in their order; the rest is filled in. So an entry whose message was
    removed is found."""
    source = plain("\n".join(constants()))
    gone = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cell = re.split(r"(?<!\\)\|", line)[1] if line.startswith("| `") else ""
        for _, span in re.findall(r"(`{1,2})(.+?)\1(?!`)", cell):
            words = plain(span).split(" ")
            runs = [" ".join(words[number : number + 2]) for number in range(len(words) - 1)]
            if runs and not any(run in source for run in runs):
                gone.append(span)
    assert gone == [], "docs/reference/errors.md has entries of messages that the source does not have"


def test_every_warning_and_error_of_the_log_has_an_entry() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [event for event in complaints() if f"`{event}`" not in text] == []
