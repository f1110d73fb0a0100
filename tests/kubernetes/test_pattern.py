"""Patterns match as in the API server, compared with RE2's own Python binding."""

from __future__ import annotations

import pytest
import re2

from ruleop.kubernetes.schema.validation import compile_pattern
from ruleop.patterns import InvalidPatternError

TEXTS = [
    "", "a", "A", "abc", "abc\n", "\nabc", "a-b", "a.b.example.com", "-a", "0", "12", "1Gi", "500m", "a b", "a\tb", "ä", "٣", "x{,5}", "xxxxx", "aaa",
    "a]b", "[", "]", "&", "~", "|", "\\", "{", "}", "k", "\v", "a\x00", "😀", "$", "^", "foo_bar", "10.0.0.1/24", "K",
]  # fmt: skip


@pytest.mark.parametrize(
    "pattern",
    [
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$",
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        r"^(?:[0-9]{1,3}\.){3}[0-9]{1,3}(/\d+)?$",
        r"abc$",
        r"\Aabc\z",
        r"^\w+$",
        r"^\W+$",
        r"^\d+$",
        r"\s",
        r"\S",
        r"^\S$",
        r"a\sb",
        r"[\s]",
        r"^[^\s]$",
        r"[[:alpha:]]",
        r"^[[:upper:]_[:digit:]]+$",
        r"[[:punct:]]",
        r"[^[:alnum:]]",
        r"^[[:word:]]$",
        r"[]a]",
        r"[^]a]",
        r"[[]",
        r"[&~|]",
        r"[a&&b]",
        r"[\]\\]",
        r"[\x61-\x63]",
        r"\x61",
        r"\x{1F600}",
        r"\x{10FFFF}",
        r"x{,5}",
        r"x{2}",
        r"x{2,3}?",
        r"^a{2,}$",
        r"{",
        r"a{",
        r"}",
        r"(?i)ABC",
        r"(?i:A)bc",
        r"(?s)a.",
        r"a.c",
        r"(?P<name>a)",
        r"(?<name>a)",
        r"a|b|",
        r"()",
        r"\.",
        r"\$",
        r"\/",
        r"\b",
        r"\bb",
        r"\v",
        r"[\v]",
        r"a*?b",
        r"",
    ],
)  # fmt: skip
def test_a_pattern_matches_as_in_re2(pattern: str):
    matches = compile_pattern(pattern)
    witness = re2.compile(pattern)
    assert {text for text in TEXTS if matches(text)} == {text for text in TEXTS if witness.search(text)}


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (r"^\pL$", {"a", "A", "ä", "k", "K"}),
        (r"a(?i)B", {"abc", "abc\n", "\nabc"}),
        (r"(?m)^abc$", {"abc", "abc\n", "\nabc"}),
        (r"^[^\S]$", set()),
        (r"^[[:^alpha:]]$", {"0", "]", "[", "&", "~", "|", "\\", "{", "}", "\v", "٣", "😀", "$", "^", "ä"}),
        (r"\Qa.b\E", {"a.b.example.com"}),
    ],
)
def test_re2_syntax_is_supported(pattern: str, found: set[str]):
    matches = compile_pattern(pattern)
    assert {text for text in TEXTS if matches(text)} == found


def test_the_time_of_a_match_is_linear_in_the_text():
    """In Python's own engine this one doubles with each letter."""
    assert not compile_pattern(r"^(a+)+$")("a" * 100_000 + "b")


def test_an_unpaired_surrogate_matches_no_pattern():
    assert not compile_pattern(".*")("\ud83d")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"(?=a)b", "invalid perl operator"),
        (r"(?!a)b", "invalid perl operator"),
        (r"(?<=a)b", "invalid perl operator"),
        (r"(?<!a)b", "invalid perl operator"),
        (r"(?>a)b", "invalid perl operator"),
        (r"(a)\1", "invalid escape sequence"),
        (r"a++", "bad repetition operator"),
        (r"a**", "bad repetition operator"),
        (r"a{2}{3}", "bad repetition operator"),
        (r"a{1001}", "invalid repetition size"),
        (r"a{1,1001}", "invalid repetition size"),
        (r"(a", "missing"),
        (r"[a", "missing"),
        (r"a)", "unexpected"),
        ("a\\", "trailing"),
        (r"[[:letters:]]", "invalid character class range"),
        (r"*a", "no argument for repetition operator"),
        (r"\x{110000}", "invalid escape sequence"),
        (r"[z-a]", "invalid character class range"),
    ],
)
def test_a_pattern_that_re2_refuses_is_refused_with_a_reason(pattern: str, reason: str):
    with pytest.raises(InvalidPatternError, match=reason):
        compile_pattern(pattern)
    options = re2.Options()
    options.log_errors = False
    with pytest.raises(re2.error):
        re2.compile(pattern, options)
