"""The workflows of this repository, and that of a new project, by actionlint: keys, expressions, and the inputs of
well-known actions."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from controlplane.programs import program

from ruleop.authoring.scaffold.readme import CI
from tests.cluster.example_projects import ROOT

pytestmark = pytest.mark.real_server("actionlint is built with the control plane")

WORKFLOWS = ROOT / ".github" / "workflows"


def findings(*files: Path) -> str:
    command = [str(program("actionlint")), "-no-color", "-shellcheck=", "-pyflakes=", *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout


def test_the_workflows_are_sound() -> None:
    assert findings(*sorted(WORKFLOWS.glob("*.yaml"))) == ""


def test_the_workflow_of_a_new_project_is_sound(tmp_path: Path) -> None:
    path, text = CI["github"]
    (tmp_path / "rules.yaml").write_text(text)
    assert path.startswith(".github/workflows/")
    assert findings(tmp_path / "rules.yaml") == ""


def test_a_misspelt_input_is_found(tmp_path: Path) -> None:
    broken = tmp_path / "release.yaml"
    broken.write_text((WORKFLOWS / "release.yaml").read_text().replace("platforms:", "platform:"))
    assert 'input "platform" is not defined in action "docker/build-push-action' in findings(broken)
