"""Lines that contain only tags are removed; all other text is kept."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ruleop.language.templates import RuleErrors
from tests.exploration import examples
from tests.language.templates.rendering import render


def text_of(source: str, **names: object) -> str:
    """What a template gives as text, before YAML: by `render`, which gives it verbatim."""
    return render("a: {{ render('t') }}", {"t": source}, **names).get("a", "")


CASES = {
    "a tag alone on its line": ("a\n{% if true %}\nb\n{% endif %}\nc\n", "a\nb\nc\n"),
    "indented tags": ("a\n  {% if true %}\n  b\n\t{% endif %}  \nc\n", "a\n  b\nc\n"),
    "two tags on one line": ("a\n{% if true %} {% if true %}\nb\n{% endif %}{% endif %}\nc\n", "a\nb\nc\n"),
    "a comment alone": ("a\n  {# note #}\nb\n", "a\nb\n"),
    "a comment of several lines": ("a\n{# note\n   more\n#}\nb\n", "a\nb\n"),
    "a tag of several lines": ("a\n{% if true\n      and true %}\nb\n{% endif\n%}\nc\n", "a\nb\nc\n"),
    "a comment behind a tag": ("a\n{% if true %}{# why #}\nb\n{% endif %}\n", "a\nb\n"),
    "a tag in a line": ("a {% if true %}b{% endif %} c\n", "a b c\n"),
    "a tag at the end of a line": ("a {% if true %}\nb\n{% endif %}\n", "a \nb\n"),
    "a tag at the start of a line": ("{% if true %} a\n{% endif %}\nb\n", " a\nb\n"),
    "a comment at the end of a line": ("a {# note #}\nb\n", "a \nb\n"),
    "blank lines stay": ("a\n\n{% if true %}\n\nb\n\n{% endif %}\n\nc\n", "a\n\n\nb\n\n\nc\n"),
    "no newline at the end": ("a\n{% if true %}\nb\n{% endif %}", "a\nb\n"),
    "no newline behind text": ("{% if true %}\nb{% endif %}", "b"),
    "a loop": ("{% for i in [1, 2] %}\nx{{ i }}\n{% endfor %}\n", "x1\nx2\n"),
    "a loop in a line": ("{% for i in [1, 2] %}x{{ i }},{% endfor %}\n", "x1,x2,\n"),
    "nested loops": ("{% for i in [1, 2] %}\n  {% for j in [3] %}\n  {{ i }}{{ j }}\n  {% endfor %}\n{% endfor %}\n", "  13\n  23\n"),
    "else": ("{% if false %}\na\n{% else %}\nb\n{% endif %}\n", "b\n"),
    "set": ("{% set x = 1 %}\na{{ x }}\n", "a1\n"),
    "a set block": ("{% set x %}\nq\n{% endset %}\na\n{{ x }}b\n", "a\nq\nb\n"),
    "a macro": ("{% macro m() %}\nq\n{% endmacro %}\na\n", "a\n"),
    "a macro in one line": ("{% macro m() %}q{% endmacro %}\na{{ m() }}\n", "aq\n"),
    "strip before": ("a\n  {%- if true %}b{% endif %}\n", "ab\n"),
    "strip behind": ("a {% if true -%}\n  b{% endif %}\n", "a b\n"),
    "strip around a value": ("a  {{- 1 -}}  \n b\n", "a1b\n"),
    "strip in a comment": ("a\n{#- note -#}\nb\n", "ab\n"),
    "raw": ("{% raw %}\n{{ a }} {% b %} {# c #}\n{% endraw %}\nd\n", "{{ a }} {% b %} {# c #}\nd\n"),
    "raw in a line": ("a {% raw %}{{{% endraw %} b\n", "a {{ b\n"),
    "shell length": ("echo ${#args[@]} # not a comment\n", "echo ${#args[@]} # not a comment\n"),
    "shell length in an expression": ("{{ '${#x}' }}\n", "${#x}\n"),
    "trailing blanks": ("a  \n\t\nb\t\n", "a  \n\t\nb\t\n"),
    "carriage returns": ("a\r\n{% if true %}\r\nb\r\n{% endif %}\r\nc\r\n", "a\nb\nc\n"),
    "a set in a line": ("a{% set x = 1 %}b\n", "ab\n"),
    "print": ("a{% print 1 + 1 %}\n{% print 'x' %}\n", "a2\nx\n"),
    "a filter block in a line": ("a {% filter upper %}b{% endfilter %} c\n", "a B c\n"),
    "a filter block of lines": ("{% filter upper %}\nb\n{% endfilter %}\nc\n", "B\n\nc\n"),
    "do nothing": ("{% if false %}\na\n{% endif %}\n", ""),
    "with": ("{% with x = 1 %}\na{{ x }}\n{% endwith %}\n", "a1\n"),
    "a block": ("{% block b %}\na\n{% endblock %}\nc\n", "a\nc\n"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_lines_of_tags_are_removed_and_other_white_space_is_kept(case):
    source, expected = CASES[case]
    assert text_of(source) == expected


@given(st.text(st.characters(exclude_characters="{\r\0\ufdd0\ufdd1\ufdd2", exclude_categories=["Cs"])))
@settings(deadline=None)
def test_text_without_tags_is_unchanged(source):
    assert text_of("x" + source) == "x" + source


@given(
    st.lists(
        st.sampled_from(["a", " ", "\n", "{% if true %}", "{% endif %}", "{# c #}", "{{ 'v' }}", "\t"]), max_size=14
    )
)
@settings(deadline=None, max_examples=examples(300))
def test_tags_remove_only_white_space_of_their_own_lines(pieces):
    depth = 0
    for piece in pieces:
        depth += {"{% if true %}": 1, "{% endif %}": -1}.get(piece, 0)
        if depth < 0:
            return
    source = "".join(pieces) + "{% endif %}" * depth
    expected = []
    for line in source.splitlines(keepends=True):
        has_tag, bare = "{%" in line or "{#" in line, line
        for tag in ("{% if true %}", "{% endif %}", "{# c #}"):
            bare = bare.replace(tag, "")
        if not (has_tag and not bare.strip()):
            expected.append(bare.replace("{{ 'v' }}", "v"))
    assert text_of(source) == "".join(expected)


def test_a_loop_in_a_block_scalar_keeps_its_lines():
    source = "conf: |\n  [main]\n  {% for k, v in s.items() %}\n  {{ k }} = {{ v }}\n  {% endfor %}\n\n  [end]\n"
    assert render(source, s={"a": 1, "b": "x"}) == {"conf": "[main]\na = 1\nb = x\n\n[end]\n"}


def test_shell_syntax_in_a_script_is_kept():
    source = 'run: |\n  #!/bin/bash\n  for x in ${args[@]}; do echo "${#x} $x"; done # {{ n }}\n'
    assert render(source, n=3) == {"run": '#!/bin/bash\nfor x in ${args[@]}; do echo "${#x} $x"; done # 3\n'}


JOINED = {
    "an if behind a key": ("a: 1\nargs: {% if x %}\n  - a\n{% endif %}\nb: 1\n", {"a": 1, "b": 1}),
    "an else": ("spec: {% if x %}\n  a: 1\n{% else %}\n  b: 1\n{% endif %}\n", {"spec": {"b": 1}}),
    "a loop": ("a: {% for i in [] %}\n- {{ i }}\n{% endfor %}\nb: 2\n", {"b": 2}),
    "an indented block": ("a:\n  b: 1{%- if x %} \n  c: 2\n  {% endif %}\n  d: 3\n", {"a": {"b": 1, "d": 3}}),
}


@pytest.mark.parametrize("case", JOINED)
def test_a_tag_at_the_end_of_a_line_joins_no_lines(case):
    source, expected = JOINED[case]
    assert render(source, x=False) == expected


def test_a_mistake_in_a_line_without_a_tag_at_its_end_does_not_blame_a_tag():
    with pytest.raises(RuleErrors, match="a second `: ` in one value"):
        render("{% if true %}\na: 1\n{% endif %}\nb: c: 2\n")
