"""The two servers that a client is run against, and a story: the same commands on both, one after the other."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.clients.normalise import normalised

HERE = Path(__file__).resolve().parent
STORIES = HERE / "stories"
FILES = HERE / "files"
COMMAND_TIMEOUT = 90.0
SETTLE_TIMEOUT = 20.0  # until controllers have done their work
READS = re.compile(
    r"^(kubectl (get|describe|diff|events|explain|api-resources|rollout history|wait|top|auth)|helm (status|list|get))\b"
)


@dataclass(frozen=True, slots=True)
class Side:
    """One server, and the folder in which its clients run."""

    name: str
    folder: Path
    programs: tuple[Path, ...]

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    def prepare(self, kubeconfig: Path) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(kubeconfig, self.kubeconfig)
        shutil.copytree(FILES, self.folder, dirs_exist_ok=True)

    def run(self, command: str) -> str:
        """The output of a shell command on both of its streams, and its exit status."""
        path = os.pathsep.join([*map(str, self.programs), os.environ.get("PATH", "")])
        environment = {"PATH": path, "HOME": str(self.folder), "KUBECONFIG": str(self.kubeconfig), "TZ": "UTC"}
        started = subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = started.communicate(timeout=COMMAND_TIMEOUT)
            status = str(started.returncode)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
            output, _ = started.communicate()
            status = "none: it did not end"
        return f"{output.decode(errors='replace')}[exit status {status}]\n"


@dataclass(frozen=True, slots=True)
class Step:
    command: str
    outputs: tuple[str, str]  # normalised

    @property
    def is_equal(self) -> bool:
        return self.outputs[0] == self.outputs[1]


class Sides:
    """Both servers, real and in memory."""

    def __init__(self, real: Side, local: Side) -> None:
        self.sides = (real, local)
        self._pool = ThreadPoolExecutor(2)

    def run(self, command: str) -> Step:
        """Runs a command on both. What only reads is repeated until both say the same, or time is up: controllers may
        be at work still."""
        deadline = time.monotonic() + SETTLE_TIMEOUT
        while True:
            found = tuple(self._pool.map(lambda side: normalised(side.run(command)), self.sides))
            step = Step(command, (found[0], found[1]))
            if step.is_equal or not READS.match(command) or time.monotonic() > deadline:
                return step
            time.sleep(0.3)

    def tell(self, commands: Sequence[str], namespace: str) -> Iterator[Step]:
        """Runs commands in a namespace of their own."""
        setup = (
            f"kubectl create namespace {shlex.quote(namespace)} --dry-run=client -o yaml | kubectl apply -f - && "
            f"kubectl config set-context --current --namespace={shlex.quote(namespace)} && "
            "for i in $(seq 100); do kubectl get serviceaccount default >/dev/null 2>&1 && break; sleep 0.1; done"
        )
        for output in self._pool.map(lambda side: side.run(setup), self.sides):
            assert "[exit status 0]" in output, output
        yield from map(self.run, commands)


def commands_of(story: Path) -> list[str]:
    lines = (line.strip() for line in story.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]
