"""Names of which parts are unknown."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from ruleop.authoring.checking.known_names import KnownName, UnknownName, can_be, may_be, text_of
from tests.authoring.checking.projects import said
from tests.language.rules.projects import watch

UNKNOWN = st.builds(UnknownName, st.sampled_from(["", "spec.a", "spec.b"]))
PARTS = st.lists(UNKNOWN | st.text("ab", max_size=3), min_size=1, max_size=6).map(tuple)


@given(PARTS, st.text("ab", max_size=8))
def test_an_unknown_part_may_be_any_text(name: KnownName, text: str) -> None:
    pattern = "".join(part if isinstance(part, str) else ".*" for part in name)
    assert may_be(name, (text,)) is bool(re.fullmatch(pattern, text))


@given(PARTS)
def test_a_name_that_is_known_as_a_whole_may_be_its_text_only(name: KnownName) -> None:
    text = text_of(name)
    if any(isinstance(part, UnknownName) for part in name):
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


@given(PARTS, PARTS)
def test_whether_two_names_may_be_equal_has_no_direction(one: KnownName, other: KnownName) -> None:
    assert may_be(one, one)
    assert may_be(one, other) is may_be(other, one)


@given(PARTS, PARTS, st.text("ab", max_size=3))
def test_a_common_beginning_or_end_does_not_count(one: KnownName, other: KnownName, text: str) -> None:
    same = (text, UnknownName("spec.c"))
    assert may_be((*same, *one), (*same, *other)) is may_be(one, other)
    assert may_be((*one, *same), (*other, *same)) is may_be(one, other)


@given(PARTS, PARTS, st.fixed_dictionaries({"spec.a": st.text("ab", max_size=2), "spec.b": st.text("ab", max_size=2)}))
def test_names_that_are_equal_for_some_values_may_be_equal(
    one: KnownName, other: KnownName, values: dict[str, str]
) -> None:
    texts = [
        "".join(part if isinstance(part, str) else values.get(part.expression, "") for part in name)
        for name in (one, other)
    ]
    if texts[0] == texts[1]:
        assert may_be(one, other)
        assert can_be(one, other)


def test_the_name_of_a_resource_may_be_a_constant_for_some_resource_only() -> None:
    of_cr: KnownName = ("{{ metadata.name }}", "-web")
    assert not may_be(of_cr, ("blog-web",))
    assert can_be(of_cr, ("blog-web",))
    assert not can_be(of_cr, ("blog-db",))
    assert not can_be(of_cr, of_cr[:1])
