"""AGENTS.md of a new project: each of its idioms is a project in which `check` finds nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from ruleop.authoring.generate.crds import installed_crds
from ruleop.authoring.generate.kind_docs import samples
from ruleop.authoring.scaffold.readme import agents_page
from ruleop.cli.generate import COMMANDS as GENERATORS
from ruleop.cli.program import COMMANDS, program
from ruleop.language.rules.checking import load_with_sources
from ruleop.language.rules.keys.tables import keys
from ruleop.language.rules.keys.watches_yaml import ChildTable, WatchTable
from ruleop.language.templates import FILTER_NAMES, SCOPE_FUNCTIONS
from tests.folders import write_files

PAGE = agents_page()
IDIOMS = dict(re.findall(r"(?ms)^### \d+\. (.+?)$(.*?)(?=^##)", PAGE))
_FILE = re.compile(r"(?ms)^```yaml\n# (\S+)\n(.*?)^```$")


def files(idiom: str) -> dict[str, str]:
    return dict(_FILE.findall(IDIOMS[idiom]))


def test_the_page_has_ten_idioms() -> None:
    assert len(IDIOMS) == 10
    assert PAGE.count("```yaml\n") == sum(len(files(each)) for each in IDIOMS)


@pytest.mark.parametrize("idiom", IDIOMS)
def test_check_finds_nothing_in_an_idiom(idiom: str, tmp_path: Path) -> None:
    write_files(tmp_path, files(idiom))
    ran = CliRunner().invoke(program, ["check", "-C", str(tmp_path)])
    assert (ran.exit_code, ran.stderr) == (0, ""), ran.output
    assert ran.stdout.startswith("No errors in 1 rule, ")


@pytest.mark.parametrize("idiom", IDIOMS)
def test_an_idiom_renders_a_custom_resource(idiom: str, tmp_path: Path) -> None:
    """The smallest that its schema admits."""
    write_files(tmp_path, files(idiom))
    loaded = load_with_sources(tmp_path, environ={})
    (sample,) = samples(loaded, installed_crds(loaded))
    write_files(tmp_path, {"examples/sample.yaml": json.dumps(sample)})
    for command in (["check", "-C", str(tmp_path)], ["plan", "-C", str(tmp_path), "-f", str(tmp_path / "examples")]):
        ran = CliRunner().invoke(program, command)
        assert (ran.exit_code, ran.stderr) == (0, ""), ran.output


def test_the_test_of_an_idiom_passes(tmp_path: Path) -> None:
    write_files(tmp_path, next(found for each in IDIOMS if "tests/site.test.yaml" in (found := files(each))))
    ran = CliRunner().invoke(program, ["test", "-C", str(tmp_path)])
    assert ran.stdout.splitlines()[-1].startswith("1 passed"), ran.output


def test_the_page_names_all_keys_filters_and_functions() -> None:
    for table in (WatchTable, ChildTable):
        assert [key.name for _, key in keys(table) if f"| `{key.name}` | " not in PAGE] == []
    assert [each for each in FILTER_NAMES if f"`{each}`" not in PAGE] == []
    assert [each for each in SCOPE_FUNCTIONS if not re.search(rf"`{each}\b", PAGE)] == []


def test_the_commands_of_the_page_exist() -> None:
    named = re.findall(r"(?m)(?:^|`)ruleop ([a-z]+)(?: ([a-z]+))?", PAGE)
    assert {first for first, _ in named} >= {"check", "render", "test", "dev", "generate", "plan", "explain"}
    for first, second in named:
        assert first in COMMANDS or first == "runs", first
        assert first != "generate" or second in GENERATORS


def test_a_page_of_an_assistant_that_exists_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("mine")
    ran = CliRunner().invoke(program, ["init", str(tmp_path)])
    assert ran.exit_code == 0
    assert "AGENTS.md exists, and was left as it is." in ran.output
    assert (tmp_path / "AGENTS.md").read_text() == "mine"
