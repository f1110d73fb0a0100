"""Changes of objects in a test."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ruleop.authoring.ruletests.case_cluster import overlaid
from ruleop.authoring.ruletests.results import mismatches
from ruleop.kubernetes.builtin.table import builtin_shape
from ruleop.kubernetes.kinds import Kind
from ruleop.language.templates import read_yaml, yaml_document

SCALARS = st.none() | st.booleans() | st.integers(-1000, 1000) | st.text("ab:- \n#", max_size=5)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


def test_items_are_changed_by_their_keys() -> None:
    shape = builtin_shape(Kind("", "v1", "Service"))
    assert shape is not None
    before = {"spec": {"ports": [{"port": 80, "name": "web"}, {"port": 53, "protocol": "UDP"}], "selector": {"a": "b"}}}
    patch = {"spec": {"ports": [{"port": 80, "targetPort": 8080}, {"port": 443}], "selector": {"a": None}}}
    assert overlaid(before, patch, shape) == {
        "spec": {
            "ports": [{"port": 80, "name": "web", "targetPort": 8080}, {"port": 53, "protocol": "UDP"}, {"port": 443}],
            "selector": {},
        }
    }


@given(OBJECTS, OBJECTS)
def test_nothing_that_is_given_is_changed(before: dict[str, object], patch: dict[str, object]) -> None:
    copies = repr(before), repr(patch)
    overlaid(before, patch)
    assert (repr(before), repr(patch)) == copies


@given(OBJECTS)
def test_every_object_matches_itself(obj: dict[str, object]) -> None:
    documents, mistakes = read_yaml(yaml_document(obj), "a")
    assert mistakes == []
    for expected in documents:
        found = _without_nulls(obj)
        assert list(mismatches(expected, found)) == []


def _without_nulls(value: object) -> object:
    """The value as a template renders it: without members that are null."""
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
