"""docs/start.md works as it is written: its commands are run in a copy of the project, and print what it shows."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.docs.console import START, agrees, blocks, install, prepared
from tests.processes.fork_server import ForkServer
from tests.waiting import PATIENCE

NETWORK = "needs the network"
MARKS = {"", "needs a cluster", "needs kubectl", NETWORK}
BLOCKS = blocks(START)
OFFLINE = [block for block in BLOCKS if block.mark not in MARKS - {""}]


@pytest.fixture
def home(tmp_path: Path, fork_server: ForkServer) -> Path:
    return prepared(tmp_path, fork_server.command())


@pytest.mark.slow
def test_the_commands_of_the_tour_print_what_it_shows(home: Path, fork_server: ForkServer) -> None:
    """As one session: a command may use the files of one before, and `cd` holds until the block ends."""
    for block in BLOCKS:
        if block.mark == NETWORK:  # what it installs is installed here already
            for environment in re.findall(
                r"python3 -m venv ~/(\S+)", "\n".join(command.line for command in block.commands)
            ):
                install(home / environment, fork_server.command())
        if block not in OFFLINE:
            continue
        if block.edit:
            path, old, new = block.edit
            file = home / "checkout" / path
            before = file.read_text()
            assert old in before
            file.write_text(before.replace(old, new))
        folder = "checkout"
        for command in block.commands:
            line = command.line.replace("/tmp/", f"{home}/")  # noqa: S108 - what the page writes there
            if line.startswith("cd ~/"):
                folder = line.removeprefix("cd ~/")
                continue
            run = subprocess.run(
                ["sh", "-c", line],
                cwd=home / folder,
                env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
            if command.output:
                assert agrees(command.output, run.stdout.splitlines()), f"{line}\n{run.stdout}"
            else:
                assert run.returncode == 0, f"{line}\n{run.stdout}"
        if block.edit:
            file.write_text(before)


def test_every_mark_is_understood() -> None:
    assert [block.mark for block in BLOCKS if block.mark not in MARKS and not block.edit] == []
    assert len(OFFLINE) >= 8


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (["a"], ["a"], True),
        (["a"], ["a", "b"], False),
        (["a", "..."], ["a", "b"], True),
        (["...", "b", "..."], ["b"], True),
        (["...", "a", "b"], ["a", "x", "b"], False),
        (["1 passed in ..."], ["1 passed in 0.02s"], True),
        (["1 passed in ..."], ["2 passed in 0.02s"], False),
    ],
)
def test_three_dots_match_any_lines(shown: list[str], printed: list[str], same: bool) -> None:
    assert agrees(shown, printed) is same
