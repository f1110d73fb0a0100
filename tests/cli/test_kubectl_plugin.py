"""`kubectl ruleop`: kubectl runs what it finds as `kubectl-ruleop`, and the program shows itself by that name."""

from __future__ import annotations

import sys
from importlib.metadata import distribution

import pytest


@pytest.fixture
def plugin(monkeypatch, capsys):
    """Runs the entry point in this process, as a virtual environment installs it."""
    (entry,) = distribution("ruleop").entry_points.select(group="console_scripts", name="kubectl-ruleop")

    def run(*arguments: str, program: str = "/opt/venv/bin/kubectl-ruleop"):
        monkeypatch.setattr(sys, "argv", [program, *arguments])
        with pytest.raises(SystemExit) as ended:
            entry.load()()
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    return run


def test_usage_names_the_plugin_as_kubectl_calls_it(plugin):
    status, out, _ = plugin("check", "--help")
    assert (status, out.splitlines()[0]) == (0, "Usage: kubectl ruleop check [OPTIONS]")


def test_a_mistake_in_the_command_line_names_it_too(plugin):
    assert plugin("chek") == (
        2,
        "",
        "kubectl ruleop: unknown command 'chek' (did you mean check?)\nTry: kubectl ruleop --help\n",
    )


def test_the_program_itself_keeps_its_name(plugin):
    status, out, _ = plugin("check", "--help", program="/opt/venv/bin/ruleop")
    assert (status, out.splitlines()[0]) == (0, "Usage: ruleop check [OPTIONS]")
