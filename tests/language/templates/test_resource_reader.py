"""Files of objects are read as kubectl reads them: JSON is JSON, anchors are followed; bounded, and never in two
ways."""

from __future__ import annotations

import io
import json

import pytest
import ruamel.yaml
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ruleop.language.templates import read_yaml, resource_reader
from ruleop.language.templates.resource_reader import read_resources
from ruleop.language.templates.yaml_reader import MAX_DEPTH
from tests.language.templates.rendering import data_of, mistakes_of
from tests.language.templates.test_yaml_writer import JSON

OBJECT = st.dictionaries(st.text(max_size=5), JSON | st.text(), min_size=1, max_size=4)
UNICODE = OBJECT.filter(
    lambda value: not any(0xD800 <= ord(sign) < 0xE000 for sign in json.dumps(value, ensure_ascii=False))
)


def read(text):
    return data_of(read_resources(text, "f"))


def refused(text):
    return mistakes_of(read_resources(text, "f"))


# -- JSON --------------------------------------------------------------------------------------------------------------


@given(UNICODE)
@settings(deadline=None)
def test_any_json_object_is_read_as_itself_with_any_formatting(value):
    for ascii_only in (True, False):
        for indent in (None, 2, "\t"):
            assert json.dumps(read(json.dumps(value, ensure_ascii=ascii_only, indent=indent))) == json.dumps([value])


def test_an_emoji_written_as_surrogate_escapes_is_read():
    assert read(json.dumps({"a": "\U0001f600"})) == [{"a": "\U0001f600"}]


def test_comments_may_precede_json():
    assert read('# one\n\n# two\n{"a": "\\ud83d\\ude00"}\n---  # three\n# four\n{"b": 1}\n') == [
        {"a": "\U0001f600"},
        {"b": 1},
    ]


def test_a_json_key_may_be_longer_than_1024_characters():
    key = "k" * 5000
    assert read(json.dumps({key: 1})) == [{key: 1}]


@pytest.mark.parametrize(
    "between", ["\n---\n", "\n", " ", "\r\n---\r\n", "\n--- # the second\n", "\n---\n# nothing\n---\n", "\n---\n---\n"]
)
def test_several_json_or_yaml_documents_are_read(between):
    assert read('{"a": "\\ud83d\\ude00"}' + between.replace("# the second", "") + '{"b": [1]}\n') == [
        {"a": "\U0001f600"},
        {"b": [1]},
    ]
    if "---" in between:
        assert read(f"a: 1\n{between}b: [2]{between}{{}}") == [{"a": 1}, {"b": [2]}, {}]


def test_yaml_and_json_documents_in_one_file_keep_their_positions():
    documents, mistakes = read_resources('a: 1\n---\n{"b":\n  {"c": 2}}\n---\nd:\n  e: 3\n', "f")
    assert not mistakes
    assert [str(document.site) for document in documents] == ["f:1:1", "f:3:1", "f:6:1"]
    assert str(documents[1].key_sites["b"]) == "f:3:2"
    assert str(documents[1].value["b"].value["c"].site) == "f:4:9"
    assert str(documents[2].value["d"].key_sites["e"]) == "f:7:3"


def test_the_lines_of_a_file_of_many_objects_are_counted_once(monkeypatch):
    calls, original = [], resource_reader.line_starts
    monkeypatch.setattr(resource_reader, "line_starts", lambda text: calls.append(1) or original(text))
    assert read('{"a": 1}\n---\n' * 9) == [{"a": 1}] * 9
    assert len(calls) == 1


def test_yaml_in_flow_style_is_yaml():
    assert read("{a: b, c: [x, 'y']}\n") == [{"a": "b", "c": ["x", "y"]}]
    assert read('{"a": 1, # why\n}\n') == [{"a": 1}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1, "b": 2,\n "a": 3}', [(2, 2, 'duplicate key "a": the first is on line 1')]),
        ('{"a": {"b": 1, "b": 2}}', [(1, 16, 'duplicate key "b": the first is on line 1')]),
        ('{"a": "x\\ud83d"}', [(1, 7, "unpaired surrogate in this string")]),
        ('{"a": 1e999}', [(1, 7, "1e999 is a number that JSON cannot represent")]),
        ('{"a": "\\ud83d\\ude00",\n "b": [1, 2}', [(2, 12, "not JSON: a value, comma, colon or bracket is missing or unexpected here, or a string is not closed")]),
        ('{"a": "\\ud83d\\ude00"} x', [(1, 23, "not JSON: a value, comma, colon or bracket is missing or unexpected here, or a string is not closed")]),
        ('a: 1\n---\n{"a": 1, "a": 2}', [(3, 10, 'duplicate key "a": the first is on line 3')]),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), [(1, MAX_DEPTH + 1, f"nested deeper than {MAX_DEPTH} levels")]),
        ("[" + "1," * 260_000 + "1]", [(1, 499_999 + 1, "more than 250,000 values")]),
        ("{a: b, c: d, a: e}", [(1, 14, 'duplicate key "a": the first is on line 1')]),
    ],
)  # fmt: skip
def test_an_invalid_resource_file_is_reported_with_its_position(text, expected):
    assert refused(text) == expected


# -- anchors -----------------------------------------------------------------------------------------------------------


def test_an_alias_is_replaced_by_the_value_of_its_anchor():
    assert read("a: &x {b: [1]}\nc: *x\nd: [*x, &y z, *y]\n") == [
        {"a": {"b": [1]}, "c": {"b": [1]}, "d": [{"b": [1]}, "z", "z"]}
    ]


