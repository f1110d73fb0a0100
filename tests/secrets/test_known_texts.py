"""Copies of values of Secrets are recognised; in texts they are replaced as by a pattern, the longest first."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from ruleop.core.secrets.secret_values import DISTINCT, KnownTexts, encoded, secret_values

LETTERS = st.text("ab\udc80", max_size=30)


def test_copies_of_a_value_are_recognised_by_any_of_its_forms() -> None:
    plain = '{"user": "app-user", "password": "hunter22"}'
    stored, lines = encoded(plain), "user: someone\npassword: 'hunter23'\n"
    found = set(secret_values({"data": {"v": stored}, "stringData": {"w": lines}}))
    assert found >= {stored, encoded(stored), plain, "app-user", "hunter22"}
    assert found >= {encoded(lines), lines, lines.strip(), "user: someone", "someone", "hunter23"}


@given(text=LETTERS, known=st.sets(st.text("ab\udc80", max_size=14), max_size=6))
def test_known_texts_are_replaced_as_by_a_pattern(text: str, known: set[str]) -> None:
    distinct = sorted((each for each in known if len(each) >= DISTINCT), key=lambda each: (-len(each), each))
    expected = re.sub("|".join(map(re.escape, distinct)), lambda found: f"<{found[0]}>", text) if distinct else text
    assert KnownTexts(known).replaced(text, lambda found: f"<{found}>") == expected


def test_only_the_texts_that_begin_alike_are_compared_at_a_character(monkeypatch) -> None:
    known = KnownTexts(f"{number:08}-value" for number in range(5000))
    assert max(map(len, known._by_start.values())) == 1
    assert known.replaced("x" * 100_000 + "00000007-value", lambda _: "***") == "x" * 100_000 + "***"
