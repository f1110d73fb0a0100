"""Names of which parts are unknown."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from ruleop.authoring.checking.known_names import KnownName, Unknown, may_be, text_of
from tests.checking.projects import said
from tests.rules.projects import watch

UNKNOWN = st.builds(Unknown, st.sampled_from(["", "spec.a", "spec.b"]))
PARTS = st.lists(UNKNOWN | st.text("ab", max_size=3), min_size=1, max_size=6).map(tuple)


@given(PARTS, st.text("ab", max_size=8))
def test_an_unknown_part_may_be_any_text(name: KnownName, text: str) -> None:
    pattern = "".join(part if isinstance(part, str) else ".*" for part in name)
    assert may_be(name, (text,)) is bool(re.fullmatch(pattern, text))


@given(PARTS)
def test_a_name_that_is_known_as_a_whole_may_be_its_text_only(name: KnownName) -> None:
    text = text_of(name)
    if any(isinstance(part, Unknown) for part in name):
        assert text == ""
    else:
        assert may_be(name, (text,))
        assert not may_be(name, (text + "a",))


def test_a_name_of_very_many_parts_is_unknown() -> None:
    lets = "let:\n  n0: '{{ metadata.name }}'\n" + "".join(
        f"  n{number}: '{20 * f'{{{{ n{number - 1} }}}}'}'\n" for number in range(1, 20)
    )
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: '{{ metadata.name }}'}\nspec:\n"
        "  containers:\n    - name: a\n      image: b:1\n      envFrom:\n"
        "        - configMapRef: {name: '{{ n19 }}'}\n"
    )
    found = said(watch(f"{lets}children: {{a: {{template: a.yaml}}}}"), {"templates/a.yaml": text})
    assert [each for each in found if each.startswith("RO507")] == []
