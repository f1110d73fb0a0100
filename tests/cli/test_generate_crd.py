"""`ruleop generate crd`: to stdout, into a folder, compared with what is there and with what is in use."""

from __future__ import annotations

import pytest
import yaml

WATCHES = """\
- group: example.com
  version: v1
  kind: Site
  schema:
    spec: {size: integer | default=1 maximum=5, page: string}
  children: {}
  status: {size: "{{ spec.size }}"}
"""
NAME = "sites.example.com.yaml"


@pytest.fixture
def project(tmp_path):
    (tmp_path / "watches.yaml").write_text(WATCHES)
    return tmp_path


@pytest.fixture
def generate(project, ruleop):
    def run(*arguments: str):
        return ruleop("generate", "crd", "-C", str(project), *arguments)

    return run


def test_the_definition_goes_to_stdout(generate):
    ran = generate()
    assert (ran.status, ran.err) == (0, "")
    crd = yaml.safe_load(ran.out)
    assert crd["metadata"]["name"] == "sites.example.com"
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert schema["spec"]["properties"]["size"] == {"type": "integer", "maximum": 5, "default": 1}
    assert schema["status"]["properties"]["size"] == {"type": "integer"}
    assert generate().out == ran.out


def test_several_definitions_are_one_stream(generate, project):
    (project / "watches.yaml").write_text(WATCHES + WATCHES.replace("Site", "Page"))
    kinds = [each["spec"]["names"]["kind"] for each in yaml.safe_load_all(generate().out)]
    assert kinds == ["Site", "Page"]


def test_out_writes_a_file_for_each_kind_and_check_compares_it(generate, project):
    crds = str(project / "crds")
    assert generate("--out", crds).out == f"{crds}/{NAME}: written\n"
    assert (project / "crds" / NAME).read_text() == generate().out
    assert generate("--out", crds, "--check").status == 0
    (project / "watches.yaml").write_text(WATCHES.replace("maximum=5", "maximum=6"))
    ran = generate("--out", crds, "--check")
    assert (ran.status, ran.out) == (1, f"{crds}/{NAME}: not current\n")
    assert generate("--out", crds).out == f"{crds}/{NAME}: written\n"


def test_the_project_needs_no_file_in_crds_and_agrees_with_the_generated_one(generate, project, ruleop):
    assert ruleop("check", "-C", str(project)).out.startswith("No errors")
    generate("--out", str(project / "crds"))
    assert ruleop("check", "-C", str(project)).out.startswith("No errors")


def test_a_file_that_it_did_not_make_is_overwritten_with_force_only(generate, project):
    (project / "crds").mkdir()
    file = project / "crds" / NAME
    file.write_text("# mine\n")
    ran = generate("--out", str(project / "crds"))
    assert (ran.status, file.read_text()) == (2, "# mine\n")
    assert f"{file} was not made by `ruleop generate`: nothing was written; --force overwrites it" in ran.err
    assert generate("--out", str(project / "crds"), "--force").status == 0
    assert file.read_text() == generate().out


def test_a_field_that_cannot_be_inferred_is_an_error(generate, project):
    (project / "watches.yaml").write_text(WATCHES.replace("{{ spec.size }}", "{{ vars.a }}"))
    ran = generate()
    assert (ran.status, ran.out) == (1, "")
    assert "watches.yaml:7:12: error[RO401]: the type of status.size cannot be inferred" in ran.err


def test_mistakes_of_the_project_are_reported(generate, project):
    (project / "watches.yaml").write_text(WATCHES.replace("integer |", "intger |"))
    ran = generate()
    assert (ran.status, ran.out) == (1, "")
    assert 'unknown type "intger" (did you mean integer?)' in ran.err


def test_a_project_without_a_schema_has_nothing_to_generate(generate, project):
    (project / "watches.yaml").write_text("- {group: example.com, version: v1, kind: Site, children: {}}\n")
    assert (generate().status, generate().err) == (2, "ruleop: no watch has `schema`: there is nothing to generate\n")


def test_against_names_what_breaks_for_the_definition_in_use(generate, project, tmp_path):
    generate("--out", str(tmp_path / "in-use"))
    ran = generate("--against", str(tmp_path / "in-use"))
    assert (ran.status, ran.out) == (0, "sites.example.com: no breaking change\n")
    (project / "watches.yaml").write_text(WATCHES.replace("maximum=5, page", "maximum=4, pages"))
    ran = generate("--against", str(tmp_path / "in-use" / NAME))
    assert ran.status == 1
    assert ran.out == (
        "sites.example.com: 2 breaking changes\n  v1 spec.size: maximum lowered from 5 to 4\n  v1 spec.page: removed\n"
    )


def test_a_kind_that_is_not_in_use_breaks_nothing(generate, tmp_path):
    (tmp_path / "other.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n")
    ran = generate("--against", str(tmp_path / "other.yaml"))
    assert (ran.status, ran.out) == (0, "sites.example.com: new\n")


def test_a_comparison_writes_nothing(generate, tmp_path):
    for compared in (["--against", str(tmp_path)], ["--live"]):
        ran = generate(*compared, "--out", str(tmp_path))
        message = "ruleop: --against and --live write nothing: use them without --out and --check\n"
        assert (ran.status, ran.err) == (2, message)
    ran = generate("--live", "--against", str(tmp_path))
    assert (ran.status, "use one of them" in ran.err) == (2, True)


def test_plan_and_tests_of_rules_take_the_definition_from_the_schema(project, ruleop):
    (project / "site.yaml").write_text(
        "apiVersion: example.com/v1\nkind: Site\nmetadata: {name: a}\nspec: {page: hello, siz: 3}\n"
    )
    ran = ruleop("plan", "-C", str(project), "-f", str(project / "site.yaml"))
    assert "+ size: 1" in ran.out
    assert "spec.siz: is not in Site's schema, and the API server drops it (did you mean size?)" in ran.err
    (project / "tests").mkdir()
    for mode in ("plan", "dev"):
        (project / "tests" / f"{mode}.test.yaml").write_text(
            f"- name: {mode}\n  mode: {mode}\n"
            "  resource: {apiVersion: example.com/v1, kind: Site, metadata: {name: a}, spec: {page: a}}\n"
            "  expect: {status: {size: 1}}\n"
        )
    ran = ruleop("test", "-C", str(project))
    assert ran.status == 0, ran.out
