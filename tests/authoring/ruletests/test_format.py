"""Errors in a test file: each has its position, and a suggestion."""

from __future__ import annotations

import textwrap
from pathlib import Path

import jsonschema
import pytest
import yaml

from ruleop.authoring.ruletests import format as test_format
from ruleop.authoring.ruletests.cases import TestFile as File
from ruleop.authoring.ruletests.cases import find_files, parse_file, project_of
from ruleop.language.rules.keys.tables import keys
from tests.folders import write_files

CASE = "name: a, resource: site.yaml"


def parsed(text: str) -> File:
    return parse_file(Path("a.test.yaml"), "a.test.yaml", textwrap.dedent(text))


def mistakes(text: str) -> list[str]:
    return [str(each) for each in parsed(text).findings]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"- {{{CASE}, expekt: {{status: {{a: 1}}}}}}", 'unknown key "expekt" in a case (did you mean "expect"?)'),
        (f"- {{{CASE}, expect: {{chidren: {{a: {{}}}}}}}}", 'unknown key "chidren" in "expect" (did you mean "children"?)'),
        (f"- {{{CASE}}}", 'a case asserts nothing: add "expect" or "snapshot"'),
        (f"- {{{CASE}, expect: {{}}}}", 'a case asserts nothing: add "expect" or "snapshot"'),
        (f"- {{{CASE}, expect: {{exact: true}}}}", 'a case asserts nothing: add "expect" or "snapshot"'),
        (
            f"- {{{CASE}, expect: {{gone: true}}, then: [{{deleted: true}}]}}",
            'a case asserts nothing in its last step: add "expect" or "snapshot"',
        ),
        ("- {resource: site.yaml, snapshot: a.yaml}", 'a case needs the key "name"'),
        ("- {name: a, snapshot: a.yaml}", 'a case needs the key "resource"'),
        (f"- {{{CASE}, expect: {{conditions: {{Ready: true}}}}}}", 'the condition "Ready" must be text, not the boolean true: put it in quotes'),
        (f"- {{{CASE}, expect: {{conditions: {{Ready: Yes!}}}}}}", 'the condition "Ready" must be "True", "False" or "Unknown", not "Yes!"'),
        (f"- {{{CASE}, kinds: [Certificate], snapshot: a.yaml}}", 'a kind must be a kind like "cert-manager.io/v1 Certificate", not "Certificate"'),
        (f"- {{{CASE}, existing: [{{apiVersion: v1}}], snapshot: a.yaml}}", "an existing object needs apiVersion, kind and metadata"),
        (f"- {{{CASE}, existing: [{{fron: render}}], snapshot: a.yaml}}", 'unknown key "fron" in a change of what exists (did you mean "from"?)'),
        (f"- {{{CASE}, mode: real, snapshot: a.yaml}}", '"mode" must be "plan" or "dev", not the text "real"'),
        (f"- {{{CASE}, snapshot: a.yaml, then: [{{set: {{}}, snapshot: b.yaml}}]}}", 'unknown key "set" in a step'),
        ("name: a", "a test file must be a list of cases, each starting with `- name:`, not a mapping"),
        ("", "the file has no cases"),
        ("- {name: a, name: b}", 'duplicate key "name": the first is on line 1'),
    ],
)  # fmt: skip
def test_an_error_in_a_test_file_has_its_position(text: str, message: str) -> None:
    [found] = [each for each in parsed(text).findings if each.message == message]
    assert found.site.line == 1


def test_a_test_file_with_an_error_has_no_cases() -> None:
    assert parsed(f"- {{{CASE}, snapshot: a.yaml}}\n- {{name: b}}").cases == ()


def test_two_cases_of_the_same_name_are_refused() -> None:
    text = f"- {{{CASE}, snapshot: a.yaml}}\n- {{{CASE}, snapshot: b.yaml}}"
    assert mistakes(text) == ['a.test.yaml:2:4: the case of line 1 has the name "a" too']


def test_anchors_may_be_used() -> None:
    [first, second] = parsed("""\
        - name: a
          resource: &site {apiVersion: example.com/v1, kind: Site}
          snapshot: a.yaml
        - {name: b, resource: *site, snapshot: b.yaml}
    """).cases
    assert first.table.resource is not None
    assert second.table.resource is not None
    assert first.table.resource.data() == second.table.resource.data()


