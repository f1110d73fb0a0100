"""The workflows of this repository, and that of a new project, by actionlint: keys, expressions, and the inputs of
well-known actions."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from controlplane.programs import program

from ruleop.authoring.scaffold.readme import CI
from tests.cluster.example_projects import ROOT

pytestmark = pytest.mark.real_server("actionlint is built with the control plane")

WORKFLOWS = ROOT / ".github" / "workflows"


PINNED = re.compile(r"@[0-9a-f]{40} # (v\d+)[\d.]*$", re.MULTILINE)


def findings(*files: Path) -> str:
    command = [str(program("actionlint")), "-no-color", "-shellcheck=", "-pyflakes=", *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout


@pytest.fixture
def workflows(tmp_path: Path) -> list[Path]:
    """With tags instead of the commits: actionlint knows the inputs of an action by its tag, and those of the action of
    this repository by its file, in the folder that has `.git`."""
    (tmp_path / ".git").mkdir()
    shutil.copy(ROOT / "action.yml", tmp_path)
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    for file in WORKFLOWS.glob("*.yaml"):
        (folder / file.name).write_text(PINNED.sub(r"@\1", file.read_text()))
    return sorted(folder.iterdir())


def test_the_workflows_are_sound(workflows: list[Path]) -> None:
    assert findings(*workflows) == ""


def test_the_workflow_of_a_new_project_is_sound(tmp_path: Path) -> None:
    path, text = CI["github"]
    (tmp_path / "rules.yaml").write_text(text)
    assert path.startswith(".github/workflows/")
    assert findings(tmp_path / "rules.yaml") == ""


def test_a_misspelt_input_of_the_action_of_this_repository_is_found(workflows: list[Path]) -> None:
    broken = next(each for each in workflows if each.name == "test.yaml")
    broken.write_text(broken.read_text().replace("with: {folder:", "with: {foldr:"))
    assert 'input "foldr" is not defined in action "ruleop"' in findings(broken)


def test_a_misspelt_input_is_found(workflows: list[Path]) -> None:
    broken = next(each for each in workflows if each.name == "release.yaml")
    broken.write_text(broken.read_text().replace("platforms:", "platform:"))
    assert 'input "platform" is not defined in action "docker/build-push-action' in findings(broken)
