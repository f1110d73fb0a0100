"""docs/deploying.md, except what needs a cluster (tests/cluster/test_deploying.py)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner

from ruleop.authoring.generate.chart_files import chart_files
from ruleop.authoring.generate.crds import installed_crds
from ruleop.cli.program import program
from ruleop.language.rules.checking import load_with_sources
from ruleop.language.rules.operator_choices import Choices
from tests.docs.messages import ROOT
from tests.docs.reader import ELSEWHERE, REGISTRY, blocks
from tests.folders import write_files

BLOCKS = blocks("deploying.md")


def test_every_block_is_a_file_a_change_or_commands() -> None:
    marks = {block.mark for block in BLOCKS if not (block.change or block.mark.startswith("file "))}
    assert marks == {"", REGISTRY, ELSEWHERE}
    assert all(block.language == "console" for block in BLOCKS if block.mark in {"", REGISTRY})


def test_the_values_in_the_table_are_those_of_the_chart() -> None:
    loaded = load_with_sources(ROOT, environ={})
    values: Any = yaml.safe_load(chart_files(loaded, Choices(), installed_crds(loaded))["values.yaml"])
    text = (ROOT / "docs" / "deploying.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.+?) \|", text.split("| value | |")[1].split("\n\n")[0], re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([\w.]+)`", row)]
    assert len(named) > 15
    for name in named:
        first, _, rest = name.partition(".")
        assert (rest in values[first]) if first and rest else name.removeprefix(".") in {**values, **values["image"]}


def test_the_files_of_the_page_are_a_project_without_mistakes(tmp_path: Path) -> None:
    """Also after the edits for the upgrade."""
    files = {block.mark.removeprefix("file "): block.text for block in BLOCKS if block.mark.startswith("file ")}
    for block in BLOCKS:
        if change := block.change:
            old, new = (change[side].replace("\\n", "\n") for side in ("old", "new"))
            assert old in files[change["path"]]
            assert new.split("\n")[-1] in block.text
            files[change["path"]] = files[change["path"]].replace(old, new)
    write_files(tmp_path, files)
    checked = CliRunner().invoke(program, ["check", "-C", str(tmp_path)])
    assert (checked.exit_code, checked.output) == (0, "No errors in 1 rule, 1 child, 1 template, 1 CRD.\n")
