"""`ruleop check` plans every custom resource of examples/, and shows what fails where it is written."""

import pytest

from tests.cli.conftest import SITE, project, ruleop

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
