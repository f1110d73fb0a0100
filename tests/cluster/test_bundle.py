"""The bundle of `ruleop generate bundle`, by the Operator Framework's own validators."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from controlplane.programs import program as built

from ruleop.cli.program import program
from tests.authoring.generate.test_bundle import ABOUT
from tests.cluster.example_projects import ROOT

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'

pytestmark = pytest.mark.real_server("operator-verify is built with the control plane")


def projects() -> list[Path]:
    found = [each.parent for folder in ("examples", "tests/projects") for each in (ROOT / folder).rglob("watches.yaml")]
    return [ROOT, *sorted(found)]


@pytest.mark.parametrize("project", projects(), ids=lambda each: each.name)
def test_the_validators_find_nothing(project: Path, tmp_path: Path) -> None:
    """Those of every bundle, and of OperatorHub for what its page shows."""
    out = tmp_path / "bundle"
    command = ["generate", "bundle", "-C", str(described(project, tmp_path)), "--out", str(out)]
    ran = CliRunner().invoke(program, command)
    assert ran.exit_code == 0, ran.output
    assert verdict(out) == ""


def verdict(bundle: Path) -> str:
    """What the validators find."""
    command = [str(built("operator-verify")), "manifests", "--object_validate", "--operatorhub_validate", str(bundle)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return "\n".join(line for line in ran.stderr.splitlines() if "validator is deprecated" not in line)


def described(project: Path, tmp_path: Path) -> Path:
    """A copy of a project that says what a catalogue shows."""
    copy = tmp_path / "project"
    shutil.copytree(project, copy, ignore=shutil.ignore_patterns(".*", "tests", "ruleop", "docs", "bench", "examples"))
    (copy / "ruleop.yaml").write_text(ABOUT)
    (copy / "icon.svg").write_text(SVG)
    return copy


def test_the_validators_find_what_lacks(tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    assert CliRunner().invoke(program, ["generate", "bundle", "-C", str(ROOT), "--out", str(out)]).exit_code == 0
    assert "csv.Spec.Provider.Name not specified" in verdict(out)
