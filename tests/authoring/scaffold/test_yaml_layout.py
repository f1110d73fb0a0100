"""What is written reads back as the same data: literal text in templates too, whatever Jinja would make of it."""

from __future__ import annotations

import textwrap

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from ruleop.authoring.scaffold.yaml_layout import Noted, WrittenExpr, WrittenText, rules_text, template_text
from ruleop.language.templates import read_yaml
from tests.language.templates.rendering import render

ODD = st.sampled_from(
    [
        "{{",
        "}}",
        "{%",
        "%}",
        "{#",
        "${#a",
        "'",
        '"',
        "\\",
        "\n",
        " ",
        "#",
        ": ",
        "a",
        "- ",
        "{% endraw %}",
        "\t",
        "é",
        "\x07",
        "0777",
        "yes",
    ]
)
LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\ufdd0\ufdd1\ufdd2")  # but for reserved ones
TEXT = st.lists(ODD, max_size=6).map("".join) | st.text(LETTERS, max_size=8)
KEYS = st.text("abcxyz", min_size=1, max_size=5) | TEXT.filter(bool)
SCALARS = st.none() | st.booleans() | st.integers(-10, 10) | st.floats(-10, 10) | TEXT
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=12
)
DATA = st.dictionaries(st.text("abcxyz", min_size=1, max_size=5), VALUES, max_size=4)


def without_nulls(value):
    """A template leaves out keys and items that are null."""
    if isinstance(value, dict):
        return {key: without_nulls(member) for key, member in value.items() if member is not None}
    return [without_nulls(item) for item in value if item is not None] if isinstance(value, list) else value


@given(DATA)
@example({"a": [":0"]})
def test_plain_yaml_reads_back_as_the_same_data(data):
    documents, mistakes = read_yaml(rules_text(data), "a.yaml")
    assert not mistakes
    assert documents[0].data() == data


@given(DATA)
def test_a_template_renders_its_literal_text(data):
    assert render(template_text(data) or "{}") == without_nulls(data)


@given(DATA, st.lists(TEXT | st.just(None), min_size=1, max_size=4))
def test_text_around_expressions_stays_as_it_is(data, parts):
    value = WrittenText(tuple(WrittenExpr("spec.x") if part is None else part for part in parts))
    text = "".join("<x>" if part is None else part for part in parts)
    rendered = render(template_text({"k": value, "list": [value, {"a": value}]}), spec={"x": "<x>"})
    if text:
        assert rendered == {"k": text, "list": [text, {"a": text}]}


def test_yaml_is_written_in_blocks_as_people_write_it():
    data = {
        "kind": "Deployment",
        "name": WrittenText((WrittenExpr("metadata.name"), "-db")),
        "replicas": WrittenExpr("spec.replicas"),
        "containers": [{"name": "web", "args": ["-v", "--port", "80"], "env": [{"name": "A", "value": "1"}]}],
        "script": "set -e\nrun $x\n",
        "rule": "{{ $labels.x }}",
        "many": "a {{ x }}\nb",
        "none": {},
    }
    assert template_text(data) == textwrap.dedent(
        """\
        kind: Deployment
        name: {{ metadata.name }}-db
        replicas: {{ spec.replicas }}
        containers:
          - name: web
            args: [-v, --port, "80"]
            env:
              - name: A
                value: "1"
        script: |
          set -e
          run $x
        rule: {{ '{{ $labels.x }}' }}
        many: |-
          {% raw %}
          a {{ x }}
          b
          {% endraw %}
        none: {}
        """
    )


@pytest.mark.parametrize("is_on", [True, False])
def test_a_choice_before_text_that_needs_escapes_is_in_parentheses(is_on):
    value = WrittenText((WrittenExpr("'a' if spec.on else 'b'"), "\x07"))
    assert render(template_text({"k": value}), spec={"on": is_on}) == {"k": "a\x07" if is_on else "b\x07"}


def test_a_number_can_be_written_as_text():
    assert render(template_text({"k": WrittenText((WrittenExpr("spec.a"),))}), spec={"a": 7}) == {"k": "7"}


def test_an_item_may_have_a_comment_above_it():
    text = rules_text({"rules": [Noted("for a\nand b", {"verbs": ["get"]}), Noted("for c", "d"), {"e": 1}]})
    assert text == "rules:\n  # for a\n  # and b\n  - verbs: [get]\n  # for c\n  - d\n  - e: 1\n"


def test_expressions_in_watches_yaml_are_quoted_strings_and_comments_are_above_keys():
    data = {"status": Noted("What users see.", {"a": WrittenExpr("x | default('a')"), "b": WrittenExpr('x["b"]')})}
    text = rules_text([data])
    assert text == ("-\n  # What users see.\n  status:\n    a: \"{{ x | default('a') }}\"\n    b: '{{ x[\"b\"] }}'\n")
    assert yaml.safe_load(text) == [{"status": {"a": "{{ x | default('a') }}", "b": '{{ x["b"] }}'}}]
