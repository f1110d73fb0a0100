"""Ends the control plane's processes when the process that started them is gone, however it went.

A test run that is killed with SIGKILL cannot tidy up. So it starts this small process first and writes to its standard
input what must be removed: when that pipe ends, its writer has ended. This works on every Unix, and unlike Linux's
"parent death signal" it does not depend on which thread started a process.

Run as a script. Lines on standard input, a word and a JSON string or number:
    pid N       kill the process group N at the end
    gone N      N has ended and been waited for; its number may by now belong to somebody else
    folder P    remove the folder P at the end
    done        everything is tidy: leave the folders and go
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path


class Keeper:
    """The writer's end: starts the keeper, and names the processes and folders for it."""

    def __init__(self) -> None:
        # -I -S: without the user's set-up. Its own session: Ctrl-C in a terminal must not end it.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            start_new_session=True,
            cwd="/",
            text=True,
        )
        self._lock = threading.Lock()

    def _tell(self, word: str, value: object = None) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        with self._lock:
            stdin.write(f"{word} {json.dumps(value)}\n")
            stdin.flush()

    def watch_process(self, pid: int) -> None:
        """Lets the keeper kill this process group if this process dies."""
        self._tell("pid", pid)

    def forget_process(self, pid: int) -> None:
        """To be called after the process was waited for, before its number can be given to another."""
        with contextlib.suppress(BrokenPipeError):  # the keeper was killed, and is not needed
            self._tell("gone", pid)

    def watch_folder(self, folder: Path) -> None:
        """Lets the keeper remove this folder if this process dies."""
        self._tell("folder", str(folder))

    def close(self) -> None:
        """The owner has removed everything; the keeper ends without touching anything."""
        with contextlib.suppress(BrokenPipeError):
            self._tell("done")
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(BrokenPipeError):
            stdin.close()
        self._process.wait()


def keep(lines: Iterable[str]) -> None:
    """The reader's end: listens until the pipe ends, then tidies up."""
    pids: set[int] = set()
    folders: list[str] = []
    for line in lines:
        word, _, value = line.partition(" ")
        match word:
            case "pid":
                pids.add(int(json.loads(value)))
            case "gone":
                pids.discard(int(json.loads(value)))
            case "folder":
                folders.append(str(json.loads(value)))
            case _:
                return
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    for folder in folders:
        # A process that is being killed may still write; the second time finds nothing new.
        for pause in (0.0, 0.5):
            time.sleep(pause)
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    keep(sys.stdin)
