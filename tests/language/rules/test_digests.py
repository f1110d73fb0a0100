"""An edit changes the digests of the rules whose plans it may change, and no others."""

from __future__ import annotations

import dataclasses

import pytest

from ruleop.language.rules.checking import build_project
from ruleop.language.rules.loading import _content
from tests.language.rules.projects import SERVICE

WATCHES = """\
vars: {shared: "${SHARED:-none}"}
let: {common: "{{ vars.shared }}"}
apply: {ignore: [spec.clusterIP]}
include: [more.yaml]
watches:
  - group: example.com
    version: v1
    kind: App
    vars: {own: "${OWN:-none}", number: 1}
    let: {name: "{{ metadata.name }}"}
    children:
      first: {template: first.yaml, when: spec.first}
      second:
        object: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {text: "{{ file('texts/plain.txt') }}", "{{ spec.key }}": x}}
    observe:
      pods: {version: v1, kind: Pod, selector: {app: "{{ metadata.name }}"}}
    status: {ip: "{{ first.spec.clusterIP }}"}
"""
MORE = """\
- group: example.com
  version: v1
  kind: Other
  children:
    third: {template: third.yaml}
"""
FILES = {
    "watches.yaml": WATCHES,
    "more.yaml": MORE,
    "templates/first.yaml": "{% import 'macros/names.j2' as names %}" + SERVICE,
    "templates/macros/names.j2": "{% macro one() %}{{ file('texts/deep.txt') }}{% endmacro %}",
    "templates/texts/plain.txt": "plain",
    "templates/texts/deep.txt": "deep",
    "templates/third.yaml": SERVICE,
    "templates/unused.yaml": SERVICE,
}


def digests(files=None, **environ):
    project = build_project({**FILES, **(files or {})}, root="rules", environ=environ)
    return {rule.kind.kind: rule.digest for rule in project.rules}


def touched(files=None, **environ):
    before, after = digests(), digests(files, **environ)
    return {kind for kind in before if before[kind] != after.get(kind)}


def edited(path, old, new):
    assert old in FILES[path]
    return {path: FILES[path].replace(old, new)}


def test_unchanged_files_change_no_digest():
    assert touched() == set()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("version: v1\n    kind: App", "version: v2\n    kind: App"),
        ("number: 1", "number: 1.0"),
        ("number: 1", "number: true"),
        ("metadata.name }}", "metadata.uid }}"),
        ("when: spec.first", "when: spec.other"),
        (", when: spec.first", ""),
        ("first: {", "first: {optional: true, "),
        ("spec.key", "spec.other"),
        ('"{{ spec.key }}": x', '"{{ spec.key }}": y'),
        ("kind: Pod", "kind: Node"),
        ("selector: {app:", "selector: {tier:"),
        ("status: {ip:", "status: {address:"),
        ("    status:", "    manageStatus: false\n    status:"),
        ("    status:", "    maxConcurrentReconciles: 3\n    status:"),
        ("    status:", "    reconcilePeriod: 1h\n    status:"),
        ("    status:", "    namespaces: [a]\n    status:"),
        ("    status:", "    selector: {a: b}\n    status:"),
        ("      second:", "      another: {template: first.yaml, optional: true}\n      second:"),
        ("    status:", "    conditions: [{type: A, status: spec.a}]\n    status:"),
        ("    status:", "    validate: [{rule: spec.a, message: b}]\n    status:"),
        ("    status:", "    finalize: {end: {template: third.yaml}}\n    status:"),
    ],
)
def test_an_edit_of_a_watch_changes_only_its_own_digest(old, new):
    assert touched(edited("watches.yaml", old, new)) == {"App"}


@pytest.mark.parametrize("path", ["first.yaml", "macros/names.j2", "texts/plain.txt", "texts/deep.txt"])
def test_an_edit_of_a_used_template_or_file_changes_only_the_digest_of_its_rule(path):
    name = f"templates/{path}"
    assert touched({name: FILES[name] + "\n"}) == {"App"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SHARED:-none", "SHARED:-other"),
        ("common: ", "uncommon: "),
        ("[spec.clusterIP]", "[spec.ports]"),
        ("[spec.clusterIP]", "[spec.clusterIP], own: [spec.ports]"),
    ],
)
def test_an_edit_of_shared_settings_changes_every_digest(old, new):
    assert touched(edited("watches.yaml", old, new)) == {"App", "Other"}


def test_a_changed_environment_variable_changes_the_digests_of_its_readers():
    assert touched(OWN="another") == {"App"}
    assert touched(SHARED="another") == {"App", "Other"}
    assert touched(NOBODYS="another") == set()


@pytest.mark.parametrize(
    "files",
    [
        {"watches.yaml": "# a line in front of all\n" + WATCHES},
        {"templates/unused.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: unused}\n"},
        {"templates/new.txt": "new"},
    ],
)
def test_unrelated_files_change_no_digest(files):
    assert touched(files) == set()


def test_a_rule_with_a_computed_file_name_depends_on_every_file():
    computed = edited("watches.yaml", "file('texts/plain.txt')", "file('texts/' ~ spec.text)")
    one, two = digests(computed), digests({**computed, "templates/new.txt": "new"})
    assert (one["App"] != two["App"], one["Other"] == two["Other"]) == (True, True)


def test_the_order_of_children_is_part_of_the_digest():
    one = 'a: {template: third.yaml, when: "true"}'
    two = 'b: {template: third.yaml, when: "true", optional: true}'
    more = {"more.yaml": MORE.replace("third: {template: third.yaml}", f"{one}\n    {two}")}
    swapped = {"more.yaml": MORE.replace("third: {template: third.yaml}", f"{two}\n    {one}")}
    assert digests(more)["Other"] != digests(swapped)["Other"]


def test_every_field_of_a_rule_that_plans_depend_on_is_part_of_the_digest():
    (rule, _) = build_project(FILES, root="rules", environ={}).rules
    for field in dataclasses.fields(rule):
        if field.name not in {"site", "digest", "rbac", "rollout", "revision"}:
            other = dataclasses.replace(rule, **{field.name: "another"})
            assert list(_content(other)) != list(_content(rule)), field.name


@pytest.mark.parametrize(
    ("before", "after", "revision", "digest"),
    [
        ("${A}", "${A}", "same", "other"),
        ("x-${A:-y}", "x-${A:-y}", "same", "other"),
        ("${A:-3}", "${A:-3}", "same", "other"),
        ("${A}", "x-${A}", "other", "other"),
        ("${B:-3}", "${B:-4}", "other", "other"),
        ("${B:-3}", "${B:-3}", "same", "same"),
    ],
)
def test_the_revision_has_no_value_of_an_environment_variable(before: str, after: str, revision: str, digest: str):
    """The digest has them. A default is in the files, so it counts."""

    def rule_of(text: str, value: str):
        text = f"- {{group: example.com, version: v1, kind: App, vars: {{a: '{text}'}}}}\n"
        return build_project({"watches.yaml": text}, root="rules", environ={"A": value}).rules[0]

    one, two = rule_of(before, "1"), rule_of(after, "2")
    assert ("same" if one.revision == two.revision else "other") == revision
    assert ("same" if one.digest == two.digest else "other") == digest
