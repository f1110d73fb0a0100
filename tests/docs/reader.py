"""A reader of docs/tutorial.md or docs/deploying.md: the files are written, the commands run, and what they print is
compared.

Marks on the line before a code block:

<!-- file PATH -->              the block is the file PATH
<!-- edit PATH: OLD -> NEW -->  PATH is edited from here on; the block shows a part of it
<!-- with PATH: OLD -> NEW -->  PATH is edited for the commands of the block, and restored
<!-- in the background -->      the command is started, and stopped at the end
<!-- needs kubectl -->          the commands are run only where kubectl is
<!-- needs a registry -->       the commands are not run
<!-- elsewhere -->              the block is a part of a file that the page does not write
"""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.docs.console import Command, agrees, commands, install
from tests.docs.messages import ROOT
from tests.folders import write_files
from tests.waiting import PATIENCE

KUBECTL, REGISTRY, ELSEWHERE = "needs kubectl", "needs a registry", "elsewhere"
_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]+) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_CHANGE = re.compile(r"(?P<word>with|edit) (?P<path>[^ :]+): (?P<old>.+) -> (?P<new>.+)")


@dataclass(frozen=True)
class Block:
    mark: str
    language: str
    text: str

    @property
    def change(self) -> re.Match[str] | None:
        return _CHANGE.fullmatch(self.mark)


def blocks(page: str) -> list[Block]:
    """Those of a page in docs/."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [Block(found["mark"] or "", found["language"], found["text"]) for found in _BLOCK.finditer(text)]


class Reader:
    """Someone who follows the page in an empty folder."""

    def __init__(self, home: Path, programs: Sequence[Path] = (), kubeconfig: Path | None = None) -> None:
        """`programs`: the folder of kubectl, and those of others."""
        self.programs = programs
        self.folder = home / "blog"
        self.folder.mkdir()
        install(home / "environment")
        folders = [home / "environment" / "bin", *programs, "/usr/local/bin", "/usr/bin", "/bin"]
        path = ":".join(map(str, folders))
        kubeconfig = kubeconfig or self.folder / "dev.kubeconfig"
        self.environment = {"PATH": path, "HOME": str(home), "KUBECONFIG": str(kubeconfig)}
        self.running: list[subprocess.Popen[str]] = []

    def follow(self, block: Block) -> None:
        change = block.change
        before = self._edited(change) if change else ""
        if block.mark.startswith("file "):
            self._write(block.mark.removeprefix("file "), block.text)
        elif block.mark == "in the background":
            self._start(block)
        elif block.language == "console" and block.mark not in ({REGISTRY} if self.programs else {REGISTRY, KUBECTL}):
            for command in commands(block.text.splitlines()):
                self.run(command)
        if change and change["word"] == "with":
            self._write(change["path"], before)

    def _edited(self, change: re.Match[str]) -> str:
        file = self.folder / change["path"]
        before = file.read_text()
        old, new = (change[side].replace("\\n", "\n") for side in ("old", "new"))
        assert before.count(old) >= 1, f"{change['path']} does not have {old!r}"
        file.write_text(before.replace(old, new))
        return before

    def _write(self, path: str, text: str) -> None:
        write_files(self.folder, {path: text})

    def _start(self, block: Block) -> None:
        (command,) = commands(block.text.splitlines())
        process = subprocess.Popen(
            command.line.split(),
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.running.append(process)

    def run(self, command: Command) -> None:
        """With a cluster in the background, until it is as far as the page shows it."""
        line, shown = command.line, command.output
        end = time.monotonic() + (PATIENCE if self.running else 0)
        while not self._agrees(line, shown):
            assert time.monotonic() < end, f"$ {line}\n{self.printed}"
            time.sleep(0.1)

    def _agrees(self, line: str, shown: tuple[str, ...]) -> bool:
        run = subprocess.run(
            ["sh", "-c", line],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        self.printed = run.stdout
        return agrees(shown, run.stdout.splitlines()) if shown else run.returncode == 0

    def stop(self) -> None:
        for process in self.running:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=PATIENCE)
