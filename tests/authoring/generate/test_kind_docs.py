"""The reference of the kinds says what their users need, and shows text of a project as text."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ruleop.authoring.generate.crds import installed_crds
from ruleop.authoring.generate.kind_docs import REASONS, block, code, kind_docs, prose, rows, table
from ruleop.cli.program import program
from ruleop.planning.model import marks
from tests.authoring.generate.projects import CONFIG, project
from tests.docs.messages import ROOT

WATCHES = """\
- group: example.com
  version: v1
  kind: Site
  let: {size: "{{ spec.size | default('small') }}", configName: "{{ metadata.name }}-config"}
  schema:
    spec:
      page: string | required=true pattern="^a|b$" description="The page, as <b>HTML</b> or `text` | plain."
      size: string | enum="small,large" default=small immutable=true
      replicas: integer | minimum=1 maximum=5
      env: "[]Variable"
      labels: "map[string]string"
    types:
      Variable: {name: string | required=true, value: string}
    validation:
      - {rule: "self.size != 'large' || self.replicas > 1", message: a large Site needs two replicas}
    columns:
      - {name: Page, jsonPath: .spec.page, wide: true}
    shortNames: [si]
  validate:
    - {rule: "size == 'small' or spec.page != ''", message: "a {{ size }} Site needs a page."}
  children:
    config:
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ configName }}"}, data: {page: "{{ spec.page }}"}}
      deletion: orphan
    copies:
      dependsOn: [config]
      forEach: {variable: spec.env, zone: "['a', 'b']"}
      when: spec.size == 'large'
      deletion: "{{ 'orphan' if spec.size == 'large' else 'delete' }}"
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ metadata.name }}-{{ variable.name }}-{{ zone }}"}}
  finalize:
    farewell:
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "bye-{{ metadata.name }}"}}
    leave:
      forEachOf: copies
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "bye-{{ metadata.name }}-{{ zone }}"}}
  status:
    address: "{{ config.metadata.name }}"
  conditions:
    - {type: Served, status: ready.config, reason: "{{ 'Up' if ready.config else 'Starting' }}"}
    - {type: Large, status: "size == 'large'"}
    - {type: Fixed, status: "true", reason: Always}
"""


def copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


def docs(watches: str = WATCHES, files: dict[str, str] | None = None) -> str:
    loaded = project(files, watches)
    return kind_docs(loaded, installed_crds(loaded))


def row(text: str, first: str) -> list[str]:
    (found,) = (line for line in text.splitlines() if line.startswith(f"| {first} |"))
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", found)[1:-1]]


def test_a_field_has_its_type_default_constraints_and_description() -> None:
    text = docs()
    assert row(text, "`spec`") == ["`spec`", "`object`", "", "required; a large Site needs two replicas", ""]
    assert row(text, "`spec.page`") == [
        "`spec.page`",
        "`string`",
        "",
        "required; matches <code>^a&#124;b$</code>",
        r"The page, as &lt;b&gt;HTML&lt;/b&gt; or \`text\` \| plain.",
    ]
    assert row(text, "`spec.size`")[1:4] == ["`string`", '`"small"`', "one of `small`, `large`; immutable"]
    assert row(text, "`spec.replicas`")[1:4] == ["`integer`", "", "at least 1; at most 5"]
    assert row(text, "`spec.env`")[1:2] == ["`[]object`"]
    assert row(text, "`spec.env[].name`")[3] == "required"
    assert row(text, "`spec.labels`")[1] == "`map[string]string`"
    assert row(text, "`status.address`") == ["`status.address`", "`string`"]
    assert row(text, "Page") == ["Page", "`.spec.page`", "with `-o wide`"]
    assert "API `example.com/v1`, namespaced. For kubectl: `sites`, `site`, `si`." in text


def test_a_rule_is_a_sentence_with_its_message_and_the_meaning_of_its_names() -> None:
    assert (
        "- `size == 'small' or spec.page != ''`, where `size` is <code>spec.size &#124; default('small')</code>,"
        " must hold: a {{ size }} Site needs a page.\n"
    ) in docs()


def test_conditions_have_the_reasons_that_the_rules_write() -> None:
    text = docs()
    assert row(text, "`Served`") == ["`Served`", "`ready.config`", "`Up`, `Starting`"]
    assert row(text, "`Large`")[2] == "`Holds`, `DoesNotHold`, `Unknown`"
    assert row(text, "`Fixed`")[2] == "`Always`"


def test_objects_have_their_names_and_when_they_are_made() -> None:
    text = docs()
    assert row(text, "`config`") == ["`config`", "ConfigMap", "`{{ metadata.name }}-config`", "", ""]
    assert row(text, "`copies`") == [
        "`copies`",
        "ConfigMap",
        "`{{ metadata.name }}-{{ variable.name }}-{{ zone }}`",
        "`spec.size == 'large'`",
        "one for each `variable` in `spec.env` and each `zone` in `['a', 'b']`; after `config` is ready",
    ]
    assert row(text, "`farewell`")[4] == "made when the resource is deleted"
    assert row(text, "`leave`")[4] == "made when one of `copies` is to be deleted, which waits until it is ready"


KEPT = """\
- group: example.com
  version: v1
  kind: Site
  let: {size: "{{ spec.size }}"}
  schema: {spec: {size: integer | default=1, backupAt: string | required=true}}
  children:
    password:
      when: size > 1
      apply: {strategy: create-only}
      object: {apiVersion: v1, kind: Secret, metadata: {name: "{{ metadata.name }}"}}
    session:
      apply: {strategy: create-only}
      rotateEvery: 90d
      object:
        apiVersion: v1
        kind: Secret
        metadata: {name: "{{ metadata.name }}-session"}
        stringData: {key: "{{ random_password(24) }}"}
    migrate:
      once: "{{ size }}"
      object: JOB
    backup:
      schedule: "{{ spec.backupAt }}"
      object: JOB
    scan:
      object: JOB
