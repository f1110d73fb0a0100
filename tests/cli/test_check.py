import json

from tests.definitions import definition


def break_two(project) -> None:
    project.edit("templates/web.yaml.j2", "{{ metadata.name }}", "{{ metadta.name }}")
    project.edit("templates/config.yaml.j2", "{{ spec.page }}", "{{ spec.page | upcase }}")


def test_a_valid_project_is_summarised(project, ruleop):
    ran = ruleop("check")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == "No errors in 1 rule, 2 children, 2 templates, 1 CRD.\n"


def test_all_errors_are_reported_with_line_and_column(project, ruleop):
    break_two(project)
    ran = ruleop("check")
    assert (ran.status, ran.err) == (1, "")
    assert ran.out.startswith("templates/config.yaml.j2:4")
    assert (
        'templates/web.yaml.j2:4:12: error[RO302]: "metadta" is not known in the child "web" (did you mean "metadata"?)\n'
        "    4 │   name: {{ metadta.name }}\n"
        "      │            ^\n"
    ) in ran.out
    assert ran.out.endswith("2 errors.\n")


def test_a_warning_does_not_change_the_exit_status(project, ruleop):
    project.write("templates/spare.yaml.j2", "kind: Nothing\n")
    ran = ruleop("check")
    assert ran.status == 0
    assert "templates/spare.yaml.j2: warning[RO105]: nothing uses this template\n" in ran.out
    assert ran.out.endswith("No errors, 1 warning in 1 rule, 2 children, 3 templates, 1 CRD.\n")


def test_a_warning_is_an_error_with_strict(project, ruleop):
    project.write("templates/spare.yaml.j2", "kind: Nothing\n")
    ran = ruleop("check", "--strict")
    assert ran.status == 1
    assert "templates/spare.yaml.j2: error[RO105]: nothing uses this template\n" in ran.out
    assert ran.out.endswith("1 error.\n")


def test_paths_are_relative_to_the_current_folder(project, ruleop, monkeypatch):
    break_two(project)
    monkeypatch.chdir(project.root.parent)
    name = project.root.name
    assert f"{name}/templates/web.yaml.j2:4:12: error[RO302]:" in ruleop("check", "-C", name).out
    assert f"file={name}/templates/web.yaml.j2,line=4,col=12," in ruleop("check", "-C", name, "-o", "github").out


def test_json_output_contains_every_finding(project, ruleop):
    break_two(project)
    ran = ruleop("check", "-o", "json")
    assert ran.status == 1
    document = json.loads(ran.out)
    assert (document["errors"], document["warnings"]) == (2, 0)
    assert document["findings"][1] == {
        "path": "templates/web.yaml.j2",
        "line": 4,
        "column": 12,
        "severity": "error",
        "id": "RO302",
        "code": "unknown-name",
        "message": '"metadta" is not known in the child "web" (did you mean "metadata"?)',
    }


def test_json_output_of_a_valid_project_has_no_findings(project, ruleop):
    assert json.loads(ruleop("check", "-o", "json").out) == {
        "errors": 0,
        "warnings": 0,
        "findings": [],
        "unchecked": [],
    }


def test_kinds_without_a_schema_are_named_in_one_line(project, ruleop):
    kinds = {"cert-manager.io/v1": "Certificate", "example.org/v1": "Other", "v1": "ConfigMap"}
    children = "".join(
        f"    made{number}: {{object: {{apiVersion: {version}, kind: {kind}, metadata: {{name: '{{{{ metadata.name }}}}-m'}}}}}}\n"
        for number, (version, kind) in enumerate(kinds.items())
    )
    project.edit("watches.yaml", "  children:\n", f"  children:\n{children}")
    assert ruleop("check").out.splitlines() == [
        "not checked: no schema for cert-manager.io/v1 Certificate, example.org/v1 Other",
        "No errors in 1 rule, 5 children, 2 templates, 1 CRD.",
    ]
    document = json.loads(ruleop("check", "-o", "json").out)
    assert document["unchecked"] == ["cert-manager.io/v1 Certificate", "example.org/v1 Other"]
    project.write("crds/others.yaml", definition("Other", group="example.org"))
    assert "not checked: no schema for cert-manager.io/v1 Certificate\n" in ruleop("check").out


def test_sarif_names_rule_file_and_region(project, ruleop):
    break_two(project)
    document = json.loads(ruleop("check", "-o", "sarif").out)
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    assert run["tool"]["driver"]["name"] == "ruleop"
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert rules["RO302"]["name"] == "unknown-name"
    assert rules["RO302"]["shortDescription"] == {"text": "A name is not defined"}
    assert rules["RO302"]["help"]["text"].startswith("RO302 unknown-name\n\nA name is not defined.\n")
    assert run["results"][1]["ruleId"] == "RO302"
    assert run["results"][1]["level"] == "error"
    assert run["results"][1]["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "templates/web.yaml.j2"},
                "region": {"startLine": 4, "startColumn": 12},
            }
        }
    ]


def test_sarif_of_a_finding_without_a_line_has_no_region(project, ruleop):
    project.write("templates/spare.yaml.j2", "kind: Nothing\n")
    (result,) = json.loads(ruleop("check", "-o", "sarif").out)["runs"][0]["results"]
    assert (result["level"], result["locations"]) == (
        "warning",
        [{"physicalLocation": {"artifactLocation": {"uri": "templates/spare.yaml.j2"}}}],
    )


def test_github_commands_are_escaped(project, ruleop):
    break_two(project)
    out = ruleop("check", "-o", "github").out
    assert (
        "::error file=templates/web.yaml.j2,line=4,col=12,title=ruleop RO302 unknown-name::"
        '"metadta" is not known in the child "web" (did you mean "metadata"?)\n'
    ) in out
    project.edit("watches.yaml", "kind: Site", "kind: Site\n  '100%,a:b': 1")
    assert "100%25,a:b" in ruleop("check", "-o", "github").out


def test_env_files_override_the_environment(project, ruleop, monkeypatch):
    project.edit("watches.yaml", "  kind: Site\n", "  kind: Site\n  vars: {region: '${REGION}'}\n")
    project.edit("templates/config.yaml.j2", "{{ spec.page }}", "{{ vars.region }}")
    ran = ruleop("check")
    assert ran.status == 1
    assert "REGION" in ran.out
    monkeypatch.setenv("REGION", "eu")
    assert ruleop("check").status == 0
    project.write("some.env", "# where\n\nexport REGION='us east'\n")
    assert "page: us east" in ruleop("render", "-f", "site.yaml", "--env-file", "some.env").out
    project.write("more.env", "REGION=ap\n")
    assert "page: ap" in ruleop("render", "-f", "site.yaml", "--env-file", "some.env", "--env-file", "more.env").out


def test_a_check_is_explained_with_its_examples(ruleop, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # no project is needed
    ran = ruleop("check", "--explain", "RO302")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.startswith("RO302 unknown-name\n\nA name is not defined.\n")
    assert "Wrong:\n\n    children:\n" in ran.out
    assert "```" not in ran.out
    assert ruleop("check", "--explain", "unknown-name").out == ran.out
    assert ruleop("check", "--explain", "ro302").out == ran.out


def test_an_unknown_check_is_not_explained(ruleop):
    ran = ruleop("check", "--explain", "unknwon-name")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == (
        "ruleop: --explain: unknown check 'unknwon-name' (did you mean unknown-name?); docs/checks.md lists all\n"
    )