# -- the matrix --------------------------------------------------------------------------------------------------------


def test_each_row_makes_a_case() -> None:
    cases = parsed("""\
        - name: replicas of ${size}
          cases: [{size: small, replicas: 1}, {size: large, replicas: 5}]
          resource: site.yaml
          set: {spec: {replicas: "${replicas}"}}
          snapshot: snapshots/${size}.yaml
    """).cases
    assert [each.name for each in cases] == ["replicas of small", "replicas of large"]
    assert [each.table.set.data() for each in cases if each.table.set] == [
        {"spec": {"replicas": 1}},
        {"spec": {"replicas": 5}},
    ]
    assert [each.table.snapshot.text for each in cases if each.table.snapshot] == [
        "snapshots/small.yaml",
        "snapshots/large.yaml",
    ]


def test_lists_make_all_combinations() -> None:
    cases = parsed("""\
        - name: a
          cases: {public: [true, false], page: [one, two]}
          resource: site.yaml
          set: {spec: {public: "${public}", page: "page ${page}"}}
          expect: {status: {a: 1}}
    """).cases
    assert [each.name for each in cases] == [
        "a [public=true, page=one]",
        "a [public=true, page=two]",
        "a [public=false, page=one]",
        "a [public=false, page=two]",
    ]
    assert cases[0].table.set is not None
    assert cases[0].table.set.data() == {"spec": {"public": True, "page": "page one"}}


def test_an_unused_value_of_a_row_is_an_error() -> None:
    text = """\
        - name: a
          cases: [{replicas: 1}]
          resource: site.yaml
          set: {spec: {replicas: "${replica}"}}
          snapshot: a.yaml
    """
    assert mistakes(text) == ['a.test.yaml:2:22: no ${replicas} uses this value of the row (did you mean "replica"?)']


def test_other_text_with_a_dollar_stays() -> None:
    [case] = parsed("""\
        - name: a
          cases: [{page: x}]
          resource: site.yaml
          set: {spec: {page: "${page} ${HOME} $page"}}
          snapshot: a.yaml
    """).cases
    assert case.table.set is not None
    assert case.table.set.data() == {"spec": {"page": "x ${HOME} $page"}}


# -- the schema --------------------------------------------------------------------------------------------------------


def test_the_json_schema_is_valid_and_has_every_key() -> None:
    schema = test_format.test_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    for table in test_format.TABLES:
        names = {key.name for _, key in keys(table)}
        assert schema["$defs"][table.DEFINITION]["properties"].keys() == names  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        (f"- {{{CASE}, expect: {{status: {{a: 1}}}}}}", True),
        (f'- {{{CASE}, cases: {{a: [1]}}, snapshot: "${{a}}.yaml"}}', True),
        (f"- {{{CASE}, existing: [{{from: render, ready: true}}, a.yaml], snapshot: a.yaml}}", True),
        (f"- {{{CASE}, expekt: {{}}}}", False),
        (f"- {{{CASE}}}", False),
        (f"- {{{CASE}, expect: {{conditions: {{Ready: true}}}}}}", False),
        ("[]", False),
    ],
)
def test_the_schema_agrees_with_the_parser(text: str, valid: bool) -> None:
    assert jsonschema.Draft202012Validator(test_format.test_schema()).is_valid(yaml.safe_load(text)) is valid
    assert (mistakes(text) == []) is valid


# -- files -------------------------------------------------------------------------------------------------------------


def test_test_files_of_nested_projects_are_not_found(tmp_path: Path) -> None:
    tests = ("tests/a.test.yaml", "b.test.yaml", "inner/c.test.yaml", ".x/d.test.yaml")
    write_files(tmp_path, dict.fromkeys(("watches.yaml", "inner/watches.yaml", *tests), ""))
    assert find_files(tmp_path) == [tmp_path / "b.test.yaml", tmp_path / "tests/a.test.yaml"]
    assert project_of(tmp_path / "tests/a.test.yaml") == tmp_path
    assert project_of(tmp_path / "inner/c.test.yaml") == tmp_path / "inner"
