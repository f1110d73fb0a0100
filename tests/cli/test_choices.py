"""ruleop.yaml in commands: `check` reports its mistakes, and variables get values for all tools."""

from __future__ import annotations

import pytest

WATCHES = """\
- group: example.com
  version: v1
  kind: Site
  vars: {domain: "${DOMAIN}"}
  schema: {spec: {page: string}}
  children:
    config:
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ metadata.name }}"}, data: {host: "{{ vars.domain }}"}}
"""
SITE = "apiVersion: example.com/v1\nkind: Site\nmetadata: {name: a, namespace: default}\nspec: {page: a}\n"
CASES = """\
- name: the host
  resource: ../site.yaml
  expect:
    children: {config: {data: {host: of the file}}}
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.delenv("DOMAIN", raising=False)
    (tmp_path / "watches.yaml").write_text(WATCHES)
    (tmp_path / "site.yaml").write_text(SITE)
    (tmp_path / "ruleop.yaml").write_text("env: {DOMAIN: of the file}\n")
    return tmp_path


def test_a_variable_has_the_value_of_the_file(project, ruleop):
    ran = ruleop("render", "-C", str(project), "-f", str(project / "site.yaml"))
    assert "host: of the file" in ran.out
    (project / "tests").mkdir()
    (project / "tests" / "site.test.yaml").write_text(CASES)
    ran = ruleop("test", "-C", str(project))
    assert ran.status == 0, ran.out


def test_the_environment_overrides_the_file_and_an_env_file_both(project, ruleop, monkeypatch):
    render = ["render", "-C", str(project), "-f", str(project / "site.yaml")]
    monkeypatch.setenv("DOMAIN", "of the environment")
    assert "host: of the environment" in ruleop(*render).out
    (project / "env").write_text("DOMAIN=of the env file\n")
    assert "host: of the env file" in ruleop(*render, "--env-file", str(project / "env")).out


@pytest.mark.slow
def test_a_generated_file_does_not_depend_on_the_environment(project, ruleop, monkeypatch):
    before = [ruleop("generate", each, "-C", str(project)).out for each in ("manifests", "helm")]
    monkeypatch.setenv("DOMAIN", "of the environment")
    assert [ruleop("generate", each, "-C", str(project)).out for each in ("manifests", "helm")] == before
    assert all("of the file" in each for each in before)


@pytest.mark.slow
def test_run_does_not_read_the_file(project, ruleop):
    ran = ruleop("run", "-C", str(project))
    assert ran.status == 1
    assert "the variable DOMAIN is not set" in ran.err


def test_check_reports_the_mistakes_of_the_file_with_those_of_the_rules(project, ruleop):
    (project / "ruleop.yaml").write_text("namspace: a\n")
    (project / "watches.yaml").write_text(WATCHES.replace("object:", "objct:"))
    ran = ruleop("check", "-C", str(project))
    assert ran.status == 1
    assert 'unknown key "namspace" in ruleop.yaml (did you mean "namespace"?)' in ran.out
    assert 'unknown key "objct"' in ran.out
    assert "the variable DOMAIN is not set" not in ran.out, "the file may give it"


def test_check_warns_of_a_misspelt_variable(project, ruleop):
    (project / "ruleop.yaml").write_text("env: {DOMAIN: a, DOMIAN: b}\n")
    ran = ruleop("check", "-C", str(project))
    assert (ran.status, 'the rules do not read the variable "DOMIAN" (did you mean "DOMAIN"?)' in ran.out) == (0, True)
