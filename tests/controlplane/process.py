"""One program of the control plane: started with its own log, watched, stopped and paused."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from .keeper import Keeper

TAIL_LINES = 25
# The growth of the heap, in percent, after which Go collects garbage. With its default, 100, that is a third of the
# work of an API server that holds little; with this value it takes 600 MB instead of 300.
GARBAGE = "400"

_Result = TypeVar("_Result")


class ControlPlaneError(Exception):
    """The control plane does not do what it should; the message has the end of the log with the reason."""


class ProcessDiedError(ControlPlaneError):
    """A program ended by itself."""


class Process:
    """A program that runs until it is stopped, in its own process group and with its own log file."""

    def __init__(self, name: str, command: Sequence[str], folder: Path, keeper: Keeper) -> None:
        self.name = name
        self.command = list(command)
        self.log = folder / f"{name}.log"
        self._folder = folder
        self._keeper = keeper
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id, for signals and for measuring CPU time and memory."""
        if self._running is None:
            raise ControlPlaneError(f"{self.name} is not running")
        return self._running.pid

    @property
    def running(self) -> bool:
        """True from start() to kill(), whether or not the process has died in between: see check()."""
        return self._running is not None

    def start(self) -> None:
        """Starts it. The caller waits until it is ready."""
        if self._running is not None:
            raise ControlPlaneError(f"{self.name} is running already")
        # Appended to: after a restart, the reason may be in the log of the first process.
        with self.log.open("ab") as log:
            self._running = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env=self._environment(),
                start_new_session=True,
            )
        self._keeper.watch_process(self._running.pid)

    def _environment(self) -> dict[str, str]:
        """Almost empty, so that no proxy, kubeconfig or setting of the user's reaches a test."""
        home = str(self._folder)
        kept = {name: os.environ[name] for name in ("PATH", "GOMAXPROCS", "GOGC") if name in os.environ}
        return {"GOGC": GARBAGE, **kept, "HOME": home, "TMPDIR": home, "KWOK_WORKDIR": str(self._folder / "kwok")}

    def check(self) -> None:
        """Raises with the end of the log if it ended by itself."""
        if self._running is not None and self._running.poll() is not None:
            raise ProcessDiedError(
                f"{self.name} ended by itself with exit status {self._running.returncode}.\n{self.tail()}"
            )

    def kill(self) -> None:
        """Ends it at once. Its files are removed with the cluster, so there is no need for an orderly exit."""
        process, self._running = self._running, None
        if process is None:
            return
        if process.poll() is None:
            # SIGKILL also ends a process that SIGSTOP holds.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._keeper.forget_process(process.pid)

    def pause(self) -> None:
        """Suspends it: when this returns, its connections are open and it does not answer on them."""
        running, pid = self._running, self.pid
        os.kill(pid, signal.SIGSTOP)
        # The signal takes a moment, and a program with many threads may answer until the last of them has stopped.
        _, status = os.waitpid(pid, os.WUNTRACED)
        if running is not None and not os.WIFSTOPPED(status):
            running.returncode = os.waitstatus_to_exitcode(status)
        self.check()

    def resume(self) -> None:
        """Continues it after pause()."""
        os.kill(self.pid, signal.SIGCONT)

    def tail(self) -> str:
        """The last lines of its log, with the log's name."""
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:]
        except OSError as error:
            lines = [f"(no log: {error})"]
        return "\n".join([f"--- the end of {self.log.name} ---", *lines])


def wait_for(
    what: str,
    probe: Callable[[], _Result | None],
    timeout: float,
    processes: Sequence[Process],
    interval: float = 0.05,
) -> _Result:
    """Calls probe until it returns something true. Its error names what was missing, or the program that died."""
    deadline = time.monotonic() + timeout
    while True:
        for process in processes:
            process.check()
        found = probe()
        if found:
            return found
        if time.monotonic() > deadline:
            tails = "\n".join(process.tail() for process in processes if process.running)
            raise ControlPlaneError(f"Waited {timeout:.0f} s in vain for {what}.\n{tails}")
        time.sleep(interval)
