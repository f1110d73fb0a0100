"""Coverage counts what was rendered, and each outcome of a condition."""

from __future__ import annotations

from pathlib import Path

import pytest

from ruleop.authoring.report.spans import text_of
from ruleop.authoring.ruletests.cases import parse_file
from ruleop.authoring.ruletests.coverage import FileCoverage, Probe, lcov, page, table
from ruleop.authoring.ruletests.runner import Projects, Runner, Snapshots
from tests.authoring.ruletests.running import FILES
from tests.folders import write_files

CASE = "- {name: a, resource: site.yaml, kinds: [], %sexpect: {absent: [certificate]}}\n"


def measured(root: Path, *cases: str) -> list[FileCoverage]:
    write_files(root, FILES)
    projects = Projects(root, {}, probe := Probe())
    runner = Runner(projects, Snapshots())
    for number, case in enumerate(cases):
        file = parse_file(root / "a.test.yaml", "a.test.yaml", CASE % case)
        assert file.findings == ()
        assert runner.run(file.cases[0]).failures == (), number
    return probe.files()


def shown(files: list[FileCoverage]) -> dict[str, str]:
    """The row of each file."""
    return {line.split()[0]: " ".join(line.split()[1:]) for line in text_of(table(files)).splitlines()}


def test_lines_and_branches_that_no_case_exercises_are_listed(tmp_path: Path) -> None:
    rows = shown(measured(tmp_path, ""))
    assert rows == {
        "coverage": "lines branches not exercised",
        "templates/certificate.yaml.j2": "0 % - 1-5",
        "templates/job.yaml.j2": "0 % - 1-10",
        "templates/service.yaml.j2": "0 % - 1-12",
        "templates/web.yaml.j2": "88 % 50 % 17-18; 16: if never true",
        "watches.yaml": "66 % 50 % 7, 34-35; 6: validate never false; 19: when never true",
        "total": rows["total"],
    }


def test_each_case_adds_to_the_coverage(tmp_path: Path) -> None:
    more = "set: {spec: {public: true, jobs: [a]}}, existing: [{from: render, ready: [web]}], "
    rows = shown(measured(tmp_path, "", more))
    assert rows["templates/web.yaml.j2"] == "100 % 100 %"
    assert rows["templates/service.yaml.j2"] == "100 % -"
    assert rows["templates/job.yaml.j2"] == "100 % -"
    assert rows["watches.yaml"] == "66 % 75 % 7, 34-35; 6: validate never false"


