"""Copies of values of Secrets are recognised; in texts they are replaced, the longest first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ruleop.language.secrets.masks import Masks
from ruleop.language.secrets.secret_values import DISTINCT, encoded, longest_first, replaced, secret_values


def test_copies_of_a_value_are_recognised_by_any_of_its_forms() -> None:
    plain = '{"user": "app-user", "password": "hunter22"}'
    stored, lines = encoded(plain), "user: someone\npassword: 'hunter23'\n"
    found = set(secret_values({"data": {"v": stored}, "stringData": {"w": lines}}))
    assert found >= {stored, encoded(stored), plain, "app-user", "hunter22"}
    assert found >= {encoded(lines), lines, lines.strip(), "user: someone", "someone", "hunter23"}


@given(
    texts=st.lists(st.text("abcd", max_size=12)), known=st.sets(st.text("abcd", min_size=1, max_size=12), max_size=6)
)
def test_known_texts_are_nowhere_in_what_is_shown(texts: list[str], known: set[str]) -> None:
    shown = Masks(values=frozenset(known)).text("-".join(texts))
    assert not any(each in shown for each in known if len(each) >= DISTINCT)


def test_the_longest_known_text_is_replaced_first() -> None:
    words = longest_first({"abcdefgh": "1", "abcdefghij": "2", "short": "3"})
    assert replaced("x-abcdefghij-abcdefgh-short", words) == "x-2-1-short"
