"""Written YAML is the same data to every parser: PyYAML (YAML 1.1), ruamel.yaml (1.2) and ruleop's own reader
(kubectl's rules)."""

from __future__ import annotations

import json

import pytest
import ruamel.yaml
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ruleop.language.templates import read_yaml, yaml_document, yaml_text
from ruleop.planning.changes.differences import flow
from tests.exploration import examples, others_slow
from tests.language.templates.hostile import HOSTILE, LINE_BREAKS
from tests.language.templates.rendering import data_of, render


def by_ruleop(text):
    return data_of(read_yaml(text, "f.yaml"))


def by_pyyaml(text):
    return [document for document in yaml.safe_load_all(text) if document is not None]


def by_libyaml(text):
    return [document for document in yaml.load_all(text, Loader=yaml.CSafeLoader) if document is not None]


def by_ruamel(text):
    return [document for document in ruamel.yaml.YAML(typ="safe", pure=True).load_all(text) if document is not None]


PARSERS = [by_ruleop, by_pyyaml, by_libyaml, by_ruamel]


def reads_as(text, documents):
    for parser in PARSERS:
        assert json.dumps(parser(text)) == json.dumps(documents), (parser.__name__, text)


ALLOWED = [text for text in HOSTILE if len(text) < 100 and not any("\ud800" <= sign <= "\udfff" for sign in text)]
PIECES = [
    *ALLOWED,
    *LINE_BREAKS,
    "a",
    "b c",
    " ",
    "  ",
    "\t",
    "\n",
    "\n\n",
    "...",
    "\n...",
    "---",
    ":",
    "#",
    " #",
    "\xa0",
    "\u3000",
    "\\",
]
TEXT = st.lists(st.sampled_from(PIECES), max_size=5).map("".join) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=20
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT | st.sampled_from(["yes", "1", "<<", "a b", "~", "="]), inner, max_size=4),
    max_leaves=15,
)  # fmt: skip

POSITIONS = {
    "a value": lambda text: {"a": text, "b": 1},
    "the last value": lambda text: {"b": 1, "a": text},
    "a key": lambda text: {f"{text}": 1, "~other": 2},
    "the last key": lambda text: {"~other": 2, text: {}},
    "the key of a mapping": lambda text: {text: {"a": 1}},
    "the key of a list": lambda text: {text: ["a", 1]},
    "a key and its value": lambda text: {text: text},
    "an item": lambda text: [text, 1],
    "the last item": lambda text: [1, text],
    "a value in a list": lambda text: [{"a": text}, {"a": 1, "b": text}],
    "nested deeply": lambda text: {"a": [[{"b": {text: [text, [text]]}}]], "c": {"d": {"e": text}}},
    "the whole document": lambda text: text,
}


@pytest.mark.slow
@pytest.mark.parametrize("position", others_slow(POSITIONS, "nested deeply"))
def test_hostile_text_in_any_position_is_read_back_unchanged(position):
    for text in ALLOWED:
        value = POSITIONS[position](text)
        reads_as(yaml_text(value), [value])
        reads_as(yaml_document(value), [value])


@pytest.mark.slow
@given(TEXT, st.sampled_from(sorted(POSITIONS)))
@settings(deadline=None, max_examples=examples(500))
def test_any_text_in_any_position_is_read_back_unchanged(text, position):
    value = POSITIONS[position](text)
    reads_as(yaml_text(value), [value])
    reads_as(yaml_document(value), [value])


@pytest.mark.slow
@given(JSON.filter(lambda value: value is not None))
@settings(deadline=None, max_examples=examples(300))
def test_any_data_is_read_back_unchanged(value):
    reads_as(yaml_text(value), [value])
    reads_as(yaml_document(value), [value])


@pytest.mark.slow
@given(st.lists(JSON.filter(lambda value: value is not None), min_size=2, max_size=4))
@settings(deadline=None, max_examples=examples(200))
def test_consecutive_documents_are_read_back_unchanged(values):
    reads_as("---\n".join(map(yaml_document, values)), values)
    reads_as("---\n".join(f"# a comment\n{yaml_document(value)}" for value in values), values)


@pytest.mark.slow
@given(JSON.filter(lambda value: value is not None), st.sampled_from(["", "more: 1\n"]))
@settings(deadline=None, max_examples=examples(200))
def test_indented_yaml_below_a_key_is_read_back_unchanged(value, behind):
    """As a template author writes it by hand: indented, blank lines left alone, trimmed or not."""
    text = yaml_text({"b": value})
    assert text == text.strip("\n")
    indented = "\n".join("  " + line if line.strip() else line for line in text.split("\n"))
    reads_as(f"a:\n{indented}\n{behind}", [{"a": {"b": value}} | ({"more": 1} if behind else {})])


@pytest.mark.slow
@given(JSON.filter(lambda value: value is not None))
@settings(deadline=None, max_examples=examples(100))
def test_to_yaml_in_a_block_scalar_is_read_back_unchanged(value):
    block = render("conf: |\n  a:\n    {{ v | to_yaml | indent(4) }}\n  more: 1\n", v={"b": value})["conf"]
    reads_as(block, [{"a": {"b": value}, "more": 1}])
    chomped = render("conf: |-\n  {{ v | to_yaml }}\n", v={"b": value})["conf"]
    reads_as(chomped, [{"b": value}])
    quoted = render('conf: "{{ v | to_yaml }}"\n', v={"b": value})["conf"]
    reads_as(quoted, [{"b": value}])


@pytest.mark.parametrize(
    "text",
    [
        "wait...",
        "...",
        "a\n\n",
        "a\n...\n",
        "\n",
        "\n\n",
        "a\n",
        "a\r\nb\n",
        "a\x85b\n",
        "a\u2028b\n",
        "a\n\t\nb",
        " a\nb\n",
    ],
)
def test_the_end_of_a_text_is_never_truncated(text):
    for value in ({"m": text}, [text], text):
        reads_as(yaml_text(value), [value])
        reads_as(yaml_document(value), [value])


@pytest.mark.slow
@given(JSON)
@settings(deadline=None, max_examples=examples(300))
def test_the_flow_style_of_plans_is_read_back_unchanged(value):
    reads_as(f"- {flow(value)}\n", [[value]])


def test_yaml_is_written_in_block_style_with_minimal_quotes():
    value = {"b": [1, {"c": "x"}], "a": "yes", "t": "l1\nl2\n", "z": None, "f": 1.5, "u": "\u00e4"}
    assert yaml_text(value) == 'b:\n- 1\n- c: x\na: "yes"\nt: |\n  l1\n  l2\nz: null\nf: 1.5\nu: \u00e4'
    assert yaml_document(value) == f"{yaml_text(value)}\n"


def test_the_last_lines_of_a_document_stay_in_block_style():
    assert (
        yaml_document({"data": {"run.sh": "#!/bin/sh\nexec app\n"}})
        == "data:\n  run.sh: |\n    #!/bin/sh\n    exec app\n"
    )


def test_a_very_long_line_is_not_wrapped():
    text = "word " * 300_000
    assert yaml_text({"a": text + "end"}) == f"a: {text}end"
