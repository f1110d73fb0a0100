"""docs/gitops.md: what it says to commit, and how the health of a custom resource shows, are so. What Argo CD and Flux
do is theirs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from ruleop.cli.program import program
from ruleop.planning.model.conditions import Conditions
from tests.docs.console import copy_project
from tests.docs.messages import ROOT

TEXT = (ROOT / "docs" / "gitops.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture
def committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for kustomize, made by the commands of the page."""
    copy_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    for language, text in BLOCKS:
        if language == "console":
            for line in text.splitlines():
                done = CliRunner().invoke(program, line.removeprefix("$ ruleop ").split())
                assert done.exit_code == 0, done.output
    return tmp_path / "deploy" / "operator"


def test_the_patch_for_variables_concerns_the_rules_and_nothing_else(committed: Path) -> None:
    (patch,) = (yaml.safe_load(text)["patches"][0] for _, text in BLOCKS if text.startswith("patches:"))
    (operation,) = yaml.safe_load(patch["patch"])
    objects: list[Any] = [
        each for file in committed.glob("*.yaml") for each in yaml.safe_load_all(file.read_text()) if "metadata" in each
    ]
    target = patch["target"]
    found = [
        each
        for each in objects
        if each["kind"] == target["kind"] and re.fullmatch(target["name"], each["metadata"]["name"])
    ]
    assert [each["metadata"]["name"] for each in found] == ["ruleop-rules"]
    assert operation["path"] == "/metadata/annotations"
    assert "annotations" not in found[0]["metadata"], "the patch adds them as a whole"


def test_the_table_of_health_has_the_conditions_as_they_are_written() -> None:
    rows = re.findall(r"^\| .+? \| (True|False) \| (True|False) \| (True|False) \|$", TEXT, re.MULTILINE)
    states = ({"ready": True}, {"reconciling": True}, {"stalled": True})
    written = [Conditions.of("Reason", **state) for state in states]
    assert rows == [(each.ready.status, each.reconciling.status, each.stalled.status) for each in written]
