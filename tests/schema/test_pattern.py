"""Patterns mean here what they mean to the API server. RE2's own Python binding is the witness."""

from __future__ import annotations

import pytest
import re2

from ruleop.schema.pattern import InvalidPatternError, compile_pattern

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
def test_a_pattern_finds_what_the_server_finds(pattern: str):
    matches = compile_pattern(pattern)
    assert matches is not None
    witness = re2.compile(pattern)
    assert {text for text in TEXTS if matches(text)} == {text for text in TEXTS if witness.search(text)}


@pytest.mark.parametrize("pattern", [r"\pL", r"\p{Greek}", r"[\pL]", r"[^\S]", r"a(?i)b", r"(?m)^a$", r"(?U)a+", r"(?-s:.)", r"[a--z]", r"[[:^alpha:]]", r"\Qa.b\E", r"\C", r"\x", r"\0", r"[\b]"])  # fmt: skip
def test_what_is_not_surely_the_same_is_left_to_the_server(pattern: str):
    assert compile_pattern(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"(?=a)b", "look-around"),
        (r"(?!a)b", "look-around"),
        (r"(?<=a)b", "look-around"),
        (r"(?<!a)b", "look-around"),
        (r"(?>a)b", "look-around"),
        (r"(a)\1", "refers back"),
        (r"a++", "repeats a repeat"),
        (r"a**", "repeats a repeat"),
        (r"a{2}{3}", "repeats a repeat"),
        (r"a{1001}", "more than 1000"),
        (r"a{1,1001}", "more than 1000"),
        (r"(a", "unterminated"),
        (r"[a", "unterminated"),
        (r"a)", "unbalanced"),
        ("a\\", "lone backslash"),
        (r"[[:letters:]]", "not a class"),
        (r"*a", "nothing to repeat"),
        (r"\x{110000}", "beyond Unicode"),
        (r"[z-a]", "bad character range"),
    ],
)
def test_what_the_server_refuses_is_refused_with_a_reason(pattern: str, reason: str):
    with pytest.raises(InvalidPatternError, match=reason):
        compile_pattern(pattern)
    options = re2.Options()
    options.log_errors = False
    with pytest.raises(re2.error):
        re2.compile(pattern, options)
