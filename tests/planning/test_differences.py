"""How two versions of an object differ, by field."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.kubernetes.builtin.table import builtin_shape
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.schema.shape import Shape
from ruleop.language.templates import read_yaml
from ruleop.messages import shortened
from ruleop.planning.changes.differences import MAX_VALUE, NOTHING, Difference, differences, flow, leaves

module = importlib.import_module("ruleop.planning.changes.differences")  # the face lends a function of that name

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


def found(before: Any, after: Any, shape: Shape | None = None) -> list[tuple[str, str, str]]:
    return [(each.path, flow(each.before), flow(each.after)) for each in differences(before, after, shape or Shape())]


def test_differences_are_listed_by_path_in_order() -> None:
    assert found({"b": {"y": 1, "x": 1}, "c": 1}, {"a": 2, "b": {"y": 2, "x": 1}}) == [
        ("a", "", "2"),
        ("b.y", "1", "2"),
        ("c", "1", ""),
    ]


def test_unusual_field_names_are_quoted_in_paths() -> None:
    assert found({"metadata": {"labels": {}}}, {"metadata": {"labels": {"a/b": "c"}}}) == [
        ("metadata.labels['a/b']", "", "c")
    ]


def test_list_items_are_matched_by_the_keys_of_the_schema() -> None:
    shape = builtin_shape(Kind("", "v1", "Service"))
    ports = [{"port": 53, "protocol": "UDP"}, {"port": 53}]
    changed = [{"port": 80}, {"port": 53, "targetPort": 5353}, {"port": 53, "protocol": "UDP"}]
    assert found({"spec": {"ports": ports}}, {"spec": {"ports": changed}}, shape) == [
        ("spec.ports[port=53,protocol=TCP].targetPort", "", "5353"),
        ("spec.ports[port=80,protocol=TCP]", "", "{port: 80}"),
        (
            "spec.ports (order)",
            '["port=53,protocol=UDP", "port=53,protocol=TCP"]',
            '["port=53,protocol=TCP", "port=53,protocol=UDP"]',
        ),
    ]


def test_items_of_undeclared_lists_are_matched_by_name() -> None:
    assert found({"a": [{"name": "x", "v": 1}, {"name": "z"}]}, {"a": [{"name": "x", "v": 2}]}) == [
        ("a[name=x].v", "1", "2"),
        ("a[name=z]", "{name: z}", ""),
    ]


def test_claim_templates_are_matched_by_the_names_in_their_metadata() -> None:
    def claims(size: str) -> dict[str, Any]:
        return {"a": [{"metadata": {"name": "data"}, "size": size}, {"metadata": {"name": "wal"}, "size": "1Gi"}]}

    assert found(claims("1Gi"), claims("2Gi")) == [("a[data].size", "1Gi", "2Gi")]


def test_a_default_of_the_server_is_not_a_difference() -> None:
    shape = Shape(type="object", defaults={"mode": "plain", "other": "x"})
    assert found({"mode": "plain", "other": "z"}, {}, shape) == [("other", "z", "")]


def test_items_of_the_same_name_are_matched_by_position() -> None:
    assert found(
        {"a": [{"name": "x", "v": 1}, {"name": "x", "v": 1}]}, {"a": [{"name": "x", "v": 1}, {"name": "x", "v": 2}]}
    ) == [("a[1].v", "1", "2")]


def test_added_and_removed_members_of_a_set_are_differences() -> None:
    shape = Shape(type="object", fields={"f": Shape(type="list", list_type="set")})
    assert found({"f": ["a", "b"]}, {"f": ["b", "c"]}, shape) == [("f", "a", ""), ("f", "", "c")]


def test_an_inserted_item_is_one_difference() -> None:
    assert found({"args": ["a", "b", "c"]}, {"args": ["a", "x", "b", "c"]}) == [("args[1]", "", "x")]


def test_strings_and_numbers_are_distinguished() -> None:
    assert found({"a": 80, "b": True, "c": None, "d": "x"}, {"a": "80", "b": "true", "c": "null", "d": ""}) == [
        ("a", "80", '"80"'),
        ("b", "true", '"true"'),
        ("c", "null", '"null"'),
        ("d", "x", '""'),
    ]


def test_a_long_added_value_is_split_by_field() -> None:
    new = {"probe": {"path": "/" * 60, "port": 8080, "list": ["a" * 80]}}
    (difference,) = differences({}, new, Shape())
    assert [(leaf.path, flow(leaf.after)) for leaf in leaves(difference)] == [
        ("probe.path", "/" * 60),
        ("probe.port", "8080"),
        ("probe.list[0]", "a" * 80),
    ]
    assert list(leaves(Difference("a", 1, "x" * 200))) == [Difference("a", 1, "x" * 200)]


@given(JSON, st.integers(0, MAX_VALUE))
def test_an_added_value_is_split_only_if_it_is_too_long_for_a_line(value: Any, more: int) -> None:
    value = {"x": value, "y": "x" * more}
    first = next(leaves(Difference("a", NOTHING, value)))
    assert (first.after == value) == (len(flow(value)) <= MAX_VALUE)


def test_a_deeply_nested_value_is_not_printed_at_each_level(monkeypatch: pytest.MonkeyPatch) -> None:
    value: Any = "x" * 100
    for _ in range(100):
        value = {"a": value}
    printed = []
    monkeypatch.setattr(module, "flow", lambda each: printed.append(each) or flow(each))
    assert len(list(leaves(Difference("a", NOTHING, value)))) == 1
    assert not printed


def test_long_text_is_shortened() -> None:
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abcdefg", 6) == "abcde…"


@pytest.mark.parametrize(
    "text",
    [
        "a: b",
        "- a",
        "#",
        "a #b",
        "{",
        "[x",
        "\x7f",
        "*x",
        "&x",
        "",
        " a",
        "a ",
        "1e3",
        "no",
        "~",
        "a\nb",
        "a:",
        "'",
        "0x1f",
        "-> ",
    ],
)
def test_strings_that_yaml_would_read_differently_are_quoted(text: str) -> None:
    assert flow(text).startswith('"')


@pytest.mark.parametrize("text", ["nginx:1.29", "a,b", "--a=b", "https://x/y?z#w", "ä ö", "a{b}"])
def test_plain_strings_are_quoted_only_inside_a_flow_value(text: str) -> None:
    assert flow(text) == (text if text[0] != "-" else f'"{text}"')
    documents, _ = read_yaml(f"a: {flow([text, {text: text}])}", "x")
    assert documents[0].data() == {"a": [text, {text: text}]}


@given(JSON)
def test_a_value_on_one_line_is_yaml_that_reads_back_unchanged(value: Any) -> None:
    documents, mistakes = read_yaml(f"a: {flow(value)}", "x")
    assert not mistakes
    assert documents[0].data() == {"a": value}


@given(st.dictionaries(st.text(max_size=2), JSON, max_size=3), st.dictionaries(st.text(max_size=2), JSON, max_size=3))
def test_equal_objects_have_no_differences_and_different_ones_have_some(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert differences(before, before, Shape()) == []
    both = differences(before, after, Shape()), differences(after, before, Shape())
    assert bool(both[0]) == bool(both[1])
    assert {each.path for each in both[0] if NOTHING in (each.before, each.after)} == {
        each.path for each in both[1] if NOTHING in (each.before, each.after)
    }
