"""The console blocks of the README and of docs/start.md: commands, and what each prints. A mark on the line before a
block says what it needs:

<!-- needs a cluster -->, <!-- needs kubectl -->,
<!-- needs the network -->                            its commands are not run without
<!-- with FILE: OLD -> NEW -->                         FILE is edited for this block, and restored after it

Output that is not shown is not compared; a line `...` stands for any lines, or none.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.docs.messages import ROOT

README, START = ROOT / "README.md", ROOT / "docs" / "start.md"
_EDIT = re.compile(r"with (\S+): (.+) -> (.+)")


@dataclass(frozen=True, slots=True)
class Command:
    line: str
    output: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Block:
    mark: str
    commands: tuple[Command, ...]

    @property
    def edit(self) -> tuple[str, str, str] | None:
        """The file, and what of it is written differently."""
        found = _EDIT.fullmatch(self.mark)
        return (found[1], found[2], found[3]) if found else None


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"(?:^<!-- ([^\n]+) -->\n)?^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(mark, tuple(commands(text.splitlines()))) for mark, text in found]


def commands(lines: list[str]) -> list[Command]:
    """The commands of a console block, each with what follows it."""
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    assert starts[0] == 0, "a block starts with a command"
    return [
        Command(re.sub(r"\s+# .*", "", lines[start][2:]), tuple(lines[start + 1 : end]))
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)
    ]


def agrees(shown: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether what is shown is what was printed, in this order and with nothing else. `...` stands for any lines, and
    at the end of a line for any text."""
    pattern = "".join(map(_pattern, shown))
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


def _pattern(line: str) -> str:
    if line == "...":
        return r"(?:.*\n)*?"
    return re.escape(line.removesuffix("...")) + (r".*\n" if line.endswith("...") else r"\n")


INTERPRETER = (sys.executable, "-c", "from ruleop.cli import main; main()")


def copy_project(target: Path) -> None:
    """The project of this repository."""
    for folder in ("templates", "crds", "examples"):
        shutil.copytree(ROOT / folder, target / folder)
    shutil.copy(ROOT / "watches.yaml", target)


def prepared(home: Path, command: Sequence[str] = INTERPRETER) -> Path:
    """A home with the checkout, and ruleop installed there as `make demo` does it."""
    checkout = home / "checkout"
    copy_project(checkout)
    install(checkout / ".venv", command)
    return home


def install(environment: Path, command: Sequence[str] = INTERPRETER) -> None:
    """The program that a virtual environment would have, which runs this command."""
    program = environment / "bin" / "ruleop"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    program.chmod(0o755)