"""
JOB = """
        apiVersion: batch/v1
        kind: Job
        metadata: {name: "{{ metadata.name }}-job"}
        spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: "a:1"}]}}}"""


def test_objects_that_are_made_once_or_never_changed_have_a_note() -> None:
    text = docs(KEPT.replace(" JOB", JOB))
    assert row(text, "`password`")[3:] == ["`size > 1`, where `size` is `spec.size`", "not changed after its creation"]
    assert row(text, "`session`")[4] == "not changed after its creation, but for new random values"
    assert row(text, "`migrate`")[4] == "made once for each `{{ size }}`"
    assert row(text, "`backup`")[4] == "made at each time of the schedule `{{ spec.backupAt }}`"
    assert row(text, "`scan`")[4] == "not changed after its creation"


def test_objects_that_stay_after_a_deletion_are_named() -> None:
    text = docs()
    assert "\n- `config` (ConfigMap)\n" in text
    assert "\n- `copies` (ConfigMap), where `'orphan' if spec.size == 'large' else 'delete'` is `orphan`\n" in text
    assert "The annotation `ruleop.dev/skip-finalize` gives up on them." in text
    assert "These stay" not in docs(re.sub(r"(?m)^ *deletion:.*\n", "", WATCHES))


@pytest.mark.slow
def test_the_smallest_and_the_largest_example_are_shown(tmp_path: Path) -> None:
    for name in ("watches.yaml", "crds", "templates"):
        copy(ROOT / "examples/wordpress" / name, tmp_path / name)
    assert "An example:" in generated("-C", str(tmp_path))
    copy(ROOT / "examples/wordpress/examples", tmp_path / "examples")
    text = generated("-C", str(tmp_path))
    small, large = (yaml.safe_load(each) for each in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL))
    assert (small["metadata"]["name"], large["metadata"]["name"]) == ("small", "blog")


def test_a_kind_without_a_crd_has_its_objects() -> None:
    watches = WATCHES[: WATCHES.index("  schema:")] + WATCHES[WATCHES.index("  validate:") :]
    text = docs(watches)
    assert "Its fields are not described in this project." in text
    assert row(text, "`config`")[1] == "ConfigMap"


def test_several_kinds_have_a_list_and_several_versions_their_fields() -> None:
    versions = "    versions: {v1beta1: {spec: {page: string, size: string, replicas: integer, env: '[]Variable', labels: 'map[string]string'}, deprecated: true}}\n"
    other = "- {group: example.com, version: v1, kind: Shop, children: {c: {template: config.yaml}}}\n"
    text = docs(
        WATCHES.replace("    shortNames", f"{versions}    shortNames") + other, {"templates/config.yaml": CONFIG}
    )
    assert "- [Site](#site)\n- [Shop](#shop)\n" in text
    assert "### Fields of v1\n" in text
    assert "### Fields of v1beta1\n" in text
    assert "`v1beta1` is deprecated.\n" in text


@pytest.mark.slow
def test_a_large_type_of_the_api_does_not_hide_the_other_fields() -> None:
    text = docs(WATCHES.replace('"map[string]string"', "{$ref: v1.PodSpec}"))
    assert re.fullmatch(r"\d+ fields", row(text, "`spec.labels`")[3].split("; ")[-1])
    assert "`spec.labels.containers" not in text
    assert "`spec.env[].name`" in text


@pytest.mark.slow
def test_every_reason_and_annotation_is_explained() -> None:
    assert set(marks.SWITCHES) == {marks.PAUSED, marks.SKIP_FINALIZE, marks.SKIP_ORDER, marks.RECONCILE_PERIOD}
    assert all(f"`{name}`" in docs() for name in (*REASONS, *marks.SWITCHES))


def test_constraints_of_json_schema_are_in_words() -> None:
    schema = {
        "type": "array",
        "nullable": True,
        "x-kubernetes-list-type": "set",
        "maxItems": 3,
        "items": {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "multipleOf": 2, "enum": [2, 4]},
    }
    assert [tuple(each) for each in rows(schema, "spec.sizes", required=True)] == [
        ("`spec.sizes`", "`[]integer`", "", "required; items at most 3; no item twice; may be null", ""),
        ("`spec.sizes[]`", "`integer`", "", "one of `2`, `4`; more than 0; a multiple of 2", ""),
    ]


# -- Markdown ----------------------------------------------------------------------------------------------------------

texts = st.text(st.sampled_from("ab `|\\<>&*_[]()#-+.1\n~\x1b"), max_size=20)


@given(texts, texts)
def test_no_text_leaves_its_cell(one: str, other: str) -> None:
    lines = table(("a", "b"), [("x", "x"), (prose(one), code(other))]).splitlines()
    assert len(lines) == 4
    for found in (prose(one), code(other)):
        bars = re.findall(r"(\\*)\|", found)
        assert all(len(backslashes) % 2 for backslashes in bars), "a bar has to be escaped"


@given(texts)
def test_prose_has_no_tag_and_no_span(text: str) -> None:
    assert not re.search(r"[<>]", prose(text).removeprefix("\\>"))
    assert not re.search(r"(?<!\\)(\\\\)*[`*\[\]]", prose(text))


@given(texts)
def test_a_span_ends_at_its_end(text: str) -> None:
    found = code(text)
    if found.startswith("`"):
        (fence,) = re.findall("^`+", found)
        assert found.endswith(fence)
        assert all(len(run) != len(fence) for run in re.findall("`+", found[len(fence) : -len(fence)]))
    elif found:
        assert re.fullmatch(r"<code>[^<`|\\*_]*</code>", found)


def test_a_block_has_a_longer_fence_than_its_text() -> None:
    assert block("a: |\n  ````\n", "yaml") == "`````yaml\na: |\n  ````\n`````\n"


# -- the command -------------------------------------------------------------------------------------------------------


def generated(*arguments: str, status: int = 0) -> str:
    ran = CliRunner().invoke(program, ["generate", "docs", *arguments])
    assert ran.exit_code == status, ran.output
    return ran.output


@pytest.mark.slow
def test_the_file_is_written_checked_and_never_taken_from_others(tmp_path: Path) -> None:
    write = ("-C", str(ROOT), "--out", str(tmp_path))
    assert "written" in generated(*write)
    assert "not current" not in generated(*write, "--check")
    (tmp_path / "reference.md").write_text("# by hand\n")
    assert "not current" in generated(*write, "--check", status=1)
    assert "was not made by" in generated(*write, status=2)
    assert "written" in generated(*write, "--force")


@pytest.mark.parametrize(
    "path", sorted(each.parent for each in (ROOT / "examples").rglob("watches.yaml")), ids=lambda path: path.name
)
def test_each_example_has_a_reference(path: Path) -> None:
    text = generated("-C", str(path))
    assert "### Fields" in text
    assert "\n\n\n" not in text
