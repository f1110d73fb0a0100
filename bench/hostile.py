"""A small custom resource beside 64 of 200 bytes whose plans take a second each: when it is ready, how long `/metrics`
waits, and when SIGTERM ends the process.

    python bench/hostile.py

The operator is a process, the API server is in memory. CPU time is the operator's; on a machine that others use, the
clock says little. Nothing is asserted.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the operator and the resources are those of the tests

from tests.limits.hostile import KINDS, SMALL, Hostile  # noqa: E402
from tests.processes.fork_server import ForkServer  # noqa: E402
from tests.waiting import eventually  # noqa: E402

HOSTILE = 64
BEFORE = 20.0  # seconds in which they are planned before the small one is created
PATIENCE = 120.0


class Measured:
    def __init__(self, hostile: Hostile) -> None:
        self.hostile = hostile
        self.begun, self.cpu_begun = time.monotonic(), self.cpu()

    def cpu(self) -> float:
        """The CPU time of the operator in seconds."""
        fields = Path(f"/proc/{self.hostile.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __str__(self) -> str:
        return f"{self.cpu() - self.cpu_begun:6.2f} s of CPU, {time.monotonic() - self.begun:6.1f} s"


class Probes(threading.Thread):
    """Asks for one path until it is stopped."""

    def __init__(self, hostile: Hostile, path: str) -> None:
        super().__init__()
        self.hostile, self.path = hostile, path
        self.statuses: set[int] = set()
        self.longest = 0.0  # of CPU time of the operator
        self.is_stopped = threading.Event()

    def run(self) -> None:
        while not self.is_stopped.wait(0.2):
            measured = Measured(self.hostile)
            self.statuses.add(self.hostile.probe(self.path)[0])
            self.longest = max(self.longest, measured.cpu() - measured.cpu_begun)

    def stop(self) -> None:
        self.is_stopped.set()
        self.join()
        print(f"  {self.path:26} {self.longest:6.2f} s of CPU at most, statuses {sorted(self.statuses)}")


def measure(hostile: Hostile, kinds: tuple[str, ...], wait: float) -> None:
    hostile.start()
    hostile.create_hostile(HOSTILE, kinds)
    time.sleep(wait)
    probes = [Probes(hostile, path) for path in ("/healthz", "/metrics")]
    measured = Measured(hostile)
    hostile.create(kinds[0], "small", SMALL)
    for each in probes:
        each.start()
    try:
        eventually("the small one", lambda: hostile.ready(kinds[0], "small")["status"] == "True", PATIENCE)
        print(f"  the small one is ready     {measured}")
    except AssertionError:
        print(f"  the small one is not ready {measured}")
    time.sleep(BEFORE)
    for each in probes:
        each.stop()
    ending = time.monotonic()
    hostile.terminate()
    while hostile.is_alive and time.monotonic() - ending < PATIENCE:
        time.sleep(0.05)
    print(
        f"  SIGTERM                    {'unheard' if hostile.is_alive else 'ended'} {time.monotonic() - ending:.1f} s"
    )
    print(f"  lines that are not JSON    {sum('level' not in each for each in hostile.log())}")


def main() -> None:
    for kinds in (KINDS, KINDS[:1]):
        for wait, known in ((0.0, "new"), (BEFORE, f"known for {BEFORE:.0f} s")):
            print(f"{HOSTILE} hostile resources of {len(kinds)} kinds, {known}")
            with (
                ForkServer() as server,
                tempfile.TemporaryDirectory() as folder,
                Hostile(server, Path(folder)) as found,
            ):
                measure(found, kinds, wait)


if __name__ == "__main__":
    main()
