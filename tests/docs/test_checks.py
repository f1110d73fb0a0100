"""`ruleop check --explain` has a section for each check, with a wrong and a right example that are run."""

from __future__ import annotations

from pathlib import Path

import pytest

from ruleop.authoring.checking import check_project
from ruleop.authoring.checking.missing_permissions import Grants, Roles
from ruleop.authoring.offline import documents_in
from ruleop.language.rules import ProjectErrors
from ruleop.language.rules.check_ids import CHECKS, id_of
from ruleop.language.rules.checking import load_with_sources
from ruleop.language.rules.operator_choices import Choices
from tests.definitions import definition
from tests.docs.examples import Example, examples
from tests.docs.messages import ROOT
from tests.folders import write_files

PAGE = ROOT / "ruleop" / "authoring" / "checking" / "checks.md"
EXAMPLES = examples(PAGE)

TEXT = "{type: string}"
SPEC = (
    "{type: object, required: [page], properties: {"
    f"page: {TEXT}, theme: {TEXT}, image: {TEXT}, account: {TEXT}, "
    "replicas: {type: integer, default: 1}, size: {type: string, enum: [small, large]}, "
    "admins: {type: array, default: [], items: {type: string}}}}"
)
CONDITION = ", ".join(f"{name}: {TEXT}" for name in ("type", "status", "reason", "message", "lastTransitionTime"))
STATUS = (
    "{type: object, properties: {ready: {type: integer}, observedGeneration: {type: integer}, conditions: {type: array, "
    f"items: {{type: object, properties: {{{CONDITION}, observedGeneration: {{type: integer}}}}}}}}}}}}"
)
WATCHES = """\
- group: example.com
  version: v1
  kind: Site
  children:
    web: {template: web.yaml.j2}
"""
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ metadata.name }}"}
spec:
  replicas: {{ spec.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "nginx:1.29"}]
"""


def found(example: Example, root: Path) -> set[str]:
    """The ids of the findings of the project with the files of an example."""
    files = {
        "watches.yaml": WATCHES,
        "crds/sites.yaml": definition("Site", spec=SPEC, status=STATUS, requires_spec=True),
        **example.files,
    }
    if "web.yaml.j2" in files["watches.yaml"]:
        files.setdefault("templates/web.yaml.j2", WEB)
    roles = documents_in(files["rbac.yaml"], "rbac.yaml")[0] if "rbac.yaml" in files else None
    write_files(root, files)
    try:
        loaded = load_with_sources(root, environ={})
    except ProjectErrors as errors:
        return {id_of(finding.code) for finding in errors.findings}
    grants = Grants.of("rbac.yaml", [each.data for each in roles]) if roles is not None else None
    operator = Roles(grants, Choices(leader_elect=False)) if grants is not None else None
    return {id_of(finding.code) for finding in check_project(loaded, roles=operator)}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.code)
def test_the_wrong_example_has_this_finding_and_the_right_one_none(check, tmp_path):
    assert found(EXAMPLES[f"{check.code}-wrong"], tmp_path / "wrong") == {check.id}
    assert found(EXAMPLES[f"{check.code}-right"], tmp_path / "right") == set()


def test_the_sections_are_those_of_the_checks_in_their_order():
    text = PAGE.read_text(encoding="utf-8")
    headings = [line for line in text.split("\n") if line.startswith("## RO")]
    assert headings == [f"## {check.id} {check.code}" for check in CHECKS]
    for check in CHECKS:
        assert f"## {check.id} {check.code}\n\n**{check.title}.**\n" in text
