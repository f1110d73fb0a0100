"""Completion for bash, zsh and fish, by the one line of docs/cli.md."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ruleop.cli.program import COMMANDS, program
from tests.waiting import PATIENCE

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text("utf-8")
LINES = {
    "bash": 'eval "$(_RULEOP_COMPLETE=bash_source ruleop)"',
    "zsh": 'eval "$(_RULEOP_COMPLETE=zsh_source ruleop)"',
    "fish": "_RULEOP_COMPLETE=fish_source ruleop | source",
}


@pytest.fixture
def completed(monkeypatch, capsys):
    """What a shell is offered after the words of a line, of which the last is incomplete."""

    def complete(*words: str, shell: str = "zsh") -> list[tuple[str, str]]:
        monkeypatch.setenv("_RULEOP_COMPLETE", f"{shell}_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(["ruleop", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        with pytest.raises(SystemExit) as ended:
            program.main(args=[], prog_name="ruleop")
        assert ended.value.code == 0
        kinds, values = [], capsys.readouterr().out.splitlines()
        while values:
            kinds.append((values[0], values[1]))
            values = values[3:]
        return kinds

    return complete


def test_commands_are_completed_without_importing_them(completed, monkeypatch):
    monkeypatch.setattr("importlib.import_module", lambda name: pytest.fail(f"{name} was imported"))
    assert completed("") == [("plain", name) for name in COMMANDS]
    assert completed("ren") == [("plain", "rename"), ("plain", "render")]


def test_options_are_completed(completed):
    assert ("plain", "--with") in completed("plan", "--")
    assert [value for _, value in completed("check", "-o", "")] == ["text", "json", "sarif", "github"]


def test_paths_are_left_to_the_shell(completed):
    assert completed("plan", "-f", "exam") == [("file", "exam")]
    assert completed("check", "-C", "exam") == [("dir", "exam")]
    assert completed("plan", "--replay", "pass") == [("file", "pass")]


def test_after_an_unknown_command_the_known_ones_are_offered(completed):
    assert ("plain", "check") in completed("chek", "")


@pytest.mark.parametrize("shell", LINES)
def test_the_line_for_each_shell_is_documented(shell):
    assert f"| `{LINES[shell].replace('|', chr(92) + '|')}` |" in PAGE


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_script_of_the_shell_asks_ruleop(shell, monkeypatch, capsys):
    monkeypatch.setenv("_RULEOP_COMPLETE", f"{shell}_source")
    with pytest.raises(SystemExit):
        program.main(args=[], prog_name="ruleop")
    assert f"_RULEOP_COMPLETE={shell}_complete" in capsys.readouterr().out


def test_the_line_for_bash_works_in_bash(tmp_path):
    ruleop = tmp_path / "ruleop"
    ruleop.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from ruleop.cli import main; main()" "$@"\n')
    ruleop.chmod(0o755)
    bash = shutil.which("bash")
    assert bash is not None
    script = f"""{LINES["bash"]}
    COMP_WORDS=(ruleop rend) COMP_CWORD=1
    _ruleop_completion ruleop rend ruleop
    echo "${{COMPREPLY[@]}}"
    """
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [bash, "-c", script], capture_output=True, text=True, env=environ, check=True, timeout=PATIENCE
    )
    assert run.stdout == "render\n", run.stderr
