"""YAML is read strictly, with the types of kubectl and with positions."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ruleop.errors import Site
from ruleop.language.templates import NotJson, read_yaml, resolve_scalar
from ruleop.language.templates.yaml_reader import MAX_DEPTH
from tests.exploration import examples
from tests.language.templates.hostile import HOSTILE
from tests.language.templates.rendering import data_of, mistakes_of


def read(text):
    return data_of(read_yaml(text, "f.yaml"))


def refused(text):
    return mistakes_of(read_yaml(text, "f.yaml"))


TYPING = {
    **dict.fromkeys(["yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE", "y", "Y"], True),
    **dict.fromkeys(["no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE", "n", "N"], False),
    **dict.fromkeys(["~", "null", "Null", "NULL"]),
    **{text: text for text in ["yEs", "tRue", "nULL", "None", "none", "yes!", "2026-01-01", "2026-01-01T10:00:00Z", "12:30:45", "1.2.3", "1_", "_1", "0x", "0b2", "0o8", "1e", "e3", "+", "-", ".",
                               "1,000", "10Gi", "500m", "=", "/a", "a b", "a#b", "a:b", "0x1G", "--1", "+-1", "1-1", "..", "inf", "nan", "Infinity"]},
    "0": 0, "-0": 0, "1": 1, "+1": 1, "-17": -17, "0777": 511, "0o777": 511, "017": 15, "0x1F": 31, "0xff": 255, "-0x10": -16, "0b101": 5, "1_000": 1000, "0o17": 15, "08": 8, "09": 9,
    "1.5": 1.5, "1.": 1.0, ".5": 0.5, "-.5": -0.5, "1e3": 1000.0, "1E3": 1000.0, "1.5e-3": 0.0015, "1_0.5": 10.5, "1.20": 1.2, "-0.0": -0.0,
    "9223372036854775807": 2**63 - 1, "18446744073709551615": 2**64 - 1, "18446744073709551616": 2.0**64, "-9223372036854775808": -(2**63), "-9223372036854775809": -(2.0**63), "9" * 30: float("9" * 30),
}  # fmt: skip


@pytest.mark.parametrize("text", [text for text in TYPING if text not in {"1_", "_1"}])
def test_scalars_have_the_types_that_kubectl_gives_them(text):
    value = resolve_scalar(text)
    assert (type(value), value) == (type(TYPING[text]), TYPING[text])
    assert str(value) == str(TYPING[text])


HUGE = [
    "9" * 400,
    "-" + "9" * 400,
    "0x" + "f" * 300,
    "-0x" + "f" * 300,
    "0b" + "1" * 1100,
    "0o" + "7" * 400,
    "1" + "_000" * 200,
]


@pytest.mark.parametrize(
    "text", [".inf", "-.inf", "+.inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN", "1e999", "-1e999", *HUGE]
)
def test_numbers_that_json_cannot_hold_are_refused(text):
    with pytest.raises(NotJson):
        resolve_scalar(text)
    shown = text if len(text) <= 40 else text[:40] + "..."
    assert refused(f"a:\n  b: {text}") == [(2, 6, f"{shown} is a number that JSON cannot represent")]


def test_quoted_and_block_scalars_are_always_text():
    assert read("a: 'yes'\nb: \"1\"\nc: |-\n  true\nd: >-\n  1\ne: ''") == [
        {"a": "yes", "b": "1", "c": "true", "d": "1", "e": ""}
    ]


REFUSED = {
    "a: &x 1\nb: *x": [(1, 4, "anchors are not allowed (&x)"), (2, 4, "aliases are not allowed (*x)")],
    "a: !!int 1": [(1, 4, "tags are not allowed (tag:yaml.org,2002:int)")],
    "a: !x [1]": [(1, 4, "tags are not allowed (!x")],
    "a: !x {b: 1}\nc: &y [1]": [(1, 4, "tags are not allowed (!x"), (2, 4, "anchors are not allowed (&y)")],
    "<<: {a: 1}": [(1, 1, "the merge key << is not allowed")],
    "a: 1\nb: 2\na: 3": [(3, 1, 'duplicate key "a": the first is on line 1')],
    "a: {b: 1, b: 2}": [(1, 11, 'duplicate key "b": the first is on line 1')],
    "1: a": [(1, 1, 'the key 1 is not a string in YAML: put it in quotes, "1"')],
    "true: a": [(1, 1, "the key true is not a string in YAML")],
    "y: a": [(1, 1, "the key y is not a string in YAML")],
    "on: a": [(1, 1, "the key on is not a string in YAML")],
    "1.5: a": [(1, 1, "the key 1.5 is not a string in YAML")],
    "~: a": [(1, 1, "the key ~ is not a string in YAML")],
    "? \n: a": [(1, None, "the key (empty) is not a string in YAML")],
    "[1]: a": [(1, 1, "a key must be a string")],
    "{a: 1}: b": [(1, 1, "a key must be a string: a value that starts with {{ must be in quotes")],
    "a: {{ b }}": [(1, 5, "a key must be a string: a value that starts with {{ must be in quotes")],
    "a: {{ b }}-c\nd: 1": [(1, 5, "a key must be a string: a value that starts with {{ must be in quotes")],
    "*x : a": [(1, 1, "aliases are not allowed (*x)"), (1, 1, "a key must be a string")],
    "%YAML 1.1\n---\na: 1": [(1, 1, "%YAML and %TAG directives are not allowed")],
    "%TAG ! x\n---\na: 1": [(1, 1, "%YAML and %TAG directives are not allowed")],
    "a: [": [(2, None, "not YAML")],
    "a: 1\n b: 2": [(2, 3, "not YAML: a second `: ` in one value")],
    "a: 1\n b: 2\t# x": [(2, 3, "not YAML: a second `: ` in one value")],
    "a:\n\t- 1": [(2, 1, "not YAML: tabs are not allowed")],
    "a: @x": [(1, 4, "not YAML: a value cannot start with '@'")],
    "a: `x`": [(1, 4, "not YAML: a value cannot start with '`'")],
    "a: %x": [(1, 4, "not YAML: a value cannot start with '%'")],
    "- a\nb: 1": [(2, 1, "not YAML: this line does not match its neighbours")],
    "a:\n  - \ufdd00\ufdd1\n    b: 1": [(2, 1, "not YAML: a value behind `- ` is the whole item, so keys cannot follow it")],
    "a: 1\nb\nc: 1": [(2, 1, "not YAML: a line without `: `")],
    "a: 1\nb\n  c: 1": [(2, 1, "not YAML: a line without `: `")],
    "a:\n  b\n\n  c: 1": [(2, 3, "not YAML: a line without `: `")],
    "a: 'b\nc: 1\n": [(1, 4, "not YAML: the quotes that open here are not closed")],
    "a: 'b'\n  c: 1": [(2, 3, "not YAML: this line does not match its neighbours")],
    'a: "\\q"': [(1, None, "not YAML: found unknown escape character (while parsing a quoted scalar)")],
    "a: \x00": [(1, 4, "not YAML")],
    "a: 1\nb: x\x07": [(2, None, "not YAML")],
    "a: 1\nb: \ud800": [(2, 4, "not YAML: unpaired surrogate")],
    "---\na: 1\n---\nb: &x 1": [(4, 4, "anchors are not allowed (&x)")],
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_refused_yaml_is_reported_with_line_and_column(text):
    found = refused(text)
    assert len(found) == len(REFUSED[text])
    for (line, column, message), (expected_line, expected_column, start) in zip(found, REFUSED[text], strict=True):
        assert message.startswith(start)
        assert line == expected_line
        assert expected_column is None or column == expected_column


def test_several_errors_are_collected_and_the_rest_is_read():
    documents, mistakes = read_yaml("a: &x 1\nb: 2\nb: 3\n1: c\nd: .inf\n", "f.yaml")
    assert len(mistakes) == 4
    assert documents[0].data() == {"a": 1, "b": 2, "d": None}


def test_the_depth_of_yaml_is_limited():
    assert read("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    for text in ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "[" * 100_000, "{a: " * 5000, "- " * 5000):
        ((line, _, message),) = refused(text)
        assert (line, message) == (1, f"nested deeper than {MAX_DEPTH} levels") or message.startswith("not YAML")


@pytest.mark.slow
def test_the_number_of_values_is_limited():
    ((_, _, message),) = refused("[" + "1," * 260_000 + "]")
    assert message == "more than 250,000 values"


def test_nodes_have_their_positions_and_style():
    (node,), _ = read_yaml("a: 1\nb:\n  - {c: 'x'}\n  - y\n", "f.yaml")
    assert node.site == Site("f.yaml", 1, 1)
    assert node.key_sites == {"a": Site("f.yaml", 1, 1), "b": Site("f.yaml", 2, 1)}
    items = node.value["b"].value
    assert [item.site for item in items] == [Site("f.yaml", 3, 5), Site("f.yaml", 4, 5)]
    assert (items[0].flow, node.flow, node.value["b"].flow) == (True, False, False)
    assert (items[0].value["c"].plain, items[1].plain) == (False, True)
    assert items[0].value["c"].site == Site("f.yaml", 3, 9)


def test_a_caller_can_map_positions():
    _, mistakes = read_yaml("a: 1\nb: *x", "f.yaml", locate=lambda line, column: Site("other", line + 10, column))
    assert mistakes[0].site == Site("other", 12, 4)


def test_empty_documents_are_skipped():
    assert read("") == read("---\n") == read("# x\n") == read("---\n---\nnull\n---\n~\n") == []
    assert read("---\na: 1\n...\n---\n# x\n---\n- b\n") == [{"a": 1}, ["b"]]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | TEXT | st.sampled_from([text for text in HOSTILE if len(text) < 100 and text.isprintable()]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT | st.sampled_from(["yes", "1", "<<", "a b", "~", "="]), inner, max_size=4),
    max_leaves=15,
)  # fmt: skip


def same(one, other):
    return json.dumps(one) == json.dumps(other)


@pytest.mark.slow
@given(JSON.filter(lambda value: value is not None and "\\ud" not in json.dumps(value)))
@settings(deadline=None, max_examples=examples(300))
def test_any_json_document_is_read_as_itself(value):
    """Save one with a character above U+FFFF written as two escapes, which is refused."""
    (found,) = read(json.dumps(value))
    assert same(found, value)
    (found,) = read(json.dumps(value, indent=2))
    assert same(found, value)
