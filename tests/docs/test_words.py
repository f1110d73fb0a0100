"""No string, comment, name or page of ruleop, and no name, docstring or comment of a test, uses a word to avoid
(tests/docs/words.py)."""

from __future__ import annotations

import re

import pytest

from tests.docs.messages import ROOT
from tests.docs.words import (
    MARKS,
    TEST_NAMES,
    Text,
    headless_docstrings,
    hits,
    hits_in_names_of_tests,
    may_have_hits,
    name_hits,
    names,
    names_of_tests,
    page,
    prose,
    strings,
)

TESTS = [file.relative_to(ROOT).as_posix() for file in sorted((ROOT / "tests").rglob("*.py"))]
BENCHMARKS = [file.relative_to(ROOT).as_posix() for file in sorted((ROOT / "bench").rglob("*.py"))]
MODULES = [file.relative_to(ROOT).as_posix() for file in sorted((ROOT / "ruleop").rglob("*.py"))]
PAGES = [
    file.relative_to(ROOT).as_posix()
    for pattern in (
        *("*.md", "docs/**/*.md", "requirements/*.md", "tests/controlplane/*.md"),
        *("ruleop/**/*.md", "examples/**/*.md", "examples/**/*.yaml", "examples/**/*.j2"),
        *("Makefile", "Dockerfile", "image/*", ".ci/*"),
    )
    for file in sorted(ROOT.glob(pattern))
]


# The cluster in memory answers in the words of the real API server, and contract tests compare them.
MESSAGES = {file for file in MODULES if not file.startswith("ruleop/localcluster/")}


def read(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("file", MODULES)
def test_a_module_uses_no_word_to_avoid(file: str) -> None:
    """Its messages, its docstrings and comments, and the names that it defines."""
    source = read(file)
    found = [*name_hits(names(source), file), *headless_docstrings(source, file)]
    if may_have_hits(source):
        found += hits(prose(source), file)
    if file in MESSAGES:
        found += hits(strings(source), file)
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("file", PAGES)
def test_a_page_uses_no_word_to_avoid(file: str) -> None:
    found = [str(hit) for hit in hits(page(read(file)), file)]
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_docstrings_and_comments_of_tests_and_benchmarks_use_no_word_to_avoid() -> None:
    found = [
        str(hit)
        for file in (*TESTS, *BENCHMARKS)
        if may_have_hits(source := read(file))
        for hit in hits(prose(source), file)
    ]
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_names_of_tests_are_sentences_without_a_word_to_avoid() -> None:
    found = [str(hit) for file in TESTS for hit in hits_in_names_of_tests(names_of_tests(read(file)), file)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("the name is no text", ["is no text"]),
        ("what others change is put back, again and again", ["put back", "again and again"]),
        ("there is no room for it", ["no room"]),
        ("an object in the\nway goes on", ["in the way", "goes on"]),
        ("there is no file, and it is no longer watched", []),
        ("the object is not a string; the watch resumed", []),
        ("golden, untold, fightless", []),
    ],
)
def test_marks_are_found_as_words(text: str, marks: list[str]) -> None:
    assert [hit.found for hit in hits(iter([Text(1, text)]), "a.py")] == marks


def test_a_hit_names_file_line_mark_and_the_better_word() -> None:
    (hit,) = hits(iter([Text(7, "first line\nthe inventory forgets")]), "ruleop/a.py")
    assert str(hit) == "ruleop/a.py:8: 'forgets': removed (from the inventory, the cache)"


SOURCE = '''"""A module that forgets."""

def told(name):
    """What is told."""
    # A comment that is cut
    # in two: fights.
    log.info("watch goes on", who=f"{name} is no text")  # undone
'''


def test_strings_are_distinguished_from_docstrings_and_comments() -> None:
    assert [(hit.place, hit.found) for hit in hits(strings(SOURCE), "a")] == [("a:7", "goes on"), ("a:7", "is no text")]
    assert [(hit.place, hit.found) for hit in hits(prose(SOURCE), "a")] == [
        ("a:1", "forgets"),
        ("a:4", "told"),
        ("a:6", "fights"),
        ("a:7", "undone"),
    ]


def test_headless_docstrings_of_modules_classes_functions_and_constants_are_found() -> None:
    source = '''"""Why there are names."""

class Name:
    """What a child is called."""

    def is_valid(self):
        """Whether it is valid."""

    async def length(self):
        """
        How long it is."""

MOST = 63
"""Which lengths are valid."""

TEXT = "Who asks"  # What a user sees
'''
    assert {(hit.place, hit.found) for hit in headless_docstrings(source, "a")} == {
        ("a:1", "Why"),
        ("a:4", "What"),
        ("a:10", "How"),
        ("a:14", "Which"),
    }


def test_a_word_to_avoid_is_found_across_the_lines_of_a_comment() -> None:
    assert may_have_hits("# A line that goes\n    # on.\n")
    assert not may_have_hits("# A comment.\nx = 1\n")


def test_names_are_found_by_their_words() -> None:
    source = "class Fights:\n    def lookup(self, was_told):\n        self.untold = 1\n        golden = 2\n"
    assert [(hit.place, hit.found) for hit in name_hits(names(source), "a")] == [
        ("a:1", "Fights"),
        ("a:2", "was_told"),
    ]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("what_is_no_server_is_told", ["is no server", "told", "what is no server is told"]),
        ("who_was_refused_waits", ["who was refused waits"]),
        ("of_two_versions_the_served_one_is_created", ["of two versions the served one is created"]),
        ("it_asks_again", ["it asks again"]),
        ("one_that_needs_itself_is_an_error", ["one that needs itself is an error"]),
        ("oidc", ["oidc"]),
        ("service_account", ["service account"]),
        ("drift_is_reverted", []),
        ("one_event_covers_all_objects", []),
        ("items_of_a_list_are_sorted_whatever_their_order", []),
    ],
)
def test_headless_and_short_names_of_tests_are_found(name: str, found: list[str]) -> None:
    texts = names_of_tests(f"class A:\n    async def test_{name}(self):\n        pass\n")
    assert {(hit.place, hit.found) for hit in hits_in_names_of_tests(texts, "a.py")} == {
        ("a.py:2", each) for each in found
    }


def test_quoted_messages_and_code_blocks_of_a_page_are_left_out() -> None:
    text = "# Page\n\n`watch goes on` says that\nit goes on.\n\n```\nfights\n```\n\nfights\n"
    assert [str(hit) for hit in hits(page(text), "p.md")] == [
        "p.md:4: 'goes on': continues, resumes, keeps running",
        "p.md:10: 'fights': field conflict",
    ]


def test_every_mark_has_a_pattern_and_a_better_word() -> None:
    assert [mark for mark in (*MARKS, *TEST_NAMES) if not mark.instead or not re.compile(mark.pattern)] == []
