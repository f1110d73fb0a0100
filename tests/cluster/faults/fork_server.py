"""Starts operators quickly: a process that has imported ruleop forks each of them.

A start takes fifty milliseconds instead of a second, and each operator is a process of its own, which a test may kill as the crash of a node
does. Run as a program, it reads lines of JSON, {"arguments": [...], "log": file, "clock": file}, and prints the pid of each operator. When its
input ends, it kills the operators that still run. The file `clock`, if there is one, contains the seconds by which the operator's wall clock is
shifted.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self

import ruleop.cli.run  # noqa: F401 - what commands import when they run is imported here, once
from ruleop.cli import main

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo


# Several versions of ruleop may be installed; this is the one of these tests.
ROOT = Path(__file__).resolve().parents[3]


class ForkServer:
    def __init__(self, home: Path) -> None:
        self._home = home
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self._home),
            "PYTHONPATH": str(ROOT),
            "RULEOP_DEBUG": "1",
        }
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=pipe, stdout=pipe, text=True, env=environment
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=30)

    def start(self, arguments: Sequence[str], log: Path, clock: Path) -> int:
        """Starts an operator and returns its pid."""
        with self._lock:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(
                json.dumps({"arguments": list(arguments), "log": str(log), "clock": str(clock)}) + "\n"
            )
            self._process.stdin.flush()
            return int(self._process.stdout.readline())


def is_alive(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def serve() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries them
    pids: list[int] = []
    for line in sys.stdin:
        wanted = json.loads(line)
        pid = os.fork()
        if not pid:
            _run_operator(**wanted)
        pids.append(pid)
        print(pid, flush=True)  # noqa: T201 - the answer
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _run_operator(arguments: list[str], log: str, clock: str) -> None:
    """Runs an operator; never returns."""
    status = 70
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (file, 1), (file, 2)):
            os.dup2(source, target)
        _shift_clock(Path(clock))
        sys.argv = ["ruleop", *arguments]
        main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - it is printed, and the fork exits: it must not continue as the fork server
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _shift_clock(file: Path) -> None:
    """The shifted wall clock. The monotonic clock is not shifted."""
    right, real = time.time, datetime

    def shifted_time() -> float:
        return right() + (float(file.read_text()) if file.exists() else 0.0)

    class ShiftedDatetime(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return real.fromtimestamp(shifted_time(), tz)

    time.time = shifted_time
    for module in list(sys.modules.values()):
        if getattr(module, "datetime", None) is real:
            module.datetime = ShiftedDatetime  # type: ignore[attr-defined]


if __name__ == "__main__":
    serve()
