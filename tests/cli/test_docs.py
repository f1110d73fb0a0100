"""The commands print the output that docs/cli/ shows."""

import re
from pathlib import Path

import pytest

from ruleop.cli.program import COMMANDS

ROOT = Path(__file__).parents[2]
PAGE = "\n".join(page.read_text("utf-8") for page in sorted((ROOT / "docs/cli").glob("*.md")))
SHOWN = re.findall(r"^```console\n\$ ruleop ([^\n]*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command for command, _ in SHOWN])
def test_the_commands_print_the_output_of_the_page(ruleop, monkeypatch, command, output):
    monkeypatch.chdir(ROOT)
    assert ruleop(*command.split()).out == output


def test_each_command_has_a_section():
    sections = re.findall(r"^## (\w+)$", PAGE, re.MULTILINE)
    assert sorted(sections) == sorted(COMMANDS)
