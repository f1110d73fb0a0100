"""Tables of validation: the paths of values, the words of rules, and the places of errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from ruleop.kubernetes.builtin.builtin_types import served_resources, typed_shape
from ruleop.kubernetes.schema.shape import Shape
from ruleop.kubernetes.validation.field_errors import required
from ruleop.kubernetes.validation.rules import Rows, changed, frozen, invalid, new, remembered, table, unique
from ruleop.kubernetes.validation.validators import VALIDATORS
from ruleop.kubernetes.validation.workloads import DEPLOYMENT_FIELDS, REPLICA_SET_FIELDS

TABLES = {
    **{kind: each.rows for kind, each in VALIDATORS.items()},
    ("apps", "Deployment"): DEPLOYMENT_FIELDS,
    ("apps", "ReplicaSet"): REPLICA_SET_FIELDS,
}
KINDS = {(each.kind.group, each.kind.kind): each.kind for each in reversed(served_resources())}


def fields(rows: Rows, value: Any, old: Any = None) -> list[str]:
    """The fields of the errors of a value."""
    return [error.field for error in table(rows)(value, old)]


def messages(rows: Rows, value: Any) -> list[tuple[str, str]]:
    return [(error.reason, error.message) for error in table(rows)(value, None)]


def absent(rows: Rows, shape: Shape | None) -> Iterator[str]:
    """The paths of a table that a shape does not have."""
    if isinstance(rows, tuple):
        for each in rows:
            yield from absent(each, shape)
    elif isinstance(rows, Mapping):
        for key, below in rows.items():
            if not isinstance(key, str) or key.startswith("if "):
                yield from absent(below, shape)
                continue
            for path in f" {key}".partition(" if ")[0].split():
                inner = shape
                for step in path.split("."):
                    if inner is not None and (name := step.rstrip("![]")):
                        inner = inner.fields.get(name)
                    if inner is not None and step.endswith("[]"):
                        inner = inner.items
                if inner is None:
                    yield path
                yield from absent(below, inner)


@pytest.mark.parametrize("kind", TABLES, ids="/".join)
def test_each_path_of_a_table_is_a_field_of_its_kind(kind: tuple[str, str]) -> None:
    shape = typed_shape(KINDS[kind])
    assert shape is not None
    assert list(absent(TABLES[kind], shape)) == []


def test_a_path_leads_through_lists_and_errors_have_indices() -> None:
    rows: Rows = {"spec.ports[]": {"name": "label"}}
    assert fields(rows, {"spec": {"ports": [{"name": "a"}, {"name": "A"}]}}) == ["spec.ports[1].name"]


def test_two_paths_share_rules() -> None:
    assert fields({"a b.c": "needed"}, {"b": {}}) == ["a", "b.c"]


def test_a_missing_part_is_checked_only_if_its_path_asks_for_it() -> None:
    assert fields({"spec.name": "needed"}, {}) == []
    assert fields({"spec!.name": "needed"}, {}) == ["spec.name"]


def test_a_missing_value_is_valid_but_for_rules_that_need_it() -> None:
    assert fields({"a": "label", "b": "A|B", "c": "1..3", "d": "port"}, {}) == []
    assert fields({"a": "given-label", "b": "A|B!", "c": "1..3!", "d": "port-or-name"}, {}) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("word", "valid", "invalid"),
    [
        ("A|B", "A", "C"),
        ("|A|B", "", "C"),
        ("0..", 0, -1),
        ("1..10", 10, 11),
        ("amount", "120%", "x%"),
        ("part", "100%", "120%"),
        ("port", 0, 70000),
        ("port-or-name", "http", 0),
        ("mode", 0o777, 0o1000),
        ("needed segment", "a", ".."),
        ("address", "10.0.0.1", "10.0.0"),
        ("selector", {"matchLabels": {"a": "b"}}, {"matchLabels": {"a b": "c"}}),
    ],
)
def test_a_word_is_a_rule(word: str, valid: Any, invalid: Any) -> None:
    assert fields({"a": word}, {"a": valid}) == []
    assert len(fields({"a": word}, {"a": invalid})) == 1


def test_an_item_with_the_key_of_an_earlier_one_is_a_duplicate() -> None:
    items = [{"name": "a"}, {"name": "b"}, {"name": "a"}, {}, {}]
    assert fields({"items": unique("name")}, {"items": items}) == ["items[2].name"]
    assert fields({"items": unique("name", empty=True)}, {"items": items}) == ["items[2].name", "items[4].name"]


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ("b=1|2", ["1", "2"]),
        ("b!=1|2", ["3", "", None]),
        ("b=|1", ["1", "", None]),
        ("b!=|1", ["2", "3"]),
        ("b", ["1", "2", "3", ""]),
        ("!b", [None]),
    ],
)
def test_rules_with_a_condition_are_those_of_the_values_for_which_it_holds(condition: str, values: list[Any]) -> None:
    for rows in ({f"c if {condition}": "label"}, {f"if {condition}": {"c": "label"}}):
        assert [each for each in ("1", "2", "3", "", None) if fields(rows, {"b": each, "c": "C"})] == values


def test_rules_below_a_function_are_those_of_the_values_for_which_it_holds() -> None:
    rows: Rows = {"a": {lambda value: value.get("b") == 1: {"c": "label"}}}
    assert fields(rows, {"a": {"b": 1, "c": "C"}}) == ["a.c"]
    assert fields(rows, {"a": {"b": 2, "c": "C"}}) == []


def test_messages_of_words_name_their_condition() -> None:
    rows: Rows = {"a if b=X|Y": "unset", "c if !b": "needed", "if b!=|X": {"d": "empty"}}
    assert messages(rows, {"b": "Y", "a": 0, "d": 1}) == [
        ("FieldValueForbidden", "Forbidden: may not be set when `b` is X or Y"),
        ("FieldValueForbidden", "Forbidden: may not be set when `b` is not X"),
    ]
    assert messages(rows, {"a": 0}) == [("FieldValueRequired", "Required value: when `b` is missing")]


def test_an_error_of_a_value_may_be_that_of_one_of_its_fields() -> None:
    (error,) = table(invalid("must be less than b", "b"))({"b": "{a}"}, None)
    assert (error.field, error.message) == ("b", 'Invalid value: "{a}": must be less than b')


def test_fields_that_may_not_change_have_their_paths_or_one_for_all_of_them() -> None:
    old, new_one = ({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"selector": each}} for each in (1, 2))
    assert fields(frozen(), new_one, old) == ["spec.selector"]
    assert fields(frozen("spec", "spec is immutable"), new_one, old) == ["spec"]
    assert fields(frozen(), new_one) == []


def test_a_table_for_new_objects_does_not_concern_an_update() -> None:
    rows = new({"a": "label"})
    assert fields(rows, {"a": "A"}) == ["a"]
    assert fields(rows, {"a": "A"}, {"a": "A"}) == []


def test_a_table_for_changed_values_does_not_concern_those_that_stay() -> None:
    rows: Rows = {"a[]": changed("label")}
    assert fields(rows, {"a": ["A", "B"]}, {"a": ["A", "b"]}) == ["a[1]"]


def test_a_remembered_table_has_the_errors_of_a_value_at_each_of_its_places() -> None:
    rows: Rows = {"a b": remembered({"name": "label"})}
    assert fields(rows, {"a": {"name": "A"}, "b": {"name": "A"}}) == ["a.name", "b.name"]
    assert fields(rows, {"a": {"name": "a"}, "b": {"name": "a"}}) == []


def test_a_rule_sees_the_old_value_of_its_path() -> None:
    rows: Rows = {"a[].b": lambda value, old: (required(""),) if value != old else ()}
    assert fields(rows, {"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 1}]}) == ["a[1].b"]
