"""`ruleop generate policy`: the policies to stdout or a file, and notes on what is not in them."""

from __future__ import annotations

import pytest
import yaml

from tests.authoring.generate.projects import CONFIG, WATCHES

SECOND = '    - {rule: "spec.page | trim", message: "an empty page"}\n  children:'


@pytest.fixture
def project(tmp_path):
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates/config.yaml").write_text(CONFIG)
    (tmp_path / "watches.yaml").write_text(WATCHES.replace("  children:", SECOND))
    return tmp_path


def test_policies_go_to_stdout_and_notes_to_stderr(project, ruleop):
    ran = ruleop("generate", "policy", "-C", str(project), "--name", "shop", "--namespaces", "a,b")
    policy, binding = yaml.safe_load_all(ran.out)
    assert (policy["metadata"]["name"], binding["spec"]["policyName"]) == ("shop-sites.example.com",) * 2
    reason = "only the operator checks this rule: CEL has no equal of the filter trim"
    assert ran.err == f"note: watches.yaml:9: {reason}\n"
    assert f"# watches.yaml:9: {reason}\n" in ran.out
    assert ran.status == 0


def test_a_file_is_written_and_checked(project, ruleop, tmp_path):
    arguments = ("generate", "policy", "-C", str(project), "--out", str(tmp_path / "out"))
    assert ruleop(*arguments).out.endswith("policy.yaml: written\n")
    assert ruleop(*arguments, "--check").status == 0
    (project / "watches.yaml").write_text(WATCHES)
    assert ruleop(*arguments, "--check").status == 1


def test_a_project_without_a_rule_for_cel_has_nothing_to_generate(project, ruleop):
    before, _, rest = WATCHES.partition("  validate:")
    (project / "watches.yaml").write_text(before + "  children:" + rest.partition("  children:")[2])
    ran = ruleop("generate", "policy", "-C", str(project))
    assert (ran.status, ran.out) == (2, "")
    assert "no rule of `validate` that CEL can express" in ran.err