def test_inline_conditions_and_macros_count(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    files = measured(tmp_path, "")
    assert files
    (tmp_path / "templates/names.j2").write_text(
        "{% macro name(long) %}\n{% if long %}\n{{ metadata.name }}-long\n{% else %}\n{{ metadata.name }}\n{% endif %}\n{% endmacro %}\n"
    )
    (tmp_path / "templates/service.yaml.j2").write_text(
        "{% from 'names.j2' import name %}\napiVersion: v1\nkind: Service\nmetadata:\n  name: {{ name(false) | trim }}\n"
        "spec:\n  type: {{ 'NodePort' if spec.replicas > 5 else 'ClusterIP' }}\n  ports: [{port: 80}]\n"
    )
    projects = Projects(tmp_path, {}, probe := Probe())
    case = CASE % "set: {spec: {public: true}}, existing: [{from: render, ready: [web]}], "
    [only] = parse_file(tmp_path / "a.test.yaml", "a", case).cases
    assert Runner(projects, Snapshots()).run(only).failures == ()
    rows = shown(probe.files())
    assert rows["templates/names.j2"] == "75 % 50 % 3; 2: if never true"
    assert rows["templates/service.yaml.j2"] == "100 % 50 % 7: inline if never true"


LOOPED = """\
- group: example.com
  version: v1
  kind: Site
  children:
    config:
      object:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "{{ metadata.name }}-config"}
        data:
          "{% for job in spec.jobs | default([]) %}":
            "{{ job }}": job
            "{% if job == 'b' %}":
              b-page: "{{ spec.page }}"
              b-text: text
          "{% else %}":
            none: "{{ 'x' if spec.public | default(false) else 'y' }}"
  status:
    jobs:
      - "{% for job in spec.jobs | default([]) %}":
          name: "{{ job }}"
    page: "{{ spec.page }}"
"""


def test_a_body_of_a_tag_among_keys_counts(tmp_path: Path) -> None:
    files = {**FILES, "watches.yaml": LOOPED}
    write_files(tmp_path, files)
    projects = Projects(tmp_path, {}, probe := Probe())
    runner = Runner(projects, Snapshots())
    text = "- {name: a, resource: site.yaml, kinds: [], %sexpect: {children: {config: {kind: ConfigMap}}}}\n"

    def row(more: str) -> str:
        [only] = parse_file(tmp_path / "a.test.yaml", "a", text % more).cases
        assert runner.run(only).failures == ()
        return shown(probe.files())["watches.yaml"]

    assert row("") == "50 % 25 % 12-15, 21; 13: if never evaluated; 17: inline if never true"
    assert row("set: {spec: {jobs: [a]}}, ") == "80 % 50 % 14-15; 13: if never true; 17: inline if never true"
    assert row("set: {spec: {jobs: [b]}}, ") == "100 % 75 % 17: inline if never true"


def test_coverage_counts_the_lines_of_a_file_that_another_extends(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    (tmp_path / "templates/base.j2").write_text(
        "apiVersion: v1\nkind: Service\nmetadata: {name: '{{ metadata.name }}'}\n"
        "{% block spec %}\nspec: {ports: [{port: 1}]}\n{% endblock %}\n"
    )
    (tmp_path / "templates/service.yaml.j2").write_text(
        "{% extends 'base.j2' %}\n{% block spec %}\n{% if spec.replicas > 5 %}\nspec: {}\n{% else %}\n"
        "spec: {ports: [{port: 80}]}\n{% endif %}\n{% endblock %}\n"
    )
    projects = Projects(tmp_path, {}, probe := Probe())
    case = CASE % "set: {spec: {public: true}}, existing: [{from: render, ready: [web]}], "
    [only] = parse_file(tmp_path / "a.test.yaml", "a", case).cases
    assert Runner(projects, Snapshots()).run(only).failures == ()
    rows = shown(probe.files())
    assert rows["templates/base.j2"] == "80 % - 5"
    assert rows["templates/service.yaml.j2"] == "80 % 50 % 4; 3: if never true"


@pytest.mark.slow
def test_observed_templates_render_the_same(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    case = "- {name: a, resource: site.yaml, set: {spec: {public: true, jobs: [a, b]}}, existing: [{from: render, ready: true}], snapshot: s.yaml}\n"
    [only] = parse_file(tmp_path / "a.test.yaml", "a", case).cases
    assert Runner(Projects(tmp_path, {}), Snapshots(update=True)).run(only).written == ("s.yaml",)
    assert Runner(Projects(tmp_path, {}, Probe()), Snapshots()).run(only).passed


def test_lcov_has_lines_and_branches(tmp_path: Path) -> None:
    records = {
        record.split("SF:")[1].split("\n")[0]: record.split("\n")
        for record in lcov(measured(tmp_path, "")).split("end_of_record\n")
        if record
    }
    web = records["templates/web.yaml.j2"]
    assert "DA:17,0" in web
    assert "LF:18" in web
    assert next(line for line in web if line.startswith("BRDA")).startswith("BRDA:16,0,0,0")
    assert "BRF:2" in web
    assert "BRH:1" in web


def test_the_page_shows_each_line(tmp_path: Path) -> None:
    files = measured(tmp_path, "")
    text = page(files, lambda path: (tmp_path / path).read_text())
    assert '<span class="no"><i>17</i>        - name: proxy</span>' in text
    assert '<span class="part"><i>16</i>        {% if spec.public %}  <b>if never true</b></span>' in text
    assert "{{ metadata.name }}" in text
