"""CEL rules of CRDs in the commands: a custom resource that breaks one is rejected, and a note names the others."""

from __future__ import annotations

import json
from pathlib import Path

from tests.definitions import definition

NOTE = "note: 1 CEL rule of Site is not evaluated: cel.bind(x, self.page, x != ''): cel.bind() is not implemented\n"


def add_rules(project, *rules):
    spec = {
        "type": "object",
        "properties": {"page": {"type": "string"}, "replicas": {"type": "integer", "default": 1}},
        "x-kubernetes-validations": list(rules),
    }
    project.write("crds/sites.yaml", definition("Site", spec=json.dumps(spec)))


LIMIT = {"rule": "self.replicas < 5", "message": "too many replicas"}
FIXED = {"rule": "self.page == oldSelf.page"}


def test_plan_and_render_reject_a_custom_resource_that_breaks_a_rule(project, ruleop):
    add_rules(project, LIMIT)
    assert ruleop("plan", "-f", "site.yaml").status == 0
    project.edit("site.yaml", "page: hello", "page: hello\n  replicas: 7")
    for command in ("plan", "render"):
        found = ruleop(command, "-f", "site.yaml")
        assert found.status == 1
        assert found.out == ""
        assert "site.yaml:5:1: error: spec: too many replicas (rule: self.replicas < 5)" in found.err


def test_plan_holds_a_change_to_the_rules_of_transitions(project, ruleop):
    add_rules(project, FIXED)
    project.write("before.yaml", Path(project.root, "site.yaml").read_text())
    assert ruleop("plan", "-f", "site.yaml", "--with", "before.yaml").status == 0
    project.edit("site.yaml", "page: hello", "page: other")
    assert ruleop("plan", "-f", "site.yaml").status == 0
    found = ruleop("plan", "-f", "site.yaml", "--with", "before.yaml")
    assert (found.status, found.out) == (1, "")
    assert "spec: must satisfy the rule self.page == oldSelf.page" in found.err


def test_check_reports_examples_that_break_a_rule_and_rules_that_do_not_compile(project, ruleop):
    add_rules(project, LIMIT, {"rule": "self.replica < 5"})
    project.write("examples/site.yaml", Path(project.root, "site.yaml").read_text() + "  replicas: 7\n")
    found = ruleop("check")
    assert found.status == 1
    assert "examples/site.yaml:5:1: error[RO506]: spec: too many replicas (rule: self.replicas < 5)" in found.out
    assert "error[RO401]: spec.versions[0]" in found.out
    assert "self.replica < 5: replica is not in the schema (did you mean replicas?)" in found.out


def test_a_note_names_the_rules_that_are_not_evaluated(project, ruleop):
    add_rules(project, LIMIT, {"rule": "cel.bind(x, self.page, x != '')"})
    found = ruleop("check")
    assert found.status == 0
    assert NOTE in found.out
    for arguments in (("plan", "-f", "site.yaml"), ("render", "-f", "site.yaml")):
        found = ruleop(*arguments)
        assert (found.status, found.err) == (0, NOTE)
    project.write("a.test.yaml", "- {name: a, resource: site.yaml, expect: {children: {config: {kind: ConfigMap}}}}\n")
    assert NOTE in ruleop("test").err


def test_a_step_of_a_test_that_breaks_a_rule_makes_the_custom_resource_invalid(project, ruleop):
    add_rules(project, FIXED)
    case = """\
- name: a
  resource: site.yaml
  expect: {children: {config: {kind: ConfigMap}}}
  then:
    - resource: {spec: {page: other}}
      expect: {error: oldSelf}
"""
    project.write("a.test.yaml", case)
    found = ruleop("test")
    assert found.status == 0, found.out


def test_a_project_whose_rules_are_all_evaluated_has_no_note(project, ruleop):
    add_rules(project, LIMIT, FIXED)
    assert "note:" not in ruleop("check").out
    assert ruleop("plan", "-f", "site.yaml").err == ""


def test_a_rule_that_is_not_evaluated_for_a_value_is_a_warning_at_its_field(project, ruleop):
    add_rules(project, {"rule": "!self.page.contains('m') || quantity(self.page) != quantity('1')"})
    assert ruleop("plan", "-f", "site.yaml").err == ""
    project.edit("site.yaml", "page: hello", "page: 1e3m")
    expected = (
        "warning{}: spec: the rule !self.page.contains('m') || quantity(self.page) != quantity('1') is not evaluated"
    )
    found = ruleop("plan", "-f", "site.yaml")
    assert found.status == 0
    assert expected.format("") in found.err
    project.write("examples/site.yaml", Path(project.root, "site.yaml").read_text())
    assert expected.format("[RO506]") in ruleop("check").out
