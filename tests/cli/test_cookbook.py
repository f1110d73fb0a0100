"""The recipes of the cookbook are projects that work: no finding, tests that pass, and ready under `ruleop dev`."""

from __future__ import annotations

import re
import textwrap

import pytest

from tests.docs.messages import ROOT
from tests.waiting import PATIENCE

FOLDER = ROOT / "examples" / "cookbook"
RECIPES = sorted(path.name for path in FOLDER.iterdir())
PAGE = (ROOT / "docs" / "cookbook.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"(?ms)^\[([a-z-]+)\]\(\.\./examples/cookbook/\1\):(.*?)(?=^## |\Z)", PAGE))
PROJECTS = sorted(
    path.parent for pattern in ("*", "cookbook/*") for path in ROOT.glob(f"examples/{pattern}/watches.yaml")
)
RECIPE = pytest.mark.parametrize("name", RECIPES)


@RECIPE
def test_check_finds_nothing_in_a_recipe(ruleop, name):
    found = ruleop("check", "-C", str(FOLDER / name))
    assert found.status == 0
    *unchecked, verdict = found.out.splitlines()
    assert verdict.startswith("No errors in "), found.out
    assert all(each.startswith("not checked: no schema for ") for each in unchecked), found.out


@RECIPE
def test_the_tests_of_a_recipe_pass(ruleop, name):
    found = ruleop("test", "-C", str(FOLDER / name))
    assert found.status == 0, found.out


@pytest.mark.slow
@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.name)
def test_a_recipe_and_an_example_become_ready(process, project):
    """After the objects that others make, where it needs some."""
    folders = [path for part in ("existing", "examples") if (path := project / part).is_dir()]
    applied = [word for folder in folders for word in ("--apply", str(folder))]
    dev = process("dev", "-C", str(project), *applied, "--once")
    out, err = dev.communicate(timeout=PATIENCE)
    assert dev.returncode == 0, out + err


def test_the_page_has_each_recipe():
    assert sorted(SECTIONS) == RECIPES


@RECIPE
def test_the_page_shows_parts_of_the_recipe(name):
    """A part may have gaps between its lines, but no line of its own."""
    files = [path.read_text(encoding="utf-8") for path in (FOLDER / name).rglob("*") if path.is_file()]
    lines = [{" ".join(line.split()) for line in text.splitlines()} for text in files]
    for block in re.findall(r"(?ms)^```yaml\n(.*?)^```$", SECTIONS[name]):
        shown = [" ".join(line.split()) for line in textwrap.dedent(block).splitlines()]
        assert any(file.issuperset(shown) for file in lines), block
