"""`ruleop check` plans every custom resource of examples/, and shows what fails where it is written."""

import pytest

from tests.cli.conftest import SITE, project, ruleop
from tests.folders import write_files

__all__ = ["project", "ruleop"]


def said(ruleop) -> list[str]:
    return [line for line in ruleop("check").out.split("\n") if "RO506" in line]


def test_examples_that_work_are_silent(project, ruleop):
    project.write("examples/site.yaml", SITE)
    ran = ruleop("check")
    assert (ran.status, ran.out) == (0, "No errors in 1 rule, 2 children, 2 templates, 1 CRD.\n")


def test_an_example_that_cannot_be_rendered_is_an_error_in_the_template(project, ruleop):
    project.write("examples/site.yaml", SITE)
    project.edit("templates/config.yaml.j2", "{{ spec.page }}", "{{ spec.page | from_json }}")
    ran = ruleop("check")
    assert ran.status == 1
    assert [line.partition(": config:")[0] for line in said(ruleop)] == ["templates/config.yaml.j2:4: error[RO506]"]
    assert said(ruleop)[0].endswith("(with examples/site.yaml:1)")


def test_a_line_with_another_error_is_reported_once(project, ruleop):
    project.write("examples/site.yaml", SITE)
    project.edit("templates/web.yaml.j2", "replicas: {{ spec.replicas }}", 'replicas: "2"')
    assert said(ruleop) == []
    assert ruleop("check").status == 1


def test_an_example_whose_child_is_invalid_is_an_error_in_the_template(project, ruleop):
    project.write("examples/site.yaml", SITE.replace("page: hello", "page: '[1]'"))
    project.edit("templates/web.yaml.j2", "replicas: {{ spec.replicas }}", "replicas: {{ spec.page | from_json }}")
    assert said(ruleop) == [
        "templates/web.yaml.j2:6:3: error[RO506]: web: Deployment/blog: spec.replicas: must be an integer, not a list (with examples/site.yaml:1)"
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("page: hello", "page: 3", "6:3: error[RO506]: spec.page: must be a string, not 3"),
        (
            "page: hello",
            "page: a\n  pgae: b",
            "7:3: error[RO506]: spec.pgae: is not in Site's schema, and the API server drops it (did you mean page?)",
        ),
        ("name: blog", "name: Blog!", "4:3: error[RO506]: metadata.name: 'Blog!' is not valid: a name has "),
        (
            "metadata:\n  name: blog\n",
            "",
            "1:1: error[RO506]: metadata: is required, and must be an object with a name",
        ),
        ("spec:", "spec: [", "error[RO506]: not YAML: "),
    ],
)
def test_an_example_that_the_api_server_would_refuse_is_an_error_in_its_file(project, ruleop, old, new, message):
    assert old in SITE
    project.write("examples/site.yaml", SITE.replace(old, new))
    assert ruleop("check").status == 1
    assert message in said(ruleop)[0]


def test_an_example_that_no_rule_selects_is_an_error(project, ruleop):
    project.edit("watches.yaml", "kind: Site", "kind: Site\n  selector: {team: a}")
    project.write("examples/site.yaml", SITE)
    assert said(ruleop) == [
        "examples/site.yaml:1:1: error[RO506]: no rule selects this custom resource (see selector and namespaces)"
    ]


def test_an_example_in_another_version_is_an_error(project, ruleop):
    project.write("examples/site.yaml", SITE.replace("example.com/v1", "example.com/v2"))
    assert said(ruleop) == [
        "examples/site.yaml:1:1: error[RO506]: Site is watched in example.com/v1, not in example.com/v2"
    ]


SCHEMA = """\
- group: example.com
  version: v1
  kind: Site
  schema:
    spec: {page: string, size: integer | default=1}
    versions:
      v1alpha1: {served: SERVED, spec: {page: string, size: integer | default=1}}
  children:
    config:
      object:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "{{ metadata.name }}"}
        data: {page: "{{ spec.page | default('') }}", version: "{{ cr.apiVersion }}", size: "{{ spec.size | string }}"}
"""
OLD = "apiVersion: example.com/v1alpha1\nkind: Site\nmetadata: {name: old}\nspec: {page: hello}\n"


def test_a_resource_in_another_served_version_is_read_in_the_version_of_its_rule(tmp_path, ruleop, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, {"watches.yaml": SCHEMA.replace("SERVED", "true"), "examples/old.yaml": OLD})
    assert said(ruleop) == []
    rendered = ruleop("render", "-f", "examples/old.yaml")
    assert rendered.status == 0
    assert "version: example.com/v1\n" in rendered.out
    assert 'size: "1"\n' in rendered.out
    (tmp_path / "examples/old.yaml").write_text(OLD.replace("hello", "3"), "utf-8")
    assert said(ruleop) == ["examples/old.yaml:4:8: error[RO506]: spec.page: must be a string, not 3"]
    assert ruleop("plan", "-f", "examples/old.yaml").status == 1


def test_a_resource_in_a_version_that_is_not_served_is_an_error(tmp_path, ruleop, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, {"watches.yaml": SCHEMA.replace("SERVED", "false"), "examples/old.yaml": OLD})
    message = "Site is watched in example.com/v1, not in example.com/v1alpha1"
    assert said(ruleop) == [f"examples/old.yaml:1:1: error[RO506]: {message}"]
    assert message in ruleop("plan", "-f", "examples/old.yaml").err


def test_other_objects_exist_already(project, ruleop):
    project.edit(
        "watches.yaml", "  children:", "  observe:\n    text: {version: v1, kind: ConfigMap, name: text}\n  children:"
    )
    project.edit("templates/config.yaml.j2", "{{ spec.page }}", "{{ text.data.page | from_json }}")
    project.write("examples/site.yaml", SITE)
    assert said(ruleop) == []  # it waits for the ConfigMap
    project.write(
        "examples/text.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: text}\ndata: {page: hello}\n"
    )
    assert len(said(ruleop)) == 1


def test_subfolders_and_tests_of_rules_are_not_read(project, ruleop):
    for name in ("examples/more/a.yaml", "examples/a.test.yaml", "examples/notes.md", "examples/.hidden.yaml"):
        project.write(name, "a: [")
    assert said(ruleop) == []


def test_a_finding_in_an_example_is_allowed_there(project, ruleop):
    text = SITE.replace("page: hello", "page: 3  # ruleop: allow RO506 it shows the message of the API server")
    project.write("examples/site.yaml", text)
    assert ruleop("check").status == 0