def test_an_alias_refers_to_the_last_anchor_of_its_name():
    assert read("a: &x 1\nb: *x\nc: &x 2\nd: *x\n") == [{"a": 1, "b": 1, "c": 2, "d": 2}]


def test_values_of_an_alias_are_independent_copies():
    (document,) = read("a: &x {b: [1]}\nc: *x\n")
    document["a"]["b"].append(2)
    assert document["c"] == {"b": [1]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n", {"b": 1, "c": 3}),
        ("a: &x {b: 1}\nd:\n  c: 3\n  <<: *x\n", {"b": 1, "c": 3}),
        ("a: &x {b: 1}\ne: &y {b: 2, c: 3}\nd:\n  <<: [*x, *y]\n", {"b": 1, "c": 3}),
        ("a: &x {b: 1}\ne: &y {<<: *x, c: 2}\nd: {<<: *y}\n", {"b": 1, "c": 2}),
        ("d: {<<: {a: 1}}\n", {"a": 1}),
        ('d: {"<<": {a: 1}}\n', {"<<": {"a": 1}}),
        ("a: &x {}\nd: {<<: *x, b: 1}\n", {"b": 1}),
    ],
)
def test_merge_keys_merge_mappings_as_in_pyyaml(text, expected):
    (document,) = read(text)
    assert document["d"] == expected
    if '"<<"' not in text:
        assert yaml.safe_load(text)["d"] == expected


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: *x\n", 1, "the alias *x has no anchor: write &x before a value earlier in the same document"),
        ("a: &x 1\n---\nb: *x\n", 3, "the alias *x has no anchor"),
        ("a: &x [1, *x]\n", 1, "the alias *x is inside the value of its own anchor"),
        ("a: &x 1\nb: {<<: *x}\n", 2, "the merge key << takes a mapping or a list of mappings"),
        (
            "a: &x {b: 1}\nd:\n  b: 2\n  <<: *x\n",
            4,
            'the merge key << comes after the key "b", which it also contains: put << first',
        ),
        ("a: &x {b: 1}\nd:\n  <<: *x\n  <<: {c: 1}\n", 4, 'duplicate key "<<": the first is on line 3'),
        ("a: &x {b: 1}\nd:\n  <<: *x\n  c: 1\n  c: 2\n", 5, 'duplicate key "c"'),
        ("a: !!str 1\n", 1, "tags are not allowed (tag:yaml.org,2002:str)"),
    ],
)
def test_an_invalid_anchor_or_alias_is_reported_with_its_line(text, line, message):
    ((where, _, said),) = refused(text)
    assert where == line
    assert said.startswith(message)


def nested(levels, width):
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * width)}]" for level in range(1, levels)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "bomb",
    [
        nested(60, 9),
        nested(60, 2),
        "a: &x [" + "1," * 1000 + "1]\nb: [" + "*x," * 1000 + "*x]\n",
        "a: &x " + "y" * 1_000_000 + "\nb: [" + "*x," * 100 + "*x]\n",
        "---\n".join(["{}\n", *["a: &x [" + "1," * 400 + "1]\nb: [" + "*x," * 400 + "*x]\n"] * 3]),
        "a: &x {" + "y" * 1_000 + ": 1}\nb: [" + ",".join("{<<: *x}" for _ in range(10_000)) + "]\n",
    ],
)
def test_an_alias_bomb_is_refused_before_it_expands(bomb):
    (_, _, said) = refused(bomb)[-1]
    assert (
        said == "the aliases of this file expand to more than 250,000 values or 8 MiB: write the values out"
        or said.startswith("the alias")
    )


def test_aliases_count_for_the_depth_limit():
    inner = "[" * 40 + "]" * 40
    ((line, _, said),) = refused(f"a: &x {inner}\nb: " + "[" * 30 + "*x" + "]" * 30 + "\n")
    assert (line, said) == (2, f"the alias *x makes the document nested deeper than {MAX_DEPTH} levels")


def test_anchors_and_aliases_in_rules_are_refused():
    _, mistakes = read_yaml("a: &x {b: 1}\nc: *x\nd: {<<: *x}\n", "f")
    assert [mistake.message.split(":")[0] for mistake in mistakes] == [
        "anchors are not allowed (&x)",
        "aliases are not allowed (*x)",
        "the merge key << is not allowed",
        "aliases are not allowed (*x)",
    ]


# -- what tools write --------------------------------------------------------------------------------------------------

SHARED = {"app": "web"}
MANIFEST = {
    "kind": "Site",
    "metadata": {"labels": SHARED},
    "spec": {"selector": SHARED, "list": [SHARED, "2026-01-01", "a\n", "\U0001f600"]},
}


def by_ruamel(value):
    stream = io.StringIO()
    ruamel.yaml.YAML(typ="safe", pure=True).dump(value, stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    "write",
    [
        yaml.dump, yaml.safe_dump, by_ruamel, json.dumps,
        lambda value: yaml.safe_dump(value, allow_unicode=True, explicit_start=True, explicit_end=True),
        lambda value: yaml.safe_dump_all([value], default_flow_style=True),
        lambda value: yaml.safe_dump(value, default_style='"'),
        lambda value: json.dumps(value, indent=4, sort_keys=True) + "\n",
    ],
)  # fmt: skip
def test_yaml_of_common_writers_is_readable(write):
    assert read(write(MANIFEST)) == [MANIFEST]
